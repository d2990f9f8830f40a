"""Staging area: the planned contents of files, which are written all at once."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from oh_jupyter.editor.files import atomic_write
from oh_jupyter.editor.files.paths import check_path, exists
from oh_jupyter.editor.history.commit import PlannedChange
from oh_jupyter.editor.history.file_history import FileHistory
from oh_jupyter.editor.messages import too_large
from oh_jupyter.editor.notebook.tagged_cells import check_tagged_cells
from oh_jupyter.editor.notebook.validation import check_notebook, max_bytes_of, new_notebook
from oh_jupyter.editor.reading import read_text
from oh_jupyter.editor.result import EditorResult
from oh_jupyter.editor.state import EditorState, real_path
from oh_jupyter.editor.text import conflicts
from oh_jupyter.editor.text.text_file import UTF8, TextFile


@dataclass
class StagedFile:
    """One file of an edit."""

    path: Path
    old: bytes | None  # None if it does not exist
    fingerprint: atomic_write.Fingerprint | None
    old_text: TextFile | None = None  # also None for a file that is overwritten unseen
    shown: str | None = None  # the text last shown, if it differs from the current one
    mode: int | None = None  # permissions of a new file
    command: str = ""  # the last one that changed it
    commands: int = 0
    by_line_number: bool = False  # a later command than the first used line numbers
    new: bytes | None = field(init=False)  # None if it is removed
    text: TextFile | None = field(init=False)

    def __post_init__(self) -> None:
        self.new, self.text = self.old, self.old_text

    @property
    def changed(self) -> bool:
        """Whether the planned content differs."""
        return self.new != self.old

    @property
    def permissions(self) -> int | None:
        """Permissions of the file on disk, for a file that replaces it."""
        return stat.S_IMODE(os.stat(self.path).st_mode) if self.old is not None else self.mode

    def result(self, *, dry_run: bool) -> EditorResult:
        """Return the result of the edit for this file."""
        verb = "deleted" if self.new is None else "created" if self.old is None else "edited"
        old, new = (None if text is None else text.text for text in (self.old_text, self.text))
        output, existed = f"The file {self.path} has been {verb}.", old is not None
        return EditorResult(output, None, str(self.path), existed, old, new, dry_run=dry_run)


class Stage:
    """The files of one edit, read on first use."""

    def __init__(self, state: EditorState) -> None:
        self.state = state
        self._files: dict[Path, StagedFile] = {}
        self._real_paths: dict[Path, Path] = {}
        self._last_used: Path | None = None

    def reset(self) -> None:
        """Drop every file, to rebuild the edit."""
        self._files.clear()
        self._last_used = None

    @property
    def changed(self) -> list[StagedFile]:
        """The files whose planned content differs, in order of first use."""
        return [staged for staged in self._files.values() if staged.changed]

    def real_path(self, path: Path) -> Path:
        """Resolve symbolic links, once for each path: the file that is locked is the one edited."""
        if path not in self._real_paths:
            self._real_paths[path] = real_path(path)
        return self._real_paths[path]

    def at(self, path: Path) -> StagedFile:
        """Return the planned state of a file; raise an error for one that cannot be edited."""
        real = self.real_path(path)
        if real not in self._files:
            self._files[real] = self._read(path, real)
        self._last_used = real
        return self._files[real]

    def _read(self, path: Path, real: Path) -> StagedFile:
        if not check_path("write", path, restorable=False):
            return StagedFile(path, None, None)
        file, fingerprint = read_text(path, self.state.max_file_bytes)
        outdated = self.state.last_read.outdated(real, file.data)
        shown = TextFile.parse(outdated) if outdated is not None else None
        return StagedFile(
            path, file.data, fingerprint, file, shown.text if shown is not None else None
        )

    def put(self, path: Path, data: bytes | None) -> StagedFile:
        """Set the content of a file, in its own encoding; None removes it."""
        staged = self.at(path)
        check_tagged_cells(path, staged.old, data)
        if data is None:
            staged.new = staged.text = None
            return staged
        limit = max_bytes_of(path, self.state.max_file_bytes)
        if len(data) > limit:
            raise too_large(path, len(data), limit)
        before = staged.text or staged.old_text
        text = TextFile(data, before.encoding) if before is not None else TextFile.parse(data)
        text = text or TextFile(data, UTF8)
        if staged.text is not None:
            check_notebook(path, staged.text.text, text.text)
        else:
            new_notebook(path, text.text)
        staged.new, staged.text = data, text
        return staged

    def overwrite(
        self, path: Path, compute: Callable[[bytes | None], bytes], mode: int | None
    ) -> None:
        """Set the content of a file of any kind, without any check."""
        old, fingerprint = atomic_write.read(path) if exists(path) else (None, None)
        staged = StagedFile(path, old, fingerprint, mode=mode, command="write", commands=1)
        staged.new = compute(old)
        check_tagged_cells(path, old, staged.new)
        self._files[self.real_path(path)] = staged

    def check_conflicts(self) -> dict[Path, str]:
        """Raise an error if others changed the same lines; return notes on their other changes."""
        notes = {}
        for real, staged in self._files.items():
            if staged.shown is None or staged.old_text is None or not staged.changed:
                continue
            if staged.commands == 1 and staged.text is not None:
                continue  # the command itself has checked and noted it
            self._last_used = real
            shown, now = staged.shown, staged.old_text.text
            if staged.text is None or staged.by_line_number:
                raise conflicts.changed_error(staged.path, shown, now)
            note = conflicts.check_change(staged.path, shown, now, staged.text.text)
            notes[staged.path] = note
        return notes

    def remember_shown(self) -> None:
        """Record that an error showed the current content of the file used last."""
        staged = self._files[self._last_used] if self._last_used is not None else None
        if staged is not None and staged.old is not None:
            self.state.last_read.remember(self.real_path(staged.path), staged.old)

    def plan(self, histories: Sequence[FileHistory], command: str = "") -> list[PlannedChange]:
        """Plan the edit of each changed file in its locked history; write nothing yet."""
        by_path = {history.path: history for history in histories}
        changed = [(real, staged) for real, staged in self._files.items() if staged.changed]
        together = tuple(str(real) for real, _ in changed) if len(changed) > 1 else ()
        name = os.urandom(16).hex() if together else ""
        changes = []
        for real, staged in changed:
            history, old, new = by_path[real], staged.old, staged.new
            history.sync(old)
            row = history.plan(
                command or staged.command,
                old,
                new,
                several_places=staged.commands != 1,
                mode=staged.mode,
                together=name,
                files=together,
            )
            changes.append(PlannedChange(history, row, old, new, staged.fingerprint, staged.mode))
        return changes

    def remember(self) -> None:
        """Record that the planned contents are on disk."""
        for real, staged in self._files.items():
            if staged.new is None or staged.changed:
                self.state.last_read.remember(real, staged.new)
