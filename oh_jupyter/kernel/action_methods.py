"""The Actions as methods that wait for their Observation."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Collection, Coroutine
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

from oh_jupyter.errors import BrowserError

# Other modules are imported where they are used, because ``%load_ext`` makes an ``Oh``.
if TYPE_CHECKING:
    from oh_jupyter.agents import AgentTurn
    from oh_jupyter.agents.tool_socket import GuestTools
    from oh_jupyter.browser import BrowserEnv
    from oh_jupyter.browser.pool import BrowserPool
    from oh_jupyter.config import Settings
    from oh_jupyter.editor import HistoryEntry
    from oh_jupyter.events import (
        Action,
        BrowserOutputObservation,
        CmdOutputObservation,
        EventSource,
        FileEditObservation,
        FileReadObservation,
        FileWriteObservation,
        IPythonRunCellObservation,
        MCPObservation,
        Observation,
    )
    from oh_jupyter.events.stream import EventStream
    from oh_jupyter.kernel.cells.inspection import Inspector
    from oh_jupyter.kernel.cells.shell_cells import RunningCell
    from oh_jupyter.kernel.display.observations import Diff
    from oh_jupyter.kernel.own_server import OwnServer
    from oh_jupyter.runtime import ActionExecutor, Runtime
    from oh_jupyter.runtime.approvals import Scope
    from oh_jupyter.runtime.replay import ReplayStep
    from oh_jupyter.storage import FileStore

T = TypeVar("T")

STORE_PREFIX = "store:"
"""Prefix of paths in the store, where files are meant as well."""

SLOW_ACTION_NOTICES = {
    "browse": "The browser is working …",
    "browse_interactive": "The browser is working …",
    "edit": "The edit is in progress …",
}
"""Notices for slow Actions; a command shows its output instead."""


class KernelHost(Protocol):
    """The kernel that ``oh`` lives in."""

    @property
    def runtime(self) -> Runtime:
        """The runtime, started at its first use."""

    @property
    def in_agents_cell(self) -> bool:
        """Whether the running cell is an agent's."""

    def approves(self, id: int, scope: Scope) -> bool:
        """Return whether a person's running cell itself says that it approves an Action."""

    def trusts(self) -> bool:
        """Return whether a person's running cell itself says that it trusts the folder."""

    @property
    def formatters(self) -> Any:
        """The shell's formatters by MIME type."""

    @property
    def inspector(self) -> Inspector:
        """Inspector of the notebook's variables."""

    @property
    def running_cell(self) -> RunningCell | None:
        """The cell that the kernel executes, or None."""

    def find_server(self) -> OwnServer | None:
        """Return the server that has this kernel, or None."""

    def guest_tools(self, guest: str) -> GuestTools:
        """Make the tools of an agent, by the name of its conversation."""

    @property
    def workspace_dir(self) -> str:
        """Directory of the workspace."""

    @property
    def notebook_file(self) -> str:
        """Absolute path of the notebook, on the machine of its editor, or ""."""

    def agent_context(self) -> str:
        """Return the introduction that precedes an agent's first prompt."""

    def show_turn(self, turn: AgentTurn) -> None:
        """Report a change of an agent's turn to the frontends."""

    def notice(self, text: str) -> AbstractContextManager[Any]:
        """Show a line while something is slow."""

    def live_output(self, action: Action) -> AbstractContextManager[None]:
        """Show the output so far of an Action of the running cell."""


