"""What all handlers share: who may use them, and how they say what went wrong."""

from __future__ import annotations

import asyncio
import hmac
import json
import os
from collections.abc import Awaitable, Coroutine
from functools import cache
from typing import Any, TypeVar

from jupyter_core.utils import ensure_async
from jupyter_server.auth.identity import IdentityProvider, User
from jupyter_server.base.handlers import APIHandler
from jupyter_server.extension.handler import ExtensionHandlerMixin
from tornado import web
from tornado.iostream import StreamClosedError

from oh_jupyter.background import run_in_background
from oh_jupyter.config import SESSION_KEY_VARIABLE
from oh_jupyter.errors import (
    CheckpointError,
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
from oh_jupyter.messages import GUEST_HEADER
from oh_jupyter.server.http_errors import reason_of
from oh_jupyter.server.links import KernelLink, Reply, Transfer
from oh_jupyter.server.state import ServerState, state_of

T = TypeVar("T")

SESSION_KEY_HEADER = "X-Session-API-Key"

ACTOR_HEADERS = {
    "persona": "X-JupyterAI-Persona-Id",
    "chat": "X-Jupyter-Chat-Id",
    "guest": GUEST_HEADER,
}
"""Headers that name who acts: a persona of Jupyter AI and its chat, or a guest agent."""

MAX_NAME_CHARS = 200

NOT_LET_IN = (
    "The server's token is missing or wrong. Send it as the header Authorization: token TOKEN, or "
    f"as {SESSION_KEY_HEADER}; jupyter server list shows the one in force"
)

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
    (CheckpointError, 409),
    (RequestNotFoundError, 404),
    (LimitExceededError, 429),
    (ExtensionMissingError, 424),
    (GatewayError, 502),
    (KernelDiedError, 503),
    (RuntimeClosedError, 503),
    (KernelTimeoutError, 504),
    (OhJupyterError, 500),
)


class SessionKeyIdentityProvider(IdentityProvider):  # type: ignore[misc]
    """Knows who shows the session key, whichever way the server knows others."""

    def get_user(self, handler: Any) -> User:
        """The one user that there is."""
        return User(username="openhands", name="openhands", display_name="OpenHands")

    def is_token_authenticated(self, handler: Any) -> bool:
        """Whether the request is free of the XSRF check: no other site can send the key."""
        return True


@cache
def _session_key_identity() -> SessionKeyIdentityProvider:
    return SessionKeyIdentityProvider()


def is_session_key(key: str) -> bool:
    """Whether it is the key that OpenHands' clients send, where one is set."""
    expected = os.environ.get(SESSION_KEY_VARIABLE, "")
    return bool(expected) and hmac.compare_digest(key.encode(), expected.encode())


