"""Following of an agent's turn by a client without a connection to IOPub, such as a persona."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from oh_jupyter.background import Watchers, wait_while
from oh_jupyter.kernel.control.broadcast import SEND_INTERVAL_SECONDS, turn_reply
from oh_jupyter.kernel.control.rpc import Request, handles
from oh_jupyter.operations import agents as operations
from oh_jupyter.runtime.confirmation import PendingAction

if TYPE_CHECKING:
    from oh_jupyter.agents import AgentTurn

MAX_FOLLOW_SECONDS = 60.0


class FollowedTurn:
    """A running prompt, whose turn may not have started yet."""

    def __init__(self) -> None:
        self.turn: AgentTurn | None = None
        self.is_ended = False
        self.version = 0
        self.watchers: Watchers[[]] = Watchers()

    def change(self, turn: AgentTurn) -> None:
        """Note a change of the turn."""
        self.turn = turn
        self._tell()

    def end(self) -> None:
        """Note the end of the prompt."""
        self.is_ended = True
        self._tell()

    def _tell(self) -> None:
        self.version += 1
        self.watchers.tell()


_followed: dict[str, FollowedTurn] = {}
"""Running prompts by the key of their request."""

_keys: set[str] = set()
"""Keys of all prompts so far."""

_on_prompt: Watchers[[]] = Watchers()


def is_repeated(key: str) -> bool:
    """Return whether a prompt with this key has arrived before, such as from another window."""
    if key in _keys:
        return True
    _keys.add(key)
    return False


@contextmanager
def followed(key: str) -> Iterator[FollowedTurn]:
    """Let a prompt be followed by its key, unless that is "", until its end."""
    turn = FollowedTurn()
    if key:
        _followed[key] = turn
        _on_prompt.tell()
    try:
        yield turn
    finally:
        turn.end()
        if key:
            del _followed[key]


@handles(operations.FollowTurn)
async def _follow(request: Request, op: operations.FollowTurn) -> operations.TurnProgress:
    key, seconds = op.of, min(op.wait, MAX_FOLLOW_SECONDS)
    await wait_while(_on_prompt.add, lambda: key not in _followed, seconds)
    entry = _followed.get(key)
    if entry is None:
        return operations.TurnProgress(state="", ended=True, waiting=[], turn=None)
    confirmations = request.runtime.executor.confirmations

    def waiting() -> dict[int, PendingAction]:
        name = "" if entry.turn is None else entry.turn.agent
        return {
            id: pending
            for id, pending in confirmations.waiting.items()
            if pending.action.actor.guest.rpartition("-")[0] == name
        }

    def state() -> str:
        return f"{entry.version} {sorted(waiting())}"

    def subscribe(callback: Callable[[], None]) -> Callable[[], None]:
        ends = [entry.watchers.add(callback), confirmations.on_question(callback)]

        def end_all() -> None:
            for end in ends:
                end()

        return end_all

    await wait_while(subscribe, lambda: state() == op.known, seconds)
    if not entry.is_ended:
        await asyncio.sleep(SEND_INTERVAL_SECONDS)  # gather the changes that follow at once
    return operations.TurnProgress(
        state=state(),
        ended=entry.is_ended,
        waiting=[
            operations.WaitingAction(id, pending.message, pending.reason)
            for id, pending in waiting().items()
        ],
        turn=None if entry.turn is None else turn_reply(entry.turn),
    )
