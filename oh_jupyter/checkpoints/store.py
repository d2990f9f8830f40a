"""The stored checkpoints of one workspace, and the lock that all of the user's processes share."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from oh_jupyter.checkpoints.abandoned import left_by, unapplied
from oh_jupyter.checkpoints.git import Git
from oh_jupyter.checkpoints.journal import Checkpoint, CheckpointJournal, Kind, standing_turns
from oh_jupyter.checkpoints.owner import Owner, forget_owner, is_alive, last_alive
from oh_jupyter.checkpoints.repository import (
    Repository,
    protect,
    protect_contents,
)
from oh_jupyter.checkpoints.snapshot import Limits, Snapshot, forget_details
from oh_jupyter.checkpoints.steps import StepLog
from oh_jupyter.checkpoints.tracker import Take
from oh_jupyter.errors import CheckpointError

MAX_CHECKPOINTS = 100
MAX_FILE_NAMES = 100
"""Maximum names of changed files listed with a turn."""


class CheckpointStore:
    """The checkpoints of one workspace on disk, shared by all of the user's processes in it."""

    def __init__(
        self, workspace: Path, directory: Path, limits: Limits, own_folders: Collection[str]
    ) -> None:
        self.workspace, self.directory, self.limits = workspace, directory, limits
        self._repository = Repository(workspace, directory, own_folders)
        self._journal = CheckpointJournal(self.directory / "checkpoints.jsonl")
        self._steps = StepLog(self.directory / "steps.sqlite3")
        self._mutex = threading.RLock()
        self._git: Git | None = None
        self._owner: Owner | None = None

    def close(self) -> None:
        """Release the lock; the next call takes it again."""
        with self._mutex:
            self._steps.close()
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
        if any(self._is_abandoned(entry) for entry in self._entries()):
            with self._locked():
                pass

    def entries(self) -> list[Checkpoint]:
        """Return all stored checkpoints, oldest first, each turn with the files that it changed.

        Raises:
            CheckpointError: They cannot be read.
        """
        files = self._steps.files() if self._steps.exists() else {}
        return [
            replace(entry, extra={**entry.extra, "files": files.get(entry.id, [])[:MAX_FILE_NAMES]})
            if entry.kind == "turn"
            else entry
            for entry in self._entries()
        ]

    def _entries(self) -> list[Checkpoint]:
        try:
            return self._journal.read()
        except OSError as error:
            raise self._repository.unusable(error) from error

    def get(self, id: int) -> Checkpoint:
        """Return a checkpoint by its number.

        Raises:
            CheckpointError: There is none with that number.
        """
        for entry in self._entries():
            if entry.id == id:
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
    ) -> Checkpoint:
        """Add a checkpoint of a snapshot."""
        entries = self._entries()
        line = (label.strip().splitlines() or [""])[0][:200]
        is_turn = kind == "turn"
        entry = Checkpoint(
            entries[-1].id + 1 if entries else 1,
            *(time.time(), kind, line, who, begin, self._steps.position(), extra),
            is_open=is_turn,
            owner=self._token() if is_turn else "",
        )
        protect(git, f"{entry.id}/begin", begin)
        self._write([*entries, entry], git)
        return entry

    def _write_end(self, turn: Checkpoint, extra: Mapping[str, Any]) -> Checkpoint:
        entry = replace(turn, extra={**turn.extra, **extra})
        self._journal.append(entry)
        return entry

    def _is_abandoned(self, entry: Checkpoint) -> bool:
        if not entry.is_open or entry.owner == self._own_token:
            return False
        return not is_alive(self.directory, entry.owner)

    def _close_abandoned(self, git: Git) -> None:
        """Close turns of dead processes, and rewinds that were not completed."""
        entries = self._entries()
        for entry in entries:
            if entry.kind == "rewind" and entry.is_open:  # it would hold the lock if it ran
                self._steps.remove(unapplied(git, self._steps.writes(turns=[entry.id])))
                self._write_end(replace(entry, is_open=False), {})
        abandoned = [each for each in entries if each.kind == "turn" and self._is_abandoned(each)]
        for entry in abandoned:
            for step in self._steps.steps(owner=entry.owner, is_open=True):
                if step.turn == entry.id:
                    writes = self._steps.writes(entry.at.write)
                    now = self._take(git, known=entry.begin.tree)
                    alive = last_alive(self.directory, entry.owner)
                    self._steps.add(left_by(git, entry, step, writes, now, alive), entry.owner)
                self._steps.end(step.id)
            self._write_end(replace(entry, is_open=False), {})
        for entry in abandoned:
            forget_owner(self.directory, entry.owner)

    @property
    def _own_token(self) -> str:
        return "" if self._owner is None else self._owner.token

    def _token(self) -> str:
        if self._owner is None:
            self._owner = Owner(self.directory)
        return self._owner.token

    def _write(self, entries: list[Checkpoint], git: Git) -> None:
        """Add the last entry; at twice the limit, drop the oldest ones with their files.

        The turn that a process is in stays, however old.
        """
        if len(entries) < 2 * MAX_CHECKPOINTS:
            self._journal.append(entries[-1])
            return
        under_way = {entry.id for entry in entries if entry.is_open}
        older, recent = entries[:-MAX_CHECKPOINTS], entries[-MAX_CHECKPOINTS:]
        for entry in older:
            if entry.id not in under_way:
                git.run("update-ref", "-d", f"refs/checkpoints/{entry.id}/begin")
        recent = [entry for entry in older if entry.id in under_way] + recent
        self._journal.replace(recent)
        forget_details(git, [entry.begin for entry in recent])
        self._steps.forget(entry.id for entry in recent)
        protect_contents(git, self._steps.contents())
        git.run("gc", "--auto", "--quiet")

    def _take(self, git: Git, *, known: str = "", forced: Collection[str] = ()) -> Snapshot:
        def last_tree() -> str:
            last = self._entries()[-1:]
            return last[0].begin.tree if last else ""

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
