"""One step back or forth in the history of one file, computed but not yet made."""

from __future__ import annotations

from pathlib import Path

from oh_jupyter.editor.files import atomic_write
from oh_jupyter.editor.history.edit_history import FileHistory
from oh_jupyter.editor.history.steps import Step
from oh_jupyter.editor.history.timeline import Conflict, Timeline
from oh_jupyter.editor.messages import DRY_RUN, cannot_read
from oh_jupyter.editor.reading import show_text
from oh_jupyter.editor.result import EditorResult
from oh_jupyter.editor.text.conflicts import changed_error
from oh_jupyter.editor.text.text_file import TextFile
from oh_jupyter.errors import EditorError, FileChangedError, NoHistoryError

__all__ = [
    "Contents",
    "compute_step",
    "just_written",
    "read_current",
    "result_of",
    "target_step",
    "text_of",
]


Contents = dict[Path, bytes | None]
"""Files, links followed, and what they are now; None if one is not there."""


def read_current(history: FileHistory) -> tuple[bytes | None, atomic_write.Fingerprint | None]:
    """Read a file, and take in what happened to it since the editor last wrote it.

    Args:
        history: Its history.

    Returns:
        What it is, None if it is not there, and its fingerprint.

    Raises:
        EditorError: It cannot be read.
    """
    current, fingerprint = _read(history)
    history.sync(current)
    return current, fingerprint


def target_step(timeline: Timeline, command: str) -> Step | None:
    """Find the change that a command takes back or makes again.

    Args:
        timeline: The history of a file.
        command: ``undo_edit`` or ``redo_edit``.

    Returns:
        The change; None if there is none.
    """
    return timeline.last if command == "undo_edit" else timeline.next


def compute_step(
    history: FileHistory, timeline: Timeline, current: bytes | None, path: Path, command: str
) -> tuple[Timeline, bytes | None]:
    """Compute one step of a file.

    Args:
        history: Its history.
        timeline: The timeline to start from.
        current: What the file is there.
        path: Its name for errors.
        command: ``undo_edit`` or ``redo_edit``.

    Returns:
        The timeline after the step, and what the file becomes; None to remove it.

    Raises:
        EditorError: There is no such step, or it cannot be made.
    """
    step = timeline.undo if command == "undo_edit" else timeline.redo
    try:
        return step(current, history.blobs)
    except NoHistoryError:
        what = "edit history" if command == "undo_edit" else "undone edit"
        raise NoHistoryError(f"No {what} found for {path}.") from None
    except Conflict as conflict:
        raise changed_error(path, text_of(conflict.before), text_of(current)) from None
    except (LookupError, ValueError) as error:
        raise EditorError(
            f"The edit history of {path} is damaged ({error}); nothing was changed. "
            "Its steps cannot be undone any more."
        ) from None


def result_of(
    path: Path, before: bytes | None, after: bytes | None, command: str, dry_run: bool
) -> EditorResult:
    """Tell what a step did to a file.

    Args:
        path: The file.
        before: What it was.
        after: What it is.
        command: ``undo_edit`` or ``redo_edit``.
        dry_run: Whether it is as it was.

    Returns:
        The result.
    """
    old, new = _parsed(before), _parsed(after)
    done = "Last edit to {} undone" if command == "undo_edit" else "Last undone edit to {} redone"
    view = show_text(new, path) if new is not None else "The file is not there any more.\n"
    return EditorResult(
        f"{DRY_RUN * dry_run}{done.format(path)} successfully. {view}",
        path=str(path),
        prev_exist=before is not None,
        old_content=old.text if old is not None else None,
        new_content=new.text if new is not None else None,
        dry_run=dry_run,
    )


def just_written(path: Path) -> FileChangedError:
    """Say that a file was written by somebody else in the very moment.

    Args:
        path: The file.

    Returns:
        The error to raise.
    """
    return FileChangedError(
        f"Somebody else wrote {path} in this moment; nothing was changed. Try again."
    )


def text_of(content: bytes | None) -> str:
    """Decode a file as it is shown.

    Args:
        content: What it is; None if it is not there.

    Returns:
        Its text; empty if it is not there.
    """
    file = _parsed(content)
    return file.text if file is not None else ""


def _read(history: FileHistory) -> tuple[bytes | None, atomic_write.Fingerprint | None]:
    try:
        return atomic_write.read(history.path)
    except FileNotFoundError:
        return None, None
    except OSError as error:
        raise cannot_read(history.path, error) from None


def _parsed(content: bytes | None) -> TextFile | None:
    if content is None:
        return None
    file = TextFile.parse(content)
    return file if file is not None else TextFile(content.decode("utf-8", "replace").encode())
