"""The person reviews what an agent changed in an open document: keeps it, or undoes it, piece by piece."""

from __future__ import annotations

from typing import Any

import pytest
from live_tab import DIRTY, SOURCES, Tab, expect_no_dialog
from pictures import take_pictures
from playwright.sync_api import Locator, Page, expect

pytestmark = pytest.mark.timeout(180)

LINES = "\n".join(f"line_{number} = {number}" for number in range(8))
CHANGED = LINES.replace("line_1 = 1", "line_1 = 11").replace("line_6 = 6", "line_6 = 66")


@pytest.fixture
def page(kept_page: Page) -> Page:
    return kept_page


class Review:
    """The review of an open document."""

    def __init__(self, tab: Tab) -> None:
        self.panel = tab.page.locator(".jp-MainAreaWidget:visible", has=tab.page.locator(".cm-editor"))
        self.bar = tab.page.get_by_role("region", name="Review of changes")

    def expect_summary(self, text: str) -> None:
        try:
            expect(self.bar.get_by_role("status")).to_have_text(text)
        except AssertionError:
            print(self.panel.locator(".oh-Review-row").all_text_contents())
            raise
        expect(self.bar).to_be_in_viewport(ratio=1)

    def expect_none(self) -> None:
        expect(self.bar).to_have_count(0)
        expect(self.panel.locator(".cm-deletedChunk")).to_have_count(0)

    def button(self, name: str, index: int = 0) -> Locator:
        return self.panel.get_by_role("button", name=name, exact=True).nth(index)


def rewrite(tab: Tab, index: int, source: str) -> None:
    """Have the agent replace the text of a cell."""
    tab.call("read_cells", outputs=False)
    tab.call("edit_cell", cell=index, source=source)


def test_hunks_are_kept_and_undone_one_by_one(open_tab) -> None:
    tab = open_tab(LINES, "two = 2")
    review = Review(tab)
    rewrite(tab, 0, CHANGED)
    tab.expect(SOURCES, [CHANGED, "two = 2"])
    review.expect_summary("2 changes by an agent in 1 cell")
    expect(review.panel.locator(".cm-deletedChunk").first).to_contain_text("line_1 = 1")
    take_pictures(tab.page, "review-hunks")

    review.button("Undo this change", 1).click()
    tab.expect(SOURCES, [CHANGED.replace("66", "6"), "two = 2"])
    review.expect_summary("1 change by an agent in 1 cell")
    review.button("Keep this change").click()
    review.expect_none()
    tab.expect(DIRTY, True)
    tab.save()
    assert tab.file_sources == [CHANGED.replace("66", "6"), "two = 2"]
    expect_no_dialog(tab.page)


def test_added_deleted_and_moved_cells_are_shown_and_undone(open_tab) -> None:
    tab = open_tab("print('out')", "two = 2", "three = 3", "four = 4")
    review = Review(tab)
    tab.page.evaluate("jupyterapp.commands.execute('notebook:run-all-cells')")
    tab.expect("jupyterapp.shell.currentWidget.content.widgets[0].model.outputs.length", 1)
    tab.save()
    rewrite(tab, 0, "print('out')  # agent")
    tab.call("delete_cell", cell="cell-1")
    tab.call("insert_cell", source="added = 5\nmore = 6", index=2)
    tab.call("move_cell", cell="cell-3", index=0)
    tab.expect(SOURCES, ["four = 4", "print('out')  # agent", "three = 3", "added = 5\nmore = 6"])
    review.expect_summary("4 changes by an agent in 4 cells")
    expect(review.panel.get_by_role("group", name="Deleted cell: two = 2")).to_be_visible()
    expect(review.panel.get_by_role("group", name="Moved")).to_be_visible()
    expect(review.panel.get_by_role("group", name="Added cell")).to_be_visible()
    expect(review.panel.locator(".oh-mod-stale")).to_have_count(1)
    take_pictures(tab.page, "review-cells")

    undo = "Undo the changes of this cell"
    review.panel.get_by_role("group", name="Moved").get_by_role("button", name=undo).click()
    tab.expect(SOURCES, ["print('out')  # agent", "three = 3", "four = 4", "added = 5\nmore = 6"])
    review.panel.get_by_role("group", name="Deleted cell").get_by_role("button", name=undo).click()
    tab.expect(f"{SOURCES}[1]", "two = 2")
    review.panel.get_by_role("group", name="Added cell").get_by_role("button", name=undo).click()
    tab.expect(SOURCES, ["print('out')  # agent", "two = 2", "three = 3", "four = 4"])
    review.expect_summary("1 change by an agent in 1 cell")
    review.button("Undo all changes").click()
    tab.expect(SOURCES, ["print('out')", "two = 2", "three = 3", "four = 4"])
    review.expect_none()
    expect(review.panel.locator(".oh-mod-stale")).to_have_count(0)
    tab.save()
    assert tab.file_sources == tab.sources
    expect_no_dialog(tab.page)
