"""The edit history on disk: one folder for each file that was edited."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from oh_jupyter.editor.blobs import Digests
from oh_jupyter.editor.file_history import FileHistory, Superseded
from oh_jupyter.editor.history_size import Budget
from oh_jupyter.editor.journal import Journal, Unfinished
from oh_jupyter.editor.locks import locked
from oh_jupyter.editor.timeline_files import TimelineFiles
from oh_jupyter.errors import EditorError

__all__ = ["FileHistory", "History", "HistoryEntry", "Superseded", "default_folder", "state_folder"]

MAX_STEPS = 100
MAX_BYTES = 256 * 1024 * 1024


@dataclass(frozen=True)
class HistoryEntry:
    """One line of a file's history.

    Attributes:
        number: Position, counted from 1 for the oldest step that is kept.
        command: The editor command, or ``changed outside``.
        time: When, in seconds since the epoch.
        undone: Whether it is undone at present, and can be redone.
    """

    number: int
    command: str
    time: float
    undone: bool


def state_folder(workspace: Path) -> Path:
    """Name the folder of a workspace's history; it need not be there.

    Args:
        workspace: The root of the workspace.

    Returns:
        A folder below ``$XDG_STATE_HOME``.
    """
    name = hashlib.sha256(os.fsencode(os.path.realpath(workspace))).hexdigest()[:16]
    state = os.environ.get("XDG_STATE_HOME", "")
    home = Path(state) if os.path.isabs(state) else Path.home() / ".local" / "state"
    return home / "oh_jupyter" / "history" / name


def default_folder(workspace: Path) -> Path:
    """Choose where the history of a workspace is kept.

    Args:
        workspace: The root of the workspace.

    Returns:
        A folder below ``$XDG_STATE_HOME``, or below the temporary directory for a user
        whose state folder cannot be written.
    """
    folder = state_folder(workspace)
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError:
        import tempfile

        return Path(tempfile.mkdtemp(prefix="oh_jupyter_history_"))
    return folder


class History:
    """The histories of the files of one workspace.

    Attributes:
        journal: Which edits of several files are under way.
    """

    def __init__(
        self, folder: Path, max_steps: int = MAX_STEPS, max_bytes: int = MAX_BYTES
    ) -> None:
        """Use a folder; it is created when the first file is edited.

        Args:
            folder: Where the history is kept.
            max_steps: Undo steps for each file.
            max_bytes: Bytes that the steps of all files may take together.
        """
        self._folder = folder
        self._max_steps = max_steps
        self._max_bytes = max_bytes
        self._digests = Digests()
        self._files = TimelineFiles()
        self._budget = Budget(folder, max_bytes, self._files)
        self.journal = Journal(folder)

    def has(self, path: Path) -> bool:
        """Whether anything is known about a file.

        Args:
            path: The file, which need not exist.

        Returns:
            True if it was edited here before.
        """
        folder = self._folder_of(os.path.realpath(path))
        return any((folder / name).exists() for name in ("index.json", "intent.json"))

    def _folder_of(self, real: str) -> Path:
        return self._folder / hashlib.sha256(os.fsencode(real)).hexdigest()[:32]

    @contextmanager
    def open(self, path: Path) -> Iterator[FileHistory]:
        """Open the history of one file, and hold the file's lock meanwhile.

        Args:
            path: The file, which need not exist. A symbolic link stands for its target.

        Yields:
            The history of the file.

        Raises:
            EditorError: The folder of the history cannot be written.
        """
        with self.open_all([path]) as (file,):
            yield file

    @contextmanager
    def open_all(
        self, paths: Sequence[Path], *, repair: bool = True
    ) -> Iterator[list[FileHistory]]:
        """Open the histories of several files, and hold all their locks meanwhile.

        Args:
            paths: The files; no two of them may be the same.
            repair: Finish what a process left behind that died during a change.

        Yields:
            The histories, in the order of the paths.

        Raises:
            EditorError: The folder of the history cannot be written.
        """
        while True:
            left_behind = None
            with ExitStack() as stack:
                try:
                    histories = self._enter(stack, paths, repair)
                except Unfinished as unfinished:
                    left_behind = unfinished.transaction
                else:
                    yield histories
            if left_behind is None:
                self._budget.spend(sum(file.written + file.blobs.written for file in histories))
                return
            from oh_jupyter.editor.commit import finish

            finish(self, left_behind)

    def _enter(self, stack: ExitStack, paths: Sequence[Path], repair: bool) -> list[FileHistory]:
        # Everybody takes locks in the same order, so no two ever wait for each other.
        found: dict[str, FileHistory] = {}
        targets = [os.path.realpath(path) for path in paths]
        for real in sorted(targets):
            folder = self._folder_of(real)
            try:
                stack.enter_context(locked(folder / "lock"))
            except OSError as error:
                raise EditorError(
                    f"The edit history in {self._folder} cannot be written ({error}); nothing was "
                    "changed. Choose another folder with `history_dir`."
                ) from error
            limits = self._max_steps, self._max_bytes
            found[real] = FileHistory(
                folder, Path(real), *limits, self._digests, self._files, repair=repair
            )
        return [found[target] for target in targets]

    def entries(self, path: Path) -> list[HistoryEntry]:
        """List the steps of a file.

        Args:
            path: The file, which need not exist any more.

        Returns:
            The steps, the oldest first.
        """
        with self.open(path) as file:
            steps, cursor = file.timeline.steps, file.timeline.cursor
        return [
            HistoryEntry(number, step.command, step.time, undone=number > cursor)
            for number, step in enumerate(steps, 1)
        ]
