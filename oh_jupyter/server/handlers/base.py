"""Base of all handlers: admission, bodies, access to kernels, errors."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import os
from collections.abc import Awaitable, Coroutine, Mapping
from dataclasses import replace
from functools import cache
from typing import Any, ClassVar, TypeVar

from jupyter_core.utils import ensure_async
from jupyter_server.auth.authorizer import Authorizer
from jupyter_server.auth.identity import IdentityProvider, User
from jupyter_server.base.handlers import APIHandler
from jupyter_server.extension.handler import ExtensionHandlerMixin
from tornado import web
from tornado.iostream import StreamClosedError

from oh_jupyter.background import run_in_background
from oh_jupyter.config import SESSION_KEY_VARIABLE
from oh_jupyter.control_messages import CLIENT_HEADER, GUEST_HEADER
from oh_jupyter.errors import (
    AnswerError,
    CheckpointError,
    ConfirmationError,
    DiskFullError,
    EventNotFoundError,
    ExtensionMissingError,
    GatewayError,
    KernelDiedError,
    KernelNotFoundError,
    KernelTimeoutError,
    LimitExceededError,
    NotApprovedError,
    NotRunnableError,
    OhJupyterError,
    PolicyError,
    RequestNotFoundError,
    RuntimeClosedError,
    StorePathError,
    TransferError,
    TransferNotFoundError,
    TransferTooLargeError,
    UnknownTypeError,
    WireError,
)
from oh_jupyter.events.actor import Actor, missing_scope
from oh_jupyter.events.json import parse_json
from oh_jupyter.mcp_tools.notebooks import OpenNotebook
from oh_jupyter.operations import Operation
from oh_jupyter.operations.files import GiveUp, Receive
from oh_jupyter.server.handlers.contract import Error
from oh_jupyter.server.handlers.queries import parse_query
from oh_jupyter.server.handlers.token_access import authorizer_of, identity_of, refusal
from oh_jupyter.server.http_errors import reason_of
from oh_jupyter.server.links import KernelLink, KernelTransfer, Reply
from oh_jupyter.server.open_notebooks import open_notebooks
from oh_jupyter.server.state import ServerState, state_of
from oh_jupyter.server.tokens import PREFIX, ScopedToken, confines

T = TypeVar("T")

SESSION_KEY_HEADER = "X-Session-API-Key"

ACTOR_HEADERS = {
    "persona": "X-JupyterAI-Persona-Id",
    "chat": "X-Jupyter-Chat-Id",
    "guest": GUEST_HEADER,
    "client": CLIENT_HEADER,
}
"""Headers that name the actor: a persona of Jupyter AI and its chat, a guest agent, a program."""

SESSION_HEADERS = ("Mcp-Session-Id", "X-Session")
"""Headers that name the session of a client, whose Actions form turns."""

MAX_NAME_CHARS = 200
MAX_SESSION_NAME_CHARS = 40

NOT_AUTHENTICATED = (
    "The server's token is missing or wrong. Send it as the header Authorization: token TOKEN, or "
    f"as {SESSION_KEY_HEADER}; jupyter server list shows the current one"
)

_STATUS: Mapping[type[BaseException], int] = {
    UnknownTypeError: 400,
    NotApprovedError: 403,
    NotRunnableError: 400,
    StorePathError: 400,
    TransferError: 400,
    AnswerError: 400,
    KernelNotFoundError: 404,
    EventNotFoundError: 404,
    ConfirmationError: 404,
    RequestNotFoundError: 404,
    TransferNotFoundError: 404,
    PolicyError: 403,
    CheckpointError: 409,
    TransferTooLargeError: 413,
    WireError: 422,
    ExtensionMissingError: 424,
    LimitExceededError: 429,
    OhJupyterError: 500,
    GatewayError: 502,
    KernelDiedError: 503,
    RuntimeClosedError: 503,
    KernelTimeoutError: 504,
    DiskFullError: 507,
}


class SessionKeyIdentityProvider(IdentityProvider):  # type: ignore[misc]
    """Identity of requests that carry a session key, whatever identity provider the server has."""

    def get_user(self, handler: Any) -> User:
        """Return the only user."""
        return User(username="openhands", name="openhands", display_name="OpenHands")

    def is_token_authenticated(self, handler: Any) -> bool:
        """Skip the XSRF check: no other site can send the key."""
        return True


@cache
def _session_key_identity() -> SessionKeyIdentityProvider:
    return SessionKeyIdentityProvider()


def is_session_key(key: str) -> bool:
    """Whether a key is the configured session key of OpenHands' clients."""
    expected = os.environ.get(SESSION_KEY_VARIABLE, "")
    return bool(expected) and hmac.compare_digest(key.encode(), expected.encode())


