"""*Run All* sends all cells at once: a wait for an agent's cell must end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import pytest
from jupyter_client import BlockingKernelClient

from oh_jupyter.testing import LiveKernel

NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "07-agents-over-rest-and-mcp.ipynb"


def shown_until(client: BlockingKernelClient, cell: str) -> list[Any]:
    """Return the cells' outputs up to the end of the cell of that message."""
    shown = []
    while True:
        message = client.get_iopub_msg(timeout=120)
        kind, content = message["msg_type"], message["content"]
        if kind in ("stream", "execute_result", "display_data"):
            shown.append(content.get("text") or content["data"].get("text/plain"))
        elif kind == "execute_input":
            shown.append(content["code"].splitlines()[:1])
        elif (content.get("execution_state"), message["parent_header"].get("msg_id")) == (
            "idle",
            cell,
        ):
            return shown


@pytest.mark.thorough
def test_the_agents_notebook_runs_with_all_cells_queued(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OH_TOUR_HOME", str(tmp_path))
    kernel = LiveKernel(tmp_path, "--quiet")
    client = kernel.client
    try:
        cells = [cell for cell in nbformat.read(NOTEBOOK, 4).cells if cell.cell_type == "code"]
        waiting = {client.execute(cell.source): cell.source for cell in cells}
        while waiting:
            reply = client.get_shell_msg(timeout=120)
            cell = reply["parent_header"]["msg_id"]
            source = waiting.pop(cell, "")
            if reply["content"]["status"] != "ok":
                # A program that failed in a cell before it is no error of that cell.
                pytest.fail(f"{source}\n{reply['content']}\n{shown_until(client, cell)}")
    finally:
        kernel.close()
