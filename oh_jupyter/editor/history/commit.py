"""Atomic commit of changes to several files, and its recovery after a crash.

The new contents are stored, then a journal record, then the files change, or change back.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum, auto

from oh_jupyter.editor.files import atomic_write
from oh_jupyter.editor.files.atomic_write import ConcurrentWriteError
from oh_jupyter.editor.history.file_history import FileHistory, is_torn
from oh_jupyter.editor.history.journal import EditJournal, Record
from oh_jupyter.editor.history.steps import digest_of
from oh_jupyter.editor.history.timeline import Timeline
from oh_jupyter.editor.text.line_diff import common_ends
from oh_jupyter.errors import EditorError


@dataclass(frozen=True)
class PlannedChange:
    """Planned change of one locked file."""

    history: FileHistory
    timeline: Timeline
    old: bytes | None  # current content; None if the file does not exist
    new: bytes | None  # planned content; None removes the file
    fingerprint: atomic_write.Fingerprint | None
    mode: int | None = None  # permissions of a new file; None for those of the umask
    before: Timeline = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "before", self.history.timeline)


def commit(journal: EditJournal, changes: Sequence[PlannedChange]) -> None:
    """Change all files, or none; each file may appear once.

    On OSError and ConcurrentWriteError nothing was changed; on EditorError it stopped midway.
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
        _rollback(journal, name, changes)
        raise
    try:
        for change in changes:
            change.history.write(change.new, change.fingerprint, change.mode)
    except BaseException as error:
        with suppress(OSError):  # if this fails, recovery after a crash would go forward instead
            journal.put(name, Record(files, forward=False))
        _restore_old(changes, error)
        _rollback(journal, name, changes)
        raise
    for change in changes:
        change.history.commit(change.before, reverting=change.before.head)
    journal.remove(name)


def _rollback(journal: EditJournal, name: str, changes: Sequence[PlannedChange]) -> None:
    for change in changes:
        change.history.rollback(change.before)
    journal.remove(name)


def _restore_old(changes: Sequence[PlannedChange], cause: BaseException) -> None:
    """Restore the old contents, except where somebody else has written meanwhile."""
    for change in changes:
        try:
            if (
                change.new != change.old
                and change.new == (atomic_write.read_if_exists(change.history.path)[0])
            ):
                change.history.restore(change.old, None)
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
    """A file with a prepared but uncommitted change."""

    history: FileHistory
    intended: Timeline
    old: bytes | None
    new: bytes | None
    state: _FileState
    nearer_to_new: bool


def recover(journal: EditJournal, histories: Sequence[FileHistory], transaction: str) -> None:
    """Finish or revert an edit whose process died, while its files are locked.

    It is reverted if that had started, or if somebody changed a file that it had not reached.
    """
    record = journal.get(transaction)
    if record is None:
        return  # its process was alive, or somebody else has recovered it
    modes = dict(record.files)
    leftovers = [_inspect(history) for history in histories if history.intended_by == transaction]
    forward = record.forward and not any(
        file.state is _FileState.EXTERNAL and not file.nearer_to_new for file in leftovers
    )
    try:
        journal.put(transaction, Record(record.files, forward))
        for file in leftovers:
            file.history.remove_temporary()
            if file.state in (_FileState.TORN, _FileState.OLD if forward else _FileState.NEW):
                content = file.new if forward else file.old
                file.history.restore(content, modes[str(file.history.path)])
    except OSError as error:
        raise EditorError(
            f"An interrupted edit of {', '.join(modes)} can be neither finished nor reverted. Make "
            f"the files writable, then try again. The error is: {error}"
        ) from None
    for file in leftovers:
        before = file.history.timeline
        if forward:
            file.history.timeline = file.intended
            file.history.commit(before)
            file.history.blobs.keep_only(file.intended.references)
        else:
            file.history.rollback(before)
    journal.remove(transaction)


def _inspect(history: FileHistory) -> _Leftover:
    try:
        intended, old, new = history.read_intent()
        current, _ = atomic_write.read_if_exists(history.path)
    # Lost by a power failure, or no longer a file: only the others can be restored.
    except (LookupError, IsADirectoryError, NotADirectoryError):
        return _Leftover(history, history.timeline, None, None, _FileState.EXTERNAL, False)
    state = _FileState.EXTERNAL
    if digest_of(current) == intended.head:
        state = _FileState.NEW
    elif current == old:
        state = _FileState.OLD
    elif is_torn(current, old, new):
        state = _FileState.TORN
    like_old, like_new = (
        sum(common_ends(current or b"", content or b"")) for content in (old, new)
    )
    return _Leftover(history, intended, old, new, state, like_new > like_old)
