"""Whether an Action may begin, or has to wait until a person has looked at it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from oh_jupyter.errors import ConfigError, ConfirmationError
from oh_jupyter.events import (
    Action,
    ActionConfirmationStatus,
    EventSource,
    NullObservation,
    Observation,
    UserRejectObservation,
)
from oh_jupyter.runtime.risk import risk

__all__ = ["POLICIES", "Confirmations", "PendingAction"]

POLICIES = ("never", "risky", "always")
"""Which Actions of an agent wait: none, those that may do harm, all."""

REJECTED = "Action has been rejected by the user! Waiting for further user input."
"""The protocol's text; clients compare it."""


@dataclass(frozen=True)
class PendingAction:
    """An Action that waits, and the reason why."""

    action: Action
    reason: str


class Confirmations:
    """Decides which Actions wait, and holds them. It lives on the runtime's loop.

    Attributes:
        policy: One of ``POLICIES``.
    """

    def __init__(self, policy: str, timeout_seconds: float, workspace_dir: str) -> None:
        """Begin with none waiting; a ConfigError if there is no such policy.

        An Action that nobody has looked at within ``timeout_seconds`` is rejected. In the
        workspace an agent may write.
        """
        if policy not in POLICIES:
            raise ConfigError(
                f"The setting confirmation must be one of {', '.join(POLICIES)}, not {policy!r}"
            )
        self.policy = policy
        self._timeout_seconds = timeout_seconds
        self._workspace_dir = workspace_dir
        self._waiting: dict[int, tuple[PendingAction, asyncio.Future[bool]]] = {}
        self._watchers: list[Callable[[int, bool], None]] = []

    def on_decision(self, callback: Callable[[int, bool], None]) -> None:
        """Have the id of each decided Action told on the loop, and whether it may begin."""
        self._watchers.append(callback)

    @property
    def waiting(self) -> dict[int, PendingAction]:
        """The Actions that wait, by id."""
        return {id: entry for id, (entry, _) in self._waiting.items()}

    def require(self, action: Action, principal: EventSource) -> str | None:
        """The reason why an Action has to wait, which marks it as awaiting; None if it need not.

        ``principal`` is who really asks: what a person does in a notebook never waits.
        """
        reason = self._reason(action, principal)
        if reason is not None and hasattr(action, "confirmation_state"):
            action.confirmation_state = ActionConfirmationStatus.AWAITING_CONFIRMATION
        return reason

    def _reason(self, action: Action, principal: EventSource) -> str | None:
        if principal == "user" or self.policy == "never":
            return None
        if self.policy == "always":
            return "every action of an agent waits"
        return risk(action, self._workspace_dir)

    async def decide(self, action: Action, reason: str | None) -> Observation | None:
        """Wait for the person if there is a reason to; the Observation if it is not to begin."""
        if reason is None:
            return _decided_before(action)
        future = asyncio.get_running_loop().create_future()
        id = action.id if action.id is not None else -1
        self._waiting[id] = (PendingAction(action, reason), future)
        try:
            async with asyncio.timeout(self._timeout_seconds):
                approved = await future
        except TimeoutError:
            return UserRejectObservation(
                f"{REJECTED} (Nobody looked at it within {self._timeout_seconds:g} s; it waited "
                f"because {reason}.)"
            )
        finally:
            del self._waiting[id]
        if not approved:
            return UserRejectObservation(REJECTED)
        if hasattr(action, "confirmation_state"):
            action.confirmation_state = ActionConfirmationStatus.CONFIRMED
        return None

    def resolve(self, id: int, approved: bool) -> None:
        """Let a waiting Action begin, or reject it; a ConfirmationError if it does not wait."""
        if id not in self._waiting:
            names = ", ".join(str(id) for id in self._waiting) or "none"
            raise ConfirmationError(f"No action {id} waits for confirmation. Waiting: {names}")
        future = self._waiting[id][1]
        if not future.done():
            future.set_result(approved)
            for callback in self._watchers:
                callback(id, approved)


def _decided_before(action: Action) -> Observation | None:
    """The Observation of an Action on which the client's person has decided, or still has to."""
    state = getattr(action, "confirmation_state", ActionConfirmationStatus.CONFIRMED)
    if state is ActionConfirmationStatus.REJECTED:
        return UserRejectObservation(REJECTED)
    if state is ActionConfirmationStatus.AWAITING_CONFIRMATION:
        return NullObservation("")
    return None
