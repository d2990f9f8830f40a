"""Checkpoints of a workspace: agents' turns, and their undo."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from oh_jupyter.checkpoints.accounts import one_account
from oh_jupyter.checkpoints.apply import apply
from oh_jupyter.checkpoints.attribution import corrected
from oh_jupyter.checkpoints.disk import State, look
from oh_jupyter.checkpoints.git import Git, read_blobs
from oh_jupyter.checkpoints.journal import Checkpoint
from oh_jupyter.checkpoints.record import CheckpointRecord
from oh_jupyter.checkpoints.rewind import RewindPlan, plan_exact, plan_undo
from oh_jupyter.checkpoints.snapshot import Snapshot, states, with_states
from oh_jupyter.checkpoints.steps import Step, Write
from oh_jupyter.errors import CheckpointError
from oh_jupyter.writes import persons_writes


class Checkpoints(CheckpointRecord):
    """Checkpoints of one workspace, and the undo of what agents changed since one."""

    def preview(
        self,
        id: int,
        *,
        everything: bool = False,
        path: str | None = None,
        files: bool = True,
        turns: Collection[int] | None = None,
    ) -> RewindPlan:
        """Return what ``rewind`` would do now.

        Args:
            id: Number of the checkpoint.
            everything: See ``rewind``.
            path: See ``rewind``.
            files: See ``rewind``.
            turns: See ``rewind``.

        Raises:
            CheckpointError: No such checkpoint, or as for ``begin``.
        """
        with self._locked() as git:
            return self._plan(git, id, everything, path, turns)[1] if files else RewindPlan()

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
            changes = self._plan(git, id, everything, None, None)[1].changes
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
        turns: Collection[int] | None = None,
        owner: str = "",
    ) -> RewindPlan:
        """Undo what agents changed since a checkpoint, the last change first.

        Changes by others between and after them stay: if they are in the same text as an agent's
        change, both are reconciled, and a file where that is impossible stays and is listed as
        kept. A rewind is itself in the list, so a rewind to it undoes it: it first saves whatever
        it overwrites or removes, of any size. If the process dies, the same call completes the
        rewind.

        Args:
            id: Number of the checkpoint.
            everything: Restore all files, including files that others changed since.
            path: Restore only this file, absolute or relative to the workspace, also where it is
                not certain that an agent changed it.
            files: Whether to restore files; without them, this only adds a checkpoint, for what
                the caller restores.
            turns: Undo only the changes of these turns and rewinds; all by default.
            owner: Owner of the turns whose agent rewinds, stored with the rewind.

        Returns:
            The changes.

        Raises:
            CheckpointError: No such checkpoint, a file cannot be written, or as for ``begin``.
        """
        with self._locked() as git:
            target = self.get(id)
            label = f"back to {target.id}: {target.label}"
            extra: dict[str, Any] = {"target": target.id} | ({"by": owner} if owner else {})
            if path is not None:
                extra["path"] = self._relative(path)
                label = f"{extra['path']} {label}"
            if not files:
                extra["variables"] = True
                self._begin(git, label, "user", "rewind", extra)
                return RewindPlan()
            now, plan = self._plan(git, id, everything, path, turns)
            folder_modes = {name: state.mode for name, state in states(git, now).items()}
            # Its writes are recorded before it starts, and confirmed one by one, so a killed rewind
            # has none of others'.
            entry = self._add(
                *(git, now, label, "user", "rewind", extra),
                lambda id: plan.writes(id, folder_modes),
            )
            numbers = {write.path: write.id for write in self._steps.writes(turns=[entry.id])}
            try:
                done = apply(git, plan, lambda path: self._steps.confirm(numbers[path]))
            finally:
                if self._tracker.has_begun:
                    self._tracker.look(git, self._taking(git))
            with self._rows.transaction():
                self._steps.remove(numbers[path] for path in done.kept if path in numbers)
                self._close(entry)
            return done

    def rewound(self, since: float) -> dict[Path, int]:
        """Return the files that were restored alone, with the rewind that undoes that.

        A file that a later turn changed again is not included, because that change would be lost.

        Args:
            since: Start of the rewinds to consider, in seconds since the epoch.

        Raises:
            CheckpointError: As for ``begin``.
        """
        entries = {entry.id: entry for entry in self._entries() if entry.time >= since}
        rewinds: dict[Path, int] = {}
        if not any(entry.extra.get("path") for entry in entries.values()):
            return rewinds
        for write in self._agents_writes(entries.values()):
            target = self.workspace / write.path
            rewinds.pop(target, None)
            if write.author == "rewind":
                entry = entries[write.turn]
                undone = entries.get(entry.extra.get("target", 0))
                is_undo = undone is None or undone.kind != "rewind"
                if entry.extra.get("path") == write.path and is_undo:
                    rewinds[target] = entry.id
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
        self,
        git: Git,
        id: int,
        everything: bool,
        path: str | None,
        turns: Collection[int] | None,
    ) -> tuple[Snapshot, RewindPlan]:
        target = self.get(id)
        only = None if path is None else self._relative(path)
        self._record_changes(git, self._taking(git))
        begin = self._journal.snapshot(target)
        writes = [] if everything else self._writes_since(git, target, begin, turns)
        now = self._take(git)

        def plan() -> tuple[RewindPlan, list[str]]:
            if everything:
                return plan_exact(git, now, begin, only)
            return plan_undo(git, now, begin, writes, only)

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
        ignored = modes.keys() - now.details.folders.keys()
        return with_states(
            git, now, {path: State("folder", modes[path]) for path in ignored}
        ), result

    def _accounted(self, after: int, steps: Mapping[int, Step]) -> list[Write]:
        """Return the writes after one, without those that others have recorded as well.

        A process may record what it has seen later than another one, even after a rewind of it.
        """
        later, own = self._steps.writes(after), self._own_token
        turns = {each.turn for each in later if each.author == "agent" and each.recorder != own}
        earlier = [each for each in self._steps.writes(turns=turns) if each.id <= after]
        writes = one_account([*earlier, *later], steps, own)
        return [each for each in writes if each.id > after]

    def _writes_since(
        self, git: Git, target: Checkpoint, begin: Snapshot, turns: Collection[int] | None
    ) -> list[Write]:
        """Return the writes since a checkpoint, in the order of time.

        The first change of a path by a step that was running at the checkpoint counts from there.
        """
        steps = {step.id: step for step in self._steps.steps()}
        writes = self._accounted(target.at.write, steps)
        writes = corrected(writes, steps, self.workspace, persons_writes(target.time))
        at_target: dict[str, State] | None = None
        seen: set[str] = set()
        for number, write in enumerate(writes):
            if 0 < write.step <= target.at.step and write.path not in seen:
                at_target = states(git, begin) if at_target is None else at_target
                writes[number] = write._replace(old=at_target.get(write.path, write.old))
                if write.path not in at_target and not begin.details.covering(write.path):
                    writes[number] = write._replace(old=None)
            seen.add(write.path)
        if turns is None and target.kind != "turn":
            return writes
        chosen = []
        for write in writes:
            # An earlier turn that still continues is not undone.
            if write.turn >= target.id if turns is None else write.turn in turns:
                chosen.append(write)
            elif write.author == "others":
                chosen.append(write._replace(turn=0))
        return chosen

    def _agents_writes(self, entries: Collection[Checkpoint]) -> list[Write]:
        """Return what agents and rewinds wrote in some turns, in the order of time."""
        if not entries:
            return []
        with self._mutex:
            if self._git is not None and self.is_at_work:
                self._record_changes(self._git, self._take_alone)
        first = min(entries, key=lambda entry: entry.id)
        steps = {step.id: step for step in self._steps.steps()}
        writes = self._steps.writes(first.at.write, turns=[entry.id for entry in entries])
        writes = one_account(writes, steps, self._own_token)
        writes = corrected(writes, steps, self.workspace, persons_writes(first.time))
        return [write for write in writes if write.author in ("agent", "rewind")]

    def first_change(self, path: str, since: float) -> int | None:
        """Return the number of the first turn since a time that changed a file, or None.

        Args:
            path: The file, absolute or relative to the workspace.
            since: The time, in seconds since the epoch.

        Raises:
            CheckpointError: The file is not in the workspace, or as for ``begin``.
        """
        name = self._relative(path)
        entries = [entry for entry in self._entries() if entry.time >= since]
        writes = self._agents_writes(entries)
        return next((write.turn for write in writes if write.path == name), None)

    def originals(self, since: float) -> dict[Path, bytes | None]:
        """Return the files that turns changed, as they were before the first of these turns.

        Args:
            since: Start of the turns to consider, in seconds since the epoch.

        Returns:
            The old contents by absolute path, None for a file that did not exist; links and files
            that no checkpoint stores are omitted.

        Raises:
            CheckpointError: As for ``begin``.
        """
        originals: dict[str, State | None] = {}
        for write in self._agents_writes([e for e in self._entries() if e.time >= since]):
            if _is_file(write.old) or (write.old is None and _is_file(write.new)):
                originals.setdefault(write.path, write.old)
        blobs: dict[str, bytes] = {}
        if ids := {old.blob for old in originals.values() if old is not None}:
            with self._locked() as git:
                blobs = read_blobs(git, ids)
        return {self.workspace / path: old and blobs[old.blob] for path, old in originals.items()}


def _blob(state: State | None) -> str:
    return "" if state is None else state.blob


def _is_file(state: State | None) -> bool:
    return state is not None and state.kind == "file"
