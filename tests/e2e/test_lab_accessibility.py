"""Every view of ours follows WCAG 2.1 AA, as far as axe-core can tell."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from run_cells import run_all_cells
from test_lab_review import rewrite

pytestmark = [pytest.mark.timeout(300), pytest.mark.thorough]

ROOT = Path(__file__).parents[2]
AXE = ROOT / "labextension" / "node_modules" / "axe-core" / "axe.min.js"
SCRIPTED = ROOT / "examples" / "scripted_agent.py"
OURS = (
    "#oh-jupyter-log",
    ".oh-Changes",
    ".oh-Browser",
    ".oh-Deliveries",
    ".oh-ErrorBar",
    ".oh-ReviewBar",
    ".oh-Review-row",
    ".oh-RewindDialog",
    "#oh-jupyter-store",
)
"""What we draw; the rest of the page is JupyterLab's."""
THEMES = ("JupyterLab Light", "JupyterLab Dark", "JupyterLab Dark High Contrast")
CHECK = """async include => {
    const shown = include.filter(each =>
        [...document.querySelectorAll(each)].some(node => node.checkVisibility()));
    const runOnly = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa'];
    // JupyterLab's own buttons in toolbars have an attribute that their element does not allow.
    const { violations } = await axe.run({ include: shown, exclude: ['jp-button'] }, { runOnly });
    return [shown, violations.flatMap(({ id, nodes }) => nodes.map(
        ({ target, any, all }) => `${id}: ${target} ${[...any, ...all][0]?.message ?? ''}`))];
}"""
STILL = """() => document.getAnimations().every(({ effect, playState }) =>
    playState !== "running" || effect.getTiming().iterations === Infinity)"""


SIZES = {"100 %": (1500, 950, 1), "200 %": (750, 475, 2), "640 pixels": (640, 475, 1)}
"""Width, height and pixels per CSS pixel; a zoom changes all of them."""


def violations(page: Page, view: str) -> list[str]:
    """Return axe-core's findings in every theme, at a zoom of 200 % and in a narrow window."""
    findings: list[str] = []
    chromium = page.context.new_cdp_session(page)
    for theme in THEMES:
        page.evaluate(f"jupyterapp.commands.execute('apputils:change-theme', {{theme: '{theme}'}})")
        page.wait_for_function(f"document.body.dataset.jpThemeName === '{theme}'")
        page.locator("#jupyterlab-splash").wait_for(state="detached")
        for size, (width, height, scale) in SIZES.items():
            metrics = {"width": width, "height": height, "deviceScaleFactor": scale}
            chromium.send("Emulation.setDeviceMetricsOverride", {**metrics, "mobile": False})
            page.wait_for_function(
                "([width, scale]) => innerWidth === width && devicePixelRatio === scale",
                arg=[width, scale],
            )
            page.wait_for_function(STILL)
            shown, wrong = page.evaluate(CHECK, list(OURS))
            assert shown, view
            findings += [f"{view}, {theme}, {size}: {each}" for each in wrong]
    chromium.send("Emulation.clearDeviceMetricsOverride")
    chromium.detach()
    return findings


needs_axe = pytest.mark.skipif(not AXE.exists(), reason="axe-core is not installed")


@needs_axe
def test_every_view_is_accessible(lab, open_notebook, write_notebook) -> None:
    agents = {"scripted": shlex.join([sys.executable, str(SCRIPTED), "--options"])}
    setting = f"import os; os.environ['OH_JUPYTER_AGENTS'] = {json.dumps(agents)!r}"
    write_notebook("accessible.ipynb", f"{setting}\n%load_ext oh_jupyter", "x = 1")
    page: Page = open_notebook("accessible.ipynb")
    run_all_cells(page)
    page.add_script_tag(path=AXE)
    page.evaluate("jupyterapp.commands.execute('oh-jupyter:ask-agent')")
    panel = page.locator("#oh-jupyter-log")
    box = panel.get_by_role("textbox", name="Prompt for the agent")
    expect(panel.get_by_role("list", name="Examples")).to_be_visible()
    findings = violations(page, "first use")

    box.fill(
        "plan look; count\nsay hello\nread missing.txt\nwrite new.txt: one\nrun ls /\nrun ls ."
    )
    box.press("Enter")
    expect(panel.locator(".oh-TurnSum")).to_have_count(1)
    panel.locator(".oh-Card-header, .oh-Fold").last.click()
    findings += violations(page, "conversation")

    box.fill("run sudo -n true")
    box.press("Enter")
    card = panel.locator(".oh-Card.oh-mod-waiting")
    card.get_by_text("Allow…").click()
    box.fill("say later")
    box.press("Enter")
    panel.get_by_text("Changes in this session").click()
    expect(panel.get_by_role("list", name="Changed files")).to_be_visible()
    box.press_sequentially("@x")
    expect(panel.locator(".oh-Offers [role=option]").first).to_be_visible()
    box.press("Tab")
    findings += violations(page, "decision, queue and context")
    card.get_by_role("button", name="Reject").click()
    findings += violations(page, "reason of a rejection")
    card.get_by_role("button", name="Reject").click()
    expect(panel.locator(".oh-TurnSum")).to_have_count(3)

    run = "jupyterapp.shell.currentWidget.sessionContext.session.kernel.requestExecute"
    page.evaluate(f"async () => {{ await {run}({{ code: 'y = x' }}).done; }}")
    page.evaluate(
        "jupyterapp.shell.currentWidget.content.model.sharedModel.getCell(1).setSource('1/0')"
    )
    page.evaluate("jupyterapp.commands.execute('notebook:run-all-cells')")
    expect(page.locator(".oh-ErrorBar")).to_be_visible()
    findings += violations(page, "error of a cell")

    for name, root in (
        ("show-changes", ".oh-Changes"),
        ("show-browser", ".oh-Browser"),
        ("show-deliveries", ".oh-Deliveries"),
    ):
        page.evaluate(f"jupyterapp.commands.execute('oh-jupyter:{name}')")
        expect(page.locator(root).locator("button").first).to_be_visible()
        findings += violations(page, name)
    changed = panel.locator(".oh-TurnSum", has_text="1 file changed")
    changed.get_by_role("button", name="Undo turn…").evaluate("node => node.click()")
    expect(page.locator(".oh-RewindDialog-plan")).to_be_visible()
    findings += violations(page, "rewind")
    assert findings == [], "\n".join(findings)


@needs_axe
def test_reviews_and_views_without_content_are_accessible(open_tab) -> None:
    tab = open_tab("import os; os.environ['PATH'] = '/nowhere'", "a = 1")
    page: Page = tab.page
    run_all_cells(page)
    page.add_script_tag(path=AXE)
    # Shown again, the panel looks for agents again.
    page.evaluate("jupyterapp.shell.collapseRight()")
    page.evaluate("jupyterapp.commands.execute('oh-jupyter:ask-agent')")
    page.locator(".oh-Installations").evaluate("node => { node.open = true; }")
    findings = violations(page, "installations")

    tab.save()
    rewrite(tab, 1, "a = 2")
    expect(page.locator(".oh-ReviewBar:visible")).to_be_visible()
    findings += violations(page, "review")

    page.evaluate("jupyterapp.commands.execute('oh-jupyter:show-deliveries')")
    expect(page.locator(".oh-Deliveries-empty")).to_be_visible()
    findings += violations(page, "no deliveries")
    page.evaluate("jupyterapp.commands.execute('oh-jupyter:show-store')")
    expect(page.locator("#oh-jupyter-store .jp-DirListing-item").first).to_be_visible()
    findings += violations(page, "store")
    assert findings == [], "\n".join(findings)
