"""Checkpoints of a workspace: where turns of agents began and ended, and the way back."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import stat
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from oh_jupyter.checkpoints.apply import apply
from oh_jupyter.checkpoints.disk import State, look
from oh_jupyter.checkpoints.git import Git, GitError, read_blobs
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
        end: The files when the turn ended, or when an agent last paused in it; None for a mark.
        extra: Further facts from its maker, such as the target of a rewind.
        others: Paths, relative to the workspace, that somebody else changed during the turn.
        is_open: Whether the turn goes on.
        owner: Token of the process that began it.
        is_certain: Whether it is known when the turn ended; not of one whose process died.
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
    is_open: bool = False
    owner: str = ""
    is_certain: bool = True


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
        self._owner: Owner | None = None

    def close(self) -> None:
        """Free what is held; a turn of this object that was not ended is closed by the next call.

        Such a turn has what its notes prove to be the agent's, and nothing that changed later.
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

    def note(self, work: Work) -> None:
        """Write down what an agent has done so far, in case that this process dies.

        What changes later than the last note is not the turn's then.
        """
        if self._owner is not None:
            self._owner.note(work)

    def resume(self, id: int) -> Checkpoint:
        """Open a turn again that has ended, as its agent goes on.

        Raises:
            CheckpointError: No such turn.
        """
        entry = replace(self.get(id), is_open=True, owner=self._token())
        self._append(entry)
        return entry

    def settle(self) -> None:
        """Close turns whose process is gone, so that nothing later counts as theirs.

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
    ) -> Checkpoint:
        """Keep the files as they are now, as the end of a turn; what comes later is others'.

        Args:
            id: Number of the turn. A later call moves the end.
            is_of_turn: Whether a changed file is the turn's, by its absolute path and the time of
                its last change in seconds since the epoch; by default each is.
            is_open: Whether the turn goes on, so that this is its end only if its process dies.

        Raises:
            CheckpointError: No such turn, or as for ``begin``.
        """
        with self._locked() as git:
            return self._end(git, id, is_of_turn, is_open)

    def is_at_end(self, turn: Checkpoint) -> bool:
        """Tell whether the files are still as they were when a turn ended.

        Args:
            turn: A turn that has an end.

        Raises:
            CheckpointError: As for ``begin``.
        """
        with self._locked() as git:
            return turn.end is not None and is_same(git, self._take(git), turn.end)

    def entries(self) -> list[Checkpoint]:
        """All that are kept, the oldest first.

        Raises:
            CheckpointError: They cannot be read.
        """
        try:
            text = self._journal.read_text("utf-8")
        except FileNotFoundError:
            return []
        except OSError as error:
            raise self._unusable(error) from error
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
            return self._plan(git, id, everything, path)[1]

    def rewind(self, id: int, *, everything: bool = False, path: str | None = None) -> RewindPlan:
        """Undo what happened since a checkpoint.

        The turns since then are undone, the last one first. What others changed between and
        after them stays: beside a turn's change in one text both are reconciled, and a file where
        that is not possible stays as it is and is listed as kept. A rewind is a turn itself, so
        that rewinding to it undoes it: what it overwrites or removes is kept before, whatever its
        size. A process that dies meanwhile leaves a part undone; the same call does the rest.

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
            now, plan = self._plan(git, id, everything, path)
            # Its end is known before it begins: so one that was killed has no other's changes.
            span = (now, with_states(git, now, plan.results()))
            self._begin(git, label, "user", "rewind", extra, span)
            return apply(git, plan)

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
            now = self._take(git)
            for id, turn in self._turns(git, now, lambda entry: entry.id in entries):
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

        found, missing = plan()
        forced: set[str] = set()
        while not forced.issuperset(missing):
            forced.update(missing)  # what will be overwritten can be brought back
            now = self._take(git, forced=forced)
            found, missing = plan()
        # Ignored directories are not among the files of now; those of the plan belong to them.
        folders = {each.path for each in found.changes if each.before and not each.before.blob}
        places = {
            path: look(self.workspace, path) for path in {*found.remove_directories, *folders}
        }
        modes = {path: stat.S_IMODE(place.st_mode) for path, place in places.items() if place}
        ignored = modes.keys() - load(git, now).folders.keys()
        return with_states(
            git, now, {path: State("folder", modes[path]) for path in ignored}
        ), found

    def _turns(
        self, git: Git, now: Snapshot, is_meant: Callable[[Checkpoint], bool]
    ) -> list[tuple[int, Turn]]:
        """Return the turns and rewinds that are meant with their numbers, in the order of time."""
        entries = list(filter(is_meant, self.entries()))
        following = [entry.begin for entry in entries[1:]] + [now]
        found = []
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
            found.append((entry.id, turn))
        return found

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
            now = self._take(git)
            for id, turn in self._turns(git, now, lambda entry: entry.time >= since):
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
        found: dict[str, State | None] = {}
        if not any(entry.time >= since for entry in self.entries()):
            return {}
        with self._locked() as git:
            now = self._take(git)
            for _, turn in self._turns(git, now, lambda entry: entry.time >= since):
                for path, (old, new) in turn_changes(git, turn).items():
                    if _is_file(old) or (old is None and _is_file(new)):
                        found.setdefault(path, old)
            files = {path: old for path, old in found.items() if old is None or _is_file(old)}
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
        self, git: Git, id: int, is_of_turn: Callable[[Path, float], bool] | None, is_open: bool
    ) -> Checkpoint:
        begun = self.get(id)
        end = self._take(git, known=begun.begin.tree)
        others = begun.others
        if is_of_turn is not None:
            end, others = self._attributed(
                git, begun, end, lambda path: self._is_of(is_of_turn, path)
            )
        entry = replace(begun, end=end, others=others, is_open=is_open)
        self._protect(git, f"{id}/end", end)
        self._append(entry)
        return entry

    def _is_of(self, is_of_turn: Callable[[Path, float], bool], path: str) -> bool:
        status = look(self.workspace, path)
        if status is None:  # nobody knows who deleted it
            return True
        return is_of_turn(self.workspace / path, status.st_ctime)

    def _attributed(
        self, git: Git, begun: Checkpoint, now: Snapshot, is_of_turn: Callable[[str], bool]
    ) -> tuple[Snapshot, list[str]]:
        """Take from the files of now what is the turn's; the rest is as it was at its last end.

        Returns:
            The files so, and the paths that only others changed.
        """
        base = begun.end or begun.begin
        changed = changes(git, base, now)
        moved = self._moved(changed, begun.time)
        foreign = {
            path: old for path, (old, _) in changed.items() if path in moved or not is_of_turn(path)
        }
        earlier = changes(git, begun.begin, base).keys()
        others = {*begun.others, *(foreign.keys() - earlier)}
        return with_states(git, now, foreign), sorted(others)

    def _moved(self, changed: Mapping[str, Change], since: float) -> set[str]:
        """Find the changed paths that a person's moves in Jupyter explain: old and new names."""
        made = moves(since)
        targets = [move.target for move in made]
        found = set()
        for path, (_, new) in changed.items():
            place = str(self.workspace / path)
            target = moved_to(place, made)
            if new is None and target != place:
                found.add(path)
                targets.append(target)
        return found | {path for path in changed if str(self.workspace / path) in targets}

    def _is_abandoned(self, entry: Checkpoint) -> bool:
        if not entry.is_open or entry.owner == self._own_token:
            return False
        return not is_alive(self.directory, entry.owner)

    def _closed(self, git: Git, entry: Checkpoint, now: Snapshot) -> Checkpoint:
        """Return a turn of another process with an end: only what is proven counts as its own."""
        known = evidence(self.directory, entry.owner, entry.id)
        # Others may have moved directories that were not there, with what the agent made in them.
        folders = load(git, entry.end or entry.begin).folders

        def is_of_turn(path: str) -> bool:
            if known is None:
                return False
            work, last_alive = known
            status = look(self.workspace, path)
            parents = [parent.as_posix() for parent in PurePosixPath(path).parents]
            if status is None:  # its directory tells when it was deleted
                status = next(filter(None, (look(self.workspace, name) for name in parents)), None)
                status = status or os.stat(self.workspace)
            made = (look(self.workspace, name) for name in parents if name not in folders)
            moved = max((place.st_ctime for place in made if place is not None), default=0.0)
            if max(status.st_ctime, moved) > last_alive:
                return False
            return work.is_of_turn(self.workspace / path, status.st_ctime)

        end, others = self._attributed(git, entry, now, is_of_turn)
        return replace(entry, end=end, others=others, is_open=False, is_certain=False)

    def _close_abandoned(self, git: Git) -> None:
        """Close turns whose process is gone."""
        abandoned = list(filter(self._is_abandoned, self.entries()))
        for entry in abandoned:
            closed = self._closed(git, entry, self._take(git, known=entry.begin.tree))
            assert closed.end is not None
            self._protect(git, f"{entry.id}/end", closed.end)
            self._append(closed)
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
        """Keep the files as they are now; an index or a repository that is damaged is rebuilt."""
        try:
            return take(git, self.limits, known=known, forced=forced)
        except GitError:
            entries = self.entries()
            trees = [(entry.end or entry.begin).tree for entry in entries[-1:]]
        error: GitError | None = None
        for tree in [*trees, ""]:
            git.index.unlink(missing_ok=True)
            try:
                if tree:  # ignored files that are known stay so
                    git("read-tree", tree)
                return take(git, self.limits, known=known, forced=forced)
            except GitError as again:
                error = again
        raise CheckpointError(
            f"{error}. If that stays so, remove {str(self.directory)!r} to begin again: the "
            "checkpoints are gone then, the workspace is not touched."
        )

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
        kept = entries[-MAX_CHECKPOINTS:]
        ends = [entry.end for entry in kept if entry.end is not None]
        forget_details(git, [*(entry.begin for entry in kept), *ends])
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
                git = Git(self.directory / "files.git", self.workspace)
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
        place = Path(os.fsdecode(error.filename or self.directory))
        if not place.is_relative_to(self.directory):
            return CheckpointError(
                f"A checkpoint of {str(self.workspace)!r} failed at {str(place)!r}: {reason}."
            )
        advice = "Free space there" if error.errno in _FULL else "Make that folder writable"
        return CheckpointError(
            f"Checkpoints of {str(self.workspace)!r} cannot be kept in {str(self.directory)!r}: "
            f"{reason}. {advice}, or set XDG_STATE_HOME to another place."
        )


_FULL = (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC))


def _is_file(state: State | None) -> bool:
    return state is not None and state.kind == "file"


def default_directory(workspace: Path) -> Path:
    """Where the checkpoints of a workspace are kept, which need not exist."""
    name = hashlib.sha256(os.fsencode(workspace)).hexdigest()[:16]
    return state_home() / "checkpoints" / name


def _read(fields: dict[str, Any]) -> Checkpoint:
    end = fields["end"]
    return Checkpoint(
        **{
            **fields,
            "begin": Snapshot(*fields["begin"]),
            "end": None if end is None else Snapshot(*end),
        }
    )


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
