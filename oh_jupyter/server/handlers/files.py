"""Files of the kernel's machine: uploads, downloads and views, streamed."""

from __future__ import annotations

import hmac
import json
import mimetypes
from contextlib import suppress
from typing import Any, ClassVar
from urllib.parse import quote

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
from oh_jupyter.operations import Operation
from oh_jupyter.operations.files import (
    Download,
    DownloadFile,
    DownloadFromStore,
    DownloadPage,
    Finish,
    GiveUp,
    Send,
    Upload,
    UploadToStore,
)
from oh_jupyter.operations.store import DeleteFromStore, ListStore, RenameInStore, StoreInfo
from oh_jupyter.server.handlers.base import OhHandler
from oh_jupyter.server.handlers.routes import (
    EXECUTE_ACTIONS,
    READ_STORE,
    WRITE_STORE,
    Permission,
    RouteTable,
    send_body,
    send_nothing,
)
from oh_jupyter.server.links import KernelTransfer
from oh_jupyter.storage.paths import path_key

PIECE_BYTES = 1024 * 1024  # bytes sent to the kernel in one message
FORM_OVERHEAD_BYTES = 64 * 1024  # upper bound for the bytes of a form beside the file
BINARY = "application/octet-stream"

routes = RouteTable()
server_routes = RouteTable()


class StreamedUploadHandler(OhHandler):
    """Passes a body on to the kernel in pieces, as fast as the kernel takes them."""

    permission: ClassVar[Permission] = EXECUTE_ACTIONS
    upload_method: ClassVar[str] = "POST"

    async def admit(self, **kwargs: Any) -> None:
        """Check permission and size before the body is sent."""
        self._transfer: KernelTransfer | None = None
        self.error: Exception | None = None
        await super().admit(**kwargs)
        if not self.is_upload():
            return
        self._pending: list[bytes] = []
        self._pending_bytes = self.sent_bytes = 0
        # The decorators of the method run only when the body has arrived.
        if self.current_user is None or not await self.allowed(*self.permission):
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
        """Whether the body is passed on; only one method has such a body."""
        return self.request.method == self.upload_method

    async def data_received(self, chunk: bytes) -> None:
        """Pass contents on."""
        if not self.is_upload() or self.error is not None:
            return
        try:
            for piece in self.pieces(chunk):
                if self._transfer is None:
                    await self.start()
                await self._send(piece)
        except Exception as error:  # raised here, it would only close the connection
            self.error = error

    def pieces(self, chunk: bytes) -> list[bytes]:
        """Return the contents of the file in the next bytes of the body."""
        return [chunk]

    async def start(self) -> None:
        """Start the upload with the fields of the request."""
        raise NotImplementedError

    async def begin(self, operation: Operation[Any]) -> None:
        """Start the upload in the kernel by an operation."""
        link = await self.link(self.path_kwargs.get("kernel_id"))
        self.state.activity.touch()
        reply = await link.request(operation, envelope=self.by_whom)
        self._transfer = KernelTransfer.started(link, reply)
        if self.client_has_left:  # during the request, when there was nothing to discard
            await self.discard()

    async def complete(self) -> None:
        """Have the kernel store the whole body, or discard it and raise what went wrong."""
        try:
            if self.error is not None:
                raise self.error
            if self._transfer is None:  # the file is empty
                await self.start()
            await self._send_pending()
            transfer = self._active_transfer()
            finished = transfer.request(Finish(transfer.id), cancellable=True)
            await (self.while_connected(finished) if self.by_whom else finished)
            self._transfer = None
        except Exception:
            await self.discard()
            raise

    async def discard(self) -> None:
        """Have the kernel discard what it has received."""
        transfer, self._transfer = self._transfer, None
        if transfer is not None:
            with suppress(OhJupyterError):
                await transfer.request(GiveUp(transfer.id))

    async def _send(self, piece: bytes) -> None:
        """Send some bytes; small pieces are collected first."""
        self._pending.append(piece)
        self._pending_bytes += len(piece)
        self.sent_bytes += len(piece)
        if self._pending_bytes >= PIECE_BYTES:
            await self._send_pending()

    async def _send_pending(self) -> None:
        transfer = self._active_transfer()
        body = b"".join(self._pending)
        self._pending, self._pending_bytes = [], 0
        if body:
            await transfer.request(Send(transfer.id), body)

    def _active_transfer(self) -> KernelTransfer:
        if self._transfer is None:
            raise TransferNotFoundError("The client disconnected; its upload was discarded")
        return self._transfer

    def on_connection_close(self) -> None:
        """Discard the upload of a client that has disconnected."""
        run_in_background(self.discard())
        super().on_connection_close()


