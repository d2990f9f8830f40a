"""Checkpoints of a workspace: agents' turns, and their undo."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

from oh_jupyter.checkpoints.apply import apply
from oh_jupyter.checkpoints.attribution import moved_files
from oh_jupyter.checkpoints.disk import State, look
from oh_jupyter.checkpoints.git import Git, read_blobs
from oh_jupyter.checkpoints.journal import Checkpoint
from oh_jupyter.checkpoints.record import MAX_CHECKPOINTS, CheckpointRecord
from oh_jupyter.checkpoints.rewind import (
    RewindPlan,
    Turn,
    plan_exact,
    plan_turns,
    turn_changes,
)
from oh_jupyter.checkpoints.snapshot import Change, Snapshot, changes, load, with_states
from oh_jupyter.errors import CheckpointError

MAX_KNOWN_CHANGES = 1000
"""Changes of a turn above which they are compared again each time."""


class Checkpoints(CheckpointRecord):
    """Checkpoints of one workspace, and the undo of the turns between them."""

    @cached_property
    def _known_changes(self) -> dict[int, tuple[Turn, dict[str, Change]]]:
        """Turns by their numbers, and what they changed."""
        return {}

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

    def rewind_contents(
        self, id: int, *, everything: bool = False, path: str | None = None
    ) -> dict[Path, tuple[bytes | None, bytes | None]]:
        """Return the contents that ``rewind`` would change, now and after it.

        Args:
            id: Number of the checkpoint.
            everything: See ``rewind``.
            path: Return only those of this file, absolute or relative to the workspace.

        Returns:
            Both contents by absolute path, None where there is no file; of a link its target.

        Raises:
            CheckpointError: No such checkpoint, or as for ``begin``.
        """
        only = None if path is None else self._relative(path)
        with self._locked() as git:
            changes = self._plan(git, id, everything, None)[1].changes
            ids = {
                each.path: (_blob(each.before), _blob(each.after))
                for each in changes
                if only in (None, each.path)
            }
            blobs = read_blobs(git, {id for pair in ids.values() for id in pair if id})
        return {
            self.workspace / name: (blobs.get(before), blobs.get(after))
            for name, (before, after) in ids.items()
            if before or after  # else a directory
        }

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
                changed = self._changes(git, id, turn)
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
                entry = self._ended(git, entry, now)
            end = after if entry.is_open or entry.end is None else entry.end
            others, is_rewind = frozenset(entry.others), entry.kind == "rewind"
            if entry.is_open:
                others |= moved_files(self.workspace, changes(git, entry.begin, end), entry.time)
            turn = Turn(entry.begin, end, others, entry.is_certain, is_rewind)
            turns.append((entry.id, turn))
        return turns

    def _changes(self, git: Git, id: int, turn: Turn) -> dict[str, Change]:
        """Return what a turn changed; known from an earlier call unless the turn went on."""
        known = self._known_changes.get(id)
        if known is not None and known[0] == turn:
            return known[1]
        changed = turn_changes(git, turn)
        if len(self._known_changes) >= 2 * MAX_CHECKPOINTS:  # most are forgotten by now
            self._known_changes.clear()
        if len(changed) <= MAX_KNOWN_CHANGES:
            self._known_changes[id] = turn, changed
        return changed

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
                if name in self._changes(git, id, turn):
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
            for id, turn in self._turns(git, now, lambda entry: entry.time >= since):
                for path, (old, new) in self._changes(git, id, turn).items():
                    if _is_file(old) or (old is None and _is_file(new)):
                        originals.setdefault(path, old)
            files = {path: old for path, old in originals.items() if old is None or _is_file(old)}
            blobs = read_blobs(git, {old.blob for old in files.values() if old is not None})
        return {self.workspace / path: old and blobs[old.blob] for path, old in files.items()}


def _blob(state: State | None) -> str:
    return "" if state is None else state.blob


def _is_file(state: State | None) -> bool:
    return state is not None and state.kind == "file"
