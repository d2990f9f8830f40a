"""*Run All* sends all cells at once: whoever waits for an agent's cell must not wait for ever."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from jupyter_client.manager import KernelManager

NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "07-agents-over-rest-and-mcp.ipynb"


def test_the_agents_notebook_runs_with_all_cells_queued(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OH_TOUR_HOME", str(tmp_path))
    manager = KernelManager(kernel_name="python3")
    manager.start_kernel(cwd=str(tmp_path))
    client = manager.client()
    try:
        client.start_channels()
        client.wait_for_ready(timeout=60)
        cells = [cell for cell in nbformat.read(NOTEBOOK, 4).cells if cell.cell_type == "code"]
        waiting = {client.execute(cell.source): cell.source for cell in cells}
        while waiting:
            reply = client.get_shell_msg(timeout=120)
            source = waiting.pop(reply["parent_header"]["msg_id"], "")
            assert reply["content"]["status"] == "ok", (source, reply["content"])
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
        manager.cleanup_resources()
