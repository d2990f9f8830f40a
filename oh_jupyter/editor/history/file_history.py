"""The history of one locked file: a chain of changes, from any of which undo and redo merge.

Each change leads from one content to the next, and others' changes are among them. Undoing an edit
is a three-way merge: of its content after, its content before, and the current one.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from oh_jupyter.editor.files import atomic_write
from oh_jupyter.editor.files.atomic_write import Attributes, ConcurrentWriteError
from oh_jupyter.editor.files.path_guard import pinned
from oh_jupyter.editor.history.edit import Delta, Digests, Edit, Kind, apply, compare, invert, moved
from oh_jupyter.editor.history.edit_table import EditTable, PlannedRow

MAX_CHAIN = 100
"""Changes from the stored content to the current one: a rebuild copies the file at each."""

MAX_COPIED_BYTES = 64 * 1024 * 1024
"""Bytes that a rebuild copies. Within both limits it takes 1 to 30 ms."""

_ALWAYS_KEPT_BYTES = 64 * 1024 * 1024  # of the last edit, which can be undone despite the limit
_REWRITTEN_SHARE = 0.9  # of the bytes; above it both contents are stored, and shared with others
_MAX_CHANGES_OF_AN_EDIT = 4  # on average, with its undos and redos
_PRUNED_FRACTION = 1 / 16  # of the limit of edits; forgetting one after each edit costs more


class Conflict(Exception):
    """Others changed the lines of the edit to undo or redo."""

    def __init__(self, base: bytes | None) -> None:
        super().__init__("the changes touch each other")
        self.base = base


class FileHistory:
    """The history of one locked file.

    Attributes:
        path: The real path of the file.
        file: Its number in the ledger, 0 before its first edit.
        head: The last change of the file.
        is_unfinished: Whether a planned change is neither done nor reverted.
        written: Bytes that were added to the history.
    """

    def __init__(
        self, table: EditTable, path: Path, max_edits: int, max_bytes: int, digests: Digests
    ) -> None:
        self.path = path
        self.is_unfinished = False
        self.written = 0
        self.digests = digests
        self._table = table
        self._max_edits, self._max_bytes = max_edits, max_bytes
        self._load()

    def _load(self) -> None:
        """Read what is stored about the file; nobody else changes that while it is locked."""
        self.file, self._base = self._table.file(self.path)
        self.head = self._table.edit(self.file) if self.file else None

    @property
    def last(self) -> Edit | None:
        """The edit that an undo would undo, or the deletion by others."""
        done = "AND kind = ? AND state = 'done'"
        edit, outside = (self._table.edit(self.file, done, kind) for kind in ("edit", "outside"))
        last = edit
        if outside is not None and outside.is_deletion_by_others:
            last = outside if edit is None or edit.number < outside.number else edit
        return last if last is not None and self._is_within_limit(last) else None

    def _is_within_limit(self, edit: Edit) -> bool:
        """Return whether fewer edits than the limit, all of them undone, came after an edit."""
        newer = self._count("state = 'undone' AND number > ?", edit.number)
        return newer < self._max_edits

    def _count(self, condition: str, *values: int) -> int:
        """Return the number of edits with a condition."""
        query = f"SELECT count(*) FROM edits WHERE file = ? AND kind = 'edit' AND {condition}"
        ((count,),) = self._table.rows(query, self.file, *values) or [(0,)]
        return int(count)

    @property
    def next(self) -> Edit | None:
        """The edit that a redo would redo."""
        return self._table.edit(self.file, "AND kind = 'edit' AND state = 'undone'", last=False)

    def has(self, together: str) -> bool:
        """Return whether an edit of several files is among the changes of this one."""
        return self._table.edit(self.file, "AND together = ?", together) is not None

    @property
    def is_complete(self) -> bool:
        """Whether no change of the file is forgotten."""
        return not self._table.is_pruned(self.file) and self._first_number() <= 1

    def changes(self) -> list[Edit]:
        """Return the changes of the file that are not forgotten, the oldest first."""
        return self._table.edits(self.file, "AND number >= ?", self._first_number())

    def entries(self) -> list[Edit]:
        """Return the edits and others' changes: those that count, then the undone ones."""
        listed = [
            edit
            for edit in self.changes()
            if edit.kind in ("edit", "outside") and edit.state != "dropped"
        ]
        return sorted(listed, key=lambda edit: edit.state == "undone")

    def _first_number(self) -> int:
        """Return the number of the first change that the limit of edits leaves."""
        if self.head is None or self.head.number <= self._max_edits:
            return 0
        rows = self._table.rows(
            "SELECT number FROM edits WHERE file = ? AND kind = 'edit' "
            "AND state IN ('done', 'undone') ORDER BY number DESC LIMIT 1 OFFSET ?",
            *(self.file, self._max_edits),
        )
        return int(rows[0][0]) + 1 if rows else 0

    def content_after(self, number: int) -> bytes | None:
        """Rebuild the content after a change, 0 for the first one; LookupError if it is lost."""
        content, position = self._nearest_stored(number)
        first, last = min(position, number), max(position, number)
        edits = {
            edit.number: edit
            for edit in self._table.edits(self.file, "AND number BETWEEN ? AND ?", first, last + 1)
        }
        while position != number:
            is_later = position > number
            edit = edits.get(position if is_later else position + 1)
            if edit is None:
                raise LookupError(f"change {number} of {self.path} is forgotten")
            content = self._across(edit, content, back=is_later)
            position += -1 if is_later else 1
        digest = self.digests.of(content)
        if (number in edits and edits[number].after != digest) or (
            number + 1 in edits and edits[number + 1].before != digest
        ):
            raise LookupError(f"the content after change {number} of {self.path} is damaged")
        return content

    def _nearest_stored(self, number: int) -> tuple[bytes | None, int]:
        """Return the nearest content that needs no other, and the number of the change before."""
        if self._base is not None:
            return self._table.content(self._base.digest), self._base.number
        edits = self._table.edits(self.file, "AND (before IS NULL OR after IS NULL)")
        positions = [edit.number - (edit.after is not None) for edit in edits]
        if not positions:
            raise LookupError(f"no content of {self.path} is stored")
        return None, min(positions, key=lambda position: abs(position - number))

    def _across(self, edit: Edit, content: bytes | None, *, back: bool) -> bytes | None:
        """Return the content on the other side of a change; LookupError if it is damaged."""
        target = edit.before if back else edit.after
        if target is None:
            return None
        delta = self._table.delta(self.file, edit.number)
        if delta is None:
            return self._table.content(target)
        try:
            return apply(invert(delta) if back else delta, content or b"")
        except ValueError as error:
            raise LookupError(f"change {edit.number} of {self.path}: {error}") from error

    def before(self, edit: Edit, content: bytes | None) -> bytes | None:
        """Return the content before a change from that after it; LookupError if damaged."""
        return self._across(edit, content, back=True)

    def sync(self, current: bytes | None) -> None:
        """Record what others changed since the last change."""
        head = self.head
        if head is None or self.digests.of(current) == head.after:
            return
        try:
            known = self.content_after(head.number)
            is_replaced = self._is_replaceable(head)
            if is_replaced:
                known = self.before(head, known)
        except LookupError:
            self._forget()  # the content before is lost, so the changes lead nowhere
            return
        if self._is_too_large(known, current):
            self._forget()
            return
        if is_replaced:
            self._table.remove([(self.file, head)])
            self._load()
        if known != current:
            self._add_outside(known, current)
        self._drop_unfitting(current)

    def _is_replaceable(self, head: Edit) -> bool:
        """Return whether a further change by others becomes one with the last."""
        is_base = self._base is not None and self._base.number >= head.number
        return head.kind == "outside" and head.state == "done" and not is_base

    def _add_outside(self, known: bytes | None, current: bytes | None) -> None:
        edit = self._change("outside", "changed outside", known, current)
        delta = compare(known or b"", current or b"", lines=True)
        self.written += self._table.add([self._row(edit, known, current, delta)])
        self._load()

    def _drop_unfitting(self, current: bytes | None) -> None:
        """Drop the undone edits if others changed the lines of the next one."""
        undone = self.next
        if undone is not None:
            try:
                self.redone(undone, current)
            except (Conflict, LookupError):
                self._table.drop_undone(self.file)

    def plan(
        self,
        command: str,
        old: bytes | None,
        new: bytes | None,
        *,
        several_places: bool = False,
        mode: int | None = None,
        together: str = "",
        files: tuple[str, ...] = (),
    ) -> PlannedRow | None:
        """Return an edit to add; None if it exceeds what a history keeps."""
        if self._is_too_large(old, new):
            return None
        edit = self._change("edit", command, old, new)
        edit = replace(edit, mode=mode, together=together, files=files)
        delta = compare(old or b"", new or b"", lines=several_places)
        return self._row(replace(edit, state="planned", tag=_tag()), old, new, delta)

    def _is_too_large(self, old: bytes | None, new: bytes | None) -> bool:
        return len(old or b"") + len(new or b"") > max(self._max_bytes, _ALWAYS_KEPT_BYTES)

    def plan_reversal(
        self, kind: Kind, target: Edit, old: bytes | None, new: bytes | None, together: str = ""
    ) -> PlannedRow:
        """Return the undoing or redoing of an edit, to add."""
        edit = self._change(kind, kind, old, new)
        edit = replace(edit, target=target.number, together=together, state="planned", tag=_tag())
        return self._row(edit, old, new, compare(old or b"", new or b"", lines=True))

    def _change(self, kind: Kind, command: str, old: bytes | None, new: bytes | None) -> Edit:
        attributes, number = Attributes.of(self.path), 1
        if self.head is not None:
            number = self.head.number + 1
            # Those of a removed file are kept, to restore them with it.
            attributes = attributes or self.head.attributes
        before, after = self.digests.of(old), self.digests.of(new)
        return Edit(number, kind, command, time.time(), before, after, attributes=attributes)

    def _row(self, edit: Edit, old: bytes | None, new: bytes | None, delta: Delta) -> PlannedRow:
        contents: dict[str, bytes] = {}
        changed = sum(len(each.old) + len(each.new) for each in delta)
        is_whole = changed >= _REWRITTEN_SHARE * (len(old or b"") + len(new or b""))
        if is_whole and new is not None and edit.after is not None:
            contents[edit.after] = new
        is_base = old is not None and not self._can_rebuild(edit.number - 1, len(old))
        if (is_whole or is_base) and old is not None and edit.before is not None:
            contents[edit.before] = old
        return PlannedRow(self.path, edit, None if is_whole else delta, contents, is_base)

    def _can_rebuild(self, number: int, size: int) -> bool:
        """Return whether the content after a change, of a size in bytes, is quickly rebuilt."""
        if self._base is None:
            return False
        distance = abs(number - self._base.number)
        return distance <= MAX_CHAIN and distance * size <= MAX_COPIED_BYTES

    def undone(self, edit: Edit, current: bytes | None) -> bytes | None:
        """Return the content without an edit; Conflict if others changed its lines."""
        return self._merged(edit, current, back=True)

    def redone(self, edit: Edit, current: bytes | None) -> bytes | None:
        """Return the content with an undone edit; Conflict if others changed its lines."""
        return self._merged(edit, current, back=False)

    def _merged(self, edit: Edit, current: bytes | None, *, back: bool) -> bytes | None:
        """Merge the current content with the other side of a change."""
        ours, theirs = (edit.after, edit.before) if back else (edit.before, edit.after)
        if self.digests.of(current) == ours:
            return self._across(edit, current, back=back)
        base = self.content_after(edit.number if back else edit.number - 1)
        if current is None or base is None or theirs is None:
            raise Conflict(base)
        delta = self._table.delta(self.file, edit.number)
        if delta is None:
            change = compare(base, self._table.content(theirs), lines=True)
        else:
            change = invert(delta) if back else delta
        merged = moved(change, compare(base, current, lines=True))
        if merged is None:
            raise Conflict(base)
        return apply(merged, current)

    def _prune(self) -> None:
        """Forget the first changes once there are too many."""
        too_many = int(self._max_edits * (1 + _PRUNED_FRACTION))
        if self.head is None or self.head.number <= too_many:
            return
        ((first,),) = self._table.rows("SELECT min(number) FROM edits WHERE file = ?", self.file)
        until = self.head.number - _MAX_CHANGES_OF_AN_EDIT * self._max_edits
        count = self._count("state = 'done'") + self._count("state = 'undone'")
        if count > too_many:
            until = max(until, self._first_number() - 1)
        if until >= first:
            self.forget_until(until)

    def _forget(self) -> None:
        """Forget all changes."""
        self._table.forget(self.file)
        self._load()

    def forget_until(self, number: int) -> None:
        """Forget changes, and store the content after them if the base is among them."""
        if self._table.edit(self.file, "AND number > ?", number) is None:
            self._forget()
            return
        base = None
        if self._base is None or self._base.number < number:
            with suppress(LookupError):  # it is lost already
                content = self.content_after(number)
                digest = self.digests.of(content)
                base = None if content is None or digest is None else (digest, content)
        self._table.forget_until(self.file, number, base)
        self._load()

    def begin(self, written: int) -> None:
        """Count a planned change, which is unfinished until ``finish`` or ``cancel``."""
        self.written += written
        self.is_unfinished = True
        if not self.file:
            self.file, self._base = self._table.file(self.path)

    def finish(self, edit: Edit | None) -> None:
        """Count the planned change as done; None forgets all changes."""
        self.is_unfinished = False
        if edit is not None:
            self.head = replace(edit, state="done")
            if edit.kind == "edit":
                self._prune()
        elif self.file:
            self._forget()

    def cancel(self) -> None:
        """Count the planned change as reverted."""
        self._load()
        self.is_unfinished = False

    def write(
        self,
        edit: Edit | None,
        content: bytes | None,
        fingerprint: atomic_write.Fingerprint | None,
        mode: int | None,
    ) -> None:
        """Write or remove the file, if it still has the fingerprint."""

        def check() -> None:
            if atomic_write.fingerprint_of(self.path) != fingerprint:
                raise ConcurrentWriteError

        if content is None:
            check()
            with pinned(self.path, is_real=True) as target:
                os.unlink(target)
            return
        attributes = None
        if edit is not None and edit.kind != "edit" and fingerprint is None and mode is None:
            attributes = edit.attributes
        atomic_write.replace(
            *(self.path, content),
            mode=mode,
            attributes=attributes,
            tag=(edit.tag or None) if edit is not None else None,
            check=check,
            is_real=True,
        )

    def restore(self, edit: Edit, content: bytes | None, mode: int | None) -> None:
        """Write or remove the file after an interrupted change."""
        if content is None:
            with suppress(FileNotFoundError), pinned(self.path, is_real=True) as target:
                os.unlink(target)
            return
        atomic_write.replace(
            *(self.path, content),
            mode=mode,
            attributes=edit.attributes,
            tag=edit.tag or None,
            is_real=True,
        )

    def remove_temporary(self, edit: Edit) -> None:
        """Remove the temporary file of a process that died while writing."""
        if edit.tag:
            with suppress(OSError):
                os.unlink(atomic_write.temporary_for(self.path, edit.tag))


def _tag() -> str:
    # The name must be unique, also among editors of other users.
    return os.urandom(6).hex()