class FormUploadHandler(StreamedUploadHandler):
    """Takes a file, or a zipped folder, as a form."""

    async def admit(self, **kwargs: Any) -> None:
        """Read the headers of the form."""
        await super().admit(**kwargs)
        if self.is_upload():
            self.form = FileForm(self.request.headers.get("Content-Type", ""))

    def pieces(self, chunk: bytes) -> list[bytes]:
        """Return the contents of the file in the next bytes of the form."""
        return self.form.feed(chunk)

    async def complete(self) -> None:
        """Complete the upload; an incomplete form is an error."""
        if self.error is None and not (self.form.filename is not None and self.form.complete):
            self.error = WireError("The form has no complete file in a part named 'file'", "file")
        await super().complete()

    async def start(self) -> None:
        """Name the file and its folder."""
        within = self.path_argument("within")
        await self.begin(Upload(**self.target(), exact=self.flag("exact"), within=within))

    def target(self) -> dict[str, Any]:
        """Return where the file goes, and whether it is a zip file to unpack."""
        text = self.get_query_argument("recursive", "false").lower()
        if text not in ("true", "false", "1", "0"):
            raise WireError(f"'recursive' must be true or false, not {text!r}", "recursive")
        return {
            "filename": self.form.filename,
            "destination": self.path_argument("destination") or "/",
            "recursive": text in ("true", "1"),
        }


@routes.add("POST /upload_file", EXECUTE_ACTIONS, "uploadFile", FormUploadHandler)
async def upload_file(handler: FormUploadHandler, kernel_id: str | None = None) -> None:
    """Store the file, and report where it went."""
    await handler.complete()
    handler.finish_json(handler.target())


class FileForm:
    """Parser of a ``multipart/form-data`` body, whose file is the part named ``file``."""

    def __init__(self, content_type: str) -> None:
        """Raise WireError unless it is the type of a form."""
        kind, options = parse_options_header(content_type)
        boundary = options.get(b"boundary")
        if kind != b"multipart/form-data" or not boundary:
            raise WireError("Send the file as multipart/form-data, in a part named 'file'", "file")
        self.filename: str | None = None
        self.complete = self._in_file = False
        self._headers: dict[bytes, bytes] = {}
        self._name, self._value = bytearray(), bytearray()
        self._pieces: list[bytes] = []
        self._parser = MultipartParser(
            boundary,
            {
                "on_part_begin": self._headers.clear,
                "on_header_field": lambda data, start, end: self._name.extend(data[start:end]),
                "on_header_value": lambda data, start, end: self._value.extend(data[start:end]),
                "on_header_end": self._on_header,
                "on_headers_finished": self._on_headers,
                "on_part_data": self._on_data,
                "on_part_end": lambda: setattr(self, "_in_file", False),
                "on_end": lambda: setattr(self, "complete", True),
            },
        )

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the contents of the file in the next bytes; raise WireError if malformed."""
        try:
            self._parser.write(chunk)
        except MultipartParseError as error:
            raise WireError(f"The form cannot be parsed: {error}", "file") from None
        pieces, self._pieces = self._pieces, []
        return pieces

    def _on_header(self) -> None:
        self._headers[bytes(self._name).lower()] = bytes(self._value)
        self._name.clear()
        self._value.clear()

    def _on_headers(self) -> None:
        _, options = parse_options_header(self._headers.get(b"content-disposition", b""))
        if options.get(b"name") == b"file" and self.filename is None:
            self.filename = options.get(b"filename", b"").decode("utf-8", "replace")
            self._in_file = True

    def _on_data(self, data: bytes, start: int, end: int) -> None:
        if self._in_file:
            self._pieces.append(data[start:end])


async def start_download(
    handler: OhHandler, kernel_id: str | None, operation: Download | DownloadFile | DownloadPage
) -> KernelTransfer:
    """Start a download in the kernel."""
    link = await handler.link(kernel_id)
    handler.state.activity.touch()
    return KernelTransfer.started(link, await handler.ask_kernel(link, operation))


@routes.add("GET /download_files", EXECUTE_ACTIONS, "downloadFiles")
async def download_files(handler: OhHandler, kernel_id: str | None = None) -> None:
    """Send a file or directory as a zip file while it is made."""
    path = handler.path_argument("path")
    if path is None:
        raise WireError("Name what to download: ?path=/absolute/path", "path")
    download = await start_download(handler, kernel_id, Download(path))
    handler.set_header("Content-Type", "application/zip")
    handler.set_header("Content-Disposition", _attachment(f"{download.start.name}.zip"))
    await handler.send_pieces(download)


def _attachment(name: str) -> str:
    """Return the header that names a file, possibly not in ASCII (RFC 6266)."""
    plain = "".join(c if c.isascii() and c.isprintable() and c not in '"\\' else "_" for c in name)
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe='')}"


SHOWN_SUFFIXES = (".pdf", ".png", ".jpg", ".jpeg", ".gif")
"""Suffixes of the files that OpenHands' file viewer shows in a page."""


