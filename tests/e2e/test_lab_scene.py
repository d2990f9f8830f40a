"""A turn of an agent: its review piece by piece, and the rewind of everything it changed."""

from __future__ import annotations

import pytest
from live_tab import SOURCES, Tab, call_tool
from panel_menu import choose
from pictures import take_pictures
from playwright.sync_api import Page, expect
from run_cells import run_all_cells
from test_lab_review import Review, rewrite

from oh_jupyter.testing import wait_until

pytestmark = pytest.mark.one_page

NAME = "scene.ipynb"
DATA = b"city,price\r\nRome,10\r\nOslo,20"
CELLS = (
    "%load_ext oh_jupyter\nimport pandas as pd\n"
    "frame = pd.read_csv('data.csv')\nheld, before = [frame], frame.copy()",
    "rate = 2",
    "prices = frame.price * rate\ntop = prices.max()\ntop",
    "cheap = frame[frame.price < 15]\ncheap",
    "print('done')",
)
EDITED = (
    CELLS[0],
    "rate = 3  # percent",
    "prices = frame.price * rate / 100\ntop = prices.max()\nround(top)",
    "cheap = frame[frame.price < 12]\ncheap",
    "print('all done')",
)

COUNTS = "jupyterapp.shell.currentWidget.content.widgets.map(cell => cell.model.executionCount)"


def work(tab: Tab) -> None:
    """Have the agent edit four cells, run two, change a frame in place and delete a file."""
    for index in range(1, 5):
        rewrite(tab, index, EDITED[index])
    for index in (1, 2):
        tab.call("run_cell", cell=index)
    in_place = "frame.loc[0, 'price'] = 99\nframe['sold'] = True"
    for tool, arguments in (
        ("run_ipython", {"code": in_place}),
        ("run", {"command": "rm data.csv"}),
    ):
        result = call_tool(tab.lab, f"{tab.kernel}/mcp", tool, arguments)
        assert not result.get("isError"), result


@pytest.mark.thorough
@pytest.mark.timeout(300)
def test_a_turn_is_seen_and_undone(lab, open_notebook, write_notebook) -> None:
    data = lab.root / "data.csv"
    data.write_bytes(DATA)
    write_notebook(NAME, *CELLS)
    page: Page = open_notebook(NAME)
    run_all_cells(page)
    tab, review = Tab(lab, page, NAME), Review(Tab(lab, page, NAME))
    tab.expect("jupyterapp.shell.currentWidget.content.widgets[3].model.outputs.length", 1)
    tab.save()
    counts = tab.page.evaluate(COUNTS)

    work(tab)
    tab.expect(SOURCES, list(EDITED))
    review.expect_summary("5 changes by Claude in 4 cells")
    expect(review.panel.locator(".cm-deletedChunk").first).to_contain_text("rate = 2")
    expect(review.panel.locator(".oh-mod-stale")).to_have_count(2)  # the cells that did not run
    assert not data.exists()
    names = page.locator("#oh-jupyter-log .oh-Badge.oh-mod-agent")
    assert {name for name in names.all_inner_texts() if name} == {"Claude"}
    take_pictures(page, "scene-review")

    choose(page, "Undo turns…")
    dialog = page.locator(".jp-Dialog")
    expect(dialog).to_contain_text("Claude, ")
    plan = dialog.locator(".oh-RewindDialog-plan")
    expect(plan).to_contain_text("recreateddata.csv")
    expect(plan).to_contain_text(f"restored{NAME}")
    expect(plan).to_contain_text("restoredframe (DataFrame, ")
    take_pictures(page, "scene-preview")
    dialog.get_by_role("button", name="Undo", exact=True).click()
    expect(dialog).to_have_count(0)

    tab.expect(SOURCES, list(CELLS))
    review.expect_none()
    wait_until(lambda: tab.file_sources == list(CELLS), what="the notebook's file")
    assert tab.page.evaluate(COUNTS) == counts
    assert data.read_bytes() == DATA
    same = tab.act("run_ipython", code="print(frame is held[0], frame.equals(before), rate)")
    assert "True True 2" in same
    take_pictures(page, "scene-back")
