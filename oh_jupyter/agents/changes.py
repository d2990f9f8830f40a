"""Which files a turn has changed, by the log and the editor's history."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress

from oh_jupyter.editor import FileEditor
from oh_jupyter.errors import EditorError
from oh_jupyter.events import Event, FileEditObservation, FileWriteObservation

__all__ = ["changed_files", "edited_paths", "unified_diff"]


def edited_paths(events: Iterable[Event]) -> list[str]:
    """The files that the edits among events name, in the order of their first edit."""
    paths: dict[str, None] = {}
    for event in events:
        if isinstance(event, FileWriteObservation):
            paths[event.path] = None
        elif isinstance(event, FileEditObservation) and event.diff:
            named = [
                line[4:].partition("\t")[0]
                for line in event.diff.splitlines()
                if line.startswith(("+++ ", "--- "))
            ]
            paths |= dict.fromkeys(path for path in (event.path, *named) if os.path.isabs(path))
    return [path for path in paths if not os.path.isdir(path)]


def changed_files(editor: FileEditor, paths: Iterable[str], since: float) -> dict[str, int]:
    """Paths with the number of edits since a time, in seconds since the epoch, that still hold."""
    counts: dict[str, int] = {}
    for path in paths:
        with suppress(EditorError, OSError):
            entries = editor.history(path)
            count = sum(entry.time >= since and not entry.undone for entry in entries)
            if count:
                counts[path] = count
    return counts


def unified_diff(editor: FileEditor, changed: dict[str, int]) -> str:
    """One diff of all changed files; a file that others have changed since is left out."""
    diffs = []
    for path, count in changed.items():
        with suppress(EditorError, OSError):
            diffs.append(editor.diff(path, count))
    return "\n".join(diff.rstrip("\n") for diff in diffs if diff)
