"""The edit history of a workspace in the ledger: locks of its files, recovery, and a quota.

Disk usage is measured at the first write, and again after every sixteenth of the limit; the oldest
edits are dropped until a tenth of it is free.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from oh_jupyter.edit_lock import InterruptedEdit, LockHolder, held
from oh_jupyter.editor.history.commit import recover
from oh_jupyter.editor.history.edit import Digests, Edit
from oh_jupyter.editor.history.edit_table import EditTable
from oh_jupyter.editor.history.file_history import FileHistory
from oh_jupyter.errors import EditorError
from oh_jupyter.state.contents import discard_orphans

MAX_EDITS = 5000
MAX_HISTORY_BYTES = 256 * 1024 * 1024

_MEASURED_FRACTION = 1 / 16
_FREED_FRACTION = 0.1


@dataclass(frozen=True)
class HistoryEntry:
    """One line of a file's history.

    Attributes:
        number: Position, counted from 1 for the oldest stored step.
        command: The editor command, or ``changed outside``.
        time: When, in seconds since the epoch.
        undone: Whether the step is currently undone, and can be redone.
    """

    number: int
    command: str
    time: float
    undone: bool


class _Incomplete(Exception):
    """A process died during an edit of files."""

    def __init__(self, together: str, paths: Sequence[Path]) -> None:
        super().__init__(together)
        self.together, self.paths = together, paths


class EditHistory:
    """The histories of the files of one workspace.

    Args:
        folder: The folder of the ledger; None for the user's.
        name: The history's name there.
        max_edits: Edits of a file that can be undone.
        max_bytes: Size of the whole history.
    """

    def __init__(
        self,
        folder: Path | None,
        name: str = "",
        max_edits: int = MAX_EDITS,
        max_bytes: int = MAX_HISTORY_BYTES,
    ) -> None:
        self.table = EditTable(folder, name)
        self._limits = max_edits, max_bytes
        self._digests = Digests()
        self._unmeasured = max_bytes  # earlier writes of other processes are unknown
        self._measuring = Lock()

    def has(self, path: Path) -> bool:
        """Return whether a file was edited before."""
        file, _ = self.table.file(Path(os.path.realpath(path)))
        return self.table.edit(file) is not None

    @contextmanager
    def open(self, path: Path) -> Iterator[FileHistory]:
        """Open the history of one file, and lock the file."""
        with self.open_all([path]) as (file,):
            yield file

    @contextmanager
    def open_all(
        self, paths: Sequence[Path], *, are_real: bool = False
    ) -> Iterator[list[FileHistory]]:
        """Open the histories of several files, and lock the files.

        ``are_real`` says that the paths contain no symbolic links.
        """
        reals = [path if are_real else Path(os.path.realpath(path)) for path in paths]
        finished: set[LockHolder] = set()
        while True:
            interrupted: _Incomplete | InterruptedEdit
            with ExitStack() as stack:
                try:
                    histories = self._lock_files(stack, reals, finished)
                    self._check_complete(histories)
                except (_Incomplete, InterruptedEdit) as error:
                    interrupted = error
                else:
                    yield [histories[real] for real in reals]
                    break
            if isinstance(interrupted, InterruptedEdit):
                finish_for(interrupted.holder)
                finished.add(interrupted.holder)
            else:
                self._finish(interrupted)
        self._record_write(sum(file.written for file in histories.values()))

    def _lock_files(
        self,
        stack: ExitStack,
        reals: Sequence[Path],
        finished: set[LockHolder] | None,
        timeout_seconds: float | None = None,
    ) -> dict[Path, FileHistory]:
        """Exclude the editors of all histories; None as a set ignores interrupted edits."""
        histories: dict[Path, FileHistory] = {}
        holders = [
            LockHolder(str(self.table.folder), self.table.name, str(real))
            for real in dict.fromkeys(reals)
        ]
        try:
            stack.enter_context(
                held(
                    holders,
                    is_known=lambda who: finished is None or who in finished,
                    is_unfinished=lambda path: (
                        Path(path) in histories and histories[Path(path)].is_unfinished
                    ),
                    timeout_seconds=timeout_seconds,
                )
            )
        except OSError as error:
            if isinstance(error, TimeoutError) and timeout_seconds is not None:
                raise
            raise EditorError(
                f"{', '.join(map(str, reals))} cannot be locked against other editors ({error}); "
                "nothing was changed."
            ) from error
        for real in dict.fromkeys(reals):
            histories[real] = FileHistory(self.table, real, *self._limits, self._digests)
        return histories

    def _check_complete(self, histories: Mapping[Path, FileHistory]) -> None:
        for path, _, edit in self.table.planned():
            if path in histories:
                histories[path].is_unfinished = True
                raise _Incomplete(edit.together, self._paths(edit, path))

    def _paths(self, edit: Edit, path: Path) -> list[Path]:
        """Return the files that a planned edit changes."""
        if not edit.together:
            return [path]
        return [path for path, _, _ in self.table.planned(edit.together)]

    def _finish(self, incomplete: _Incomplete, timeout_seconds: float | None = None) -> None:
        """Finish or revert an edit whose process died."""
        with ExitStack() as stack:
            histories = self._lock_files(stack, incomplete.paths, None, timeout_seconds)
            planned = [
                (histories[path], edit)
                for path, _, edit in self.table.planned()
                if path in histories and edit.together == incomplete.together
            ]
            for history, _ in planned:
                history.is_unfinished = True
            if planned:  # otherwise its process was alive, or another editor has finished it
                recover(self.table, planned)
            for history, _ in planned:
                history.is_unfinished = False

    def finish_all(self) -> None:
        """Finish or revert every edit whose process died."""
        for path, _, edit in self.table.planned():
            with suppress(TimeoutError):  # its process is alive
                self._finish(_Incomplete(edit.together, self._paths(edit, path)), 0)

    def heads(self) -> dict[str, str | None]:
        """Return the SHA-256 of each file after its last change; None for a removed file."""
        return self.table.heads()

    def entries(self, path: Path) -> list[HistoryEntry]:
        """List the steps of a file, oldest first."""
        with self.open(path) as file:
            edits = file.entries()
        return [
            HistoryEntry(number, edit.command, edit.time, undone=edit.state == "undone")
            for number, edit in enumerate(edits, 1)
        ]

    def _record_write(self, size: int) -> None:
        """Count written bytes, and enforce the limit; call it without holding a file's lock."""
        max_bytes = self._limits[1]
        with self._measuring:
            self._unmeasured += size
            if size == 0 or self._unmeasured < max_bytes * _MEASURED_FRACTION:
                return
            self._unmeasured = 0
        with suppress(OSError):  # the edit itself is done; the next one tries again
            if self.table.size() > max_bytes:
                self._shrink(int(max_bytes * (1 - _FREED_FRACTION)))
                discard_orphans(self.table.ledger)

    def _shrink(self, max_bytes: int) -> None:
        """Forget the oldest edits of all files, until the others take so many bytes."""
        paths = self.table.paths()
        numbers = self.table.numbers()[:-1]  # the very last edit can always be undone
        count = max(1, int(len(numbers) * _FREED_FRACTION))
        while numbers and self.table.size() > max_bytes:
            oldest, numbers = dict(numbers[:count]), numbers[count:]
            for file, number in oldest.items():
                # One that is being edited is left alone.
                with suppress(TimeoutError), ExitStack() as stack:
                    histories = self._lock_files(stack, [paths[file]], None, 0)
                    histories[paths[file]].forget_until(number)


def finish_for(holder: LockHolder) -> None:
    """Finish an edit whose editor, with another history, died while it changed a file."""
    history = EditHistory(Path(holder.folder), holder.history)
    try:
        with history.open(Path(holder.path)):
            pass  # opening a history repairs it
    except EditorError as error:
        raise EditorError(
            f"An editor of another workspace died while it changed {holder.path}. {error}"
        ) from None
