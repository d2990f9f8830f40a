"""The ActionExecutor: turns every Action into an Observation, in one pipeline."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial, singledispatchmethod
from typing import TYPE_CHECKING, Any, cast

from oh_jupyter.config import untrusted_notice
from oh_jupyter.errors import NotApprovedError, OhJupyterError
from oh_jupyter.events import (
    Action,
    BrowseInteractiveAction,
    BrowseURLAction,
    CmdRunAction,
    ErrorObservation,
    EventSource,
    FileEditAction,
    FileReadAction,
    FileWriteAction,
    IPythonRunCellAction,
    MCPAction,
    MCPObservation,
    Observation,
)
from oh_jupyter.events.action import progress
from oh_jupyter.events.fields import check_fields, check_runnable
from oh_jupyter.policy import check_allowed, check_cells
from oh_jupyter.runtime.components import RuntimeComponents
from oh_jupyter.runtime.confinement import confinement_fault, outside_fault
from oh_jupyter.runtime.confirmation import WITHDRAWN, dry_run
from oh_jupyter.runtime.effects import Effects, effects
from oh_jupyter.runtime.execution import Execution, current_execution, executing
from oh_jupyter.runtime.file_rules import FileUse
from oh_jupyter.runtime.progress import ActionProgress, RunningActions
from oh_jupyter.runtime.resources import memory_usage
from oh_jupyter.runtime.risk import remote_risks
from oh_jupyter.runtime.turn_actions import may_change_files
from oh_jupyter.text import visible
from oh_jupyter.writes import note_save

if TYPE_CHECKING:
    from oh_jupyter.editor.files.path_guard import PathGuard

logger = logging.getLogger(__name__)

NO_BROWSER = "Browser functionality is not supported or disabled."
BROWSER_HELD = (
    "A person has taken over the browser in JupyterLab and has not handed it back within {:g} s. "
    "Nothing was done. Ask them to hand it back, or do something else and try again later."
)
BROWSE_TIMEOUT_SECONDS = 120.0


class ActionExecutor(RuntimeComponents):
    """Executes Actions in one pipeline: validate, confirm, execute, record.

    Its arguments are those of `RuntimeComponents`.

    Attributes:
        running: The Actions in progress.
        interrupted_guests: The agents whose Actions are rejected until their next prompt.
        last_action_time: When the last Action ended, in seconds since the epoch.
        start_time: When this executor was made.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        """Prepare the components and the pipeline; start nothing yet."""
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
        reasons: Sequence[str] = (),
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
            reasons: Further reasons why an agent's Action waits, as clauses that begin with "it".
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
        guest = (action.actor or {}).get("guest")
        if guest in self.interrupted_guests:
            return ErrorObservation(f"The user interrupted {guest}: the action was not run.")
        action.id = None
        is_agents = source == "agent" or principal not in (None, "user")
        is_boxed, questions, guard = False, [], None
        cwd = self._cwd_of(principal or source)
        known = effects(action, cwd)
        try:
            self._check_policy(action, runs_agents_code=is_agents and not only_asks)
            if confined:
                self._check_confined(action, known)
            self._check_within(action, known)
            is_boxed = not only_asks and await self.boxes.applies(action, is_agents=is_agents)
            if (principal or source) != "user":
                questions = self._questions(action, known, principal or source, reasons, is_boxed)
            guard = self._guard(action, known, is_agents=is_agents, confined=confined)
        except OhJupyterError as error:
            execute = _refused(error)
        base = cwd if known.paths else ""
        execution = Execution(principal or source, is_boxed, is_agents, base, guard, known)
        sandboxed = self.boxes.sandboxed(execution, only_asks=only_asks)
        self.events.add_event(action, source)
        state = self.running.begin(action, cwd)
        edited: list[str] = []
        try:
            with executing(execution, state):
                observation = await self.confirmations.decide(
                    action, questions, state, sandboxed=sandboxed
                )
                if observation is None:
                    path = _edited_path(action, known)
                    state.on_prepare = partial(self.turns.start, action)
                    await self.turns.before(action, execution.principal, path)
                    state.start()
                    observation = await self._observe(action, execute)
                    if path:
                        edited = [path, *observation.edited_paths]
                    if path and execution.principal == "user":
                        await self.in_thread(_note_saves, observation.edited_paths)
        except asyncio.CancelledError:
            cancelled = ErrorObservation(
                WITHDRAWN if state.is_withdrawn else "The action was cancelled."
            )
            self._record(cancelled, action, state, never_began=not state.has_begun)
            raise
        finally:
            del self.running[cast(int, action.id)]
            state.put_out()
            with executing(execution, state):
                await self.turns.after(action, edited)
            self.last_action_time = time.time()
        if is_agents:
            self.untrusted_text.note(action, observation)
        self._record(
            observation,
            action,
            state,
            never_began=isinstance(observation, ErrorObservation) and state.is_queued,
            sandboxed=sandboxed if isinstance(action, CmdRunAction) else None,
        )
        return observation

    def _check_policy(self, action: Action, *, runs_agents_code: bool) -> None:
        policy = self.settings.policy
        if policy and isinstance(action, IPythonRunCellAction) and runs_agents_code:
            check_cells(policy, self.boxes.kernel_network)
        if policy and isinstance(action, CmdRunAction):
            check_allowed(policy, "shell")
        if policy and isinstance(action, BrowseURLAction | BrowseInteractiveAction):
            check_allowed(policy, "browser")

    def _check_confined(self, action: Action, known: Effects) -> None:
        fault = confinement_fault(action, known, self.workspace_dir, self.boxes.visibility().hides)
        if fault:
            raise OhJupyterError(fault)

    def _check_within(self, action: Action, known: Effects) -> None:
        within = getattr(action, "within", None)
        if within is None or not known.writes:
            return
        if fault := outside_fault(within, self.workspace_dir, known.writes):
            raise OhJupyterError(fault)

    def _questions(
        self,
        action: Action,
        known: Effects,
        principal: EventSource,
        reasons: Sequence[str],
        is_boxed: bool,
    ) -> list[str]:
        """Return the reasons why an agent's Action waits for a person."""
        self.file_rules.note_new_temporary(known)
        more = [*reasons, *self.boxes.questions(action, known)]
        if not self.boxes.is_silent(is_boxed=is_boxed):
            more += [*remote_risks(action), *self.untrusted_text.questions(action)]
        contained = self.boxes.contains(is_boxed=is_boxed)
        return self.confirmations.require(
            action,
            principal,
            contained=contained,
            more=more,
            effects=known,
            roots=self.file_rules.roots,
        )

    def _guard(
        self, action: Action, known: Effects, *, is_agents: bool, confined: bool
    ) -> PathGuard | None:
        """Return the files that the editor may use for an Action; None for all."""
        asks = is_agents and self.confirmations.policy != "never"
        within = getattr(action, "within", None)
        if not known.paths or not (asks or confined or within is not None):
            return None
        return self.file_rules.guard(known, within, asks=asks, confined=confined)

    async def questions_like(self, uses: Sequence[FileUse], *, confined: bool) -> list[str]:
        """Return the reasons why an agent's request waits that uses files like these Actions.

        Raises:
            NotApprovedError: The agent may not run code, and may not use one of the files.
        """
        if confined:
            self.file_rules.check_confined(uses, self.cwd)
        if self.confirmations.policy == "never":
            return []
        reasons = await self.in_thread(self.file_rules.questions, uses, self.cwd)
        if not self.boxes.is_silent(is_boxed=False):
            for action in uses:
                reasons += self.untrusted_text.questions(action)
        return list(dict.fromkeys(reasons))

    async def check_approved(self, action: MCPAction, reasons: Sequence[str]) -> None:
        """Ask a person about an agent's request that is no Action, if there are reasons.

        The question is recorded as an Action; without one, nothing is.

        Raises:
            NotApprovedError: The person rejected it, or did not answer in time.
        """
        policy = self.confirmations.policy
        if policy == "never" or not (reasons or policy == "always"):
            return

        async def approved() -> Observation:
            return MCPObservation("The person allows it.", name=action.name)

        observation = await self.run_action(
            action, "agent", principal="agent", execute=approved, only_asks=True, reasons=reasons
        )
        if not isinstance(observation, MCPObservation):
            raise NotApprovedError(observation.content)

    def interrupt_guest(self, guest: str) -> None:
        """Cancel a guest's Actions, and reject new ones until its next prompt."""
        self.interrupted_guests.add(guest)
        for entry in list(self.running.values()):
            if (entry.action.actor or {}).get("guest") == guest:
                entry.task.cancel()

    def peek(self, kind: str, max_lines: int = 3) -> str:
        """Return the last output lines of the running Action of a type, or ""."""
        if kind == CmdRunAction.kind:
            shells = [shell for shell in (self._shell, self.boxes.last) if shell is not None]
            shown = next((shell for shell in shells if shell.running), next(iter(shells), None))
            return "" if shown is None else shown.peek(max_lines)
        return self.plugins.peek(max_lines) if kind == IPythonRunCellAction.kind else ""

    async def preview(self, action: Action) -> str:
        """Return the visible diff of a waiting edit; "" for other Actions and on failure."""
        state = self.running.get(cast(int, action.id))
        edit = dry_run(action, self.cwd if state is None else state.cwd)
        if edit is None:
            return ""
        observation = await self._observe(edit, None)
        return visible(str(getattr(observation, "diff", "")))

    def _record(
        self,
        observation: Observation,
        action: Action,
        state: ActionProgress,
        *,
        never_began: bool = False,
        sandboxed: bool | None = None,
    ) -> None:
        facts = state.handling()
        if never_began:
            facts["never_began"] = True
        if sandboxed is not None:
            facts["sandboxed"] = sandboxed
        observation.cause = action.id
        observation.handling = facts or None
        self.events.add_event(observation, action.source or "agent")

    async def _observe(
        self, action: Action, execute: Callable[[], Awaitable[Observation]] | None
    ) -> Observation:
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

    # The type of the argument selects the handler.

    @singledispatchmethod
    async def _execute(self, action: Action) -> Observation:
        return ErrorObservation(f"An action of type {action.kind!r} cannot be executed.")

    @_execute.register
    async def _run(self, action: CmdRunAction) -> Observation:
        if current_execution.get().is_boxed:
            box = await self.boxes.open(action, is_agents=current_execution.get().is_agents)
            cast(ActionProgress, progress.get()).queue()
            return await self.boxes.run(action, box)
        shell = await self.shell()
        cast(ActionProgress, progress.get()).queue()
        return await shell.execute_async(action)

    @_execute.register
    async def _run_ipython(self, action: IPythonRunCellAction) -> Observation:
        await self.plugins.start()
        plugin = self.plugins.jupyter()
        await plugin.sync_directory(self.cwd)
        cast(ActionProgress, progress.get()).queue()
        observation = await plugin.run(action)
        if action.include_extra:
            observation.content += plugin.footer(self.cwd)
        return observation

    @_execute.register
    async def _read(self, action: FileReadAction) -> Observation:
        from oh_jupyter.editor.file_actions import read_file

        return await self._with_reader(read_file, action, cwd=self.cwd, editor=self.editor)

    @_execute.register
    async def _write(self, action: FileWriteAction) -> Observation:
        from oh_jupyter.editor.file_actions import write_file
        from oh_jupyter.editor.notebook.tagged_cells import for_agent

        write = for_agent(write_file) if current_execution.get().is_agents else write_file
        return await self.in_thread(_guarded(write), action, cwd=self.cwd, editor=self.editor)

    @_execute.register
    async def _edit(self, action: FileEditAction) -> Observation:
        from oh_jupyter.editor.file_actions import edit_file
        from oh_jupyter.editor.notebook.tagged_cells import for_agent

        edit = for_agent(edit_file) if current_execution.get().is_agents else edit_file
        return await self._with_reader(
            edit, action, cwd=self.cwd, editor=self.editor, settings=self.settings
        )

    async def _with_reader(
        self,
        function: Callable[..., Observation],
        action: FileReadAction | FileEditAction,
        **fields: Any,
    ) -> Observation:
        """Run a function of the editor, which reads an agent's documents in a box."""
        from oh_jupyter.documents.process import enclosed_by
        from oh_jupyter.editor.files.paths import DOCUMENT_SUFFIXES

        function = _guarded(function)
        if os.path.splitext(action.path)[1].lower() not in DOCUMENT_SUFFIXES:
            return await self.in_thread(function, action, **fields)
        box = await self.boxes.box_of_readers()

        def run() -> Observation:
            with enclosed_by(None if box is None else lambda argv: box.enclose(argv, "/", [])[0]):
                return function(action, **fields)

        try:
            return await self.in_thread(run)
        finally:
            if box is not None:
                box.close()

    @_execute.register
    async def _browse(self, action: BrowseURLAction | BrowseInteractiveAction) -> Observation:
        from oh_jupyter.browser.wire import browse

        if not self.settings.enable_browser:
            return ErrorObservation(NO_BROWSER)
        if current_execution.get().principal == "agent":
            timeout = action.timeout or BROWSE_TIMEOUT_SECONDS
            if not await self.takeover.until_free(timeout):
                return ErrorObservation(BROWSER_HELD.format(timeout))
        browser = self.browser
        try:
            files = self._page_files(current_execution.get())
            observation = await self.in_thread(browse, action, browser, self.workspace_dir, files)
            self.last_page = observation
            return observation
        except asyncio.CancelledError:
            browser.interrupt(action)
            raise

    def _page_files(self, execution: Execution) -> dict[str, Any] | None:
        """Return the limits of the files that pages load; None where agents have no limits."""
        if self.confirmations.policy == "never":
            return None
        return self.file_rules.page_files(execution.known, is_persons=execution.principal == "user")

    @_execute.register
    async def _call_tool(self, action: MCPAction) -> Observation:
        await self.mcp.begin()
        return await self.tools.call(action)

    async def end_shell(self) -> None:
        """Cancel all commands, and end their shells with all processes."""
        for state in list(self.running.values()):
            if isinstance(state.action, CmdRunAction):
                state.task.cancel()
        await super().end_shell()

    def status(self) -> dict[str, Any]:
        """Return directories, running Actions and started parts as JSON-ready data."""
        more = {
            "sandbox_enforced_by": self.boxes.enforced_by(),
            "untrusted_settings": untrusted_notice(),
        }
        return {
            "workspace_dir": self.workspace_dir,
            "cwd": self.cwd,
            "events": self.events.latest_id + 1,
            "idle_time": time.time() - self.last_action_time,
            "running": [each.action.message for each in self.running.values()],
            "waiting": {id: entry.reason for id, entry in self.confirmations.waiting.items()},
            "allowed": [f"{rule.kind}: {rule.reason}" for rule in self.confirmations.rules.list()],
            "plugins": self.plugins.names,
            "plugin_problems": dict(self.plugins.problems),
            "shell": None if self._shell is None else self._shell.pid,
            "sandbox": self.boxes.status(),
            "untrusted_text": self.untrusted_text.hosts,
            "changes_attributed": self.turns.attribution,
            "browser": self._browsers is not None,
            "memory": memory_usage(self._shell),
            **{name: text for name, text in more.items() if text},
        }


def _guarded(function: Callable[..., Observation]) -> Callable[..., Observation]:
    """Return a function of the editor that uses only the files of the current execution."""
    from oh_jupyter.editor.files.path_guard import guarded_by

    guard = current_execution.get().guard

    def run(*arguments: Any, **fields: Any) -> Observation:
        with guarded_by(guard):
            return function(*arguments, **fields)

    return run


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


def _refused(error: OhJupyterError) -> Callable[[], Awaitable[Observation]]:
    """Return an execution that fails with an error."""

    async def fail() -> Observation:
        raise error

    return fail
