"""Files of the kernel's machine: uploads, downloads and views, streamed."""

from __future__ import annotations

import hmac
import mimetypes
from contextlib import suppress
from typing import Any, ClassVar
from urllib.parse import quote

from jupyter_server.auth.decorator import authorized
from python_multipart.exceptions import MultipartParseError
from python_multipart.multipart import MultipartParser, parse_options_header
from tornado import web

from oh_jupyter.background import run_in_background
from oh_jupyter.errors import (
    OhJupyterError,
    TransferNotFoundError,
    TransferTooLargeError,
    WireError,
)
from oh_jupyter.server.handlers.base import OhHandler, Routes
from oh_jupyter.server.links import Transfer

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
        self._transfer: Transfer | None = None
        self.problem: Exception | None = None
        await super().admit(**kwargs)
        if not self.is_upload():
            return
        self._waiting: list[bytes] = []
        self._waiting_bytes = self.sent_bytes = 0
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

    def is_upload(self) -> bool:
        """Whether the request's body is to be passed on: other methods get none."""
        return self.request.method == self.upload_method

    async def data_received(self, chunk: bytes) -> None:
        """Pass contents on."""
        if not self.is_upload() or self.problem is not None:
            return
        try:
            for piece in self.pieces(chunk):
                if self._transfer is None:
                    await self.start()
                await self.send(piece)
        except Exception as problem:  # raised here, it would only break the connection
            self.problem = problem

    def pieces(self, chunk: bytes) -> list[bytes]:
        """What is to be passed on of the next bytes of the body."""
        return [chunk]

    async def start(self) -> None:
        """Begin the upload with what the request says of it."""
        raise NotImplementedError

    async def complete(self) -> None:
        """Have the whole body put in its place, or forgotten; what went wrong with it is raised."""
        try:
            if self.problem is not None:
                raise self.problem
            if self._transfer is None:  # the file is empty
                await self.start()
            await self.end()
        except Exception:
            await self.discard()
            raise

    async def send(self, piece: bytes) -> None:
        """Pass on some bytes; few are gathered."""
        self._waiting.append(piece)
        self._waiting_bytes += len(piece)
        self.sent_bytes += len(piece)
        if self._waiting_bytes >= PIECE_BYTES:
            await self._send_waiting()

    async def begin(self, kernel_id: str | None, operation: str, **fields: Any) -> None:
        """Begin the upload in the kernel, by an operation with some arguments."""
        link = await self.link(kernel_id)
        self.state.activity.touch()
        reply = await link.request(operation, fields)
        self._transfer = Transfer(link, reply)
        if self.client_has_left:  # while the kernel was asked, so that nothing was there to discard
            await self.discard()

    async def end(self) -> None:
        """All contents are there: have them put in their place."""
        await self._send_waiting()
        await self._under_way().request("finish")
        self._transfer = None

    async def discard(self) -> None:
        """Have the kernel forget what it got."""
        transfer, self._transfer = self._transfer, None
        if transfer is not None:
            with suppress(OhJupyterError):
                await transfer.request("give_up")

    def _under_way(self) -> Transfer:
        if self._transfer is None:
            raise TransferNotFoundError("The client went away; its upload was given up")
        return self._transfer

    async def _send_waiting(self) -> None:
        transfer = self._under_way()
        body = b"".join(self._waiting)
        self._waiting, self._waiting_bytes = [], 0
        if body:
            await transfer.request("send", body)

    def on_connection_close(self) -> None:
        """Forget what will not be ended: the client went away."""
        run_in_background(self.discard())
        super().on_connection_close()


