"""The plan of a rewind: three versions of each path reconciled, so that others lose nothing.

The versions are the path before an agent's change, after it, and now. Only a path that is exactly
as the agent left it (type, permission bits, contents) is the agent's, and is restored. Everything
else on disk belongs to others: it stays, and is listed as kept with the reason.
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Literal, NamedTuple

from oh_jupyter.checkpoints.disk import UNKNOWN, State, below, is_now, look
from oh_jupyter.checkpoints.git import Git, read_blobs
from oh_jupyter.checkpoints.snapshot import Snapshot, changes, states
from oh_jupyter.checkpoints.steps import Author, Write
from oh_jupyter.checkpoints.variables.change import VariableChange

Kind = Literal["create", "restore", "merge", "delete", "permissions"]


@dataclass(frozen=True)
class PathChange:
    """One path in a rewind.

    Attributes:
        path: Relative to the workspace.
        kind: ``create`` (it was deleted since), ``restore`` (its contents), ``merge`` (the turn's
            changes are undone, later ones of others stay), ``delete`` (it was created since) or
            ``permissions``.
        mode: New permission bits; None if there will be no file.
        before: Its current state.
        after: Its state after the rewind.
    """

    path: str
    kind: Kind
    mode: int | None = None
    before: State | None = None
    after: State | None = None


@dataclass(frozen=True, repr=False)
class RewindPlan:
    """The changes of a rewind, planned or done.

    Attributes:
        changes: One for each path, in the order of paths.
        kept: Paths that stay, because others changed them or their contents are not stored, with
            the reason.
        make_directories: Directories to make.
        remove_directories: Directories to remove, which are empty by then.
        notes: Other things that were not restored, each a sentence.
        directory_modes: Permission bits of the directories to make.
        variables: One row for each variable that the turns or the rewind touched, by name.
    """

    changes: list[PathChange] = field(default_factory=list)
    kept: dict[str, str] = field(default_factory=dict)
    make_directories: list[str] = field(default_factory=list)
    remove_directories: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    directory_modes: dict[str, int] = field(default_factory=dict)
    variables: list[VariableChange] = field(default_factory=list)

    def __bool__(self) -> bool:
        """Whether there is anything to do."""
        directories = self.make_directories or self.remove_directories
        return bool(self.changes or directories or any(self.variables))

    def results(self) -> dict[str, State | None]:
        """Return the future state of each path, in the order in which ``apply`` changes them."""
        removed = (change.path for change in reversed(self.changes) if change.after is None)
        results: dict[str, State | None] = dict.fromkeys([*removed, *self.remove_directories])
        for path in self.make_directories:
            results[path] = State("folder", self.directory_modes.get(path, 0o755))
        for written in self.writes_by_blob().values():
            results |= {change.path: change.after for change in written}
        modes = (change for change in self.changes if change.kind == "permissions")
        return results | {change.path: change.after for change in modes}

    def writes_by_blob(self) -> dict[str, list[PathChange]]:
        """Return the changes that write contents, by the id of these."""
        by_blob: dict[str, list[PathChange]] = {}
        for change in self.changes:
            if change.after is not None and change.kind != "permissions":
                by_blob.setdefault(change.after.blob, []).append(change)
        return by_blob

    def writes(self, turn: int, folder_modes: Mapping[str, int]) -> list[Write]:
        """Return the changes as a rewind's writes, given the modes of directories to remove."""
        old: dict[str, State | None] = {
            path: State("folder", folder_modes.get(path, 0o755)) for path in self.remove_directories
        }
        old |= {each.path: each.before for each in self.changes if each.path not in old}
        return [
            Write(path, old.get(path), new, "rewind", turn=turn)
            for path, new in self.results().items()
        ]

    def __repr__(self) -> str:
        """One line for each path and each variable."""
        lines = [f"{change.kind:12}{change.path}" for change in self.changes]
        lines += [f"{'keep':12}{path}  ({reason})" for path, reason in self.kept.items()]
        lines += [f"{'mkdir':12}{path}" for path in self.make_directories]
        lines += [f"{'rmdir':12}{path}" for path in self.remove_directories]
        lines += map(str, self.variables)
        lines = lines or ["No agent changes since this checkpoint; nothing to undo."]
        return "\n".join([*lines, *self.notes])


CHANGED_BY_OTHERS = "changed by others since, where the turn changed it, too"
CHANGED_BY_OTHERS_MEANWHILE = "changed by others during the turn"
NOT_IN_CHECKPOINT = "is not kept by checkpoints: "
NOT_AT_BEGIN = "was not in the checkpoint when the turn began: "
HOLDS_OTHERS = "holds what is not the turn's"


