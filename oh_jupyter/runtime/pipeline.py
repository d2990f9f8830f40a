"""The path of an Action: what is decided about it, and the stages around its execution."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from oh_jupyter.errors import OhJupyterError
from oh_jupyter.events import (
    Action,
    BrowseInteractiveAction,
    BrowseURLAction,
    CmdRunAction,
    ErrorObservation,
    EventSource,
    FileEditAction,
    FileWriteAction,
    IPythonRunCellAction,
    Observation,
)
from oh_jupyter.events.action import progress
from oh_jupyter.events.fields import check_fields, check_runnable
from oh_jupyter.policy import check_allowed, check_cells
from oh_jupyter.runtime.agent_steps import may_change_files
from oh_jupyter.runtime.components import RuntimeComponents
from oh_jupyter.runtime.confinement import confinement_fault, outside_fault
from oh_jupyter.runtime.confirmation import WITHDRAWN
from oh_jupyter.runtime.effects import Effects, effects
from oh_jupyter.runtime.execution import Execution, executing
from oh_jupyter.runtime.progress import ActionProgress, RunningActions
from oh_jupyter.runtime.reasons import Reason
from oh_jupyter.runtime.risk import remote_risks
from oh_jupyter.writes import note_save

if TYPE_CHECKING:
    from oh_jupyter.editor.files.path_guard import PathGuard

logger = logging.getLogger(__name__)


@dataclass
class Context:
    """An Action on its path, and what has been decided about it so far.

    Attributes:
        action: The Action.
        source: Its source in the log, which is only a client's claim.
        principal: The actual principal, who decides whether a person is asked.
        is_agents: Whether it is an agent's Action, also if a person approved it.
        confined: Whether the agent may use only the workspace's files and pages of the web.
        only_asks: Whether its execution only approves it, and the agent may run it anywhere.
        reasons: Further reasons why it waits for a person.
        execute: Executes it.
        cwd: Directory in which its relative paths begin.
        known: Its effects, as far as they are known before it runs.
        is_boxed: Whether a command belongs in a sandbox.
        questions: The reasons why it waits for a person.
        guard: The files that the editor may use for it; None for all.
        sandboxed: Whether it runs in a sandbox; None where nobody expects one.
        progress: Its progress.
        edited: Paths that it has edited, as it reports them.
    """

    action: Action
    source: EventSource
    principal: EventSource
    is_agents: bool
    confined: bool
    only_asks: bool
    reasons: Sequence[Reason]
    execute: Callable[[], Awaitable[Observation]]
    cwd: str
    known: Effects
    progress: ActionProgress
    is_boxed: bool = False
    questions: list[Reason] = field(default_factory=list)
    guard: PathGuard | None = None
    sandboxed: bool | None = None
    edited: list[str] = field(default_factory=list)

    @property
    def execution(self) -> Execution:
        """The decided facts, for everything that runs on the Action's behalf."""
        cwd = self.cwd if self.known.paths else ""
        return Execution(self.principal, self.is_boxed, self.is_agents, cwd, self.guard, self.known)