@web.stream_request_body
class OhHandler(ExtensionHandlerMixin, APIHandler):  # type: ignore[misc]
    """Base of the handlers.

    Bodies are streamed: unauthorized ones are not read, and oversized ones are not kept.
    ``by_session_key`` and ``by_address_key`` say which of the agents' keys admitted the request,
    ``scoped`` is the scoped token that did.
    """

    routes: ClassVar[Mapping[str, Any]] = {}
    by_session_key = False
    by_address_key = False
    scoped: ScopedToken | None = None
    client_has_left = False
    _rejected_unread = False
    _has_kernel_ended = False
    _work: asyncio.Task[Any] | None = None

    async def prepare(self, **kwargs: Any) -> None:
        """Admit or reject the request before its body is read."""
        try:
            await self.admit(**kwargs)
        except Exception:
            self._rejected_unread = True
            raise

    async def admit(self, **kwargs: Any) -> None:
        """Check the request's headers, and raise an error to reject it.

        A session key travels in a header. Like Jupyter's token, no other site can forge it, so
        these requests skip the XSRF check.
        """
        key = self.request.headers.get(SESSION_KEY_HEADER, "")
        own_key = self.state.own_key.encode()
        authorization = self.request.headers.get("Authorization", "").rpartition(" ")[2]
        self.by_session_key = is_session_key(key) or any(
            hmac.compare_digest(credential.encode(), own_key) for credential in (key, authorization)
        )
        secret = next((each for each in (key, authorization) if each.startswith(PREFIX)), "")
        self.scoped = self.state.tokens.find(secret) if secret else None
        if key and not self.by_session_key and "Authorization" not in self.request.headers:
            # OpenHands' clients send any kind of key in this one header.
            self.request.headers["Authorization"] = f"token {key}"
        self._body: list[bytes] = []
        self._body_bytes = 0
        prepared: Any = super().prepare(**kwargs)
        await ensure_async(prepared)
        if self.current_user is None:
            return  # the decorators of the method reject it
        limits = self.state.limits
        limits.rate.take(self.principal)
        if not self.is_upload():
            limits.check_body(self.announced_bytes)

    @property
    def identity_provider(self) -> IdentityProvider:
        """The server's identity provider, or that of requests with a key or a scoped token."""
        if self.scoped is not None:
            return identity_of(self.scoped)
        if self.by_session_key or self.by_address_key:
            return _session_key_identity()
        provider: IdentityProvider = super().identity_provider
        return provider

    @property
    def authorizer(self) -> Authorizer:
        """The server's authorizer, or that of the request's scoped token."""
        if self.scoped is not None:
            return authorizer_of(self.scoped)
        authorizer: Authorizer = super().authorizer
        return authorizer

    @property
    def _has_own_credential(self) -> bool:
        """Whether a credential of this extension admitted the request."""
        return self.by_session_key or self.by_address_key or self.scoped is not None

    @property
    def by_whom(self) -> dict[str, Any]:
        """Fields of a request to the kernel that name its agent; {} for a person.

        The credentials of this extension are for agents, Jupyter's own ones are a person's.
        """
        if not self._has_own_credential:
            return {}
        actor = self.actor.to_json()
        return {"by_agent": True, "actor": actor, "confined": confines(self.scopes)}

    def check_xsrf_cookie(self) -> None:
        """Check it unless the request has a key; JupyterHub's check knows only its own tokens."""
        if not self._has_own_credential:
            super().check_xsrf_cookie()

    @property
    def announced_bytes(self) -> int:
        """The request's Content-Length, or 0."""
        length = self.request.headers.get("Content-Length", "0")
        return int(length) if length.isdigit() else 0

    def is_upload(self) -> bool:
        """Whether the body is passed on in pieces instead of being collected."""
        return False

    def data_received(self, chunk: bytes) -> Awaitable[None] | None:
        """Collect a part of the body, up to the limit."""
        self._body_bytes += len(chunk)
        if self._body_bytes <= self.state.limits.max_body_bytes:
            self._body.append(chunk)
        return None

    @property
    def body(self) -> bytes:
        """The body; raises TransferTooLargeError above the limit."""
        self.state.limits.check_body(self._body_bytes)
        return b"".join(self._body)

    def json_body(self) -> Any:
        """Return the parsed body, or raise WireError."""
        return parse_json(self.body)

    def json_object(self, *known: str) -> dict[str, Any]:
        """Return the body, a JSON object with only these fields, or raise WireError."""
        body = self.json_body()
        if not isinstance(body, dict):
            raise WireError("The body must be a JSON object", "body")
        if unknown := sorted(body.keys() - {*known}):
            raise WireError(f"Unknown field {unknown[0]!r}. Known: {', '.join(known)}", unknown[0])
        return body

    def path_argument(self, name: str) -> str | None:
        """Return a path of the query unchanged, None if absent; raise WireError if malformed."""
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
        """Whether an argument of the query is true."""
        return str(self.get_query_argument(name, "false")).lower() in ("true", "1")

    def query(self, kind: type[T]) -> T:
        """Return the arguments of the query as a dataclass, or raise WireError.

        Strings are taken unchanged, numbers within their constraints.
        """
        return parse_query(kind, self.flag, self.path_argument, self.get_query_argument)

    @property
    def state(self) -> ServerState:
        """State of the extension."""
        return state_of(self.settings)

    @property
    def principal(self) -> str:
        """The caller. A token is one principal: Jupyter invents a user for each of its requests.

        A provider with its own users, such as JupyterHub's, knows whose token it is.
        """
        has_users = type(self.identity_provider).get_user.__module__ != IdentityProvider.__module__
        anonymous = self.token_authenticated and not (has_users or self._has_own_credential)
        return "" if anonymous else str(self.current_user.username)

    @property
    def actor(self) -> Actor:
        """The caller for the event log: the user if known, and headers that name an agent."""
        names = {name: self.request.headers.get(key) for name, key in ACTOR_HEADERS.items()}
        names["user"] = self.principal
        session = next(filter(None, map(self.request.headers.get, SESSION_HEADERS)), "")
        chosen = self.request.headers.get("X-Session")
        if chosen and not (names["guest"] or names["client"]):
            names["client"] = f"REST ({chosen[:MAX_SESSION_NAME_CHARS]})"
        # The id itself would admit others to the session.
        names["session"] = session and hashlib.sha256(session.encode()).hexdigest()[:12]
        return Actor(**{name: value[:MAX_NAME_CHARS] for name, value in names.items() if value})

    async def allowed(self, action: str, resource: str) -> bool:
        """Ask Jupyter's authorizer about the user."""
        verdict = self.authorizer.is_authorized(self, self.current_user, action, resource)
        return bool(await ensure_async(verdict))

    @property
    def scopes(self) -> tuple[str, ...] | None:
        """Scopes of the request's token, or None without limits."""
        return None if self.scoped is None else self.scoped.scopes

    @property
    def only_notebook(self) -> str:
        """Path of the only notebook that the request's token allows, or ""."""
        return "" if self.scoped is None else self.scoped.notebook

    def require_scope(self, scope: str) -> None:
        """Raise 403 unless the request's token has a scope."""
        if self.scopes is not None and scope not in self.scopes:
            raise web.HTTPError(403, missing_scope(scope, self.scopes))

    async def kernel_of(self, kernel_id: str | None) -> str | None:
        """Return the kernel that a request is for, None for the default one.

        A token for one notebook allows only the kernel of this notebook, which is its default.
        """
        if not self.only_notebook:
            return kernel_id
        for notebook in await self.open_notebooks():
            own = notebook.kernel_id
            if notebook.path == self.only_notebook and kernel_id in (None, own):
                return own
        raise web.HTTPError(
            403, f"The token allows only the kernel of {self.only_notebook}, which must be open"
        )

    async def open_notebooks(self) -> list[OpenNotebook]:
        """Return the notebooks that have a kernel."""
        root = getattr(self.contents_manager, "root_dir", "")
        return await open_notebooks(self.session_manager, self.state.router, root)

    async def check_kernel(self, kernel_id: str | None) -> None:
        """Raise 403 unless the user may execute code in this kernel; everybody may in None."""
        if self.scoped is not None:
            await self.kernel_of(kernel_id)
        elif kernel_id is not None and not await self.allowed("execute", "kernels"):
            raise web.HTTPError(403, "User is not authorized to execute on resource: kernels.")

    async def link(self, kernel_id: str | None) -> KernelLink:
        """Return the link to a kernel, None for the default one, if the user may use it."""
        await self.check_kernel(kernel_id)
        kernel_id = await self.kernel_of(kernel_id)
        if kernel_id is None:
            return await self.state.router.default()
        return self.state.router.link(kernel_id)

    async def ask_kernel(
        self,
        link: KernelLink,
        operation: Operation[Any],
        body: bytes | None = None,
        *,
        load: bool = True,
    ) -> Reply:
        """Send a kernel a request of the caller; return its reply.

        An agent's request may wait for a person; it is withdrawn when the client disconnects.
        """
        is_agents = self._has_own_credential
        asked = link.request(
            operation, body, envelope=self.by_whom, load=load, cancellable=is_agents
        )
        return await (self.while_connected(asked) if is_agents else asked)

    async def while_connected(self, work: Coroutine[Any, Any, T]) -> T:
        """Return the result of work that is cancelled when the client disconnects."""
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
        """Return the result of a finished task; raise 410 if it was cancelled."""
        if task.cancelled():
            raise web.HTTPError(410, "The request was cancelled")
        return task.result()

    def on_connection_close(self) -> None:
        """Cancel the work of a client that has disconnected."""
        self.client_has_left = True
        if self._work is not None:
            self._work.cancel()
        super().on_connection_close()

    async def send_pieces(self, download: KernelTransfer) -> None:
        """Stream a download of a kernel as fast as the client takes it."""
        try:
            while piece := (await download.request(Receive(download.id))).body:
                self.write(piece)
                await self.flush()
            # Jupyter would label an empty body as JSON.
            self.finish(set_content_type=self._headers["Content-Type"])
        except StreamClosedError:
            run_in_background(download.request(GiveUp(download.id)))
        except OhJupyterError:
            if not self._headers_written:
                raise
            # The status is already sent as 200: only a broken connection reports the failure.
            self.log.warning("oh_jupyter: a download failed half-way", exc_info=True)
            connection: Any = self.request.connection
            connection.stream.close()

    def error_body(self, detail: str, status_code: int) -> Error:
        """Return an error with the fields that every error has."""
        return Error(detail, message=detail)

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """Send an error in the format of FastAPI, for OpenHands' clients, and of Jupyter."""
        error = kwargs.get("exc_info", (None, None, None))[1]
        self._has_kernel_ended = isinstance(error, KernelDiedError | RuntimeClosedError)
        # A client that only inspects a person's kernel passes this flag: a kernel without a
        # runtime, or one that is restarting, is no failure.
        has_no_runtime = self._has_kernel_ended or isinstance(error, ExtensionMissingError)
        if has_no_runtime and self.flag("if_loaded"):
            self.finish_empty()
            return
        if isinstance(error, OhJupyterError):
            status_code = next(_STATUS[cls] for cls in type(error).__mro__ if cls in _STATUS)
        body = self.error_body(self._detail(error, status_code), status_code)
        if isinstance(error, OhJupyterError):
            body = replace(body, error=type(error).__name__)
        if isinstance(error, KernelTimeoutError):
            body = replace(body, withdrawn=error.withdrawn)
        if isinstance(error, WireError) and error.field:
            body = replace(body, field=error.field)
        if isinstance(error, LimitExceededError):
            self.set_header("Retry-After", str(error.retry_after))
        if self._rejected_unread:  # tornado then closes the connection without announcing it
            self.set_header("Connection", "close")
        self.set_status(status_code)
        self.set_header("Content-Type", "application/json")
        values = {name: value for name, value in vars(body).items() if value is not None}
        self.finish(json.dumps(values))

    def _detail(self, error: BaseException | None, status_code: int) -> str:
        """Return the sentence that describes an error to the client."""
        if isinstance(error, OhJupyterError):
            return str(error)
        if status_code == 403 and self.scoped is not None:
            reason = reason_of(error) if isinstance(error, web.HTTPError) else ""
            return refusal(self.scoped, reason)
        if status_code == 403 and SESSION_KEY_HEADER in self.request.headers:
            return "Invalid API Key"
        if status_code == 403 and self._is_unauthenticated and not self.request.cookies:
            return NOT_AUTHENTICATED  # with cookies, it may be the XSRF token that is missing
        if isinstance(error, web.HTTPError):
            return reason_of(error)
        if error is not None:
            return "An unexpected error occurred. Please try again later."
        return str(self._reason)

    @property
    def _is_unauthenticated(self) -> bool:
        """Whether authentication ran and found no user; it does not run for a rejected host."""
        return getattr(self, "_jupyter_current_user", self) is None and bool(self.check_host())

    def log_exception(self, *exc_info: Any) -> None:
        """Log unexpected errors; the caller's own mistakes are in the response.

        Tornado would log the whole URL of an HTTPError, including the token.
        """
        if isinstance(exc_info[1], OhJupyterError | web.HTTPError):
            self.log.debug("oh_jupyter: %s", exc_info[1])
        else:
            super().log_exception(*exc_info)

    def _log(self) -> None:
        """Log the request, as a warning if its kernel ended.

        Jupyter would dump the headers of any request with status 503.
        """
        if self._has_kernel_ended:
            status, method, path = self.get_status(), self.request.method, self.request.path
            self.log.warning("%s %s %s: the kernel ended before it replied", status, method, path)
        else:
            super()._log()

    def finish_empty(self) -> None:
        """Send 204."""
        self.set_status(204)
        self.finish()

    def finish_json(self, body: bytes | str | dict[str, Any] | list[Any]) -> None:
        """Send JSON, encoding it if necessary."""
        self.set_header("Content-Type", "application/json")
        self.finish(json.dumps(body) if isinstance(body, dict | list) else body)
