"""What of a workspace is undone by a rewind, what others changed since, and the doing of it."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Literal, NamedTuple

from oh_jupyter.checkpoints.git import Git, joined
from oh_jupyter.checkpoints.snapshot import Entry, Snapshot, differences
from oh_jupyter.errors import CheckpointError

Kind = Literal["create", "restore", "merge", "delete", "permissions"]


@dataclass(frozen=True)
class PathChange:
    """What a rewind does with one path.

    Attributes:
        path: Relative to the workspace.
        kind: ``create`` (it was deleted since), ``restore`` (its contents), ``merge`` (the turn's
            changes are undone, later ones of others are kept), ``delete`` (it was made since) or
            ``permissions``.
        mode: Permission bits that it will have; None if there will be no file.
        before: Its entry in the tree of now.
        after: Its entry when it is done.
    """

    path: str
    kind: Kind
    mode: int | None = None
    before: Entry | None = None
    after: Entry | None = None


@dataclass(frozen=True, repr=False)
class RewindPlan:
    """What a rewind will do, or has done.

    Attributes:
        changes: One for each path, in the order of paths.
        kept: Paths that others changed since, so that they stay as they are, with the reason.
        make_directories: Directories to make.
        remove_directories: Directories to remove if they are empty.
        notes: What else did not come back, each a sentence.
    """

    changes: list[PathChange] = field(default_factory=list)
    kept: dict[str, str] = field(default_factory=dict)
    make_directories: list[str] = field(default_factory=list)
    remove_directories: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def __bool__(self) -> bool:
        """Whether there is anything to do."""
        return bool(self.changes or self.make_directories or self.remove_directories)

    def only(self, path: str) -> RewindPlan:
        """What of it is done with one file, and with the directories that this file is in.

        Args:
            path: Relative to the workspace.
        """
        parents = {parent.as_posix() for parent in PurePosixPath(path).parents}
        return RewindPlan(
            [change for change in self.changes if change.path == path],
            {path: self.kept[path]} if path in self.kept else {},
            remove_directories=[each for each in self.remove_directories if each in parents],
            notes=self.notes,
        )

    def __repr__(self) -> str:
        """One line for each path."""
        lines = [f"{change.kind:12}{change.path}" for change in self.changes]
        lines += [f"{'keep':12}{path}  ({reason})" for path, reason in self.kept.items()]
        lines += [f"{'mkdir':12}{path}" for path in self.make_directories]
        lines += [f"{'rmdir':12}{path}" for path in self.remove_directories]
        lines = lines or ["Nothing was changed since by an agent: there is nothing to take back."]
        return "\n".join([*lines, *self.notes])


CHANGED_BY_OTHERS = "changed by others since, where the turn changed it, too"
CHANGED_BY_OTHERS_MEANWHILE = "changed by others during the turn"
NOT_IN_CHECKPOINT = "is not kept by checkpoints: "


class Turn(NamedTuple):
    """What is undone together: the files before and after, and what others changed meanwhile."""

    begin: Snapshot
    end: Snapshot
    others: frozenset[str] = frozenset()


def turn_changes(git: Git, turn: Turn) -> dict[str, tuple[Entry | None, Entry | None]]:
    """The entries before and after a turn of the paths that it changed."""
    found = differences(git, turn.begin.tree, turn.end.tree)
    return {path: change for path, change in found.items() if path not in turn.others}


def plan_exact(git: Git, now: Snapshot, target: Snapshot) -> RewindPlan:
    """Everything back to a moment, whoever changed it since."""
    wanted = {path: after for path, (_, after) in differences(git, now.tree, target.tree).items()}
    return _plan(git, now, _present(git, now), [Turn(target, now)], wanted, set(), {})


def plan_turns(git: Git, now: Snapshot, turns: Sequence[Turn]) -> RewindPlan:
    """The changes of some turns undone, from the last to the first; those of others stay."""
    present = _present(git, now)
    wanted: dict[str, Entry | None] = {}
    merged: set[str] = set()
    kept: dict[str, str] = {}
    for turn in reversed(turns):
        for path, (old, new) in turn_changes(git, turn).items():
            is_there = wanted[path] if path in wanted else present.get(path)
            if is_there == new:
                wanted[path] = old
            elif is_there != old:
                result = _merge(git, base=new, ours=is_there, theirs=old)
                if result is None:
                    kept[path] = CHANGED_BY_OTHERS
                else:
                    wanted[path] = result
                    merged.add(path)
    others = {path for turn in turns for path in turn.others} - wanted.keys()
    kept |= dict.fromkeys(others, CHANGED_BY_OTHERS_MEANWHILE)
    return _plan(git, now, present, turns, wanted, merged, kept)


def _present(git: Git, now: Snapshot) -> dict[str, Entry]:
    entries = differences(git, _EMPTY_TREE, now.tree).items()
    return {path: after for path, (_, after) in entries if after is not None}


_EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"  # git knows it without keeping it


def _plan(
    git: Git,
    now: Snapshot,
    present: dict[str, Entry],
    turns: Sequence[Turn],
    wanted: dict[str, Entry | None],
    merged: set[str],
    kept: dict[str, str],
) -> RewindPlan:
    changes = []
    for path, after in sorted(wanted.items()):
        before = present.get(path)
        if path in kept or before == after:
            continue
        if path in now.left_out:
            kept[path] = NOT_IN_CHECKPOINT + now.left_out[path]
            continue
        mode = None
        if after is not None and after.is_file:
            # Whoever changed the text since may have changed its permissions as well.
            source = now if path in merged else turns[0].begin
            mode = source.permissions(path, after)
        changes.append(PathChange(path, _kind(before, after, path in merged), mode, before, after))
    changed = {change.path for change in changes}
    for path, mode in _permission_changes(git, now, turns, present).items():
        if path not in changed and path not in kept:
            entry = present[path]
            changes.append(PathChange(path, "permissions", mode, entry, entry))
    changes.sort(key=lambda change: change.path)
    return RewindPlan(changes, dict(sorted(kept.items())), *_directory_changes(git, now, turns))


def _kind(before: Entry | None, after: Entry | None, is_merged: bool) -> Kind:
    if after is None:
        return "delete"
    if before is None:
        return "create"
    return "merge" if is_merged else "restore"


def _permission_changes(
    git: Git, now: Snapshot, turns: Sequence[Turn], present: dict[str, Entry]
) -> dict[str, int]:
    """Permission bits that the turns changed and nobody else since, as they were before."""
    wanted: dict[str, int | None] = {}
    for begin, end, others in reversed(turns):
        changed = differences(git, begin.tree, end.tree)
        paths = begin.modes.keys() | end.modes.keys() | changed.keys()
        if (begin.file_mode, begin.program_mode) != (end.file_mode, end.program_mode):
            paths |= _present(git, end).keys()  # those of most files were changed
        for path in paths - others:
            is_there = wanted[path] if path in wanted else _mode(now, path, present.get(path))
            as_it_was = Entry("100755" if is_there and is_there & 0o100 else "100644", "")
            old, new = changed.get(path, (as_it_was, as_it_was))
            before, after = _mode(begin, path, old), _mode(end, path, new)
            if before != after == is_there:
                wanted[path] = before
    return {
        path: mode
        for path, mode in wanted.items()
        if mode is not None
        and path in present
        and mode != _mode(now, path, present[path])
        and bool(mode & 0o100) == (present[path].mode == "100755")
    }


def _mode(snapshot: Snapshot, path: str, entry: Entry | None) -> int | None:
    """Permission bits of a file in a snapshot; None where there is none."""
    return snapshot.permissions(path, entry) if entry is not None and entry.is_file else None


def _merge(
    git: Git, *, base: Entry | None, ours: Entry | None, theirs: Entry | None
) -> Entry | None:
    """Three versions of a text in one; None if they cannot be, or where one is no file."""
    if base is None or ours is None or theirs is None:
        return None
    if not (base.is_file and ours.is_file and theirs.is_file):
        return None
    contents = [git("cat-file", "blob", entry.blob) for entry in (ours, base, theirs)]
    if any(b"\0" in content for content in contents):
        return None
    with tempfile.TemporaryDirectory(dir=git.directory) as folder:
        names = []
        for name, content in zip(("ours", "base", "theirs"), contents, strict=True):
            names.append(os.path.join(folder, name))
            Path(names[-1]).write_bytes(content)
        merged = git.run("merge-file", "-p", "-q", *names)
    if merged.returncode != 0:  # the number of conflicts
        return None
    blob = git("hash-object", "-w", "--stdin", "--no-filters", data=merged.stdout).decode().strip()
    return Entry(ours.mode if theirs.mode == base.mode else theirs.mode, blob)


def _directory_changes(
    git: Git, now: Snapshot, turns: Sequence[Turn]
) -> tuple[list[str], list[str]]:
    """Directories that are gone, outermost first, and those new since, innermost first."""
    there = _directories(git, now)
    wanted = set(there)
    for begin, end, _ in reversed(turns):
        had, has = _directories(git, begin), _directories(git, end)
        wanted = (wanted - (has - had)) | (had - has)
    return sorted(wanted - there), sorted(there - wanted, reverse=True)


def _directories(git: Git, snapshot: Snapshot) -> set[str]:
    output = git("ls-tree", "-r", "-d", "-z", "--name-only", snapshot.tree)
    found = {os.fsdecode(name) for name in output.split(b"\0") if name}
    for path in snapshot.empty:
        found.add(path)
        found |= {parent.as_posix() for parent in PurePosixPath(path).parents}
    return found - {"."}


def apply(git: Git, plan: RewindPlan) -> None:
    """Do what a plan says; a CheckpointError, after which a second call does what is left."""
    root = git.work_tree
    problems = []
    for change in reversed(plan.changes):
        if change.after is None:
            with contextlib.suppress(FileNotFoundError, NotADirectoryError, IsADirectoryError):
                try:
                    os.unlink(root / change.path)
                except PermissionError as problem:
                    problems.append(f"{change.path}: {problem.strerror}")
    for directory in plan.remove_directories:
        with contextlib.suppress(OSError):
            os.rmdir(root / directory)
    written = [c for c in plan.changes if c.after is not None and c.kind != "permissions"]
    for change in written:
        _clear_way(root, change.path)
    _check_out(git, written)
    for directory in plan.make_directories:
        try:
            os.makedirs(root / directory, exist_ok=True)
        except OSError as problem:
            problems.append(f"{directory}: {problem.strerror}")
    for change in plan.changes:
        if change.mode is not None:
            try:
                if stat.S_ISREG(os.lstat(root / change.path).st_mode):
                    os.chmod(root / change.path, change.mode)
            except OSError as problem:
                problems.append(f"{change.path}: {problem.strerror}")
    if problems:
        raise CheckpointError(
            f"Not everything in {str(root)!r} could be brought back: {'; '.join(problems[:5])}. "
            "The rest was; mend these and rewind once more."
        )


def _clear_way(root: Path, path: str) -> None:
    """Remove a file or link where the path needs a directory, and an empty directory there."""
    for parent in reversed(PurePosixPath(path).parents):
        place = root / parent
        if parent.name and (place.is_symlink() or place.is_file()):
            place.unlink()
    with contextlib.suppress(OSError):
        if not (root / path).is_symlink():
            os.rmdir(root / path)
    with contextlib.suppress(OSError):  # git says it better
        os.makedirs((root / path).parent, exist_ok=True)


def _check_out(git: Git, changes: Sequence[PathChange]) -> None:
    if not changes:
        return
    with tempfile.TemporaryDirectory(dir=git.directory) as folder:
        index = Path(folder, "index")
        lines = joined(
            f"{change.after.mode} {change.after.blob}\t{change.path}"
            for change in changes
            if change.after is not None
        )
        git("update-index", "-z", "--index-info", data=lines, index=index)
        git("checkout-index", "--force", "--all", "--quiet", index=index)
