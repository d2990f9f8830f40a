"""Files of the kernel's machine: uploads, downloads and views, streamed."""

from __future__ import annotations

import hmac
import mimetypes
from contextlib import suppress
from dataclasses import dataclass
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
from oh_jupyter.operations import Operation, to_json
from oh_jupyter.operations.files import (
    Download,
    DownloadFile,
    DownloadPage,
    Finish,
    GiveUp,
    Send,
    Upload,
)
from oh_jupyter.server.handlers.base import OhHandler
from oh_jupyter.server.handlers.contract import (
    BYTES,
    KERNEL_ERRORS,
    Answer,
    Body,
    Contract,
    constrained,
    returns,
)
from oh_jupyter.server.handlers.routes import EXECUTE_ACTIONS, Permission, RouteTable
from oh_jupyter.server.links import KernelTransfer

PIECE_BYTES = 1024 * 1024  # bytes sent to the kernel in one message
FORM_OVERHEAD_BYTES = 64 * 1024  # upper bound for the bytes of a form beside the file
BINARY = "application/octet-stream"

routes = RouteTable(KERNEL_ERRORS)
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


@dataclass(frozen=True)
class UploadQuery:
    """The query of an upload.

    Attributes:
        destination: Absolute path of a directory, which is created if it is missing.
        recursive: The file is a zip file to unpack.
        exact: Store a zip file as it is.
        within: Directory outside of which the file must not be; links are resolved, and a relative
            one starts at the workspace.
    """

    destination: str = "/"
    recursive: bool = False
    exact: bool = False
    within: str | None = None


@dataclass(frozen=True)
class UploadForm:
    """The form of an upload.

    Attributes:
        file: The contents; a zip file needs a name that ends in ``.zip`` to be unpacked.
    """

    file: str = constrained(contentMediaType=BINARY)


@dataclass(frozen=True)
class Uploaded:
    """A stored file.

    Attributes:
        filename: Name of the file.
        destination: Its directory.
        recursive: Whether it was a zip file to unpack.
    """

    filename: str
    destination: str
    recursive: bool


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
        query = self.query(UploadQuery)
        target = to_json(self.target())
        await self.begin(Upload(**target, exact=query.exact, within=query.within))

    def target(self) -> Uploaded:
        """Return where the file goes, and whether it is a zip file to unpack."""
        text = self.get_query_argument("recursive", "false").lower()
        if text not in ("true", "false", "1", "0"):
            raise WireError(f"'recursive' must be true or false, not {text!r}", "recursive")
        query = self.query(UploadQuery)
        return Uploaded(self.form.filename or "", query.destination or "/", query.recursive)


UPLOAD = Contract(
    returns("Stored.", Uploaded),
    query=UploadQuery,
    body=Body(contents={"multipart/form-data": UploadForm}, is_open=True),
    errors=(400, 404, 422, 507),
)


@routes.add("POST /upload_file", EXECUTE_ACTIONS, "uploadFile", FormUploadHandler, UPLOAD)
async def upload_file(handler: FormUploadHandler, kernel_id: str | None = None) -> None:
    """Upload a file, or unpack a zip file."""
    await handler.complete()
    handler.finish_json(to_json(handler.target()))


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


@dataclass(frozen=True)
class DownloadQuery:
    """The query of a download.

    Attributes:
        path: Absolute path.
    """

    path: str = constrained(missing="Name what to download: ?path=/absolute/path")


ZIP = Contract(
    (
        Answer(
            "The zip file.",
            contents={"application/zip": BYTES},
            headers={"Content-Disposition": {"description": "Its name."}},
        ),
    ),
    query=DownloadQuery,
    errors=(400, 404, 422),
)


@routes.add("GET /download_files", EXECUTE_ACTIONS, "downloadFiles", contract=ZIP)
async def download_files(handler: OhHandler, kernel_id: str | None = None) -> None:
    """Download a file or directory as a zip file, which is sent while it is made."""
    path = handler.query(DownloadQuery).path
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


@dataclass(frozen=True)
class ViewQuery:
    """The query of a view.

    Attributes:
        path: Absolute path.
    """

    path: str = constrained(missing="Name the file to view: ?path=/absolute/path")


VIEW = Contract(
    (Answer("The file.", contents={"*/*": BYTES}),),
    query=ViewQuery,
    errors=(400, 404, 422),
    kernel_errors=KERNEL_ERRORS,
)
_VIEW_BY_KEY = r"GET /viewer/(?P<view_key>[\w-]+)/view"


@server_routes.add(_VIEW_BY_KEY, EXECUTE_ACTIONS, "viewFileByKey", ViewHandler, VIEW)
async def view_file_by_key(handler: ViewHandler, view_key: str) -> None:
    """View a file in a browser that has not logged in.

    A browser, which accepts ``text/html``, gets a PDF or a picture as a page with the title
    ``File Viewer - NAME``.
    """
    # OpenHands' agents expect the title of the page, and their browser has no viewer of PDFs.
    path = handler.query(ViewQuery).path
    accepts_pages = "text/html" in handler.request.headers.get("Accept", "")
    if accepts_pages and path.lower().endswith(SHOWN_SUFFIXES):
        download = await start_download(handler, None, DownloadPage(path))
        handler.set_header("Content-Security-Policy", download.start.policy)
        await _send_view(handler, download, "text/html; charset=utf-8")
    else:
        await view_file(handler)


@routes.add("GET /view", EXECUTE_ACTIONS, "viewFile", ViewHandler, VIEW)
async def view_file(handler: ViewHandler, kernel_id: str | None = None) -> None:
    """View a file in a browser."""
    path = handler.query(ViewQuery).path
    download = await start_download(handler, kernel_id, DownloadFile(path))
    await _send_view(handler, download, _type_of(download.start.name))


async def _send_view(handler: ViewHandler, download: KernelTransfer, kind: str) -> None:
    handler.set_header("Content-Type", kind)
    handler.set_header("Vary", "Accept")
    handler.set_header("Cache-Control", "no-store")
    await handler.send_pieces(download)


def _type_of(name: str) -> str:
    kind, encoding = mimetypes.guess_type(name)
    if kind is None or encoding is not None:
        return BINARY
    return f"{kind}; charset=utf-8" if kind.startswith("text/") else kind
