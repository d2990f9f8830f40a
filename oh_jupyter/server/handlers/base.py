"""What all handlers share: who may use them, and how they say what went wrong."""

from __future__ import annotations

import asyncio
import hmac
import json
import os
from collections.abc import Awaitable, Coroutine
from typing import TYPE_CHECKING, Any, cast

from jupyter_core.utils import ensure_async
from jupyter_server.auth.identity import User
from jupyter_server.base.handlers import APIHandler
from jupyter_server.extension.handler import ExtensionHandlerMixin
from tornado import web
from tornado.iostream import StreamClosedError

from oh_jupyter.errors import (
    ConfirmationError,
    EventNotFoundError,
    ExtensionMissingError,
    GatewayError,
    KernelDiedError,
    KernelNotFoundError,
    KernelTimeoutError,
    LimitExceededError,
    NotRunnableError,
    OhJupyterError,
    RequestNotFoundError,
    RuntimeClosedError,
    StorePathError,
    TransferError,
    TransferNotFoundError,
    TransferTooLargeError,
    UnknownTypeError,
    WireError,
)
from oh_jupyter.events.json import parse_json

if TYPE_CHECKING:
    from oh_jupyter.server.limits import Limits
    from oh_jupyter.server.links import KernelLink
    from oh_jupyter.server.router import Router

__all__ = ["OhHandler"]

SESSION_KEY_HEADER = "X-Session-API-Key"
SESSION_KEY_VARIABLE = "SESSION_API_KEY"

_STATUS: tuple[tuple[type[OhJupyterError], int], ...] = (
    (UnknownTypeError, 400),
    (NotRunnableError, 400),
    (WireError, 422),
    (TransferNotFoundError, 404),
    (TransferTooLargeError, 413),
    (TransferError, 400),
    (StorePathError, 400),
    (KernelNotFoundError, 404),
    (EventNotFoundError, 404),
    (ConfirmationError, 404),
    (RequestNotFoundError, 404),
    (LimitExceededError, 429),
    (ExtensionMissingError, 424),
    (GatewayError, 502),
    (KernelDiedError, 503),
    (RuntimeClosedError, 503),
    (KernelTimeoutError, 504),
    (OhJupyterError, 500),
)


_background: set[asyncio.Task[Any]] = set()


