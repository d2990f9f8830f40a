"""Cost of the panel with thousands of actions: cards in the page, frames a second.

Run it with ``python tests/benchmarks/bench_lab.py``. It opens a notebook in a real JupyterLab and
Chromium, records the actions in its kernel, waits until the panel counts them, and scrolls from one
end to the other. Frames are counted in the same page without and with the panel.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

sys.path.insert(0, str(Path(__file__).parents[1] / "e2e"))

from test_lab_activity import MANY, run_cell

from conftest import TOKEN, Lab, run_lab
from oh_jupyter.browser.executable import find_executable

ACTIONS = 5000
SECONDS = 3

FRAMES = """async milliseconds => {
    const list = document.querySelector('#oh-jupyter-log .oh-List');
    const started = performance.now();
    let frames = 0, worst = 0, last = started;
    for (;;) {
        const now = await new Promise(requestAnimationFrame);
        frames += 1;
        worst = Math.max(worst, now - last);
        last = now;
        const part = (now - started) / milliseconds;
        if (part >= 1) return [frames / (now - started) * 1000, worst];
        if (list) list.scrollTop = list.scrollHeight * Math.abs(1 - 2 * part);
    }
}"""


def measure(page: Page, lab: Lab) -> None:
    """Print the figures."""
    page.goto(f"{lab.url}/lab/tree/00-tour.ipynb?reset&token={TOKEN}")
    page.locator(".jp-NotebookPanel:visible .jp-Cell").first.wait_for()
    page.wait_for_function("jupyterapp.shell.currentWidget?.sessionContext?.session?.kernel")
    frames, worst = page.evaluate(FRAMES, SECONDS * 1000)
    print(f"without the panel        {frames:6.1f} frames/s, longest frame {worst:.0f} ms")
    page.evaluate(
        """async limit => {
            const settings = await jupyterapp.serviceManager.settings.fetch('oh-jupyter:log');
            await jupyterapp.serviceManager.settings.save(
                'oh-jupyter:log', JSON.stringify({ limit }));
        }""",
        ACTIONS,
    )
    page.reload()
    page.wait_for_function("jupyterapp.shell.currentWidget?.sessionContext?.session?.kernel")
    run_cell(page, "%load_ext oh_jupyter\n" + MANY.format(ACTIONS))
    page.locator('.lm-TabBar-tab[data-id="oh-jupyter-log"]').click()
    count = page.locator("#oh-jupyter-log .oh-Header-count")
    count.get_by_text(f"{ACTIONS} actions").wait_for()
    frames, worst = page.evaluate(FRAMES, SECONDS * 1000)
    cards = page.locator("#oh-jupyter-log .oh-Card").count()
    print(f"{ACTIONS} actions, scrolling {frames:6.1f} frames/s, longest frame {worst:.0f} ms")
    print(f"cards in the page        {cards:6d}")


def main() -> None:
    """Measure in a fresh JupyterLab."""
    with (
        tempfile.TemporaryDirectory() as folder,
        run_lab(Path(folder)) as lab,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(
            executable_path=find_executable(), args=["--no-sandbox"]
        )
        page = browser.new_page(viewport={"width": 1500, "height": 950})
        page.set_default_timeout(300_000)
        measure(page, lab)
        browser.close()


if __name__ == "__main__":
    main()
