"""An ACP agent that executes Actions as ``oh_jupyter.openhands`` does, without the SDK's loop."""

from __future__ import annotations

import asyncio
import sys
import threading
from pathlib import Path
from typing import Any

import acp

from oh_jupyter.events import CmdRunAction, IPythonRunCellAction
from oh_jupyter.openhands.connection import Interruptible, connect_as_guest, connection

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))

from scripted_agent import ScriptedAgent


class Guest(ScriptedAgent):
    """Its prompt is one word."""

    async def _do_actions(self, session_id: str, text: str) -> None:
        await self._say(session_id, await asyncio.to_thread(self._act, session_id))

    async def _do_interrupted(self, session_id: str, text: str) -> None:
        await self._say(session_id, await asyncio.to_thread(self._interrupt, session_id))

    def _connected(self, session_id: str) -> Interruptible:
        server: Any = self._servers[session_id][0]
        connect_as_guest((server.command, *server.args))
        return Interruptible(connection())

    def _act(self, session_id: str) -> str:
        runtime = self._connected(session_id)
        cell = runtime.execute(IPythonRunCellAction("number += 1; print(number)"))
        shell = runtime.execute(CmdRunAction("echo from the shell"))
        return f"{cell.content} {shell.content}"

    def _interrupt(self, session_id: str) -> str:
        runtime = self._connected(session_id)
        threading.Timer(3, runtime.interrupt).start()
        return runtime.execute(CmdRunAction("sleep 1000", blocking=True)).content


if __name__ == "__main__":
    asyncio.run(acp.run_agent(Guest()))
