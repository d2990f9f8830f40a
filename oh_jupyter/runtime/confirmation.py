"""Confirmation of Actions by a person before they start."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from oh_jupyter.background import Watchers
from oh_jupyter.config import check_value
from oh_jupyter.control_messages import UNANSWERED
from oh_jupyter.errors import ConfirmationError
from oh_jupyter.events import (
    Action,
    ActionConfirmationStatus,
    EventSource,
    FileEditAction,
    FileWriteAction,
    NullObservation,
    Observation,
    UserRejectObservation,
)
from oh_jupyter.events.question import question_terms
from oh_jupyter.runtime.approvals import ApprovalRules, Scope
from oh_jupyter.runtime.cell_risk import Lookup
from oh_jupyter.runtime.effects import Effects
from oh_jupyter.runtime.form import FormField, answers
from oh_jupyter.runtime.progress import ActionProgress
from oh_jupyter.runtime.reasons import Reason
from oh_jupyter.runtime.risk import risks
from oh_jupyter.text import visible


def dry_run(action: Action, cwd: str) -> FileEditAction | None:
    """Return the dry-run edit that previews an Action, or None if there is no preview."""
    if isinstance(action, FileWriteAction):
        edit = FileEditAction(action.path, "write", content=action.content, end=action.end)
        edit.start = action.start + 1
    elif isinstance(action, FileEditAction) and action.impl_source != "llm_based_edit":
        edit = replace(action)
    else:
        return None
    edit.path, edit.dry_run = os.path.join(cwd, edit.path), True
    return edit


REJECTED = "Action has been rejected by the user! Waiting for further user input."
"""Text of the protocol; clients compare it."""


WITHDRAWN = (
    "The question about this action was withdrawn: nobody waits for it any more. It did not run."
)
"""Content of the Observation of an Action whose caller left before a person decided."""


MAX_WHY_CHARS = 2000
"""Maximum length of a person's reason for a rejection."""


@dataclass(frozen=True)
class PendingAction:
    """A waiting Action and the question about it.

    Attributes:
        action: The Action.
        reasons: Why it waits.
        expires: The monotonic time at which it is rejected.
        sandboxed: Whether it would run in a sandbox; None where nobody expects one.
        is_question: Whether the agent asks for the values of ``form``, which can be empty, instead
            of asking for permission.
        form: The values for which the agent asks.
    """

    action: Action
    reasons: tuple[Reason, ...]
    expires: float
    sandboxed: bool | None = None
    is_question: bool = False
    form: tuple[FormField, ...] = ()

    @property
    def message(self) -> str:
        """The text that says what the Action does, with every character visible."""
        return visible(self.action.message)

    @property
    def reason(self) -> str:
        """The reasons as one clause."""
        return visible(", and ".join(map(str, self.reasons)))

    @property
    def agent(self) -> str:
        """The name of the agent that asks, or "" if unknown."""
        return visible(self.action.actor.name)

    @property
    def seconds_left(self) -> float:
        """The seconds until it is rejected."""
        return max(self.expires - time.monotonic(), 0)

    @property
    def terms(self) -> str:
        """Whether it would be sandboxed, and the time left."""
        return question_terms(self.sandboxed, self.seconds_left)


@dataclass(frozen=True)
class Decision:
    """A person's decision, where and why it was made, what an approval covers, and their values."""

    approved: bool
    by: str = ""
    why: str = ""
    scope: Scope = "once"
    values: Mapping[str, Any] = field(default_factory=dict)


