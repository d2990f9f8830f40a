"""What every link does on the control channel: requests, generations, loading.

How messages travel is left to the subclasses.
"""

from __future__ import annotations

import asyncio
import time
from abc import abstractmethod
from functools import partial
from typing import Any, ClassVar

from jupyter_client.session import Session

from oh_jupyter.config import REQUEST_MESSAGE
from oh_jupyter.errors import (
    ExtensionMissingError,
    GenerationChangedError,
    KernelDiedError,
    KernelTimeoutError,
    RequestExpiredError,
)
from oh_jupyter.server.limits import is_input
from oh_jupyter.server.links.base import KernelLink, Reply, raise_failure
from oh_jupyter.server.links.loading import LOAD, load_extension
from oh_jupyter.server.links.pending import RECEIVED_GRACE_SECONDS, PendingReplies

__all__ = ["ControlLink"]

GRACE_SECONDS = 6.0
"""How long a kernel may leave a ping unanswered."""

SENDS = 3
"""Times that a request is sent which has expired before the kernel received it."""

ACTIONS = {"execute_action", "run_cell"}
"""Operations that may last, so that too many of them are a burden."""

START_GRACE_SECONDS = 60.0
"""How long a kernel may be silent that has not answered yet: it may be starting."""


class ControlLink(KernelLink):
    """Requests on the control channel of one kernel.

    Attributes:
        resends: Whether requests are sent once more after the connection broke.
        causes_of_silence: Why a kernel may leave its pings unanswered, for a message.
    """

    resends: ClassVar[bool] = False
    causes_of_silence: ClassVar[str] = "it is suspended, or busy in code that holds the GIL"

    def __init__(self, kernel_id: str, session: Session, load: str = LOAD) -> None:
        """Make a link.

        Args:
            kernel_id: The server's id of the kernel.
            session: Makes the messages; nobody else's.
            load: The cell that loads oh_jupyter into the kernel.
        """
        self.kernel_id = kernel_id
        self._session = session
        self._load_code = load
        self._loading = asyncio.Lock()
        self._generation: str | None = None
        self._clock_offset: float | None = None
        self._closed: KernelDiedError | None = None
        self._pending = PendingReplies(
            ping=self._ping,
            grace=lambda: START_GRACE_SECONDS if self._generation is None else GRACE_SECONDS,
            silent=self._silent,
        )

    @abstractmethod
    def _post(
        self,
        channel: str,
        message: dict[str, Any],
        buffers: list[bytes | memoryview[bytes]] | None = None,
    ) -> None:
        """Send a message over the open connection, without waiting.

        Args:
            channel: "control" or "shell".
            message: The message.
            buffers: Its buffers.
        """

    @abstractmethod
    async def _is_busy(self) -> bool:
        """Whether the kernel runs a cell, as far as its manager knows."""

    async def request(
        self,
        operation: str,
        fields: dict[str, Any] | None = None,
        body: bytes | None = None,
        *,
        load: bool = True,
        overdue: asyncio.Event | None = None,
    ) -> Reply:
        """Ask the runtime, see ``KernelLink.request``."""
        if self.turns is None or operation not in ACTIONS:
            return await self._request(operation, fields, body, load, overdue)
        if self.turns.all_taken and is_input(body):
            return await self._request(operation, fields, body, load, overdue)
        async with self.turns.turn():
            return await self._request(operation, fields, body, load, overdue)

    async def _request(
        self,
        operation: str,
        fields: dict[str, Any] | None,
        body: bytes | None,
        load: bool,
        overdue: asyncio.Event | None,
    ) -> Reply:
        buffers: list[bytes | memoryview[bytes]] = [] if body is None else [body]
        expired = 0
        while True:
            generation = await self._find_generation(load)
            # A request that was on its way when the kernel died reaches the next one, where
            # nobody waits for it any more: the generation keeps it from being carried out.
            content = {**(fields or {}), "op": operation, "generation": generation}
            if self.resends:
                content["keep"] = True
            message = await self.ask(REQUEST_MESSAGE, content, buffers, overdue=overdue)
            try:
                raise_failure(message["content"])
                break
            except GenerationChangedError:
                self._generation = None
                if message.get("resent"):
                    raise self._lost() from None
            except RequestExpiredError:
                self._generation = None  # so that the clocks are compared anew
                expired += 1
                if expired == SENDS:
                    raise KernelTimeoutError(
                        f"Kernel {self.kernel_id} receives requests only after more than "
                        f"{GRACE_SECONDS:.0f} s. Nothing was done. Try again when it is less busy",
                        withdrawn=True,
                    ) from None
        found = message.get("buffers") or []
        return Reply(message["content"], bytes(found[0]) if found else None)

    async def ask(
        self,
        msg_type: str,
        content: dict[str, Any],
        buffers: list[bytes | memoryview[bytes]] | None = None,
        *,
        channel: str = "control",
        subshell: str | None = None,
        overdue: asyncio.Event | None = None,
    ) -> dict[str, Any]:
        """Send any request and wait for its reply.

        Args:
            msg_type: Type of the request.
            content: Its content.
            buffers: Its buffers.
            channel: "control" or "shell".
            subshell: The subshell that it is for; None for the main shell.
            overdue: Set while a kernel is silent that has received it; the wait then goes on.

        Returns:
            The reply message.

        Raises:
            GatewayError: The kernel's gateway cannot be reached.
            KernelNotFoundError: The kernel is no more.
            KernelDiedError: The kernel died or restarted meanwhile.
            KernelTimeoutError: The kernel has stopped answering.
        """
        await self.open()
        if self._closed is not None:  # after whoever asks was given the link
            raise self._closed
        message = self._message(msg_type, self._with_expiry(content), subshell)
        msg_id = str(message["header"]["msg_id"])
        again = None
        if content.get("keep"):  # the runtime knows what it has done already
            content.setdefault("key", msg_id)
            again = partial(self._send_again, msg_type, content, buffers)
        waiting = self._pending.expect(msg_id, again, overdue=overdue)
        try:
            self._post(channel, message, buffers)
            answer = await waiting.reply
            self.answered = self.ever_answered = True
            return {**answer, "resent": len(waiting.ids) > 1}
        finally:
            self._pending.forget(waiting)

    def _with_expiry(self, content: dict[str, Any]) -> dict[str, Any]:
        """Name the moment, on the kernel's clock, after which a request must not be begun.

        By then nobody waits for it any more, and who asks again must not get it done twice.
        """
        if self._clock_offset is None or "generation" not in content:
            return content
        return {**content, "expires": time.monotonic() + self._clock_offset + GRACE_SECONDS}

    def _message(
        self, msg_type: str, content: dict[str, Any], subshell: str | None = None
    ) -> dict[str, Any]:
        message: dict[str, Any] = self._session.msg(msg_type, content)
        if subshell is not None:
            message["header"]["subshell_id"] = subshell
        return message

    def _send_again(
        self,
        msg_type: str,
        content: dict[str, Any],
        buffers: list[bytes | memoryview[bytes]] | None,
    ) -> str:
        message = self._message(msg_type, self._with_expiry(content))
        self._post("control", message, buffers)
        return str(message["header"]["msg_id"])

    async def _find_generation(self, load: bool) -> str:
        """The generation of the runtime, which is loaded first if that is allowed."""
        if self._generation is not None:
            return self._generation
        async with self._loading:
            if self._generation is None:
                generation = await self._ask_generation()
                if generation is None and not load:
                    raise ExtensionMissingError(
                        f"oh_jupyter is not loaded in kernel {self.kernel_id}. Load it there with "
                        "%load_ext oh_jupyter, or send an action"
                    )
                if generation is None:
                    busy = await self._is_busy()
                    await load_extension(self.ask, self.kernel_id, busy=busy, code=self._load_code)
                    generation = await self._ask_generation()
                if generation is None:
                    raise ExtensionMissingError(
                        f"oh_jupyter was loaded into kernel {self.kernel_id}, but does not answer: "
                        "its version there may be older than the server's, or a gateway on the "
                        f"way does not let messages of type {REQUEST_MESSAGE!r} pass"
                    )
                self._generation = generation
            return self._generation

    async def _ask_generation(self) -> str | None:
        """The generation of the runtime, or None if oh_jupyter is not there.

        A request of an unknown type gets no reply. Control requests are answered in
        order, so when the later one is answered first, the ping was not understood.
        """
        await self.open()
        ping = asyncio.ensure_future(self.ask(REQUEST_MESSAGE, {"op": "ping"}))
        info = asyncio.ensure_future(self.ask("kernel_info_request", {}))
        try:
            await asyncio.wait({ping, info}, return_when=asyncio.FIRST_COMPLETED)
            if not ping.done():
                info.result()
                return None
            pong = ping.result()["content"]
            if "clock" in pong:
                self._clock_offset = float(pong["clock"]) - time.monotonic()
            return str(pong["generation"])
        finally:
            for task in (ping, info):
                task.cancel()
            await asyncio.gather(ping, info, return_exceptions=True)

    def _lost(self) -> KernelDiedError:
        return KernelDiedError(
            f"Kernel {self.kernel_id} died or was restarted before it answered; the state of its "
            "runtime is lost. The next request finds a fresh one"
        )

    def kernel_gone(self, problem: KernelDiedError) -> None:
        """End all pending requests, see ``KernelLink.kernel_gone``."""
        self._generation = None
        self.answered = False
        self._pending.fail(problem)

    def _ping(self, unanswered: bool) -> None:
        """Ask for a sign of life.

        Args:
            unanswered: Whether the ping before was left unanswered.
        """
        self._post("control", self._session.msg("kernel_info_request", {}))

    def _silent(self, grace: float) -> None:
        """The kernel has left the pings unanswered."""
        self._pending.fall_silent(grace, self.silence)

    def silence(self, received: bool = True) -> KernelTimeoutError:
        """The error that tells of a silent kernel, see ``KernelLink.silence``."""
        allowed = RECEIVED_GRACE_SECONDS if received else GRACE_SECONDS
        if received:
            end = (
                "What was asked may still be carried out: see the event log before you ask "
                "again, or restart the kernel"
            )
        else:
            end = "Nothing was done, and nothing will be. Try again, or restart the kernel"
        return KernelTimeoutError(
            f"Kernel {self.kernel_id} has not answered for {allowed:.0f} s: "
            f"{self.causes_of_silence}. {end}",
            withdrawn=not received,
        )

    def close(self, problem: KernelDiedError | None = None) -> None:
        """Disconnect for good, see ``KernelLink.close``."""
        self._closed = problem or KernelDiedError(
            f"Kernel {self.kernel_id} was shut down before it answered; the state of its runtime "
            "is lost"
        )
        self.kernel_gone(self._closed)
        self._pending.close()
