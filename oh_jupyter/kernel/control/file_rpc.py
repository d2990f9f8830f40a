"""Operations that transfer files of the machine and of the store in pieces."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from oh_jupyter.control_messages import Reply
from oh_jupyter.errors import TransferError, TransferNotFoundError
from oh_jupyter.kernel.control.rpc import Request, operation
from oh_jupyter.runtime.confinement import outside_fault

if TYPE_CHECKING:
    from oh_jupyter.runtime.transfers import StoreSink


@operation("upload")
async def _upload(request: Request) -> Reply:
    recursive, exact = bool(request.fields.get("recursive")), request.flag("exact")
    destination, filename = request.text("destination"), request.text("filename")
    executor = request.runtime.executor
    if (within := request.fields.get("within")) is not None:
        path = os.path.join(destination, filename)
        if fault := outside_fault(str(within), executor.workspace_dir, [path]):
            raise TransferError(fault)
    id = await executor.transfers.upload(destination, filename, recursive=recursive, exact=exact)
    return Reply({"id": id})


@operation("upload_to_store")
async def _upload_to_store(request: Request) -> Reply:
    from oh_jupyter.runtime.transfers import StoreSink

    path, store = request.text("path"), request.runtime.file_store

    def begin() -> StoreSink:
        return StoreSink(lambda: store.open(path, "wb"))

    return Reply({"id": await request.runtime.executor.transfers.begin(begin)})


@operation("send")
async def _send(request: Request) -> Reply:
    for piece in request.buffers:
        await request.runtime.executor.transfers.write(request.text("id"), piece)
    return Reply()


@operation("finish")
async def _finish(request: Request) -> Reply:
    await request.runtime.executor.transfers.finish(request.text("id"))
    return Reply()


@operation("download")
async def _download(request: Request) -> Reply:
    key, name = await request.runtime.executor.transfers.download(request.text("path"))
    return Reply({"id": key, "name": name})


@operation("download_file")
async def _download_file(request: Request) -> Reply:
    """Start the download of one file."""
    from oh_jupyter.runtime.transfers.downloads import check_file, file_pieces

    executor = request.runtime.executor
    path = request.text("path")
    source = await executor.in_thread(check_file, path)
    size = source.stat().st_size
    key = await executor.transfers.begin(lambda: file_pieces(source))
    return Reply({"id": key, "name": source.name, "size": size})


@operation("download_page")
async def _download_page(request: Request) -> Reply:
    """Start the download of the page that shows a picture or a PDF file."""
    from oh_jupyter.runtime.transfers.downloads import check_file
    from oh_jupyter.runtime.transfers.file_page import POLICY, page_pieces

    executor = request.runtime.executor
    source = await executor.in_thread(check_file, request.text("path"))
    key = await executor.transfers.begin(lambda: page_pieces(source))
    return Reply({"id": key, "name": source.name, "policy": POLICY})


@operation("download_from_store")
async def _download_from_store(request: Request) -> Reply:
    from oh_jupyter.runtime.transfers import store_pieces

    path, store = request.text("path"), request.runtime.file_store

    def begin() -> Iterator[bytes]:
        try:
            return store_pieces(store.open(path, "rb"))
        except (FileNotFoundError, IsADirectoryError):
            raise TransferNotFoundError(f"The store has no file {path!r}") from None

    return Reply({"id": await request.runtime.executor.transfers.begin(begin)})


@operation("receive")
async def _receive(request: Request) -> Reply:
    return Reply(body=await request.runtime.executor.transfers.read(request.text("id")))


@operation("give_up")
async def _give_up(request: Request) -> Reply:
    await request.runtime.executor.transfers.end(request.text("id"))
    return Reply()
