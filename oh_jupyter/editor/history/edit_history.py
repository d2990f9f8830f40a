"""The edit history of a workspace on disk: one folder for each edited file, and a quota.

Disk usage is measured at the first write, and again after every sixteenth of the limit; the oldest
steps are dropped until a tenth of it is free.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock

from oh_jupyter.config import state_home
from oh_jupyter.edit_lock import InterruptedEdit, LockHolder, held, is_private
from oh_jupyter.editor.history.commit import recover
from oh_jupyter.editor.history.file_history import FileHistory
from oh_jupyter.editor.history.journal import EditJournal, IncompleteTransaction
from oh_jupyter.editor.history.step_log import remove_other_logs
from oh_jupyter.editor.history.steps import Blobs, Digests, access
from oh_jupyter.editor.history.timeline import Timeline, TimelineFiles
from oh_jupyter.errors import EditorError
from oh_jupyter.locks import file_lock

MAX_STEPS = 5000
MAX_HISTORY_BYTES = 256 * 1024 * 1024

_MEASURED_FRACTION = 1 / 16
_FREED_FRACTION = 0.1


class _HistoryQuota:
    def __init__(self, folder: Path, max_bytes: int, files: TimelineFiles) -> None:
        self._folder = folder
        self._max_bytes = max_bytes
        self._files = files
        self._unmeasured = max_bytes  # earlier writes of other processes are unknown
        self._lock = Lock()

    def record_write(self, size: int) -> None:
        """Count written bytes, and enforce the limit; call it without holding a file's lock."""
        with self._lock:
            self._unmeasured += size
            if size == 0 or self._unmeasured < self._max_bytes * _MEASURED_FRACTION:
                return
            self._unmeasured = 0
        with suppress(OSError):  # the edit itself is done; the next one tries again
            self._shrink()

    def _shrink(self) -> None:
        sizes = {folder: _size_of(folder) for folder in _folders(self._folder)}
        excess = sum(sizes.values()) - self._max_bytes
        if excess <= 0:
            return
        excess += int(self._max_bytes * _FREED_FRACTION)
        timelines = {}
        for folder in sizes:
            with suppress(OSError):  # currently unreadable: others make room
                timelines[folder] = self._read(folder)
        for folder, count in _oldest(timelines, excess).items():
            with suppress(OSError), file_lock(folder / "lock", timeout_seconds=0):
                self._forget(folder, count)

    def _read(self, folder: Path) -> Timeline:
        try:
            return self._files.read(folder / "index.json") or Timeline()
        except ValueError:
            return Timeline()

    def _forget(self, folder: Path, count: int) -> None:
        """Drop the first steps of a locked file."""
        if (folder / "intent.json").exists():
            return
        index, timeline = folder / "index.json", self._read(folder)
        blobs = Blobs(folder / "blobs")
        if timeline.steps[count:]:
            path = Path(json.loads(index.read_bytes())["path"])
            shortened = replace(_without_first(timeline, count, blobs), log=None)
            timeline, _ = self._files.write(index, shortened, path)
            blobs.keep_only(timeline.references)
            remove_other_logs(folder, timeline.log)
            return
        index.unlink(missing_ok=True)
        blobs.keep_only(())
        remove_other_logs(folder, None)
        with suppress(OSError):  # some systems cannot remove an open file
            os.rmdir(folder / "blobs")
            os.unlink(folder / "lock")
            os.rmdir(folder)


def _without_first(timeline: Timeline, count: int, blobs: Blobs) -> Timeline:
    """Drop the first steps of a timeline; store a new base if they included it."""
    shortened = timeline.without_first(count)
    if shortened.base is None:
        with suppress(LookupError):  # it is lost already
            content = timeline.content(blobs)
            if content is not None:
                return shortened.based_on(blobs.put_file(content, timeline.head))
    return shortened


def _folders(folder: Path) -> list[Path]:
    with os.scandir(folder) as entries:
        # The journal's folder belongs to no file: its name is not a digest.
        return [Path(entry) for entry in entries if len(entry.name) == 32 and entry.is_dir()]


def _size_of(folder: Path) -> int:
    total = 0
    for directory in (folder, folder / "blobs"):
        with suppress(FileNotFoundError), os.scandir(directory) as entries:
            total += sum(entry.stat().st_size for entry in entries if entry.is_file())
    return total


def _oldest(timelines: dict[Path, Timeline], excess: int) -> dict[Path, int]:
    """Return how many steps of each file to drop."""
    steps = sorted(
        (step.time, number, folder)
        for folder, timeline in timelines.items()
        for number, step in enumerate(timeline.steps, 1)
    )
    counts: dict[Path, int] = defaultdict(int)
    for _, number, folder in steps[:-1]:  # the very last edit can always be undone
        if excess <= 0:
            break
        timeline = timelines[folder]
        blobs = Blobs(folder / "blobs")
        needed = {ref for step in timeline.steps[number:] for ref in step.blobs}
        for step in timeline.steps[counts[folder] : number]:
            freed = set(step.blobs) - needed
            excess -= step.line_bytes + sum(map(blobs.size, freed))
            needed |= freed
        counts[folder] = max(counts[folder], number)
        if counts[folder] == len(timeline.steps) and timeline.base is not None:
            excess -= blobs.size(timeline.base.digest)
    return counts


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


def state_folder(workspace: Path) -> Path:
    """Return the default folder of a workspace's history, which need not exist."""
    name = hashlib.sha256(os.fsencode(os.path.realpath(workspace))).hexdigest()[:16]
    return state_home() / "history" / name


