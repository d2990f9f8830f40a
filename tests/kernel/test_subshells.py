"""Magics and Actions in a subshell of the kernel, beside a cell that runs."""

from __future__ import annotations

import os
from typing import Any

import pytest

from oh_jupyter.testing import LiveKernel, wait_until


class Subshell:
    """A subshell of a kernel."""

    def __init__(self, kernel: LiveKernel) -> None:
        self._client = kernel.client
        self.id = self._ask("create_subshell_request")["subshell_id"]

    def _ask(self, msg_type: str, **content: Any) -> dict[str, Any]:
        session = self._client.session
        message = session.msg(msg_type, content)
        session.send(self._client.control_channel.socket, message)
        return dict(self._client.get_control_msg(timeout=120)["content"])

    def execute(self, code: str) -> list[tuple[str, str]]:
        """Run a cell in it; return the kinds and texts of its outputs."""
        session = self._client.session
        options = {"silent": False, "store_history": True, "allow_stdin": False}
        message = session.msg("execute_request", {"code": code, "user_expressions": {}, **options})
        message["header"]["subshell_id"] = self.id
        session.send(self._client.shell_channel.socket, message)
        outputs: list[tuple[str, str]] = []
        while True:
            reply = self._client.get_iopub_msg(timeout=120)
            content = reply["content"]
            if reply["parent_header"].get("msg_id") != message["header"]["msg_id"]:
                continue
            if content.get("execution_state") == "idle":
                return outputs
            if reply["msg_type"] == "stream":
                outputs.append((reply["msg_type"], content["text"]))
            elif "data" in content:
                outputs.append((reply["msg_type"], content["data"]["text/plain"]))

    def delete(self) -> None:
        assert self._ask("delete_subshell_request", subshell_id=self.id)["status"] == "ok"


@pytest.fixture
def subshell(fresh_kernel: LiveKernel) -> Subshell:
    info = fresh_kernel.client.kernel_info(reply=True, timeout=120)["content"]
    if "kernel subshells" not in info.get("supported_features", []):
        pytest.skip("needs ipykernel 7")
    return Subshell(fresh_kernel)


def test_actions_in_a_subshell_beside_a_running_cell(
    fresh_kernel: LiveKernel, subshell: Subshell
) -> None:
    gate = fresh_kernel.directory / "gate"
    os.mkfifo(gate)
    cell = fresh_kernel.client.execute("open('gate').read()")
    assert subshell.execute("print(oh.cwd)") == [("stream", f"{fresh_kernel.directory}\n")]
    assert subshell.execute("%oh_run echo hi")[-1] == ("execute_result", "hi")
    assert "note.txt" in subshell.execute("oh.write('note.txt', 'one')")[-1][1]
    assert "one" in subshell.execute("%oh_edit view note.txt")[-1][1]
    assert len(fresh_kernel.ask("status")[1]["running"]) == 0
    gate.write_text("continue")
    assert fresh_kernel.finish(cell)["status"] == "ok"
    subshell.delete()
    assert fresh_kernel.execute("print(oh.run('cat note.txt').content)") == "one\n"


def test_a_cell_of_an_agent_is_interrupted_after_one_in_a_subshell(
    fresh_kernel: LiveKernel, subshell: Subshell
) -> None:
    started = fresh_kernel.directory / "started"
    code = f"open({str(started)!r}, 'w').close(); import time; time.sleep(300)"
    action = {"action": "run_ipython", "args": {"code": code}}
    msg_id = fresh_kernel.send("execute_action", {"action": action})
    wait_until(started.exists)
    assert subshell.execute("print('beside')") == [("stream", "beside\n")]
    assert fresh_kernel.ask("running_cell")[1]["by"] == "agent"
    fresh_kernel.ask("cancel", key=msg_id)
    assert fresh_kernel.act("run_ipython", code="'next'")["content"].startswith("'next'")
