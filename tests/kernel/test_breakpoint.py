"""A kernel that stands at a breakpoint of the debugger: Actions are answered and recorded."""

from __future__ import annotations

from typing import Any

import pytest

from oh_jupyter.testing.kernel import REPLY_TIMEOUT_SECONDS, LiveKernel

pytestmark = pytest.mark.thorough


class Debugger:
    """The person's debugger, as JupyterLab speaks to it on the control channel."""

    def __init__(self, kernel: LiveKernel) -> None:
        self._kernel, self._seq = kernel, 0

    def request(self, command: str, **arguments: Any) -> dict[str, Any]:
        """Send a request of the debug adapter protocol, and wait for its response."""
        self._seq += 1
        content = {
            "type": "request", "seq": self._seq, "command": command, "arguments": arguments,
        }  # fmt: skip
        client = self._kernel.client
        message = client.session.msg("debug_request", content)
        client.control_channel.send(message)
        while True:
            reply = client.get_control_msg(timeout=REPLY_TIMEOUT_SECONDS)
            if reply["parent_header"].get("msg_id") == message["header"]["msg_id"]:
                return dict(reply["content"])

    def wait_stopped(self) -> int:
        """Wait until a thread stands at a breakpoint; its id."""
        while True:
            message = self._kernel.client.get_iopub_msg(timeout=REPLY_TIMEOUT_SECONDS)
            content = message["content"]
            if message["msg_type"] == "debug_event" and content.get("event") == "stopped":
                return int(content["body"]["threadId"])


def test_actions_are_answered_and_recorded_at_a_breakpoint(kernel: LiveKernel) -> None:
    debugger = Debugger(kernel)
    if not debugger.request("initialize", clientID="test", adapterID="").get("success"):
        pytest.skip("debugpy is not here")
    debugger.request("attach")
    code = "def stop_here():\n    x = 1\n    return x\nstop_here()"
    path = debugger.request("dumpCell", code=code)["body"]["sourcePath"]
    debugger.request(
        "setBreakpoints", source={"path": path}, breakpoints=[{"line": 2}], sourceModified=False
    )
    debugger.request("configurationDone")
    cell = kernel.start(code)
    thread = debugger.wait_stopped()
    # The runtime, its shell and its log begin here.
    assert kernel.act("run", command="echo standing")["content"] == "standing"
    path = str(kernel.directory / "note.txt")
    assert kernel.act("write", path=path, content="text")["observation"] == "write"
    edit = kernel.act("edit", path=path, command="str_replace", old_str="text", new_str="new")
    assert "has been edited" in edit["content"]
    events = kernel.ask("events", start_id=0, whole=True)[1]["events"]
    assert [event.get("observation") for event in events][-1] == "edit"
    debugger.request("continue", threadId=thread)
    assert kernel.finish(cell)["status"] == "ok"
    debugger.request("disconnect", restart=False, terminateDebuggee=False)
