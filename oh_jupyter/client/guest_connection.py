"""The runtime of the kernel whose guest this process is, over the program of its tools."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from itertools import count
from typing import Any

from oh_jupyter._version import __version__
from oh_jupyter.background import start_thread
from oh_jupyter.errors import AgentError
from oh_jupyter.events import Action, Observation
from oh_jupyter.events.wire import observation_from_wire, to_wire

PROTOCOL_VERSION = "2025-06-18"
TOOL = "execute_action"
"""Unlisted tool of guests that takes the wire form of an Action."""


class GuestConnection:
    """A runtime behind an MCP server that is a program, for agents that make Actions themselves."""

    def __init__(self, command: Sequence[str], client: str) -> None:
        """Start the program; ``client`` is our name in the log."""
        self._program = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._ids = count(1)
        self._replies: dict[int, Future[dict[str, Any]]] = {}
        self._sending = threading.Lock()
        start_thread(self._read, "oh-guest-tools")
        params = {
            "protocolVersion": PROTOCOL_VERSION,
            "capabilities": {},
            "clientInfo": {"name": client, "version": __version__},
        }
        self._ask("initialize", params).result()
        self._send({"method": "notifications/initialized"})

    def _send(self, message: dict[str, Any]) -> None:
        line = json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"
        assert self._program.stdin is not None
        try:
            with self._sending:
                self._program.stdin.write(line)
                self._program.stdin.flush()
        except OSError:
            raise AgentError("The kernel with these tools has ended.") from None

    def _ask(self, method: str, params: Mapping[str, Any]) -> Future[dict[str, Any]]:
        id = next(self._ids)
        reply = self._replies[id] = Future()

        def ended(done: Future[dict[str, Any]]) -> None:
            self._replies.pop(id, None)
            if done.cancelled():
                with suppress(AgentError):
                    params = {"requestId": id}
                    self._send({"method": "notifications/cancelled", "params": params})

        reply.add_done_callback(ended)
        self._send({"id": id, "method": method, "params": params})
        return reply

    def _read(self) -> None:
        assert self._program.stdout is not None
        for line in self._program.stdout:
            message = json.loads(line)
            reply = self._replies.get(message.get("id", 0)) if "method" not in message else None
            if reply is None or not reply.set_running_or_notify_cancel():
                continue
            if "error" in message:
                reply.set_exception(AgentError(str(message["error"].get("message"))))
            else:
                reply.set_result(message["result"])
        for reply in list(self._replies.values()):
            if reply.set_running_or_notify_cancel():
                reply.set_exception(AgentError("The kernel with these tools has ended."))

    def execute(self, action: Action, started: Callable[[Future[Any]], None]) -> Observation:
        """Execute an Action; an interrupt, or cancelling what ``started`` gets, cancels it."""
        arguments = {"action": to_wire(action)}
        reply = self._ask("tools/call", {"name": TOOL, "arguments": arguments})
        started(reply)
        try:
            result = reply.result()
        except KeyboardInterrupt:
            reply.cancel()
            raise
        content = "".join(block.get("text", "") for block in result["content"])
        if result.get("isError"):
            raise AgentError(content)
        return observation_from_wire(json.loads(content))

    def export(self, variables: Mapping[str, str]) -> None:
        """Raise AgentError: the runtime's log would show the values."""
        raise AgentError(
            f"{', '.join(variables)} cannot be set from here. Set it in the notebook with "
            "oh.set_env."
        )

    def end_shell(self) -> None:
        """Raise AgentError."""
        raise AgentError(
            "The shell cannot be replaced from here. A person can end it in JupyterLab, under "
            "Running."
        )

    def close(self) -> None:
        """End the program."""
        assert self._program.stdin is not None
        self._program.stdin.close()
        self._program.wait()
