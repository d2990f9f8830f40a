"""The record of checkpoints: snapshots of the files when agents' turns start and end."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from oh_jupyter.checkpoints.attribution import IsOfTurn, end_turn, end_unfinished_turn
from oh_jupyter.checkpoints.git import Git
from oh_jupyter.checkpoints.journal import Checkpoint, CheckpointJournal, Kind, standing_turns
from oh_jupyter.checkpoints.repository import Repository, default_directory, protect
from oh_jupyter.checkpoints.snapshot import Limits, Snapshot, changes, forget_details, is_same
from oh_jupyter.checkpoints.work import Owner, Work, evidence, forget, is_alive
from oh_jupyter.errors import CheckpointError

MAX_CHECKPOINTS = 100
MAX_FILE_NAMES = 100
"""Maximum names of changed files stored with a turn."""


class CheckpointRecord:
    """The stored checkpoints of one workspace, shared by all of the user's processes in it.

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
        self._repository = Repository(self.workspace, self.directory, own_folders)
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
        at: Checkpoint | None = None,
    ) -> Checkpoint:
        """Save the current files as the start of a turn, or as a mark.

        Args:
            label: The label; its first line is stored, up to 200 characters.
            who: Who is going to act.
            kind: ``turn``, ended by ``end``, or ``mark``.
            extra: JSON-ready values to store with it.
            at: A checkpoint that was just made, whose files are also the start of this one.

        Returns:
            The checkpoint.

        Raises:
            CheckpointError: git is missing, the workspace is too large, or the disk is full.
        """
        with self._locked() as git:
            span = None if at is None else (at.begin, None)
            return self._begin(git, label, who, kind, extra or {}, span)

    def note(self, work: Work) -> None:
        """Record an agent's work so far, in case this process dies.

        Changes after the last note are then not the turn's.
        """
        if self._owner is not None:
            self._owner.note(work)

    def resume(self, id: int) -> Checkpoint:
        """Reopen an ended turn whose agent continues.

        Raises:
            CheckpointError: No such turn, or as for ``begin``.
        """
        with self._locked():
            entry = replace(self._last_part(id), is_open=True, owner=self._token())
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
        is_of_turn: IsOfTurn | None = None,
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

        Returns:
            The turn; or its new part, if another process set a mark or rewound meanwhile.

        Raises:
            CheckpointError: No such turn, or as for ``begin``.
        """
        with self._locked() as git:
            return self._end(git, id, is_of_turn, is_open, extra or {})

    def is_at_end(self, turn: Checkpoint) -> bool:
        """Return whether the files are as at the end of a turn, and no checkpoint was made since.

        Args:
            turn: A turn that has an end.

        Raises:
            CheckpointError: As for ``begin``.
        """
        with self._locked() as git:
            is_last = self.entries()[-1].id == turn.id
            return is_last and turn.end is not None and is_same(git, self._take(git), turn.end)

    def entries(self) -> list[Checkpoint]:
        """Return all stored checkpoints, oldest first.

        Raises:
            CheckpointError: They cannot be read.
        """
        try:
            return self._journal.read()
        except OSError as error:
            raise self._repository.unusable(error) from error

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

    def _begin(
        self,
        git: Git,
        label: str,
        who: str,
        kind: Kind,
        extra: dict[str, Any],
        span: tuple[Snapshot, Snapshot | None] | None = None,
        owner: str = "",
    ) -> Checkpoint:
        begin, end = span or (self._take(git), None)
        entries = self.entries()
        id = entries[-1].id + 1 if entries else 1
        line = (label.strip().splitlines() or [""])[0][:200]
        is_turn = kind == "turn"
        entry = Checkpoint(
            *(id, time.time(), kind, line, who, begin, end, extra),
            is_open=is_turn,
            owner=(owner or self._token()) if is_turn else "",
        )
        protect(git, f"{id}/begin", begin)
        if end is not None:
            protect(git, f"{id}/end", end)
        self._write([*entries, entry], git)
        if not is_turn:
            self._split_others(git, entry)
        return entry

    def _split_others(self, git: Git, at: Checkpoint) -> None:
        """End the turns of other running processes at a mark or rewind, and begin new parts."""
        for turn in self.entries():
            is_others = turn.is_open and turn.owner != self._own_token
            proof = self._proof(turn) if is_others else None
            if proof is None:
                continue
            self._write_end(git, replace(self._ended_now(git, turn), is_certain=True))
            extra = {
                "by": turn.extra.get("by", ""),
                "part_of": turn.extra.get("part_of", turn.id),
                "noted_as": proof[0].turn,
            }
            span = (at.end or at.begin, None)
            self._begin(git, turn.label, turn.who, "turn", extra, span, turn.owner)

    def _last_part(self, id: int) -> Checkpoint:
        """Return a turn, or the part in which it continues after a mark or rewind by others."""
        for entry in reversed(self.entries()):
            if entry.extra.get("noted_as") == id:
                return entry
        return self.get(id)

    def _proof(self, turn: Checkpoint) -> tuple[Work, float] | None:
        """Return the notes on an open turn, and when its process was last alive."""
        ids = (turn.id, turn.extra.get("noted_as", turn.id))
        return evidence(self.directory, turn.owner, ids)

    def _end(
        self,
        git: Git,
        id: int,
        is_of_turn: IsOfTurn | None,
        is_open: bool,
        extra: Mapping[str, Any],
    ) -> Checkpoint:
        turn = self._last_part(id)
        end = self._take(git, known=turn.begin.tree)
        if is_of_turn is None:
            turn = replace(turn, end=end)
        else:
            turn = end_turn(git, turn, end, is_of_turn)
        entry = replace(turn, is_open=is_open, extra={**turn.extra, **extra})
        return self._write_end(git, entry)

    def _write_end(self, git: Git, turn: Checkpoint) -> Checkpoint:
        """Store the end of a turn, with the names of the files that it changed."""
        assert turn.end is not None
        own = changes(git, turn.begin, turn.end).keys() - set(turn.others)
        entry = replace(turn, extra={**turn.extra, "files": sorted(own)[:MAX_FILE_NAMES]})
        protect(git, f"{turn.id}/end", turn.end)
        self._journal.append(entry)
        return entry

    def _is_abandoned(self, entry: Checkpoint) -> bool:
        if not entry.is_open or entry.owner == self._own_token:
            return False
        return not is_alive(self.directory, entry.owner)

    def _ended(self, git: Git, entry: Checkpoint, now: Snapshot) -> Checkpoint:
        return end_unfinished_turn(git, entry, now, self._proof(entry))

    def _ended_now(self, git: Git, entry: Checkpoint) -> Checkpoint:
        return self._ended(git, entry, self._take(git, known=entry.begin.tree))

    def _close_abandoned(self, git: Git) -> None:
        """Close turns of dead processes."""
        abandoned = list(filter(self._is_abandoned, self.entries()))
        for entry in abandoned:
            self._write_end(git, self._ended_now(git, entry))
        for entry in abandoned:
            forget(self.directory, entry.owner)

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
        open_turns = {entry.owner: entry for entry in entries if entry.is_open}.values()
        under_way = {
            id for turn in open_turns for id in (turn.id, turn.extra.get("noted_as", turn.id))
        }
        older, recent = entries[:-MAX_CHECKPOINTS], entries[-MAX_CHECKPOINTS:]
        for entry in older:
            for part in () if entry.id in under_way else ("begin", "end"):
                git.run("update-ref", "-d", f"refs/checkpoints/{entry.id}/{part}")
        recent = [entry for entry in older if entry.id in under_way] + recent
        self._journal.replace(recent)
        ends = [entry.end for entry in recent if entry.end is not None]
        forget_details(git, [*(entry.begin for entry in recent), *ends])
        git.run("gc", "--auto", "--quiet")

    def _take(self, git: Git, *, known: str = "", forced: Collection[str] = ()) -> Snapshot:
        def last_tree() -> str:
            last = self.entries()[-1:]
            return (last[0].end or last[0].begin).tree if last else ""

        return self._repository.take(git, self.limits, last_tree, known=known, forced=forced)

    @contextlib.contextmanager
    def _locked(self) -> Iterator[Git]:
        with self._repository.opened() as git:
            self._close_abandoned(git)
            yield git
