"""The record of what changes: turns of agents, their steps, and who made each change."""

from __future__ import annotations

import contextlib
import functools
import os
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from oh_jupyter.checkpoints.attribution import (
    CLOCK_SECONDS,
    Cause,
    Running,
    cause_elsewhere,
    reported,
)
from oh_jupyter.checkpoints.git import Git
from oh_jupyter.checkpoints.journal import Checkpoint, Kind
from oh_jupyter.checkpoints.repository import default_directory
from oh_jupyter.checkpoints.snapshot import Limits
from oh_jupyter.checkpoints.steps import Step, Write
from oh_jupyter.checkpoints.store import CheckpointStore
from oh_jupyter.checkpoints.tracker import Difference, Take, Tracker
from oh_jupyter.checkpoints.work_in_progress import WorkInProgress
from oh_jupyter.checkpoints.writers import Job, Writers
from oh_jupyter.errors import CheckpointError
from oh_jupyter.writes import moved_to, moves


class CheckpointRecord(CheckpointStore):
    """The checkpoints of one workspace, and the turns and steps of agents in this process.

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
        is_watched: bool = False,
    ) -> None:
        """Name the workspace; nothing is read or written yet.

        Args:
            workspace: Existing directory.
            directory: Where to store the files and the ledger; by default a directory for this
                workspace below ``$XDG_STATE_HOME/oh_jupyter/checkpoints``, readable by its owner
                only, and the user's ledger.
            limits: Maximum sizes.
            own_folders: Folders of the caller's own state, which is not part of the workspace.
            is_watched: Whether to watch the workspace from the first step on, so that a step costs
                what it changes.
        """
        real = Path(os.path.realpath(workspace))
        storage = Path(directory) if directory else default_directory(real)
        super().__init__(real, storage, limits or Limits(), own_folders)
        self._notebook = ""
        self._tracker = Tracker(self.workspace, self.limits, is_watched=is_watched)
        self._turn = 0
        self._lists_others = False
        self._work = WorkInProgress(self._tracker.descendants)
        self._shared_jobs: frozenset[Job] = frozenset()
        self._last_persons_step = 0

    def close(self) -> None:
        """Release the lock; the next call closes a turn of this object that was not ended.

        What a step that was not ended has changed until the last beat is then the agent's.
        """
        with self._mutex:
            self._tracker.close()
            self._work.clear()
            with contextlib.suppress(CheckpointError):  # others see that this process is gone
                self._share_jobs()
            self._turn = 0
            super().close()

    @property
    def attribution(self) -> str:
        """The way in which changes during a step are attributed; "" before the first step."""
        return self._tracker.description

    @property
    def events_fd(self) -> int | None:
        """The descriptor that is readable when files change; None without a watch."""
        return self._tracker.fd

    @property
    def is_at_work(self) -> bool:
        """Whether a step, or a process that one has started, may be changing files."""
        return bool(self._work)

    def begin(
        self,
        label: str,
        *,
        who: str = "agent",
        kind: Kind = "turn",
        extra: dict[str, Any] | None = None,
        in_steps: bool = False,
        lists_others: bool = False,
        process: int = 0,
    ) -> Checkpoint:
        """Save the current files as the start of a turn, or as a mark.

        Args:
            label: The label; its first line is stored, up to 200 characters.
            who: Who is going to act.
            kind: ``turn``, ended by ``end``, or ``mark``.
            extra: JSON-ready values to store with it.
            in_steps: Whether only what ``begin_step`` and ``end_step`` enclose is the turn's,
                instead of everything that changes until its end.
            lists_others: Whether a rewind lists also what others change between these.
            process: The process that is the agent, whose own changes are the turn's at any time.

        Returns:
            The checkpoint.

        Raises:
            CheckpointError: git is missing, the workspace is too large, or the disk is full.
        """
        with self._locked() as git:
            if kind == "turn":
                self._end_own_turns(git)
                self._tracker.begin(git, self._taking(git))
            entry = self._begin(git, label, who, kind, extra or {})
            if kind == "turn":
                self._enter(entry, in_steps)
                self._lists_others = lists_others
                self._work.agents = {process: entry.id} if process else {}
                self._tracker.names_writers = self.is_at_work
            return entry

    def resume(self, id: int, *, in_steps: bool = False) -> Checkpoint:
        """Reopen an ended turn whose agent continues; ``in_steps`` is as for ``begin``.

        Raises:
            CheckpointError: No such turn, or as for ``begin``.
        """
        with self._locked() as git:
            entry = replace(self.get(id), is_open=True, owner=self._token())
            self._tracker.begin(git, self._taking(git))
            self._record_changes(git, self._taking(git))
            self._journal.update(entry)
            self._enter(entry, in_steps)
            return entry

    def _enter(self, turn: Checkpoint, in_steps: bool) -> None:
        """Make a turn the current one."""
        self._turn = turn.id
        if not in_steps:
            step = self._steps.begin(turn.id, self._token(), turn.label)
            self._work.begin(Running(step, os.getpid(), is_whole_turn=True))

    def end(
        self,
        id: int,
        *,
        is_open: bool = False,
        with_steps: bool = True,
        extra: Mapping[str, Any] | None = None,
    ) -> Checkpoint:
        """Record what a turn has changed until now; later changes are others'.

        Args:
            id: Number of the turn. A later call adds what the turn has changed since.
            is_open: Whether the turn continues.
            with_steps: Whether its steps that are in progress end as well.
            extra: JSON-ready values to store with it, besides the names of the changed files.

        Returns:
            The turn.

        Raises:
            CheckpointError: No such turn, or as for ``begin``.
        """
        with self._locked() as git:
            entry = self.get(id)
            ends = with_steps and not is_open
            own = [each for each in self._work.steps if ends and each.step.turn == id]
            for running in own:
                self._work.remember_jobs(running)
            self._record_changes(git, self._taking(git))
            for running in own:
                self._work.stop(running)
            if not is_open:
                self._turn = 0 if self._turn == id else self._turn
                self._work.end_turn(id)
            entry = replace(entry, is_open=is_open, extra={**entry.extra, **(extra or {})})
            with self._rows.transaction():
                self._steps.end(running.step.id for running in own)
                self._journal.update(entry)
            self._share_jobs()
            return entry

    def begin_step(
        self,
        label: str,
        *,
        turn: int = 0,
        root: int = 0,
        is_persons: bool = False,
        waits: bool = False,
    ) -> int:
        """Begin a piece of work that may change files; what changed before is not its.

        Args:
            label: What it does, such as a command.
            turn: The turn of an agent's step.
            root: The process whose descendants do the work; 0 if it reports each change.
            is_persons: Whether a person does it.
            waits: Whether it changes nothing until ``start_step``.

        Returns:
            The number of the step, for ``end_step``.

        Raises:
            CheckpointError: As for ``begin``.
        """
        with self._mutex:
            if not is_persons:
                self._watch()
            if self._git is not None:
                self._record_changes(self._git, self._take_alone)
            if is_persons:
                self._last_persons_step -= 1
                step = Step(self._last_persons_step, 0, "", label, time.time(), None)
            else:
                step = self._steps.begin(turn, self._token(), label)
            self._work.begin(Running(step, root, is_persons, waits=waits))
            self._tracker.names_writers = True
            return step.id

    def start_step(self, id: int) -> None:
        """Start a piece of work that has waited; what changed before is not its.

        Args:
            id: Its number; nothing happens if it has started or ended.

        Raises:
            CheckpointError: As for ``begin``.
        """
        with self._mutex:
            running = self._work.find(id)
            if running is not None and running.waits:
                if self._git is not None:
                    self._record_changes(self._git, self._take_alone)
                self._work.start(id)

    def start_next_step(self, root: int) -> None:
        """Start the earliest piece of work of a process that waits; see ``start_step``."""
        with self._mutex:
            if (first := self._work.first_waiting(root)) is not None:
                self.start_step(first.step.id)

    def end_step(
        self, id: int, paths: Collection[str] = (), *, root: int = 0, shell: int = 0
    ) -> None:
        """End a piece of work; what changes from now on is not its, except by its processes.

        Args:
            id: Its number; nothing happens if it has ended.
            paths: Absolute paths that it reports to have changed.
            root: The process whose descendants have done the work, if it has started since.
            shell: The shell that ran it, which lives on without being its work.

        Raises:
            CheckpointError: As for ``begin``.
        """
        with self._mutex:
            if self._work.find(id) is None:
                return
            running = self._work.ending(id, root, shell)
            if self._git is not None:
                names = self._relative_paths(paths)
                self._record_changes(self._git, self._take_alone, running, names)
            self._stop(running)

    def look(self) -> bool:
        """Record what has changed until now, while steps or their processes are at work.

        Returns:
            Whether an agent has changed anything, or may have.

        Raises:
            CheckpointError: As for ``begin``.
        """
        with self._mutex:
            if self._git is None or not self.is_at_work:
                return False
            return self._record_changes(self._git, self._take_alone)

    def collect(self) -> Mapping[str, Writers] | None:
        """Read the new events; return the paths that they name, with their writers.

        None while another thread reads them.
        """
        return self._tracker.collect()

    def needs_look(self, changed: Mapping[str, Writers]) -> bool:
        """Return whether to look now: others change files beside a step, or late work does."""
        return self._work.needs_look(changed)

    def set_notebook(self, path: str) -> None:
        """Name a notebook that people's tabs save; a turn changes it only by edits.

        Args:
            path: Its path when this process started, "" for none.
        """
        path = moved_to(os.path.realpath(path), moves(_process_start_time())) if path else ""
        with self._mutex:
            self._notebook = next(iter(self._relative_paths([path])), "") if path else ""

    def _begin(
        self, git: Git, label: str, who: str, kind: Kind, extra: dict[str, Any]
    ) -> Checkpoint:
        begin, difference = self._tracker.save(git, self._taking(git))
        self._record(difference)
        return self._add(git, begin, label, who, kind, extra)

    def _end_own_turns(self, git: Git) -> None:
        """End the turns that this object began and never ended."""
        if self._work.steps:
            ended = [running for running in self._work.steps if running.is_whole_turn]
            for running in ended:
                self._work.remember_jobs(running)
            self._record_changes(git, self._taking(git))
            for running in ended:
                self._stop(running)
        if self._turn:
            if (turn := self._journal.find(self._turn)) is not None:
                self._close(turn)
            self._turn = 0

    def _watch(self) -> None:
        """Look for the first time, for which the repository is locked."""
        if not self._tracker.has_begun:
            with self._locked() as git:
                self._tracker.begin(git, self._taking(git))

    def _record_changes(
        self,
        git: Git,
        take: Take,
        ended: Running | None = None,
        paths: Collection[str] = (),
    ) -> bool:
        """Record who has changed what since the last look; return whether agents may have."""
        if not self._tracker.has_begun:
            return False
        try:
            return self._record(self._tracker.look(git, take), ended, paths)
        except OSError as error:  # such as a full disk
            raise self._repository.unusable(error) from error

    def _record(
        self,
        differences: Iterable[Difference],
        ended: Running | None = None,
        paths: Collection[str] = (),
    ) -> bool:
        """Record changes with their authors; return whether agents may be among these."""
        writes = []
        jobs_elsewhere = functools.cache(self._jobs_elsewhere)
        for each in differences:
            known = None if ended is None else reported(each, ended, paths)
            if known is None and self._notebook and each.path == self._notebook:
                known = Cause("others")
            writes.append(
                self._write_of(each, known or self._cause_of(each, ended, jobs_elsewhere))
            )
        if not self._turn:  # others' changes matter only during a turn
            writes = [write for write in writes if write.turn]
        self._steps.add(writes, self._token())
        for write in writes:
            is_removal = write.author == "agent" and write.new is None
            (self._tracker.removed.add if is_removal else self._tracker.removed.discard)(write.path)
        self._work.forget_ended_jobs()
        self._share_jobs()
        self._tracker.names_writers = self.is_at_work
        return any(write.author != "others" for write in writes)

    def _cause_of(
        self,
        difference: Difference,
        ended: Running | None,
        jobs_elsewhere: Callable[[], Sequence[Job]],
    ) -> Cause:
        """Return the cause of a change, which may be an agent's job of another process."""
        cause = self._work.cause_of(difference, ended)
        if cause.author == "others" and any(difference.writers.values()):
            return cause_elsewhere(difference, jobs_elsewhere()) or cause
        return cause

    def _jobs_elsewhere(self) -> list[Job]:
        """Return the jobs of other processes, and forget those of dead ones."""
        jobs = self._steps.jobs()
        owners = {owner for owner, _ in jobs if owner != self._own_token}
        if dead := {owner for owner in owners if not self.is_alive(owner)}:
            self._steps.remove_jobs_of(dead)
        return [job for owner, job in jobs if owner in owners - dead]

    def _share_jobs(self) -> None:
        """Let other processes know the jobs of this one, which they then do not take for others."""
        if (jobs := self._work.jobs) != self._shared_jobs:
            self._steps.share_jobs(
                self._token(), jobs - self._shared_jobs, self._shared_jobs - jobs
            )
            self._shared_jobs = jobs

    def _write_of(self, difference: Difference, cause: Cause) -> Write:
        is_listed = self._lists_others or self._work.has_agents_step
        return cause.write(difference, self._turn if is_listed else 0)

    def _stop(self, running: Running) -> None:
        """End a step whose processes are remembered."""
        self._work.stop(running)
        if not running.is_persons:
            self._steps.end([running.step.id])
            self._share_jobs()

    def _relative_paths(self, paths: Collection[str]) -> frozenset[str]:
        names = set()
        for path in paths:
            real = Path(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
            for target in (real, Path(os.path.realpath(path))):  # a link, and its target
                with contextlib.suppress(ValueError):
                    names.add(target.relative_to(self.workspace).as_posix())
        return frozenset(names)


@functools.cache
def _process_start_time() -> float:
    """Return when this process started, which is when its notebook had its first name."""
    import psutil

    return psutil.Process().create_time() - CLOCK_SECONDS
