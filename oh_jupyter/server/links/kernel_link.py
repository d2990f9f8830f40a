"""A link to the runtime in one kernel: requests, generations, loading.

Subclasses implement the transport.
"""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, cast

from jupyter_client.session import Session

from oh_jupyter.background import run_in_background
from oh_jupyter.control_messages import KERNEL_INFO_FIELD, REQUEST_MESSAGE, SILENT_FIELD, Reply
from oh_jupyter.errors import (
    ExtensionMissingError,
    GenerationChangedError,
    KernelDiedError,
    KernelError,
    KernelTimeoutError,
    RequestExpiredError,
    error_from_fields,
)
from oh_jupyter.events.actor import current_actor
from oh_jupyter.operations import Operation, from_json
from oh_jupyter.operations.actions import ExecuteAction, RunCell
from oh_jupyter.operations.files import Transfer
from oh_jupyter.server.limits import ConcurrencyLimit, is_input
from oh_jupyter.server.links.pending import RECEIVED_GRACE_SECONDS, PendingReplies

LOAD_EXTENSION = "%load_ext oh_jupyter"  # cell for a kernel that was started without it
FREE_SHELL_SECONDS = 1.0  # time in which an idle main shell replies
PING_GRACE_SECONDS = 6.0  # time that a kernel may leave a ping unanswered
START_GRACE_SECONDS = 60.0  # silence allowed before the first reply: the kernel may be starting
MAX_DEATHS = 3  # of a kernel that has never answered, until a request fails
MAX_SENDS = 3  # attempts for a request that expired before the kernel received it, or was dropped
INFO_REQUEST = "kernel_info_request"

is_confined: ContextVar[bool] = ContextVar("is_confined", default=False)
"""Whether the actor may use only the workspace's files and pages of the web."""

Buffers = list[Any]  # bytes and memory views of bytes


def clock_offsets(asked: float, clock: float, answered: float) -> tuple[float, float]:
    """Return the smallest and largest possible lead of a kernel's monotonic clock over ours.

    Nobody knows how long the reply waited on its way. If both clocks can be the same, they are:
    that of the machine, which all of its processes share.

    Args:
        asked: Our time before the request, in seconds.
        clock: The kernel's time in its reply.
        answered: Our time after the reply.
    """
    return (0.0, 0.0) if asked <= clock <= answered else (clock - answered, clock - asked)


