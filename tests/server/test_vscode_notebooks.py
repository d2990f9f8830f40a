"""Notebooks that VS Code opens on the server: their sessions have made-up paths."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

import nbformat
import pytest
from mcp_client import text_of
from nbformat.v4 import new_code_cell, new_notebook

from oh_jupyter.mcp_tools.notebooks import OpenNotebook
from oh_jupyter.operations.actions import ExecuteAction
from oh_jupyter.server.open_notebooks import open_notebooks
from oh_jupyter.server.state import state_of


@pytest.fixture
def open_in_vscode(jp_serverapp, jp_root_dir: Path):
    """Start a session for a notebook as VS Code does; return its kernel's id."""

    async def open_in_vscode(file: Path) -> str:
        path = f"{file.stem}-jvsc-{uuid.uuid4()}{uuid.uuid4()}.ipynb"
        session = await jp_serverapp.session_manager.create_session(
            path=path, name=f"{file.stem}-{uuid.uuid4()}.ipynb", type="notebook",
            kernel_name="python3",
        )  # fmt: skip
        kernel_id = str(session["kernel"]["id"])
        code = f"__vsc_ipynb_file__ = {str(file)!r}"
        action = {"action": {"action": "run_ipython", "args": {"code": code}}}
        link = state_of(jp_serverapp.web_app.settings).router.link(kernel_id)
        await link.request(ExecuteAction(), body=json.dumps(action).encode())
        return kernel_id

    return open_in_vscode


async def test_a_notebook_has_the_path_of_its_file(
    ask, mcp_connect, open_in_vscode, jp_root_dir: Path
) -> None:
    file = jp_root_dir / "work" / "analysis.ipynb"
    file.parent.mkdir()
    nbformat.write(new_notebook(cells=[new_code_cell("total = 42")]), file)
    kernel_id = await open_in_vscode(file)
    expected = {"path": "work/analysis.ipynb", "kernel_id": kernel_id}
    assert await ask("notebooks") == (200, [expected])
    async with mcp_connect() as session:
        (listed,) = json.loads(text_of(await session.call_tool("list_notebooks", {})))
        assert listed["path"] == "work/analysis.ipynb"
        cells = await session.call_tool("read_cells", {"notebook": "analysis.ipynb"})
        assert "total = 42" in text_of(cells)
        edit = {"notebook": "analysis.ipynb", "cell": 0, "source": "total = 43"}
        await session.call_tool("edit_cell", edit)
    assert nbformat.read(file, as_version=4).cells[0].source == "total = 43"


@pytest.mark.thorough
async def test_a_file_on_another_machine_has_its_name(
    ask, mcp_connect, open_in_vscode, tmp_path: Path
) -> None:
    kernel_id = await open_in_vscode(Path("/elsewhere/analysis.ipynb"))
    assert await ask("notebooks") == (200, [{"path": "analysis.ipynb", "kernel_id": kernel_id}])
    async with mcp_connect() as session:
        answer = text_of(await session.call_tool("read_cells", {"notebook": "analysis.ipynb"}))
    assert "edited on another machine: run_ipython" in answer


class Sessions:
    """Sessions of two kernels for one notebook, such as before and after a reload of VS Code."""

    async def list_sessions(self) -> list[dict[str, Any]]:
        path = "analysis-jvsc-{0}0000000-1111-4222-8333-444444444444.ipynb"
        return [
            {
                "path": path.format(number),
                "type": "notebook",
                "kernel": {"id": str(number), "last_activity": f"2026-01-01T00:0{number}:00Z"},
            }
            for number in (1, 2)
        ]


async def test_the_session_that_was_used_last_has_the_name() -> None:
    old, new = await open_notebooks(Sessions(), None, "")
    assert old.path.startswith("analysis-jvsc-1")
    assert new == OpenNotebook("analysis.ipynb", "2", "", "")
