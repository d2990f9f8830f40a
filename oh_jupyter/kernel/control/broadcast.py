"""Broadcast of events on IOPub, clipped. Nothing depends on their arrival."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

from jupyter_client.session import Session

from oh_jupyter.control_messages import (
    DECISION_MESSAGE,
    EVENT_MESSAGE,
    SETTLED_MESSAGE,
    TURN_MESSAGE,
)
from oh_jupyter.operations import to_json
from oh_jupyter.runtime.confirmation import Decision

if TYPE_CHECKING:
    from oh_jupyter.agents import AgentTurn, ToolCall
    from oh_jupyter.operations.agents import Step, Turn

MAX_CHARS = 4000
"""Maximum length of a broadcast string; the whole event is available on request."""

_OMITTED = {
    "screenshot",
    "set_of_marks",
    "image_urls",
    "dom_object",
    "axtree_object",
    "extra_element_properties",
    "goal_image_urls",
}


def clipped(event: dict[str, Any], max_chars: int = MAX_CHARS) -> dict[str, Any]:
    """Return a copy of an event's wire form without large values; ``clipped`` marks omissions."""
    small: dict[str, Any] = {}
    cut = False
    for name, value in event.items():
        if isinstance(value, dict):
            inner = {k: v for k, v in value.items() if k not in _OMITTED}
            cut = cut or any(value[k] for k in value.keys() - inner.keys())
            small[name] = clipped(inner, max_chars)
            cut = small[name].pop("clipped", False) or cut
        elif isinstance(value, str) and len(value) > max_chars:
            small[name] = value[:max_chars]
            cut = True
        else:
            small[name] = value
    if cut:
        small["clipped"] = True
    return small


class Broadcast:
    """Sends the events of one runtime to all frontends of a kernel, from any thread."""

    def __init__(self, kernel: Any, generation: str) -> None:
        self._kernel = kernel
        self._generation = generation
        self._sequence = 0
        self._lock = threading.Lock()
        # Not the kernel's own session, which counts its messages without a lock.
        self._session = Session(
            key=kernel.session.key, signature_scheme=kernel.session.signature_scheme
        )

    def send(self, event: dict[str, Any]) -> None:
        """Send the wire form of one event."""
        content = {"event": clipped(event)}
        with self._lock:
            self._publish(EVENT_MESSAGE, {**content, "seq": self._sequence})
            self._sequence += 1

    def send_decision(self, id: int, decision: Decision) -> None:
        """Report the decision on a waiting Action, which may then run for long."""
        with self._lock:
            content = {"id": id, "approved": decision.approved, "by": decision.by}
            self._publish(DECISION_MESSAGE, content)

    def send_turn(self, turn: dict[str, Any]) -> None:
        """Send the current state of an agent's turn."""
        with self._lock:
            self._publish(TURN_MESSAGE, {"turn": turn})

    def send_agents_changed(self) -> None:
        """Report that other agents can be asked."""
        with self._lock:
            self._publish(TURN_MESSAGE, {"agents_changed": True})

    def send_settled(self) -> None:
        """Report that the changes of an agent's turn are known."""
        with self._lock:
            self._publish(SETTLED_MESSAGE, {})

    def _publish(self, kind: str, content: dict[str, Any]) -> None:
        content = {"generation": self._generation, **content}
        self._session.send(self._kernel.iopub_socket, kind, content, ident=kind.encode())


SEND_INTERVAL_SECONDS = 0.2


class TurnBroadcast:
    """Sends running turns to all frontends, at a limited rate."""

    def __init__(self, broadcast: Broadcast) -> None:
        self._broadcast = broadcast
        self._due: set[int] = set()

    def agents_changed(self) -> None:
        """Report changed settings of agents."""
        self._broadcast.send_agents_changed()

    def changed(self, turn: AgentTurn) -> None:
        """Send a turn soon, with its later changes; on the runtime's loop only."""
        if id(turn) not in self._due:
            self._due.add(id(turn))
            asyncio.get_running_loop().call_later(SEND_INTERVAL_SECONDS, self._send, turn)

    def _send(self, turn: AgentTurn) -> None:
        self._due.discard(id(turn))
        self._broadcast.send_turn(to_json(turn_reply(turn)))


def turn_reply(turn: AgentTurn) -> Turn:
    """Return a turn as frontends see it."""
    from oh_jupyter.operations.agents import PlanEntry, Turn

    return Turn(
        agent=turn.agent,
        prompt=turn.prompt,
        request=turn.request,
        began=turn.began,
        first_event=turn.first_event,
        part_events=turn.part_events,
        thoughts=turn.thoughts,
        stop_reason=turn.stop_reason,
        cost=turn.cost,
        currency=turn.currency,
        usage=turn.usage,
        context_tokens=turn.context_tokens,
        context_size=turn.context_size,
        undone=turn.undone,
        checkpoint=turn.checkpoint,
        changed_by_commands=turn.changed_by_commands,
        notices=[*turn.notices, *([turn.status] if turn.status else [])],
        truncated=turn.truncated,
        attachments=list(turn.attachments),
        changed_files=list(turn.changed_files),
        plan=[PlanEntry(entry.content, entry.status) for entry in turn.plan],
        parts=[part if isinstance(part, str) else _step(part) for part in turn.parts],
        runs_when=turn.runs_when,
    )


def _step(call: ToolCall) -> Step:
    from oh_jupyter.operations.agents import Step

    arguments = call.arguments if isinstance(call.arguments, dict) else {}
    text = "\n".join(f"{name}: {value}" for name, value in arguments.items())
    return Step(
        title=call.title or call.kind,
        status=call.status,
        arguments=text[:MAX_CHARS],
        output=call.output[-MAX_CHARS:],
        files=[diff.path for diff in call.diffs],
    )