class Confirmations:
    """Decides which Actions wait, and holds them, on the runtime's loop.

    Attributes:
        policy: Which Actions of agents wait: never, risky or always.
        timeout_seconds: How long each waits before it is rejected.
        lookup: Returns a variable of the notebook by name, to analyse what cells do.
        rules: Approvals that cover later Actions.
        in_thread: Calls a function in a thread.
    """

    def __init__(self, policy: str, timeout_seconds: float, workspace_dir: str) -> None:
        """Start with no waiting Actions; raise ConfigError for an unknown policy."""
        check_value("confirmation", policy)
        self.policy = policy
        self.timeout_seconds = timeout_seconds
        self._workspace_dir = workspace_dir
        self.lookup: Lookup = lambda name: None
        self.rules = ApprovalRules(workspace_dir)
        self.in_thread: Callable[..., Awaitable[Any]] = asyncio.to_thread
        self._waiting: dict[int, tuple[PendingAction, asyncio.Future[Decision]]] = {}
        self._on_decision: Watchers[[int, Decision]] = Watchers()
        self._on_question: Watchers[[]] = Watchers()

    def on_decision(self, callback: Callable[[int, Decision], None]) -> None:
        """Call back on the loop with the id and the decision of each decided Action."""
        self._on_decision.add(callback)

    def on_question(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call back on the loop when the waiting Actions change; returns the unsubscriber."""
        return self._on_question.add(callback)

    @property
    def waiting(self) -> dict[int, PendingAction]:
        """The waiting Actions by id."""
        return {id: entry for id, (entry, _) in self._waiting.items()}

    def require(
        self,
        action: Action,
        principal: EventSource,
        *,
        contained: bool = False,
        more: Sequence[Reason] = (),
        effects: Effects | None = None,
        roots: Sequence[str] | None = None,
    ) -> list[Reason]:
        """Return the reasons why an Action must wait, and mark it as awaiting confirmation.

        Nothing that is ``contained`` in a sandbox is risky; ``more`` has further risks. ``effects``
        and ``roots`` are those of ``risks``.
        """
        reasons: list[Reason] = []
        if principal != "user" and self.policy != "never":
            if not contained:
                reasons = risks(
                    action, self._workspace_dir, self.lookup, effects=effects, roots=roots
                )
            reasons += [reason for reason in more if reason not in reasons]
            if self.policy == "always" and not reasons:
                reasons = [Reason("every_action")]
        if self.rules.covers(action.kind, reasons):
            return []
        if hasattr(action, "confirmation_state"):
            action.confirmation_state = ActionConfirmationStatus.AWAITING_CONFIRMATION
        return reasons

    async def decide(
        self,
        action: Action,
        reasons: list[Reason],
        progress: ActionProgress | None = None,
        *,
        sandboxed: bool | None = None,
    ) -> Observation | None:
        """Wait for the person if there are reasons; return the Observation of a rejection."""
        if not reasons:
            return _decided_before(action)
        pending = PendingAction(action, tuple(reasons), self._expiry(), sandboxed)
        try:
            decision = await self._decision_on(pending)
        except asyncio.CancelledError:
            if progress is not None:
                progress.withdraw()
            raise
        if decision is None:
            why = f"{UNANSWERED} {self.timeout_seconds:g} s; it waited because {pending.reason}."
            return UserRejectObservation(
                f"{REJECTED} ({why})", outcome="timed_out", reason_code="unanswered", why=why
            )
        if progress is not None:
            progress.decide(decision.by)
        if not decision.approved:
            why = decision.why.strip()[:MAX_WHY_CHARS]
            content = f"{REJECTED} (The user says: {why})" if why else REJECTED
            return UserRejectObservation(content, why=why)
        if decision.scope != "once":
            self._release_covered(decision)
        if hasattr(action, "confirmation_state"):
            action.confirmation_state = ActionConfirmationStatus.CONFIRMED
        return None

    async def ask(self, action: Action, form: Sequence[FormField]) -> Decision | None:
        """Ask the person for the values of a form; return None if nobody answers in time."""
        name = action.actor.name
        reason = Reason("asked_by_named_agent", (name,)) if name else Reason("asked_by_agent")
        return await self._decision_on(
            PendingAction(action, (reason,), self._expiry(), is_question=True, form=tuple(form))
        )

    def _expiry(self) -> float:
        return time.monotonic() + self.timeout_seconds

    async def _decision_on(self, pending: PendingAction) -> Decision | None:
        """Hold an Action until a person decides; return None if nobody does in time."""
        future: asyncio.Future[Decision] = asyncio.get_running_loop().create_future()
        id = pending.action.id if pending.action.id is not None else -1
        self._waiting[id] = (pending, future)
        self._on_question.tell()
        try:
            async with asyncio.timeout(self.timeout_seconds):
                return await future
        except TimeoutError:
            return None
        finally:
            del self._waiting[id]
            self._on_question.tell()

    def _release_covered(self, decision: Decision) -> None:
        """Approve the waiting Actions that the rules now cover as well."""
        for id, (entry, future) in list(self._waiting.items()):
            if not entry.is_question and self.rules.covers(entry.action.kind, entry.reasons):
                self._settle(id, future, Decision(True, by=decision.by))

    async def resolve(self, id: int, decision: Decision) -> None:
        """Approve or reject a waiting Action.

        Raises ConfirmationError if it does not wait, or its rule cannot be saved, and AnswerError
        if values do not fit its form.
        """
        if id not in self._waiting:
            names = ", ".join(str(id) for id in self._waiting) or "none"
            raise ConfirmationError(f"No action {id} waits for confirmation. Waiting: {names}")
        pending, future = self._waiting[id]
        if not future.done():
            if decision.approved and pending.is_question:
                decision = replace(decision, values=answers(pending.form, decision.values))
            elif decision.approved:
                await self._add_rules(pending, decision.scope)
            self._settle(id, future, decision)

    async def _add_rules(self, pending: PendingAction, scope: Scope) -> None:
        kind, reasons = pending.action.kind, pending.reasons
        if scope == "workspace":
            await self.in_thread(self.rules.add, kind, reasons, scope)
        else:
            self.rules.add(kind, reasons, scope)

    def _settle(self, id: int, future: asyncio.Future[Decision], decision: Decision) -> None:
        """Set a decision, unless the question expired or was decided while it was saved."""
        if not future.done():
            future.set_result(decision)
            self._on_decision.tell(id, decision)


def _decided_before(action: Action) -> Observation | None:
    """Return the Observation of an Action that the client's person rejected or must decide."""
    state = getattr(action, "confirmation_state", ActionConfirmationStatus.CONFIRMED)
    if state is ActionConfirmationStatus.REJECTED:
        return UserRejectObservation(REJECTED)
    if state is ActionConfirmationStatus.AWAITING_CONFIRMATION:
        return NullObservation("")
    return None
