"""Operations on the store and on undelivered changes of its webhook."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Literal

from oh_jupyter.control_messages import VARIABLE_PREFIX, Reply
from oh_jupyter.errors import StorePathError, TransferError, TransferNotFoundError, WireError
from oh_jupyter.events import MCPAction, MCPObservation, Observation
from oh_jupyter.kernel.cells.inspection import in_time
from oh_jupyter.kernel.control.agent_requests import (
    check_approved,
    check_store_use,
    files_of_store,
    reasons_to_ask,
)
from oh_jupyter.kernel.control.rpc import Request, handles
from oh_jupyter.kernel.saving import SAVE_SECONDS, encoded
from oh_jupyter.operations import store as operations
from oh_jupyter.runtime.reasons import Reason
from oh_jupyter.storage import LocalFileStore, copy
from oh_jupyter.storage.base import FileInfo
from oh_jupyter.storage.paths import path_key
from oh_jupyter.storage.transfer import Pair, copy_pairs, pairs_to_copy

if TYPE_CHECKING:
    from oh_jupyter.runtime import ActionExecutor
    from oh_jupyter.storage import Delivery, WebHookFileStore

MAX_ENTRIES = 1000
"""Maximum number of detailed entries of a directory."""

MAX_DELIVERIES = 500
"""Maximum number of deliveries in a reply."""

RESEND_SECONDS = 10.0
"""Maximum wait for the receiver's response."""


@handles(operations.ListStore)
async def _list_store(request: Request, op: operations.ListStore) -> operations.StoreListing:
    store = request.runtime.file_store
    await check_store_use(request, "list_store", reads=(op.path,))

    def listed() -> operations.StoreListing:
        names = store.list(op.path)
        if not op.details:
            return operations.StoreListing(names, [], len(names))
        shown = names[:MAX_ENTRIES]
        # One query is enough for a directory that is listed completely.
        infos = store.entries(op.path) if len(names) == len(shown) else map(_unknown, shown)
        return operations.StoreListing([], list(map(_entry, infos)), len(names))

    try:
        listing: operations.StoreListing = await request.runtime.executor.in_thread(listed)
    except (FileNotFoundError, NotADirectoryError):
        raise TransferNotFoundError(f"The store has no directory {op.path!r}") from None
    return listing


@handles(operations.StoreInfo)
async def _store_info(request: Request, op: operations.StoreInfo) -> operations.StoreEntry:
    runtime = request.runtime
    await check_store_use(request, "store_info", reads=(op.path,))
    try:
        info = await runtime.executor.in_thread(runtime.file_store.info, op.path)
    except FileNotFoundError:
        raise TransferNotFoundError(f"The store has no {op.path!r}") from None
    return _entry(info)


def _unknown(path: str) -> FileInfo:
    """Return an entry of a large directory without its size, which would be slow to query."""
    kind: Literal["file", "directory"] = "directory" if path.endswith("/") else "file"
    return FileInfo(path=path_key(path), type=kind, size=None, modified=None)


def _entry(info: FileInfo) -> operations.StoreEntry:
    modified = info["modified"]
    when = None if modified is None else modified.isoformat()
    return operations.StoreEntry(info["path"], info["type"], info["size"], when)


@handles(operations.RenameInStore)
async def _rename_in_store(request: Request, op: operations.RenameInStore) -> None:
    source, target, store = op.path, op.to, request.runtime.file_store
    _check_not_root(source)
    _check_not_root(target)
    await check_store_use(request, "rename_in_store", writes=(source, target))
    if path_key(target).startswith(path_key(source) + "/"):
        raise StorePathError(f"{source!r} cannot be moved into itself; choose another target")

    def rename() -> None:
        if store.exists(target):
            raise TransferError(f"The store has {target!r} already; nothing was renamed")
        try:
            copy(store, source, store, target)
        except FileNotFoundError:
            raise TransferNotFoundError(f"The store has no {source!r}") from None
        except NotADirectoryError:
            raise StorePathError(f"A part of {target!r} is a file; nothing was renamed") from None
        store.delete(source)

    await request.runtime.executor.in_thread(rename)


@handles(operations.DeleteFromStore)
async def _delete_from_store(request: Request, op: operations.DeleteFromStore) -> None:
    runtime = request.runtime
    _check_not_root(op.path)
    reasons = [Reason("deletes_from_store", (op.path,))]
    await check_approved(request, "delete_from_store", {"path": op.path}, reasons=reasons)
    try:
        await runtime.executor.in_thread(runtime.file_store.delete, op.path)
    except FileNotFoundError:
        raise TransferNotFoundError(f"The store has no {op.path!r}") from None


@handles(operations.CopyWithStore)
async def _copy_with_store(request: Request, op: operations.CopyWithStore) -> Reply:
    executor, direction, path = request.runtime.executor, op.direction, op.path
    _check_not_log(path)
    if direction == "put" and op.file.startswith(VARIABLE_PREFIX):
        return await _put_variable(request, op.file.removeprefix(VARIABLE_PREFIX), path)
    name = path_in_workspace(op.file, executor)
    workspace = LocalFileStore(executor.workspace_dir)

    ends = (executor.file_store, path, workspace, name)
    source, start, target, end = ends if direction == "get" else (*ends[2:], *ends[:2])
    try:
        # The files that are judged are those that are copied.
        pairs = await executor.in_thread(pairs_to_copy, source, start, target, end)
    except FileNotFoundError:
        pairs = None

    def copied() -> str:
        try:
            if pairs is None:
                raise FileNotFoundError(start)
            count = len(copy_pairs(source, target, pairs).copied)
        except FileNotFoundError:
            raise TransferNotFoundError(f"There is no {start!r} to copy") from None
        return f"Copied {count} {'file' if count == 1 else 'files'} to {end}."

    async def execute() -> Observation:
        return MCPObservation(await executor.in_thread(copied), name="store")

    action = MCPAction("store", {"command": direction, "path": path, "file": name})
    reasons = await _reasons_to_copy(request, direction, pairs or [])
    return await _observed(request, action, execute, *reasons)