class ActionMethods:
    """The Actions of a runtime, one method each.

    Each method makes an Action and returns its Observation. A failure is an ``ErrorObservation``;
    arguments of a wrong type raise ``WireError``.
    """

    def __init__(self, host: KernelHost) -> None:
        """Wrap a kernel, whose runtime starts at its first use."""
        self.host = host

    @property
    def _runtime(self) -> Runtime:
        return self.host.runtime

    @property
    def _executor(self) -> ActionExecutor:
        return self._runtime.executor

    def __repr__(self) -> str:
        """Name the workspace."""
        return f"<oh: {self._executor.workspace_dir}>"

    @property
    def settings(self) -> Settings:
        """The operator's settings."""
        return self._executor.settings

    @property
    def store(self) -> FileStore:
        """The file store of events and artefacts."""
        return self._runtime.file_store

    @property
    def events(self) -> EventStream:
        """The log of all Actions and Observations of all callers."""
        return self._runtime.events

    @property
    def cwd(self) -> str:
        """The working directory of the shell, base of relative paths."""
        return self._executor.cwd

    def status(self) -> dict[str, Any]:
        """Return the status of the runtime.

        Returns:
            Directories, running Actions, started parts.
        """
        return self._runtime.status()

    def execute(self, action: Action | dict[str, Any]) -> Observation:
        """Execute an Action and wait for it.

        Args:
            action: The Action, or its wire form.

        Returns:
            Its Observation.

        Raises:
            WireError: The wire form is invalid, or a field has a wrong type.
            NotRunnableError: It is an Action such as ``message``, with nothing to execute.
            KeyboardInterrupt: The wait was interrupted; the Action is cancelled.
        """
        is_parsed = isinstance(action, dict)
        if isinstance(action, dict):
            from oh_jupyter.events.wire import action_from_wire

            action = action_from_wire(action)
        notice = SLOW_ACTION_NOTICES.get(action.kind)
        with self.host.notice(notice) if notice else nullcontext():
            return self._wait(
                self._executor.run_action(action, self._principal(), is_parsed=is_parsed)
            )

    def _principal(self) -> EventSource:
        return "agent" if self.host.in_agents_cell else "user"

    def set_env(self, variables: dict[str, str], *, sandbox: bool = True) -> None:
        """Set environment variables for the shell and for cells, with their literal values.

        Args:
            variables: Names and values.
            sandbox: Also set them in agents' sandboxes.

        Raises:
            ShellError: A name or value is invalid.
        """
        self._runtime.submit(self._executor.set_env(variables, sandbox=sandbox)).result()

    def put(self, value: object, path: str) -> str:
        """Save an object as a file, or in the store, in the format of the path's suffix.

        Args:
            value: A pandas or polars table (.csv, .parquet, .json, .xlsx, .feather, .html), an
                array (.npy, .csv), a figure or a Pillow image (.png and others), a text or bytes
                (any suffix), JSON-like data (.json), or any object (.pkl).
            path: The file, relative to the shell's directory; or ``store:`` and a path in the
                store. Missing directories are created, and an existing file is replaced.

        Returns:
            The absolute path of the file, or the path in the store.

        Raises:
            InspectionError: The value cannot be written in this format.
            OSError: The file cannot be written.
        """
        from oh_jupyter.kernel.saving import encoded

        contents = encoded(value, path)
        if path.startswith(STORE_PREFIX):
            self.store.write(path.removeprefix(STORE_PREFIX), contents)
            return path.removeprefix(STORE_PREFIX)
        target = self._absolute(path)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "wb") as file:
            file.write(contents)
        return target

    def _act(self, action: Action, timeout: float | None = None) -> Any:
        action.timeout = timeout
        return self.execute(action)

    def _absolute(self, path: str) -> str:
        """Return a path relative to the shell's directory as the editor needs it."""
        if not isinstance(path, str):  # rejected later like any field of a wrong type
            return path
        return os.path.join(self.cwd, os.path.expanduser(path))

    def run(
        self,
        command: str,
        *,
        timeout: float | None = None,
        is_input: bool = False,
        blocking: bool = False,
        is_static: bool = False,
        cwd: str | None = None,
        sandbox: bool = False,
    ) -> CmdOutputObservation:
        """Run a command in the shell that person and agent share.

        Args:
            command: The command; "" returns more output of the running one.
            timeout: Hard time limit in seconds.
            is_input: Send it to the running command.
            blocking: Wait for the end, however long the command is silent.
            is_static: Use a temporary shell.
            cwd: Directory of a static command.
            sandbox: Use a shell in a sandbox of your own.

        Returns:
            Its output and exit code.

        Raises:
            WireError: ``cwd`` is set, but the command is not static.
        """
        from oh_jupyter.events import CmdRunAction
        from oh_jupyter.events.action import refuse_idle_cwd

        refuse_idle_cwd(cwd, is_static)
        action = CmdRunAction(
            command,
            is_input=is_input,
            blocking=blocking,
            is_static=is_static,
            cwd=cwd,
            sandbox=sandbox,
        )
        return cast("CmdOutputObservation", self._act(action, timeout))

    def run_ipython(self, code: str, *, timeout: float | None = None) -> IPythonRunCellObservation:
        """Run a cell like an agent, and return what an agent would see.

        Args:
            code: The cell.
            timeout: Seconds after which it is interrupted.

        Returns:
            Its output.
        """
        from oh_jupyter.events import IPythonRunCellAction

        return cast("IPythonRunCellObservation", self._act(IPythonRunCellAction(code), timeout))

    def read(
        self, path: str, *, view_range: list[int] | None = None, numbered: bool = False
    ) -> FileReadObservation:
        """Read a file.

        Args:
            path: The file; as in all methods, relative paths start at the shell's directory.
            view_range: First and last line, counted from 1; implies ``numbered``.
            numbered: Add line numbers like the editor.

        Returns:
            Its content.
        """
        from oh_jupyter.events import FileReadAction

        action = FileReadAction(path)
        if numbered or view_range:
            path = self._absolute(path)
            action = FileReadAction(path, impl_source="oh_aci", view_range=view_range)
        return cast("FileReadObservation", self._act(action))

    def write(
        self, path: str, content: str, *, start: int = 0, end: int = -1
    ) -> FileWriteObservation:
        """Write a file, or replace some of its lines.

        Args:
            path: The file.
            content: The new lines.
            start: First line to replace, counted from 0.
            end: Line after the last; -1 for the end.

        Returns:
            The written path.
        """
        from oh_jupyter.events import FileWriteAction

        action = FileWriteAction(path, content, start, end)
        return cast("FileWriteObservation", self._act(action))

    def edit(self, command: str, path: str, **args: Any) -> FileEditObservation:
        """Edit a file.

        Args:
            command: view, create, str_replace, insert, write, apply_patch, notebook_edit,
                undo_edit or redo_edit.
            path: The file; for a patch the directory of its files.
            **args: Arguments of the command, such as ``file_text``, ``old_str``, ``new_str``,
                ``insert_line`` or ``content``; ``dry_run`` and ``enable_linting``.

        Returns:
            The editor's message and the diff.

        Raises:
            WireError: There is no such argument.
        """
        from oh_jupyter.events import FileEditAction
        from oh_jupyter.events.fields import build

        arguments = {"path": self._absolute(path), "command": command, **args}
        action = build(FileEditAction, arguments, "args", ignore_unknown=False)
        return cast("FileEditObservation", self.execute(cast("FileEditAction", action)))

    def history(self, path: str) -> list[HistoryEntry]:
        """List the edits of a file that can be undone or redone.

        Args:
            path: The file, which may be deleted.

        Returns:
            The edits, oldest first.
        """
        return self.call(self._executor.editor.history, self._absolute(path))

    def diff(self, path: str, steps: int = 1) -> Diff:
        """Compare a file with its state some edits ago.

        Args:
            path: The file.
            steps: Number of edits.

        Returns:
            A unified diff that is displayed in colours.

        Raises:
            EditorError: There are fewer edits, or someone else changed the file since.
        """
        from oh_jupyter.kernel.display.html import with_relative_paths
        from oh_jupyter.kernel.display.observations import Diff

        diff = self.call(self._executor.editor.diff, self._absolute(path), steps)
        return Diff(with_relative_paths(diff, self._executor.workspace_dir))

    def browse(self, url: str, *, return_axtree: bool = False) -> BrowserOutputObservation:
        """Open a page.

        Args:
            url: Its address.
            return_axtree: Also return the accessibility tree as an object.

        Returns:
            Its text and a screenshot.
        """
        from oh_jupyter.events import BrowseURLAction

        action = BrowseURLAction(url, return_axtree=return_axtree)
        return cast("BrowserOutputObservation", self._act(action))

    def interact(self, actions: str, *, return_axtree: bool = False) -> BrowserOutputObservation:
        """Act on the open page.

        Args:
            actions: Calls of BrowserGym's action language, such as ``click("12")``.
            return_axtree: Also return the accessibility tree as an object.

        Returns:
            The page afterwards, with the accessibility tree as text.
        """
        from oh_jupyter.events import BrowseInteractiveAction

        action = BrowseInteractiveAction(actions, return_axtree=return_axtree)
        return cast("BrowserOutputObservation", self._act(action))

    def tool(self, name: str, **arguments: Any) -> MCPObservation:
        """Call a tool by name: an agent skill, or a tool of a configured MCP server.

        Args:
            name: Its name.
            **arguments: Its arguments.

        Returns:
            The result, as JSON of the Model Context Protocol.
        """
        from oh_jupyter.events import MCPAction

        return cast("MCPObservation", self._act(MCPAction(name, arguments)))

    def replay(
        self,
        log: EventStream | None = None,
        *,
        folder: str | None = None,
        until: int | None = None,
        kinds: Collection[str] | None = None,
    ) -> list[ReplayStep]:
        """Execute the Actions of a session again, in a new runtime, and compare.

        Args:
            log: The session's log; None for the current one.
            folder: Where to work; None for a temporary directory.
            until: Id of the event before which to stop.
            kinds: Types of the Actions; None for all.

        Returns:
            One step for each executed Action.
        """
        from oh_jupyter.runtime.replay import Replayer

        replayer = Replayer(self._executor.settings, self._executor.workspace_dir)
        try:
            return self.call(
                replayer.run, log or self.events, folder=folder, until=until, kinds=kinds
            )
        finally:
            replayer.stop()

    def tables(self, url: str | None = None) -> list[Any]:
        """Read the tables of the open page, or of another one.

        Args:
            url: Address to open first; also in the methods below.

        Returns:
            One pandas DataFrame for each table.

        Raises:
            BrowserError: The page cannot be read, or pandas is not installed.
        """
        from oh_jupyter.browser.tables import read_tables

        return cast("list[Any]", self._read_page(url, read_tables))

    def links(self, url: str | None = None) -> Any:
        """Read the links of a page like ``tables``; a DataFrame of ``text`` and ``url``."""
        from oh_jupyter.browser.tables import read_links

        return self._read_page(url, read_links)

    def forms(self, url: str | None = None) -> Any:
        """Read the fields of a page's forms like ``tables``; a DataFrame with a row per field."""
        from oh_jupyter.browser.tables import read_forms

        return self._read_page(url, read_forms)

    def elements(self, css: str = "", *, role: str = "", url: str | None = None) -> Any:
        """Read elements of a page like ``tables``.

        Args:
            css: A CSS selector, such as ``"h2, .price"``.
            role: Or a role, such as ``"button"``.
            url: Address to open first.

        Returns:
            A pandas DataFrame: ``tag``, ``text`` and ``value``; by role ``bid``, ``name`` and
            ``value``.

        Raises:
            BrowserError: The page cannot be read, or not exactly one of ``css`` and ``role`` is
                set.
        """
        from oh_jupyter.browser.tables import read_elements

        if bool(css) == bool(role):
            raise BrowserError("Say which elements: a CSS selector, or role='button'.")
        return self._read_page(url, read_elements, css, role=role)

    def _read_page(self, url: str | None, read: Callable[..., Any], *args: Any, **kw: Any) -> Any:
        if url is not None:
            opened = self.browse(url)
            if getattr(opened, "error", True):
                raise BrowserError(f"{url} cannot be read: {opened.content.strip()}")
        return self.call(read, self.browser, *args, **kw)

    @property
    def browsers(self) -> BrowserPool:
        """The browsers by name; ``oh.browsers.use("other")`` switches to another one."""
        return self._executor.browsers

    @property
    def browser(self) -> BrowserEnv:
        """The current browser, for logins, traces, JavaScript and other uses without an Action."""
        return self.browsers.current

    def call(self, function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """Call a blocking function on another thread and wait for it as for an Action.

        Args:
            function: The function.
            *args: Its arguments.
            **kwargs: Its keyword arguments.

        Returns:
            Its result.

        Raises:
            KeyboardInterrupt: The wait was interrupted.
        """
        return self._wait(self._executor.in_thread(function, *args, **kwargs))

    def _wait(self, coroutine: Coroutine[Any, Any, T]) -> T:
        from oh_jupyter.kernel.cells.main_thread import MainThreadWait

        if threading.current_thread() is threading.main_thread():
            return MainThreadWait().wait_for(self._runtime.submit, coroutine)
        return self._runtime.submit(coroutine).result()