def default_folder(workspace: Path) -> Path:
    """Return a writable folder for a workspace's history."""
    folder = state_folder(workspace)
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError:
        return _temporary_folder(folder.name)
    return folder


def _temporary_folder(name: str) -> Path:
    """Return a folder in this user's temporary directory, the same for every process."""
    import tempfile

    user = os.geteuid() if hasattr(os, "geteuid") else 0
    folder = Path(tempfile.gettempdir(), f"oh_jupyter_history_{user}")
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    if not is_private(str(folder)):  # somebody else created it, and could write there
        import atexit
        import shutil

        folder = Path(tempfile.mkdtemp(prefix="oh_jupyter_history_"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder / name


class EditHistory:
    """The histories of the files of one workspace."""

    def __init__(
        self, folder: Path, max_steps: int = MAX_STEPS, max_bytes: int = MAX_HISTORY_BYTES
    ) -> None:
        """Use a folder, which is created by the first edit."""
        self._folder = folder
        self.max_steps = max_steps
        self._max_bytes = max_bytes
        self._digests = Digests()
        self._files = TimelineFiles()
        self._quota = _HistoryQuota(folder, max_bytes, self._files)
        self.journal = EditJournal(folder)

    def has(self, path: Path) -> bool:
        """Return whether a file was edited before."""
        folder = self._folder_of(os.path.realpath(path))
        return any((folder / name).exists() for name in ("index.json", "intent.json"))

    def _folder_of(self, real: str) -> Path:
        return self._folder / hashlib.sha256(os.fsencode(real)).hexdigest()[:32]

    @contextmanager
    def open(self, path: Path) -> Iterator[FileHistory]:
        """Open the history of one file, and lock the file."""
        with self.open_all([path]) as (file,):
            yield file

    @contextmanager
    def open_all(
        self, paths: Sequence[Path], *, repair: bool = True, are_real: bool = False
    ) -> Iterator[list[FileHistory]]:
        """Open the histories of several files, and lock the files.

        ``are_real`` says that the paths contain no symbolic links.
        """
        reals = [str(path) if are_real else os.path.realpath(path) for path in paths]
        finished: set[LockHolder] = set()
        while True:
            interrupted: IncompleteTransaction | InterruptedEdit
            with ExitStack() as stack:
                try:
                    self._lock_files(stack, reals, finished if repair else None)
                    histories = self._enter(stack, reals, repair)
                except (IncompleteTransaction, InterruptedEdit) as error:
                    interrupted = error
                else:
                    yield histories
                    break
            if isinstance(interrupted, InterruptedEdit):
                finish_for(interrupted.holder)
                finished.add(interrupted.holder)
            else:
                self._finish(interrupted.transaction)
        self._quota.record_write(sum(file.written + file.blobs.written for file in histories))

    def _lock_files(
        self, stack: ExitStack, reals: Sequence[str], finished: set[LockHolder] | None
    ) -> None:
        """Exclude the editors of all histories; None as a set ignores interrupted edits."""
        holders = [LockHolder(str(self._folder_of(real)), real) for real in reals]
        try:
            stack.enter_context(held(holders, lambda who: finished is None or who in finished))
        except OSError as error:
            raise EditorError(
                f"{', '.join(reals)} cannot be locked against other editors ({error}); "
                "nothing was changed."
            ) from error

    def _enter(self, stack: ExitStack, reals: Sequence[str], repair: bool) -> list[FileHistory]:
        # The same order everywhere, so that no two editors wait for each other.
        histories: dict[str, FileHistory] = {}
        limits = self.max_steps, self._max_bytes
        for real in sorted(set(reals)):
            folder = self._folder_of(real)
            try:
                stack.enter_context(file_lock(folder / "lock"))
                histories[real] = FileHistory(
                    folder, Path(real), *limits, self._digests, self._files, repair=repair
                )
            except OSError:
                with access(self._folder):
                    raise
        return [histories[real] for real in reals]

    def _finish(self, transaction: str) -> None:
        """Finish or revert an edit of several files whose process died."""
        record = self.journal.get(transaction)
        if record is None:
            self.journal.remove(transaction)  # it is unreadable
            return
        paths = [Path(file) for file, _ in record.files]
        with self.open_all(paths, repair=False) as histories:
            recover(self.journal, histories, transaction)

    def finish_all(self) -> None:
        """Finish or revert every edit of several files whose process died."""
        for transaction in self.journal.names():
            self._finish(transaction)

    def heads(self) -> dict[str, str | None]:
        """Return the SHA-256 of each file after its last step; None for a removed file."""
        with suppress(FileNotFoundError):
            heads = [self._files.head(folder / "index.json") for folder in _folders(self._folder)]
            return dict(filter(None, heads))
        return {}

    def entries(self, path: Path) -> list[HistoryEntry]:
        """List the steps of a file, oldest first."""
        with self.open(path) as file:
            steps, cursor = file.timeline.steps, file.timeline.cursor
        return [
            HistoryEntry(number, step.command, step.time, undone=number > cursor)
            for number, step in enumerate(steps, 1)
        ]


def finish_for(holder: LockHolder) -> None:
    """Finish an edit whose editor, with another history, died while it changed a file."""
    try:
        with EditHistory(Path(holder.folder).parent).open(Path(holder.path)):
            pass  # opening a history repairs it
    except EditorError as error:
        raise EditorError(
            f"An editor of another workspace died while it changed {holder.path}. {error}"
        ) from None