class Pipeline(RuntimeComponents, ABC):
    """The components of a runtime, and the path of each Action through them.

    Its arguments are those of `RuntimeComponents`.

    Attributes:
        running: The Actions in progress.
        interrupted_guests: The agents whose Actions are rejected until their next prompt.
        last_action_time: When the last Action ended, in seconds since the epoch.
        start_time: When this runtime was made.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        """Prepare the components; start nothing yet."""
        super().__init__(*arguments, **options)
        self.running = RunningActions(lambda id: id in self.confirmations.waiting, self.peek)
        self.interrupted_guests: set[str] = set()
        self.last_action_time = self.start_time = time.time()

    async def run_action(
        self,
        action: Action,
        source: EventSource = "agent",
        *,
        principal: EventSource | None = None,
        execute: Callable[[], Awaitable[Observation]] | None = None,
        only_asks: bool = False,
        reasons: Sequence[Reason] = (),
        confined: bool = False,
        is_parsed: bool = False,
    ) -> Observation:
        """Execute one Action and record it with its Observation.

        Args:
            action: The Action.
            source: Source of the Action in the log.
            principal: The actual principal, where ``source`` is only a client's claim; decides
                whether the Action waits for a person.
            execute: Executes the Action instead of the runtime.
            only_asks: Whether ``execute`` only approves it, and the agent may run it anywhere.
            reasons: Further reasons why an agent's Action waits.
            confined: Whether the agent may use only the workspace's files and pages of the web.
            is_parsed: Whether it comes from ``action_from_wire``, which has checked its fields.

        Returns:
            Its Observation; any failure becomes an ``ErrorObservation``.

        Raises:
            NotRunnableError: It is an Action such as ``message``; nothing is recorded.
            WireError: A field has a wrong type; nothing is recorded.
            asyncio.CancelledError: The caller cancelled the Action; that is recorded, too.
        """
        check_runnable(action)
        if not is_parsed:
            check_fields(action)
        guest = action.actor.guest
        if guest in self.interrupted_guests:
            return ErrorObservation(
                f"The user interrupted {guest}: the action was not run.", outcome="cancelled"
            )
        cwd = self._cwd_of(principal or source)
        context = Context(
            action,
            source,
            principal or source,
            is_agents=source == "agent" or principal not in (None, "user"),
            confined=confined,
            only_asks=only_asks,
            reasons=reasons,
            execute=partial(self.observe, action, execute),
            cwd=cwd,
            known=effects(action, cwd),
            progress=ActionProgress(action, cwd),
        )
        await decide(self, context)
        return await _through(STAGES, self, context)

    async def observe(
        self, action: Action, execute: Callable[[], Awaitable[Observation]] | None = None
    ) -> Observation:
        """Execute an Action, or something in its place; any failure becomes an Observation."""
        try:
            if execute is None:
                return await self._execute(action)
            await progress.get().prepare()
            return await execute()
        except OhJupyterError as error:
            return ErrorObservation(str(error))
        except Exception as error:
            logger.exception("Action %s failed", action.kind)
            return ErrorObservation(
                f"Internal error in {action.kind!r}: {type(error).__name__}: {error}. "
                "The runtime continues; the kernel's log has the details."
            )

    @abstractmethod
    async def _execute(self, action: Action) -> Observation:
        """Execute an Action; raise OhJupyterError if it cannot be."""

    @abstractmethod
    def peek(self, kind: str, max_lines: int = 3) -> str:
        """Return the last output lines of the running Action of a type, or ""."""


# Decisions: each looks at one thing before the Action is recorded, in this order. One that raises
# an OhJupyterError refuses the Action, which is then recorded with that failure.


async def obey_policy(runtime: Pipeline, context: Context) -> None:
    """Refuse what the administrator's policy forbids."""
    policy, action = runtime.settings.policy, context.action
    if not policy:
        return
    if isinstance(action, IPythonRunCellAction) and context.is_agents and not context.only_asks:
        check_cells(policy, runtime.boxes.kernel_network)
    if isinstance(action, CmdRunAction):
        check_allowed(policy, "shell")
    if isinstance(action, BrowseURLAction | BrowseInteractiveAction):
        check_allowed(policy, "browser")


async def confine(runtime: Pipeline, context: Context) -> None:
    """Refuse what the agent's token does not cover."""
    if context.confined:
        hides = runtime.boxes.visibility().hides
        _refuse(confinement_fault(context.action, context.known, runtime.workspace_dir, hides))


async def stay_within(runtime: Pipeline, context: Context) -> None:
    """Refuse changes outside of the directory that the Action names."""
    within = getattr(context.action, "within", None)
    if within is not None and context.known.writes:
        _refuse(outside_fault(within, runtime.workspace_dir, context.known.writes))


async def choose_box(runtime: Pipeline, context: Context) -> None:
    """Decide whether a command runs in a sandbox; refuse it if one is required and missing."""
    context.is_boxed = not context.only_asks and await runtime.boxes.applies(
        context.action, is_agents=context.is_agents
    )


async def find_questions(runtime: Pipeline, context: Context) -> None:
    """List the reasons why an agent's Action waits for a person."""
    if context.principal == "user":
        return
    action, known, is_boxed = context.action, context.known, context.is_boxed
    runtime.file_rules.note_new_temporary(known)
    more = [*context.reasons, *runtime.boxes.questions(action, known)]
    if not runtime.boxes.is_silent(is_boxed=is_boxed):
        more += [*remote_risks(action), *runtime.untrusted_text.questions(action)]
    context.questions = runtime.confirmations.require(
        action,
        context.principal,
        contained=runtime.boxes.contains(is_boxed=is_boxed),
        more=more,
        effects=known,
        roots=runtime.file_rules.roots,
    )


async def guard_files(runtime: Pipeline, context: Context) -> None:
    """Limit the files that the editor may open, to those about which it was decided."""
    asks = context.is_agents and runtime.confirmations.policy != "never"
    within = getattr(context.action, "within", None)
    if context.known.paths and (asks or context.confined or within is not None):
        context.guard = runtime.file_rules.guard(
            context.known, within, asks=asks, confined=context.confined
        )


DECISIONS = (obey_policy, confine, stay_within, choose_box, find_questions, guard_files)


