"""The client that waits."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

from oh_jupyter.client.calls import Calls, SentEvents
from oh_jupyter.client.connection import BROKEN, Connection
from oh_jupyter.errors import KernelNotFoundError, ServerError
from oh_jupyter.events import (
    Action,
    BrowseInteractiveAction,
    BrowseURLAction,
    CmdRunAction,
    Event,
    FileEditAction,
    FileReadAction,
    FileWriteAction,
    IPythonRunCellAction,
    Observation,
)

__all__ = ["RuntimeClient"]


class RuntimeClient:
    """A runtime in a Jupyter kernel, reached through the server extension.

    It may be used from several threads. A broken connection loses no answer.
    """

    def __init__(
        self,
        url: str,
        token: str = "",
        kernel_id: str | None = None,
        *,
        session_api_key: str | None = None,
        timeout: float = 10.0,
    ) -> None:
        """Make a client; nothing is sent yet.

        Args:
            url: The Jupyter server's address, such as ``http://127.0.0.1:8888``, or that of the
                extension on it, ending in ``/oh_jupyter``.
            token: The server's token.
            kernel_id: An open kernel; None for the default one, which is started when needed.
            session_api_key: OpenHands' session key, in place of a token.
            timeout: Seconds to connect; the server itself sees to it that answers come.
        """
        self._calls = Calls(url, token, kernel_id, session_api_key)
        self._connection = Connection(self._calls, timeout)

    def __enter__(self) -> Self:
        """Begin a ``with`` block."""
        return self

    def __exit__(self, *exc_info: object) -> None:
        """Close at its end."""
        self.close()

    def close(self) -> None:
        """Give the connections back."""
        self._connection.close()

    def execute(self, action: Action | dict[str, Any]) -> Observation:
        """Carry out an Action.

        Args:
            action: The Action, or its wire form.

        Returns:
            Its Observation.

        Raises:
            OhJupyterError: The server or the kernel refused, as the error raised there.
            ServerError: The server cannot be reached.
        """
        request = self._calls.execute(action)
        try:
            return self._connection.send(request)
        except KeyboardInterrupt:
            self._connection.send(self._calls.cancel(request))
            raise

    def run(self, command: str, timeout: float | None = None, **args: Any) -> Observation:
        """Run a command in the shell.

        Args:
            command: The command.
            timeout: Hard limit in seconds.
            **args: Other arguments of ``CmdRunAction``.

        Returns:
            The Observation.
        """
        action = CmdRunAction(command, **args)
        if timeout is not None:
            action.set_hard_timeout(timeout)
        return self.execute(action)

    def run_ipython(self, code: str, timeout: float | None = None) -> Observation:
        """Run a cell in the kernel.

        Args:
            code: The cell.
            timeout: Seconds after which it is interrupted.

        Returns:
            The Observation.
        """
        action = IPythonRunCellAction(code)
        action.timeout = timeout
        return self.execute(action)

    def read(self, path: str, **args: Any) -> Observation:
        """Read a file.

        Args:
            path: Which.
            **args: Other arguments of ``FileReadAction``.

        Returns:
            The Observation.
        """
        return self.execute(FileReadAction(path, **args))

    def write(self, path: str, content: str, **args: Any) -> Observation:
        """Write a file.

        Args:
            path: Which.
            content: Its text.
            **args: Other arguments of ``FileWriteAction``.

        Returns:
            The Observation.
        """
        return self.execute(FileWriteAction(path, content, **args))

    def edit(self, command: str, path: str, **args: Any) -> Observation:
        """Have the editor do something.

        Args:
            command: A command of the editor, such as ``str_replace``.
            path: The file.
            **args: Other arguments of ``FileEditAction``.

        Returns:
            The Observation.
        """
        return self.execute(FileEditAction(path, command=command, **args))

    def browse(self, url: str) -> Observation:
        """Visit a page.

        Args:
            url: Its address.

        Returns:
            The Observation.
        """
        return self.execute(BrowseURLAction(url))

    def interact(self, actions: str, return_axtree: bool = False) -> Observation:
        """Act on the page.

        Args:
            actions: Browser actions, such as ``click('12')``, one a line.
            return_axtree: Return the tree as data, too.

        Returns:
            The Observation.
        """
        return self.execute(BrowseInteractiveAction(actions, return_axtree=return_axtree))

    def alive(self) -> bool:
        """Ask whether the server answers, and has the kernel; nothing is started.

        Returns:
            Whether it does.
        """
        try:
            return self._connection.send(self._calls.alive())
        except (ServerError, KernelNotFoundError):
            return False

    def server_info(self) -> dict[str, Any]:
        """Ask how the server does.

        Returns:
            Uptime, idle time and resources of the server, and the runtime's own figures.
        """
        return self._connection.send(self._calls.server_info())

    def list_files(self, path: str | None = None) -> list[str]:
        """List a directory of the kernel's machine.

        Args:
            path: Which; None for the workspace.

        Returns:
            Names, directories with a slash at the end.
        """
        return self._connection.send(self._calls.list_files(path))

    def upload(self, source: str | os.PathLike[str], destination: str) -> None:
        """Copy a file, or a directory with all that is in it, to the kernel's machine.

        Args:
            source: What to copy.
            destination: Absolute path of the directory where it arrives.

        Raises:
            TransferError: It cannot be kept there.
            OSError: The source cannot be read.
        """
        path = Path(source).resolve()
        if path.is_dir():
            with self._calls.zipped(path) as opened:
                self._connection.send(
                    self._calls.upload(opened, f"{path.name}.zip", destination, True)
                )
            return
        with path.open("rb") as opened:
            self._connection.send(self._calls.upload(opened, path.name, destination, False))

    def download(self, path: str, target: str | os.PathLike[str]) -> Path:
        """Fetch a file or directory as a zip file.

        Args:
            path: Absolute path on the kernel's machine.
            target: The zip file to write.

        Returns:
            The target.

        Raises:
            TransferError: There is nothing, or it cannot be read.
        """
        request = self._calls.download(path)
        with self._connection.stream(request) as answer, Path(target).open("wb") as sink:
            for piece in answer.iter_bytes():
                sink.write(piece)
        return Path(target)

    def history(self, start: int = 0, limit: int = 1000) -> list[Event]:
        """List recorded Actions and Observations.

        Args:
            start: Id of the first.
            limit: How many at most.

        Returns:
            The events.
        """
        return self._connection.send(self._calls.history(start, limit))

    def events(self, start: int = 0) -> Iterator[Event]:
        """Follow Actions and Observations: those recorded, then each new one as it comes.

        It goes on after a broken connection, and with the events of a restarted kernel.

        Args:
            start: Id of the first.

        Yields:
            The events.

        Raises:
            ServerError: The kernel is gone.
        """
        sent = SentEvents()
        while True:
            try:
                with self._connection.stream(self._calls.watch(start, sent.last)) as answer:
                    for line in answer.iter_lines():
                        yield from sent.feed(line)
            except BROKEN:
                continue

    def skills(self) -> list[dict[str, str]]:
        """List the agent skills.

        Returns:
            Name, signature and docstring of each.
        """
        return self._connection.send(self._calls.skills())

    def waiting(self) -> list[dict[str, Any]]:
        """List the Actions that wait for a person.

        Returns:
            Id, message and reason of each.
        """
        return self._connection.send(self._calls.waiting())

    def confirm(self, id: int, *, approve: bool = True) -> None:
        """Decide on a waiting Action.

        Args:
            id: Its id.
            approve: Whether it may begin.

        Raises:
            ConfirmationError: It does not wait.
            ServerError: 403: nothing is approved over REST, unless the server's
                ``confirmation_over_rest`` is set; rejecting is always possible.
        """
        self._connection.send(self._calls.confirm(id, approve))

    def store_list(self, path: str = "") -> list[str]:
        """List a directory of the file store.

        Args:
            path: Which.

        Returns:
            Paths, directories with a slash at the end.
        """
        return self._connection.send(self._calls.store_list(path))

    def store_read(self, path: str) -> bytes:
        """Read a file of the store.

        Args:
            path: Which.

        Returns:
            Its contents.

        Raises:
            TransferNotFoundError: It is not there.
        """
        return self._connection.send(self._calls.store("GET", path))

    def store_write(self, path: str, contents: bytes) -> None:
        """Write a file of the store: its path, and its contents."""
        self._connection.send(self._calls.store("PUT", path, contents))

    def store_delete(self, path: str) -> None:
        """Delete a file or directory of the store."""
        self._connection.send(self._calls.store("DELETE", path))
