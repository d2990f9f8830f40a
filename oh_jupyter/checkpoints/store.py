"""The stored checkpoints of one workspace, and the lock that all of the user's processes share."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from oh_jupyter.checkpoints.abandoned import (
    Owner,
    forget_owner,
    is_alive,
    last_alive,
    left_by,
    unapplied,
)
from oh_jupyter.checkpoints.git import Git
from oh_jupyter.checkpoints.journal import Checkpoint, CheckpointJournal, Kind, standing_turns
from oh_jupyter.checkpoints.repository import (
    Repository,
    default_directory,
    protect,
    protect_contents,
    protected,
    unprotect,
)
from oh_jupyter.checkpoints.snapshot import Limits, Snapshot
from oh_jupyter.checkpoints.steps import Step, StepLog, WorkspaceRows, Write, storable
from oh_jupyter.checkpoints.tracker import Take
from oh_jupyter.errors import CheckpointError
from oh_jupyter.state.shared import open_ledger

MAX_CHECKPOINTS = 100
MAX_FILE_NAMES = 100
"""Maximum names of changed files listed with a turn."""


class CheckpointStore:
    """The checkpoints of one workspace on disk, shared by all of the user's processes in it."""

    def __init__(
        self, workspace: Path, directory: Path, limits: Limits, own_folders: Collection[str]
    ) -> None:
        self.workspace, self.directory, self.limits = workspace, directory, limits
        is_default = directory == default_directory(workspace)
        self._own_ledger = None if is_default else open_ledger(directory)
        self._rows = WorkspaceRows(self._own_ledger or open_ledger(), workspace)
        self._journal = CheckpointJournal(self._rows)
        self._steps = StepLog(self._rows)
        self._repository = Repository(workspace, directory, own_folders, self._forget_all)
        self._mutex = threading.RLock()
        self._git: Git | None = None
        self._owner: Owner | None = None

    def close(self) -> None:
        """Release the lock; the next call takes it again."""
        with self._mutex:
            if self._own_ledger is not None:
                self._own_ledger.close()
            if self._owner is not None:
                self._owner.close()
                self._owner = None

    @property
    def process(self) -> str:
        """Identity of this process among those that share the checkpoints."""
        with self._mutex:
            return self._token()

    def is_alive(self, process: str) -> bool:
        """Return whether a process with an identity is running."""
        return process == self._own_token or is_alive(self.directory, process)

    def beat(self) -> None:
        """Record that this process is alive; only changes until then are proven if it dies."""
        if self._owner is not None:
            self._owner.beat()

    def settle(self) -> None:
        """Close turns of dead processes, so that later changes do not count as theirs.

        Raises:
            CheckpointError: As for ``begin``.
        """
        if any(map(self._is_abandoned, self._entries(is_open=True))):
            with self._locked():
                pass

    def entries(self) -> list[Checkpoint]:
        """Return all stored checkpoints, oldest first, each turn with the files that it changed.

        Raises:
            CheckpointError: They cannot be read.
        """
        files = self._steps.files()
        return [
            replace(entry, extra={**entry.extra, "files": files.get(entry.id, [])[:MAX_FILE_NAMES]})
            if entry.kind == "turn"
            else entry
            for entry in self._entries()
        ]

    def _entries(self, *, is_open: bool = False) -> list[Checkpoint]:
        return self._journal.read(is_open=is_open) if self._repository.exists() else []

    def get(self, id: int) -> Checkpoint:
        """Return a checkpoint by its number.

        Raises:
            CheckpointError: There is none with that number.
        """
        entry = self._journal.find(id) if self._repository.exists() else None
        if entry is not None:
            return entry
        raise CheckpointError(
            f"No checkpoint {id} in {str(self.workspace)!r}; %oh_rewind lists the existing ones."
        )

    def is_split(self, id: int) -> bool:
        """Return whether there is a mark or rewind after a turn, in which it cannot continue.

        Raises:
            CheckpointError: The checkpoints cannot be read.
        """
        return any(entry.id > id and entry.kind != "turn" for entry in self._entries())

    def turns_of(self, owner: str) -> frozenset[int] | None:
        """Return the turns and rewinds of an owner, None for "", which stands for everyone."""
        if not owner:
            return None
        return frozenset(entry.id for entry in self._entries() if entry.extra.get("by") == owner)

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

    def _add(
        self,
        git: Git,
        begin: Snapshot,
        label: str,
        who: str,
        kind: Kind,
        extra: dict[str, Any],
        writes: Callable[[int], Iterable[Write]] | None = None,
    ) -> Checkpoint:
        """Add a checkpoint of a snapshot; ``writes`` returns those that a rewind by it plans."""
        ids = self._journal.ids()
        line = storable((label.strip().splitlines() or [""])[0][:200])
        is_turn = kind == "turn"
        stored, details = begin.stored()
        entry = Checkpoint(
            # Where the ledger was lost, numbers that had another meaning are not used again.
            1 + (ids[-1] if ids else max(protected(git), default=0)),
            *(time.time(), kind, line, storable(who), stored),
            *(self._steps.position(), extra),
            is_open=is_turn or writes is not None,
            owner=self._token() if is_turn else "",
        )
        protect(git, entry.id, begin)
        planned = [] if writes is None else list(writes(entry.id))
        recorder = self._token() if planned else ""
        with self._rows.transaction():
            self._journal.add(entry, details)
            self._steps.add(planned, recorder)
        if len(ids) + 1 >= 2 * MAX_CHECKPOINTS:
            self._forget_before(git, [*ids, entry.id][-MAX_CHECKPOINTS])
        return entry

    def _close(self, entry: Checkpoint) -> None:
        self._journal.update(replace(entry, is_open=False))

    def _is_abandoned(self, entry: Checkpoint) -> bool:
        if not entry.is_open or entry.owner == self._own_token:
            return False
        return not is_alive(self.directory, entry.owner)

    def _close_abandoned(self, git: Git) -> None:
        """Close turns of dead processes, and rewinds that were not completed."""
        entries = self._entries(is_open=True)
        for entry in entries:
            if entry.kind == "rewind":  # it would hold the lock if it ran
                missing = unapplied(git, self._steps.writes(turns=[entry.id]))
                with self._rows.transaction():
                    self._steps.remove(missing)
                    self._close(entry)
        abandoned = [each for each in entries if each.kind == "turn" and self._is_abandoned(each)]
        for entry in abandoned:
            steps = self._steps.steps(owner=entry.owner, is_open=True)
            writes = self._left_by(git, entry, [step for step in steps if step.turn == entry.id])
            with self._rows.transaction():
                self._steps.add(writes, entry.owner)
                self._steps.end(step.id for step in steps)
                self._steps.remove_jobs_of([entry.owner])
                self._close(entry)
        for entry in abandoned:
            forget_owner(self.directory, entry.owner)

    def _left_by(self, git: Git, turn: Checkpoint, steps: Collection[Step]) -> list[Write]:
        """Return what the steps of a dead process have changed without recording it."""
        if not steps:
            return []
        begin, known = self._journal.snapshot(turn), self._steps.writes(turn.at.write)
        now = self._take(git, known=turn.begin.tree)
        alive = last_alive(self.directory, turn.owner)
        writes: list[Write] = []
        for step in steps:
            writes += left_by(git, turn, begin, step, [*known, *writes], now, alive)
        return writes

    @property
    def _own_token(self) -> str:
        return "" if self._owner is None else self._owner.token

    def _token(self) -> str:
        if self._owner is None:
            self._owner = Owner(self.directory)
        return self._owner.token

    def _forget_before(self, git: Git, id: int) -> None:
        """Drop older checkpoints with their files, except turns that a process is in."""
        remaining = {each for each in self._journal.ids() if each >= id}
        remaining.update(entry.id for entry in self._entries(is_open=True))
        unprotect(git, protected(git) - remaining)
        with self._rows.transaction():
            self._journal.remove_before(id)
            self._steps.remove_orphans()
        protect_contents(git, self._steps.contents())
        git.run("gc", "--auto", "--quiet")

    def _forget_all(self) -> None:
        """Drop all checkpoints, because the repository with their files was removed."""
        with self._rows.transaction():
            self._journal.clear()
            self._steps.remove_orphans()

    def _take(self, git: Git, *, known: str = "", forced: Collection[str] = ()) -> Snapshot:
        def last_tree() -> str:
            last = self._journal.last()
            return "" if last is None else last.begin.tree

        return self._repository.take(git, self.limits, last_tree, known=known, forced=forced)

    def _taking(self, git: Git) -> Take:
        return lambda known: self._take(git, known=known)

    def _take_alone(self, known: str) -> Snapshot:
        with self._locked() as git:
            return self._take(git, known=known)

    @contextlib.contextmanager
    def _locked(self) -> Iterator[Git]:
        with self._mutex, self._repository.opened() as git:
            self._git = git
            self._close_abandoned(git)
            yield git
