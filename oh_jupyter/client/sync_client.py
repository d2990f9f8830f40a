"""The client that waits: a face over the one to be awaited."""

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
    """The result of what is awaited in a portal's thread; an interrupt cancels it first."""
    ended = threading.Event()
    begun: list[CancelScope] = []

    async def run() -> T:
        with CancelScope() as scope:
            begun.append(scope)
            try:
                return await work(*args, **options)
            finally:
                ended.set()
        raise InterruptedError("Nobody waits for the result any more")

    def cancel() -> None:
        for scope in begun:
            scope.cancel()

    try:
        return portal.start_task_soon(run).result()
    except KeyboardInterrupt:
        # It may come before there is a future; what was started begins before this is called.
        portal.call(cancel)
        if begun:
            ended.wait()
        raise


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
        self.kernel_id = kernel_id
        self._client = AsyncRuntimeClient(
            url, token, kernel_id, session_api_key=session_api_key, timeout=timeout
        )
        self._open = ExitStack()
        self._starting = threading.Lock()
        self._portal: BlockingPortal | None = None
        # A client that nobody closes must not keep its thread.
        self._finalizer = weakref.finalize(self, self._open.close)

    def __enter__(self) -> Self:
        """Begin a ``with`` block."""
        return self

    def __exit__(self, *exc_info: object) -> None:
        """Close at its end."""
        self.close()

    def close(self) -> None:
        """Give the connections back."""
        self._finalizer()

    def _running_portal(self) -> BlockingPortal:
        """The way to the thread in which the client lives; started when it is first needed."""
        with self._starting:
            if not self._finalizer.alive:
                raise ServerError("This client is closed; make another one")
            if self._portal is None:
                self._portal = self._open.enter_context(start_blocking_portal())
                self._open.callback(self._portal.call, self._client.close)
            return self._portal

    def _wait(self, work: Callable[..., Awaitable[T]], *args: Any, **options: Any) -> T:
        """The result of a method of the client; an interrupt takes back what was asked."""
        return wait_in(self._running_portal(), work, *args, **options)

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
            path: Which.
            **args: Other arguments of ``FileReadAction``.

        Returns:
            The Observation.
        """
        return self._wait(self._client.read, path, **args)

    def write(self, path: str, content: str, **args: Any) -> Observation:
        """Write a file.

        Args:
            path: Which.
            content: Its text.
            **args: Other arguments of ``FileWriteAction``.

        Returns:
            The Observation.
        """
        return self._wait(self._client.write, path, content, **args)

    def edit(self, command: str, path: str, **args: Any) -> Observation:
        """Have the editor do something.

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
        """Ask whether the server answers, and has the kernel; nothing is started.

        Returns:
            Whether it does.
        """
        return self._wait(self._client.alive)

    def server_info(self) -> dict[str, Any]:
        """Ask how the server does.

        Returns:
            Uptime, idle time and resources of the server, and the runtime's own figures.
        """
        return self._wait(self._client.server_info)

    def generation(self) -> str:
        """Ask which runtime it is; another answer later tells that its state is lost.

        Returns:
            Its id.

        Raises:
            ExtensionMissingError: The kernel has none, since nothing was asked of it yet.
        """
        return self._wait(self._client.generation)

    def list_files(self, path: str | None = None) -> list[str]:
        """List a directory of the kernel's machine.

        Args:
            path: Which; None for the workspace.

        Returns:
            Names, directories with a slash at the end.
        """
        return self._wait(self._client.list_files, path)

    def upload(self, source: str | os.PathLike[str], destination: str) -> None:
        """Copy a file, or a directory with all that is in it, to the kernel's machine.

        Args:
            source: What to copy.
            destination: Absolute path of the directory where it arrives.

        Raises:
            TransferError: It cannot be kept there.
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
            TransferError: There is nothing, or it cannot be read.
        """
        return self._wait(self._client.download, path, target)

    def history(self, start: int = 0, limit: int = 1000) -> list[Event]:
        """List recorded Actions and Observations.

        Args:
            start: Id of the first.
            limit: How many at most.

        Returns:
            The events.
        """
        return self._wait(self._client.history, start, limit)

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
            Id, message, reasons, the diff of an edit, and the seconds that are left, of each.
        """
        return self._wait(self._client.waiting)

    def confirm(
        self, id: int, *, approve: bool = True, why: str = "", for_session: bool = False
    ) -> None:
        """Decide on a waiting Action.

        Args:
            id: Its id.
            approve: Whether it may begin.
            why: What the agent is told about a rejection.
            for_session: Let later Actions of its type begin, too, that wait for the same reasons.

        Raises:
            ConfirmationError: It does not wait.
            ServerError: 403: nothing is approved over REST, unless the server's
                ``confirmation_over_rest`` is set; rejecting is always possible.
        """
        self._wait(self._client.confirm, id, approve=approve, why=why, for_session=for_session)

    def store_list(self, path: str = "") -> list[str]:
        """List a directory of the file store.

        Args:
            path: Which.

        Returns:
            Paths, directories with a slash at the end.
        """
        return self._wait(self._client.store_list, path)

    def store_read(self, path: str) -> bytes:
        """Read a file of the store.

        Args:
            path: Which.

        Returns:
            Its contents.

        Raises:
            TransferNotFoundError: It is not there.
        """
        return self._wait(self._client.store_read, path)

    def store_write(self, path: str, contents: bytes) -> None:
        """Write a file of the store: its path, and its contents."""
        self._wait(self._client.store_write, path, contents)

    def store_delete(self, path: str) -> None:
        """Delete a file or directory of the store."""
        self._wait(self._client.store_delete, path)
