"""The head of the panel: the state of the kernel and of the agent, and the menu."""

from __future__ import annotations

import json
import re
import shlex
import sys
from pathlib import Path

import pytest
from panel_menu import choose, open_menu
from pictures import take_pictures
from playwright.sync_api import Locator, Page, expect
from run_cells import run_all_cells

pytestmark = [pytest.mark.timeout(180), pytest.mark.thorough]

SCRIPTED = Path(__file__).parents[2] / "examples" / "scripted_agent.py"
COMMAND = shlex.join([sys.executable, str(SCRIPTED)])
LOAD = f"""import os; os.environ['OH_JUPYTER_AGENTS'] = {json.dumps({"scripted": COMMAND})!r}
from oh_jupyter.agents import session; session.CANCEL_TIMEOUT_SECONDS = 60
%load_ext oh_jupyter"""
NAME = "a-long-name-of-a-notebook-about-tides-and-harbours"
OVERFLOW = """panel => [...panel.querySelectorAll('.oh-Header *, .oh-Composer *')]
    .filter(node => node.getBoundingClientRect().right > panel.getBoundingClientRect().right + 1)
    .map(node => node.className)"""
"""What is drawn beyond the panel's edge."""


@pytest.fixture
def panel(page: Page, open_notebook, write_notebook, request: pytest.FixtureRequest) -> Locator:
    """Open a notebook with a runtime; return the panel beside it."""
    name = f"{NAME}-{re.sub('[^a-z0-9]', '-', request.node.name)}.ipynb"
    write_notebook(name, LOAD)
    open_notebook(name)
    run_all_cells(page)
    return page.locator("#oh-jupyter-log")


def ask(panel: Locator, prompt: str) -> None:
    box = panel.get_by_role("textbox", name="Prompt for the agent")
    box.fill(prompt)
    box.press("Enter")


def test_the_head_shows_the_current_activity(page: Page, panel: Locator) -> None:
    head = panel.locator(".oh-Header")
    expect(head.locator("h3")).to_contain_text(NAME)
    expect(head).to_contain_text("kernel idle")
    expect(head.locator(".oh-Header-sandbox")).to_have_text("no sandbox")
    ask(panel, "run ls\nrun sleep 1000")
    work = head.locator(".oh-AtWork")
    expect(work).to_contain_text("scripted is working")
    expect(work.locator(".oh-AtWork-time")).to_have_text(re.compile(r"^[2-9] s$"))
    expect(head.locator(".oh-Header-count")).to_contain_text("action")
    expect(panel.locator(".oh-Card").last).to_contain_text("sleep 1000")
    take_pictures(page, "head")
    work.get_by_role("button", name="Stop").click()
    expect(panel.locator(".oh-TurnSum").last).to_contain_text("stopped")
    expect(work).to_have_count(0)

    page.evaluate("jupyterapp.shell.currentWidget.sessionContext.session.kernel.shutdown()")
    expect(head).not_to_contain_text("kernel idle")


@pytest.mark.parametrize("width", [360, 300])
def test_a_narrow_head_is_whole(page: Page, width: int, request: pytest.FixtureRequest) -> None:
    # The panel takes at least 40 % of a small window.
    page.set_viewport_size({"width": width * 10 // 4, "height": 950})
    panel: Locator = request.getfixturevalue("panel")
    page.evaluate("jupyterapp.shell._hsplitPanel.setRelativeSizes([0, 1, 0])")
    expect(panel).to_have_css("width", f"{width}px")
    ask(panel, "run sleep 1000")
    expect(panel.locator(".oh-AtWork")).to_contain_text("scripted is working")
    assert panel.evaluate(OVERFLOW) == []
    take_pictures(page, f"head-{width}")
    panel.locator(".oh-AtWork").get_by_role("button", name="Stop").click()
    expect(panel.locator(".oh-TurnSum")).to_contain_text("stopped")


def test_the_menu_filters_clears_and_lists(page: Page, panel: Locator) -> None:
    ask(panel, "say hello\nrun ls /\nread missing.txt")
    expect(panel.locator(".oh-TurnSum")).to_have_count(1)
    expect(panel.locator(".oh-Header-costs")).to_have_text("$0.01")
    menu = open_menu(page)
    toggled = menu.locator(".lm-mod-toggled")
    expect(toggled).to_have_text(["Follow"])
    expect(toggled.locator("svg")).to_have_count(1)
    take_pictures(page, "menu")
    page.keyboard.press("Escape")
    expect(menu).to_have_count(0)

    choose(page, "Filter")
    words = panel.get_by_role("searchbox")
    expect(words).to_be_focused()
    words.fill("missing.txt")
    kinds = panel.get_by_role("combobox", name="Show only actions of this kind")
    kinds.select_option("Read")
    expect(panel.locator(".oh-Card")).to_have_count(1)
    take_pictures(page, "filter")
    words.press("Escape")
    expect(panel.locator(".oh-AgentText").first).to_have_text("hello")

    choose(page, "Log as a flat list")
    expect(panel.locator(".oh-Turn")).to_have_count(0)
    choose(page, "Log as a flat list")
    expect(panel.locator(".oh-Turn")).to_have_count(1)

    ask(panel, "run sleep 1000")
    expect(panel.locator(".oh-Card").last).to_contain_text("sleep 1000")
    choose(page, "Clear finished")
    expect(panel.locator(".oh-Turn-prompt")).to_have_text("run sleep 1000")
    expect(panel.locator(".oh-Card")).to_have_count(1)
    take_pictures(page, "cleared")
    panel.get_by_role("button", name="Show them").click()
    expect(panel.locator(".oh-Turn")).to_have_count(2)

    choose(page, "Settings")
    expect(page.locator(".jp-SettingsPanel, .jp-SettingsEditor").first).to_be_visible()
