"""The history of one file, and write-ahead changes of the two.

The timeline is stored as an *intent* before the file is replaced, and becomes the index
afterwards, so recovery compares the file with the intent. Only the file is flushed to disk. Its
content is stored now and then, and otherwise rebuilt by the steps.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from oh_jupyter.editor.files import atomic_write
from oh_jupyter.editor.files.atomic_write import Attributes, ConcurrentWriteError
from oh_jupyter.editor.files.path_guard import pinned
from oh_jupyter.editor.history.journal import EditJournal, IncompleteTransaction
from oh_jupyter.editor.history.step_log import remove_other_logs
from oh_jupyter.editor.history.steps import Blobs, Digests, Step, access, digest_of
from oh_jupyter.editor.history.timeline import Timeline, TimelineFiles
from oh_jupyter.editor.text.line_diff import common_ends

_ALWAYS_KEPT_BYTES = 64 * 1024 * 1024  # of the last edit, which can be undone despite the limit


class FileHistory:
    """The history of one locked file."""

    def __init__(
        self,
        folder: Path,
        path: Path,
        max_steps: int,
        max_bytes: int,
        digests: Digests,
        files: TimelineFiles,
        *,
        repair: bool = True,
    ) -> None:
        self._files = files
        self._folder = folder
        self.written = 0
        self.path = path
        self.blobs = Blobs(folder / "blobs", digests)
        self._index = folder / "index.json"
        self._intent = folder / "intent.json"
        self._tag = ""
        self._limits = max_steps, max_bytes
        self.timeline = self._load(self._index) or Timeline()
        if repair:
            self._recover()

    def sync(self, current: bytes | None) -> None:
        """Record changes by others since the editor last wrote the file."""
        timeline = self.timeline.sync(
            current, self.blobs.digests.of(current), self.blobs, time.time()
        )
        if timeline is not self.timeline:
            before = self.timeline
            timeline = self._with_base(timeline, current)
            self._store(timeline, self._index if timeline.steps else None)
            if timeline.steps:
                self._remove_replaced(before)

    def record(
        self,
        command: str,
        old: bytes | None,
        new: bytes | None,
        *,
        several_places: bool = False,
        transaction: str = "",
        files: tuple[str, ...] = (),
    ) -> Timeline:
        """Return the timeline with one more step, pruned to the limits."""
        size = len(old or b"") + len(new or b"")
        if size > max(self._limits[1], _ALWAYS_KEPT_BYTES):
            # This step alone would exceed the limit, so no step is kept.
            return Timeline(self.blobs.digests.of(new), attributes=self.timeline.attributes)
        step = Step.between(
            old,
            new,
            self.blobs,
            command=command,
            time=time.time(),
            several_places=several_places,
            transaction=transaction,
            files=files,
        )
        timeline = self.timeline.record(step, self.blobs.digests.of(new), self.blobs)
        return timeline.prune(self.blobs, *self._limits)

    def apply(
        self,
        timeline: Timeline,
        content: bytes | None,
        fingerprint: atomic_write.Fingerprint | None,
        *,
        mode: int | None = None,
    ) -> None:
        """Write the file (None removes it), and commit its timeline."""
        before = self.timeline
        try:
            self._write_intent(self._with_base(timeline, content))
            self.write(content, fingerprint, mode)
        except BaseException:
            self.rollback(before)
            raise
        self.commit(before)

    def _with_base(self, timeline: Timeline, content: bytes | None) -> Timeline:
        """Store the content at the cursor, unless it can be rebuilt."""
        if content is None or not timeline.steps or timeline.can_rebuild(len(content)):
            return timeline
        return timeline.based_on(self.blobs.put_file(content, timeline.head))

    def prepare_with_others(
        self, timeline: Timeline, old: bytes | None, new: bytes | None, transaction: str
    ) -> None:
        """Write the intent of a change of several files, and flush it to disk."""
        digests = [self.blobs.put_file(content) for content in (old, new) if content is not None]
        reference = digests[0] if old is not None else None
        if new is not None:
            timeline = timeline.based_on(digests[-1])
        self._write_intent(timeline, transaction=transaction, old=reference)
        with access(self._folder):
            if self.timeline.log is not None:
                atomic_write.flush(self._folder / self.timeline.log.name)
            atomic_write.flush(self._intent)
            for digest in digests:
                atomic_write.flush(self.blobs.folder / digest)

    def write(
        self, content: bytes | None, fingerprint: atomic_write.Fingerprint | None, mode: int | None
    ) -> None:
        """Write or remove the file, if it still has the fingerprint."""

        def check() -> None:
            if atomic_write.fingerprint_of(self.path) != fingerprint:
                raise ConcurrentWriteError

        if content is None:
            check()
            with pinned(self.path, is_real=True) as target:
                os.unlink(target)
        else:
            attributes = self.timeline.attributes if fingerprint is None and mode is None else None
            self._replace(content, mode=mode, attributes=attributes, check=check)

    def restore(self, content: bytes | None, mode: int | None) -> None:
        """Write or remove the file after an interrupted change."""
        self.remove_temporary()
        if content is None:
            with suppress(FileNotFoundError), pinned(self.path, is_real=True) as target:
                os.unlink(target)
        else:
            self._replace(content, mode=mode, attributes=self.timeline.attributes)

    def _replace(self, content: bytes, **more: Any) -> None:
        atomic_write.replace(self.path, content, tag=self._tag or None, is_real=True, **more)

    def rollback(self, before: Timeline) -> None:
        """Drop the intent, and restore the previous timeline."""
        self.timeline = before
        with suppress(OSError):
            self._intent.unlink(missing_ok=True)
            self.blobs.keep_only(before.references)
            remove_other_logs(self._folder, before.log)

    def commit(self, before: Timeline, *, reverting: str | None = None) -> None:
        """Make the intended timeline the current one; drop a blob stored to revert the change."""
        try:
            os.replace(self._intent, self._index)
        except OSError:
            return  # the file is written; the next reader of the history notices that
        self._remove_replaced(before, reverting)

    def _write_intent(self, timeline: Timeline, **more: str | None) -> None:
        # The name must be unique, also among editors of other users.
        self._tag = os.urandom(6).hex()
        self._store(timeline, self._intent, temporary=self._tag, **more)

    def _store(self, timeline: Timeline, target: Path | None, **more: str | None) -> None:
        # The attributes of a removed file are kept, to restore them with it.
        attributes = Attributes.of(self.path)
        if target is None:
            self.timeline = replace(timeline, attributes=attributes or timeline.attributes)
            return
        with access(self._folder):
            self.timeline, written = self._files.write(
                target, timeline, self.path, attributes, is_new=target == self._intent, **more
            )
        self.written += written

    def _remove_replaced(self, before: Timeline, reverting: str | None = None) -> None:
        """Remove what the current timeline no longer needs of the one before."""
        for reference in before.freed_by(self.timeline, reverting):
            self.blobs.discard(reference)
        if before.log is not None and before.log.name != getattr(self.timeline.log, "name", None):
            with suppress(OSError):
                remove_other_logs(self._folder, self.timeline.log)

    def _load(self, file: Path) -> Timeline | None:
        with access(self._folder):
            try:
                return self._files.read(file)
            except ValueError:
                # Damaged by a power failure; set aside for inspection.
                os.replace(file, file.with_suffix(".damaged"))
                return None

    def _recover(self) -> None:
        """Finish or drop a change whose process died."""
        intended = self._load(self._intent)
        if intended is None:
            return
        transaction = self.intended_by
        if transaction and EditJournal(self._folder.parent).has(transaction):
            raise IncompleteTransaction(transaction)
        self.remove_temporary()
        fingerprint = atomic_write.fingerprint_of(self.path)
        current = atomic_write.read(self.path)[0] if fingerprint is not None else None
        if digest_of(current) != intended.head and self._is_torn(current, intended):
            current = intended.content(self.blobs)
            self._replace(current or b"")
        if digest_of(current) == intended.head:
            os.replace(self._intent, self._index)
            self.timeline = intended
        else:
            self._intent.unlink()
        self.blobs.keep_only(self.timeline.references)
        remove_other_logs(self._folder, self.timeline.log)

    @property
    def intended_by(self) -> str:
        """Name of the edit of several files that the intent belongs to, or ""."""
        return str(self._read_intent_fields().get("transaction", ""))

    def read_intent(self) -> tuple[Timeline, bytes | None, bytes | None]:
        """Return the intended timeline, and the old and new content; LookupError if lost."""
        timeline, old = self._load(self._intent), self._read_intent_fields().get("old")
        if timeline is None:
            raise LookupError(str(self._intent))
        return timeline, self.blobs.get(old) if old else None, timeline.content(self.blobs)

    def _read_intent_fields(self) -> dict[str, Any]:
        with access(self._folder):
            try:
                return dict(json.loads(self._intent.read_bytes()))
            except (FileNotFoundError, ValueError):
                return {}

    def remove_temporary(self) -> None:
        """Remove the temporary file of a process that died while writing."""
        self._tag = str(self._read_intent_fields().get("temporary") or "")
        if self._tag:
            with suppress(OSError):
                os.unlink(atomic_write.temporary_for(self.path, self._tag))

    def _is_torn(self, current: bytes | None, intended: Timeline) -> bool:
        """Return whether a file with hard links, written in place, is half old and half new."""
        try:
            new = intended.content(self.blobs)
            if self.timeline.steps:
                old = self.timeline.content(self.blobs)
            else:
                old = intended.steps[intended.cursor - 1].undo(new, self.blobs)
        except (LookupError, ValueError):
            return False
        return current != old and is_torn(current, old, new)


def is_torn(current: bytes | None, old: bytes | None, new: bytes | None) -> bool:
    """Return whether a content starts like the new one and continues like the old one."""
    if current is None or old is None or new is None:
        return False
    written, _ = common_ends(current, new)
    return current[written:] == old[written:]
