"""Change of files together with their histories: all of them, or none, whenever the process dies.

The edits are planned in the ledger, then the files change, then the edits are done. An editor that
holds the files' locks and reads a planned edit knows that its process died.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum, auto

from oh_jupyter.editor.files import atomic_write
from oh_jupyter.editor.files.atomic_write import ConcurrentWriteError
from oh_jupyter.editor.history.edit import Edit
from oh_jupyter.editor.history.edit_table import EditTable, PlannedRow
from oh_jupyter.editor.history.file_history import FileHistory
from oh_jupyter.editor.text.line_diff import common_ends
from oh_jupyter.errors import EditorError


@dataclass(frozen=True)
class PlannedChange:
    """Planned change of one locked file.

    Attributes:
        history: The file's history.
        row: The edit to add; None for one that exceeds what a history keeps.
        old: The current content; None if the file does not exist.
        new: The planned content; None removes the file.
        fingerprint: Of the file when it was read.
        mode: Permissions of a new file; None for those of the umask.
    """

    history: FileHistory
    row: PlannedRow | None
    old: bytes | None
    new: bytes | None
    fingerprint: atomic_write.Fingerprint | None
    mode: int | None = None

    @property
    def edit(self) -> Edit | None:
        """The edit to add."""
        return None if self.row is None else self.row.edit


def commit(table: EditTable, changes: Sequence[PlannedChange]) -> None:
    """Change all files, or none; each file may appear once.

    On OSError and ConcurrentWriteError nothing was changed; on EditorError it stopped midway.
    """
    if not changes:
        return
    is_joint = len(changes) > 1
    _plan(table, changes, is_flushed=is_joint)
    try:
        if is_joint:
            for change in changes:
                if atomic_write.fingerprint_of(change.history.path) != change.fingerprint:
                    raise ConcurrentWriteError
        for change in changes:
            change.history.write(change.edit, change.new, change.fingerprint, change.mode)
    except BaseException as error:
        if is_joint:
            with suppress(OSError):  # if this fails, recovery would go forward instead
                table.revert(_edits(changes))
            _restore_old(changes, error)
        _remove(table, changes)
        raise
    with suppress(OSError):  # the files are written; the next reader of the history notices that
        table.confirm(_edits(changes))
        for change in changes:
            change.history.finish(change.edit)


def _plan(table: EditTable, changes: Sequence[PlannedChange], *, is_flushed: bool) -> None:
    rows = [change.row for change in changes if change.row is not None]
    written = table.add(rows, is_flushed=is_flushed) if rows else 0
    for change in changes:
        change.history.begin(written // len(changes))


def _edits(changes: Sequence[PlannedChange]) -> list[tuple[int, Edit]]:
    return [(change.history.file, change.edit) for change in changes if change.edit is not None]


def _remove(table: EditTable, changes: Sequence[PlannedChange]) -> None:
    with suppress(OSError):  # the next reader of the history does it
        table.remove(_edits(changes))
        for change in changes:
            change.history.cancel()


def _restore_old(changes: Sequence[PlannedChange], cause: BaseException) -> None:
    """Restore the old contents, except where somebody else has written meanwhile."""
    for change in changes:
        try:
            if change.edit is not None and change.new != change.old:
                current = atomic_write.read_if_exists(change.history.path)[0]
                if change.new == current:
                    change.history.restore(change.edit, change.old, None)
        except OSError as error:
            raise EditorError(
                f"An edit of several files stopped halfway ({cause}), and {change.history.path} "
                f"could not be restored ({error}). The next edit of any of the files tries again."
            ) from cause


class _FileState(Enum):
    """State of a file after a crash, relative to its planned change."""

    OLD = auto()
    NEW = auto()
    TORN = auto()
    EXTERNAL = auto()


@dataclass(frozen=True)
class _Leftover:
    """A file with a planned change that was neither done nor reverted."""

    history: FileHistory
    edit: Edit
    old: bytes | None
    new: bytes | None
    state: _FileState
    nearer_to_new: bool


def recover(table: EditTable, planned: Sequence[tuple[FileHistory, Edit]]) -> None:
    """Finish or revert an edit whose process died, while its files are locked.

    It is reverted if that had started, if no file was written, or if others changed a file that it
    had not reached.
    """
    try:
        leftovers = [_inspect(history, edit) for history, edit in planned]
        forward = _is_finished(leftovers)
        edits = [(file.history.file, file.edit) for file in leftovers]
        if not forward and len(leftovers) > 1:
            table.revert(edits)
        for file in leftovers:
            file.history.remove_temporary(file.edit)
            if file.state in (_FileState.TORN, _FileState.OLD if forward else _FileState.NEW):
                content = file.new if forward else file.old
                file.history.restore(file.edit, content, file.edit.mode)
    except OSError as error:
        paths = ", ".join(str(history.path) for history, _ in planned)
        raise EditorError(
            f"An interrupted edit of {paths} can be neither finished nor reverted. Make the files "
            f"writable, then try again. The error is: {error}"
        ) from None
    if forward:
        table.confirm(edits)
    else:
        table.remove(edits)


def _is_finished(leftovers: Sequence[_Leftover]) -> bool:
    """Return whether to finish an edit, not to revert it."""
    if any(file.edit.state == "reverting" for file in leftovers):
        return False
    outside = [file for file in leftovers if file.state is _FileState.EXTERNAL]
    if not all(file.nearer_to_new for file in outside):
        return False
    written = (_FileState.NEW, _FileState.TORN)
    return bool(outside) or any(file.state in written for file in leftovers)


def _inspect(history: FileHistory, edit: Edit) -> _Leftover:
    try:
        old = history.content_after(edit.number - 1)
        new = history.content_after(edit.number)
        current, _ = atomic_write.read_if_exists(history.path)
    # Lost by a power failure, or no longer a file: only the others can be restored.
    except (LookupError, IsADirectoryError, NotADirectoryError):
        return _Leftover(history, edit, None, None, _FileState.EXTERNAL, False)
    state = _FileState.EXTERNAL
    if current == new:
        state = _FileState.NEW
    elif current == old:
        state = _FileState.OLD
    elif is_torn(current, old, new):
        state = _FileState.TORN
    like_old, like_new = (
        sum(common_ends(current or b"", content or b"")) for content in (old, new)
    )
    return _Leftover(history, edit, old, new, state, like_new > like_old)


def is_torn(current: bytes | None, old: bytes | None, new: bytes | None) -> bool:
    """Return whether a content starts like the new one and continues like the old one."""
    if current is None or old is None or new is None:
        return False
    written, _ = common_ends(current, new)
    return current[written:] == old[written:]