class Undo(NamedTuple):
    """A change to undo, of one write or of several of the same kind in a row.

    Attributes:
        path: Relative to the workspace.
        old: Its state before.
        new: Its state after.
        reason: Why the old contents are not stored, "" if they are.
        is_rewind: Whether a rewind made it.
    """

    path: str
    old: State | None
    new: State | None
    reason: str = ""
    is_rewind: bool = False


def joined_writes(writes: Iterable[Write]) -> list[Undo]:
    """Join the writes of each path between which nobody else changed it, in the order of time."""
    chains: dict[str, list[Undo]] = {}
    for write in writes:
        chain = chains.setdefault(write.path, [])
        is_rewind = write.author == "rewind"
        last = chain[-1] if chain else None
        if last is not None and last.new == write.old and last.is_rewind == is_rewind:
            chain[-1] = last._replace(new=write.new)
        else:
            chain.append(Undo(write.path, write.old, write.new, write.reason, is_rewind))
    return [undo for chain in chains.values() for undo in chain if undo.old != undo.new]


@dataclass
class _Planner:
    """The wanted and the current states of paths."""

    git: Git
    now: Snapshot
    only: str | None = None
    present: dict[str, State] = field(default_factory=dict)
    wanted: dict[str, State | None] = field(default_factory=dict)
    kept: dict[str, str] = field(default_factory=dict)
    merged: set[str] = field(default_factory=set)
    missing: list[str] = field(default_factory=list)
    done: set[str] = field(default_factory=set)
    folder_modes: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.present = states(self.git, self.now)
        self.outside = self.now.details

    def here(self, path: str) -> State | None:
        """Return the current state; unknown if no checkpoint stores the file."""
        if path in self.present:
            return self.present[path]
        status = look(self.git.work_tree, path)
        if status is None:
            return None
        is_folder = stat.S_ISDIR(status.st_mode)
        return State("folder", stat.S_IMODE(status.st_mode)) if is_folder else UNKNOWN

    def final(self, path: str) -> State | None:
        """Return the state of a path after the rewind."""
        return self.here(path) if path in self.kept else self.wanted.get(path, self.here(path))

    def keep(self, path: str, reason: str) -> None:
        self.kept.setdefault(path, reason)
        self.wanted.pop(path, None)

    def keep_others(self, path: str) -> None:
        """Leave a path as others changed it, even if an agent has overwritten or removed that."""
        if path in self.wanted:
            self.done.add(path)
        else:
            self.keep(path, CHANGED_BY_OTHERS)

    def keep_unknown(self, path: str) -> None:
        """Keep a file that no checkpoint stores."""
        covering = self.outside.covering(path)
        reason = self.outside.outside.get(covering, "made since the files were read")
        self.keep(path, NOT_IN_CHECKPOINT + reason)

    def undo(self, undo: Undo) -> None:
        """Want the state before a change, if the path is as the change left it."""
        path, old, new, _, is_rewind = undo
        current = self.wanted[path] if path in self.wanted else self.here(path)
        if is_rewind and current is None and _is_replacement(old, new):
            current = new  # a rewind was killed between the removal and the creation
        if path in self.kept or path in self.done or current == old:
            return
        if current == UNKNOWN and is_now(self.git.work_tree, path, new):
            self.wanted[path] = old  # such as a large file that a rewind restored
            self.missing.append(path)
        elif current == UNKNOWN:
            if not is_now(self.git.work_tree, path, old):
                self.keep_unknown(path)
        elif current == new or (current is None and new == UNKNOWN):
            self.wanted[path] = old
        elif current is not None and old is not None and new is not None:
            self._reconcile(path, old, current, new)
        elif _is_folder(current) and _is_folder(old):
            pass  # another program created the directory
        elif current is not None or old is not None:
            self.keep_others(path)

    def _reconcile(self, path: str, old: State, current: State, new: State) -> None:
        if not old.kind == current.kind == new.kind or current.kind not in ("file", "folder"):
            self.keep_others(path)
            return
        mode = old.mode if current.mode == new.mode else current.mode
        blob: str | None = current.blob
        if current.blob == new.blob:
            blob = old.blob
        elif new.blob != old.blob != current.blob:
            blob = _merge(self.git, base=new.blob, ours=current.blob, theirs=old.blob)
            self.merged.add(path)
        if blob is None:
            self.keep_others(path)
        else:
            self.wanted[path] = State(current.kind, mode, blob)

    def unknown(self) -> list[str]:
        """Return the obstructing files whose contents are not stored yet."""
        paths = []
        for path, after in self.wanted.items():
            before = self.here(path)
            if before == UNKNOWN:
                paths.append(path)
            elif _is_folder(before) and after is not None and not _is_folder(after):
                inner = below(self.git.work_tree, path)
                paths += [each for each in inner if each not in self.present]
        return paths

    def plan(self) -> RewindPlan:
        """Drop harmful changes and return the rest."""
        for path in sorted(self.wanted):
            if self.here(path) == UNKNOWN and self.wanted[path] != UNKNOWN:
                self.keep_unknown(path)
        if self.only is not None:
            self._restrict()
        for path in sorted(self.wanted):
            if self.wanted[path] is not None:
                self._make_way(path)
        self._keep_full_folders()
        return self._collected()

    def _restrict(self) -> None:
        """Want only one file, and its directories."""
        parents = {parent.as_posix() for parent in PurePosixPath(str(self.only)).parents}
        for path in list(self.wanted):
            is_parent = path in parents and _is_folder(self.wanted[path] or self.here(path))
            if path != self.only and not is_parent:
                del self.wanted[path]
        if self.wanted.get(str(self.only)) is None:  # a deleted file needs no directory
            for path in [p for p in self.wanted if p != self.only and self.wanted[p] is not None]:
                del self.wanted[path]
        self.kept = {path: why for path, why in self.kept.items() if path == self.only}

    def _make_way(self, path: str) -> None:
        """Require a path's parent directories; keep the path if others obstruct one."""
        for parent in reversed(PurePosixPath(path).parents):
            name = parent.as_posix()
            if name == ".":
                continue
            state = self.final(name)
            if state is None and (name not in self.kept):
                self.wanted[name] = State("folder", self.folder_modes.get(name, 0o755))
            elif not _is_folder(state):
                self.keep(path, f"{name!r} was created there by others")
                return

    def _keep_full_folders(self) -> None:
        """Keep directories that will not be empty, innermost first."""
        needed = {
            parent.as_posix()
            for path, after in self.wanted.items()
            if after is not None
            for parent in PurePosixPath(path).parents
        }
        stay: set[str] = set()
        for path in sorted(self.wanted, reverse=True):
            after = self.wanted[path]
            if not _is_folder(self.here(path)) or _is_folder(after):
                continue
            left = [name for name in self._inside(path) if not self._is_removed(name)]
            if left or (path in needed and after is None):
                if after is not None or not left or any(name not in stay for name in left):
                    self.keep(path, HOLDS_OTHERS)
                self.wanted.pop(path, None)
                stay.add(path)

    def _inside(self, path: str) -> list[str]:
        try:
            return [f"{path}/{name}" for name in os.listdir(self.git.work_tree / path)]
        except OSError:
            return []

    def _is_removed(self, path: str) -> bool:
        return path in self.wanted and self.wanted[path] is None and path not in self.kept

    def _collected(self) -> RewindPlan:
        path_changes, make, remove = [], [], []
        modes: dict[str, int] = {}
        for path, after in sorted(self.wanted.items()):
            before = self.here(path)
            if before == after or path in self.kept:
                continue
            if _is_folder(before) and not _is_folder(after):
                remove.append(path)
                before = None
            if after is not None and _is_folder(after) and not _is_folder(before):
                make.append(path)
                modes[path] = after.mode
                after = None
            if before != after:
                kind = _kind(before, after, path in self.merged)
                mode = after.mode if after is not None and after.kind != "link" else None
                path_changes.append(PathChange(path, kind, mode, before, after))
        in_order = dict(sorted(self.kept.items()))
        return RewindPlan(path_changes, in_order, make, remove[::-1], [], modes)