class UploadHandler(StreamedUploadHandler):
    """POST a file, or a zipped folder, as a form."""

    upload_method = "POST"

    async def admit(self, **kwargs: Any) -> None:
        """Read the head of the request."""
        await super().admit(**kwargs)
        if self.is_upload():
            self._form = FileForm(self.request.headers.get("Content-Type", ""))

    def pieces(self, chunk: bytes) -> list[bytes]:
        """What of the file is in the next bytes of the form."""
        return self._form.feed(chunk)

    @web.authenticated
    @authorized("execute", resource="oh_jupyter:actions")
    async def post(self, kernel_id: str | None = None) -> None:
        """Put the file in its place."""
        self.check_form()
        await self.complete()
        self.finish_json(
            {
                "filename": self._form.filename,
                "destination": self._destination(),
                "recursive": self._recursive(),
            }
        )

    def check_form(self) -> None:
        """Note as the upload's problem that its form was not whole."""
        if self.problem is None and not (self._form.filename is not None and self._form.complete):
            self.problem = WireError(
                "There is no whole file in the form, in a part named 'file'", "file"
            )

    async def start(self) -> None:
        """Name the file and its folder."""
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
        await self.send_pieces(Transfer(link, reply))


def _attachment(name: str) -> str:
    """The header that names a file, also one whose name is not ASCII (RFC 6266)."""
    plain = "".join(c if c.isascii() and c.isprintable() and c not in '"\\' else "_" for c in name)
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe='')}"


class FileForm:
    """Reads a ``multipart/form-data`` body, whose file is the part named ``file``."""

    def __init__(self, content_type: str) -> None:
        """Begin."""
        kind, options = parse_options_header(content_type)
        boundary = options.get(b"boundary")
        if kind != b"multipart/form-data" or not boundary:
            raise WireError("Send the file as multipart/form-data, in a part named 'file'", "file")
        self.filename: str | None = None
        self.complete = False
        self._headers: dict[bytes, bytes] = {}
        self._name = self._value = b""
        self._in_file = False
        self._pieces: list[bytes] = []
        self._parser = MultipartParser(
            boundary,
            {
                "on_part_begin": self._headers.clear,
                "on_header_field": self._on_name,
                "on_header_value": self._on_value,
                "on_header_end": self._on_header,
                "on_headers_finished": self._on_headers,
                "on_part_data": self._on_data,
                "on_part_end": self._on_part_end,
                "on_end": self._on_end,
            },
        )

    def feed(self, chunk: bytes) -> list[bytes]:
        """What of the file is in the next bytes of the body; WireError if the form is malformed."""
        try:
            self._parser.write(chunk)
        except MultipartParseError as problem:
            raise WireError(f"The form cannot be read: {problem}", "file") from None
        pieces, self._pieces = self._pieces, []
        return pieces

    def _on_name(self, data: bytes, start: int, end: int) -> None:
        self._name += data[start:end]

    def _on_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]

    def _on_header(self) -> None:
        self._headers[self._name.lower()] = self._value
        self._name = self._value = b""

    def _on_headers(self) -> None:
        _, options = parse_options_header(self._headers.get(b"content-disposition", b""))
        if options.get(b"name") == b"file" and self.filename is None:
            self.filename = options.get(b"filename", b"").decode("utf-8", "replace")
            self._in_file = True

    def _on_data(self, data: bytes, start: int, end: int) -> None:
        if self._in_file:
            self._pieces.append(data[start:end])

    def _on_part_end(self) -> None:
        self._in_file = False

    def _on_end(self) -> None:
        self.complete = True


BYTES = "application/octet-stream"


class ViewHandler(OhHandler):
    """GET a file as what it is: PDFs, pictures and texts are shown, others downloaded.

    OpenHands' agents open such an address in a browser that has logged in nowhere. So there is
    one with a key in it, which is in the file that the setting ``server_url_file`` names.
    """

    async def admit(self, **kwargs: Any) -> None:
        """Let in who knows the key in the address."""
        given = str(self.path_kwargs.get("view_key") or "")
        self.by_address_key = hmac.compare_digest(given.encode(), self.state.view_key.encode())
        await super().admit(**kwargs)

    @property
    def content_security_policy(self) -> str:
        """Whatever is in the file, it does nothing in the name of this server."""
        return "default-src 'none'; img-src 'self' data:; style-src 'unsafe-inline'"

    @web.authenticated
    @authorized("execute", resource="oh_jupyter:actions")
    async def get(self, kernel_id: str | None = None, view_key: str | None = None) -> None:
        """Send the file."""
        path = self.path_argument("path")
        if path is None:
            raise WireError("Say which file to view: ?path=/absolute/path", "path")
        link = await self.link(kernel_id)
        self.state.activity.touch()
        reply = await link.request("download_file", {"path": path})
        self.set_header("Content-Type", _type_of(str(reply.fields["name"])))
        self.set_header("X-Content-Type-Options", "nosniff")
        self.set_header("Cache-Control", "no-store")
        await self.send_pieces(Transfer(link, reply))


