"""An agent edits cells, changes a table and deletes a file; the person takes it all back."""

from __future__ import annotations

import pytest
from live_tab import SOURCES, Tab
from pictures import take_pictures
from playwright.sync_api import expect
from run_cells import run_all_cells

from oh_jupyter.testing import wait_until

pytestmark = pytest.mark.timeout(180)

CELLS = (
    "%load_ext oh_jupyter\nimport pandas as pd",
    "df = pd.DataFrame({'degrees': [19, 31]})\nsame, report = df, {'source': df}",
    "hottest = df.degrees.max()",
    "limit = 30",
    "title = 'Summer'",
)
EDITED = (
    *CELLS[:1],
    f"{CELLS[1]}\nlabels = ['a']",
    "hottest = df.degrees.min()",
    "limit = 0",
    "title = 'Winter'",
)
LOOK = "print(df is same, report['source'] is df, df.degrees.tolist(), list(df), hottest, limit)"


def act_as_agent(tab: Tab) -> None:
    """Edit four cells, run two, change the table in place and delete a file."""
    for index in range(1, 5):
        tab.call("edit_cell", cell=f"cell-{index}", source=EDITED[index])
    for index in (2, 3):
        tab.call("run_cell", cell=index)
    tab.act("run_ipython", code="df.loc[0, 'degrees'] = -99; df['country'] = '?'")
    tab.act("run", command="rm data.csv")


@pytest.mark.thorough
def test_everything_of_a_turn_is_taken_back(lab, open_tab) -> None:
    pytest.importorskip("pandas")
    data = lab.root / "data.csv"
    data.write_bytes(b"city,degrees\r\nOslo,19\n")
    tab = open_tab(*CELLS)
    page = tab.page
    run_all_cells(page)
    tab.save()
    before, content = tab.file.read_bytes(), data.read_bytes()

    act_as_agent(tab)
    tab.expect(SOURCES, list(EDITED))
    bar = page.get_by_role("region", name="Review of changes")
    expect(bar.get_by_role("status")).to_contain_text("in 4 cells")
    take_pictures(page, "take-back-review")
    look = tab.act("run_ipython", code=LOOK)
    assert "True True [-99, 31] ['degrees', 'country'] 19 0" in look, look
    assert not data.exists()

    page.locator("#oh-jupyter-log .oh-Rewind").click()
    dialog = page.locator(".jp-Dialog")
    plan = dialog.locator(".oh-RewindDialog-plan")
    for row in ("data.csv", tab.file.name, "df (DataFrame", "hottest (", "limit ("):
        expect(plan).to_contain_text(row, timeout=5000)
    take_pictures(page, "take-back-preview")
    dialog.get_by_role("button", name="Undo", exact=True).click()
    expect(dialog).to_have_count(0)

    wait_until(data.exists, what="the file coming back")
    assert data.read_bytes() == content
    tab.expect(SOURCES, list(CELLS))
    assert tab.file.read_bytes() == before
    look = tab.act("run_ipython", code=LOOK)
    assert "True True [19, 31] ['degrees'] 31 30" in look, look
    take_pictures(page, "take-back-done")
