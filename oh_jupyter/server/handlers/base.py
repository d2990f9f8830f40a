"""What all handlers share: who may use them, and how they say what went wrong."""

from __future__ import annotations

import hmac
import json
import os
from typing import TYPE_CHECKING, Any, cast

from jupyter_core.utils import ensure_async
from jupyter_server.auth.identity import User
from jupyter_server.base.handlers import APIHandler
from jupyter_server.extension.handler import ExtensionHandlerMixin
from tornado import web

from oh_jupyter.errors import (
    EventNotFoundError,
    ExtensionMissingError,
    KernelDiedError,
    KernelNotFoundError,
    KernelTimeoutError,
    NotRunnableError,
    OhJupyterError,
    RuntimeClosedError,
    UnknownTypeError,
    WireError,
)

if TYPE_CHECKING:
    from oh_jupyter.server.links import KernelLink
    from oh_jupyter.server.router import Router

__all__ = ["OhHandler"]

SESSION_KEY_HEADER = "X-Session-API-Key"
SESSION_KEY_VARIABLE = "SESSION_API_KEY"

_STATUS: tuple[tuple[type[OhJupyterError], int], ...] = (
    (UnknownTypeError, 400),
    (NotRunnableError, 400),
    (WireError, 422),
    (KernelNotFoundError, 404),
    (EventNotFoundError, 404),
    (ExtensionMissingError, 424),
    (KernelDiedError, 503),
    (RuntimeClosedError, 503),
    (KernelTimeoutError, 504),
    (OhJupyterError, 500),
)


class OhHandler(ExtensionHandlerMixin, APIHandler):  # type: ignore[misc]
    """Base of the handlers."""

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
        prepared: Any = super().prepare(**kwargs)
        await ensure_async(prepared)

    @property
    def router(self) -> Router:
        """The extension's router."""
        return cast("Router", self.settings["oh_jupyter_router"])

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
        if kernel_id is None:
            return await self.router.default()
        user = self.current_user
        allowed = await ensure_async(
            self.authorizer.is_authorized(self, user, "execute", "kernels")
        )
        if not allowed:
            raise web.HTTPError(403, "User is not authorized to execute on resource: kernels.")
        return self.router.link(kernel_id)

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
        body = {"detail": detail, "message": detail}
        if isinstance(problem, WireError) and problem.field:
            body["field"] = problem.field
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
