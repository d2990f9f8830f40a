"""The panel and the cells during activity, and with very many items."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pictures import take_pictures
from playwright.sync_api import Page, expect


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    """FIFO that a command reads until the test writes to it."""
    os.mkfifo(tmp_path / "gate")
    return tmp_path / "gate"


def run_cell(page: Page, source: str) -> None:
    """Run code in the notebook's last cell, without waiting for its end."""
    page.evaluate(
        """source => {
            const { content } = jupyterapp.shell.currentWidget;
            content.activeCellIndex = content.widgets.length - 1;
            content.activeCell.model.sharedModel.setSource(source);
            void jupyterapp.commands.execute('notebook:run-cell');
        }""",
        source,
    )


def outputs(page: Page) -> list[str]:
    """The types of the outputs of the notebook's last cell."""
    return page.evaluate(
        """jupyterapp.shell.currentWidget.content.widgets.at(-1)
            .model.outputs.toJSON().map(output => output.output_type)"""
    )


@pytest.mark.thorough
def test_output_is_seen_while_it_comes(notebook, gate: Path) -> None:
    page, ask = notebook
    run_cell(page, f"%oh_run --blocking echo first; cat {gate}; echo last")
    live = page.locator(".jp-CodeCell .oh-LiveCell")
    expect(live).to_have_text("first")
    card = page.locator("#oh-jupyter-log .oh-Card", has_text="echo first")
    expect(card.locator(".oh-Live")).to_have_text("first")
    answer = ask(command="echo behind")
    queued = page.locator("#oh-jupyter-log .oh-Card", has_text="echo behind")
    expect(queued.locator(".oh-Card-status")).to_have_text("queued")
    assert outputs(page) == []
    take_pictures(page, "live")
    gate.write_text("between\n")
    assert answer.result(60)["content"] == "behind"
    expect(live).to_have_count(0)
    expect(card.locator(".oh-Live")).to_have_count(0)
    page.wait_for_function(
        "jupyterapp.shell.currentWidget.content.widgets.at(-1).model.executionCount !== null"
    )
    assert outputs(page) == ["execute_result"]


MANY = """
from oh_jupyter.events import CmdOutputMetadata, CmdOutputObservation, CmdRunAction
for _number in range({}):
    _action = oh.events.add_event(CmdRunAction(f"true {{_number:04}}"), "agent")
    _done = CmdOutputObservation("", metadata=CmdOutputMetadata(exit_code=0))
    _done.cause = _action.id
    oh.events.add_event(_done, "agent")
"""


@pytest.mark.thorough
def test_only_visible_items_are_drawn(notebook) -> None:
    page, _ = notebook
    run_cell(page, MANY.format(400))
    panel = page.locator("#oh-jupyter-log")
    cards = panel.locator(".oh-Card")
    expect(cards.last).to_contain_text("true 0399")
    assert cards.count() < 60
    cards.last.locator(".oh-Card-header").focus()
    page.keyboard.press("Home")
    # The heading of its group comes before the first card.
    first = panel.locator('[data-index="1"] .oh-Card-header')
    expect(first).to_be_focused()
    assert cards.count() < 60
    page.keyboard.press("Enter")
    expect(first).to_have_attribute("aria-expanded", "true")
    page.keyboard.press("End")
    expect(panel.locator(".oh-Card-header", has_text="true 0399")).to_be_focused()
    expect(first).to_have_count(0)
    page.keyboard.press("Home")
    expect(first).to_have_attribute("aria-expanded", "true")
