"""The ActionExecutor: a handler for each type of Action, and what it tells of its state."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable, Sequence
from functools import singledispatchmethod
from typing import Any, cast

from oh_jupyter.errors import NotApprovedError
from oh_jupyter.events import (
    Action,
    BrowseInteractiveAction,
    BrowseURLAction,
    CmdRunAction,
    ErrorObservation,
    FileEditAction,
    FileReadAction,
    FileWriteAction,
    IPythonRunCellAction,
    MCPAction,
    MCPObservation,
    Observation,
)
from oh_jupyter.events.action import progress
from oh_jupyter.runtime.confirmation import dry_run
from oh_jupyter.runtime.execution import Execution, current_execution
from oh_jupyter.runtime.file_rules import FileUse
from oh_jupyter.runtime.pipeline import Pipeline
from oh_jupyter.runtime.progress import ActionProgress
from oh_jupyter.runtime.reasons import Reason
from oh_jupyter.runtime.resources import memory_usage
from oh_jupyter.text import visible
from oh_jupyter.trust import untrusted_notice

logger = logging.getLogger(__name__)

NO_BROWSER = "Browser functionality is not supported or disabled."
BROWSER_HELD = (
    "A person has taken over the browser in JupyterLab and has not handed it back within {:g} s. "
    "Nothing was done. Ask them to hand it back, or do something else and try again later."
)
BROWSE_TIMEOUT_SECONDS = 120.0


class ActionExecutor(Pipeline):
    """Executes the Actions that have come through the pipeline: one handler for each type."""

    async def questions_like(self, uses: Sequence[FileUse], *, confined: bool) -> list[Reason]:
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

    async def check_approved(self, action: MCPAction, reasons: Sequence[Reason]) -> None:
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
            if entry.action.actor.guest == guest:
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
        observation = await self.observe(edit)
        return visible(str(getattr(observation, "diff", "")))

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