def plan_undo(
    git: Git, now: Snapshot, target: Snapshot, writes: Sequence[Write], only: str | None = None
) -> tuple[RewindPlan, list[str]]:
    """Plan to undo agents' writes since a moment, from the last to the first; others' stay.

    Writes of which it cannot be decided who made them stay, unless their path is the only one.

    Returns:
        The plan, and the files that must be saved before it can be complete.
    """
    planner = _Planner(git, now, only)
    planner.folder_modes = target.details.folders
    for path in _removed_again(writes):
        planner.keep(path, CHANGED_BY_OTHERS)
    authors = {"agent", "rewind"} | ({"unsure"} if only is not None else set())
    for undo in reversed(joined_writes(each for each in writes if each.author in authors)):
        if undo.old != UNKNOWN:
            planner.undo(undo)
        elif planner.final(undo.path) is not None:
            planner.keep(undo.path, NOT_AT_BEGIN + undo.reason)
    doubts = [] if "unsure" in authors else _writes_of("unsure", writes)
    for undo in doubts:
        if undo.path not in planner.wanted:
            planner.keep(undo.path, undo.reason)
    for undo in _writes_of("others", writes):
        is_folder = _is_folder(undo.old or undo.new) and _is_folder(undo.new or undo.old)
        if undo.path not in planner.wanted and not is_folder:
            planner.keep(undo.path, CHANGED_BY_OTHERS_MEANWHILE)
    plan = _with_notes(git, planner.plan(), target, now)
    plan.notes.extend(
        f"{undo.path} does not return to its state at the checkpoint: {undo.reason}. A rewind "
        "with --everything restores it."
        for undo in doubts
        if undo.path not in plan.kept
    )
    return plan, planner.missing