async def _reasons_to_copy(request: Request, direction: str, pairs: Sequence[Pair]) -> list[Reason]:
    """Return why a person must allow an agent's copy between the store and the workspace."""
    executor = request.runtime.executor
    sources, targets = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    if direction == "put":
        files = [os.path.join(executor.workspace_dir, path) for path in sources]
        stored = files_of_store(executor, *targets)
        return await reasons_to_ask(request, reads=files, writes=stored)
    files = [os.path.join(executor.workspace_dir, path) for path in targets]
    stored = files_of_store(executor, *sources)
    return await reasons_to_ask(request, reads=stored, writes=files)


async def _put_variable(request: Request, name: str, path: str) -> Reply:
    executor = request.runtime.executor

    async def execute() -> Observation:
        value = request.oh.host.inspector.value(name)
        contents = await in_time(lambda: encoded(value, path), SAVE_SECONDS)
        await executor.in_thread(executor.file_store.write, path, contents)
        return MCPObservation(f"Put {name} to {path} ({len(contents)} bytes).", name="store")

    file = f"{VARIABLE_PREFIX}{name}"
    action = MCPAction("store", {"command": "put", "path": path, "file": file})
    return await _observed(request, action, execute)


@handles(operations.AgentDeleteFromStore)
async def _agent_delete_from_store(request: Request, op: operations.AgentDeleteFromStore) -> Reply:
    path, executor = op.path, request.runtime.executor
    _check_not_root(path)
    _check_not_log(path)

    async def execute() -> Observation:
        try:
            await executor.in_thread(executor.file_store.delete, path)
        except FileNotFoundError:
            raise TransferNotFoundError(f"The store has no {path!r}") from None
        return MCPObservation(f"Deleted {path} from the store.", name="store")

    action = MCPAction("store", {"command": "delete", "path": path})
    return await _observed(request, action, execute, Reason("deletes_from_store", (path,)))


async def _observed(
    request: Request, action: MCPAction, execute: Callable[[], Awaitable[Observation]], *why: Reason
) -> Reply:
    action.actor = request.actor
    observation = await request.runtime.executor.run_action(
        action, "agent", principal="agent", execute=execute, reasons=why
    )
    return Reply(body=request.runtime.events.encoded(observation))


def path_in_workspace(file: str, executor: ActionExecutor) -> str:
    """Return the path of a file below the workspace; raise TransferError if it is elsewhere."""
    workspace = os.path.realpath(executor.workspace_dir)
    path = os.path.realpath(os.path.join(executor.cwd, file))
    if os.path.commonpath([workspace, path]) != workspace:
        raise TransferError(f"{file} is outside of the workspace {workspace}; nothing was copied")
    return os.path.relpath(path, workspace)


def _check_not_log(path: str) -> None:
    if path_key(path).split("/")[0] == "sessions":
        raise StorePathError(f"{path!r} belongs to a session's log, which agents cannot change")


def _check_not_root(path: str) -> None:
    if not path_key(path):
        raise StorePathError(
            f"{path!r} is the root of the store, which also has the log of this session. "
            "Name an entry in it"
        )


@handles(operations.Deliveries)
async def _deliveries(request: Request, op: operations.Deliveries) -> operations.DeliveryList:
    hook = _hook(request)
    deliveries = [] if hook is None else await request.runtime.executor.in_thread(hook.deliveries)
    shown = list(map(_delivery, deliveries[-MAX_DELIVERIES:]))
    return operations.DeliveryList(hook is not None, len(deliveries), shown)


def _delivery(delivery: Delivery) -> operations.Delivery:
    times = {
        "recorded": delivery.recorded.isoformat(),
        "due": delivery.due and delivery.due.isoformat(),
    }
    return operations.Delivery(**{**asdict(delivery), **times})


@handles(operations.ResendDeliveries)
async def _resend_deliveries(request: Request, op: operations.ResendDeliveries) -> int:
    hook, ids = _named(request, op.ids)

    def resend() -> int:
        count = hook.replay(*ids, force=op.force)
        hook.flush(RESEND_SECONDS)
        return count

    count: int = await request.runtime.executor.in_thread(resend)
    return count


@handles(operations.DiscardDeliveries)
async def _discard_deliveries(request: Request, op: operations.DiscardDeliveries) -> int:
    hook, ids = _named(request, op.ids)
    count: int = await request.runtime.executor.in_thread(hook.discard, *ids)
    return count


def _hook(request: Request) -> WebHookFileStore | None:
    from oh_jupyter.storage import WebHookFileStore

    store = request.runtime.file_store
    return store if isinstance(store, WebHookFileStore) else None


def _named(request: Request, ids: list[str] | None) -> tuple[WebHookFileStore, list[str]]:
    """Return the webhook and the ids of the requested dead letters; an empty list means all."""
    hook = _hook(request)
    if hook is None:
        raise WireError("This store has no webhook", "ids")
    if ids is None:
        return hook, []
    if not ids:
        raise WireError("'ids' must be a list of ids, or null for all", "ids")
    return hook, ids
