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
from oh_jupyter.kernel.control.rpc import Request, handles
from oh_jupyter.operations import files as operations
from oh_jupyter.runtime.confinement import outside_fault
from oh_jupyter.runtime.reasons import Reason

if TYPE_CHECKING:
    from oh_jupyter.runtime.boxed_shells import BoxedShells
    from oh_jupyter.runtime.transfers import StoreSink
    from oh_jupyter.runtime.transfers.downloads import HeldSource


@handles(operations.Upload)
async def _upload(request: Request, op: operations.Upload) -> operations.Transfer:
    executor = request.runtime.executor
    if op.within is not None:
        path = os.path.join(op.destination, op.filename)
        if fault := outside_fault(op.within, executor.workspace_dir, [path]):
            raise TransferError(fault)

    async def approve(paths: Sequence[str]) -> None:
        await check_approved(request, "upload_file", {"file": op.filename}, writes=paths)

    id = await executor.transfers.upload(
        op.destination,
        op.filename,
        recursive=op.recursive,
        exact=op.exact,
        approve=approve if is_judged(request) else None,
    )
    return operations.Transfer(id)


@handles(operations.AskFile)
async def _ask_file(request: Request, op: operations.AskFile) -> None:
    if op.writes:
        await check_approved(request, op.tool, {}, writes=[op.path])
    else:
        await check_approved(request, op.tool, {}, reads=[op.path])


@handles(operations.AskWorkspace)
async def _ask_workspace(request: Request, op: operations.AskWorkspace) -> None:
    path = os.path.realpath(op.path)
    if not is_within(path, os.path.realpath(request.runtime.executor.workspace_dir)):
        reason = Reason("starts_kernel", (path,))
        await check_approved(request, "start_kernel", {"workspace": path}, reasons=[reason])


@handles(operations.UploadToStore)
async def _upload_to_store(request: Request, op: operations.UploadToStore) -> operations.Transfer:
    from oh_jupyter.runtime.transfers import StoreSink

    store = request.runtime.file_store
    await check_store_use(request, "write_store", writes=(op.path,))

    def begin() -> StoreSink:
        return StoreSink(lambda: store.open(op.path, "wb"))

    return operations.Transfer(await request.runtime.executor.transfers.begin(begin))


@handles(operations.Send)
async def _send(request: Request, op: operations.Send) -> None:
    for piece in request.buffers:
        await request.runtime.executor.transfers.write(op.id, piece)


@handles(operations.Finish)
async def _finish(request: Request, op: operations.Finish) -> None:
    await request.runtime.executor.transfers.finish(op.id)


@handles(operations.Download)
async def _download(request: Request, op: operations.Download) -> operations.Transfer:
    executor = request.runtime.executor
    if not is_judged(request):
        key, name = await executor.transfers.download(op.path)
        return operations.Transfer(key, name)
    from oh_jupyter.runtime.transfers.downloads import zipped

    source = await _approved_source(request, "download_files", op.path, is_file=False)
    may_send = await executor.in_thread(_sendable, executor.boxes, source.real)
    make = partial(zipped, may_send=may_send, name=source.name)
    key = await executor.transfers.begin(lambda: source.pieces(make))
    return operations.Transfer(key, source.name)


async def _approved_source(request: Request, name: str, path: str, *, is_file: bool) -> HeldSource:
    """Open what an agent downloads, and ask a person if necessary."""
    from oh_jupyter.runtime.transfers.downloads import HeldSource

    executor = request.runtime.executor
    source: HeldSource = await executor.in_thread(partial(HeldSource, path, is_file=is_file))
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


@handles(operations.DownloadFile)
async def _download_file(request: Request, op: operations.DownloadFile) -> operations.Transfer:
    from oh_jupyter.runtime.transfers.downloads import check_file, file_pieces

    executor = request.runtime.executor
    if is_judged(request):
        held = await _approved_source(request, "view_file", op.path, is_file=True)
        key = await executor.transfers.begin(lambda: held.pieces(file_pieces))
        return operations.Transfer(key, held.name, held.size)
    source = await executor.in_thread(check_file, op.path)
    size = source.stat().st_size
    key = await executor.transfers.begin(lambda: file_pieces(source))
    return operations.Transfer(key, source.name, size)


@handles(operations.DownloadPage)
async def _download_page(request: Request, op: operations.DownloadPage) -> operations.Transfer:
    from oh_jupyter.runtime.transfers.downloads import POLICY, check_file, page_pieces

    executor = request.runtime.executor
    if is_judged(request):
        held = await _approved_source(request, "view_file", op.path, is_file=True)
        make = partial(page_pieces, Path(held.name))
        key = await executor.transfers.begin(lambda: held.pieces(make))
        return operations.Transfer(key, held.name, policy=POLICY)
    source = await executor.in_thread(check_file, op.path)
    key = await executor.transfers.begin(lambda: page_pieces(source))
    return operations.Transfer(key, source.name, policy=POLICY)


@handles(operations.DownloadFromStore)
async def _download_from_store(
    request: Request, op: operations.DownloadFromStore
) -> operations.Transfer:
    from oh_jupyter.runtime.transfers import store_pieces

    store = request.runtime.file_store
    await check_store_use(request, "read_store", reads=(op.path,))

    def begin() -> Iterator[bytes]:
        try:
            return store_pieces(store.open(op.path, "rb"))
        except (FileNotFoundError, IsADirectoryError):
            raise TransferNotFoundError(f"The store has no file {op.path!r}") from None

    return operations.Transfer(await request.runtime.executor.transfers.begin(begin))


@handles(operations.Receive)
async def _receive(request: Request, op: operations.Receive) -> Reply:
    return Reply(body=await request.runtime.executor.transfers.read(op.id))


@handles(operations.GiveUp)
async def _give_up(request: Request, op: operations.GiveUp) -> None:
    await request.runtime.executor.transfers.end(op.id)
