"""A link to the runtime in one kernel: requests, generations, loading.

How messages travel is left to the subclasses.
"""

from __future__ import annotations

import asyncio
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
from oh_jupyter.errors import (
    ExtensionMissingError,
    GenerationChangedError,
    KernelDiedError,
    KernelError,
    KernelTimeoutError,
    RequestExpiredError,
    error_from_fields,
)
from oh_jupyter.messages import KERNEL_INFO_FIELD, REQUEST_MESSAGE, SILENT_FIELD
from oh_jupyter.server.limits import ConcurrencyLimit, is_input
from oh_jupyter.server.links.pending import RECEIVED_GRACE_SECONDS, PendingReplies

LOAD_EXTENSION = "%load_ext oh_jupyter"
"""The cell that loads it into a kernel that was started without it."""

FREE_SHELL_SECONDS = 1.0
"""Seconds that a free main shell may take to answer."""

PING_GRACE_SECONDS = 6.0
"""How long a kernel may leave a ping unanswered."""

START_GRACE_SECONDS = 60.0
"""How long a kernel may be silent that has not answered yet: it may be starting."""

MAX_SENDS = 3
"""Times that a request is sent which has expired before the kernel received it, or was dropped."""

INFO_REQUEST = "kernel_info_request"

acting: ContextVar[Mapping[str, str] | None] = ContextVar("acting", default=None)
"""Who has sent the request that is being carried out, as the event log tells it."""

ACTING_OPERATIONS = {"execute_action", "run_cell", "record_edit"}
"""Operations that record an Action."""

LASTING_OPERATIONS = {"execute_action", "run_cell"}
"""Operations that may last, so that too many of them are a burden."""

Buffers = list[Any]
"""Bytes and memory views of bytes."""


@dataclass(frozen=True)
class Reply:
    """A kernel's answer: the message's content, and JSON that the kernel has encoded already."""

    fields: dict[str, Any]
    body: bytes | None = None


