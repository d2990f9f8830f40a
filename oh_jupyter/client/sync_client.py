"""The blocking client: a facade of the asynchronous one."""

from __future__ import annotations

import weakref
from collections.abc import Awaitable, Callable, Iterator
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from oh_jupyter.client.async_client import AsyncRuntimeClient
from oh_jupyter.client.thread import ClientThread
from oh_jupyter.events import Event

T = TypeVar("T")
P = ParamSpec("P")


def _blocking(
    method: Callable[Concatenate[AsyncRuntimeClient, P], Awaitable[T]],
) -> Callable[Concatenate[RuntimeClient, P], T]:
    """Make the blocking version of a method, with its docstring and signature."""

    @wraps(method)
    def call(self: RuntimeClient, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._wait(method, self._client, *args, **kwargs)

    return call


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
        client_name: str = "",
    ) -> None:
        """Make a client; nothing is sent yet.

        Args:
            url: The Jupyter server's address, such as ``http://127.0.0.1:8888``, or that of the
                extension on it, ending in ``/oh_jupyter``.
            token: The server's token.
            kernel_id: An open kernel; None for the default one, which is started when needed.
            session_api_key: OpenHands' session key, in place of a token.
            timeout: Seconds to connect; the server itself bounds the time of a response.
            client_name: Your program's name in ASCII, by which the log and questions call it.
        """
        self.kernel_id = kernel_id
        self._client = AsyncRuntimeClient(
            url,
            token,
            kernel_id,
            session_api_key=session_api_key,
            timeout=timeout,
            client_name=client_name,
        )
        self._thread = ClientThread(self._client.close)
        # The thread of a client that nobody closes must end.
        self._finalizer = weakref.finalize(self, self._thread.close)

    def __enter__(self) -> Self:
        """Enter a ``with`` block."""
        return self

    def __exit__(self, *exc_info: object) -> None:
        """Close the connections."""
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._finalizer()

    def _wait(self, work: Callable[..., Awaitable[T]], *args: Any, **options: Any) -> T:
        """Call a method of the client and return its result; an interrupt cancels the request."""
        return self._thread.wait(work, *args, **options)

    execute = _blocking(AsyncRuntimeClient.execute)
    run = _blocking(AsyncRuntimeClient.run)
    run_ipython = _blocking(AsyncRuntimeClient.run_ipython)
    run_cell = _blocking(AsyncRuntimeClient.run_cell)
    read = _blocking(AsyncRuntimeClient.read)
    write = _blocking(AsyncRuntimeClient.write)
    edit = _blocking(AsyncRuntimeClient.edit)
    browse = _blocking(AsyncRuntimeClient.browse)
    interact = _blocking(AsyncRuntimeClient.interact)
    alive = _blocking(AsyncRuntimeClient.alive)
    server_info = _blocking(AsyncRuntimeClient.server_info)
    generation = _blocking(AsyncRuntimeClient.generation)
    list_files = _blocking(AsyncRuntimeClient.list_files)
    upload = _blocking(AsyncRuntimeClient.upload)
    download = _blocking(AsyncRuntimeClient.download)
    read_bytes = _blocking(AsyncRuntimeClient.read_bytes)
    read_into = _blocking(AsyncRuntimeClient.read_into)
    write_bytes = _blocking(AsyncRuntimeClient.write_bytes)
    history = _blocking(AsyncRuntimeClient.history)
    skills = _blocking(AsyncRuntimeClient.skills)
    waiting = _blocking(AsyncRuntimeClient.waiting)
    confirm = _blocking(AsyncRuntimeClient.confirm)
    store_list = _blocking(AsyncRuntimeClient.store_list)
    store_read = _blocking(AsyncRuntimeClient.store_read)
    store_write = _blocking(AsyncRuntimeClient.store_write)
    store_delete = _blocking(AsyncRuntimeClient.store_delete)

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