class KernelLink(ABC):
    """Carries requests to the runtime in one kernel, on the kernel's control channel.

    Attributes:
        concurrency: Limit of simultaneous actions; None for no limit.
        answered: Whether the kernel has replied to anything since its last start.
        resends: Whether requests are sent again after a broken connection.
    """

    resends: ClassVar[bool] = False
    causes_of_silence: ClassVar[str] = "it is suspended, or busy in code that holds the GIL"

    def __init__(self, kernel_id: str, session: Session, load: str = LOAD_EXTENSION) -> None:
        """Make a link with its own session, and the cell that loads oh_jupyter."""
        self.kernel_id = kernel_id
        self.concurrency: ConcurrencyLimit | None = None
        self.answered = self.ever_answered = False
        self._session = session
        self._load_code = load
        self._loading = asyncio.Lock()
        self._generation: str | None = None
        self._clock_offsets: tuple[float, float] | None = None
        self._closed: KernelDiedError | None = None
        self._pending = PendingReplies(
            ping=self._ping,
            grace_seconds=self._grace_seconds,
            silent=self._silent,
        )

    async def open(self) -> None:
        """Connect if necessary, or raise KernelNotFoundError or GatewayError."""
        return

    @abstractmethod
    def _post(self, channel: str, message: dict[str, Any], buffers: Buffers | None = None) -> None:
        """Send a message to "control" or "shell" over the open connection, without waiting."""

    def _close_shell(self) -> None:
        """Close a connection to the main shell that may be stale."""
        return

    @abstractmethod
    async def _is_busy(self) -> bool:
        """Return whether the kernel runs a cell, as far as its manager knows."""

    async def request(
        self,
        operation: Operation[Any],
        body: bytes | None = None,
        *,
        envelope: Mapping[str, Any] | None = None,
        load: bool = True,
        key: str = "",
        overdue: asyncio.Event | None = None,
        cancellable: bool = False,
        generation: str | None = None,
    ) -> Reply:
        """Ask the runtime for an operation.

        Args:
            operation: The operation with its arguments.
            body: JSON or bytes, for an operation that has them.
            envelope: Further fields of the request, see `ENVELOPE`.
            load: Load oh_jupyter into the kernel first if necessary; inspecting a person's kernel
                must not.
            key: Name by which other requests refer to this one.
            overdue: Set while a kernel is silent that has received the request; the wait continues.
            cancellable: Cancel the request in the kernel when this call is cancelled or times out.
            generation: The expected runtime: another one means that it has died.

        Raises:
            OhJupyterError: The runtime rejects the request.
            KernelError: The kernel cannot be reached or has died.
        """
        content = {**operation.to_fields(), **(envelope or {})}
        names_actor = operation.names_actor or content.get("by_agent") is True
        if names_actor and (actor := current_actor.get()):
            content["actor"] = actor.to_json()
        if names_actor and is_confined.get():
            content["confined"] = True
        if key or cancellable:
            content["key"] = key or uuid.uuid4().hex
        name = operation.wire_name
        try:
            async with self._slot(operation, body):
                return await self._request(name, content, body, load, overdue, generation)
        except (asyncio.CancelledError, KernelTimeoutError):
            if cancellable:
                cancelling = {"key": content["key"]}
                run_in_background(self._request("cancel", cancelling, None, load=False))
            raise

    def _slot(
        self, operation: Operation[Any], body: bytes | None
    ) -> AbstractAsyncContextManager[None]:
        """Return a slot of the concurrency limit, for operations that need one."""
        limit = self.concurrency
        if limit is None or not isinstance(operation, ExecuteAction | RunCell):
            return nullcontext()
        return nullcontext() if limit.is_full and is_input(body) else limit.slot()

    async def _request(
        self,
        operation: str,
        fields: Mapping[str, Any],
        body: bytes | None,
        load: bool,
        overdue: asyncio.Event | None = None,
        expected_generation: str | None = None,
    ) -> Reply:
        expired = 0
        while True:
            try:
                generation = await self._find_first_generation(load)
            except ExtensionMissingError:
                if expected_generation is None:
                    raise
                raise self._lost() from None
            if expected_generation not in (None, generation):
                raise self._lost()
            # A request in transit when the kernel dies reaches its successor, where nobody waits
            # for it any more: the generation keeps it from being executed.
            content = {**fields, "op": operation, "generation": generation}
            if self.resends:
                content["keep"] = True
            buffers: Buffers = [] if body is None else [body]
            message = await self.ask(REQUEST_MESSAGE, content, buffers, overdue=overdue)
            try:
                raise_failure(message["content"])
                break
            except GenerationChangedError:
                self._generation = None
                if message.get("resent"):
                    raise self._lost() from None
            except RequestExpiredError:
                self._generation = None  # to compare the clocks again
                expired += 1
                if expired == MAX_SENDS:
                    raise KernelTimeoutError(
                        f"Kernel {self.kernel_id} takes more than {PING_GRACE_SECONDS:.0f} s to "
                        "receive a request. Nothing was executed. Try again when it is less busy",
                        withdrawn=True,
                    ) from None
        received = message.get("buffers") or []
        return Reply(message["content"], bytes(received[0]) if received else None)

    async def ask(
        self,
        msg_type: str,
        content: dict[str, Any],
        buffers: Buffers | None = None,
        *,
        channel: str = "control",
        subshell: str | None = None,
        overdue: asyncio.Event | None = None,
    ) -> dict[str, Any]:
        """Send a message of any type and return its reply; raises the errors of ``request``."""
        await self.open()
        if self._closed is not None:  # after the caller got the link
            raise self._closed
        message = self._message(msg_type, self._with_expiry(content), subshell)
        msg_id = str(message["header"]["msg_id"])
        resend = None
        if content.get("keep"):  # the runtime recognizes what it has executed already
            content.setdefault("key", msg_id)
            resend = partial(self._send_again, msg_type, content, buffers)
        elif (channel, msg_type) == ("control", INFO_REQUEST):  # without side effects
            resend = partial(self._send_again, msg_type, content, buffers)
        pending = self._pending.expect(msg_id, resend, overdue=overdue)
        try:
            self._post(channel, message, buffers)
            reply = await pending.reply
            self.answered = self.ever_answered = True
            return {**reply, "resent": len(pending.ids) > 1}
        finally:
            self._pending.forget(pending)

    def _with_expiry(self, content: dict[str, Any]) -> dict[str, Any]:
        """Add the time, on the kernel's clock, after which a request must not start.

        By then nobody waits for it any more, and a retry must not execute it twice.
        """
        now = self.kernel_clock()
        if now is None or "generation" not in content:
            return content
        return {**content, "expires": now + PING_GRACE_SECONDS}

    def kernel_clock(self, *, latest: bool = False) -> float | None:
        """Return the earliest or latest time that the kernel's monotonic clock can have now.

        None while it is unknown.
        """
        offsets = self._clock_offsets
        return None if offsets is None else time.monotonic() + offsets[latest]

    def _message(
        self, msg_type: str, content: dict[str, Any], subshell: str | None = None
    ) -> dict[str, Any]:
        message: dict[str, Any] = self._session.msg(
            msg_type, content, metadata={SILENT_FIELD: True}
        )
        if subshell is not None:
            message["header"]["subshell_id"] = subshell
        return message

    def _send_again(self, msg_type: str, content: dict[str, Any], buffers: Buffers | None) -> str:
        message = self._message(msg_type, self._with_expiry(content))
        self._post("control", message, buffers)
        return str(message["header"]["msg_id"])

    async def _find_first_generation(self, load: bool) -> str:
        """Return the generation, even if the kernel dies before it has ever answered.

        Such as when another process takes one of its ports; Jupyter starts it again with others.
        """
        deaths = 0
        while True:
            try:
                return await self._find_generation(load)
            except KernelDiedError:
                deaths += 1
                if deaths == MAX_DEATHS or self.ever_answered or self._closed is not None:
                    raise

    async def _find_generation(self, load: bool) -> str:
        """Return the generation of the runtime, loading it first if allowed."""
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
                    await self._load_extension()
                    generation = await self._ask_generation()
                if generation is None:
                    raise ExtensionMissingError(
                        f"oh_jupyter was loaded into kernel {self.kernel_id}, but does not reply: "
                        "its version there may be older than the server's, or a gateway in "
                        f"between drops messages of type {REQUEST_MESSAGE!r}"
                    )
                self._generation = generation
            return self._generation

    async def _load_extension(self) -> None:
        """Load oh_jupyter, or raise ExtensionMissingError.

        In a busy kernel (gateways do not always know) a subshell loads it, if the kernel has
        subshells; otherwise the request waits for the running cell.
        """
        info = (await self.ask(INFO_REQUEST, {}))["content"]
        language = info.get("language_info", {}).get("name", "an unknown language")
        if language != "python":
            raise ExtensionMissingError(
                f"Kernel {self.kernel_id} runs {language}: oh_jupyter needs an IPython kernel"
            )
        subshell = None
        has_subshells = "kernel subshells" in info.get("supported_features", [])
        if has_subshells and (await self._is_busy() or not await self._shell_is_free()):
            subshell = await self._create_subshell()
        content = {
            "code": self._load_code,
            "silent": True,
            "store_history": False,
            "user_expressions": {},
            "allow_stdin": False,
            "stop_on_error": False,
        }
        try:
            message = await self.ask("execute_request", content, channel="shell", subshell=subshell)
        finally:
            if subshell is not None:
                await self._ask_in_order("delete_subshell_request", {"subshell_id": subshell})
        reply = message["content"]
        if reply.get("status") != "ok":
            raise ExtensionMissingError(
                f"oh_jupyter cannot be loaded into kernel {self.kernel_id}: "
                f"{reply.get('ename')}: {reply.get('evalue')}. Install it in the kernel's "
                "environment with: pip install oh_jupyter"
            )

    async def _create_subshell(self) -> str | None:
        """Return the id of a new subshell, or None if the kernel creates none.

        While ipykernel starts, it may fail to create one and leave the request unanswered.
        """
        for _ in range(MAX_SENDS):
            created = await self._ask_in_order("create_subshell_request", {})
            if created is not None:
                return cast("str | None", created.get("subshell_id"))
        return None

    async def _shell_is_free(self) -> bool:
        try:
            async with asyncio.timeout(FREE_SHELL_SECONDS):
                await self.ask(INFO_REQUEST, {}, channel="shell")
        except TimeoutError:
            self._close_shell()
            return False
        return True

    async def _ask_generation(self) -> str | None:
        """Return the generation of the runtime, or None if oh_jupyter is not loaded.

        A kernel logs an error for each request of an unknown type, so its info is checked first.
        """
        await self.open()
        info = await self.ask(INFO_REQUEST, {})
        if KERNEL_INFO_FIELD not in info["content"]:
            return None
        asked = time.monotonic()
        pong = await self._ask_in_order(REQUEST_MESSAGE, {"op": "ping"})
        if pong is None:
            return None
        if "clock" in pong:
            self._clock_offsets = clock_offsets(asked, float(pong["clock"]), time.monotonic())
        return str(pong["generation"])

    async def _ask_in_order(self, msg_type: str, content: dict[str, Any]) -> dict[str, Any] | None:
        """Return the content of the reply to a control request, or None if there is none.

        Replies come in order: if that to a later request is first, this one was dropped.
        """
        asked = asyncio.ensure_future(self.ask(msg_type, content))
        later = asyncio.ensure_future(self.ask(INFO_REQUEST, {}))
        try:
            await asyncio.wait({asked, later}, return_when=asyncio.FIRST_COMPLETED)
            if not asked.done():
                later.result()
                return None
            return cast("dict[str, Any]", asked.result()["content"])
        finally:
            for task in (asked, later):
                task.cancel()
            await asyncio.gather(asked, later, return_exceptions=True)

    def _lost(self) -> KernelDiedError:
        return KernelDiedError(
            f"Kernel {self.kernel_id} died or was restarted before it answered; the state of its "
            "runtime is lost. The next request finds a fresh one"
        )

    def kernel_ended(self, error: KernelDiedError) -> None:
        """Fail all pending requests: their process is gone."""
        self._generation = None
        self.answered = False
        self._pending.fail(error)

    def _grace_seconds(self) -> float:
        return START_GRACE_SECONDS if self._generation is None else PING_GRACE_SECONDS

    def _ping(self, unanswered: bool) -> None:
        """Ping the kernel; ``unanswered`` says whether the previous ping got no reply."""
        self._post("control", self._session.msg(INFO_REQUEST, {}))

    def _silent(self, grace_seconds: float) -> None:
        """Handle a kernel that leaves its pings unanswered."""
        self._pending.fall_silent(grace_seconds, self.silence)

    def silence(self, received: bool = True) -> KernelTimeoutError:
        """Return the error for a silent kernel; ``received`` if it has received the request."""
        seconds = RECEIVED_GRACE_SECONDS if received else PING_GRACE_SECONDS
        if received:
            advice = (
                "The request may still be executed: check the event log before you retry, or "
                "restart the kernel"
            )
        else:
            advice = "Nothing was executed, and nothing will be. Try again, or restart the kernel"
        return KernelTimeoutError(
            f"Kernel {self.kernel_id} has not answered for {seconds:.0f} s: "
            f"{self.causes_of_silence}. {advice}",
            withdrawn=not received,
        )

    def close(self, error: KernelDiedError | None = None) -> None:
        """Disconnect finally, and fail pending requests with the error, or one of a shutdown."""
        self._closed = error or KernelDiedError(
            f"Kernel {self.kernel_id} was shut down before it answered; the state of its runtime "
            "is lost"
        )
        self.kernel_ended(self._closed)
        self._pending.close()