class KernelLink(ABC):
    """Carries requests to the runtime in one kernel, on the kernel's control channel.

    Attributes:
        concurrency: How many actions the kernel gets at once; None for any number.
        answered: Whether the kernel has answered anything since it was started, or restarted.
        resends: Whether requests are sent once more after the connection broke.
    """

    resends: ClassVar[bool] = False
    causes_of_silence: ClassVar[str] = "it is suspended, or busy in code that holds the GIL"

    def __init__(self, kernel_id: str, session: Session, load: str = LOAD_EXTENSION) -> None:
        """Prepare a link with a session of its own, and the cell that loads oh_jupyter."""
        self.kernel_id = kernel_id
        self.concurrency: ConcurrencyLimit | None = None
        self.answered = self.ever_answered = False
        self._session = session
        self._load_code = load
        self._loading = asyncio.Lock()
        self._generation: str | None = None
        self._clock_offset_seconds: float | None = None
        self._closed: KernelDiedError | None = None
        self._pending = PendingReplies(
            ping=self._ping,
            grace_seconds=self._grace_seconds,
            silent=self._silent,
        )

    async def open(self) -> None:
        """Connect, where that is not done already; KernelNotFoundError, GatewayError."""
        return None

    @abstractmethod
    def _post(self, channel: str, message: dict[str, Any], buffers: Buffers | None = None) -> None:
        """Send a message to "control" or "shell" over the open connection, without waiting."""

    def _leave_shell(self) -> None:
        """Close a connection to the main shell that may be a dead one."""
        return None

    @abstractmethod
    async def _is_busy(self) -> bool:
        """Whether the kernel runs a cell, as far as its manager knows."""

    async def request(
        self,
        operation: str,
        fields: Mapping[str, Any] | None = None,
        body: bytes | None = None,
        *,
        load: bool = True,
        overdue: asyncio.Event | None = None,
        cancellable: bool = False,
        generation: str | None = None,
    ) -> Reply:
        """Ask the runtime for an operation with some fields, and a body of JSON that is passed on.

        ``load`` loads oh_jupyter into the kernel first if it is not there; who only looks must not
        change a person's kernel. ``overdue`` is set while a kernel is silent that has received the
        request; the wait then goes on. What is ``cancellable`` is taken back in the kernel when
        this is cancelled or given up; its field ``key`` names it, if who asks has a name for it.
        ``generation`` names the runtime that is meant: when there is another one, it has died.
        What the runtime refuses is raised as the error that it raised there; a kernel that cannot
        be reached, or died meanwhile, as a KernelError.
        """
        fields = dict(fields or {})
        if operation in ACTING_OPERATIONS and (actor := acting.get()):
            fields["actor"] = dict(actor)
        if cancellable:
            fields.setdefault("key", uuid.uuid4().hex)
        try:
            async with self._slot(operation, body):
                return await self._request(operation, fields, body, load, overdue, generation)
        except (asyncio.CancelledError, KernelTimeoutError):
            if cancellable:
                run_in_background(self.request("cancel", {"key": fields["key"]}, load=False))
            raise

    def _slot(self, operation: str, body: bytes | None) -> AbstractAsyncContextManager[None]:
        """A place among the actions of the kernel, for those that need one."""
        limit = self.concurrency
        if limit is None or operation not in LASTING_OPERATIONS:
            return nullcontext()
        return nullcontext() if limit.is_full and is_input(body) else limit.slot()

    async def _request(
        self,
        operation: str,
        fields: Mapping[str, Any],
        body: bytes | None,
        load: bool,
        overdue: asyncio.Event | None,
        meant: str | None,
    ) -> Reply:
        expired = 0
        while True:
            try:
                generation = await self._find_generation(load)
            except ExtensionMissingError:
                if meant is None:
                    raise
                raise self._lost() from None
            if meant not in (None, generation):
                raise self._lost()
            # A request that was on its way when the kernel died reaches the next one, where
            # nobody waits for it any more: the generation keeps it from being carried out.
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
                self._generation = None  # so that the clocks are compared anew
                expired += 1
                if expired == MAX_SENDS:
                    raise KernelTimeoutError(
                        f"Kernel {self.kernel_id} receives requests only after more than "
                        f"{PING_GRACE_SECONDS:.0f} s. Nothing was done. Try again when it is less "
                        "busy",
                        withdrawn=True,
                    ) from None
        found = message.get("buffers") or []
        return Reply(message["content"], bytes(found[0]) if found else None)

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
        """Send a message of any type and wait for its reply; errors as those of ``request``."""
        await self.open()
        if self._closed is not None:  # after whoever asks was given the link
            raise self._closed
        message = self._message(msg_type, self._with_expiry(content), subshell)
        msg_id = str(message["header"]["msg_id"])
        again = None
        if content.get("keep"):  # the runtime knows what it has done already
            content.setdefault("key", msg_id)
            again = partial(self._send_again, msg_type, content, buffers)
        elif (channel, msg_type) == ("control", INFO_REQUEST):  # it does nothing
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
        now = self.kernel_clock()
        if now is None or "generation" not in content:
            return content
        return {**content, "expires": now + PING_GRACE_SECONDS}

    def kernel_clock(self) -> float | None:
        """Return what the kernel's monotonic clock shows now; None before it was asked."""
        offset = self._clock_offset_seconds
        return None if offset is None else time.monotonic() + offset

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
                    await self._load_extension()
                    generation = await self._ask_generation()
                if generation is None:
                    raise ExtensionMissingError(
                        f"oh_jupyter was loaded into kernel {self.kernel_id}, but does not answer: "
                        "its version there may be older than the server's, or a gateway on the "
                        f"way does not let messages of type {REQUEST_MESSAGE!r} pass"
                    )
                self._generation = generation
            return self._generation

    async def _load_extension(self) -> None:
        """Load oh_jupyter, or raise ExtensionMissingError where that cannot be.

        A busy kernel (gateways do not always know) is reached through a subshell, where it has
        them; elsewhere the request waits behind the running cell.
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
        """The id of a new subshell, or None if the kernel makes none.

        While ipykernel starts, it may fail to, and leave the request unanswered.
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
            self._leave_shell()
            return False
        return True

    async def _ask_generation(self) -> str | None:
        """The generation of the runtime, or None if oh_jupyter is not there.

        A kernel logs an error for each request of a type that it does not know, so it is asked
        only where its info says that it will understand.
        """
        await self.open()
        known = await self.ask(INFO_REQUEST, {})
        if KERNEL_INFO_FIELD not in known["content"]:
            return None
        pong = await self._ask_in_order(REQUEST_MESSAGE, {"op": "ping"})
        if pong is None:
            return None
        if "clock" in pong:
            self._clock_offset_seconds = float(pong["clock"]) - time.monotonic()
        return str(pong["generation"])

    async def _ask_in_order(self, msg_type: str, content: dict[str, Any]) -> dict[str, Any] | None:
        """What a kernel replies to a request, or None if it leaves that unanswered.

        Control requests are answered in order, so when a later one is answered first, the kernel
        or something on the way has dropped this one.
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

    def kernel_gone(self, problem: KernelDiedError) -> None:
        """End all pending requests with an error: the process that was asked is no more."""
        self._generation = None
        self.answered = False
        self._pending.fail(problem)

    def _grace_seconds(self) -> float:
        return START_GRACE_SECONDS if self._generation is None else PING_GRACE_SECONDS

    def _ping(self, unanswered: bool) -> None:
        """Ask for a sign of life; ``unanswered`` says whether there was none since the last."""
        self._post("control", self._session.msg(INFO_REQUEST, {}))

    def _silent(self, grace_seconds: float) -> None:
        """The kernel has left the pings unanswered."""
        self._pending.fall_silent(grace_seconds, self.silence)

    def silence(self, received: bool = True) -> KernelTimeoutError:
        """The error that tells of a silent kernel, which may have received what was asked."""
        allowed = RECEIVED_GRACE_SECONDS if received else PING_GRACE_SECONDS
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
        """Disconnect for good; those who wait are told the problem, or of a shutdown."""
        self._closed = problem or KernelDiedError(
            f"Kernel {self.kernel_id} was shut down before it answered; the state of its runtime "
            "is lost"
        )
        self.kernel_gone(self._closed)
        self._pending.close()


def raise_failure(fields: Mapping[str, Any]) -> None:
    """Raise the error that the content of a reply tells of, of the same class as in the kernel."""
    if fields.get("status") != "error":
        return
    message = str(fields.get("evalue") or "The runtime gave no reason")
    raise error_from_fields(str(fields.get("ename")), message, fields) or KernelError(message)


def loading_with(settings: Mapping[str, Any], confirmation: str | None = None) -> str:
    """The cell that loads oh_jupyter with settings, and a policy where it has none."""
    plain = {
        name: list(value) if isinstance(value, tuple) else value for name, value in settings.items()
    }
    lines = [f"get_ipython().config.OhJupyter.update({plain!r})"] if plain else []
    if confirmation is not None and "confirmation" not in plain:
        lines.append(f"get_ipython().config.OhJupyter.setdefault('confirmation', {confirmation!r})")
    return "\n".join([*lines, LOAD_EXTENSION])