def _type_of(name: str) -> str:
    kind, encoding = mimetypes.guess_type(name)
    if kind is None or encoding is not None:
        return BYTES
    return f"{kind}; charset=utf-8" if kind.startswith("text/") else kind


@web.stream_request_body
class StoreHandler(StreamedUploadHandler):
    """Files of the store by path.

    A path that ends in a slash, or none, is a directory; so is any with ``?list=true`` or
    ``?details=true``.
    """

    resource = "oh_jupyter:store"
    action = "write"
    upload_method = "PUT"

    @web.authenticated
    @authorized("read", resource="oh_jupyter:store")
    async def get(self, path: str = "", kernel_id: str | None = None) -> None:
        """Send a file, the entries of a directory, or what is known of either."""
        link = await self.link(kernel_id)
        if self.flag("info"):
            # Open tabs look whether their file is another one; that begins no runtime.
            reply = await link.request("store_info", {"path": path.rstrip("/")}, load=False)
            self.finish_json(reply.fields["info"])
            return
        details = self.flag("details")
        if details or self.flag("list") or path == "" or path.endswith("/"):
            reply = await link.request("list_store", {"path": path.rstrip("/"), "details": details})
            names = ("entries", "details", "total")
            found = {name: reply.fields[name] for name in names if name in reply.fields}
            self.finish_json({"path": path, **found})
            return
        reply = await link.request("download_from_store", {"path": path})
        self.set_header("Content-Type", "application/octet-stream")
        self.set_header("X-Content-Type-Options", "nosniff")
        await self.send_pieces(Transfer(link, reply))

    @web.authenticated
    @authorized("write", resource="oh_jupyter:store")
    async def put(self, path: str = "", kernel_id: str | None = None) -> None:
        """Keep the body as a file, which becomes visible as a whole."""
        await self.complete()
        self.finish_empty()

    @web.authenticated
    @authorized("write", resource="oh_jupyter:store")
    async def delete(self, path: str = "", kernel_id: str | None = None) -> None:
        """Delete a file, or a directory with all that is in it."""
        await self.ask(kernel_id, "delete_from_store", {"path": path.rstrip("/")})
        self.finish_empty()

    @web.authenticated
    @authorized("write", resource="oh_jupyter:store")
    async def patch(self, path: str = "", kernel_id: str | None = None) -> None:
        """Rename a file or directory to ``?to=``, where nothing may be."""
        target = self.path_argument("to")
        if target is None:
            raise WireError("Say what it is to be called: ?to=new/path", "to")
        await self.ask(kernel_id, "rename_in_store", {"path": path.rstrip("/"), "to": target})
        self.finish_empty()

    async def start(self) -> None:
        """Name the file."""
        fields: dict[str, Any] = {"path": self.path_kwargs.get("path") or ""}
        await self.begin(self.path_kwargs.get("kernel_id"), "upload_to_store", **fields)


KERNEL_ROUTES: Routes = [
    (r"/upload_file", UploadHandler),
    (r"/download_files", DownloadHandler),
    (r"/view", ViewHandler),
    (r"/store/(?P<path>.*)", StoreHandler),
]
SERVER_ROUTES: Routes = [
    (r"/viewer/(?P<view_key>[\w-]+)/view", ViewHandler),
]