def _removed_again(writes: Sequence[Write]) -> set[str]:
    """Return the paths that others removed last, after an agent had removed what was there."""
    removed: dict[str, str] = {}
    again: set[str] = set()
    for write in writes:
        if write.author != "others":
            again.discard(write.path)
            removed[write.path] = write.recorder if write.new is None else ""
        # Another process may see the agent's removal later, and as that of others.
        elif removed.get(write.path) == write.recorder:
            (again.add if write.new is None else again.discard)(write.path)
    return again


def _writes_of(author: Author, writes: Iterable[Write]) -> list[Undo]:
    """Return the writes of others, or of an unknown author, during turns."""
    return joined_writes(each for each in writes if each.author == author and each.turn)


def plan_exact(
    git: Git, now: Snapshot, target: Snapshot, only: str | None = None
) -> tuple[RewindPlan, list[str]]:
    """Plan to restore everything to a moment, including others' changes since.

    Returns:
        The plan, and the files that must be saved before it can be complete.
    """
    planner = _Planner(git, now, only)
    then = target.details
    planner.folder_modes = then.folders
    for path, (_, after) in changes(git, now, target).items():
        covering = then.covering(path) if after is None else ""
        if covering:
            planner.keep(path, NOT_AT_BEGIN + then.outside[covering])
        else:
            planner.wanted[path] = after
    if only is not None:
        planner._restrict()
    unknown = planner.unknown()
    return _with_notes(git, planner.plan(), target, now), unknown


def _with_notes(git: Git, plan: RewindPlan, target: Snapshot, now: Snapshot) -> RewindPlan:
    """Add notes on what changed since a moment and checkpoints do not restore."""
    before, after = target.details, now.details
    results = plan.results()
    if repositories := _changed(before.repositories, after.repositories):
        names = ", ".join(sorted(repositories)[:5])
        plan.notes.append(
            f"Commits, branches and the index of git repositories do not come back ({names})."
        )
    attributes = {}
    for path in _changed(before.special, after.special) - plan.kept.keys():
        remains = results[path] if path in results else look(git.work_tree, path)
        if remains is not None:
            attributes[path] = before.special.get(path) or after.special[path]
    for path, attribute in sorted(attributes.items())[:5]:
        plan.notes.append(f"{path} does not get its {attribute} back.")
    return plan


def _changed(before: Mapping[str, str], after: Mapping[str, str]) -> set[str]:
    return {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}


def _kind(before: State | None, after: State | None, is_merged: bool) -> Kind:
    if after is None:
        return "delete"
    if before is None:
        return "create"
    if (before.kind, before.blob) == (after.kind, after.blob):
        return "permissions"
    return "merge" if is_merged else "restore"


def _is_replacement(old: State | None, new: State | None) -> bool:
    """Return whether a directory was replaced by something else, or the reverse."""
    return old is not None and new is not None and _is_folder(old) != _is_folder(new)


def _is_folder(state: State | None) -> bool:
    return state is not None and state.kind == "folder"


def _merge(git: Git, *, base: str, ours: str, theirs: str) -> str | None:
    """Reconcile three versions of a text in one blob; None if that is impossible."""
    blobs = read_blobs(git, (base, ours, theirs))
    contents = [blobs[id] for id in (ours, base, theirs)]
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
    return git("hash-object", "-w", "--stdin", "--no-filters", data=merged.stdout).decode().strip()
