"""The views of the panel look like their stored pictures, in a light and a dark theme.

The pictures in ``views`` are from one machine; with other fonts or another Chromium, the test is
skipped. After a change that is meant, look at the new pictures and renew them with
``OH_JUPYTER_RENEW_VIEWS=1 pytest -m slow tests/e2e/test_lab_views.py``.
"""

from __future__ import annotations

import io
import json
import os
import shlex
import sys
from pathlib import Path

import pytest
from panel_menu import choose, open_menu
from PIL import Image, ImageChops
from playwright.sync_api import Locator, Page, expect
from run_cells import run_all_cells

pytestmark = [pytest.mark.slow, pytest.mark.timeout(500)]

VIEWS = Path(__file__).parent / "views"
MACHINE = VIEWS / "machine.json"
RENEWS = bool(os.environ.get("OH_JUPYTER_RENEW_VIEWS"))
SCRIPTED = Path(__file__).parents[2] / "examples" / "scripted_agent.py"
AGENTS = json.dumps({"scripted": shlex.join([sys.executable, str(SCRIPTED), "--options"])})
LOAD = f"import os; os.environ['OH_JUPYTER_AGENTS'] = {AGENTS!r}\n%load_ext oh_jupyter"
THEMES = {"light": "JupyterLab Light", "dark": "JupyterLab Dark"}
STEADY = """
    time, .oh-Card-took, .oh-AtWork-time, .oh-Confirm-countdown { visibility: hidden !important; }
    * { animation: none !important; caret-color: transparent !important; }
"""
"""Hides what differs from run to run."""
FONTS = """() => ['--jp-ui-font-family', '--jp-code-font-family'].map(name => {
    const context = document.createElement('canvas').getContext('2d');
    context.font = `40px ${getComputedStyle(document.body).getPropertyValue(name)}`;
    return context.measureText('The tides of 1, 234 harbours').width;
})"""
MAX_CHANNEL_DIFFERENCE = 48
MAX_DIFFERENT_SHARE = 0.0002
COLORS = 256
"""Number of colors of a stored picture."""


class Views:
    """Pictures that are compared with the stored ones, or stored."""

    def __init__(self, page: Page, folder: Path) -> None:
        self._page = page
        self._folder = folder
        self.differences: list[str] = []

    def take(self, node: Locator, name: str) -> None:
        """Take pictures of a node in each theme."""
        for suffix, theme in THEMES.items():
            change = "jupyterapp.commands.execute('apputils:change-theme', {theme})"
            self._page.evaluate(f"theme => {change}", theme)
            self._page.wait_for_function(f"document.body.dataset.jpThemeName === '{theme}'")
            self._page.locator("#jupyterlab-splash").wait_for(state="detached")
            self._page.mouse.move(1, 1)
            data = node.screenshot(style=STEADY, animations="disabled")
            self._compare(Image.open(io.BytesIO(data)).convert("RGB"), f"{name}-{suffix}.png")

    def _compare(self, picture: Image.Image, name: str) -> None:
        if RENEWS:
            VIEWS.mkdir(exist_ok=True)
            few = picture.quantize(COLORS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
            few.save(VIEWS / name, optimize=True)
            return
        expected = Image.open(VIEWS / name).convert("RGB")
        share = 1.0 if picture.size != expected.size else different_share(picture, expected)
        if share > MAX_DIFFERENT_SHARE:
            picture.save(self._folder / name)
            self.differences.append(f"{name}: {share:.3%} differ, see {self._folder / name}")


def different_share(one: Image.Image, other: Image.Image) -> float:
    """Return the share of pixels with clearly different colors."""
    channels = ImageChops.difference(one, other).split()
    largest = ImageChops.lighter(ImageChops.lighter(channels[0], channels[1]), channels[2])
    counts = largest.histogram()[MAX_CHANNEL_DIFFERENCE + 1 :]
    return sum(counts) / (one.width * one.height)


def check_machine(page: Page) -> None:
    """Skip the test where text looks different."""
    browser = page.context.browser
    version = page.evaluate("navigator.userAgent.match(/Chrome.(\\d+)/)[1]")
    machine = {"chromium": version if browser is None else browser.version.split(".")[0]}
    machine["fonts"] = page.evaluate(FONTS)
    if RENEWS:
        VIEWS.mkdir(exist_ok=True)
        MACHINE.write_text(json.dumps(machine) + "\n")
    elif json.loads(MACHINE.read_text()) != machine:
        pytest.skip(f"the pictures are from another machine: {machine}")


def test_views_look_as_stored(lab, open_notebook, write_notebook, tmp_path: Path) -> None:
    # Examples of prompts name the files beside the notebook.
    (lab.root / "views").mkdir()
    write_notebook("views/views.ipynb", LOAD, "tides = [1.5, 2.5]")
    page: Page = open_notebook("views/views.ipynb")
    check_machine(page)
    run_all_cells(page)
    page.evaluate("jupyterapp.commands.execute('oh-jupyter:ask-agent')")
    panel = page.locator("#oh-jupyter-log")
    box = panel.get_by_role("textbox", name="Prompt for the agent")
    views = Views(page, tmp_path)

    def ask(prompt: str, turns: int = 0) -> None:
        box.fill(prompt)
        box.press("Enter")
        if turns:
            expect(panel.locator(".oh-TurnSum")).to_have_count(turns)
            expect(panel.locator(".oh-Header")).to_contain_text("kernel idle")

    expect(panel.get_by_role("list", name="Examples")).to_be_visible()
    expect(panel.locator(".oh-Header-sandbox")).to_be_visible()
    views.take(panel, "first-use")
    ask("plan look; count\nsay **Hello**\nrun echo one\nwrite new.txt: one\nrun exit 3", 1)
    views.take(panel, "conversation")
    panel.locator(".oh-Card", has_text="exit 3").locator(".oh-Card-header").click()
    views.take(panel, "open-card")
    menu = open_menu(page)
    views.take(panel, "menu")
    page.keyboard.press("Escape")
    expect(menu).to_have_count(0)
    choose(page, "Filter")
    panel.get_by_role("searchbox").fill("echo")
    views.take(panel, "filter")
    panel.get_by_role("searchbox").press("Escape")
    choose(page, "Clear finished")
    views.take(panel, "cleared")
    panel.get_by_role("button", name="Show them").click()

    ask("run sudo -n true")
    card = panel.locator(".oh-Card.oh-mod-waiting")
    expect(card.get_by_role("button", name="Approve").first).to_be_visible()
    views.take(panel, "decision")
    ask("say later")
    box.press_sequentially("about @tid")
    expect(panel.locator(".oh-Offers [role=option]")).to_have_count(1)
    views.take(panel, "offers")
    box.press("Tab")
    views.take(panel, "queue")
    card.get_by_role("button", name="Reject").click()
    views.take(panel, "reject")
    card.get_by_role("button", name="Reject").click()
    expect(panel.locator(".oh-TurnSum")).to_have_count(3)
    panel.get_by_text("Changes in this session").click()
    expect(panel.get_by_role("list", name="Changed files")).to_be_visible()
    views.take(panel, "changes-list")
    page.evaluate("void jupyterapp.commands.execute('oh-jupyter:show-deliveries')")
    expect(page.locator(".oh-Deliveries-empty")).to_be_visible()
    views.take(page.locator(".oh-Deliveries"), "deliveries")
    assert views.differences == [], "\n".join(views.differences)