@web.stream_request_body
class OhHandler(ExtensionHandlerMixin, APIHandler):  # type: ignore[misc]
    """Base of the handlers.

    Bodies come in pieces, so that none is read of who may not send it, and none is kept that
    is too large. ``by_session_key`` and ``by_address_key`` tell of the keys that agents have.
    """

    by_session_key = False
    by_address_key = False
    client_has_left = False
    _refused_unread = False
    _has_kernel_ended = False
    _work: asyncio.Task[Any] | None = None

    async def prepare(self, **kwargs: Any) -> None:
        """Admit the request before its body is read, or refuse it."""
        try:
            await self.admit(**kwargs)
        except Exception:
            self._refused_unread = True
            raise

    async def admit(self, **kwargs: Any) -> None:
        """Raise what is wrong with the request's head.

        Who shows the session key is let in, as OpenHands' clients are. The key is sent in a
        header, so like Jupyter's own token it cannot be forged by another site, and the same
        requests are free of the XSRF check.
        """
        given = self.request.headers.get(SESSION_KEY_HEADER, "")
        own_key = self.state.own_key.encode()
        authorization = self.request.headers.get("Authorization", "").rpartition(" ")[2]
        self.by_session_key = is_session_key(given) or any(
            hmac.compare_digest(each.encode(), own_key) for each in (given, authorization)
        )
        if given and not self.by_session_key and "Authorization" not in self.request.headers:
            # Clients of OpenHands have one header for whatever key they were given.
            self.request.headers["Authorization"] = f"token {given}"
        self._body: list[bytes] = []
        self._body_bytes = 0
        prepared: Any = super().prepare(**kwargs)
        await ensure_async(prepared)
        if self.current_user is None:
            return  # the decorators of the method say so
        limits = self.state.limits
        limits.rate.take(self.principal)
        if not self.is_upload():
            limits.check_body(self.announced_bytes)

    @property
    def identity_provider(self) -> IdentityProvider:
        """The server's, or one that knows whoever shows a key."""
        if self.by_session_key or self.by_address_key:
            return _session_key_identity()
        found: IdentityProvider = super().identity_provider
        return found

    def check_xsrf_cookie(self) -> None:
        """Check it, unless a key came; JupyterHub's own check knows of its tokens only."""
        if not (self.by_session_key or self.by_address_key):
            super().check_xsrf_cookie()

    @property
    def announced_bytes(self) -> int:
        """Size of the body as the request's head tells it; 0 if it does not."""
        announced = self.request.headers.get("Content-Length", "0")
        return int(announced) if announced.isdigit() else 0

    def is_upload(self) -> bool:
        """Whether the request's body is passed on instead of being kept."""
        return False

    def data_received(self, chunk: bytes) -> Awaitable[None] | None:
        """Keep some of the body, up to the limit."""
        self._body_bytes += len(chunk)
        if self._body_bytes <= self.state.limits.max_body_bytes:
            self._body.append(chunk)
        return None

    @property
    def body(self) -> bytes:
        """The body; TransferTooLargeError if it is larger than the limit."""
        self.state.limits.check_body(self._body_bytes)
        return b"".join(self._body)

    def json_body(self) -> Any:
        """The parsed body; WireError if it is no JSON."""
        return parse_json(self.body)

    def json_object(self, *known: str) -> dict[str, Any]:
        """The body as an object that has no other fields than those; WireError for others."""
        body = self.json_body()
        if not isinstance(body, dict):
            raise WireError("The body must be a JSON object", "body")
        if unknown := sorted(body.keys() - {*known}):
            raise WireError(f"Unknown field {unknown[0]!r}. Known: {', '.join(known)}", unknown[0])
        return body

    def path_argument(self, name: str) -> str | None:
        """A path of the query as it is, None if there is none; WireError if it is no path."""
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

    def flag(self, name: str) -> bool:
        """Whether an argument of the query says yes."""
        return str(self.get_query_argument(name, "false")).lower() in ("true", "1")

    @property
    def state(self) -> ServerState:
        """The state of the extension."""
        return state_of(self.settings)

    @property
    def principal(self) -> str:
        """Who asks. A token is one principal: Jupyter makes up a user for each request with it."""
        anonymous = self.token_authenticated and not (self.by_session_key or self.by_address_key)
        return "" if anonymous else str(self.current_user.username)

    @property
    def actor(self) -> dict[str, str]:
        """Who asks, for the event log: the user if known, and the headers that name an agent."""
        named = {name: self.request.headers.get(key) for name, key in ACTOR_HEADERS.items()}
        named["user"] = self.principal
        return {name: value[:MAX_NAME_CHARS] for name, value in named.items() if value}

    async def allowed(self, action: str, resource: str) -> bool:
        """Whether Jupyter's authorizer lets the user do something."""
        asked = self.authorizer.is_authorized(self, self.current_user, action, resource)
        return bool(await ensure_async(asked))

    async def check_kernel(self, kernel_id: str | None) -> None:
        """Raise 403 unless the user may execute code in a kernel; the default one is nobody's."""
        if kernel_id is not None and not await self.allowed("execute", "kernels"):
            raise web.HTTPError(403, "User is not authorized to execute on resource: kernels.")

    async def link(self, kernel_id: str | None) -> KernelLink:
        """The link to a kernel that the user may execute code in, None for the default one."""
        await self.check_kernel(kernel_id)
        if kernel_id is None:
            return await self.state.router.default()
        return self.state.router.link(kernel_id)

    async def ask(
        self,
        kernel_id: str | None,
        operation: str,
        fields: dict[str, Any] | None = None,
        body: bytes | None = None,
        *,
        load: bool = True,
    ) -> Reply:
        """The reply of a kernel that the user may execute code in, None for the default one."""
        link = await self.link(kernel_id)
        return await link.request(operation, fields, body, load=load)

    async def while_connected(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of work that is cancelled when the client leaves."""
        task = self._work = asyncio.get_running_loop().create_task(work)
        if self.client_has_left:
            task.cancel()
        await asyncio.wait({task})
        if task.cancelled() and self.client_has_left:
            raise web.Finish
        result: T = self.result_of(task)
        return result

    @staticmethod
    def result_of(task: asyncio.Task[T]) -> T:
        """The result of a task that is done; 410 if it was cancelled."""
        if task.cancelled():
            raise web.HTTPError(410, "The request was cancelled")
        return task.result()

    def on_connection_close(self) -> None:
        """Cancel what nobody waits for any more."""
        self.client_has_left = True
        if self._work is not None:
            self._work.cancel()
        super().on_connection_close()

    async def send_pieces(self, download: Transfer) -> None:
        """Send what a kernel has to give, each piece when the one before was taken."""
        try:
            while piece := (await download.request("receive")).body:
                self.write(piece)
                await self.flush()
            # By itself Jupyter would call an empty one JSON.
            self.finish(set_content_type=self._headers["Content-Type"])
        except StreamClosedError:
            run_in_background(download.request("give_up"))
        except OhJupyterError:
            if not self._headers_written:
                raise
            # The head says that all is well: only a broken connection tells the client.
            self.log.warning("oh_jupyter: a download broke off", exc_info=True)
            connection: Any = self.request.connection
            connection.stream.close()

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """Answer an error as FastAPI would, which OpenHands' clients read, and as Jupyter does."""
        problem = kwargs.get("exc_info", (None, None, None))[1]
        self._has_kernel_ended = isinstance(problem, KernelDiedError | RuntimeClosedError)
        # A client that only looks into a person's kernel asks so: nothing there is no failure, nor
        # is a kernel that restarts meanwhile.
        nothing = self._has_kernel_ended or isinstance(problem, ExtensionMissingError)
        if nothing and self.flag("if_loaded"):
            self.finish_empty()
            return
        detail = self._reason
        if isinstance(problem, OhJupyterError):
            status_code = next(code for cls, code in _STATUS if isinstance(problem, cls))
            detail = str(problem)
        elif isinstance(problem, web.HTTPError):
            detail = reason_of(problem)
        elif problem is not None:
            detail = "An unexpected error occurred. Please try again later."
        if status_code == 403 and SESSION_KEY_HEADER in self.request.headers:
            detail = "Invalid API Key"
        elif status_code == 403 and self._is_unknown and not self.request.cookies:
            detail = NOT_LET_IN  # without them, nobody lacks an XSRF token
        body: dict[str, Any] = {"detail": detail, "message": detail}
        if isinstance(problem, OhJupyterError):
            body["error"] = type(problem).__name__
        if isinstance(problem, KernelTimeoutError):
            body["withdrawn"] = problem.withdrawn
        if isinstance(problem, WireError) and problem.field:
            body["field"] = problem.field
        if isinstance(problem, LimitExceededError):
            self.set_header("Retry-After", str(problem.retry_after))
        if self._refused_unread:  # tornado closes the connection then, without saying so
            self.set_header("Connection", "close")
        self.set_status(status_code)
        self.set_header("Content-Type", "application/json")
        self.finish(json.dumps(body))

    @property
    def _is_unknown(self) -> bool:
        """Whether it was looked who asks, and nobody was found; a refused host is not looked at."""
        return getattr(self, "_jupyter_current_user", self) is None and bool(self.check_host())

    def log_exception(self, *exc_info: Any) -> None:
        """Log what is ours to mend; what the caller did wrong is in the answer.

        Tornado would log the whole address of an HTTPError, with the token in it.
        """
        if isinstance(exc_info[1], OhJupyterError | web.HTTPError):
            self.log.debug("oh_jupyter: %s", exc_info[1])
        else:
            super().log_exception(*exc_info)

    def _log(self) -> None:
        """Log the request, but not as an error of the server if a person restarted the kernel.

        Jupyter would dump the headers of any request that gets a 503.
        """
        if self._has_kernel_ended:
            status, method, path = self.get_status(), self.request.method, self.request.path
            self.log.warning("%s %s %s: the kernel ended meanwhile", status, method, path)
        else:
            super()._log()

    def finish_empty(self) -> None:
        """Say that it is done."""
        self.set_status(204)
        self.finish()

    def finish_json(self, body: bytes | str | dict[str, Any] | list[Any]) -> None:
        """Send JSON, encoded already or to be encoded."""
        self.set_header("Content-Type", "application/json")
        self.finish(json.dumps(body) if isinstance(body, dict | list) else body)


Routes = list[tuple[str, type[OhHandler]]]
"""Patterns of addresses, and their handlers: ``KERNEL_ROUTES`` below a kernel's address."""