async def decide(runtime: Pipeline, context: Context) -> None:
    """Take all decisions about an Action; a refusal takes the place of its execution."""
    try:
        for decision in DECISIONS:
            await decision(runtime, context)
    except OhJupyterError as error:
        context.execute = partial(runtime.observe, context.action, _failing_with(error))
    context.sandboxed = runtime.boxes.sandboxed(context.execution, only_asks=context.only_asks)


def _refuse(fault: str) -> None:
    if fault:
        raise OhJupyterError(fault)


def _failing_with(error: OhJupyterError) -> Callable[[], Awaitable[Observation]]:
    async def fail() -> Observation:
        raise error

    return fail


# Stages: each surrounds the next ones, in this order.

Next = Callable[[], Awaitable[Observation]]
Stage = Callable[[Pipeline, Context, Next], Awaitable[Observation]]


async def record(runtime: Pipeline, context: Context, next: Next) -> Observation:
    """Record the Action before, and its Observation or its cancellation after it."""
    action, state = context.action, context.progress
    action.id = None
    runtime.events.add_event(action, context.source)
    try:
        observation = await next()
    except asyncio.CancelledError:
        cancelled = ErrorObservation(
            WITHDRAWN if state.is_withdrawn else "The action was cancelled.",
            outcome="cancelled",
        )
        never_began = {} if state.has_begun else {"never_began": True}
        _add_observation(runtime, context, cancelled, never_began)
        raise
    finally:
        runtime.last_action_time = time.time()
    if context.is_agents:
        runtime.untrusted_text.note(action, observation)
    facts = {}
    if isinstance(observation, ErrorObservation) and state.is_queued:
        facts["never_began"] = True
    if isinstance(action, CmdRunAction) and context.sandboxed is not None:
        facts["sandboxed"] = context.sandboxed
    _add_observation(runtime, context, observation, facts)
    return observation


async def end_step(runtime: Pipeline, context: Context, next: Next) -> Observation:
    """End the step of the agent's turn, if the Action has started one."""
    with executing(context.execution, context.progress):
        try:
            return await next()
        finally:
            await runtime.turns.after(context.action, context.edited)


async def list_as_running(runtime: Pipeline, context: Context, next: Next) -> Observation:
    """Show the Action and its progress until it ends."""
    runtime.running.begin(context.progress)
    try:
        return await next()
    finally:
        del runtime.running[cast(int, context.action.id)]
        context.progress.put_out()


async def ask(runtime: Pipeline, context: Context, next: Next) -> Observation:
    """Wait for a person's decision, if there are questions."""
    rejection = await runtime.confirmations.decide(
        context.action, context.questions, context.progress, sandboxed=context.sandboxed
    )
    return await next() if rejection is None else rejection


async def begin_step(runtime: Pipeline, context: Context, next: Next) -> Observation:
    """Begin a step of the agent's turn, and note the files that a person edits meanwhile."""
    action, known = context.action, context.known
    path = _edited_path(action, known)
    context.progress.on_prepare = partial(runtime.turns.start, action)
    await runtime.turns.before(action, context.principal, path)
    observation = await next()
    if path:
        context.edited = [path, *observation.edited_paths]
    if path and context.principal == "user":
        await runtime.in_thread(_note_saves, observation.edited_paths)
    return observation


async def execute(runtime: Pipeline, context: Context, next: Next) -> Observation:
    """Execute the Action, or what stands in its place."""
    context.progress.start()
    return await context.execute()


STAGES: tuple[Stage, ...] = (record, end_step, list_as_running, ask, begin_step, execute)


async def _through(stages: Sequence[Stage], runtime: Pipeline, context: Context) -> Observation:
    first, *rest = stages
    return await first(runtime, context, lambda: _through(rest, runtime, context))


def _add_observation(
    runtime: Pipeline, context: Context, observation: Observation, facts: Mapping[str, bool]
) -> None:
    observation.cause = context.action.id
    observation.handling = {**context.progress.handling(), **facts} or None
    runtime.events.add_event(observation, context.action.source or "agent")


def _note_saves(paths: Iterable[str]) -> None:
    """Record a person's edits, so that no other kernel takes them for its agent's."""
    for path in filter(os.path.isfile, paths):  # an edit may remove a file; a patch names a folder
        try:
            note_save(path)
        except OSError as error:
            logger.warning(
                "A rewind in another kernel may count your edit of %s as its agent's; it was not "
                "recorded: %s",
                *(path, error),
            )


def _edited_path(action: Action, known: Effects) -> str:
    """Return the absolute path that an Action is going to edit, "" for none."""
    is_edit = isinstance(action, FileEditAction | FileWriteAction) and may_change_files(action)
    return known.writes[0] if is_edit and known.writes else ""
