"""Checkpoints of a workspace: where turns of agents began and ended, and the way back."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from oh_jupyter.checkpoints.git import Git, read_blobs
from oh_jupyter.checkpoints.rewind import (
    RewindPlan,
    Turn,
    apply,
    plan_exact,
    plan_turns,
    turn_changes,
)
from oh_jupyter.checkpoints.snapshot import Entry, Limits, Snapshot, differences, take
from oh_jupyter.config import state_home
from oh_jupyter.errors import CheckpointError
from oh_jupyter.locks import file_lock, thread_lock

LOCK_SECONDS = 60.0
MAX_CHECKPOINTS = 100

Kind = Literal["turn", "mark", "rewind"]


@dataclass(frozen=True)
class Checkpoint:
    """A moment that one can go back to.

    Attributes:
        id: Number within the workspace, counted from 1.
        time: When, in seconds since the epoch.
        kind: ``turn`` of an agent, ``mark`` that a person set, or ``rewind``.
        label: What it is called: the prompt, or the first Action of a turn.
        who: Who acted in the turn, such as the name of an agent.
        begin: The files then.
        end: The files when the turn ended; None for a mark, and while a turn goes on.
        extra: What else was kept by whoever made it, such as the shell's directory.
        others: Paths, relative to the workspace, that somebody else changed during the turn.
    """

    id: int
    time: float
    kind: Kind
    label: str
    who: str
    begin: Snapshot
    end: Snapshot | None
    extra: dict[str, Any]
    others: Sequence[str] = ()


class Checkpoints:
    """Checkpoints of one workspace, shared by all processes of the user that work in it.

    Files are kept in a git repository outside the workspace: those that ``.gitignore`` excludes
    are not, nor are ``node_modules``, ``.venv`` and what is larger than the limits. Neither the
    workspace nor a git repository in it is touched by a checkpoint.
    """

    def __init__(
        self,
        workspace: str | os.PathLike[str],
        directory: str | os.PathLike[str] | None = None,
        *,
        limits: Limits | None = None,
    ) -> None:
        """Name the workspace; nothing is read or written yet.

        Args:
            workspace: Existing directory.
            directory: Where to keep the files; by default one for this workspace below
                ``$XDG_STATE_HOME/oh_jupyter/checkpoints``, readable by its owner only.
            limits: What is too large to be kept.
        """
        self.workspace = Path(os.path.realpath(workspace))
        self.directory = Path(directory) if directory else default_directory(self.workspace)
        self.limits = limits or Limits()

    def begin(
        self,
        label: str,
        *,
        who: str = "agent",
        kind: Kind = "turn",
        extra: dict[str, Any] | None = None,
    ) -> Checkpoint:
        """Keep the files as they are now, as the beginning of a turn or as a mark.

        Args:
            label: What the checkpoint is called; its first line is kept, of 200 characters.
            who: Who is going to act.
            kind: ``turn``, ended by ``end``, or ``mark``.
            extra: JSON-ready values to be kept with it.

        Returns:
            The checkpoint.

        Raises:
            CheckpointError: There is no git, the workspace is too large, or the disk is full.
        """
        with self._locked() as git:
            return self._begin(git, label, who, kind, extra or {})

    def end(self, id: int, is_of_turn: Callable[[Path, float], bool] | None = None) -> Checkpoint:
        """Keep the files as they are now, as the end of a turn; what comes later is others'.

        Args:
            id: Number of the turn. A later call moves the end.
            is_of_turn: Whether a changed file is the turn's, by its absolute path and the time of
                its last change in seconds since the epoch; by default each is.

        Raises:
            CheckpointError: No such turn, or as for ``begin``.
        """
        with self._locked() as git:
            return self._end(git, id, is_of_turn)

    def is_at_end(self, turn: Checkpoint) -> bool:
        """Tell whether the files are still as they were when a turn ended.

        Args:
            turn: A turn that has an end.

        Raises:
            CheckpointError: As for ``begin``.
        """
        with self._locked() as git:
            return take(git, self.limits) == turn.end

    def entries(self) -> list[Checkpoint]:
        """All that are kept, the oldest first.

        Raises:
            CheckpointError: They cannot be read.
        """
        try:
            text = self._journal.read_text("utf-8")
        except FileNotFoundError:
            return []
        except OSError as problem:
            raise self._unusable(problem) from problem
        found: dict[int, Checkpoint] = {}
        for line in text.splitlines():
            # The last line may be of a process that died.
            with contextlib.suppress(ValueError, KeyError, TypeError):
                entry = _read(json.loads(line))
                found[entry.id] = entry
        return list(found.values())

    def get(self, id: int) -> Checkpoint:
        """One checkpoint, by its number.

        Raises:
            CheckpointError: There is none of that number.
        """
        for entry in self.entries():
            if entry.id == id:
                return entry
        raise CheckpointError(
            f"No checkpoint {id} in {str(self.workspace)!r}; %oh_rewind lists those that are kept."
        )

    def last_turn(self) -> Checkpoint:
        """The last turn that no rewind has undone.

        Raises:
            CheckpointError: There is none.
        """
        entries = self.entries()
        position = len(entries) - 1
        while position >= 0 and entries[position].kind != "turn":
            if entries[position].kind == "rewind":
                # Files are since then as they were before its target, unless it was one file's.
                extra = entries[position].extra
                target = entries[position].id if extra.get("path") else extra["target"]
                position = sum(entry.id < target for entry in entries)
            position -= 1
        if position < 0:
            raise CheckpointError(
                f"No turn of an agent in {str(self.workspace)!r} is left to undo; %oh_rewind lists "
                "the checkpoints."
            )
        return entries[position]

    def preview(self, id: int, *, everything: bool = False, path: str | None = None) -> RewindPlan:
        """Tell what ``rewind`` would do now.

        Args:
            id: Number of the checkpoint.
            everything: See ``rewind``.
            path: See ``rewind``.

        Raises:
            CheckpointError: No such checkpoint, or as for ``begin``.
        """
        with self._locked() as git:
            return self._plan(git, take(git, self.limits), id, everything, path)

    def rewind(self, id: int, *, everything: bool = False, path: str | None = None) -> RewindPlan:
        """Undo what happened since a checkpoint.

        The turns since then are undone, the last one first. What others changed between and
        after them stays: beside a turn's change in one text both are reconciled, and a file where
        that is not possible stays as it is and is listed as kept. A rewind is a turn itself, so
        that rewinding to it undoes it. A process that dies meanwhile leaves a part undone; the
        same call does the rest.

        Args:
            id: Number of the checkpoint.
            everything: Bring all files back to that moment, whoever changed them since.
            path: The only file to bring back, absolute or relative to the workspace.

        Returns:
            What was done.

        Raises:
            CheckpointError: No such checkpoint, a file cannot be written, or as for ``begin``.
        """
        with self._locked() as git:
            target = self.get(id)
            label = f"back to {target.id}: {target.label}"
            extra: dict[str, Any] = {"target": target.id}
            if path is not None:
                extra["path"] = self._relative(path)
                label = f"{extra['path']} {label}"
            before = self._begin(git, label, "user", "rewind", extra)
            plan = self._plan(git, before.begin, id, everything, path)
            try:
                apply(git, plan)
            finally:
                self._end(git, before.id)
            return plan

    def rewound(self, since: float) -> dict[Path, int]:
        """Files that were brought back alone, with the number of the rewind that undoes that.

        What a later turn has changed again is not among them: its change would go, too.

        Args:
            since: The rewinds after this moment, in seconds since the epoch.

        Raises:
            CheckpointError: As for ``begin``.
        """
        entries = {entry.id: entry for entry in self.entries() if entry.time >= since}
        found: dict[Path, int] = {}
        if not any(entry.extra.get("path") for entry in entries.values()):
            return found
        with self._locked() as git:
            now = take(git, self.limits)
            for id, turn in self._turns(now, lambda entry: entry.id in entries):
                changed = turn_changes(git, turn)
                for name in changed:
                    found.pop(self.workspace / name, None)
                path = entries[id].extra.get("path")
                target = entries.get(entries[id].extra.get("target", 0))
                if path in changed and (target is None or target.kind != "rewind"):
                    found[self.workspace / str(path)] = id
        return found

    def _relative(self, path: str) -> str:
        place = Path(os.path.abspath(self.workspace / path))
        place = Path(os.path.realpath(place.parent), place.name)  # a link is a file of its own
        try:
            name = place.relative_to(self.workspace).as_posix()
        except ValueError:
            raise CheckpointError(
                f"{path!r} is not in {str(self.workspace)!r}, of which checkpoints are kept."
            ) from None
        if name == "." or (place.is_dir() and not place.is_symlink()):
            raise CheckpointError(f"{path!r} is a directory; name one file, or leave it out.")
        return name

    def _plan(
        self, git: Git, now: Snapshot, id: int, everything: bool, path: str | None
    ) -> RewindPlan:
        target = self.get(id)
        if everything:
            plan = plan_exact(git, now, target.begin)
        else:
            turns = self._turns(now, lambda entry: entry.id >= id)
            plan = plan_turns(git, now, [turn for _, turn in turns])
        return plan if path is None else plan.only(self._relative(path))

    def _turns(
        self, now: Snapshot, is_meant: Callable[[Checkpoint], bool]
    ) -> list[tuple[int, Turn]]:
        """The turns and rewinds that are meant with their numbers, in the order of time."""
        entries = list(filter(is_meant, self.entries()))
        following = [entry.begin for entry in entries[1:]] + [now]
        return [
            (entry.id, Turn(entry.begin, entry.end or after, frozenset(entry.others)))
            for entry, after in zip(entries, following, strict=True)
            if entry.kind != "mark"
        ]

    def first_change(self, path: str, since: float) -> int | None:
        """The number of the first turn after a moment that changed a file; None without one.

        Args:
            path: The file, absolute or relative to the workspace.
            since: The moment, in seconds since the epoch.

        Raises:
            CheckpointError: The file is not in the workspace, or as for ``begin``.
        """
        name = self._relative(path)
        with self._locked() as git:
            now = take(git, self.limits)
            for id, turn in self._turns(now, lambda entry: entry.time >= since):
                if name in turn_changes(git, turn):
                    return id
        return None

    def originals(self, since: float) -> dict[Path, bytes | None]:
        """Read what the files were that turns changed, before the first of these turns.

        Args:
            since: The turns that began after this moment, in seconds since the epoch.

        Returns:
            The old contents by absolute path, None for a file that was not there; links and what
            no checkpoint keeps are left out.

        Raises:
            CheckpointError: As for ``begin``.
        """
        found: dict[str, Entry | None] = {}
        if not any(entry.time >= since for entry in self.entries()):
            return {}
        with self._locked() as git:
            now = take(git, self.limits)
            for _, turn in self._turns(now, lambda entry: entry.time >= since):
                for path, (old, _) in turn_changes(git, turn).items():
                    found.setdefault(path, old)
            files = {path: old for path, old in found.items() if old is None or old.is_file}
            blobs = read_blobs(git, {old.blob for old in files.values() if old is not None})
        return {self.workspace / path: old and blobs[old.blob] for path, old in files.items()}

    def _begin(
        self, git: Git, label: str, who: str, kind: Kind, extra: dict[str, Any]
    ) -> Checkpoint:
        entries = self.entries()
        id = entries[-1].id + 1 if entries else 1
        line = (label.strip().splitlines() or [""])[0][:200]
        entry = Checkpoint(id, time.time(), kind, line, who, take(git, self.limits), None, extra)
        self._protect(git, f"{id}/begin", entry.begin)
        self._write([*entries, entry], git)
        return entry

    def _end(
        self, git: Git, id: int, is_of_turn: Callable[[Path, float], bool] | None = None
    ) -> Checkpoint:
        begun, end = self.get(id), take(git, self.limits)
        others = []
        if is_of_turn is not None:
            for path in differences(git, begun.begin.tree, end.tree):
                with contextlib.suppress(FileNotFoundError):  # it was deleted
                    place = self.workspace / path
                    if not is_of_turn(place, place.lstat().st_ctime):
                        others.append(path)
        entry = replace(begun, end=end, others=others)
        self._protect(git, f"{id}/end", end)
        self._append(entry)
        return entry

    def _write(self, entries: list[Checkpoint], git: Git) -> None:
        """Add the last entry; at twice the limit the old ones are forgotten, with their files."""
        if len(entries) < 2 * MAX_CHECKPOINTS:
            self._append(entries[-1])
            return
        for entry in entries[:-MAX_CHECKPOINTS]:
            for part in ("begin", "end"):
                git.run("update-ref", "-d", f"refs/checkpoints/{entry.id}/{part}")
        text = "".join(f"{json.dumps(asdict(entry))}\n" for entry in entries[-MAX_CHECKPOINTS:])
        fresh = self._journal.with_suffix(".new")
        fresh.write_text(text, "utf-8")
        fresh.replace(self._journal)
        git.run("gc", "--auto", "--quiet")

    def _append(self, entry: Checkpoint) -> None:
        with open(self._journal, "a", encoding="utf-8", opener=_open_private) as journal:
            # A line that a dying process began is ended first.
            journal.write(f"\n{json.dumps(asdict(entry))}\n")

    def _protect(self, git: Git, name: str, snapshot: Snapshot) -> None:
        """Keep git from collecting a tree."""
        git("update-ref", f"refs/checkpoints/{name}", snapshot.tree)

    @property
    def _journal(self) -> Path:
        return self.directory / "checkpoints.jsonl"

    @contextlib.contextmanager
    def _locked(self) -> Iterator[Git]:
        name = os.path.join(self.directory, "lock")
        try:
            self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            with thread_lock(name, LOCK_SECONDS), file_lock(name, LOCK_SECONDS):
                for stale in self.directory.glob("files.git/*.lock"):
                    stale.unlink()  # of a git that was killed: whoever is alive holds our lock
                yield Git(self.directory / "files.git", self.workspace)
        except TimeoutError as problem:
            raise CheckpointError(
                f"Another process is making a checkpoint of {str(self.workspace)!r} for over "
                f"{LOCK_SECONDS:g} s; try again when it is done."
            ) from problem
        except OSError as problem:
            raise self._unusable(problem) from problem

    def _unusable(self, problem: OSError) -> CheckpointError:
        return CheckpointError(
            f"Checkpoints of {str(self.workspace)!r} cannot be kept in {str(self.directory)!r}: "
            f"{problem.strerror or problem}. Free space there, or set XDG_STATE_HOME to another "
            "place."
        )


def default_directory(workspace: Path) -> Path:
    """Where the checkpoints of a workspace are kept, which need not exist."""
    name = hashlib.sha256(os.fsencode(workspace)).hexdigest()[:16]
    return state_home() / "checkpoints" / name


def _read(fields: dict[str, Any]) -> Checkpoint:
    end = fields["end"]
    return Checkpoint(
        **{
            **fields,
            "begin": Snapshot(**fields["begin"]),
            "end": None if end is None else Snapshot(**end),
        }
    )


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
