"""Two windows on one notebook review an agent's changes; what they show and the file agree."""

from __future__ import annotations

import pytest
from live_tab import SOURCES, Tab, expect_no_dialog
from playwright.sync_api import BrowserContext, expect
from test_lab_review import CHANGED, LINES, Review, rewrite

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(300), pytest.mark.one_page]


def open_again(context: BrowserContext, tab: Tab) -> Tab:
    """Open the notebook of a tab in a second window."""
    page = context.new_page()
    page.goto(f"{tab.lab.url}/lab/workspaces/second/tree/{tab.file.name}?reset")
    page.locator(".jp-NotebookPanel:visible .jp-Cell").first.wait_for()
    page.wait_for_function("jupyterapp.shell.currentWidget?.sessionContext?.session?.kernel")
    return Tab(tab.lab, page, tab.file.name)


def test_one_window_undoes_and_the_other_keeps(open_tab, context: BrowserContext) -> None:
    first = open_tab(LINES, "two = 2", "three = 3")
    second = open_again(context, first)
    reviews = [Review(first), Review(second)]
    rewrite(first, 0, CHANGED)
    for tab, review in zip((first, second), reviews, strict=True):
        tab.expect(f"{SOURCES}[0]", CHANGED)
        review.expect_summary("2 changes by Claude in 1 cell")

    first.type(1, " # mine")
    second.type(2, " # yours")
    reviews[0].button("Undo this change", 1).click()
    reviews[1].button("Keep this change").click()
    for review in reviews:
        review.expect_summary("1 change by Claude in 1 cell")

    undone = CHANGED.replace("66", "6")
    first.save()
    reviews[0].expect_none()
    assert first.file_sources[:2] == [undone, "two = 2 # mine"]
    second.look()
    second.expect(SOURCES, [undone, "two = 2 # mine", "three = 3 # yours"])
    reviews[1].expect_none()

    second.save()
    first.look()
    both = [undone, "two = 2 # mine", "three = 3 # yours"]
    for tab in (first, second):
        tab.expect(SOURCES, both)
        expect_no_dialog(tab.page)
        expect(tab.page.locator(".Toastify__toast", has_text="both versions")).to_have_count(0)
    assert first.file_sources == both
