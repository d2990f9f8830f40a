"""An agent's turns are undone in JupyterLab, after a preview."""

from __future__ import annotations

import pytest
from panel_menu import choose
from pictures import take_pictures
from playwright.sync_api import Page, expect
from run_cells import run_all_cells

from oh_jupyter.testing import wait_until

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(180)]

NAME = "rewind.ipynb"


def test_a_turn_is_undone(lab, open_notebook, write_notebook) -> None:
    write_notebook(NAME, "%load_ext oh_jupyter")
    (lab.root / "mine.txt").write_text("mine\n")
    page: Page = open_notebook(NAME)
    run_all_cells(page)
    command = "echo new > made.txt; echo changed > mine.txt"
    action = {"action": "run", "args": {"command": command}}
    address = f"oh_jupyter/kernels/{lab.kernel_of(NAME)}/execute_action"
    assert lab.request(address, {"action": action})["extras"]["metadata"]["exit_code"] == 0

    action = {"action": "run_ipython", "args": {"code": "scores = [1]"}}
    assert "error" not in lab.request(address, {"action": action})["extras"]

    choose(page, "Undo turns…")
    dialog = page.locator(".jp-Dialog")
    plan = dialog.locator(".oh-RewindDialog-plan")
    expect(plan).to_contain_text("deletedmade.txt")
    expect(plan).to_contain_text("restoredmine.txt")
    expect(plan).to_contain_text("deletedscores (list, ")
    expect(dialog.locator(".oh-RewindDialog-list")).to_contain_text(command)
    plan.get_by_text("mine.txt").click()
    change = plan.locator("details", has_text="mine.txt")
    expect(change.locator(".cm-deletedChunk")).to_contain_text("changed")
    expect(change.locator(".cm-line.cm-changedLine")).to_contain_text("mine")
    take_pictures(page, "rewind")
    dialog.get_by_role("button", name="Cancel").click()
    expect(dialog).to_have_count(0)
    assert (lab.root / "made.txt").exists()

    choose(page, "Undo turns…")
    expect(plan).to_be_visible()
    dialog.get_by_role("button", name="Undo", exact=True).click()
    expect(page.get_by_text("Restored 2 files. Restored 1 variable.").first).to_be_visible()
    assert not (lab.root / "made.txt").exists()
    assert (lab.root / "mine.txt").read_text() == "mine\n"

    # An undo is in the list itself.
    choose(page, "Undo turns…")
    expect(dialog.locator(".oh-RewindDialog-list li").first).to_contain_text("back to ")
    turns = dialog.locator(".oh-RewindDialog-list li", has_text=command)
    turn = turns.filter(has_not_text="back to ")
    expect(turn).to_contain_text("2 files, 1 cell, 1 variable")
    dialog.locator(".oh-RewindDialog-list input").first.check()
    expect(plan).to_contain_text("recreatedmade.txt")
    dialog.get_by_role("button", name="Undo", exact=True).click()
    expect(dialog).to_have_count(0)
    wait_until((lab.root / "made.txt").exists, what="the file coming back")
