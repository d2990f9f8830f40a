"""The Actions as methods that wait for their Observation."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Collection, Coroutine
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, TypeVar, cast

from oh_jupyter.errors import BrowserError

# All else is imported where it is used: ``%load_ext`` makes an ``Oh``, and pays for none of it.
if TYPE_CHECKING:
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
    from oh_jupyter.kernel.display.observations import Diff
    from oh_jupyter.runtime import ActionExecutor, Runtime
    from oh_jupyter.runtime.replay import ReplayStep
    from oh_jupyter.storage import FileStore

T = TypeVar("T")

SIGNS_OF_LIFE = {
    "browse": "The browser is at work …",
    "browse_interactive": "The browser is at work …",
    "edit": "The edit is being made …",
}
"""What is shown while Actions take long; a command shows its output."""


class ActionMethods:
    """The Actions of a runtime, carried out one by one.

    Each method makes an Action and returns its Observation. What cannot be done is an
    ``ErrorObservation``; arguments of a wrong type raise ``WireError``.
    """

    def __init__(
        self,
        start: Callable[[], Runtime],
        in_agents_cell: Callable[[], bool] = lambda: False,
        notice: Callable[[str], AbstractContextManager[Any]] = nullcontext,
    ) -> None:
        """Wrap a runtime, which is started when it is first needed; see ``Oh``."""
        self._start = start
        self._in_agents_cell = in_agents_cell
        self._notice = notice

    @property
    def _runtime(self) -> Runtime:
        return self._start()

    @property
    def _executor(self) -> ActionExecutor:
        return self._runtime.executor

    def __repr__(self) -> str:
        """Say where it works."""
        return f"<oh: {self._executor.workspace_dir}>"

    @property
    def settings(self) -> Settings:
        """What the operator set."""
        return self._executor.settings

    @property
    def store(self) -> FileStore:
        """The file store of events and artefacts."""
        return self._runtime.file_store

    @property
    def events(self) -> EventStream:
        """The log of all Actions and Observations, whoever asked for them."""
        return self._runtime.events

    @property
    def cwd(self) -> str:
        """The working directory of the shell, where relative paths start."""
        return self._executor.cwd

    def status(self) -> dict[str, Any]:
        """Figures of the runtime.

        Returns:
            Directories, what is running, what has started.
        """
        return self._runtime.status()

    def execute(self, action: Action | dict[str, Any]) -> Observation:
        """Carry out an Action and wait for it.

        Args:
            action: The Action, or its wire form.

        Returns:
            Its Observation.

        Raises:
            WireError: The wire form cannot be read, or a field is of a wrong type.
            NotRunnableError: It is an Action such as ``message``, with nothing to execute.
            KeyboardInterrupt: The wait was interrupted; the Action is cancelled.
        """
        if isinstance(action, dict):
            from oh_jupyter.events.wire import action_from_wire

            action = action_from_wire(action)
        sign = SIGNS_OF_LIFE.get(action.kind)
        with self._notice(sign) if sign else nullcontext():
            return self._wait(self._executor.run_action(action, self._principal()))

    def _principal(self) -> EventSource:
        return "agent" if self._in_agents_cell() else "user"

    def set_env(self, variables: dict[str, str]) -> None:
        """Set environment variables for the shell and for cells, with their literal values.

        Args:
            variables: Names and values.

        Raises:
            ShellError: A name or value cannot be that of an environment variable.
        """
        self._runtime.submit(self._executor.set_env(variables)).result()

    def _act(self, action: Action, timeout: float | None = None) -> Any:
        action.timeout = timeout
        return self.execute(action)

    def _absolute(self, path: str) -> str:
        """A path as the editor wants it; relative ones start at the shell's directory."""
        if not isinstance(path, str):  # refused like any other field of a wrong type
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
    ) -> CmdOutputObservation:
        """Run a command in the shell that person and agent share.

        Args:
            command: The command; "" fetches more output of the one that is running.
            timeout: Hard time limit in seconds.
            is_input: Send it to the running command.
            blocking: Wait for the end however long nothing is printed.
            is_static: Use a fresh shell that is thrown away.
            cwd: Directory of a static command.

        Returns:
            Its output and exit code.

        Raises:
            WireError: ``cwd`` is given, and the command is no static one.
        """
        from oh_jupyter.events import CmdRunAction
        from oh_jupyter.events.action import refuse_idle_cwd

        refuse_idle_cwd(cwd, is_static)
        action = CmdRunAction(
            command, is_input=is_input, blocking=blocking, is_static=is_static, cwd=cwd
        )
        return cast("CmdOutputObservation", self._act(action, timeout))

    def run_ipython(self, code: str, *, timeout: float | None = None) -> IPythonRunCellObservation:
        """Run a cell as an agent would, and get what an agent would see of it.

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
            path: The file; relative paths start at the shell's working directory, here as in
                all methods.
            view_range: First and last line, counted from 1; implies ``numbered``.
            numbered: As the editor shows it, with line numbers.

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
        """Write a file, or replace lines of it.

        Args:
            path: The file.
            content: The lines to put there.
            start: First line to replace, counted from 0.
            end: Line after the last; -1 for the end.

        Returns:
            Where it was written.
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
            **args: What the command needs, such as ``file_text``, ``old_str``, ``new_str``,
                ``insert_line`` or ``content``; ``dry_run`` and ``enable_linting``.

        Returns:
            What the editor says, and the diff.

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
            path: The file, which need not exist any more.

        Returns:
            The edits, the oldest first.
        """
        return self.call(self._executor.editor.history, self._absolute(path))

    def diff(self, path: str, steps: int = 1) -> Diff:
        """Compare a file with what it was some edits ago.

        Args:
            path: The file.
            steps: How many edits to look back.

        Returns:
            A unified diff, which shows itself in colours.

        Raises:
            EditorError: There are not as many edits, or somebody else changed the file since.
        """
        from oh_jupyter.kernel.display.observations import Diff

        return Diff(self.call(self._executor.editor.diff, self._absolute(path), steps))

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
        """Act on the page that is open.

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
        """Carry out the Actions of a session again, in a fresh runtime, and compare.

        Args:
            log: The session's log; that of the current one when not given.
            folder: Where to work; a temporary directory when not given.
            until: Id of the event before which to stop.
            kinds: Types of the Actions; all when not given.

        Returns:
            One step for each Action that was carried out.
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
        """Read the tables of the page that is open, or of another one.

        Args:
            url: Address to open first; here as in the methods below.

        Returns:
            One pandas DataFrame for each table.

        Raises:
            BrowserError: The page cannot be read, or pandas is not installed.
        """
        from oh_jupyter.browser.tables import read_tables

        return cast("list[Any]", self._read_page(url, read_tables))

    def links(self, url: str | None = None) -> Any:
        """Read the links of a page, as ``tables`` does; a DataFrame of ``text`` and ``url``."""
        from oh_jupyter.browser.tables import read_links

        return self._read_page(url, read_links)

    def forms(self, url: str | None = None) -> Any:
        """Read the fields of a page's forms, as ``tables`` does; a DataFrame, one row a field."""
        from oh_jupyter.browser.tables import read_forms

        return self._read_page(url, read_forms)

    def elements(self, css: str = "", *, role: str = "", url: str | None = None) -> Any:
        """Read the elements of a page, as ``tables`` does.

        Args:
            css: A CSS selector of those wanted, such as ``"h2, .price"``.
            role: Or their role, such as ``"button"``.
            url: Address to open first.

        Returns:
            A pandas DataFrame: ``tag``, ``text`` and ``value``; by role ``bid``, ``name`` and
            ``value``.

        Raises:
            BrowserError: The page cannot be read, or neither or both were given.
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
        """The browsers by name; ``oh.browsers.use("other")`` changes to one of its own."""
        return self._executor.browsers

    @property
    def browser(self) -> BrowserEnv:
        """The current browser, for what is no Action: log-ins, traces, JavaScript."""
        return self.browsers.current

    def call(self, function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """Call a blocking function beside the kernel, and wait for it as for an Action.

        Args:
            function: What to call.
            *args: Its arguments.
            **kwargs: Its keyword arguments.

        Returns:
            What it returns.

        Raises:
            KeyboardInterrupt: The wait was interrupted.
        """
        return self._wait(self._executor.in_thread(function, *args, **kwargs))

    def _wait(self, coroutine: Coroutine[Any, Any, T]) -> T:
        from oh_jupyter.kernel.cells.main_thread import MainThreadWait

        if threading.current_thread() is threading.main_thread():
            found: T = MainThreadWait().wait_for(self._runtime.submit, coroutine)
            return found
        return self._runtime.submit(coroutine).result()
