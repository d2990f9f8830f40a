"""Turns of guest agents as frontends get them: whole, but for what is large."""

from __future__ import annotations

import asyncio
from typing import Any

from oh_jupyter.agents import AgentTurn, ToolCall
from oh_jupyter.kernel.control.broadcast import MAX_CHARS, Broadcast

__all__ = ["TurnBroadcast", "turn_fields"]

SEND_INTERVAL_SECONDS = 0.2


class TurnBroadcast:
    """Sends turns that go on to all frontends, each not more than some times a second."""

    def __init__(self, broadcast: Broadcast) -> None:
        self._broadcast = broadcast
        self._due: set[int] = set()

    def changed(self, turn: AgentTurn) -> None:
        """Send a turn soon, with whatever comes until then; on the runtime's loop only."""
        if id(turn) not in self._due:
            self._due.add(id(turn))
            asyncio.get_running_loop().call_later(SEND_INTERVAL_SECONDS, self._send, turn)

    def _send(self, turn: AgentTurn) -> None:
        self._due.discard(id(turn))
        self._broadcast.send_turn(turn_fields(turn))


def turn_fields(turn: AgentTurn) -> dict[str, Any]:
    """A turn as JSON; its agent and its beginning tell it from others."""
    names = ("agent", "prompt", "began", "thoughts", "stop_reason", "cost", "currency", "usage")
    return {
        **{name: getattr(turn, name) for name in names},
        "notices": list(turn.notices),
        "truncated": turn.truncated,
        "changed_files": list(turn.changed_files),
        "plan": [{"content": entry.content, "status": entry.status} for entry in turn.plan],
        "parts": [part if isinstance(part, str) else _step(part) for part in turn.parts],
    }


def _step(call: ToolCall) -> dict[str, Any]:
    arguments = call.arguments if isinstance(call.arguments, dict) else {}
    told = "\n".join(f"{name}: {value}" for name, value in arguments.items())
    return {
        "title": call.title or call.kind,
        "status": call.status,
        "arguments": told[:MAX_CHARS],
        "output": call.output[-MAX_CHARS:],
        "files": [diff.path for diff in call.diffs],
    }
