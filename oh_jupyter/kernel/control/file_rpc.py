"""Operations that transfer files of the machine and of the store in pieces."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from oh_jupyter.containment import is_within
from oh_jupyter.control_messages import Reply
from oh_jupyter.errors import TransferError, TransferNotFoundError
from oh_jupyter.kernel.control.agent_requests import check_approved, check_store_use, is_judged
from oh_jupyter.kernel.control.rpc import Request, operation
from oh_jupyter.runtime.confinement import outside_fault
from oh_jupyter.runtime.reasons import Reason

if TYPE_CHECKING:
    from oh_jupyter.runtime.boxed_shells import BoxedShells
    from oh_jupyter.runtime.transfers import StoreSink
    from oh_jupyter.runtime.transfers.downloads import HeldSource


@operation("upload")
async def _upload(request: Request) -> Reply:
    recursive, exact = bool(request.fields.get("recursive")), request.flag("exact")
    destination, filename = request.text("destination"), request.text("filename")
    executor = request.runtime.executor
    if (within := request.fields.get("within")) is not None:
        path = os.path.join(destination, filename)
        if fault := outside_fault(str(within), executor.workspace_dir, [path]):
            raise TransferError(fault)

    async def approve(paths: Sequence[str]) -> None:
        await check_approved(request, "upload_file", {"file": filename}, writes=paths)

    id = await executor.transfers.upload(
        destination,
        filename,
        recursive=recursive,
        exact=exact,
        approve=approve if is_judged(request) else None,
    )
    return Reply({"id": id})


@operation("ask_file")
async def _ask_file(request: Request) -> Reply:
    """Ask a person, if necessary, before the server uses a file for an agent."""
    path, name = request.text("path"), request.text("tool")
    if request.flag("writes"):
        await check_approved(request, name, {}, writes=[path])
    else:
        await check_approved(request, name, {}, reads=[path])
    return Reply()


@operation("ask_workspace")
async def _ask_workspace(request: Request) -> Reply:
    """Ask a person before an agent gets a kernel whose workspace is no part of this one."""
    path = os.path.realpath(request.text("path"))
    if not is_within(path, os.path.realpath(request.runtime.executor.workspace_dir)):
        reason = Reason("starts_kernel", (path,))
        await check_approved(request, "start_kernel", {"workspace": path}, reasons=[reason])
    return Reply()


@operation("upload_to_store")
async def _upload_to_store(request: Request) -> Reply:
    from oh_jupyter.runtime.transfers import StoreSink

    path, store = request.text("path"), request.runtime.file_store
    await check_store_use(request, "write_store", writes=(path,))

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
    path, executor = request.text("path"), request.runtime.executor
    if not is_judged(request):
        key, name = await executor.transfers.download(path)
        return Reply({"id": key, "name": name})
    from oh_jupyter.runtime.transfers.downloads import zipped

    source = await _approved_source(request, "download_files", is_file=False)
    may_send = await executor.in_thread(_sendable, executor.boxes, source.real)
    make = partial(zipped, may_send=may_send, name=source.name)
    key = await executor.transfers.begin(lambda: source.pieces(make))
    return Reply({"id": key, "name": source.name})


async def _approved_source(request: Request, name: str, *, is_file: bool) -> HeldSource:
    """Open what an agent downloads, and ask a person if necessary."""
    from oh_jupyter.runtime.transfers.downloads import HeldSource

    executor = request.runtime.executor
    source: HeldSource = await executor.in_thread(
        partial(HeldSource, request.text("path"), is_file=is_file)
    )
    try:
        below = [each for each in _hidden(executor.boxes) if is_within(each, source.real)]
        reads = [source.real, *(each for each in below if os.path.exists(each))]
        await check_approved(request, name, {}, reads=reads)
    except BaseException:
        source.close()
        raise
    return source


def _hidden(boxes: BoxedShells) -> list[str]:
    """Return the real paths that agents read only with approval."""
    if not boxes.is_on:
        return []
    rules = boxes.visibility()
    return [os.path.realpath(each) for each in (*rules.hidden, *rules.homes)]


def _sendable(boxes: BoxedShells, approved: str) -> Callable[[str], bool]:
    """Return the test of a file in an approved directory, whose links may lead elsewhere."""
    hides = boxes.visibility().hides if boxes.is_on else lambda path: False
    return lambda path: is_within(path, approved) or not hides(path)


@operation("download_file")
async def _download_file(request: Request) -> Reply:
    """Start the download of one file."""
    from oh_jupyter.runtime.transfers.downloads import check_file, file_pieces

    executor = request.runtime.executor
    path = request.text("path")
    if is_judged(request):
        held = await _approved_source(request, "view_file", is_file=True)
        key = await executor.transfers.begin(lambda: held.pieces(file_pieces))
        return Reply({"id": key, "name": held.name, "size": held.size})
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
    if is_judged(request):
        held = await _approved_source(request, "view_file", is_file=True)
        make = partial(page_pieces, Path(held.name))
        key = await executor.transfers.begin(lambda: held.pieces(make))
        return Reply({"id": key, "name": held.name, "policy": POLICY})
    source = await executor.in_thread(check_file, request.text("path"))
    key = await executor.transfers.begin(lambda: page_pieces(source))
    return Reply({"id": key, "name": source.name, "policy": POLICY})


@operation("download_from_store")
async def _download_from_store(request: Request) -> Reply:
    from oh_jupyter.runtime.transfers import store_pieces

    path, store = request.text("path"), request.runtime.file_store
    await check_store_use(request, "read_store", reads=(path,))

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
