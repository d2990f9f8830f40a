"""The components of a runtime: shell, sandboxes, editor, browsers, plugins and tools.

Shell, browser and editor start at their first use, so a notebook that only edits a file pays for
nothing else. Plugins start once and in order; each may fail on its own. While a person takes over
the browser, agents wait. All of them live on the runtime thread's loop.
"""

from __future__ import annotations

import asyncio
import getpass
import logging
import math
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from oh_jupyter.background import thread_pool
from oh_jupyter.config import Settings, check_value
from oh_jupyter.errors import PluginError
from oh_jupyter.events import Action, CmdRunAction, EventSource, Observation
from oh_jupyter.runtime.boxed_shells import BoxedShells
from oh_jupyter.runtime.confirmation import Confirmations
from oh_jupyter.runtime.execution import current_execution
from oh_jupyter.runtime.file_rules import FileRules
from oh_jupyter.runtime.host_access import HostAccess
from oh_jupyter.runtime.kept_texts import KeptTexts
from oh_jupyter.runtime.mcp import McpProxy, parse_servers
from oh_jupyter.runtime.resources import make_shell, prepare_workspace, shell_owner, shell_user
from oh_jupyter.runtime.tools import ToolRegistry, skill_tools
from oh_jupyter.runtime.turns import Turns
from oh_jupyter.runtime.undo_notes import UndoNotes
from oh_jupyter.runtime.untrusted_text import UntrustedText

if TYPE_CHECKING:
    from oh_jupyter.browser import BrowserEnv
    from oh_jupyter.browser.pool import BrowserPool
    from oh_jupyter.editor import FileEditor
    from oh_jupyter.events.stream import EventStream
    from oh_jupyter.plugins import JupyterPlugin, Plugin
    from oh_jupyter.runtime.transfers import Transfers
    from oh_jupyter.sandbox import Box
    from oh_jupyter.shell import ShellSession
    from oh_jupyter.storage import FileStore


logger = logging.getLogger(__name__)


class PluginSet:
    """Plugins by name in start order, and the errors of those that did not start."""

    def __init__(self, plugins: Mapping[str, Plugin], start_timeout_seconds: float) -> None:
        self._plugins = dict(plugins)
        self._start_timeout_seconds = start_timeout_seconds
        self._started = False
        self._starting = asyncio.Lock()
        self.problems: dict[str, str] = {}

    @property
    def names(self) -> list[str]:
        """Names of the plugins that have not failed."""
        return list(self._plugins)

    async def start(self) -> None:
        """Start the plugins once; report those that fail and continue with the others."""
        async with self._starting:
            if self._started:
                return
            self._started = True
            for name, plugin in list(self._plugins.items()):
                try:
                    async with asyncio.timeout(self._start_timeout_seconds):
                        await plugin.initialize(getpass.getuser())
                except TimeoutError:
                    self._drop(name, f"it was not ready after {self._start_timeout_seconds} s")
                except Exception as error:
                    self._drop(name, str(error))
            await self._queue_skills_cell()

    def _drop(self, name: str, reason: str) -> None:
        logger.warning("Plugin %s did not start: %s", name, reason)
        self.problems[name] = reason
        del self._plugins[name]

    async def _queue_skills_cell(self) -> None:
        from oh_jupyter.plugins import AgentSkillsPlugin, JupyterPlugin

        jupyter = self._plugins.get(JupyterPlugin.name)
        if AgentSkillsPlugin.name in self._plugins and isinstance(jupyter, JupyterPlugin):
            await jupyter.queue_startup(AgentSkillsPlugin.cell_code)

    def jupyter(self) -> JupyterPlugin:
        """Return the plugin that runs cells; raise PluginError if it is not running."""
        from oh_jupyter.plugins import JupyterPlugin

        plugin = self._plugins.get(JupyterPlugin.name)
        if not isinstance(plugin, JupyterPlugin):
            reason = self.problems.get(JupyterPlugin.name, "it is not among the settings' plugins")
            raise PluginError(f"Cells cannot run: plugin 'jupyter' is not loaded: {reason}")
        return plugin

    def peek(self, max_lines: int = 3) -> str:
        """Return the last output lines of the running cell, or ""."""
        from oh_jupyter.plugins import JupyterPlugin

        plugin = self._plugins.get(JupyterPlugin.name)
        return plugin.peek(max_lines) if isinstance(plugin, JupyterPlugin) else ""

    async def find(self, name: str) -> Plugin | None:
        """Return a plugin, started if necessary, or None if it is missing or did not start."""
        if name in self._plugins:
            await self.start()
        return self._plugins.get(name)

    async def set_env(self, variables: Mapping[str, str]) -> None:
        """Set environment variables in a kernel that a plugin started."""
        if "jupyter" in self._plugins:
            await self.jupyter().set_env(variables)

    async def close(self) -> None:
        """Stop all plugins."""
        for name, plugin in self._plugins.items():
            try:
                await plugin.close()
            except Exception as error:
                logger.warning("Plugin %s did not stop: %s", name, error)