class ViewHandler(OhHandler):
    """Admits requests with the key of the setting ``server_url_file`` in their address.

    OpenHands' agents open such addresses in a browser that has not logged in.
    """

    async def admit(self, **kwargs: Any) -> None:
        """Check the key in the address."""
        key = str(self.path_kwargs.get("view_key") or "")
        self.by_address_key = hmac.compare_digest(key.encode(), self.state.view_key.encode())
        await super().admit(**kwargs)

    @property
    def content_security_policy(self) -> str:
        """Policy that keeps a viewed file from acting on behalf of this server."""
        return "default-src 'none'; img-src 'self' data:; style-src 'unsafe-inline'"


@server_routes.add(
    r"GET /viewer/(?P<view_key>[\w-]+)/view", EXECUTE_ACTIONS, "viewFileByKey", ViewHandler
)
@routes.add("GET /view", EXECUTE_ACTIONS, "viewFile", ViewHandler)
async def view_file(
    handler: ViewHandler, kernel_id: str | None = None, view_key: str | None = None
) -> None:
    """Send a file with its own type; by the key, browsers get pictures and PDFs in a page.

    OpenHands' agents expect the title of the page, and their browser has no viewer of PDFs.
    """
    path = handler.path_argument("path")
    if path is None:
        raise WireError("Name the file to view: ?path=/absolute/path", "path")
    is_agents_browser = view_key and "text/html" in handler.request.headers.get("Accept", "")
    if is_agents_browser and path.lower().endswith(SHOWN_SUFFIXES):
        download = await start_download(handler, kernel_id, DownloadPage(path))
        kind = "text/html; charset=utf-8"
        handler.set_header("Content-Security-Policy", download.start.policy)
    else:
        download = await start_download(handler, kernel_id, DownloadFile(path))
        kind = _type_of(download.start.name)
    handler.set_header("Content-Type", kind)
    handler.set_header("Vary", "Accept")
    handler.set_header("Cache-Control", "no-store")
    await handler.send_pieces(download)


def _type_of(name: str) -> str:
    kind, encoding = mimetypes.guess_type(name)
    if kind is None or encoding is not None:
        return BINARY
    return f"{kind}; charset=utf-8" if kind.startswith("text/") else kind


class StoreHandler(StreamedUploadHandler):
    """Files of the store by path."""

    permission = WRITE_STORE
    upload_method = "PUT"

    async def start(self) -> None:
        """Name the file."""
        path = self.path_kwargs.get("path") or ""
        check_not_log(self, path)
        await self.begin(UploadToStore(path))


_STORE = "/store/(?P<path>.*)"


@routes.add(f"GET {_STORE}", READ_STORE, "readStore", StoreHandler)
async def read_store(handler: StoreHandler, path: str = "", kernel_id: str | None = None) -> None:
    """Send a file, the entries of a directory, or with ``?info=true`` the metadata of either.

    A directory has no path, one that ends in a slash, or ``?list=true`` or ``?details=true``.
    """
    link = await handler.link(kernel_id)
    directory, details = path.rstrip("/"), handler.flag("details")
    if handler.flag("info"):
        # Open tabs poll for changes of their file, which must not start a runtime.
        reply = await handler.ask_kernel(link, StoreInfo(directory), load=False)
        send_body(handler, reply)
    elif details or handler.flag("list") or path == "" or path.endswith("/"):
        asked = ListStore(directory, details=details)
        listing = json.loads((await handler.ask_kernel(link, asked)).body or b"{}")
        names = ("details", "total") if details else ("entries",)
        handler.finish_json({"path": path, **{name: listing[name] for name in names}})
    else:
        reply = await handler.ask_kernel(link, DownloadFromStore(path))
        handler.set_header("Content-Type", BINARY)
        await handler.send_pieces(KernelTransfer.started(link, reply))


@routes.add(f"PUT {_STORE}", WRITE_STORE, "writeStore", StoreHandler)
async def write_store(handler: StoreHandler, path: str = "", kernel_id: str | None = None) -> None:
    """Store the body as a file, which appears when it is complete."""
    await handler.complete()
    handler.finish_empty()


def check_not_log(handler: OhHandler, path: str) -> None:
    """Raise 403 if a scoped token would change the event log of a session."""
    if handler.scoped is not None and path_key(path).split("/")[0] == "sessions":
        raise web.HTTPError(403, "The token allows no change of the sessions' event logs")


def _deletion(handler: OhHandler, path: str = "") -> DeleteFromStore:
    check_not_log(handler, path)
    return DeleteFromStore(path.rstrip("/"))


def _renaming(handler: OhHandler, path: str = "") -> RenameInStore:
    target = handler.path_argument("to")
    if target is None:
        raise WireError("Name the new path: ?to=new/path", "to")
    check_not_log(handler, path)
    check_not_log(handler, target)
    return RenameInStore(path.rstrip("/"), target)


routes.forward(f"DELETE {_STORE}", WRITE_STORE, "deleteFromStore", _deletion, send_nothing)
routes.forward(f"PATCH {_STORE}", WRITE_STORE, "renameInStore", _renaming, send_nothing)
