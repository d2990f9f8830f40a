"""Two people in one notebook of jupyter-collaboration review an agent's changes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from live_tab import SOURCES, Tab, expect_no_dialog
from playwright.sync_api import BrowserContext, Page, sync_playwright
from test_lab_review import CHANGED, LINES, Review, rewrite, undone_in_log

from oh_jupyter.browser.executable import find_executable
from oh_jupyter.testing import wait_until

pytest.importorskip("jupyter_server_ydoc", reason="needs jupyter-collaboration, see scripts/check")
pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def people() -> Iterator[tuple[BrowserContext, BrowserContext]]:
    """The browsers of two people, which share no storage."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=find_executable(), args=["--no-sandbox"]
        )
        contexts = [browser.new_context(viewport={"width": 1500, "height": 950}) for _ in range(2)]
        for context in contexts:
            context.set_default_timeout(120_000)
        yield contexts[0], contexts[1]
        browser.close()


@pytest.fixture
def page(people: tuple[BrowserContext, BrowserContext]) -> Iterator[Page]:
    page = people[0].new_page()
    yield page
    for context in people:
        for each in context.pages:
            each.close()


@pytest.fixture
def tabs(open_tab, people: tuple[BrowserContext, BrowserContext]) -> tuple[Tab, Tab]:
    """One notebook, in the windows of both."""
    first: Tab = open_tab(LINES, "two = 2", "three = 3", "four = 4")
    page = people[1].new_page()
    page.goto(f"{first.lab.url}/lab/tree/{first.file.name}?reset&token=end-to-end")
    page.locator(".jp-NotebookPanel:visible .jp-Cell").first.wait_for()
    page.wait_for_function("jupyterapp.shell.currentWidget?.sessionContext?.session?.kernel")
    second = Tab(first.lab, page, first.file.name)
    first.type(3, "  # first")
    second.expect(f"{SOURCES}[3]", "four = 4  # first")  # it is shared
    return first, second


def expect_file(tab: Tab, sources: list[str]) -> None:
    """Wait until the server has saved the document."""

    def is_saved() -> bool:
        try:
            return tab.file_sources == sources
        except ValueError:  # it is being written
            return False

    wait_until(is_saved, what="the notebook's file")


def test_one_keeps_and_the_other_undoes(tabs: tuple[Tab, Tab]) -> None:
    first, second = tabs
    reviews = [Review(first), Review(second)]
    rewrite(first, 0, CHANGED)
    for tab, review in zip(tabs, reviews, strict=True):
        tab.expect(f"{SOURCES}[0]", CHANGED)
        review.expect_summary("2 changes by Claude in 1 cell")
    first.type(1, "  # mine")
    second.type(2, "  # yours")

    reviews[0].button("Keep this change").click()
    for review in reviews:
        review.expect_summary("1 change by Claude in 1 cell")
    reviews[1].button("Undo this change").click()
    sources = [
        CHANGED.replace("66", "6"),
        "two = 2  # mine",
        "three = 3  # yours",
        "four = 4  # first",
    ]
    for tab, review in zip(tabs, reviews, strict=True):
        tab.expect(SOURCES, sources)
        review.expect_none()
        expect_no_dialog(tab.page)
    expect_file(first, sources)
    (undone,) = undone_in_log(first)
    assert "-line_6 = 66" in undone["extras"]["diff"]
    assert "+line_6 = 6" in undone["extras"]["diff"]


def test_cells_are_added_deleted_and_moved_for_both(tabs: tuple[Tab, Tab]) -> None:
    first, second = tabs
    reviews = [Review(first), Review(second)]
    first.call("read_cells", outputs=False)
    first.call("delete_cell", cell="cell-1")
    first.call("insert_cell", source="added = 5", index=2)
    first.call("move_cell", cell="cell-3", index=0)
    shown = ["four = 4  # first", LINES, "three = 3", "added = 5"]
    for tab, review in zip(tabs, reviews, strict=True):
        tab.expect(SOURCES, shown)
        review.expect_summary("3 changes by Claude in 3 cells")

    undo, keep = "Undo the changes of this cell", "Keep the changes of this cell"
    deleted = reviews[0].panel.get_by_role("group", name="Deleted cell")
    deleted.get_by_role("button", name=undo).click()
    reviews[1].panel.get_by_role("group", name="Added cell").get_by_role(
        "button", name=keep
    ).click()
    for tab, review in zip(tabs, reviews, strict=True):
        tab.expect(f"{SOURCES}.includes('two = 2')", True)
        review.expect_summary("1 change by Claude in 1 cell")
    second.type(second.sources.index("three = 3"), "  # yours")
    reviews[1].button("Undo all changes").click()
    sources = [LINES, "two = 2", "three = 3  # yours", "added = 5", "four = 4  # first"]
    for tab, review in zip(tabs, reviews, strict=True):
        tab.expect(f"{SOURCES}.toSorted()", sorted(sources))
        review.expect_none()
        expect_no_dialog(tab.page)
    assert first.sources == second.sources
    expect_file(first, first.sources)


def type_seen(tab: Tab, index: int, typed: dict[int, str], text: str) -> None:
    """Type at the end of a cell, until the text is there."""
    typed[index] += text
    tab.type(index, text)
    tab.expect(f"{SOURCES}[{index}]", typed[index])


def test_both_type_while_the_agent_edits(tabs: tuple[Tab, Tab]) -> None:
    first, second = tabs
    text, count = LINES, 5
    typed = {1: "two = 2", 2: "three = 3"}
    for number in range(count):
        type_seen(first, 1, typed, f" f{number}")
        text = text.replace(f"line_{number} = {number}", f"line_{number} = {number}{number}")
        rewrite(first, 0, text)
        type_seen(second, 2, typed, f" s{number}")
    review = Review(second)
    for tab in tabs:
        tab.expect(f"{SOURCES}[0]", text)
    review.expect_summary("1 change by Claude in 1 cell")  # of lines that follow each other
    review.button("Undo all changes").click()
    sources = [LINES, typed[1], typed[2], "four = 4  # first"]
    for tab in tabs:
        tab.expect(SOURCES, sources)
        Review(tab).expect_none()
        expect_no_dialog(tab.page)
    expect_file(first, sources)
