"""Files as they are going to be: edits are made here first, and written all at once."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from oh_jupyter.editor import reading
from oh_jupyter.editor.files import atomic_write
from oh_jupyter.editor.files.paths import check_path, exists
from oh_jupyter.editor.history.commit import FileChange
from oh_jupyter.editor.history.file_history import FileHistory
from oh_jupyter.editor.history.steps import Step
from oh_jupyter.editor.messages import too_large
from oh_jupyter.editor.notebook.validation import check_notebook, new_notebook
from oh_jupyter.editor.result import EditorResult
from oh_jupyter.editor.state import EditorState, real_path
from oh_jupyter.editor.text import conflicts
from oh_jupyter.editor.text.delta import compare
from oh_jupyter.editor.text.encoding import UTF8
from oh_jupyter.editor.text.text_file import TextFile

__all__ = ["Stage", "StagedFile"]


@dataclass
class StagedFile:
    """One file.

    Attributes:
        path: Its path, as it was given first.
        base: What is on the disk; None if it is not there.
        fingerprint: The fingerprint that belongs to ``base``.
        shown: The text that was shown last, if that is not what is on the disk.
        file: What it is going to be; None if it will not be there.
        mode: Permissions, where the file is new.
        by_line_number: Whether an edit was given by line numbers.
    """

    path: Path
    base: TextFile | None
    fingerprint: atomic_write.Fingerprint | None
    shown: str | None
    file: TextFile | None = field(init=False)
    mode: int | None = None
    by_line_number: bool = False

    def __post_init__(self) -> None:
        """Start with what is on the disk."""
        self.file = self.base

    @property
    def changed(self) -> bool:
        """Whether it is going to be different."""
        return _bytes(self.file) != _bytes(self.base)

    @property
    def permissions(self) -> int | None:
        """Permissions of the file on the disk, for whoever makes it anew."""
        return stat.S_IMODE(os.stat(self.path).st_mode) if self.base is not None else self.mode

    def result(self, *, dry_run: bool) -> EditorResult:
        """Tell what happened to it.

        Args:
            dry_run: Whether it did not.

        Returns:
            The result.
        """
        verb = "deleted" if self.file is None else "created" if self.base is None else "edited"
        return EditorResult(
            f"The file {self.path} has been {verb}.",
            path=str(self.path),
            prev_exist=self.base is not None,
            old_content=self.base.text if self.base is not None else None,
            new_content=self.file.text if self.file is not None else None,
            dry_run=dry_run,
        )


class Stage:
    """The files of one edit, read when they are first needed."""

    def __init__(self, state: EditorState) -> None:
        """Begin with nothing.

        Args:
            state: What the editor knows.
        """
        self._state = state
        self._files: dict[Path, StagedFile] = {}
        self._looked_at: Path | None = None

    @property
    def changed(self) -> list[StagedFile]:
        """The files that are going to be different, in the order in which they were named."""
        return [staged for staged in self._files.values() if staged.changed]

    def at(self, path: Path) -> StagedFile:
        """Look at a file as it is going to be.

        Args:
            path: The absolute path; there may be nothing.

        Returns:
            The file.

        Raises:
            EditorError: It is one that cannot be edited.
        """
        real = real_path(path)
        if real not in self._files:
            self._files[real] = self._read(path, real)
        self._looked_at = real
        return self._files[real]

    def _read(self, path: Path, real: Path) -> StagedFile:
        check_path("write", path, restorable=False)
        if not exists(path):
            return StagedFile(path, None, None, None)
        base, fingerprint = reading.read_text(path, self._state.max_file_bytes)
        shown = self._state.last_read.before(real, base.data)
        old = TextFile.parse(shown) if shown is not None else None
        return StagedFile(path, base, fingerprint, old.text if old is not None else None)

    def put(self, path: Path, data: bytes | None) -> None:
        """Say what a file becomes.

        Args:
            path: The absolute path.
            data: Its content, in the encoding that it has; None to remove it.

        Raises:
            EditorError: It would be too large, or a notebook that is none any more.
        """
        staged = self.at(path)
        if data is None:
            staged.file = None
            return
        if len(data) > self._state.max_file_bytes:
            raise too_large(path, len(data), self._state.max_file_bytes)
        before = staged.file or staged.base
        new = TextFile(data, before.encoding) if before is not None else TextFile.parse(data)
        new = new or TextFile(data, UTF8)
        if staged.file is not None:
            check_notebook(path, staged.file.text, new.text)
        else:
            new_notebook(path, new.text)
        staged.file = new

    def check_conflicts(self) -> dict[Path, str]:
        """Check that nobody else changed what was going to be changed.

        Returns:
            A note for each file that somebody else changed elsewhere.

        Raises:
            FileChangedError: Somebody did. The error shows the file as it is now.
        """
        notes = {}
        for real, staged in self._files.items():
            if staged.shown is None or staged.base is None or not staged.changed:
                continue
            self._looked_at = real
            new = staged.file.text if staged.file is not None else ""
            if staged.file is None or staged.by_line_number:
                raise conflicts.changed_error(staged.path, staged.shown, staged.base.text)
            note = conflicts.check_change(staged.path, staged.shown, staged.base.text, new)
            notes[staged.path] = note
        return notes

    def remember_shown(self) -> None:
        """Note that an error shows the file that was looked at last as it is now."""
        staged = self._files[self._looked_at] if self._looked_at is not None else None
        if staged is not None and staged.base is not None:
            self._state.last_read.remember(real_path(staged.path), staged.base.data)

    def changes(self, histories: Sequence[FileHistory], command: str) -> list[FileChange]:
        """Plan the writing.

        Args:
            histories: Those of all files that may have changed, with their locks held.
            command: What the history is to call the edit.

        Returns:
            What happens to each file that is going to be different.
        """
        by_path = {history.path: history for history in histories}
        changed = [(real, staged) for real, staged in self._files.items() if staged.changed]
        together = tuple(str(real) for real, _ in changed) if len(changed) > 1 else ()
        name = os.urandom(16).hex() if together else ""
        changes = []
        for real, staged in changed:
            history = by_path[real]
            old, new = _bytes(staged.base), _bytes(staged.file)
            history.sync(old)
            step = Step(
                command,
                time.time(),
                (),
                old is not None,
                new is not None,
                transaction=name,
                files=together,
            )
            step = step.with_delta(compare(old or b"", new or b"", lines=True), history.blobs)
            timeline = history.recorded(step, new)
            changes.append(FileChange(history, timeline, old, new, staged.fingerprint, staged.mode))
        return changes

    def remember(self) -> None:
        """Note that everything is on the disk now as it was going to be."""
        for real, staged in self._files.items():
            if staged.file is None:
                self._state.last_read.forget(real)
            elif staged.changed:
                self._state.last_read.remember(real, staged.file.data)


def _bytes(file: TextFile | None) -> bytes | None:
    return None if file is None else file.data
