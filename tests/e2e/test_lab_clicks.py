"""Five tasks of a person take at most three clicks each."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from live_tab import SOURCES
from panel_menu import choose
from playwright.sync_api import Page, expect
from run_cells import run_all_cells
from test_lab_review import CHANGED, LINES, Review, rewrite

pytestmark = [pytest.mark.timeout(300), pytest.mark.thorough, pytest.mark.one_page]

SCRIPTED = Path(__file__).parents[2] / "examples" / "scripted_agent.py"
AGENTS = json.dumps({"scripted": shlex.join([sys.executable, str(SCRIPTED)])})
SET_AGENTS = f"import os; os.environ['OH_JUPYTER_AGENTS'] = {AGENTS!r}\n"
COUNT = "addEventListener('pointerdown', () => { window.clicks = (window.clicks ?? 0) + 1; }, true)"


@contextmanager
def clicks(page: Page, expected: int) -> Iterator[None]:
    """Count the clicks of a task."""
    page.evaluate(f"if (window.clicks === undefined) {{ window.clicks = 0; {COUNT}; }}")
    page.evaluate("window.clicks = 0")
    yield
    assert page.evaluate("window.clicks") == expected <= 3


def test_approve_one_of_four(notebook) -> None:
    page, ask = notebook
    answers = [ask(command=f"sudo -n true # {number}") for number in range(4)]
    cards = page.locator("#oh-jupyter-log .oh-Card.oh-mod-waiting")
    expect(cards).to_have_count(4)
    with clicks(page, 1):
        cards.filter(has_text="# 2").get_by_role("button", name="Approve").click()
        expect(cards).to_have_count(3)
    assert answers[2].result(60)["observation"] == "run"
    assert [answer.done() for answer in answers] == [False, False, True, False]


def test_undo_one_hunk(open_tab) -> None:
    tab = open_tab(LINES)
    review = Review(tab)
    rewrite(tab, 0, CHANGED)
    review.expect_summary("2 changes by Claude in 1 cell")
    with clicks(tab.page, 1):
        review.button("Undo this change", 1).click()
        tab.expect(SOURCES, [CHANGED.replace("66", "6")])


def test_stop_a_loop(open_notebook, write_notebook) -> None:
    write_notebook("loop.ipynb", f"{SET_AGENTS}%load_ext oh_jupyter")
    page: Page = open_notebook("loop.ipynb")
    run_all_cells(page)
    panel = page.locator("#oh-jupyter-log")
    box = panel.get_by_role("textbox", name="Prompt for the agent")
    box.fill("run while true; do sleep 0.1; done")
    box.press("Enter")
    expect(panel.locator(".oh-Card").last).to_contain_text("while true")
    with clicks(page, 1):
        panel.locator(".oh-AtWork").get_by_role("button", name="Stop").click()
        expect(panel.locator(".oh-TurnSum")).to_contain_text("stopped")
        expect(panel.locator(".oh-Card.oh-mod-running")).to_have_count(0)


def test_find_the_change_of_a_variable(open_tab) -> None:
    tab = open_tab("frame = [1]")
    page = tab.page
    run_all_cells(page)
    for code in ("other = 2", "frame = frame[:0]", "print(other)"):
        tab.act("run_ipython", code=code)
    panel = page.locator("#oh-jupyter-log")
    with clicks(page, 3):
        choose(page, "Filter")
        page.keyboard.type("frame =")
        card = panel.locator(".oh-Card", has_text="frame = frame[:0]")
        expect(panel.locator(".oh-Card")).to_have_count(1)
        card.locator(".oh-Card-header").click()
        expect(card.locator(".oh-Text").first).to_have_text("frame = frame[:0]")
    page.keyboard.press("Escape")


def test_take_over_a_login(lab, open_tab) -> None:
    (lab.root / "login.html").write_text("<title>Log in</title><input type=password>")
    tab = open_tab("1")
    page = tab.page
    tab.act("browse", url=f"file://{lab.root}/login.html")
    with clicks(page, 3):
        choose(page, "Browser")
        panel = page.locator("#oh-jupyter-browser")
        expect(panel.locator(".oh-Browser-page img")).to_be_visible()
        panel.get_by_role("button", name="Take over").click()
        expect(panel.get_by_role("status")).to_have_text("You have the browser.")
    panel.get_by_role("button", name="Hand back").click()
    expect(panel.get_by_role("button", name="Take over")).to_be_visible()
