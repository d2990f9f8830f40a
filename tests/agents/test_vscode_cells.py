"""Kernels that VS Code starts and whose cells it runs: no server, no panel, one-line prompts."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from guest_runtime import SCRIPTED, command
from nbformat.v4 import new_code_cell, new_notebook

from oh_jupyter.testing import LiveKernel

pytestmark = pytest.mark.thorough

CELL_ID = "vscode-notebook-cell:/home/ann/analysis.ipynb#W0sZmlsZQ%3D%3D"


@pytest.fixture(scope="module")
def vscode(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveKernel]:
    folder = tmp_path_factory.mktemp("workspace")
    book = new_notebook(cells=[new_code_cell("total = 42")])
    nbformat.write(book, folder / "analysis.ipynb")
    os.environ["OH_JUPYTER_AGENTS"] = json.dumps({"scripted": command(SCRIPTED)})
    os.environ["OH_JUPYTER_CONFIRMATION"] = "always"
    try:
        live = LiveKernel(folder)
    finally:
        del os.environ["OH_JUPYTER_AGENTS"], os.environ["OH_JUPYTER_CONFIRMATION"]
    live.execute(f"__vsc_ipynb_file__ = {str(folder / 'analysis.ipynb')!r}")
    yield live
    live.close()


def run_cell(kernel: LiveKernel, code: str) -> str:
    """Start a cell with the fields that VS Code sends; return the id of its request."""
    content = {
        "code": code,
        "silent": False,
        "store_history": True,
        "allow_stdin": True,
        "stop_on_error": False,
    }
    session = kernel.client.session
    request = session.msg("execute_request", content, metadata={"cellId": CELL_ID})
    session.send(kernel.client.shell_channel.socket, request)
    return str(request["header"]["msg_id"])


def next_output(kernel: LiveKernel, msg_id: str, kind: str) -> dict[str, Any]:
    """Return the content of the next message of a kind for a cell, also after its end."""
    while True:
        message = kernel.client.get_iopub_msg(timeout=300)
        if message["msg_type"] == kind and message["parent_header"].get("msg_id") == msg_id:
            return dict(message["content"])


def test_the_question_stands_in_the_cell_and_the_prompt_is_one_line(vscode: LiveKernel) -> None:
    msg_id = run_cell(vscode, "%oh_agent scripted ask write asked.txt: x")
    prompt = vscode.client.get_stdin_msg(timeout=300)["content"]["prompt"]
    assert prompt.startswith("Scripted asks to do the above.")
    assert "+x" not in prompt
    data = next_output(vscode, msg_id, "display_data")["data"]
    while "+x" not in data["text/plain"]:
        data = next_output(vscode, msg_id, "display_data")["data"]
    assert "oh-mod-added" in data["text/html"]
    vscode.client.input("y")
    assert vscode.finish(msg_id)["status"] == "ok"
    assert (vscode.directory / "asked.txt").read_text() == "x\n"


def test_an_agent_from_outside_asks_below_the_last_cell(vscode: LiveKernel) -> None:
    cell = run_cell(vscode, "1 + 1")
    vscode.finish(cell)
    action = {"action": "write", "args": {"path": "outside.txt", "content": "from outside\n"}}
    request = vscode.send("execute_action", {"action": action})
    shown = next_output(vscode, cell, "display_data")
    assert "+from outside" in shown["data"]["text/plain"]
    line = next(
        line for line in shown["data"]["text/plain"].splitlines() if line.startswith("%oh_confirm")
    )
    vscode.finish(run_cell(vscode, line))
    _, observation = vscode.reply(request)
    assert observation["observation"] == "write"
    changed = next_output(vscode, cell, "update_display_data")
    assert changed["transient"] == shown["transient"]
    assert changed["data"]["text/plain"].startswith("Approved")


def test_a_cell_of_jupyterlab_gets_no_notice(vscode: LiveKernel) -> None:
    cell = vscode.client.execute("1 + 1")
    vscode.finish(cell)
    request = vscode.send(
        "execute_action", {"action": {"action": "run", "args": {"command": "ls"}}}
    )
    assert vscode.ask("confirmations", wait=60)[1]
    end = vscode.client.execute("%oh_confirm --reject --all")
    kinds = []
    while True:
        message = vscode.client.get_iopub_msg(timeout=300)
        if message["parent_header"].get("msg_id") == cell:
            kinds.append(message["msg_type"])
        if message["parent_header"].get("msg_id") == end and message["msg_type"] == "stream":
            break
    vscode.reply(request)
    assert "display_data" not in kinds


def test_the_notebook_is_the_one_that_vscode_names(vscode: LiveKernel, tmp_path: Path) -> None:
    file = str(vscode.directory / "analysis.ipynb")
    assert vscode.ask("notebook_file")[1] == file
    vscode.execute("%config OhJupyter.confirmation = 'never'")
    vscode.execute('%oh_agent scripted tool read_cells {"notebook": "analysis.ipynb"}')
    steps = vscode.execute("print([step.output for step in oh.agents.turns[-1].steps])")
    assert "total = 42" in steps
    vscode.execute("%config OhJupyter.confirmation = 'always'")
