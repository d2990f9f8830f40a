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

__all__ = ["POLICIES", "Confirmations", "Waiting"]

POLICIES = ("never", "risky", "always")
"""Which Actions of an agent wait: none, those that may do harm, all."""

REJECTED = "Action has been rejected by the user! Waiting for further user input."
"""The protocol's text; clients compare it."""


@dataclass(frozen=True)
class Waiting:
    """An Action that waits.

    Attributes:
        action: The Action.
        reason: Why it waits.
    """

    action: Action
    reason: str


class Confirmations:
    """Decides which Actions wait, and holds them. It lives on the runtime's loop.

    Attributes:
        policy: One of ``POLICIES``.
    """

    def __init__(self, policy: str, timeout: float, workspace_dir: str) -> None:
        """Begin with none waiting.

        Args:
            policy: One of ``POLICIES``.
            timeout: Seconds after which an Action that nobody has looked at is rejected.
            workspace_dir: Where an agent may write.

        Raises:
            ConfigError: There is no such policy.
        """
        if policy not in POLICIES:
            raise ConfigError(
                f"The setting confirmation must be one of {', '.join(POLICIES)}, not {policy!r}"
            )
        self.policy = policy
        self._timeout = timeout
        self._workspace_dir = workspace_dir
        self._waiting: dict[int, tuple[Waiting, asyncio.Future[bool]]] = {}
        self._watchers: list[Callable[[int, bool], None]] = []

    def on_decision(self, callback: Callable[[int, bool], None]) -> None:
        """Have something done whenever a person has decided.

        Args:
            callback: Called on the runtime's loop with the Action's id, and whether it may begin.
        """
        self._watchers.append(callback)

    @property
    def waiting(self) -> dict[int, Waiting]:
        """The Actions that wait, by id."""
        return {id: entry for id, (entry, _) in self._waiting.items()}

    def reason(self, action: Action, source: EventSource) -> str | None:
        """Say why an Action has to wait.

        Args:
            action: The Action.
            source: Who asks; what a person does in a notebook never waits.

        Returns:
            The reason; None if it need not.
        """
        if source == "user" or self.policy == "never":
            return None
        if self.policy == "always":
            return "every action of an agent waits"
        return risk(action, self._workspace_dir)

    def begin(self, action: Action, asker: EventSource) -> str | None:
        """Say why an Action has to wait, and mark one that does.

        Args:
            action: The Action.
            asker: Who asks; never what a client says of itself.

        Returns:
            The reason; None if it need not.
        """
        reason = self.reason(action, asker)
        if reason is not None and hasattr(action, "confirmation_state"):
            action.confirmation_state = ActionConfirmationStatus.AWAITING_CONFIRMATION
        return reason

    async def decide(self, action: Action, reason: str | None) -> Observation | None:
        """Wait for the person, if that is necessary.

        Args:
            action: The Action, with its id.
            reason: Why it has to wait; None if it need not.

        Returns:
            The Observation if it is not to be carried out; None if it is.
        """
        if reason is None:
            return _decided_before(action)
        future = asyncio.get_running_loop().create_future()
        id = action.id if action.id is not None else -1
        self._waiting[id] = (Waiting(action, reason), future)
        try:
            async with asyncio.timeout(self._timeout):
                approved = await future
        except TimeoutError:
            return UserRejectObservation(
                f"{REJECTED} (Nobody looked at it within {self._timeout:g} s; it waited because "
                f"{reason}.)"
            )
        finally:
            del self._waiting[id]
        if not approved:
            return UserRejectObservation(REJECTED)
        if hasattr(action, "confirmation_state"):
            action.confirmation_state = ActionConfirmationStatus.CONFIRMED
        return None

    def resolve(self, id: int, approved: bool) -> None:
        """Let an Action begin, or reject it.

        Args:
            id: The Action's.
            approved: Whether it may begin.

        Raises:
            ConfirmationError: No Action of that id waits.
        """
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
