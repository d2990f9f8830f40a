"""Hosts that programs in a box reach: listed, approved by a person, or refused; each is logged."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from oh_jupyter.config import Settings
from oh_jupyter.errors import HostError
from oh_jupyter.events import (
    Action,
    ErrorObservation,
    EventSource,
    MCPAction,
    MCPObservation,
    Observation,
    UserRejectObservation,
)
from oh_jupyter.events.actor import Actor
from oh_jupyter.runtime.confirmation import Confirmations
from oh_jupyter.runtime.progress import ActionProgress
from oh_jupyter.runtime.reasons import Reason
from oh_jupyter.sandbox.hosts import Address, Endpoint, is_public, parse_hosts

if TYPE_CHECKING:
    from oh_jupyter.events.stream import EventStream

MAX_HOSTS = 100
"""Maximum number of hosts for each command."""
MAX_QUESTIONS = 10
"""Maximum number of hosts that wait for a person at the same time."""


class ReachHostAction(MCPAction):
    """A box's connection to a host, in the log and in questions; a tool call on the wire."""

    @property
    def message(self) -> str:
        """The question to the person."""
        return f"{self.actor.name or 'A command'} wants to reach {self.arguments['host']}"


def is_host_access(action: Action) -> bool:
    """Return whether an Action of the log is a connection of a box, which is not repeatable."""
    return isinstance(action, MCPAction) and action.name == _name(action.arguments.get("host"))


class HostAccess:
    """Decides which hosts the programs of one box may reach.

    Each host is decided and logged once for each command; a person's answer "once" holds until the
    next command starts. A question waits for its answer longer than a connection, because programs
    try again, and because background jobs ask after their command has ended. On the runtime's loop.

    Attributes:
        waiting: The hosts that wait for a person.
        refusals: The hosts that the current command did not reach, with sentences why.
    """

    def __init__(
        self,
        settings: Callable[[], Settings],
        confirmations: Confirmations,
        events: EventStream,
    ) -> None:
        """Know of no command yet."""
        self._settings = settings
        self._confirmations = confirmations
        self._events = events
        self._command: Action | None = None
        self._source: EventSource = "agent"
        self._decisions: dict[Endpoint, asyncio.Task[str]] = {}
        self.waiting: set[str] = set()
        self.refusals: dict[Endpoint, str] = {}

    def begin(self, command: Action, source: EventSource) -> None:
        """Start with a new command, whose agent the questions name."""
        self._command, self._source = command, source
        self._decisions = {key: task for key, task in self._decisions.items() if not task.done()}
        self.refusals = {}

    def withdraw(self) -> None:
        """Withdraw the questions of a command that was interrupted, or of a box that ends."""
        for task in self._decisions.values():
            task.cancel()

    async def check(self, endpoint: Endpoint) -> None:
        """Raise HostError unless the host may be reached; wait for a person if one must decide."""
        task = self._decisions.get(endpoint)
        if task is None:
            if len(self._decisions) >= MAX_HOSTS:
                raise HostError(f"{endpoint} is refused: {_TOO_MANY}")
            task = asyncio.get_running_loop().create_task(self._decide(endpoint))
            self._decisions[endpoint] = task
        await asyncio.wait([task])
        refusal = _INTERRUPTED if task.cancelled() else task.result()
        if refusal:
            sentence = self.refusals[endpoint] = f"{endpoint} is refused: {refusal}"
            raise HostError(sentence)

    def may_dial(self, address: Address, port: int) -> bool:
        """Return whether the address of an allowed host may be dialled."""
        return parse_hosts(self._settings().sandbox_hosts).may_dial(address, port)

    def note_failure(self, endpoint: Endpoint, error: HostError) -> None:
        """Log, once for each command, that an allowed host was not reached."""
        if endpoint not in self.refusals:
            self.refusals[endpoint] = str(error)
            self._record(self._add_action(endpoint), ErrorObservation(str(error)))

    async def _decide(self, endpoint: Endpoint) -> str:
        """Return the reason of a refusal, or "", and log the decision."""
        reasons: list[Reason] = []
        refusal = self._refusal(endpoint, reasons)
        if reasons and len(self.waiting) >= MAX_QUESTIONS:
            refusal = _TOO_MANY
        action = self._add_action(endpoint)
        state = ActionProgress(action)
        observation: Observation | None = None
        try:
            if refusal:
                observation = ErrorObservation(f"{endpoint} is refused: {refusal}")
            else:
                self.waiting.update([str(endpoint)] if reasons else [])
                observation = await self._confirmations.decide(
                    action, reasons, state, sandboxed=True
                )
        except asyncio.CancelledError:
            observation = ErrorObservation(f"{endpoint} is refused: {_INTERRUPTED}")
            raise
        finally:
            self.waiting.discard(str(endpoint))
            if observation is None:
                observation = MCPObservation(f"{endpoint} may be reached.", name=_name(endpoint))
            self._record(action, observation, state)
        return _REJECTED if isinstance(observation, UserRejectObservation) else refusal

    def _refusal(self, endpoint: Endpoint, reasons: list[Reason]) -> str:
        """Return why a host is refused without a question, or ""; add the reason for one."""
        settings, address = self._settings(), endpoint.address
        if parse_hosts(settings.sandbox_hosts).lists(endpoint):
            return ""
        if address is not None and not is_public(address):
            return (
                "it is not on the public internet. If it is needed, ask the user to add it to "
                "sandbox_hosts."
            )
        reason = Reason("reaches_host", (str(endpoint),))
        if settings.sandbox_network == "ask":
            if self._confirmations.rules.covers(ReachHostAction.kind, [reason]):
                return ""
            if self._confirmations.policy != "never":
                reasons.append(reason)
                return ""
        return "sandbox_hosts does not list it. If it is needed, ask the user to add it there."

    def _add_action(self, endpoint: Endpoint) -> Action:
        action = ReachHostAction(_name(endpoint), {"host": str(endpoint)})
        action.actor = Actor() if self._command is None else self._command.actor
        self._events.add_event(action, self._source)
        return action

    def _record(
        self, action: Action, observation: Observation, state: ActionProgress | None = None
    ) -> None:
        observation.cause = action.id
        handling = {} if state is None else state.handling()
        observation.handling = {**handling, "sandboxed": True}
        self._events.add_event(observation, self._source)


def _name(host: object) -> str:
    """Return the name of such an Action, which the log shows as its title."""
    return f"reach {host}"


_TOO_MANY = "the command has reached too many hosts. Use fewer, or several commands."
_INTERRUPTED = "its command was interrupted before anyone decided."
_REJECTED = "the user did not allow it, or did not answer in time. Ask them, or do without it."
