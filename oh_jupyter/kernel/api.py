"""``oh``: the same Actions from Python, as methods that wait for their Observation."""

from __future__ import annotations

import threading
from typing import Any, cast

from oh_jupyter.events import (
    Action,
    BrowserOutputObservation,
    CmdOutputObservation,
    FileEditObservation,
    FileReadObservation,
    FileWriteObservation,
    IPythonRunCellObservation,
    Observation,
)
from oh_jupyter.events.stream import EventStream
from oh_jupyter.events.wire import runnable_from_wire
from oh_jupyter.kernel.mainthread import MainThread
from oh_jupyter.runtime import Runtime
from oh_jupyter.storage import FileStore

__all__ = ["Oh"]


class Oh:
    """The runtime of this kernel, in a person's hands.

    Each method makes an Action and returns its Observation. What cannot be done is an
    ``ErrorObservation``; arguments of a wrong type raise ``WireError``.
    """

    def __init__(self, runtime: Runtime) -> None:
        """Wrap a runtime.

        Args:
            runtime: The runtime.
        """
        self._runtime = runtime

    def __repr__(self) -> str:
        """Say where it works."""
        return f"<oh: {self._runtime.executor.workspace_dir}>"

    @property
    def store(self) -> FileStore:
        """The file store of events and artefacts."""
        return self._runtime.file_store

    @property
    def events(self) -> EventStream:
        """The log of all Actions and Observations, whichever door they came through."""
        return self._runtime.events

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
            WireError: The wire form cannot be read.
            KeyboardInterrupt: The wait was interrupted; the Action is cancelled.
        """
        if isinstance(action, dict):
            action = runnable_from_wire(action)
        coroutine = self._runtime.executor.run_action(action, "user")
        if threading.current_thread() is threading.main_thread():
            return MainThread().wait_for(self._runtime.submit, coroutine)
        return self._runtime.submit(coroutine).result()

    def set_env(self, variables: dict[str, str]) -> None:
        """Set environment variables for the shell and for cells, with their literal values.

        Args:
            variables: Names and values.

        Raises:
            ShellError: A name or value cannot be that of an environment variable.
        """
        self._runtime.submit(self._runtime.executor.set_env(variables)).result()

    def _act(self, kind: str, timeout: float | None = None, **args: Any) -> Any:
        return self.execute({"action": kind, "args": args, "timeout": timeout})

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
        """
        observation = self._act(
            "run",
            timeout,
            command=command,
            is_input=is_input,
            blocking=blocking,
            is_static=is_static,
            cwd=cwd,
        )
        return cast(CmdOutputObservation, observation)

    def run_ipython(self, code: str, *, timeout: float | None = None) -> IPythonRunCellObservation:
        """Run a cell as an agent would, and get what an agent would see of it.

        Args:
            code: The cell.
            timeout: Seconds after which it is interrupted.

        Returns:
            Its output.
        """
        return cast(IPythonRunCellObservation, self._act("run_ipython", timeout, code=code))

    def read(
        self, path: str, *, view_range: list[int] | None = None, numbered: bool = False
    ) -> FileReadObservation:
        """Read a file.

        Args:
            path: The file.
            view_range: First and last line, counted from 1; implies ``numbered``.
            numbered: As the editor shows it, with line numbers; needs an absolute path.

        Returns:
            Its content.
        """
        source = "oh_aci" if numbered or view_range else "default"
        observation = self._act("read", path=path, view_range=view_range, impl_source=source)
        return cast(FileReadObservation, observation)

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
        observation = self._act("write", path=path, content=content, start=start, end=end)
        return cast(FileWriteObservation, observation)

    def edit(self, command: str, path: str, **args: Any) -> FileEditObservation:
        """Edit a file.

        Args:
            command: view, create, str_replace, insert or undo_edit.
            path: The file, absolute.
            **args: ``file_text``, ``old_str``, ``new_str``, ``insert_line`` as the command
                needs them.

        Returns:
            What the editor says, and the diff.
        """
        return cast(FileEditObservation, self._act("edit", path=path, command=command, **args))

    def browse(self, url: str, *, return_axtree: bool = False) -> BrowserOutputObservation:
        """Open a page.

        Args:
            url: Its address.
            return_axtree: Also return the accessibility tree as an object.

        Returns:
            Its text and a screenshot.
        """
        observation = self._act("browse", url=url, return_axtree=return_axtree)
        return cast(BrowserOutputObservation, observation)

    def interact(self, actions: str, *, return_axtree: bool = False) -> BrowserOutputObservation:
        """Act on the page that is open.

        Args:
            actions: Calls of BrowserGym's action language, such as ``click("12")``.
            return_axtree: Also return the accessibility tree as an object.

        Returns:
            The page afterwards, with the accessibility tree as text.
        """
        observation = self._act(
            "browse_interactive", browser_actions=actions, return_axtree=return_axtree
        )
        return cast(BrowserOutputObservation, observation)
