"""A link over ZMQ, to a kernel that runs on this machine.

It has a session and sockets of its own. A client made by ``km.client()`` would share its
ZMQ identity with every other extension that makes one, and could lose wake-ups under
concurrent traffic; streams with identities of their own do neither.
"""

from __future__ import annotations

import asyncio
from typing import Any

from jupyter_client.session import Session

from oh_jupyter.config import REQUEST_MESSAGE
from oh_jupyter.errors import (
    ExtensionMissingError,
    GenerationChangedError,
    KernelDiedError,
    KernelTimeoutError,
)
from oh_jupyter.server.links.base import KernelLink, Reply, raise_failure
from oh_jupyter.server.links.loading import load_extension

__all__ = ["ZmqLink"]

PING_INTERVAL = 2.0
"""Seconds between pings while requests are pending."""

GRACE = 6.0
"""Seconds that a kernel may leave a ping unanswered."""

START_GRACE = 60.0
"""The same for a kernel that has not answered yet: it may be starting."""


class ZmqLink(KernelLink):
    """Requests on the control channel of one kernel."""

    def __init__(self, kernel_id: str, kernel_manager: Any) -> None:
        """Connect.

        Args:
            kernel_id: The server's id of the kernel.
            kernel_manager: Its KernelManager.
        """
        self.kernel_id = kernel_id
        self._manager = kernel_manager
        self._session = Session(
            key=kernel_manager.session.key,
            signature_scheme=kernel_manager.session.signature_scheme,
            username="openhands",
        )
        self._stream = kernel_manager.connect_control(identity=self._session.bsession)
        self._stream.on_recv(self._receive)
        self._pending: dict[str, asyncio.Future[dict[str, Any]]] = {}
        self._loading = asyncio.Lock()
        self._generation: str | None = None
        self._last_answer = 0.0
        self._watch: asyncio.Task[None] | None = None

    async def request(
        self,
        operation: str,
        fields: dict[str, Any] | None = None,
        body: bytes | None = None,
        *,
        load: bool = True,
    ) -> Reply:
        """Ask the runtime, see ``KernelLink.request``."""
        buffers: list[bytes | memoryview[bytes]] = [] if body is None else [body]
        while True:
            generation = await self._find_generation(load)
            # A request that was on its way when the kernel died reaches the next one, where
            # nobody waits for it any more: the generation keeps it from being carried out.
            content = {**(fields or {}), "op": operation, "generation": generation}
            message = await self.ask(REQUEST_MESSAGE, content, buffers)
            try:
                raise_failure(message["content"])
                break
            except GenerationChangedError:
                self._generation = None
        found = message.get("buffers") or []
        return Reply(message["content"], bytes(found[0]) if found else None)

    async def ask(
        self,
        msg_type: str,
        content: dict[str, Any],
        buffers: list[bytes | memoryview[bytes]] | None = None,
    ) -> dict[str, Any]:
        """Send any control request and wait for its reply.

        Args:
            msg_type: Type of the request.
            content: Its content.
            buffers: Its buffers.

        Returns:
            The reply message.

        Raises:
            KernelDiedError: The kernel died or restarted meanwhile.
            KernelTimeoutError: The kernel has stopped answering.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[dict[str, Any]] = loop.create_future()
        message = self._session.msg(msg_type, content)
        msg_id = message["header"]["msg_id"]
        self._pending[msg_id] = future
        if len(self._pending) == 1:
            self._last_answer = loop.time()
        self._session.send(self._stream, message, buffers=buffers)
        if self._watch is None or self._watch.done():
            self._watch = loop.create_task(self._watch_pending())
        try:
            return await future
        finally:
            self._pending.pop(msg_id, None)

    def _receive(self, frames: list[Any]) -> None:
        try:
            _, parts = self._session.feed_identities(frames)
            message = self._session.deserialize(parts)
        except (ValueError, IndexError, TypeError):
            return
        self._last_answer = asyncio.get_running_loop().time()
        future = self._pending.get(message["parent_header"].get("msg_id", ""))
        if future is not None and not future.done():
            future.set_result(message)

    async def _watch_pending(self) -> None:
        """Ping while somebody waits, and end the wait when nothing comes back."""
        loop = asyncio.get_running_loop()
        while self._pending:
            await asyncio.sleep(PING_INTERVAL)
            if not self._pending:
                return
            grace = START_GRACE if self._generation is None else GRACE
            if loop.time() - self._last_answer > PING_INTERVAL + grace:
                self._fail(
                    KernelTimeoutError(
                        f"Kernel {self.kernel_id} has not answered for {grace:.0f} s: it is "
                        "suspended, or busy in code that holds the GIL. Try again, or restart it"
                    )
                )
                return
            # Any answer will do, and every kernel knows this request.
            self._session.send(self._stream, "kernel_info_request", {})

    async def _find_generation(self, load: bool) -> str:
        """The generation of the runtime, which is loaded first if that is allowed."""
        async with self._loading:
            if self._generation is None:
                generation = await self._ping()
                if generation is None and not load:
                    raise ExtensionMissingError(
                        f"oh_jupyter is not loaded in kernel {self.kernel_id}. Load it there with "
                        "%load_ext oh_jupyter, or send an action"
                    )
                if generation is None:
                    await self._load()
                    generation = await self._ping()
                if generation is None:
                    raise ExtensionMissingError(
                        f"oh_jupyter was loaded into kernel {self.kernel_id}, but does not answer: "
                        "its version there may be older than the server's"
                    )
                self._generation = generation
            return self._generation

    async def _load(self) -> None:
        """Load oh_jupyter, and stop waiting for that when the kernel goes away."""
        gone: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._pending["load"] = gone
        load = asyncio.ensure_future(load_extension(self._manager, self.ask, self.kernel_id))
        try:
            await asyncio.wait({gone, load}, return_when=asyncio.FIRST_COMPLETED)
            if gone.done():
                gone.result()
            load.result()
        finally:
            del self._pending["load"]
            load.cancel()
            await asyncio.gather(load, return_exceptions=True)

    async def _ping(self) -> str | None:
        """The generation of the runtime, or None if oh_jupyter is not there.

        A request of an unknown type gets no reply. Control requests are answered in
        order, so when the later one is answered first, the ping was not understood.
        """
        ping = asyncio.ensure_future(self.ask(REQUEST_MESSAGE, {"op": "ping"}))
        info = asyncio.ensure_future(self.ask("kernel_info_request", {}))
        try:
            await asyncio.wait({ping, info}, return_when=asyncio.FIRST_COMPLETED)
            if not ping.done():
                info.result()
                return None
            return str(ping.result()["content"]["generation"])
        finally:
            for task in (ping, info):
                task.cancel()
            await asyncio.gather(ping, info, return_exceptions=True)

    def kernel_gone(self, reason: str) -> None:
        """End all pending requests, see ``KernelLink.kernel_gone``."""
        self._generation = None
        self._fail(
            KernelDiedError(
                f"Kernel {self.kernel_id} {reason} before it answered; the state of its "
                "runtime is lost. The next request finds a fresh one"
            )
        )

    def _fail(self, problem: Exception) -> None:
        for future in list(self._pending.values()):
            if not future.done():
                future.set_exception(problem)

    def close(self) -> None:
        """Disconnect."""
        self.kernel_gone("was shut down")
        if self._watch is not None:
            self._watch.cancel()
        if not self._stream.closed():
            self._stream.on_recv(None)
            self._stream.close(linger=0)
