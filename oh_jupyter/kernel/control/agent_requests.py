"""Questions about agents' requests that are no Actions, such as uploads.

Each is judged like the Actions that read and write the same files.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

from oh_jupyter.containment import is_within
from oh_jupyter.events import FileReadAction, FileWriteAction, MCPAction
from oh_jupyter.kernel.control.rpc import Request
from oh_jupyter.runtime import ActionExecutor
from oh_jupyter.runtime.file_rules import use_of
from oh_jupyter.runtime.reasons import Reason
from oh_jupyter.storage import LocalFileStore

MAX_SHOWN_PATHS = 50
"""Maximum number of paths in the record of a question."""


def is_judged(request: Request) -> bool:
    """Return whether an agent makes a request, in a kernel that asks about agents' Actions."""
    return request.is_agents and request.runtime.executor.confirmations.policy != "never"


async def reasons_to_ask(
    request: Request, *, reads: Iterable[str] = (), writes: Iterable[str] = ()
) -> list[Reason]:
    """Return why a person must allow an agent's use of these files.

    Raises:
        NotApprovedError: The agent may not run code, and may not use one of them.
    """
    executor = request.runtime.executor
    actions: list[FileReadAction | FileWriteAction] = [FileReadAction(path) for path in reads]
    actions += [FileWriteAction(path, "") for path in writes]
    for action in actions:
        action.actor = request.actor
    reasons = await executor.questions_like(actions, confined=request.is_confined)
    if not reasons and executor.confirmations.policy == "always":
        return [use_of(action) for action in actions[:MAX_SHOWN_PATHS]]
    return reasons


async def check_approved(
    request: Request,
    name: str,
    arguments: dict[str, Any],
    *,
    reads: Sequence[str] = (),
    writes: Sequence[str] = (),
    reasons: Sequence[Reason] = (),
) -> None:
    """Ask a person about an agent's request, if an Action like it would wait.

    Args:
        request: The request; a person's own is not asked about.
        name: Its name in the question.
        arguments: What the question shows besides the paths.
        reads: The paths that it reads.
        writes: The paths that it writes.
        reasons: Further reasons.

    Raises:
        NotApprovedError: The person rejected it, or did not answer in time.
    """
    if not request.is_agents:
        return
    every = [*reasons, *await reasons_to_ask(request, reads=reads, writes=writes)]
    for kind, paths in (("reads", reads), ("writes", writes)):
        if paths:
            shown = list(paths[:MAX_SHOWN_PATHS])
            more = len(paths) - len(shown)
            arguments = {**arguments, kind: [*shown, *([f"{more} more"] if more else [])]}
    action = MCPAction(name, arguments)
    action.actor = request.actor
    await request.runtime.executor.check_approved(action, every)


def files_of_store(executor: ActionExecutor, *paths: str) -> list[str]:
    """Return the files behind paths of the store, if its folder also has a person's own files.

    The folder of a store of its own, such as the default one, is what an agent's scopes are for.
    """
    store = getattr(executor.file_store, "file_store", executor.file_store)
    if not isinstance(store, LocalFileStore):
        return []
    root, workspace = os.path.realpath(store.root), os.path.realpath(executor.workspace_dir)
    holds_files = any(is_within(each, root) for each in (workspace, os.path.expanduser("~")))
    is_inside = is_within(root, workspace) and not executor.boxes.visibility().hides(root)
    return [store.get_full_path(path) for path in paths] if holds_files or is_inside else []


async def check_store_use(
    request: Request, name: str, *, reads: Sequence[str] = (), writes: Sequence[str] = ()
) -> None:
    """Ask a person before an agent uses files of the store that are a person's own."""
    if not request.is_agents:
        return
    executor = request.runtime.executor
    read, written = files_of_store(executor, *reads), files_of_store(executor, *writes)
    if read or written:
        await check_approved(request, name, {}, reads=read, writes=written)