@web.stream_request_body
class OhHandler(ExtensionHandlerMixin, APIHandler):  # type: ignore[misc]
    """Base of the handlers.

    Bodies come in pieces, so that none is read of who may not send it, and none is kept that
    is too large.

    Attributes:
        by_session_key: Whether the request showed the session key, which agents have.
    """

    by_session_key = False

    async def prepare(self, **kwargs: Any) -> None:
        """Let a client in that shows the session key, as OpenHands' clients do.

        The key is sent in a header, so like Jupyter's own token it cannot be forged by
        another site, and the same requests are free of the XSRF check.
        """
        expected = os.environ.get(SESSION_KEY_VARIABLE, "")
        given = self.request.headers.get(SESSION_KEY_HEADER, "")
        if expected and hmac.compare_digest(given.encode(), expected.encode()):
            name = "openhands"
            self._jupyter_current_user = User(username=name, name=name, display_name="OpenHands")
            self._token_authenticated = True
            self.by_session_key = True
        self._body: list[bytes] = []
        self._body_size = 0
        prepared: Any = super().prepare(**kwargs)
        await ensure_async(prepared)
        if self.current_user is None:
            return  # the decorators of the method say so
        self.limits.rate.take(self.asker)
        announced = self.request.headers.get("Content-Length", "0")
        if announced.isdigit() and not self.is_upload():
            self.limits.check_body(int(announced))

    def is_upload(self) -> bool:
        """Whether the request's body is passed on instead of being kept.

        Returns:
            Whether it is.
        """
        return False

    def data_received(self, chunk: bytes) -> Awaitable[None] | None:
        """Keep some of the body.

        Args:
            chunk: The next bytes.
        """
        self._body_size += len(chunk)
        if self._body_size <= self.limits.max_body:
            self._body.append(chunk)
        return None

    @property
    def body(self) -> bytes:
        """The body.

        Raises:
            TransferTooLargeError: It is larger than the limit.
        """
        self.limits.check_body(self._body_size)
        return b"".join(self._body)

    def json_body(self) -> Any:
        """What the body says.

        Returns:
            Parsed JSON.

        Raises:
            WireError: It is no JSON.
        """
        return parse_json(self.body)

    def path_argument(self, name: str) -> str | None:
        """A path of the query as it is: tornado would write spaces for control characters.

        Args:
            name: The argument.

        Returns:
            The path; None if it was not given.

        Raises:
            WireError: It is no path.
        """
        values = self.request.query_arguments.get(name)
        if not values:
            return None
        try:
            path = values[-1].decode()
        except UnicodeDecodeError:
            raise WireError(f"{name!r} is not UTF-8", name) from None
        if "\0" in path:
            raise WireError(f"{name!r} contains a NUL character", name)
        return path

    @property
    def limits(self) -> Limits:
        """The server's limits."""
        return cast("Limits", self.settings["oh_jupyter_limits"])

    @property
    def router(self) -> Router:
        """The extension's router."""
        return cast("Router", self.settings["oh_jupyter_router"])

    @property
    def asker(self) -> str:
        """Who asks. A token is one asker: Jupyter makes up a user for each request with it."""
        anonymous = self.token_authenticated and not self.by_session_key
        return "" if anonymous else str(self.current_user.username)

    async def check_kernel(self, kernel_id: str | None) -> None:
        """See whether the user may ask a kernel, apart from what is asked.

        Args:
            kernel_id: From the address; None for the default kernel, which is nobody's own.

        Raises:
            web.HTTPError: 403: the user may not execute code in other people's kernels.
        """
        if kernel_id is None:
            return
        user = self.current_user
        allowed = await ensure_async(
            self.authorizer.is_authorized(self, user, "execute", "kernels")
        )
        if not allowed:
            raise web.HTTPError(403, "User is not authorized to execute on resource: kernels.")

    async def link(self, kernel_id: str | None) -> KernelLink:
        """The link that a request is for.

        Args:
            kernel_id: From the address; None for the default kernel.

        Returns:
            The link.

        Raises:
            web.HTTPError: 403: the user may not execute code in other people's kernels.
            KernelError: There is no such kernel, or it cannot be started.
        """
        await self.check_kernel(kernel_id)
        if kernel_id is None:
            return await self.router.default()
        return self.router.link(kernel_id)

    async def send_pieces(self, link: KernelLink, key: str) -> None:
        """Send what a kernel has to give, each piece when the one before was taken.

        Args:
            link: The kernel.
            key: Id of the download there.
        """
        try:
            while piece := (await link.request("receive", {"id": key}, load=False)).body:
                self.write(piece)
                await self.flush()
            # By itself Jupyter would call an empty one JSON.
            self.finish(set_content_type=self._headers["Content-Type"])
        except StreamClosedError:
            self.in_background(link.request("give_up", {"id": key}, load=False))
        except OhJupyterError:
            if not self._headers_written:
                raise
            # The head says that all is well: only a broken connection tells the client.
            self.log.warning("oh_jupyter: a download broke off", exc_info=True)
            connection: Any = self.request.connection
            connection.stream.close()

    def in_background(self, work: Coroutine[Any, Any, Any]) -> None:
        """Do something for which the client need not wait.

        Args:
            work: What to do; that it fails is logged at most.
        """

        def done(task: asyncio.Task[Any]) -> None:
            _background.discard(task)
            if not task.cancelled() and task.exception() is not None:
                self.log.debug("oh_jupyter: %s", task.exception())

        task = asyncio.get_running_loop().create_task(work)
        _background.add(task)  # the loop itself holds tasks weakly
        task.add_done_callback(done)

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """Answer an error as FastAPI would, which OpenHands' clients read, and as Jupyter does.

        Args:
            status_code: What tornado made of it.
            **kwargs: ``exc_info`` among them.
        """
        problem = kwargs.get("exc_info", (None, None, None))[1]
        detail = self._reason
        if isinstance(problem, OhJupyterError):
            status_code = next(code for cls, code in _STATUS if isinstance(problem, cls))
            detail = str(problem)
        elif isinstance(problem, web.HTTPError):
            detail = problem.log_message or problem.reason or detail
        elif problem is not None:
            detail = "An unexpected error occurred. Please try again later."
        if status_code == 403 and SESSION_KEY_HEADER in self.request.headers:
            detail = "Invalid API Key"
        body: dict[str, Any] = {"detail": detail, "message": detail}
        if isinstance(problem, OhJupyterError):
            body["error"] = type(problem).__name__
        if isinstance(problem, KernelTimeoutError):
            body["withdrawn"] = problem.withdrawn
        if isinstance(problem, WireError) and problem.field:
            body["field"] = problem.field
        if isinstance(problem, LimitExceededError):
            self.set_header("Retry-After", str(problem.retry_after))
        self.set_status(status_code)
        self.set_header("Content-Type", "application/json")
        self.finish(json.dumps(body))

    def log_exception(self, *exc_info: Any) -> None:
        """Log what is ours to mend; what the caller did wrong is in the answer.

        Args:
            *exc_info: Type, value and traceback.
        """
        if isinstance(exc_info[1], OhJupyterError):
            self.log.debug("oh_jupyter: %s", exc_info[1])
        else:
            super().log_exception(*exc_info)

    def finish_json(self, body: bytes | str | dict[str, Any] | list[Any]) -> None:
        """Send JSON.

        Args:
            body: Encoded already, or to be encoded.
        """
        self.set_header("Content-Type", "application/json")
        self.finish(json.dumps(body) if isinstance(body, dict | list) else body)