@dataclass(frozen=True)
class KernelTransfer:
    """An upload or download in a kernel; another generation of it knows nothing of it."""

    link: KernelLink
    start: Transfer
    generation: str

    @classmethod
    def started(cls, link: KernelLink, reply: Reply) -> KernelTransfer:
        """Return the transfer that a reply of the kernel has started."""
        start = from_json(Transfer, json.loads(reply.body or b"{}"))
        return cls(link, start, reply.fields["generation"])

    @property
    def id(self) -> str:
        """Its id in the kernel."""
        return self.start.id

    async def request(
        self,
        operation: Operation[Any],
        body: bytes | None = None,
        *,
        cancellable: bool = False,
    ) -> Reply:
        """Request the next step, or raise KernelDiedError if the runtime is gone."""
        return await self.link.request(
            operation,
            body,
            load=False,
            cancellable=cancellable,
            generation=self.generation,
        )


def raise_failure(fields: Mapping[str, Any]) -> None:
    """Raise the error in the content of a reply, with the class that it has in the kernel."""
    if fields.get("status") != "error":
        return
    message = str(fields.get("evalue") or "The runtime gave no reason")
    raise error_from_fields(str(fields.get("ename")), message, fields) or KernelError(message)


def loading_cell(settings: Mapping[str, Any], confirmation: str | None = None) -> str:
    """Return the cell that loads oh_jupyter with settings, and a default confirmation policy."""
    plain = {
        name: list(value) if isinstance(value, tuple) else value for name, value in settings.items()
    }
    lines = [f"get_ipython().config.OhJupyter.update({plain!r})"] if plain else []
    if confirmation is not None and "confirmation" not in plain:
        lines.append(f"get_ipython().config.OhJupyter.setdefault('confirmation', {confirmation!r})")
    return "\n".join([*lines, LOAD_EXTENSION])
