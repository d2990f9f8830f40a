"""Atomic commit of changes to several files, and its recovery after a crash.

What each becomes is stored, then a record in the journal, then the files change, or change back.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum

from oh_jupyter.editor.files import atomic_write
from oh_jupyter.editor.files.atomic_write import ConcurrentWriteError
from oh_jupyter.editor.history.file_history import FileHistory, is_torn
from oh_jupyter.editor.history.journal import Journal, Record
from oh_jupyter.editor.history.steps import digest_of
from oh_jupyter.editor.history.timeline import Timeline
from oh_jupyter.editor.text.line_diff import common_ends
from oh_jupyter.errors import EditorError


@dataclass(frozen=True)
class FileChange:
    """Planned change of one file, whose lock is held."""

    history: FileHistory
    timeline: Timeline
    old: bytes | None  # what it is now; None if it is not there
    new: bytes | None  # what it becomes; None to remove it
    fingerprint: atomic_write.Fingerprint | None
    mode: int | None = None  # permissions of a new file; None for those of the umask
    before: Timeline = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "before", self.history.timeline)


def commit(journal: Journal, changes: Sequence[FileChange]) -> None:
    """Change all files, or none; each file may be named once.

    OSError and ConcurrentWriteError mean that nothing was changed, EditorError that it stopped
    midway.
    """
    if not changes:
        return
    if len(changes) == 1:
        (change,) = changes
        change.history.apply(change.timeline, change.new, change.fingerprint, mode=change.mode)
        return
    name = os.urandom(16).hex()
    files = tuple((str(change.history.path), change.mode) for change in changes)
    try:
        for change in changes:
            change.history.prepare_with_others(change.timeline, change.old, change.new, name)
        for change in changes:
            if atomic_write.fingerprint_of(change.history.path) != change.fingerprint:
                raise ConcurrentWriteError
        journal.put(name, Record(files))
    except BaseException:
        _rollback(changes)
        journal.remove(name)
        raise
    try:
        for change in changes:
            change.history.write(change.new, change.fingerprint, change.mode)
    except BaseException as error:
        with suppress(OSError):  # if it cannot be written, a crash now would go forward instead
            journal.put(name, Record(files, forward=False))
        _restore_old(changes, error)
        _rollback(changes)
        journal.remove(name)
        raise
    for change in changes:
        change.history.commit(change.before)
    journal.remove(name)


def _rollback(changes: Sequence[FileChange]) -> None:
    for change in changes:
        change.history.rollback(change.before)


def _restore_old(changes: Sequence[FileChange], error: BaseException) -> None:
    """Put back what was there, except where somebody else wrote meanwhile."""
    for change in changes:
        try:
            if (
                change.new != change.old
                and change.new == (atomic_write.read_if_there(change.history.path)[0])
            ):
                change.history.restore(change.old, None)
        except OSError as problem:
            raise EditorError(
                f"An edit of several files stopped in the middle ({error}), and "
                f"{change.history.path} could not be put back ({problem}). The next edit of it, or "
                "of any of the others, tries to do so again."
            ) from error


class _FileState(Enum):
    """What a file is after a crash, compared with what was to happen to it."""

    OLD = "old"
    NEW = "new"
    TORN = "torn"
    EXTERNAL = "external"


@dataclass(frozen=True)
class _Leftover:
    """A file whose change was prepared and not committed."""

    history: FileHistory
    intended: Timeline
    old: bytes | None
    new: bytes | None
    mode: int | None
    found: _FileState
    nearer_to_new: bool


def recover(journal: Journal, histories: Sequence[FileHistory], transaction: str) -> None:
    """Go on with an edit whose process died, or take it back; the locks of its files are held.

    It is taken back if that had begun, or somebody changed a file that it had not reached.
    """
    record = journal.get(transaction)
    if record is None:
        return  # its process was alive, or somebody else was quicker
    modes = dict(record.files)
    left = [
        _inspect(history, modes[str(history.path)])
        for history in histories
        if history.intended_by == transaction
    ]
    forward = record.forward and not any(
        each.found is _FileState.EXTERNAL and not each.nearer_to_new for each in left
    )
    try:
        journal.put(transaction, Record(record.files, forward))
        for each in left:
            each.history.remove_temporary()
            if each.found in (_FileState.TORN, _FileState.OLD if forward else _FileState.NEW):
                each.history.restore(each.new if forward else each.old, each.mode)
    except OSError as error:
        raise EditorError(
            "An edit of several files was interrupted, and cannot be finished or taken back: "
            f"{error}. Files: {', '.join(modes)}. See to it that they can be "
            "written, then try again."
        ) from None
    for each in left:
        before = each.history.timeline
        if forward:
            each.history.timeline = each.intended
            each.history.commit(before)
            each.history.blobs.keep_only(each.intended.references)
        else:
            each.history.rollback(before)
    journal.remove(transaction)


def _inspect(history: FileHistory, mode: int | None) -> _Leftover:
    try:
        intended, old, new = history.read_intent()
        current, _ = atomic_write.read_if_there(history.path)
    # Lost by a power failure, or something else is there: only the others can be put back.
    except (LookupError, IsADirectoryError, NotADirectoryError):
        return _Leftover(history, history.timeline, None, None, mode, _FileState.EXTERNAL, False)
    found = _FileState.EXTERNAL
    if digest_of(current) == intended.head:
        found = _FileState.NEW
    elif current == old:
        found = _FileState.OLD
    elif is_torn(current, old, new):
        found = _FileState.TORN
    like_old, like_new = (
        sum(common_ends(current or b"", content or b"")) for content in (old, new)
    )
    return _Leftover(history, intended, old, new, mode, found, like_new > like_old)
