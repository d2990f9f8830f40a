"""The edit history on disk: one folder for each file that was edited.

A change is written ahead. Its timeline is stored as an *intent* before the file is
replaced, and renamed to be the index afterwards, so that whoever comes after a crash
can tell from the file whether the change was made. Only the file itself is flushed to
the disk: a power failure may cost the last undo steps, never the file.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from oh_jupyter.editor import atomic
from oh_jupyter.editor.blobs import Blobs, Digests, digest_of
from oh_jupyter.editor.delta import common_ends
from oh_jupyter.editor.locks import locked
from oh_jupyter.editor.timeline import Step, Timeline
from oh_jupyter.errors import EditorError

__all__ = ["FileHistory", "History", "HistoryEntry", "default_folder"]

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


def default_folder(workspace: Path) -> Path:
    """Choose where the history of a workspace is kept.

    Args:
        workspace: The root of the workspace.

    Returns:
        A folder below ``$XDG_STATE_HOME``, or below the temporary directory for a user
        whose state folder cannot be written.
    """
    name = hashlib.sha256(os.fsencode(os.path.realpath(workspace))).hexdigest()[:16]
    state = os.environ.get("XDG_STATE_HOME", "")
    home = Path(state) if os.path.isabs(state) else Path.home() / ".local" / "state"
    folder = home / "oh_jupyter" / "history" / name
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError:
        import tempfile

        return Path(tempfile.mkdtemp(prefix="oh_jupyter_history_"))
    return folder


class History:
    """The histories of the files of one workspace."""

    def __init__(
        self, folder: Path, max_steps: int = MAX_STEPS, max_bytes: int = MAX_BYTES
    ) -> None:
        """Use a folder; it is created when the first file is edited.

        Args:
            folder: Where the history is kept.
            max_steps: Undo steps for each file.
            max_bytes: Bytes that the steps of one file may take.
        """
        self._folder = folder
        self._max_steps = max_steps
        self._max_bytes = max_bytes
        self._digests = Digests()

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
        real = os.path.realpath(path)
        folder = self._folder_of(real)
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            lock = locked(folder / "lock")
            lock.__enter__()
        except OSError as error:
            raise EditorError(
                f"The edit history in {self._folder} cannot be written ({error}); nothing was "
                "changed. Choose another folder with `history_dir`."
            ) from error
        try:
            yield FileHistory(folder, Path(real), self._max_steps, self._max_bytes, self._digests)
        finally:
            lock.__exit__(None, None, None)

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


class FileHistory:
    """The history of one file, while its lock is held.

    Attributes:
        path: The file itself; no symbolic link.
        timeline: What happened to it.
        blobs: The contents that the timeline refers to.
    """

    def __init__(
        self, folder: Path, path: Path, max_steps: int, max_bytes: int, digests: Digests
    ) -> None:
        """Load the history.

        Args:
            folder: Where it is kept.
            path: The file.
            max_steps: Undo steps to keep.
            max_bytes: Bytes that they may take.
            digests: Where digests come from.
        """
        self._digests = digests
        self.path = path
        self.blobs = Blobs(folder / "blobs")
        self._index = folder / "index.json"
        self._intent = folder / "intent.json"
        self._tag = folder.name[:12]
        self._limits = max_steps, max_bytes
        self.timeline = self._load(self._index) or Timeline()
        self._recover()

    def notice(self, current: bytes | None) -> None:
        """Take in what happened to the file since the editor last wrote it.

        Args:
            current: The file as it is now; None if it is not there.
        """
        timeline = self.timeline.notice(current, self._digests.of(current), self.blobs, time.time())
        if timeline is not self.timeline:
            stored = bool(timeline.steps)
            if stored and current is not None and timeline.head is not None:
                self.blobs.put_file(current, timeline.head)
            self._store(timeline, self._index if stored else None)

    def change(
        self,
        command: str,
        old: bytes | None,
        new: bytes,
        stamp: atomic.Stamp | None,
        *,
        mode: int | None = None,
    ) -> None:
        """Write the file, as one step that can be undone.

        Args:
            command: The editor command.
            old: The file as it is now; None if it is not there.
            new: What it has to become.
            stamp: The stamp that belongs to ``old``.
            mode: Permissions of a new file; by default those of the umask.

        Raises:
            OSError: The file or the history could not be written; nothing was changed.
            Superseded: Somebody else wrote the file in this moment; nothing was changed.
        """
        if new == old:
            return  # a step that changes nothing would be an undo that does nothing
        step = Step.between(old, new, self.blobs, command=command, time=time.time())
        timeline = self.timeline.record(step, self._digests.of(new)).prune(
            self.blobs, *self._limits
        )
        self.move_to(timeline, new, stamp, mode=mode)

    def move_to(
        self,
        timeline: Timeline,
        content: bytes | None,
        stamp: atomic.Stamp | None,
        *,
        mode: int | None = None,
    ) -> None:
        """Write or remove the file, and make a timeline the valid one.

        Args:
            timeline: The timeline after the change.
            content: The file after it; None to remove it.
            stamp: The stamp of the file as it is now, None if it is not there.
            mode: Permissions of a new file; by default those of the umask.

        Raises:
            OSError: The file or the history could not be written; nothing was changed.
            Superseded: Somebody else wrote the file in this moment; nothing was changed.
        """
        before = self.timeline
        try:
            if content is not None:
                self.blobs.put_file(content, timeline.head)
            self._store(timeline, self._intent)
            if atomic.stamp_of(self.path) != stamp:
                raise Superseded
            if content is None:
                os.unlink(self.path)
            else:
                atomic.replace(self.path, content, mode=mode, tag=self._tag)
        except BaseException:
            self.timeline = before
            with suppress(OSError):
                self._intent.unlink(missing_ok=True)
                self.blobs.keep_only(before.references)
            raise
        os.replace(self._intent, self._index)
        for reference in before.references - timeline.references:
            self.blobs.discard(reference)

    def _store(self, timeline: Timeline, target: Path | None) -> None:
        if target is not None:
            temporary = target.with_suffix(".tmp")
            document = {"version": 1, "path": str(self.path), **timeline.to_json()}
            temporary.write_text(json.dumps(document), encoding="utf-8")
            os.replace(temporary, target)
        self.timeline = timeline

    @staticmethod
    def _load(file: Path) -> Timeline | None:
        try:
            return Timeline.from_json(json.loads(file.read_bytes()))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError):
            # Damaged by a power failure. It is kept for whoever wants to look at it.
            with suppress(OSError):
                os.replace(file, file.with_suffix(".damaged"))
            return None

    def _recover(self) -> None:
        """Finish, or forget, what a process left behind that died during a change."""
        intended = self._load(self._intent)
        if intended is None:
            return
        with suppress(OSError):
            os.unlink(atomic.temporary_for(self.path, self._tag))
        stamp = atomic.stamp_of(self.path)
        current = atomic.read(self.path)[0] if stamp is not None else None
        if digest_of(current) != intended.head and self._is_torn(current, intended):
            content = self.blobs.get(intended.head or "")
            atomic.replace(self.path, content)
            current = content
        if digest_of(current) == intended.head:
            os.replace(self._intent, self._index)
            self.timeline = intended
        else:
            self._intent.unlink()
        self.blobs.keep_only(self.timeline.references)

    def _is_torn(self, current: bytes | None, intended: Timeline) -> bool:
        """Whether the file is partly the old and partly the new one.

        That can only be where it was written in place, because of its hard links.
        """
        try:
            new = self.blobs.get(intended.head) if intended.head else None
            old = intended.steps[intended.cursor - 1].undo(new, self.blobs)
        except (LookupError, ValueError):
            return False
        if current is None or old is None or new is None or current == old:
            return False
        written, _ = common_ends(current, new)
        return current[written:] == old[written:]


class Superseded(Exception):
    """Somebody else wrote the file between reading and writing it."""
