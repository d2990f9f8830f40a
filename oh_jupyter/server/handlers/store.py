"""The kernel's file store: read, written, renamed and deleted by path."""

from __future__ import annotations

from dataclasses import dataclass

from tornado import web

from oh_jupyter.operations import reply_to, to_json
from oh_jupyter.operations.files import DownloadFromStore, UploadToStore
from oh_jupyter.operations.store import (
    DeleteFromStore,
    ListStore,
    RenameInStore,
    StoreEntry,
    StoreInfo,
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
from oh_jupyter.server.handlers.files import BINARY, StreamedUploadHandler
from oh_jupyter.server.handlers.routes import (
    READ_STORE,
    WRITE_STORE,
    RouteTable,
    send_body,
    send_nothing,
)
from oh_jupyter.server.links import KernelTransfer
from oh_jupyter.storage.paths import path_key

routes = RouteTable(KERNEL_ERRORS)


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


@dataclass(frozen=True)
class StoreQuery:
    """The query of a path in the store.

    Attributes:
        list: List it as a directory.
        info: Return metadata instead of contents.
        details: List it with metadata of each entry; for more than 1,000, of the first 1,000
            without size and time.
    """

    list: bool = False
    info: bool = False
    details: bool = False


@dataclass(frozen=True)
class StoreNames:
    """A directory of the store.

    Attributes:
        path: The directory.
        entries: Paths of its entries, directories with a trailing slash.
    """

    path: str
    entries: list[str]


@dataclass(frozen=True)
class StoreDetails:
    """A directory of the store with metadata of its entries.

    Attributes:
        path: The directory.
        details: Metadata of the entries.
        total: Number of entries.
    """

    path: str
    details: list[StoreEntry]
    total: int


READING = Contract(
    (
        Answer(
            "The contents, entries or metadata.",
            StoreEntry | StoreNames | StoreDetails,
            {BINARY: BYTES},
        ),
    ),
    query=StoreQuery,
    errors=(400, 404),
)


@routes.add(f"GET {_STORE}", READ_STORE, "readStore", StoreHandler, READING)
async def read_store(handler: StoreHandler, path: str = "", kernel_id: str | None = None) -> None:
    """Read a file, or list a directory.

    A directory has no path, one that ends in a slash, or ``?list=true`` or ``?details=true``.
    """
    link = await handler.link(kernel_id)
    directory, query = path.rstrip("/"), handler.query(StoreQuery)
    if query.info:
        # Open tabs poll for changes of their file, which must not start a runtime.
        reply = await handler.ask_kernel(link, StoreInfo(directory), load=False)
        send_body(handler, reply)
    elif query.details or query.list or path == "" or path.endswith("/"):
        asked = ListStore(directory, details=query.details)
        listing = reply_to(asked, (await handler.ask_kernel(link, asked)).body)
        if query.details:
            handler.finish_json(to_json(StoreDetails(path, listing.details, listing.total)))
        else:
            handler.finish_json(to_json(StoreNames(path, listing.entries)))
    else:
        reply = await handler.ask_kernel(link, DownloadFromStore(path))
        handler.set_header("Content-Type", BINARY)
        await handler.send_pieces(KernelTransfer.started(link, reply))


WRITING = Contract(
    returns("Stored.", status=204),
    body=Body(contents={BINARY: BYTES}, is_required=False),
    errors=(400, 404, 422, 507),
)


@routes.add(f"PUT {_STORE}", WRITE_STORE, "writeStore", StoreHandler, WRITING)
async def write_store(handler: StoreHandler, path: str = "", kernel_id: str | None = None) -> None:
    """Store the body as a file, which appears when it is complete."""
    await handler.complete()
    handler.finish_empty()


def check_not_log(handler: OhHandler, path: str) -> None:
    """Raise 403 if a scoped token would change the event log of a session."""
    if handler.scoped is not None and path_key(path).split("/")[0] == "sessions":
        raise web.HTTPError(403, "The token allows no change of the sessions' event logs")


@dataclass(frozen=True)
class RenameQuery:
    """The query of a path to rename.

    Attributes:
        to: Its new path.
    """

    to: str = constrained(missing="Name the new path: ?to=new/path")


DELETION = Contract(returns("Deleted.", status=204), errors=(400, 404))
RENAMING = Contract(returns("Renamed.", status=204), query=RenameQuery, errors=(400, 404, 422, 507))


def _deletion(handler: OhHandler, path: str = "") -> DeleteFromStore:
    """Delete a file, or a directory with its contents."""
    check_not_log(handler, path)
    return DeleteFromStore(path.rstrip("/"))


def _renaming(handler: OhHandler, path: str = "") -> RenameInStore:
    """Rename a file or directory without replacing anything."""
    target = handler.query(RenameQuery).to
    check_not_log(handler, path)
    check_not_log(handler, target)
    return RenameInStore(path.rstrip("/"), target)


_DELETE, _RENAME = f"DELETE {_STORE}", f"PATCH {_STORE}"
routes.forward(_DELETE, WRITE_STORE, "deleteFromStore", _deletion, send_nothing, contract=DELETION)
routes.forward(_RENAME, WRITE_STORE, "renameInStore", _renaming, send_nothing, contract=RENAMING)
