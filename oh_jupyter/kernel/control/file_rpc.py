"""Operations of the control channel that move files: of the machine, and of the store."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import Any

from oh_jupyter.errors import StorePathError, TransferNotFoundError, WireError
from oh_jupyter.runtime import Runtime
from oh_jupyter.runtime.resources import shell_owner
from oh_jupyter.runtime.transfers.downloads import check_source, zipped
from oh_jupyter.runtime.transfers.transfers import StoreSink, store_pieces
from oh_jupyter.runtime.transfers.uploads import Upload
from oh_jupyter.storage.paths import path_key

__all__ = ["FILE_OPERATIONS"]

Answer = tuple[dict[str, Any], list[bytes]]


async def _upload(runtime: Runtime, content: dict[str, Any], buffers: list[bytes]) -> Answer:
    settings = runtime.settings

    def begin() -> Upload:
        return Upload(
            _text(content, "destination"),
            _text(content, "filename"),
            recursive=bool(content.get("recursive")),
            limit=int(settings.max_upload_mb * 1024**2),
            owner=shell_owner(settings),
        )

    return {"status": "ok", "id": await runtime.executor.transfers.begin(begin)}, []


async def _upload_to_store(
    runtime: Runtime, content: dict[str, Any], buffers: list[bytes]
) -> Answer:
    path = _text(content, "path")

    def begin() -> StoreSink:
        return StoreSink(runtime.file_store.open(path, "wb"))

    return {"status": "ok", "id": await runtime.executor.transfers.begin(begin)}, []


async def _send(runtime: Runtime, content: dict[str, Any], buffers: list[bytes]) -> Answer:
    for piece in buffers:
        await runtime.executor.transfers.write(_text(content, "id"), piece)
    return {"status": "ok"}, []


async def _finish(runtime: Runtime, content: dict[str, Any], buffers: list[bytes]) -> Answer:
    await runtime.executor.transfers.finish(_text(content, "id"))
    return {"status": "ok"}, []


async def _download(runtime: Runtime, content: dict[str, Any], buffers: list[bytes]) -> Answer:
    source = await runtime.executor.in_thread(check_source, _text(content, "path"))
    key = await runtime.executor.transfers.begin(lambda: zipped(source))
    return {"status": "ok", "id": key, "name": source.name or "root"}, []


async def _download_from_store(
    runtime: Runtime, content: dict[str, Any], buffers: list[bytes]
) -> Answer:
    path = _text(content, "path")

    def begin() -> Iterator[bytes]:
        try:
            return store_pieces(runtime.file_store.open(path, "rb"))
        except (FileNotFoundError, IsADirectoryError):
            raise TransferNotFoundError(f"The store has no file {path!r}") from None

    key = await runtime.executor.transfers.begin(begin)
    return {"status": "ok", "id": key}, []


async def _receive(runtime: Runtime, content: dict[str, Any], buffers: list[bytes]) -> Answer:
    return {"status": "ok"}, [await runtime.executor.transfers.read(_text(content, "id"))]


async def _give_up(runtime: Runtime, content: dict[str, Any], buffers: list[bytes]) -> Answer:
    await runtime.executor.transfers.end(_text(content, "id"))
    return {"status": "ok"}, []


async def _list_store(runtime: Runtime, content: dict[str, Any], buffers: list[bytes]) -> Answer:
    path = _text(content, "path")
    try:
        entries = await runtime.executor.in_thread(runtime.file_store.list, path)
    except (FileNotFoundError, NotADirectoryError):
        raise TransferNotFoundError(f"The store has no directory {path!r}") from None
    return {"status": "ok", "entries": entries}, []


async def _delete_from_store(
    runtime: Runtime, content: dict[str, Any], buffers: list[bytes]
) -> Answer:
    path = _text(content, "path")
    if not path_key(path):
        raise StorePathError(
            f"{path!r} is the root of the store, in which the log of this session is, too. "
            "Delete what is in it by name"
        )
    try:
        await runtime.executor.in_thread(runtime.file_store.delete, path)
    except FileNotFoundError:
        raise TransferNotFoundError(f"The store has no {path!r}") from None
    return {"status": "ok"}, []


def _text(content: dict[str, Any], name: str) -> str:
    value = content.get(name)
    if not isinstance(value, str):
        raise WireError(f"{name!r} must be a string", name)
    return value


FILE_OPERATIONS: dict[str, Callable[[Runtime, dict[str, Any], list[bytes]], Awaitable[Answer]]] = {
    "upload": _upload,
    "upload_to_store": _upload_to_store,
    "send": _send,
    "finish": _finish,
    "download": _download,
    "download_from_store": _download_from_store,
    "receive": _receive,
    "give_up": _give_up,
    "list_store": _list_store,
    "delete_from_store": _delete_from_store,
}
"""The operations by name."""
