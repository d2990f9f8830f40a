"""Checkpoints of a workspace: starts and ends of agents' turns, and their undo."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import stat
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

from oh_jupyter.checkpoints.apply import apply
from oh_jupyter.checkpoints.disk import State, look
from oh_jupyter.checkpoints.git import Git, GitError, read_blobs
from oh_jupyter.checkpoints.journal import Checkpoint, CheckpointJournal, Kind, standing_turns
from oh_jupyter.checkpoints.rewind import (
    RewindPlan,
    Turn,
    plan_exact,
    plan_turns,
    turn_changes,
)
from oh_jupyter.checkpoints.snapshot import (
    Change,
    Limits,
    Snapshot,
    changes,
    forget_details,
    is_same,
    load,
    take,
    with_states,
)
from oh_jupyter.checkpoints.work import Owner, Work, evidence, forget, is_alive
from oh_jupyter.config import state_home
from oh_jupyter.errors import CheckpointError
from oh_jupyter.locks import file_lock, thread_lock
from oh_jupyter.moves import moved_to, moves

LOCK_SECONDS = 60.0
MAX_CHECKPOINTS = 100
MAX_FILE_NAMES = 100
"""Maximum names of changed files stored with a turn."""


class Checkpoints:
    """Checkpoints of one workspace, shared by all of the user's processes in it.

    Files are stored in a git repository outside the workspace, except those that ``.gitignore``
    excludes, ``node_modules``, ``.venv``, and files above the limits. A checkpoint changes neither
    the workspace nor a git repository in it.
    """

    def __init__(
        self,
        workspace: str | os.PathLike[str],
        directory: str | os.PathLike[str] | None = None,
        *,
        limits: Limits | None = None,
        own_folders: Collection[str] = (),
    ) -> None:
        """Name the workspace; nothing is read or written yet.

        Args:
            workspace: Existing directory.
            directory: Where to store the files; by default a directory for this workspace below
                ``$XDG_STATE_HOME/oh_jupyter/checkpoints``, readable by its owner only.
            limits: Maximum sizes.
            own_folders: Folders of the caller's own state, which is not part of the workspace.
        """
        self.workspace = Path(os.path.realpath(workspace))
        self.directory = Path(directory) if directory else default_directory(self.workspace)
        self.limits = limits or Limits()
        self._own_folders = tuple(own_folders)
        self._journal = CheckpointJournal(self.directory / "checkpoints.jsonl")
        self._owner: Owner | None = None

    def close(self) -> None:
        """Release the lock; the next call closes a turn of this object that was not ended.

        That turn keeps what its notes prove to be the agent's, and nothing that changed later.
        """
        if self._owner is not None:
            self._owner.close()
            self._owner = None

    def begin(
        self,
        label: str,
        *,
        who: str = "agent",
        kind: Kind = "turn",
        extra: dict[str, Any] | None = None,
    ) -> Checkpoint:
        """Save the current files as the start of a turn, or as a mark.

        Args:
            label: The label; its first line is stored, up to 200 characters.
            who: Who is going to act.
            kind: ``turn``, ended by ``end``, or ``mark``.
            extra: JSON-ready values to store with it.

        Returns:
            The checkpoint.

        Raises:
            CheckpointError: git is missing, the workspace is too large, or the disk is full.
        """
        with self._locked() as git:
            return self._begin(git, label, who, kind, extra or {})

    def note(self, work: Work) -> None:
        """Record an agent's work so far, in case this process dies.

        Changes after the last note are then not the turn's.
        """
        if self._owner is not None:
            self._owner.note(work)

    def resume(self, id: int) -> Checkpoint:
        """Reopen an ended turn whose agent continues.

        Raises:
            CheckpointError: No such turn.
        """
        entry = replace(self.get(id), is_open=True, owner=self._token())
        self._journal.append(entry)
        return entry

    def settle(self) -> None:
        """Close turns of dead processes, so that later changes do not count as theirs.

        Raises:
            CheckpointError: As for ``begin``.
        """
        if any(self._is_abandoned(entry) for entry in self.entries()):
            with self._locked():
                pass

    def end(
        self,
        id: int,
        is_of_turn: Callable[[Path, float], bool] | None = None,
        *,
        is_open: bool = False,
        extra: Mapping[str, Any] | None = None,
    ) -> Checkpoint:
        """Save the current files as the end of a turn; later changes are others'.

        Args:
            id: Number of the turn. A later call moves the end.
            is_of_turn: Returns whether a changed file is the turn's, given its absolute path and
                the time of its last change in seconds since the epoch; by default each is.
            is_open: Whether the turn continues, so that this is its end only if its process dies.
            extra: JSON-ready values to store with it, besides the names of the changed files.

        Raises:
            CheckpointError: No such turn, or as for ``begin``.
        """
        with self._locked() as git:
            return self._end(git, id, is_of_turn, is_open, extra or {})

    def is_at_end(self, turn: Checkpoint) -> bool:
        """Return whether the files are unchanged since the end of a turn.

        Args:
            turn: A turn that has an end.

        Raises:
            CheckpointError: As for ``begin``.
        """
        with self._locked() as git:
            return turn.end is not None and is_same(git, self._take(git), turn.end)

    def entries(self) -> list[Checkpoint]:
        """Return all stored checkpoints, oldest first.

        Raises:
            CheckpointError: They cannot be read.
        """
        try:
            return self._journal.read()
        except OSError as error:
            raise self._unusable(error) from error

    def get(self, id: int) -> Checkpoint:
        """Return a checkpoint by its number.

        Raises:
            CheckpointError: There is none with that number.
        """
        for entry in self.entries():
            if entry.id == id:
                return entry
        raise CheckpointError(
            f"No checkpoint {id} in {str(self.workspace)!r}; %oh_rewind lists the existing ones."
        )

    def standing_turns(self) -> list[Checkpoint]:
        """Return the turns that no rewind has undone, oldest first.

        Raises:
            CheckpointError: They cannot be read.
        """
        return standing_turns(self.entries())

    def last_turn(self) -> Checkpoint:
        """Return the last turn that no rewind has undone, or its first part.

        Raises:
            CheckpointError: There is none.
        """
        turns = self.standing_turns()
        if not turns:
            raise CheckpointError(
                f"No turn of an agent in {str(self.workspace)!r} is left to undo; %oh_rewind lists "
                "the checkpoints."
            )
        first = turns[-1].extra.get("part_of")
        return next((turn for turn in turns if turn.id == first), turns[-1])

    def preview(
        self,
        id: int,
        *,
        everything: bool = False,
        path: str | None = None,
        files: bool = True,
    ) -> RewindPlan:
        """Return what ``rewind`` would do now.

        Args:
            id: Number of the checkpoint.
            everything: See ``rewind``.
            path: See ``rewind``.
            files: See ``rewind``.

        Raises:
            CheckpointError: No such checkpoint, or as for ``begin``.
        """
        with self._locked() as git:
            return self._plan(git, id, everything, path)[1] if files else RewindPlan()

    def rewind(
        self,
        id: int,
        *,
        everything: bool = False,
        path: str | None = None,
        files: bool = True,
    ) -> RewindPlan:
        """Undo the turns since a checkpoint, the last one first.

        Changes by others between and after them stay: if they are in the same text as a turn's
        change, both are reconciled, and a file where that is impossible stays and is listed as
        kept. A rewind is itself a turn, so a rewind to it undoes it: it first saves whatever it
        overwrites or removes, of any size. If the process dies, the same call completes the rewind.

        Args:
            id: Number of the checkpoint.
            everything: Restore all files, including files that others changed since.
            path: Restore only this file, absolute or relative to the workspace.
            files: Whether to restore files; without them, this only adds a checkpoint, for what
                the caller restores.

        Returns:
            The changes.

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
            if files:
                now, plan = self._plan(git, id, everything, path)
            else:
                extra["variables"] = True
                now, plan = self._take(git), RewindPlan()
            # Its end is recorded before it starts, so a killed rewind has no changes of others.
            span = (now, with_states(git, now, plan.results()))
            self._begin(git, label, "user", "rewind", extra, span)
            return apply(git, plan)

    def rewound(self, since: float) -> dict[Path, int]:
        """Return the files that were restored alone, with the rewind that undoes that.

        A file that a later turn changed again is not included, because that change would be lost.

        Args:
            since: Start of the rewinds to consider, in seconds since the epoch.

        Raises:
            CheckpointError: As for ``begin``.
        """
        entries = {entry.id: entry for entry in self.entries() if entry.time >= since}
        rewinds: dict[Path, int] = {}
        if not any(entry.extra.get("path") for entry in entries.values()):
            return rewinds
        with self._locked() as git:
            now = self._take(git)
            for id, turn in self._turns(git, now, lambda entry: entry.id in entries):
                changed = turn_changes(git, turn)
                for name in changed:
                    rewinds.pop(self.workspace / name, None)
                path = entries[id].extra.get("path")
                target = entries.get(entries[id].extra.get("target", 0))
                if path in changed and (target is None or target.kind != "rewind"):
                    rewinds[self.workspace / str(path)] = id
        return rewinds

    def _relative(self, path: str) -> str:
        target = Path(os.path.abspath(self.workspace / path))
        target = Path(os.path.realpath(target.parent), target.name)  # do not follow a final link
        try:
            name = target.relative_to(self.workspace).as_posix()
        except ValueError:
            raise CheckpointError(
                f"{path!r} is not in {str(self.workspace)!r}, the workspace of the checkpoints."
            ) from None
        if name == "." or (target.is_dir() and not target.is_symlink()):
            raise CheckpointError(f"{path!r} is a directory; name a single file, or none.")
        return name

    def _plan(
        self, git: Git, id: int, everything: bool, path: str | None
    ) -> tuple[Snapshot, RewindPlan]:
        target = self.get(id)
        only = None if path is None else self._relative(path)
        now = self._take(git)

        def plan() -> tuple[RewindPlan, list[str]]:
            if everything:
                return plan_exact(git, now, target.begin, only)
            turns = self._turns(git, now, lambda entry: entry.id >= id)
            return plan_turns(git, now, [turn for _, turn in turns], only)

        result, missing = plan()
        forced: set[str] = set()
        while not forced.issuperset(missing):
            forced.update(missing)  # save what will be overwritten
            now = self._take(git, forced=forced)
            result, missing = plan()
        # Add the plan's ignored directories, which are not in the current snapshot.
        folders = {each.path for each in result.changes if each.before and not each.before.blob}
        statuses = {
            path: look(self.workspace, path) for path in {*result.remove_directories, *folders}
        }
        modes = {path: stat.S_IMODE(status.st_mode) for path, status in statuses.items() if status}
        ignored = modes.keys() - load(git, now).folders.keys()
        return with_states(
            git, now, {path: State("folder", modes[path]) for path in ignored}
        ), result

    def _turns(
        self, git: Git, now: Snapshot, matches: Callable[[Checkpoint], bool]
    ) -> list[tuple[int, Turn]]:
        """Return the matching turns and rewinds with their numbers, in order of time."""
        entries = list(filter(matches, self.entries()))
        following = [entry.begin for entry in entries[1:]] + [now]
        turns = []
        for entry, after in zip(entries, following, strict=True):
            if entry.kind == "mark":
                continue
            if entry.is_open and entry.owner != self._own_token:
                entry = self._closed(git, entry, now)
            end = after if entry.is_open or entry.end is None else entry.end
            others, is_rewind = frozenset(entry.others), entry.kind == "rewind"
            if entry.is_open:
                others |= self._moved(changes(git, entry.begin, end), entry.time)
            turn = Turn(entry.begin, end, others, entry.is_certain, is_rewind)
            turns.append((entry.id, turn))
        return turns

    def first_change(self, path: str, since: float) -> int | None:
        """Return the number of the first turn since a time that changed a file, or None.

        Args:
            path: The file, absolute or relative to the workspace.
            since: The time, in seconds since the epoch.

        Raises:
            CheckpointError: The file is not in the workspace, or as for ``begin``.
        """
        name = self._relative(path)
        with self._locked() as git:
            now = self._take(git)
            for id, turn in self._turns(git, now, lambda entry: entry.time >= since):
                if name in turn_changes(git, turn):
                    return id
        return None

    def originals(self, since: float) -> dict[Path, bytes | None]:
        """Return the files that turns changed, as they were before the first of these turns.

        Args:
            since: Start of the turns to consider, in seconds since the epoch.

        Returns:
            The old contents by absolute path, None for a file that did not exist; links and files
                that
            no checkpoint stores are omitted.

        Raises:
            CheckpointError: As for ``begin``.
        """
        originals: dict[str, State | None] = {}
        if not any(entry.time >= since for entry in self.entries()):
            return {}
        with self._locked() as git:
            now = self._take(git)
            for _, turn in self._turns(git, now, lambda entry: entry.time >= since):
                for path, (old, new) in turn_changes(git, turn).items():
                    if _is_file(old) or (old is None and _is_file(new)):
                        originals.setdefault(path, old)
            files = {path: old for path, old in originals.items() if old is None or _is_file(old)}
            blobs = read_blobs(git, {old.blob for old in files.values() if old is not None})
        return {self.workspace / path: old and blobs[old.blob] for path, old in files.items()}

    def _begin(
        self,
        git: Git,
        label: str,
        who: str,
        kind: Kind,
        extra: dict[str, Any],
        span: tuple[Snapshot, Snapshot] | None = None,
    ) -> Checkpoint:
        begin, end = span or (self._take(git), None)
        entries = self.entries()
        id = entries[-1].id + 1 if entries else 1
        line = (label.strip().splitlines() or [""])[0][:200]
        is_turn = kind == "turn"
        entry = Checkpoint(
            *(id, time.time(), kind, line, who, begin, end, extra),
            is_open=is_turn,
            owner=self._token() if is_turn else "",
        )
        self._protect(git, f"{id}/begin", begin)
        if end is not None:
            self._protect(git, f"{id}/end", end)
        self._write([*entries, entry], git)
        return entry

    def _end(
        self,
        git: Git,
        id: int,
        is_of_turn: Callable[[Path, float], bool] | None,
        is_open: bool,
        extra: Mapping[str, Any],
    ) -> Checkpoint:
        turn = self.get(id)
        end = self._take(git, known=turn.begin.tree)
        others = turn.others
        if is_of_turn is not None:
            end, others = self._attributed(
                git, turn, end, lambda path: self._is_of(is_of_turn, path, turn.time)
            )
        files = sorted(changes(git, turn.begin, end).keys() - set(others))[:MAX_FILE_NAMES]
        facts = {**turn.extra, **extra, "files": files}
        entry = replace(turn, end=end, others=others, is_open=is_open, extra=facts)
        self._protect(git, f"{id}/end", end)
        self._journal.append(entry)
        return entry

    def _is_of(self, is_of_turn: Callable[[Path, float], bool], path: str, since: float) -> bool:
        """Return whether a change is a turn's, which began at a time."""
        status = look(self.workspace, path)
        if status is None:  # a deletion has no known author
            return True
        target = self.workspace / path
        if status.st_mtime >= since and not is_of_turn(target, status.st_mtime):
            return False  # the turn changed attributes of what others wrote
        return is_of_turn(target, status.st_ctime)

    def _attributed(
        self, git: Git, turn: Checkpoint, now: Snapshot, is_of_turn: Callable[[str], bool]
    ) -> tuple[Snapshot, list[str]]:
        """Return the snapshot with only the turn's changes, and the paths that only others changed.

        Other paths keep their state at the turn's last end.
        """
        base = turn.end or turn.begin
        changed = changes(git, base, now)
        moved = self._moved(changed, turn.time)
        foreign = {
            path: old for path, (old, _) in changed.items() if path in moved or not is_of_turn(path)
        }
        earlier = changes(git, turn.begin, base).keys()
        others = {*turn.others, *(foreign.keys() - earlier)}
        return with_states(git, now, foreign), sorted(others)

    def _moved(self, changed: Mapping[str, Change], since: float) -> set[str]:
        """Return the old and new names of files that a person moved in Jupyter."""
        persons_moves = moves(since)
        targets = [move.target for move in persons_moves]
        moved = set()
        for path, (_, new) in changed.items():
            source = str(self.workspace / path)
            target = moved_to(source, persons_moves)
            if new is None and target != source:
                moved.add(path)
                targets.append(target)
        return moved | {path for path in changed if str(self.workspace / path) in targets}

    def _is_abandoned(self, entry: Checkpoint) -> bool:
        if not entry.is_open or entry.owner == self._own_token:
            return False
        return not is_alive(self.directory, entry.owner)

    def _closed(self, git: Git, entry: Checkpoint, now: Snapshot) -> Checkpoint:
        """Return another process' turn with an end: only proven changes count as its own."""
        proof = evidence(self.directory, entry.owner, entry.id)
        # Others may have moved in directories that did not exist, with the agent's files.
        folders = load(git, entry.end or entry.begin).folders

        def is_of_turn(path: str) -> bool:
            if proof is None:
                return False
            work, last_alive = proof
            status = look(self.workspace, path)
            if status is not None and not self._is_of(work.is_of_turn, path, entry.time):
                return False
            parents = [parent.as_posix() for parent in PurePosixPath(path).parents]
            if status is None:  # its directory has the time of the deletion
                status = next(filter(None, (look(self.workspace, name) for name in parents)), None)
                status = status or os.stat(self.workspace)
            new_folders = (look(self.workspace, name) for name in parents if name not in folders)
            moved = max((each.st_ctime for each in new_folders if each), default=0.0)
            if max(status.st_ctime, moved) > last_alive:
                return False
            return work.is_of_turn(self.workspace / path, status.st_ctime)

        end, others = self._attributed(git, entry, now, is_of_turn)
        return replace(entry, end=end, others=others, is_open=False, is_certain=False)

    def _close_abandoned(self, git: Git) -> None:
        """Close turns of dead processes."""
        abandoned = list(filter(self._is_abandoned, self.entries()))
        for entry in abandoned:
            closed = self._closed(git, entry, self._take(git, known=entry.begin.tree))
            assert closed.end is not None
            self._protect(git, f"{entry.id}/end", closed.end)
            self._journal.append(closed)
        for entry in abandoned:
            forget(self.directory, entry.owner)

    @property
    def _own_token(self) -> str:
        return "" if self._owner is None else self._owner.token

    def _token(self) -> str:
        if self._owner is None:
            self._owner = Owner(self.directory)
        return self._owner.token

    def _take(self, git: Git, *, known: str = "", forced: Collection[str] = ()) -> Snapshot:
        """Save the current files, and rebuild a damaged index or repository."""
        try:
            return take(git, self.limits, known=known, forced=forced)
        except GitError:
            entries = self.entries()
            trees = [(entry.end or entry.begin).tree for entry in entries[-1:]]
        error: GitError | None = None
        for tree in [*trees, ""]:
            git.index.unlink(missing_ok=True)
            try:
                if tree:  # known files stay known even if ignored
                    git("read-tree", tree)
                return take(git, self.limits, known=known, forced=forced)
            except GitError as retry_error:
                error = retry_error
        raise CheckpointError(
            f"{error}. If that persists, remove {str(self.directory)!r} to start again: that "
            "deletes the checkpoints and leaves the workspace alone."
        )

    def _write(self, entries: list[Checkpoint], git: Git) -> None:
        """Add the last entry; at twice the limit, drop the oldest ones with their files."""
        if len(entries) < 2 * MAX_CHECKPOINTS:
            self._journal.append(entries[-1])
            return
        for entry in entries[:-MAX_CHECKPOINTS]:
            for part in ("begin", "end"):
                git.run("update-ref", "-d", f"refs/checkpoints/{entry.id}/{part}")
        recent = entries[-MAX_CHECKPOINTS:]
        self._journal.replace(recent)
        ends = [entry.end for entry in recent if entry.end is not None]
        forget_details(git, [*(entry.begin for entry in recent), *ends])
        git.run("gc", "--auto", "--quiet")

    def _protect(self, git: Git, name: str, snapshot: Snapshot) -> None:
        """Protect a tree from git's garbage collection."""
        git("update-ref", f"refs/checkpoints/{name}", snapshot.tree)

    @contextlib.contextmanager
    def _locked(self) -> Iterator[Git]:
        name = os.path.join(self.directory, "lock")
        try:
            self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            with thread_lock(name, LOCK_SECONDS), file_lock(name, LOCK_SECONDS):
                for stale in self.directory.glob("files.git/*.lock"):
                    stale.unlink()  # of a killed git: a living process would hold our lock
                git = Git(self.directory / "files.git", self.workspace, self._own_folders)
                self._close_abandoned(git)
                yield git
        except TimeoutError as error:
            raise CheckpointError(
                f"Another process is making a checkpoint of {str(self.workspace)!r} for over "
                f"{LOCK_SECONDS:g} s; try again when it is done."
            ) from error
        except OSError as error:
            raise self._unusable(error) from error

    def _unusable(self, error: OSError) -> CheckpointError:
        reason = error.strerror or str(error)
        path = Path(os.fsdecode(error.filename or self.directory))
        if not path.is_relative_to(self.directory):
            return CheckpointError(
                f"A checkpoint of {str(self.workspace)!r} failed at {str(path)!r}: {reason}."
            )
        advice = "Free space there" if error.errno in _FULL else "Make that folder writable"
        return CheckpointError(
            f"Checkpoints of {str(self.workspace)!r} cannot be stored in "
            f"{str(self.directory)!r}: {reason}. {advice}, or set XDG_STATE_HOME to another folder."
        )


_FULL = (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC))


def _is_file(state: State | None) -> bool:
    return state is not None and state.kind == "file"


def default_directory(workspace: Path) -> Path:
    """Return the default directory for a workspace's checkpoints, which may not exist."""
    name = hashlib.sha256(os.fsencode(workspace)).hexdigest()[:16]
    return state_home() / "checkpoints" / name
