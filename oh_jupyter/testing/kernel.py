"""A kernel in its own process, and a client that sends requests like the server."""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager

REPLY_TIMEOUT_SECONDS = 120.0
"""Time that a test waits for a kernel, also on a busy machine."""

_EXTENSION = ("--ext", "oh_jupyter")

_ATTEMPT_SECONDS = 5.0
"""Time that a kernel has to answer before its connection file is read again."""


class LiveKernel:
    """A kernel in its own process, its client, and the requests of oh_jupyter.

    Attributes:
        directory: Working directory.
        manager: Jupyter's manager of the process.
        client: Jupyter's client, with all channels open.
    """

    def __init__(
        self,
        directory: Path,
        *arguments: str,
        kernel_name: str = "python3",
        encrypted: bool = False,
    ) -> None:
        """Start a kernel and wait until it is ready.

        Args:
            directory: Working directory.
            arguments: Command-line options of the kernel; by default they load oh_jupyter.
            kernel_name: Name of its kernelspec.
            encrypted: Whether the connection is encrypted with CurveZMQ, which needs ipykernel 7.3
                and a jupyter_client that has ``transport_encryption``.
        """
        self.directory = directory
        # Other processes may take chosen TCP ports before the kernel binds them.
        self._sockets = tempfile.TemporaryDirectory(prefix="live_kernel")
        self.manager = KernelManager(
            kernel_name=kernel_name,
            transport="ipc",
            ip=str(Path(self._sockets.name) / "channel"),
            **({"transport_encryption": "required"} if encrypted else {}),
        )
        self.manager.start_kernel(cwd=str(directory), extra_arguments=list(arguments or _EXTENSION))
        self._replies: dict[str, Any] = {}
        self.client: BlockingKernelClient = self.manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=REPLY_TIMEOUT_SECONDS)

    def send(self, operation: str, body: Any = None, **fields: Any) -> str:
        """Send a request of oh_jupyter on the control channel.

        Args:
            operation: Its name, such as ``"execute_action"``.
            body: Bytes, or a value that becomes JSON.
            fields: Further fields of the message.

        Returns:
            The id of the message.
        """
        session = self.client.session
        message = session.msg("oh_jupyter_request", {"op": operation, **fields})
        buffers = (
            None
            if body is None
            else [body if isinstance(body, bytes) else json.dumps(body).encode()]
        )
        session.send(self.client.control_channel.socket, message, buffers=buffers)
        return str(message["header"]["msg_id"])

    def reply(
        self, msg_id: str, timeout: float = REPLY_TIMEOUT_SECONDS
    ) -> tuple[dict[str, Any], Any]:
        """Wait for the reply to a request.

        Args:
            msg_id: The id returned by ``send``.
            timeout: Seconds to wait.

        Returns:
            The fields of the reply, and its JSON body.
        """
        content, body = self.raw_reply(msg_id, timeout)
        return content, json.loads(body) if body else None

    def raw_reply(
        self, msg_id: str, timeout: float = REPLY_TIMEOUT_SECONDS
    ) -> tuple[dict[str, Any], bytes]:
        """Wait for the reply to a request, see ``reply``; return its fields and its body.

        Replies to other requests that come first are kept for those who wait for them later.
        """
        while msg_id not in self._replies:
            message = self.client.get_control_msg(timeout=timeout)
            self._replies[message["parent_header"].get("msg_id", "")] = message
        message = self._replies.pop(msg_id)
        buffers = message["buffers"]
        return message["content"], bytes(buffers[0]) if buffers else b""

    def ask(self, operation: str, body: Any = None, **fields: Any) -> tuple[dict[str, Any], Any]:
        """Send a request and wait for its reply, see ``send`` and ``reply``."""
        return self.reply(self.send(operation, body, **fields))

    def act(self, kind: str, timeout: float | None = None, **args: Any) -> dict[str, Any]:
        """Execute an Action.

        Args:
            kind: Its name, such as ``"run"``.
            timeout: Its timeout in seconds.
            args: Its arguments.

        Returns:
            The Observation, as JSON.
        """
        action: dict[str, Any] = {"action": kind, "args": args}
        if timeout is not None:
            action["timeout"] = timeout
        fields, observation = self.ask("execute_action", {"action": action})
        assert fields["status"] == "ok", fields
        return dict(observation)

    def execute(
        self, code: str, timeout: float = REPLY_TIMEOUT_SECONDS, *, allow_stdin: bool = False
    ) -> str:
        """Run a cell like a person.

        Args:
            code: The cell.
            timeout: Seconds to wait for its end.
            allow_stdin: Whether the cell may ask for input.

        Returns:
            Its streams, results and tracebacks as text.
        """
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
        if reply["content"]["status"] == "aborted":  # sent while a failed cell aborts others
            return self.execute(code, timeout, allow_stdin=allow_stdin)
        return output

    def start(self, code: str) -> str:
        """Start a cell, and wait until it is running.

        Args:
            code: The cell.

        Returns:
            The id of its message.
        """
        msg_id = str(self.client.execute(code))
        while True:
            message = self.client.get_iopub_msg(timeout=REPLY_TIMEOUT_SECONDS)
            running = message["msg_type"] == "execute_input"
            if running and message["parent_header"].get("msg_id") == msg_id:
                return msg_id

    def finish(self, msg_id: str, timeout: float = REPLY_TIMEOUT_SECONDS) -> dict[str, Any]:
        """Wait for the reply to a cell.

        Args:
            msg_id: The id returned by ``start``.
            timeout: Seconds to wait.

        Returns:
            The content of the reply.
        """
        while True:
            message = self.client.get_shell_msg(timeout=timeout)
            if message["parent_header"].get("msg_id") == msg_id:
                return dict(message["content"])

    def close(self) -> None:
        """End the kernel at once."""
        self.client.stop_channels()
        # A killed kernel cannot write its coverage data.
        self.manager.shutdown_kernel(now="COVERAGE_PROCESS_CONFIG" not in os.environ)
        self.manager.cleanup_resources()
        self._sockets.cleanup()


