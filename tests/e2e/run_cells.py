"""Running the cells of the open notebook."""

from __future__ import annotations

from playwright.sync_api import Page

OUTPUTS = """() => jupyterapp.shell.currentWidget.content.widgets
    .filter(cell => cell.model.type === 'code')
    .map(cell => [cell.model.executionCount, cell.model.outputs.toJSON()])"""


def run_all_cells(page: Page) -> None:
    """Run all cells; fail with their outputs if one fails."""
    succeeded = page.evaluate("jupyterapp.commands.execute('notebook:run-all-cells')")
    assert succeeded is True, page.evaluate(OUTPUTS)
