"""A runtime: its thread, its executor, and calls from other threads."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import uuid
from collections.abc import Callable, Coroutine, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import fields
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from oh_jupyter.background import LoopThread, threads_have_ended
from oh_jupyter.config import SESSION_KEY_VARIABLE, Settings, check_value
from oh_jupyter.errors import OhJupyterError, RuntimeClosedError
from oh_jupyter.events.stream import EventStream
from oh_jupyter.installed import exclude
from oh_jupyter.plugins import JupyterPlugin, Plugin, VSCodePlugin, make_plugins
from oh_jupyter.plugins.registry import ALL_PLUGINS
from oh_jupyter.runtime.components import MIN_SECRET_CHARS
from oh_jupyter.runtime.executor import ActionExecutor
from oh_jupyter.runtime.mcp import parse_servers
from oh_jupyter.runtime.resources import shell_user
from oh_jupyter.sandbox.hosts import parse_hosts
from oh_jupyter.storage import FileStore
from oh_jupyter.storage.factory import make_file_store
from oh_jupyter.storage.spool import spool_while_unreachable

if TYPE_CHECKING:
    from oh_jupyter.events import Action, EventSource, Observation

T = TypeVar("T")

CLOSE_TIMEOUT_SECONDS = 10.0


class RuntimeThread(LoopThread):
    """Event loop and thread of one runtime; a new ``generation`` means lost state."""

    def __init__(self, generation: str | None = None) -> None:
        super().__init__("oh-runtime-loop")
        self.generation = generation or uuid.uuid4().hex
        self._closed = False

    def submit(self, coroutine: Coroutine[Any, Any, T]) -> Future[T]:
        """Start a coroutine on the loop; raise RuntimeClosedError after ``close``."""
        if threads_have_ended():
            coroutine.close()
            raise RuntimeClosedError("The runtime has ended: Python is exiting")
        if self._closed:
            coroutine.close()
            raise RuntimeClosedError(
                "The runtime was closed. Load it again with %reload_ext oh_jupyter"
            )
        return super().submit(coroutine)

    def close(self) -> None:
        """Cancel all tasks, stop the loop and join the thread; idempotent."""
        if self._closed or threads_have_ended():
            return
        self._closed = True
        super().submit(self._end_tasks())
        self.join(CLOSE_TIMEOUT_SECONDS)

    async def _end_tasks(self) -> None:
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        with contextlib.suppress(RuntimeError):  # at exit its threads have already ended
            await self.loop.shutdown_default_executor()
        self.loop.call_soon(self.loop.stop)


logger = logging.getLogger(__name__)


class Runtime:
    """One ActionExecutor on one RuntimeThread.

    Attributes:
        settings: The operator's settings.
        executor: The executor. Its coroutines run on the runtime thread only.
        generation: Id of this runtime.
    """

    def __init__(
        self,
        settings: Settings,
        plugins: Mapping[str, Plugin] | None = None,
        *,
        generation: str | None = None,
    ) -> None:
        """Make and start a runtime; shell and browser start at their first use.

        Args:
            settings: The operator's settings.
            plugins: Existing plugins by name.
            generation: The runtime's id, if it was already announced; None for a new one.

        Raises:
            OhJupyterError: A plugin or the file store cannot be made.
        """
        self.settings = settings
        self._thread = RuntimeThread(generation)
        self._closed = False
        try:
            self.executor = self._thread.submit(self._make_executor(plugins)).result()
        except BaseException:
            self._thread.close()
            raise
        if settings.checkpoints == "auto":  # at once: files that change from now on are others'
            self.submit(self.executor.turns.settle())

    async def _make_executor(self, plugins: Mapping[str, Plugin] | None) -> ActionExecutor:
        store = make_file_store(self.settings)
        workspace = os.path.abspath(os.path.expanduser(self.settings.workspace_dir or os.getcwd()))
        exclude(workspace)
        existing = {**(plugins or self._cells_plugin()), **self._vscode_plugin(workspace)}
        return ActionExecutor(
            self.settings,
            workspace_dir=workspace,
            file_store=store,
            events=_event_log(spool_while_unreachable(store), self.generation, self.settings),
            plugins=make_plugins(self.settings.plugins, existing),
        )

    def _cells_plugin(self) -> dict[str, Plugin]:
        """Return the plugin that runs cells outside of this kernel, locally or on a server."""
        limit = self.settings.cell_output_limit
        if not self.settings.kernel_url:
            return {JupyterPlugin.name: JupyterPlugin(output_limit=limit)}
        from oh_jupyter.cells.remote import RemoteKernel

        kernel = RemoteKernel(self.settings.kernel_url, self.settings.kernel_token)
        return {JupyterPlugin.name: JupyterPlugin(kernel=kernel, output_limit=limit)}

    def _vscode_plugin(self, workspace: str) -> dict[str, Plugin]:
        """Return the VS Code plugin for these settings; it starts only on request."""
        settings = self.settings
        plugin = VSCodePlugin(
            workspace, path=settings.vscode_path, base_url=settings.vscode_base_url
        )
        return {plugin.name: plugin}

    @property
    def generation(self) -> str:
        """Id of this runtime; a new id means that state was lost."""
        return self._thread.generation

    @property
    def events(self) -> EventStream:
        """Log of Actions and Observations."""
        return self.executor.events

    @property
    def file_store(self) -> FileStore:
        """Store of events and artefacts."""
        return self.executor.file_store

    def submit(self, coroutine: Coroutine[Any, Any, T]) -> Future[T]:
        """Start a coroutine on the runtime thread; cancelling the future cancels it.

        Raises RuntimeClosedError if the runtime was closed.
        """
        return self._thread.submit(coroutine)

    def submit_action(self, action: Action, source: EventSource = "agent") -> Future[Observation]:
        """Start an Action with ``ActionExecutor.run_action``; the future can be cancelled."""
        return self.submit(self.executor.run_action(action, source))

    def status(self) -> dict[str, Any]:
        """Return the status of the runtime as JSON-ready data."""
        return {"generation": self.generation, **self.executor.status()}

    def close(self) -> None:
        """End everything that belongs to the runtime; idempotent.

        When Python is past its exit handlers, that has ended or ends with this process.
        """
        if self._closed or threads_have_ended():
            return
        self._closed = True
        try:
            self.submit(self.executor.close()).result(timeout=20)
        except TimeoutError:
            logger.warning("The runtime did not close within 20 s")
        finally:
            self._thread.close()


def setting_faults(settings: Settings) -> Iterator[tuple[str, OhJupyterError]]:
    """Yield the names and errors of settings that a runtime rejects, except store and webhook."""
    custom = [name for name in settings.plugins if name not in ALL_PLUGINS]
    checks: dict[str, Callable[[], object]] = {
        "mcp_servers": lambda: parse_servers(settings.mcp_servers),
        "plugins": lambda: make_plugins(custom),
        "sandbox_hosts": lambda: parse_hosts(settings.sandbox_hosts),
        "username": lambda: shell_user(settings),
    }
    for setting in fields(Settings):
        name = setting.name
        try:
            check_value(name, getattr(settings, name))
            checks.get(name, lambda: None)()
        except OhJupyterError as error:
            yield name, error


def _event_log(store: FileStore, sid: str, settings: Settings) -> EventStream:
    """Return the log of a session, which masks the operator's secrets."""
    events = EventStream(store, sid, max_inline_chars=settings.max_inline_chars)
    values = [
        os.environ.get(SESSION_KEY_VARIABLE, ""),
        urlsplit(settings.file_store_web_hook_url or "").password or "",
    ]
    for setting in fields(Settings):
        value = getattr(settings, setting.name)
        if setting.metadata["secret"] and isinstance(value, dict | str):
            values += value.values() if isinstance(value, dict) else [value]
    for server in parse_servers(settings.mcp_servers):
        values += server.env.values()  # other fields are not secret
    # In "Bearer token", the token alone is a secret, too.
    words = {word for value in values for word in (value, *value.split())}
    events.mask(word for word in words if len(word) >= MIN_SECRET_CHARS)
    return events
