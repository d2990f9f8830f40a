"""``upload_file`` and ``download_files``: streamed to and from the kernel's machine."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, ClassVar
from urllib.parse import quote

from jupyter_server.auth.decorator import authorized
from tornado import web

from oh_jupyter.background import run_in_background
from oh_jupyter.errors import (
    OhJupyterError,
    TransferNotFoundError,
    TransferTooLargeError,
    WireError,
)
from oh_jupyter.server.handlers.base import OhHandler
from oh_jupyter.server.handlers.file_form import FileForm
from oh_jupyter.server.links import KernelLink

__all__ = ["DownloadHandler", "StreamedUploadHandler", "UploadHandler"]

PIECE_BYTES = 1024 * 1024
"""Bytes that go to the kernel in one message."""

FORM_OVERHEAD_BYTES = 64 * 1024
"""Bytes of a form that are not the file's, at most."""


@web.stream_request_body
class StreamedUploadHandler(OhHandler):
    """Passes a body on to the kernel in pieces, as fast as the kernel takes them."""

    resource = "oh_jupyter:actions"
    action = "execute"
    upload_method: ClassVar[str]

    async def admit(self, **kwargs: Any) -> None:
        """Refuse what will be refused before the body is sent."""
        self._target: tuple[KernelLink, str] | None = None
        self.problem: Exception | None = None
        await super().admit(**kwargs)
        if not self.is_upload():
            return
        self._waiting: list[bytes] = []
        self._waiting_bytes = 0
        # The decorators of the method itself are asked when the body is there already.
        if self.current_user is None:
            raise web.HTTPError(403)
        if not await self.allowed(self.action, self.resource):
            raise web.HTTPError(403)
        limit = self.state.limits.max_upload_bytes + FORM_OVERHEAD_BYTES
        connection: Any = self.request.connection
        connection.set_max_body_size(limit)
        if self.announced_bytes > limit:
            raise TransferTooLargeError(
                f"The upload is larger than {limit / 1024**2:.0f} MiB; the setting max_upload_mb "
                "allows no more"
            )

    @property
    def begun(self) -> bool:
        """Whether the kernel knows of the upload."""
        return self._target is not None

    def is_upload(self) -> bool:
        """Whether the request's body is to be passed on: other methods get none."""
        return self.request.method == self.upload_method

    async def settle(self, begin: Callable[[], Awaitable[None]]) -> None:
        """The whole body was there: have it put in its place, or forgotten.

        ``begin`` is needed if the file is empty. What went wrong while the body came is raised.
        """
        try:
            if self.problem is not None:
                raise self.problem
            if not self.begun:
                await begin()
            await self.end()
        except Exception:
            await self.abandon()
            raise

    async def send(self, piece: bytes) -> None:
        """Pass on some bytes; few are gathered."""
        self._waiting.append(piece)
        self._waiting_bytes += len(piece)
        if self._waiting_bytes >= PIECE_BYTES:
            await self._send_waiting()

    async def begin(self, kernel_id: str | None, operation: str, **fields: Any) -> None:
        """Begin the upload in the kernel, by an operation with some arguments."""
        link = await self.link(kernel_id)
        self.state.activity.touch()
        reply = await link.request(operation, fields)
        self._target = (link, reply.fields["id"])
        if self.client_has_left:  # while the kernel was asked, so that nothing was there to abandon
            await self.abandon()

    async def end(self) -> None:
        """All contents are there: have them put in their place."""
        await self._send_waiting()
        link, key = self._under_way()
        await link.request("finish", {"id": key})
        self._target = None

    async def abandon(self) -> None:
        """Have the kernel forget what it got."""
        target, self._target = self._target, None
        if target is not None:
            link, key = target
            with suppress(OhJupyterError):
                await link.request("give_up", {"id": key}, load=False)

    def _under_way(self) -> tuple[KernelLink, str]:
        if self._target is None:
            raise TransferNotFoundError("The client went away; its upload was given up")
        return self._target

    async def _send_waiting(self) -> None:
        link, key = self._under_way()
        body = b"".join(self._waiting)
        self._waiting, self._waiting_bytes = [], 0
        if body:
            await link.request("send", {"id": key}, body)

    def on_connection_close(self) -> None:
        """Forget what will not be ended: the client went away."""
        run_in_background(self.abandon())
        super().on_connection_close()


class UploadHandler(StreamedUploadHandler):
    """POST a file, or a zipped folder, as a form."""

    upload_method = "POST"

    async def admit(self, **kwargs: Any) -> None:
        """Read the head of the request."""
        await super().admit(**kwargs)
        if self.is_upload():
            self._form = FileForm(self.request.headers.get("Content-Type", ""))

    async def data_received(self, chunk: bytes) -> None:
        """Pass the file on."""
        if not self.is_upload() or self.problem is not None:
            return
        try:
            for piece in self._form.feed(chunk):
                if self._target is None:
                    await self._begin()
                await self.send(piece)
        except Exception as problem:  # raised here, it would only break the connection
            self.problem = problem

    @web.authenticated
    @authorized("execute", resource="oh_jupyter:actions")
    async def post(self, kernel_id: str | None = None) -> None:
        """Put the file in its place."""
        if self.problem is None and not (self._form.filename is not None and self._form.complete):
            self.problem = WireError(
                "There is no whole file in the form, in a part named 'file'", "file"
            )
        await self.settle(self._begin)
        self.finish_json(
            {
                "filename": self._form.filename,
                "destination": self._destination(),
                "recursive": self._recursive(),
            }
        )

    async def _begin(self) -> None:
        await self.begin(
            self.path_kwargs.get("kernel_id"),
            "upload",
            destination=self._destination(),
            filename=self._form.filename,
            recursive=self._recursive(),
        )

    def _destination(self) -> str:
        return self.path_argument("destination") or "/"

    def _recursive(self) -> bool:
        text = self.get_query_argument("recursive", "false").lower()
        if text not in ("true", "false", "1", "0"):
            raise WireError(f"'recursive' must be true or false, not {text!r}", "recursive")
        return text in ("true", "1")


class DownloadHandler(OhHandler):
    """GET a file or directory as a zip file."""

    @web.authenticated
    @authorized("execute", resource="oh_jupyter:actions")
    async def get(self, kernel_id: str | None = None) -> None:
        """Send the zip file while it is made."""
        path = self.path_argument("path")
        if path is None:
            raise WireError("Say what to download: ?path=/absolute/path", "path")
        link = await self.link(kernel_id)
        self.state.activity.touch()
        reply = await link.request("download", {"path": path})
        self.set_header("Content-Type", "application/zip")
        self.set_header("Content-Disposition", _attachment(f"{reply.fields['name']}.zip"))
        await self.send_pieces(link, reply.fields["id"])


def _attachment(name: str) -> str:
    """The header that names a file, also one whose name is not ASCII (RFC 6266)."""
    plain = "".join(c if c.isascii() and c.isprintable() and c not in '"\\' else "_" for c in name)
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe='')}"
