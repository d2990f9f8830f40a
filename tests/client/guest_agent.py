"""An ACP agent that executes Actions itself, as ``oh_jupyter.openhands`` does."""

from __future__ import annotations

import asyncio
import sys
import threading
from concurrent.futures import CancelledError, Future
from pathlib import Path
from typing import Any

import acp

from oh_jupyter.client.guest_connection import GuestConnection
from oh_jupyter.events import CmdRunAction, IPythonRunCellAction

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))

from scripted_agent import ScriptedAgent


class Guest(ScriptedAgent):
    """Its prompt is one word."""

    async def _do_actions(self, session_id: str, text: str) -> None:
        await self._say(session_id, await asyncio.to_thread(self._act, session_id))

    async def _do_interrupted(self, session_id: str, text: str) -> None:
        await self._say(session_id, await asyncio.to_thread(self._interrupt, session_id))

    def _connected(self, session_id: str) -> GuestConnection:
        server: Any = self._servers[session_id][0]
        return GuestConnection((server.command, *server.args), "Guest")

    def _act(self, session_id: str) -> str:
        kernel = self._connected(session_id)
        cell = kernel.execute(IPythonRunCellAction("number += 1; print(number)"), ignored)
        shell = kernel.execute(CmdRunAction("echo from the shell"), ignored)
        return f"{cell.content} {shell.content}"

    def _interrupt(self, session_id: str) -> str:
        kernel = self._connected(session_id)
        try:
            kernel.execute(
                CmdRunAction("sleep 1000", blocking=True),
                lambda reply: threading.Timer(3, reply.cancel).start(),
            )
        except CancelledError:
            return "It was cancelled."
        return "It was not."


def ignored(reply: Future[Any]) -> None:
    """Do without the future of a call."""


if __name__ == "__main__":
    asyncio.run(acp.run_agent(Guest()))
