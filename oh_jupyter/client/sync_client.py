"""The blocking client: a facade of the asynchronous one."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self, TypeVar

from anyio import CancelScope
from anyio.from_thread import BlockingPortal, start_blocking_portal

from oh_jupyter.client.async_client import AsyncRuntimeClient
from oh_jupyter.errors import ServerError
from oh_jupyter.events import Action, Event, Observation

T = TypeVar("T")


def wait_in(
    portal: BlockingPortal, work: Callable[..., Awaitable[T]], *args: Any, **options: Any
) -> T:
    """Await something in a portal's thread and return the result; an interrupt cancels it."""
    ended = threading.Event()
    scopes: list[CancelScope] = []

    async def run() -> T:
        with CancelScope() as scope:
            scopes.append(scope)
            try:
                return await work(*args, **options)
            finally:
                ended.set()
        raise InterruptedError("The wait for the result was interrupted")

    def cancel() -> None:
        for scope in scopes:
            scope.cancel()

    try:
        return portal.start_task_soon(run).result()
    except KeyboardInterrupt:
        # It may come before there is a future; the task has started when this call runs.
        portal.call(cancel)
        if scopes:
            ended.wait()
        raise


class RuntimeClient:
    """A runtime in a Jupyter kernel, reached through the server extension.

    It is thread-safe. A broken connection loses no result.
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
            timeout: Seconds to connect; the server itself bounds the time of a response.
        """
        self.kernel_id = kernel_id
        self._client = AsyncRuntimeClient(
            url, token, kernel_id, session_api_key=session_api_key, timeout=timeout
        )
        self._open = ExitStack()
        self._starting = threading.Lock()
        self._portal: BlockingPortal | None = None
        # The thread of a client that nobody closes must end.
        self._finalizer = weakref.finalize(self, self._open.close)

    def __enter__(self) -> Self:
        """Enter a ``with`` block."""
        return self

    def __exit__(self, *exc_info: object) -> None:
        """Close the connections."""
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._finalizer()

    def _running_portal(self) -> BlockingPortal:
        """Return the portal to the client's thread, starting it if necessary."""
        with self._starting:
            if not self._finalizer.alive:
                raise ServerError("This client is closed; create a new one")
            if self._portal is None:
                self._portal = self._open.enter_context(start_blocking_portal())
                self._open.callback(self._portal.call, self._client.close)
            return self._portal

    def _wait(self, work: Callable[..., Awaitable[T]], *args: Any, **options: Any) -> T:
        """Call a method of the client and return its result; an interrupt cancels the request."""
        return wait_in(self._running_portal(), work, *args, **options)

    def execute(self, action: Action | dict[str, Any]) -> Observation:
        """Execute an Action.

        Args:
            action: The Action, or its wire form.

        Returns:
            Its Observation.

        Raises:
            OhJupyterError: The server or the kernel rejected it; the error raised there.
            ServerError: The server cannot be reached.
        """
        return self._wait(self._client.execute, action)

    def run(self, command: str, timeout: float | None = None, **args: Any) -> Observation:
        """Run a command in the shell.

        Args:
            command: The command.
            timeout: Hard limit in seconds.
            **args: Other arguments of ``CmdRunAction``.

        Returns:
            The Observation.
        """
        return self._wait(self._client.run, command, timeout, **args)

    def run_ipython(self, code: str, timeout: float | None = None) -> Observation:
        """Run a cell in the kernel.

        Args:
            code: The cell.
            timeout: Seconds after which it is interrupted.

        Returns:
            The Observation.
        """
        return self._wait(self._client.run_ipython, code, timeout)

    def read(self, path: str, **args: Any) -> Observation:
        """Read a file.

        Args:
            path: The file.
            **args: Other arguments of ``FileReadAction``.

        Returns:
            The Observation.
        """
        return self._wait(self._client.read, path, **args)

    def write(self, path: str, content: str, **args: Any) -> Observation:
        """Write a file.

        Args:
            path: The file.
            content: Its text.
            **args: Other arguments of ``FileWriteAction``.

        Returns:
            The Observation.
        """
        return self._wait(self._client.write, path, content, **args)

    def edit(self, command: str, path: str, **args: Any) -> Observation:
        """Run a command of the editor.

        Args:
            command: A command of the editor, such as ``str_replace``.
            path: The file.
            **args: Other arguments of ``FileEditAction``.

        Returns:
            The Observation.
        """
        return self._wait(self._client.edit, command, path, **args)

    def browse(self, url: str) -> Observation:
        """Visit a page.

        Args:
            url: Its address.

        Returns:
            The Observation.
        """
        return self._wait(self._client.browse, url)

    def interact(self, actions: str, return_axtree: bool = False) -> Observation:
        """Act on the page.

        Args:
            actions: Browser actions, such as ``click('12')``, one a line.
            return_axtree: Return the tree as data, too.

        Returns:
            The Observation.
        """
        return self._wait(self._client.interact, actions, return_axtree)

    def alive(self) -> bool:
        """Return whether the server responds and has the kernel; start nothing.

        Returns:
            True if both are there.
        """
        return self._wait(self._client.alive)

    def server_info(self) -> dict[str, Any]:
        """Return figures of the server and the runtime.

        Returns:
            Uptime, idle time and resources of the server, and the runtime's own figures.
        """
        return self._wait(self._client.server_info)

    def generation(self) -> str:
        """Return the id of the runtime; it changes when its state is lost.

        Returns:
            Its id.

        Raises:
            ExtensionMissingError: The kernel has none, because it has not been used yet.
        """
        return self._wait(self._client.generation)

    def list_files(self, path: str | None = None) -> list[str]:
        """List a directory of the kernel's machine.

        Args:
            path: The directory; None for the workspace.

        Returns:
            Names; those of directories end in a slash.
        """
        return self._wait(self._client.list_files, path)

    def upload(self, source: str | os.PathLike[str], destination: str) -> None:
        """Copy a file or a whole directory to the kernel's machine.

        Args:
            source: What to copy.
            destination: Absolute path of the target directory.

        Raises:
            TransferError: It cannot be stored there.
            OSError: The source cannot be read.
        """
        self._wait(self._client.upload, source, destination)

    def download(self, path: str, target: str | os.PathLike[str]) -> Path:
        """Fetch a file or directory as a zip file.

        Args:
            path: Absolute path on the kernel's machine.
            target: The zip file to write.

        Returns:
            The target.

        Raises:
            TransferError: The path does not exist, or cannot be read.
        """
        return self._wait(self._client.download, path, target)

    def history(self, start: int = 0, limit: int = 1000) -> list[Event]:
        """List recorded Actions and Observations.

        Args:
            start: Id of the first.
            limit: Maximum number.

        Returns:
            The events.
        """
        return self._wait(self._client.history, start, limit)

    def events(self, start: int = 0) -> Iterator[Event]:
        """Yield recorded Actions and Observations, then each new one.

        Continues after a broken connection, and with the events of a restarted kernel.

        Args:
            start: Id of the first.

        Yields:
            The events.

        Raises:
            ServerError: The kernel is gone.
        """
        events = self._client.events(start)
        try:
            while True:
                yield self._wait(events.__anext__)
        finally:
            self._wait(events.aclose)

    def skills(self) -> list[dict[str, str]]:
        """List the agent skills.

        Returns:
            Name, signature and docstring of each.
        """
        return self._wait(self._client.skills)

    def waiting(self) -> list[dict[str, Any]]:
        """List the Actions that wait for a person.

        Returns:
            Id, message, reasons, diff of an edit, and remaining seconds of each.
        """
        return self._wait(self._client.waiting)

    def confirm(
        self, id: int, *, approve: bool = True, why: str = "", for_session: bool = False
    ) -> None:
        """Decide on a waiting Action.

        Args:
            id: Its id.
            approve: Whether it may start.
            why: Reason of a rejection, for the agent.
            for_session: Also approve later Actions of its type that wait for the same reasons.

        Raises:
            ConfirmationError: It is not waiting.
            ServerError: 403: approval over REST needs the server's ``confirmation_over_rest``;
                rejecting is always possible.
        """
        self._wait(self._client.confirm, id, approve=approve, why=why, for_session=for_session)

    def store_list(self, path: str = "") -> list[str]:
        """List a directory of the file store.

        Args:
            path: The directory.

        Returns:
            Paths; those of directories end in a slash.
        """
        return self._wait(self._client.store_list, path)

    def store_read(self, path: str) -> bytes:
        """Read a file of the store.

        Args:
            path: The file.

        Returns:
            Its contents.

        Raises:
            TransferNotFoundError: The file does not exist.
        """
        return self._wait(self._client.store_read, path)

    def store_write(self, path: str, contents: bytes) -> None:
        """Write a file of the store."""
        self._wait(self._client.store_write, path, contents)

    def store_delete(self, path: str) -> None:
        """Delete a file or directory of the store."""
        self._wait(self._client.store_delete, path)
