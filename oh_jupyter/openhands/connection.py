"""The runtime that the tools work on: this kernel's, or one behind a Jupyter server."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from typing import TYPE_CHECKING, Any, Protocol

from oh_jupyter.errors import AgentError, OhJupyterError
from oh_jupyter.events import Action, ErrorObservation, Observation

if TYPE_CHECKING:
    from oh_jupyter.runtime import Runtime

CANCELLED = "The action was cancelled."


class RuntimeConnection(Protocol):
    """A runtime that executes Actions as an agent's."""

    def execute(
        self, action: Action, started: Callable[[Future[Observation]], None]
    ) -> Observation:
        """Execute an Action; ``started`` receives a future whose cancellation cancels it."""
        ...

    def export(self, variables: Mapping[str, str]) -> None:
        """Set variables of the shell without logging them; raise AgentError or ShellError."""
        ...

    def end_shell(self) -> None:
        """End the shell and its processes; the next command starts another; raise AgentError."""
        ...


class KernelConnection:
    """The runtime of this process, which is a kernel."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    def execute(
        self, action: Action, started: Callable[[Future[Observation]], None]
    ) -> Observation:
        """Execute an Action; the main thread runs its cells meanwhile."""
        from oh_jupyter.kernel.cells.main_thread import MainThreadWait

        def start(coroutine: Coroutine[Any, Any, Observation]) -> Future[Observation]:
            future = self._runtime.submit(coroutine)
            started(future)
            return future

        coroutine = self._runtime.executor.run_action(action, "agent")
        if threading.current_thread() is threading.main_thread():
            return MainThreadWait().wait_for(start, coroutine)
        return start(coroutine).result()

    def export(self, variables: Mapping[str, str]) -> None:
        """Set variables of the shell without logging them; raise ShellError."""
        self._runtime.submit(self._runtime.executor.set_env(variables, cells=False)).result()

    def end_shell(self) -> None:
        """End the shell and its processes; the next command starts another."""
        self._runtime.submit(self._runtime.executor.end_shell()).result()


class ServerConnection:
    """A runtime behind a Jupyter server, over REST."""

    def __init__(self, url: str, token: str = "", kernel_id: str | None = None) -> None:
        from anyio.from_thread import start_blocking_portal

        from oh_jupyter.client import AsyncRuntimeClient

        self._client = AsyncRuntimeClient(url, token, kernel_id, client_name="OpenHands")
        self._opened = start_blocking_portal()
        self._portal = self._opened.__enter__()

    def execute(
        self, action: Action, started: Callable[[Future[Observation]], None]
    ) -> Observation:
        """Execute an Action; an interrupt cancels it."""
        future: Future[Observation] = self._portal.start_task_soon(self._client.execute, action)
        started(future)
        try:
            return future.result()
        except KeyboardInterrupt:
            future.cancel()
            raise

    def export(self, variables: Mapping[str, str]) -> None:
        """Raise AgentError: the runtime's log would show the values."""
        raise AgentError(
            f"{', '.join(variables)} cannot be set in a shell behind a Jupyter server. Set it in "
            "the notebook with oh.set_env, or run the agent in the notebook's kernel."
        )

    def end_shell(self) -> None:
        """Raise AgentError."""
        raise AgentError(
            "A shell behind a Jupyter server cannot be replaced from here. A person can end it in "
            "JupyterLab, under Running."
        )

    def close(self) -> None:
        """Close the connections."""
        self._portal.call(self._client.close)
        self._opened.__exit__(None, None, None)


_connected: RuntimeConnection | None = None


def connect(url: str, token: str = "", kernel_id: str | None = None) -> ServerConnection:
    """Use a kernel elsewhere for the tools of all later conversations of this process.

    Args:
        url: The Jupyter server's address, or that of the extension or of a kernel on it.
        token: The server's token.
        kernel_id: An open kernel; None for the default one.

    Returns:
        The connection; close it at the end.
    """
    global _connected
    _connected = server = ServerConnection(url, token, kernel_id)
    return server


def connect_as_guest(command: Sequence[str]) -> None:
    """Use the kernel whose guest this process is, by the program of its tools."""
    from oh_jupyter.client.guest_connection import GuestConnection

    global _connected
    _connected = GuestConnection(command, "OpenHands")


def connection() -> RuntimeConnection:
    """Return the open connection, this kernel's, or OH_URL's; raise AgentError without any."""
    global _connected
    if _connected is None:
        _connected = _of_this_kernel() or _of_environment()
    return _connected


def _of_this_kernel() -> RuntimeConnection | None:
    if "IPython" not in sys.modules:
        return None
    from oh_jupyter.kernel.extension import loaded

    extension = loaded()
    return None if extension is None else KernelConnection(extension.runtime)


def _of_environment() -> RuntimeConnection:
    url = os.environ.get("OH_URL", "")
    if not url:
        raise AgentError(
            "There is no kernel to work in: load oh_jupyter in this one with %load_ext oh_jupyter, "
            'or name another by eval "$(oh-jupyter env)", or by oh_jupyter.openhands.connect(url)'
        )
    return ServerConnection(url, os.environ.get("OH_TOKEN", ""))


class Interruptible:
    """Running Actions of a connection, which another thread can cancel."""

    def __init__(self, connection: RuntimeConnection) -> None:
        self.connection = connection
        self._running: set[Future[Observation]] = set()
        self._interrupted: set[Future[Observation]] = set()
        self._lock = threading.Lock()

    def execute(self, action: Action) -> Observation:
        """Execute an Action; interrupts and errors become Observations."""
        mine: list[Future[Observation]] = []

        def started(future: Future[Observation]) -> None:
            mine.append(future)
            with self._lock:
                self._running.add(future)

        try:
            return self.connection.execute(action, started)
        except OhJupyterError as error:
            return ErrorObservation(str(error))
        except (CancelledError, KeyboardInterrupt):
            if not self._interrupted & set(mine):
                raise
            return ErrorObservation(CANCELLED, outcome="cancelled")
        finally:
            with self._lock:
                self._running -= set(mine)
                self._interrupted -= set(mine)

    def interrupt(self) -> None:
        """Cancel running Actions, from any thread."""
        with self._lock:
            running = list(self._running)
            self._interrupted |= self._running
        for future in running:
            future.cancel()
