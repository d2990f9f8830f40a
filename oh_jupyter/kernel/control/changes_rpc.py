"""Operations on the files that changed in this session, for the person who looks at them.

An undo or redo is the person's Action: these operations are not offered over REST, where whoever
has the server's token may be an agent.
"""

from __future__ import annotations

import json
from typing import Any

from oh_jupyter.editor import ChangedFile, FileEditor
from oh_jupyter.errors import CheckpointError, WireError
from oh_jupyter.events import FileEditAction
from oh_jupyter.events.json import encode_json
from oh_jupyter.kernel.control.rpc import Reply, Request, operation
from oh_jupyter.runtime.changes import session_changes

__all__: list[str] = []

MAX_TEXT_CHARS = 1_000_000
"""Longest text that is sent to be compared."""


@operation("changes")
async def _changes(request: Request) -> Reply:
    """The changed files without their contents."""
    executor = request.runtime.executor
    problem = executor.turns.problem
    try:
        found = await session_changes(executor)
    except CheckpointError as raised:
        problem = str(raised)
        found = await session_changes(executor, by_commands=False)
    files = await executor.in_thread(lambda: [_summary(each, executor.editor) for each in found])
    fields = {"workspace": executor.workspace_dir, "problem": problem, "files": files}
    return Reply(body=encode_json(fields))


@operation("change")
async def _change(request: Request) -> Reply:
    """What became of one file: its texts, or for a notebook its cells."""
    path = request.text("path")
    for each in await session_changes(request.runtime.executor):
        if str(each.path) == path:
            return Reply(body=encode_json(_contents(each)))
    raise WireError(f"{path} is as it was when the session began", "path")


@operation("undo_change")
async def _undo_change(request: Request) -> Reply:
    """Undo the last edit of a file, or with ``redo`` make again what was undone last."""
    command = "redo_edit" if request.fields.get("redo") is True else "undo_edit"
    action = FileEditAction(path=request.text("path"), command=command)
    observation = await request.runtime.executor.run_action(action, "user")
    return Reply(body=request.runtime.events.encoded(observation))


def _summary(change: ChangedFile, editor: FileEditor) -> dict[str, Any]:
    added, removed = change.counts
    steps = editor.history(change.path)
    return {
        "path": str(change.path),
        "kind": change.kind,
        "moved_from": None if change.moved_from is None else str(change.moved_from),
        "added": added,
        "removed": removed,
        "by_others": change.by_others,
        "undoable": any(not step.undone for step in steps) and bool(change.commands),
        "redoable": any(step.undone for step in steps),
    }


def _contents(change: ChangedFile) -> dict[str, Any]:
    binary = any(b"\0" in (content or b"") for content in (change.old, change.new))
    too_long = max(len(change.old_text), len(change.new_text)) > MAX_TEXT_CHARS
    if change.cells:
        cells = [cell._asdict() for cell in change.cells]
        return {"cells": cells, "language": _language(change.new_text or change.old_text)}
    if binary or too_long or change.forgotten:
        reason = "binary" if binary else "too_long" if too_long else "forgotten"
        return {"reason": reason}
    return {"old": change.old_text, "new": change.new_text}


def _language(notebook: str) -> str:
    """The language of a notebook's cells, "" if it does not say."""
    spec = json.loads(notebook).get("metadata", {}).get("kernelspec", {})
    return str(spec.get("language", ""))
