"""Real kernels with oh_jupyter in them, and a client that asks as the server does."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager


class LiveKernel:
    """A kernel, its client, and the requests of oh_jupyter."""

    def __init__(self, directory: Path, *arguments: str) -> None:
        self.directory = directory
        self.manager = KernelManager(kernel_name="python3")
        self.manager.start_kernel(cwd=str(directory), extra_arguments=list(arguments))
        self.client: BlockingKernelClient = self.manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=60)

    def send(self, operation: str, body: Any = None, **fields: Any) -> str:
        """Send a request on the control channel; its id."""
        session = self.client.session
        message = session.msg("oh_jupyter_request", {"op": operation, **fields})
        buffers = (
            None
            if body is None
            else [body if isinstance(body, bytes) else json.dumps(body).encode()]
        )
        session.send(self.client.control_channel.socket, message, buffers=buffers)
        return str(message["header"]["msg_id"])

    def reply(self, msg_id: str, timeout: float = 60) -> tuple[dict[str, Any], Any]:
        """Wait for the reply to a request: its fields and its JSON body."""
        while True:
            message = self.client.get_control_msg(timeout=timeout)
            if message["parent_header"].get("msg_id") == msg_id:
                buffers = message["buffers"]
                return message["content"], json.loads(bytes(buffers[0])) if buffers else None

    def ask(self, operation: str, body: Any = None, **fields: Any) -> tuple[dict[str, Any], Any]:
        return self.reply(self.send(operation, body, **fields))

    def act(self, kind: str, timeout: float | None = None, **args: Any) -> dict[str, Any]:
        """Carry out an Action; its Observation."""
        action = {"action": kind, "args": args}
        if timeout is not None:
            action["timeout"] = timeout
        fields, observation = self.ask("execute_action", {"action": action})
        assert fields["status"] == "ok", fields
        return observation

    def execute(self, code: str, timeout: float = 60, *, allow_stdin: bool = False) -> str:
        """Run a cell as a person does; its stdout and results."""
        output = ""

        def collect(message: dict[str, Any]) -> None:
            nonlocal output
            content = message["content"]
            if message["msg_type"] == "stream":
                output += content["text"]
            elif message["msg_type"] in ("execute_result", "display_data"):
                output += content["data"].get("text/plain", "")
            elif message["msg_type"] == "error":
                output += "\n".join(content["traceback"])

        reply = self.client.execute_interactive(
            code, output_hook=collect, timeout=timeout, allow_stdin=allow_stdin
        )
        if reply["content"]["status"] == "aborted":  # it came while a failed cell was cleared up
            return self.execute(code, timeout, allow_stdin=allow_stdin)
        return output

    def start(self, code: str) -> str:
        """Start a cell and return when it is running."""
        msg_id = self.client.execute(code)
        while True:
            message = self.client.get_iopub_msg(timeout=60)
            running = message["msg_type"] == "execute_input"
            if running and message["parent_header"].get("msg_id") == msg_id:
                return msg_id

    def finish(self, msg_id: str, timeout: float = 60) -> dict[str, Any]:
        """Wait for the reply to a cell."""
        while True:
            message = self.client.get_shell_msg(timeout=timeout)
            if message["parent_header"].get("msg_id") == msg_id:
                return dict(message["content"])

    def close(self) -> None:
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)
        self.manager.cleanup_resources()


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveKernel]:
    live = LiveKernel(tmp_path_factory.mktemp("workspace"), "--ext", "oh_jupyter")
    yield live
    live.close()


@pytest.fixture
def fresh_kernel(tmp_path: Path) -> Iterator[LiveKernel]:
    live = LiveKernel(tmp_path, "--ext", "oh_jupyter")
    yield live
    live.close()