T = TypeVar("T")

MIN_SECRET_CHARS = 8
"""Minimum length of a masked value; shorter values would match inside many words."""

MAX_THREADS = 8
"""Maximum number of simultaneous blocking calls."""


class RuntimeComponents:
    """The parts that a runtime owns; each starts at its first use.

    Attributes:
        settings: The operator's settings.
        workspace_dir: Initial directory of the shell, and base of relative paths.
        file_store: Store of events and artefacts.
        events: Log of all Actions and Observations.
        plugins: The plugins.
        confirmations: The Actions that wait for a person.
        turns: The agents' turns and their checkpoints.
        boxes: The agents' shells in sandboxes.
        takeover: The person's hold on the browser.
        untrusted_text: The hosts whose text agents have read.
        kept_texts: Long outputs in files, for agents.
        undo_notes: Notes on changes that a person undid, for the agents that made them.
        mcp: The MCP servers behind the runtime.
        tools: Tools by name: agent skills, and tools of these MCP servers.
        last_page: The last Observation of the browser.
        heads_at_start: The history of each known file when the editor started.
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
        """Prepare the components; start nothing yet.

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
        self.last_page: Observation | None = None
        self.takeover = Takeover()
        self.undo_notes = UndoNotes()
        self.kept_texts = KeptTexts()
        self.untrusted_text = UntrustedText(is_on=settings.untrusted_text)
        self.heads_at_start: dict[str, str | None] = {}
        self._shell: ShellSession | None = None
        self._browsers: BrowserPool | None = None
        self._editor: FileEditor | None = None
        self._transfers: Transfers | None = None
        self._secrets: set[str] = set()
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
        self.confirmations.in_thread = self.in_thread
        self.boxes = BoxedShells(
            lambda: self.settings,
            workspace_dir,
            self.in_thread,
            lambda: HostAccess(lambda: self.settings, self.confirmations, self.events),
            self.kept_texts.keep,
        )
        self.file_rules = FileRules(workspace_dir, lambda: self.settings, self.boxes)
        check_value("checkpoints", settings.checkpoints)
        self.turns = Turns(
            self.in_thread,
            workspace_dir,
            self._agents_shell,
            self._shell_of,
            automatic=settings.checkpoints == "auto",
            pause_seconds=settings.checkpoint_pause,
            own_folders=[*_own_folders(settings), *self.boxes.placeholders()],
        )
        prepare_workspace(workspace_dir, shell_user(settings))

    def apply(self, settings: Settings) -> None:
        """Apply new values of the settings that need no restart."""
        self.settings = settings
        self.confirmations.policy = settings.confirmation or "risky"
        self.confirmations.timeout_seconds = settings.confirmation_timeout
        self.untrusted_text.turn(is_on=settings.untrusted_text)
        self.turns.configure(settings.checkpoints == "auto", settings.checkpoint_pause)

    async def in_thread(self, function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """Run blocking code on a thread that debuggers leave alone."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, lambda: function(*args, **kwargs))

    @property
    def cwd(self) -> str:
        """The shell's working directory; of an Action, as it was when it arrived."""
        execution = current_execution.get()
        return execution.cwd or self._cwd_of(execution.principal)

    def _cwd_of(self, principal: EventSource) -> str:
        shell = self._shell
        if self.boxes.is_on and principal != "user" and self.boxes.last is not None:
            shell = self.boxes.last
        return shell.cwd if shell is not None else self.workspace_dir

    def _agents_shell(self) -> ShellSession | None:
        """Return the shell that agents' commands use, or None if it has not started."""
        engine = self.boxes.engine
        unboxed = not self.boxes.is_on or (engine is not None and engine.program is None)
        return self._shell if unboxed else self.boxes.last

    def _shell_of(self, action: Action) -> ShellSession | None:
        """Return the shell that runs a command, None if it has not started or runs no command."""
        if not isinstance(action, CmdRunAction) or action.is_static:
            return None
        return self.boxes.shell_of(action) if current_execution.get().is_boxed else self._shell

    async def shell(self) -> ShellSession:
        """Return the shell session, started at its first use; raise ShellError on failure."""
        async with self._starting:
            if self._shell is None:
                keep = self.kept_texts.keep
                session = make_shell(self.settings, self.workspace_dir, keep_output=keep)
                await session.initialize_async()
                self._shell = session
            return self._shell

    async def box_of(self, action: CmdRunAction) -> Box | None:
        """Return the sandbox in which a program of an Action must run, or None."""
        if not current_execution.get().is_boxed:
            return None
        boxed = await self.boxes.open(action, is_agents=current_execution.get().is_agents)
        return boxed.box

    def interrupt_shells(self, before: float = math.inf) -> None:
        """Press Ctrl-C in the shell and in the boxes; from any thread.

        Args:
            before: Time of the monotonic clock; commands that began later are spared.
        """
        if self._shell is not None:
            self._shell.interrupt(before)
        self.boxes.interrupt(before)

    async def end_shell(self) -> None:
        """End the shell and the boxes with all processes; the next use starts new ones."""
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

            self._browsers = BrowserPool(self.boxes.browser_settings())
            self._browsers.mask(self._secrets)
        return self._browsers

    @property
    def browser(self) -> BrowserEnv:
        """The current browser; its process starts with the first step."""
        return self.browsers.current

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


def _own_folders(settings: Settings) -> list[str]:
    """Return the folders of the log and of undelivered reports, which may be in the workspace."""
    folders = []
    if settings.file_store == "local" and settings.file_store_path:
        folders.append(os.path.join(os.path.expanduser(settings.file_store_path), "sessions"))
    if settings.file_store_web_hook_outbox:
        folders.append(os.path.expanduser(settings.file_store_web_hook_outbox))
    return folders


LAPSE_SECONDS = 60.0
"""Time after which a takeover ends if the person no longer watches."""


class Takeover:
    """A person's hold on the browser; on the runtime's loop."""

    def __init__(self) -> None:
        """Start with the browser free."""
        self._free = asyncio.Event()
        self._free.set()
        self._lapse: asyncio.TimerHandle | None = None

    @property
    def is_held(self) -> bool:
        """Whether a person holds the browser."""
        return not self._free.is_set()

    def take(self) -> None:
        """Make agents wait."""
        self._free.clear()
        self.seen()

    def hand_back(self) -> None:
        """Let agents continue."""
        self._free.set()
        if self._lapse is not None:
            self._lapse.cancel()

    def seen(self) -> None:
        """Record that the person still watches the page."""
        if self._lapse is not None:
            self._lapse.cancel()
        if self.is_held:
            self._lapse = asyncio.get_running_loop().call_later(LAPSE_SECONDS, self.hand_back)

    async def until_free(self, seconds: float) -> bool:
        """Wait until the browser is free; return False on timeout."""
        try:
            async with asyncio.timeout(seconds):
                await self._free.wait()
        except TimeoutError:
            return False
        return True
