"""The record of checkpoints: snapshots of the files, and the steps of agents between them."""

from __future__ import annotations

import contextlib
import functools
import os
import threading
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from oh_jupyter.checkpoints.attribution import (
    CLOCK_SECONDS,
    UNSURE_AFTER_DEATH,
    Cause,
    Running,
    cause,
    is_proven,
    reported,
)
from oh_jupyter.checkpoints.git import Git
from oh_jupyter.checkpoints.journal import Checkpoint, CheckpointJournal, Kind, standing_turns
from oh_jupyter.checkpoints.owner import Owner, forget_owner, is_alive, last_alive
from oh_jupyter.checkpoints.repository import (
    Repository,
    default_directory,
    protect,
    protect_contents,
)
from oh_jupyter.checkpoints.snapshot import Limits, Snapshot, forget_details, load, states
from oh_jupyter.checkpoints.steps import Step, StepLog, Write
from oh_jupyter.checkpoints.tracker import Difference, Take, Tracker, known_change
from oh_jupyter.checkpoints.writers import Job, Writers, jobs, lineage
from oh_jupyter.errors import CheckpointError
from oh_jupyter.process import guardian_pids
from oh_jupyter.writes import moved_to, moves

MAX_CHECKPOINTS = 100
MAX_FILE_NAMES = 100
"""Maximum names of changed files listed with a turn."""


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
        is_watched: bool = False,
    ) -> None:
        """Name the workspace; nothing is read or written yet.

        Args:
            workspace: Existing directory.
            directory: Where to store the files; by default a directory for this workspace below
                ``$XDG_STATE_HOME/oh_jupyter/checkpoints``, readable by its owner only.
            limits: Maximum sizes.
            own_folders: Folders of the caller's own state, which is not part of the workspace.
            is_watched: Whether to watch the workspace from the first step on, so that a step costs
                what it changes.
        """
        self.workspace = Path(os.path.realpath(workspace))
        self.directory = Path(directory) if directory else default_directory(self.workspace)
        self.limits = limits or Limits()
        self._notebook = ""
        self._repository = Repository(self.workspace, self.directory, own_folders)
        self._journal = CheckpointJournal(self.directory / "checkpoints.jsonl")
        self._steps = StepLog(self.directory / "steps.sqlite3")
        self._tracker = Tracker(self.workspace, self.limits, is_watched=is_watched)
        self._mutex = threading.RLock()
        self._git: Git | None = None
        self._owner: Owner | None = None
        self._turn = 0
        self._lists_others = False
        self._agents: dict[int, int] = {}
        self._running: dict[int, Running] = {}
        self._children: dict[int, set[int]] = {}
        self._jobs: list[Job] = []
        self._ended_jobs: set[Job] = set()
        self._last_persons_step = 0

    def close(self) -> None:
        """Release the lock; the next call closes a turn of this object that was not ended.

        What a step that was not ended has changed until the last beat is then the agent's.
        """
        with self._mutex:
            self._tracker.close()
            self._running.clear()
            self._jobs.clear()
            self._turn = 0
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
        return bool(self._running or self._jobs or self._agents)

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
                self._agents = {process: entry.id} if process else {}
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
            self._journal.append(entry)
            self._enter(entry, in_steps)
            return entry

    def _enter(self, turn: Checkpoint, in_steps: bool) -> None:
        """Make a turn the current one."""
        self._turn = turn.id
        if not in_steps:
            step = self._steps.begin(turn.id, self._token(), turn.label)
            self._running[step.id] = Running(step, os.getpid(), is_whole_turn=True)
            self._children[step.id] = self._processes(os.getpid())

    def settle(self) -> None:
        """Close turns of dead processes, so that later changes do not count as theirs.

        Raises:
            CheckpointError: As for ``begin``.
        """
        if any(self._is_abandoned(entry) for entry in self._entries()):
            with self._locked():
                pass

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
            self._record_changes(git, self._taking(git))
            own = [each for each in self._running.values() if each.step.turn == id]
            for running in own if with_steps and not is_open else ():
                self._stop(running)
            if not is_open:
                self._turn = 0 if self._turn == id else self._turn
                self._agents = {key: turn for key, turn in self._agents.items() if turn != id}
            return self._write_end(replace(entry, is_open=is_open), extra or {})

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
                self._children[step.id] = self._processes(root) if root else set()
            self._running[step.id] = Running(step, root, is_persons, waits=waits)
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
            running = self._running.get(id)
            if running is not None and running.waits:
                if self._git is not None:
                    self._record_changes(self._git, self._take_alone)
                self._running[id] = running._replace(waits=False)

    def start_next_step(self, root: int) -> None:
        """Start the earliest piece of work of a process that waits; see ``start_step``."""
        with self._mutex:
            waiting = (each for each in self._running.values() if each.waits and each.root == root)
            if (first := next(waiting, None)) is not None:
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
            running = self._running.get(id)
            if running is None:
                return
            if root not in (0, running.root):
                running = self._running[id] = running._replace(root=root)
            if id in self._children:
                self._children[id] |= lineage(shell)
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
        running = list(self._running.values())
        roots = {each.root for each in running if each.root and not each.waits}
        if not roots:
            return bool((self._jobs or self._agents) and changed and not running)
        return any(
            lineage and not roots & lineage and pid != os.getpid()
            for writers in changed.values()
            for pid, lineage in writers.items()
        )

    def beat(self) -> None:
        """Record that this process is alive; only changes until then are proven if it dies."""
        if self._owner is not None:
            self._owner.beat()

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

    def set_notebook(self, path: str) -> None:
        """Name a notebook that people's tabs save; a turn changes it only by edits.

        Args:
            path: Its path when this process started, "" for none.
        """
        path = moved_to(os.path.realpath(path), moves(_process_start_time())) if path else ""
        with self._mutex:
            self._notebook = next(iter(self._relative_paths([path])), "") if path else ""

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

    def _begin(
        self, git: Git, label: str, who: str, kind: Kind, extra: dict[str, Any]
    ) -> Checkpoint:
        begin, difference = self._tracker.save(git, self._taking(git))
        self._record(difference)
        return self._add(git, begin, label, who, kind, extra)

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

    def _end_own_turns(self, git: Git) -> None:
        """End the turns that this object began and never ended."""
        if self._running:
            self._record_changes(git, self._taking(git))
            for running in list(self._running.values()):
                if running.is_whole_turn:
                    self._stop(running)
        if self._turn:
            self._write_end(replace(self.get(self._turn), is_open=False), {})
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
        running = [each for each in self._running.values() if each is ended or not each.waits]
        writes = []
        for each in differences:
            known = None if ended is None else reported(each, ended, paths)
            if known is None and self._notebook and each.path == self._notebook:
                known = Cause("others")
            writes.append(
                self._write_of(each, known or cause(each, running, self._jobs, self._agents))
            )
        if not self._turn:  # others' changes matter only during a turn
            writes = [write for write in writes if write.turn]
        self._steps.add(writes, self._token())
        for write in writes:
            is_removal = write.author == "agent" and write.new is None
            (self._tracker.removed.add if is_removal else self._tracker.removed.discard)(write.path)
        # The last events of a process may come after its end, so it stays for one more look.
        self._jobs = [job for job in self._jobs if job not in self._ended_jobs]
        self._ended_jobs = {job for job in self._jobs if not job.is_alive}
        self._tracker.names_writers = self.is_at_work
        return any(write.author != "others" for write in writes)

    def _write_of(self, difference: Difference, cause: Cause) -> Write:
        is_listed = self._lists_others or any(each.step.turn for each in self._running.values())
        turn = cause.turn or (self._turn if is_listed else 0)
        reason = cause.reason or difference.reason
        return Write(
            *(
                difference.path,
                difference.old,
                difference.new,
                cause.author,
                cause.step,
                turn,
                reason,
            ),
            is_known=cause.is_known,
        )

    def _stop(self, running: Running) -> None:
        """End a step, and remember the processes that it has started."""
        step = running.step
        self._running.pop(step.id, None)
        if running.is_persons:
            return
        self._steps.end(step.id)
        if running.root:
            started = self._processes(running.root) - self._children.pop(step.id)
            self._jobs += jobs(started, step.id, step.turn, step.label)

    def _processes(self, root: int) -> set[int]:
        """Return the processes of a step's root; those of the kernel's own services are not."""
        without = guardian_pids() if root == os.getpid() else ()
        return self._tracker.descendants(root, without)

    def _relative_paths(self, paths: Collection[str]) -> frozenset[str]:
        names = set()
        for path in paths:
            real = Path(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
            for target in (real, Path(os.path.realpath(path))):  # a link, and its target
                with contextlib.suppress(ValueError):
                    names.add(target.relative_to(self.workspace).as_posix())
        return frozenset(names)

    def _is_abandoned(self, entry: Checkpoint) -> bool:
        if not entry.is_open or entry.owner == self._own_token:
            return False
        return not is_alive(self.directory, entry.owner)

    def _close_abandoned(self, git: Git) -> None:
        """Close turns of dead processes."""
        abandoned = list(filter(self._is_abandoned, self._entries()))
        for entry in abandoned:
            for step in self._steps.steps(owner=entry.owner, is_open=True):
                if step.turn == entry.id:
                    self._steps.add(self._left_by(git, entry, step), entry.owner)
                self._steps.end(step.id)
            self._write_end(replace(entry, is_open=False), {})
        for entry in abandoned:
            forget_owner(self.directory, entry.owner)

    def _left_by(self, git: Git, turn: Checkpoint, step: Step) -> Iterator[Write]:
        """Return the changes since the last look of a dead process in a step."""
        until = last_alive(self.directory, turn.owner)
        then, details = states(git, turn.begin), load(git, turn.begin)
        for write in self._steps.writes(turn.at.write):
            if write.new is None or write.new.kind == "unknown":
                then.pop(write.path, None)
            else:
                then[write.path] = write.new
        snapshot = self._take(git, known=turn.begin.tree)
        now, details_now = states(git, snapshot), load(git, snapshot)
        new_folders = {path for path, state in now.items() if state.kind == "folder"} - then.keys()
        for path in sorted(then.keys() | now.keys()):
            old, new = then.get(path), now.get(path)
            for difference in (
                known_change(path, old, new, details, details_now) if old != new else ()
            ):
                proven = is_proven(self.workspace, path, new_folders, step.began, until)
                reason = difference.reason if proven else UNSURE_AFTER_DEATH
                author = Cause("agent" if proven else "unsure", step.id, turn.id, reason)
                yield self._write_of(difference, author)

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


@functools.cache
def _process_start_time() -> float:
    """Return when this process started, which is when its notebook had its first name."""
    import psutil

    return psutil.Process().create_time() - CLOCK_SECONDS
