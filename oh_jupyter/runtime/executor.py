"""The ActionExecutor: turns every Action into an Observation.

It owns all state of the runtime and lives on the runtime thread's loop. Shell, browser and editor
start at their first use, so a notebook that only edits a file pays for nothing else.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import singledispatchmethod
from typing import TYPE_CHECKING, Any, TypeVar, cast

from oh_jupyter.background import thread_pool
from oh_jupyter.config import Settings, check_value
from oh_jupyter.errors import OhJupyterError, SandboxError
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
    Observation,
)
from oh_jupyter.events.action import progress
from oh_jupyter.events.fields import check_fields, check_runnable
from oh_jupyter.runtime.boxed_shells import BoxedShells, mark
from oh_jupyter.runtime.confinement import confinement_fault
from oh_jupyter.runtime.confirmation import Confirmations, dry_run
from oh_jupyter.runtime.execution import Execution, current_execution, executing
from oh_jupyter.runtime.host_access import HostAccess
from oh_jupyter.runtime.kept_texts import KeptTexts
from oh_jupyter.runtime.mcp import McpProxy, parse_servers
from oh_jupyter.runtime.plugin_set import PluginSet
from oh_jupyter.runtime.progress import ActionProgress, RunningActions
from oh_jupyter.runtime.resources import (
    make_shell,
    memory_usage,
    prepare_workspace,
    shell_owner,
    shell_user,
)
from oh_jupyter.runtime.risk import remote_risks
from oh_jupyter.runtime.takeover import Takeover
from oh_jupyter.runtime.tools import ToolRegistry, skill_tools
from oh_jupyter.runtime.turns import Turns
from oh_jupyter.runtime.undo_notes import UndoNotes
from oh_jupyter.runtime.untrusted_text import UntrustedText

if TYPE_CHECKING:
    from oh_jupyter.browser import BrowserEnv
    from oh_jupyter.browser.pool import BrowserPool
    from oh_jupyter.editor import FileEditor
    from oh_jupyter.events.stream import EventStream
    from oh_jupyter.plugins import Plugin
    from oh_jupyter.runtime.transfers import Transfers
    from oh_jupyter.shell import ShellSession
    from oh_jupyter.storage import FileStore

T = TypeVar("T")
logger = logging.getLogger(__name__)

MIN_SECRET_CHARS = 8
"""Minimum length of a masked value; shorter values would match inside many words."""

MAX_THREADS = 8
"""Maximum number of simultaneous blocking calls."""

NO_BROWSER = "Browser functionality is not supported or disabled."
BROWSER_HELD = (
    "A person has taken over the browser in JupyterLab and has not handed it back within {:g} s. "
    "Nothing was done. Ask them to hand it back, or do something else and try again later."
)
BROWSE_TIMEOUT_SECONDS = 120.0


class ActionExecutor:
    """Executes Actions in one pipeline: validate, confirm, execute, record.

    Attributes:
        settings: The operator's settings.
        workspace_dir: Initial directory of the shell, and base of relative paths.
        file_store: Store of events and artefacts.
        events: Log of all Actions and Observations.
        plugins: The plugins.
        confirmations: The Actions that wait for a person.
        running: The Actions in progress.
        turns: The agents' turns and their checkpoints.
        takeover: The person's hold on the browser.
        untrusted_text: The hosts whose text agents have read.
        kept_texts: Long outputs in files, for agents.
        undo_notes: Notes on changes that a person undid, for the agents that made them.
        mcp: The MCP servers behind the runtime.
        tools: Tools by name: agent skills, and tools of these MCP servers.
        last_action_time: When the last Action ended, in seconds since the epoch.
        start_time: When this executor was made; ``heads_at_start`` has the history of each known
            file at that time.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        workspace_dir: str,
        file_store: FileStore,
        events: EventStream,
        plugins: dict[str, Plugin],
    ) -> None:
        """Make an executor; start nothing yet.

        Args:
            settings: The operator's settings.
            workspace_dir: Absolute path; created if missing.
            file_store: Store of events and artefacts.
            events: The log.
            plugins: Plugins by name, in start order.
        """
        self.settings = settings
        self.workspace_dir = workspace_dir
        self.file_store = file_store
        self.events = events
        self.plugins = PluginSet(plugins, settings.init_plugin_timeout)
        self.last_action_time = self.start_time = time.time()
        self.last_page: Observation | None = None
        self.takeover = Takeover()
        self.undo_notes = UndoNotes()
        self.untrusted_text = UntrustedText(is_on=settings.untrusted_text)
        self._shell: ShellSession | None = None
        self._browsers: BrowserPool | None = None
        self._secrets: set[str] = set()
        self._editor: FileEditor | None = None
        self.heads_at_start: dict[str, str | None] = {}
        self._transfers: Transfers | None = None
        self._starting = asyncio.Lock()
        self._threads = thread_pool(MAX_THREADS, "oh-runtime-work")
        self.tools = ToolRegistry(self.in_thread)
        servers = parse_servers(settings.mcp_servers)
        self.mcp = McpProxy(self.in_thread, workspace_dir, servers, self.tools.changed)
        self.tools.add("skills", skill_tools(self.in_thread, self.tools.changed))
        self.tools.add("mcp", self.mcp.tools)
        self.confirmations = Confirmations(
            settings.confirmation or "risky", settings.confirmation_timeout, workspace_dir
        )
        self.boxes = BoxedShells(
            lambda: self.settings, workspace_dir, self.in_thread, self._make_host_access
        )
        self.interrupted_guests: set[str] = set()
        self.kept_texts = KeptTexts()
        self.running = RunningActions(lambda id: id in self.confirmations.waiting, self.peek)
        check_value("checkpoints", settings.checkpoints)
        self.turns = Turns(
            self.in_thread,
            workspace_dir,
            self._agents_shell,
            automatic=settings.checkpoints == "auto",
            pause_seconds=settings.checkpoint_pause,
            own_folders=[*_own_folders(settings), *self.boxes.placeholders()],
        )
        prepare_workspace(workspace_dir, shell_user(settings))

    @property
    def cwd(self) -> str:
        """The shell's working directory."""
        shell = self._shell
        if (
            self.boxes.is_on
            and current_execution.get().principal != "user"
            and self.boxes.last is not None
        ):
            shell = self.boxes.last
        return shell.cwd if shell is not None else self.workspace_dir

    def _make_host_access(self) -> HostAccess:
        return HostAccess(lambda: self.settings, self.confirmations, self.events)

    def _agents_shell(self) -> ShellSession | None:
        """Return the shell that agents' commands use, or None if it has not started."""
        engine = self.boxes.engine
        unboxed = not self.boxes.is_on or (engine is not None and engine.program is None)
        return self._shell if unboxed else self.boxes.last

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
        refusal: OhJupyterError | None = None
        is_of_agent = source == "agent" or principal not in (None, "user")
        try:
            boxed = await self.boxes.applies(action, is_agents=is_of_agent) and not only_asks
        except SandboxError as error:
            boxed, refusal, execute = False, error, _refused(error)
        if confined and (
            fault := confinement_fault(action, self.workspace_dir, self.boxes.hidden())
        ):
            boxed, refusal = False, OhJupyterError(fault)
            execute = _refused(refusal)
        questions: list[str] = []
        if refusal is None and (principal or source) != "user":
            in_kernel = self.boxes.contains_kernel
            contained = in_kernel or (boxed and self.boxes.contains)
            is_silent = in_kernel or (boxed and not self.boxes.has_network)
            questions = self.confirmations.require(
                action,
                principal or source,
                contained=contained,
                more=[
                    *reasons,
                    *self.boxes.questions(action),
                    *([] if is_silent else remote_risks(action)),
                    *([] if is_silent else self.untrusted_text.questions(action)),
                ],
            )
        self.events.add_event(action, source)
        state = self.running.begin(action)
        try:
            with executing(Execution(principal or source, boxed, is_of_agent), state):
                observation = await self.confirmations.decide(action, questions, state)
                if observation is None:
                    await self.turns.before(action, principal or source)
                    state.start()
                    observation = await self._observe(action, execute)
        except asyncio.CancelledError:
            cancelled = ErrorObservation("The action was cancelled.")
            self._record(cancelled, action, state, never_began=not state.has_begun)
            raise
        finally:
            del self.running[cast(int, action.id)]
            state.put_out()
            self.turns.after(action)
            self.last_action_time = time.time()
        in_box = boxed or bool(self.boxes.kernel_network)
        is_marked = in_box or (self.boxes.is_on and is_of_agent and not only_asks)
        sandboxed = in_box if is_marked else None
        if is_of_agent:
            self.untrusted_text.note(action, observation)
        self._record(observation, action, state, sandboxed=sandboxed)
        return observation

    def apply(self, settings: Settings) -> None:
        """Apply new values of the settings that need no restart."""
        self.settings = settings
        self.confirmations.policy = settings.confirmation or "risky"
        self.confirmations.timeout_seconds = settings.confirmation_timeout
        self.untrusted_text.is_on = settings.untrusted_text
        self.turns.configure(settings.checkpoints == "auto", settings.checkpoint_pause)

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
        """Return the diff of a waiting edit; "" for other Actions and on failure."""
        edit = dry_run(action, self.cwd)
        if edit is None:
            return ""
        observation = await self._observe(edit, None)
        return str(getattr(observation, "diff", ""))

    def _record(
        self,
        observation: Observation,
        action: Action,
        state: ActionProgress,
        *,
        never_began: bool = False,
        sandboxed: bool | None = None,
    ) -> None:
        observation.cause = action.id
        observation.handling = state.handling()
        if sandboxed is not None and isinstance(action, CmdRunAction):
            mark(observation, sandboxed=sandboxed)
        if never_began:
            observation.handling = {**(observation.handling or {}), "never_began": True}
        self.events.add_event(observation, action.source or "agent")

    async def _observe(
        self, action: Action, execute: Callable[[], Awaitable[Observation]] | None
    ) -> Observation:
        try:
            return await (self._execute(action) if execute is None else execute())
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

        return await self.in_thread(read_file, action, cwd=self.cwd, editor=self.editor)

    @_execute.register
    async def _write(self, action: FileWriteAction) -> Observation:
        from oh_jupyter.editor.file_actions import write_file
        from oh_jupyter.editor.notebook.tagged_cells import for_agent

        write = for_agent(write_file) if current_execution.get().is_agents else write_file
        return await self.in_thread(write, action, cwd=self.cwd, editor=self.editor)

    @_execute.register
    async def _edit(self, action: FileEditAction) -> Observation:
        from oh_jupyter.editor.file_actions import edit_file
        from oh_jupyter.editor.notebook.tagged_cells import for_agent

        edit = for_agent(edit_file) if current_execution.get().is_agents else edit_file
        return await self.in_thread(
            edit, action, cwd=self.cwd, editor=self.editor, settings=self.settings
        )

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
            observation = await self.in_thread(browse, action, browser, self.workspace_dir)
            self.last_page = observation
            return observation
        except asyncio.CancelledError:
            browser.interrupt(action)
            raise

    @_execute.register
    async def _call_tool(self, action: MCPAction) -> Observation:
        await self.mcp.begin()
        return await self.tools.call(action)

    async def in_thread(self, function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """Run blocking code on a thread that debuggers leave alone."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, lambda: function(*args, **kwargs))

    @property
    def has_shell(self) -> bool:
        """Whether the shell or a sandboxed one has started."""
        return self._shell is not None or bool(self.boxes.shells)

    async def shell(self) -> ShellSession:
        """Return the shell session, started at its first use; raise ShellError on failure."""
        async with self._starting:
            if self._shell is None:
                session = make_shell(self.settings, self.workspace_dir)
                await session.initialize_async()
                self._shell = session
            return self._shell

    async def enclose(self, action: CmdRunAction, argv: list[str]) -> list[str]:
        """Return the command line for a program of an Action, in a sandbox if it belongs there."""
        if not current_execution.get().is_boxed:
            return argv
        boxed = await self.boxes.open(action, is_agents=current_execution.get().is_agents)
        return boxed.box.enclose(argv, action.cwd or self.workspace_dir, [])[0]

    def interrupt_shells(self) -> None:
        """Press Ctrl-C in the shell and in the boxes."""
        if self._shell is not None:
            self._shell.interrupt()
        self.boxes.interrupt()

    async def end_shell(self) -> None:
        """End the shell and the boxes with all processes; the next use starts new ones."""
        for state in list(self.running.values()):
            if isinstance(state.action, CmdRunAction):
                state.task.cancel()
        async with self._starting:
            shell, self._shell = self._shell, None
        if shell is not None:
            await shell.close_async()
        await self.boxes.close()

    async def set_env(
        self, variables: Mapping[str, str], *, cells: bool = True, sandbox: bool = True
    ) -> None:
        """Set environment variables for the shell, with their literal values.

        Values that are long enough to be secrets are masked in the event log from now on.

        Args:
            variables: Names and values.
            cells: Also set them for cells.
            sandbox: Also set them in sandboxes.

        Raises:
            ShellError: A name or value is invalid.
        """
        await (await self.shell()).set_env_async(variables)
        if sandbox:
            await self.boxes.set_env(variables)
        self._secrets |= {value for value in variables.values() if len(value) >= MIN_SECRET_CHARS}
        self.events.mask(self._secrets)
        if self._browsers is not None:
            self._browsers.mask(self._secrets)
        if cells:
            os.environ.update(variables)
            await self.plugins.set_env(variables)

    @property
    def transfers(self) -> Transfers:
        """Uploads and downloads in progress."""
        if self._transfers is None:
            from oh_jupyter.runtime.transfers import Transfers

            self._transfers = Transfers(
                self.in_thread,
                max_upload_bytes=int(self.settings.max_upload_mb * 1024**2),
                owner=shell_owner(self.settings),
            )
        return self._transfers

    @property
    def editor(self) -> FileEditor:
        """The file editor, made at its first use."""
        if self._editor is None:
            from oh_jupyter.editor import FileEditor

            self._editor = FileEditor(
                workspace_root=self.workspace_dir,
                history_limit=self.settings.editor_history_limit,
                history_mb=self.settings.editor_history_mb,
            )
            self.heads_at_start = self._editor.history_store.heads()
        return self._editor

    @property
    def has_browser(self) -> bool:
        """Whether a browser has been used."""
        return self._browsers is not None

    @property
    def browsers(self) -> BrowserPool:
        """The browsers by name, made at their first use."""
        if self._browsers is None:
            from oh_jupyter.browser.pool import BrowserPool

            self._browsers = BrowserPool(self.settings)
            self._browsers.mask(self._secrets)
        return self._browsers

    @property
    def browser(self) -> BrowserEnv:
        """The current browser; its process starts with the first step."""
        return self.browsers.current

    def status(self) -> dict[str, Any]:
        """Return directories, running Actions and started parts as JSON-ready data."""
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
            "browser": self._browsers is not None,
            "memory": memory_usage(self._shell),
        }

    async def close(self) -> None:
        """End the shell, the browser and the plugins, and write pending events.

        Blocks the loop where necessary, because thread pools accept no work at interpreter exit.
        """
        await self.turns.close()
        if self._transfers is not None:
            self._transfers.close()
        await self.mcp.close()
        await self.plugins.close()
        if self._shell is not None:
            await self._shell.close_async()
        await self.boxes.close()
        if self._browsers is not None:
            self._browsers.close_all()
        self.kept_texts.close()
        self.events.close()
        self._threads.shutdown(wait=False)


def _refused(error: OhJupyterError) -> Callable[[], Awaitable[Observation]]:
    """Return an execution that fails with an error."""

    async def fail() -> Observation:
        raise error

    return fail


def _own_folders(settings: Settings) -> list[str]:
    """Return the folders of the log and of undelivered reports, which may be in the workspace."""
    folders = []
    if settings.file_store == "local" and settings.file_store_path:
        folders.append(os.path.join(os.path.expanduser(settings.file_store_path), "sessions"))
    if settings.file_store_web_hook_outbox:
        folders.append(os.path.expanduser(settings.file_store_web_hook_outbox))
    return folders
