"""Routing of requests to kernels: an open notebook's, or the default one."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import Any

from jupyter_server.gateway.managers import GatewayKernelManager

from oh_jupyter.background import run_in_background
from oh_jupyter.errors import GatewayTimeoutError, KernelDiedError, KernelNotFoundError
from oh_jupyter.operations.actions import Interrupt
from oh_jupyter.server.default_kernel import DefaultKernel
from oh_jupyter.server.limits import RequestLimits
from oh_jupyter.server.links import GatewayLink, KernelLink, ZmqLink
from oh_jupyter.server.links.kernel_link import loading_cell

BOXED_PROVISIONER = "oh-jupyter-sandbox"
"""Name of the provisioner of sandboxed kernels in their kernelspec."""

KERNEL_EVENTS = "https://events.jupyter.org/jupyter_server/kernel_actions/v1"

logger = logging.getLogger(__name__)


def is_boxed_spec(metadata: Mapping[str, Any] | None) -> bool:
    """Return whether kernels with a kernelspec's metadata are in a sandbox as a whole."""
    provisioner = (metadata or {}).get("kernel_provisioner") or {}
    return bool(provisioner.get("provisioner_name") == BOXED_PROVISIONER)


class Router:
    """Links by kernel id, kept in step with deaths and restarts of the kernels."""

    def __init__(
        self,
        kernel_manager: Any,
        event_logger: Any,
        *,
        kernel_name: str | None = None,
        settings: Mapping[str, Any] | None = None,
        path: str = "",
        limits: RequestLimits | None = None,
        confirmation: str | None = None,
        kernel_gone: Callable[[], None] = lambda: None,
    ) -> None:
        """Make a router without links.

        ``settings`` apply in the default kernel; ``confirmation`` is the default policy of people's
        kernels; ``kernel_gone`` is called when the process of any kernel has ended.
        """
        self._kernels = kernel_manager
        self._events = event_logger
        self._default = DefaultKernel(
            kernel_manager, name=kernel_name, settings=settings, path=path
        )
        self._limits = limits or RequestLimits()
        self._confirmation = confirmation
        self._kernel_gone = kernel_gone
        self._links: dict[str, KernelLink] = {}
        self._being_restarted: set[str] = set()
        self._unwanted: set[str] = set()
        self._given_up: set[str] = set()
        self._watched: set[str] = set()
        self._deaths: dict[str, str] = {}  # of kernels without a link
        self._starting = asyncio.Lock()
        event_logger.add_listener(schema_id=KERNEL_EVENTS, listener=self._kernel_event)

    @property
    def default_kernel_id(self) -> str | None:
        """Id of the default kernel, or None while there is none."""
        return self._default.id

    def link(self, kernel_id: str) -> KernelLink:
        """Return the link to a kernel, or raise KernelNotFoundError."""
        self.check(kernel_id)
        link = self._links.get(kernel_id)
        if link is None:
            link = self._links[kernel_id] = self._connected(kernel_id)
            link.concurrency = self._limits.concurrency_limit()
            self._watch(kernel_id)
        self._touch(kernel_id)
        return link

    def _watch(self, kernel_id: str) -> None:
        """Get notified of a kernel's death; links to a gateway report it themselves."""
        if kernel_id in self._watched or kernel_id not in self._kernels:
            return
        self._watched.add(kernel_id)
        manager = self._kernels.get_kernel(kernel_id)
        for event in ("restart", "dead"):
            self._kernels.add_restart_callback(
                kernel_id, partial(self._died, kernel_id, manager, event == "dead"), event
            )

    def check(self, kernel_id: str) -> None:
        """Raise KernelNotFoundError unless the kernel exists."""
        if kernel_id in self._given_up:
            raise KernelNotFoundError(
                f"Kernel {kernel_id} died repeatedly, and Jupyter has given it up. Restart it "
                "from its notebook; it has another id then, see GET /api/kernels"
            )
        if kernel_id not in self._kernels:
            self._drop(kernel_id)
            raise KernelNotFoundError(
                f"There is no kernel {kernel_id!r} on this server. GET /api/kernels lists them"
            )

    def _connected(self, kernel_id: str) -> KernelLink:
        manager = self._kernels.get_kernel(kernel_id)
        if not isinstance(manager, GatewayKernelManager):
            return ZmqLink(kernel_id, manager, loading_cell({}, self._confirmation))
        # A gateway passes no arguments on to the kernels that it starts.
        settings = self._default.settings if kernel_id == self.default_kernel_id else {}
        died = partial(self._died, kernel_id, manager)
        load = loading_cell(settings, self._confirmation)
        return GatewayLink(kernel_id, manager, load, died)

    def is_boxed(self, kernel_id: str | None) -> bool:
        """Return whether a kernel, None for the default one, is in a sandbox as a whole.

        Its agents can change what its runtime answers, so it decides about nothing outside.
        """
        kernel_id = kernel_id or self._default.id
        if kernel_id is None or kernel_id not in self._kernels:
            return False
        spec = getattr(self._kernels.get_kernel(kernel_id), "kernel_spec", None)
        return is_boxed_spec(getattr(spec, "metadata", None))

    def workspace_of_box(self, kernel_id: str | None) -> str:
        """Return the directory that a kernel's sandbox may change, "" if it is not known."""
        kernel_id = kernel_id or self._default.id
        if kernel_id is None or kernel_id not in self._kernels:
            return ""
        provisioner = getattr(self._kernels.get_kernel(kernel_id), "provisioner", None)
        return str(getattr(provisioner, "workspace", ""))

    async def start_kernel(self, cwd: str) -> str:
        """Start a kernel like the default one in a directory, "" for its own; return its id."""
        return await self._default.start_another(cwd)

    async def default(self) -> KernelLink:
        """Return the link to the default kernel, started if necessary, or raise KernelError."""
        failures = self._default.failures
        try:
            link = await self._default_link()
            if not failures and not link.ever_answered and isinstance(link, ZmqLink):
                await link.ask("kernel_info_request", {})
        except KernelDiedError:
            if failures or self._default.failures != 1:
                raise
            return await self._default_link(retry=True)
        return link

    async def _default_link(self, *, retry: bool = False) -> KernelLink:
        """Return the link to the default kernel, which may not have replied to anything yet."""
        async with self._starting:
            if self._default.id is None or self._default.id not in self._kernels:
                kernel_id = await self._default.start(retry=retry)
                if kernel_id in self._deaths:
                    error = self._default.failed(self._deaths.pop(kernel_id))
                    self._discard(kernel_id)
                    raise error
            link = self.link(str(self._default.id))
            try:
                await link.open()
            except KernelNotFoundError:
                # A gateway does not report that it culled the kernel, or that it died there.
                self._kernels.remove_kernel(link.kernel_id)
                self._drop(link.kernel_id)
                if not link.ever_answered:
                    raise self._default.failed("ended") from None
                link = self.link(await self._default.start())
            except GatewayTimeoutError:
                if link.ever_answered:
                    raise
                self._drop(link.kernel_id)
                self._end(link.kernel_id)
                raise self._default.failed("did not start") from None
            if link.answered:
                self._default.answered()
            return link

    def _touch(self, kernel_id: str) -> None:
        """Show our requests to the culler: the server does not count them as activity."""
        self._kernels.get_kernel(kernel_id).last_activity = datetime.now(UTC)

    def _died(self, kernel_id: str, manager: Any, given_up: bool) -> None:
        """Handle a kernel's death; Jupyter restarts it now unless it has given it up."""
        if not given_up and not isinstance(manager, GatewayKernelManager):
            self._being_restarted.add(kernel_id)  # an event will report the restart
        self._kernel_gone()
        link = self._links.get(kernel_id)
        how = _how_it_ended(manager)
        if link is None:
            self._deaths[kernel_id] = how
            return
        if kernel_id == self._default.id and not link.answered:
            self._drop(kernel_id, self._default.failed(how))
            self._discard(kernel_id)
            return
        lost = f"Kernel {kernel_id} {how} before it answered; the state of its runtime is lost"
        if given_up:
            if kernel_id == self._default.id:
                self._default.id = None
                advice = "The next request starts another"
            else:
                self._given_up.add(kernel_id)
                advice = "Restart it from its notebook"
            often = "It died too often in a short time, and Jupyter has given it up"
            self._drop(kernel_id, KernelDiedError(f"{lost}. {often}. {advice}"))
        else:
            link.kernel_ended(KernelDiedError(f"{lost}. The next request finds a fresh one"))

    def _discard(self, kernel_id: str) -> None:
        """Shut down a kernel, as soon as Jupyter has restarted it if it does so now."""
        self._unwanted.add(kernel_id)
        if kernel_id not in self._being_restarted:
            self._end(kernel_id)

    def _end(self, kernel_id: str) -> None:
        """Shut down a kernel that dies at its start, before Jupyter restarts it again."""

        async def end() -> None:
            try:
                if kernel_id in self._kernels:
                    await self._kernels.shutdown_kernel(kernel_id, now=True)
            except Exception as error:
                logger.warning("Kernel %s cannot be shut down: %s", kernel_id, error)
            self._unwanted.discard(kernel_id)

        run_in_background(end())

    async def _kernel_event(self, logger: Any, schema_id: str, data: dict[str, Any]) -> None:
        kernel_id = data.get("kernel_id", "")
        if data.get("status") != "success":
            return
        if data.get("action") in ("restart", "shutdown"):
            self._kernel_gone()
        if data.get("action") == "start":
            self._watch(kernel_id)  # before the first request, which may find it dead
        elif data.get("action") == "restart":
            if kernel_id not in self._being_restarted:
                self._fail_pending(kernel_id)
            self._being_restarted.discard(kernel_id)
            if kernel_id in self._unwanted:
                self._end(kernel_id)
        elif data.get("action") == "interrupt" and kernel_id in self._links:
            # Jupyter's own interrupt stops cells only.
            link = self._links[kernel_id]
            # A command that runs when a person interrupts must never count as a later one.
            interrupt = Interrupt(requested=link.kernel_clock(latest=True))
            run_in_background(link.request(interrupt, load=False))
        elif data.get("action") == "shutdown":
            self._watched.discard(kernel_id)
            self._deaths.pop(kernel_id, None)
            self._drop(kernel_id)

    def _fail_pending(self, kernel_id: str) -> None:
        if link := self._links.get(kernel_id):
            link.kernel_ended(
                KernelDiedError(
                    f"Kernel {kernel_id} was restarted before it answered; the state of its "
                    "runtime is lost. The next request finds a fresh one"
                )
            )

    def _drop(self, kernel_id: str, error: KernelDiedError | None = None) -> None:
        link = self._links.pop(kernel_id, None)
        if link is not None:
            link.close(error)

    def close(self) -> None:
        """Disconnect from all kernels; the server shuts them down."""
        self._events.remove_listener(listener=self._kernel_event)
        for kernel_id in list(self._links):
            self._drop(kernel_id)


def _how_it_ended(manager: Any) -> str:
    """Describe how a kernel died, as far as its provisioner knows."""
    process = getattr(getattr(manager, "provisioner", None), "process", None)
    code = getattr(process, "returncode", None)
    if not isinstance(code, int):
        return "died"
    if code >= 0:
        return f"ended with exit code {code}"
    name = str(-code)
    with suppress(ValueError):
        name = signal.Signals(-code).name
    return f"was ended by signal {name}"