def connect_to_kernel(connection_file: Path) -> BlockingKernelClient:
    """Connect to a kernel that a server has just started, and wait until it is ready.

    The server starts a kernel again with new ports if another process took one of them before the
    kernel bound it, and then writes the file again.

    Args:
        connection_file: Its connection file.

    Returns:
        The client, with all channels open but the heartbeat, since a busy machine misses beats.

    Raises:
        RuntimeError: The kernel did not become ready in time.
    """
    deadline = time.monotonic() + REPLY_TIMEOUT_SECONDS
    while True:
        client = BlockingKernelClient(connection_file=str(connection_file))
        client.load_connection_file()
        client.start_channels(hb=False)
        try:
            client.wait_for_ready(timeout=_ATTEMPT_SECONDS)
            return client
        except RuntimeError:
            client.stop_channels()
            if time.monotonic() > deadline:
                raise


def text_at_end(client: BlockingKernelClient, code: str, timeout_seconds: float = 200) -> str:
    """Run a cell and return what it shows at its end as text."""
    shown: dict[str, str] = {}

    def collect(message: dict[str, Any]) -> None:
        content, kind = message["content"], message["msg_type"]
        if kind == "stream":
            shown[kind] = shown.get(kind, "") + content["text"]
        elif kind in ("display_data", "update_display_data", "execute_result"):
            shown["display"] = content["data"].get("text/plain", "")
        elif kind == "error":
            shown[kind] = f"{content['ename']}: {content['evalue']}"

    client.execute_interactive(
        code, output_hook=collect, timeout=timeout_seconds, allow_stdin=False
    )
    return "\n".join(shown.values())


@pytest.fixture(scope="module")
def live_kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveKernel]:
    """Provide one kernel with oh_jupyter per test module.

    Yields:
        The kernel.
    """
    kernel = LiveKernel(tmp_path_factory.mktemp("live_kernel"))
    yield kernel
    kernel.close()
