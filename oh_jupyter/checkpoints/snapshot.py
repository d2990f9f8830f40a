"""Snapshots of a workspace's files, as trees in a git repository outside of it."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
import tempfile
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import NamedTuple, TypeVar

from oh_jupyter.checkpoints.disk import Disk, State, look, walk
from oh_jupyter.checkpoints.git import LIST_SECONDS, TIMEOUT_SECONDS, Git, joined, split, too_large
from oh_jupyter.errors import CheckpointError

_T = TypeVar("_T")

_FIRST_PACK = 500
"""Number of new files above which git writes one pack, which is faster than separate files."""

_SEED = ".oh-jupyter-seed"
"""Temporary name in the index that makes git list the files of an inner repository."""

_EMPTY_BLOB = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
_EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"  # built into git
_NO_BLOB = "0" * 40


@dataclass(frozen=True)
class Details:
    """Facts of a snapshot that a git tree does not store.

    Attributes:
        file_mode: Permission bits of most files.
        program_mode: Permission bits of most executable files.
        modes: Permission bits of the other files, by path.
        folders: Permission bits of all directories, by path.
        outside: Existing paths that are not stored, with the reason; a directory, which stands
            for its contents, ends with a slash.
        repositories: Directories of repositories, with a value that changes when git changes them.
        special: Files whose owner or extended attributes cannot be restored.
    """

    file_mode: int = 0o644
    program_mode: int = 0o755
    modes: dict[str, int] = field(default_factory=dict)
    folders: dict[str, int] = field(default_factory=dict)
    outside: dict[str, str] = field(default_factory=dict)
    repositories: dict[str, str] = field(default_factory=dict)
    special: dict[str, str] = field(default_factory=dict)

    def mode(self, path: str, *, is_program: bool) -> int:
        """Return the permission bits of a file of the snapshot."""
        return self.modes.get(path, self.program_mode if is_program else self.file_mode)

    def covering(self, path: str) -> str:
        """Return the entry of ``outside`` that is or contains a path, or ""."""
        for candidate in (path, f"{path}/"):
            if candidate in self.outside:
                return candidate
        for parent in PurePosixPath(path).parents:
            if f"{parent}/" in self.outside:
                return f"{parent}/"
        return ""

    def to_json(self) -> str:
        """Return the details as JSON, the same for equal details."""
        return json.dumps(vars(self), sort_keys=True)

    @staticmethod
    def from_json(text: str) -> Details:
        """Return the details from their JSON."""
        return Details(**json.loads(text))


class Snapshot(NamedTuple):
    """The files of a workspace at a moment: the id of their tree in git, and the rest."""

    tree: str
    details: Details

    def stored(self) -> tuple[StoredSnapshot, str]:
        """Return the names by which the snapshot is stored, and its details as JSON."""
        contents = self.details.to_json()
        digest = hashlib.sha256(contents.encode()).hexdigest()[:32]
        return StoredSnapshot(self.tree, digest), contents


class StoredSnapshot(NamedTuple):
    """A stored snapshot: the id of its tree in git, and the digest of its ``Details``."""

    tree: str
    details: str


@dataclass(frozen=True)
class Limits:
    """Maximum sizes.

    Attributes:
        file_bytes: Size of a stored file.
        files: Number of files in the workspace.
        total_bytes: Size of the changes in one snapshot.
    """

    file_bytes: int = 10 << 20
    files: int = 100_000
    total_bytes: int = 512 << 20


def take(
    git: Git, limits: Limits, *, known: str = "", forced: Collection[str] = frozenset()
) -> Snapshot:
    """Save the current files; an unchanged file costs a ``stat``.

    Args:
        git: The repository.
        limits: Maximum sizes.
        known: Tree of an earlier snapshot, whose files are stored even if they are now ignored.
        forced: Files that are stored whatever their size, and even if they are ignored.

    Raises:
        CheckpointError: The workspace is too large, or git fails.
    """
    wanted = [path for path in forced if _is_readable(git, path)]
    if wanted:
        git("update-index", "--add", "--replace", "-z", "--stdin", data=joined(wanted))
    listed = _list_changed(git)
    if len(listed) > limits.files:
        raise _too_many(git.work_tree, len(listed), limits)
    gone = [path for path in listed if not _is_file(look(git.work_tree, path))]
    if gone:  # otherwise git lists the former contents of ignored directories
        git("update-index", "--force-remove", "-z", "--stdin", data=joined(gone))
    ignored = _list(git, "-o", "-i", "--directory")
    disk = walk(git.work_tree, ignored, git.is_ours)
    remaining = set(listed) - set(gone)
    skipped = _update_index(git, limits, disk, remaining, forced)
    tracked = split(git("ls-files", "-z"))
    if len(tracked) > limits.files:
        raise _too_many(git.work_tree, len(tracked), limits)
    strays = [path for path in tracked if path not in disk.files and path not in forced]
    if strays:  # our own state, or deleted since git listed them
        git("update-index", "--force-remove", "-z", "--stdin", data=joined(strays))
    tree = git("write-tree").decode().strip()
    ignored_again = _newly_ignored(git, limits, known, tree) if known else []
    if ignored_again:
        return take(git, limits, forced={*forced, *ignored_again})
    outside = dict.fromkeys(ignored, "ignored") | skipped
    outside |= {f"{path}/": reason for path, reason in disk.others.items()}
    for path in set(tracked) - set(strays):
        outside.pop(path, None)
    return Snapshot(tree, _details(git, disk, tracked, outside))


def _is_file(status: os.stat_result | None) -> bool:
    """Return whether a status is that of a regular file or a link."""
    return status is not None and (stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode))


def _newly_ignored(git: Git, limits: Limits, known: str, tree: str) -> list[str]:
    """Return files of an earlier tree that exist but are now ignored."""
    paths = []
    for path, (_, after) in differences(git, known, tree).items():
        status = look(git.work_tree, path) if after is None else None
        if (
            status is not None
            and _is_file(status)
            and status.st_size <= limits.file_bytes
            and not git.is_ours(str(git.work_tree / path))
        ):
            paths.append(path)
    return paths


def _list(git: Git, *options: str) -> list[str]:
    # After a first listing, slowness has other reasons, such as a busy machine.
    seconds = TIMEOUT_SECONDS if git.index.exists() else LIST_SECONDS
    return split(git("ls-files", "-z", *options, "--exclude-standard", timeout_seconds=seconds))


def _list_changed(git: Git) -> list[str]:
    """Return new, changed and deleted files since the index was written, including repositories."""
    seen: set[str] = set()
    while True:
        paths = _list(git, "-o", "-m")
        # git lists an inner repository as a folder until the index has a name in it.
        inner = [path for path in paths if path.endswith("/") and path not in seen]
        if not inner:
            return list(dict.fromkeys(path for path in paths if not path.endswith("/")))
        seen.update(inner)
        seeds = joined(f"100644 {_EMPTY_BLOB}\t{folder}{_SEED}" for folder in inner)
        git("update-index", "-z", "--index-info", data=seeds)


def _update_index(
    git: Git, limits: Limits, disk: Disk, listed: set[str], forced: Collection[str]
) -> dict[str, str]:
    """Update the index; return the skipped files with reasons."""
    changed: list[str] = []
    removed: list[str] = []
    skipped: dict[str, str] = {}
    total = 0
    for path in sorted(listed):
        status = disk.files.get(path)
        if path in forced:
            continue
        if status is None:
            removed.append(path)
            continue
        reason = "" if stat.S_ISLNK(status.st_mode) else _reason(git, path, status, limits)
        if reason:
            removed.append(path)
            skipped[path] = reason
        else:
            changed.append(path)
            total += status.st_size
    if total > limits.total_bytes:
        raise too_large(
            f"A checkpoint of {str(git.work_tree)!r} would copy {total / 2**20:.0f} MB, more than "
            f"{limits.total_bytes / 2**20:.0f} MB; exclude data with a .gitignore there."
        )
    if removed:
        git("update-index", "--force-remove", "-z", "--stdin", data=joined(removed))
    if changed:
        git(
            *("update-index", "--add", "--remove", "--replace", "-z", "--stdin"),
            data=joined(changed),
            options={"core.bigFileThreshold": "1"} if len(changed) > _FIRST_PACK else {},
        )
    return skipped


def _reason(git: Git, path: str, status: os.stat_result, limits: Limits) -> str:
    """Return why a file is not stored, or ""."""
    if status.st_size > limits.file_bytes:
        return f"larger than {limits.file_bytes / 2**20:g} MB"
    return "" if os.access(git.work_tree / path, os.R_OK) else "not readable"


def _is_readable(git: Git, path: str) -> bool:
    status = look(git.work_tree, path)
    if status is None or stat.S_ISLNK(status.st_mode):
        return status is not None
    return stat.S_ISREG(status.st_mode) and os.access(git.work_tree / path, os.R_OK)


def _details(git: Git, disk: Disk, tracked: list[str], outside: dict[str, str]) -> Details:
    modes: dict[str, int] = {}
    owners: dict[str, tuple[int, int]] = {}
    special: dict[str, str] = {}
    for path in tracked:
        status = disk.files.get(path) or look(git.work_tree, path)
        if status is None:
            continue
        owners[path] = status.st_uid, status.st_gid
        if stat.S_ISREG(status.st_mode):
            modes[path] = stat.S_IMODE(status.st_mode)
            if _has_attributes(git.work_tree / path):
                special[path] = "extended attributes"
    usual = _most(owners.values(), (0, 0))
    special |= {path: "owner" for path, owner in owners.items() if owner != usual}
    file_mode = _most((mode for mode in modes.values() if not mode & 0o100), 0o644)
    program_mode = _most((mode for mode in modes.values() if mode & 0o100), 0o755)
    others = {path: mode for path, mode in modes.items() if mode not in (file_mode, program_mode)}
    repositories = {
        path: _repository_state(git.work_tree / path / ".git") for path in disk.repositories
    }
    return Details(file_mode, program_mode, others, disk.folders, outside, repositories, special)


def _most(values: Iterable[_T], default: _T) -> _T:
    common = Counter(values).most_common(1)
    return common[0][0] if common else default


def _has_attributes(path: Path) -> bool:
    try:
        return bool(os.listxattr(path, follow_symlinks=False))
    except (OSError, AttributeError):  # not supported here
        return False


def _repository_state(folder: Path) -> str:
    """Return a value that changes when git commits, switches branches or stages files."""
    parts = []
    with contextlib.suppress(OSError):  # of a submodule or a worktree, a file with the folder
        target = folder.read_text(errors="surrogateescape").removeprefix("gitdir:").strip()
        folder = folder.parent / target
    for name in ("HEAD", "index", "logs/HEAD"):
        try:
            parts.append(str(os.stat(folder / name).st_mtime_ns))
        except OSError:
            parts.append("-")
    return " ".join(parts)


class Entry(NamedTuple):
    """A file or link in a tree: its mode in git, and the id of its contents."""

    mode: str
    blob: str


def differences(git: Git, before: str, after: str) -> dict[str, tuple[Entry | None, Entry | None]]:
    """Compare two trees; return the old and the new entry of each different path."""
    if before == after:
        return {}
    fields = split(git("diff-tree", "-r", "-z", "--no-renames", before, after))
    entries = {}
    for header, path in zip(fields[::2], fields[1::2], strict=True):
        mode_before, mode_after, blob_before, blob_after, _ = header[1:].split()
        entries[path] = (_entry(mode_before, blob_before), _entry(mode_after, blob_after))
    return entries


def _entry(mode: str, blob: str) -> Entry | None:
    return None if mode == "000000" else Entry(mode, blob)


def states(git: Git, snapshot: Snapshot) -> dict[str, State]:
    """Return all files, links and directories of a snapshot, by path."""
    details = snapshot.details
    result = {path: State("folder", mode) for path, mode in details.folders.items()}
    for path, (_, entry) in differences(git, _EMPTY_TREE, snapshot.tree).items():
        if entry is not None:
            result[path] = _state(details, path, entry)
    return result


def _state(details: Details, path: str, entry: Entry) -> State:
    if entry.mode == "120000":
        return State("link", 0, entry.blob)
    return State("file", details.mode(path, is_program=entry.mode == "100755"), entry.blob)


Change = tuple[State | None, State | None]


def changes(git: Git, before: Snapshot, after: Snapshot) -> dict[str, Change]:
    """Compare two snapshots; return the old and the new state of each different path."""
    old, new = before.details, after.details
    result: dict[str, Change] = {}
    for path in old.folders.keys() | new.folders.keys():
        if old.folders.get(path) != new.folders.get(path):
            result[path] = (_folder(old, path), _folder(new, path))
    differing = differences(git, before.tree, after.tree)
    for path, (entry_before, entry_after) in differing.items():
        result[path] = (
            _state(old, path, entry_before) if entry_before else _folder(old, path),
            _state(new, path, entry_after) if entry_after else _folder(new, path),
        )
    if _modes_of(old) != _modes_of(new):
        files = states(git, after)
        for path in files.keys() - differing.keys():
            is_program = bool(files[path].mode & 0o100)
            mode = old.mode(path, is_program=is_program)
            if files[path].kind == "file" and mode != files[path].mode:
                result[path] = (files[path]._replace(mode=mode), files[path])
    return result


def _modes_of(details: Details) -> tuple[int, int, dict[str, int]]:
    return details.file_mode, details.program_mode, details.modes


def _folder(details: Details, path: str) -> State | None:
    return State("folder", details.folders[path]) if path in details.folders else None


def with_states(git: Git, snapshot: Snapshot, new: Mapping[str, State | None]) -> Snapshot:
    """Return a copy of a snapshot with other states of these paths."""
    if not new:
        return snapshot
    details = snapshot.details
    modes, folders = dict(details.modes), dict(details.folders)
    lines, gone = [], []
    for path, state in new.items():
        modes.pop(path, None)
        folders.pop(path, None)
        if state is None or state.kind == "folder":
            gone.append(f"0 {_NO_BLOB}\t{path}")
            if state is not None:
                folders[path] = state.mode
            continue
        is_program = bool(state.mode & 0o100)
        lines.append(f"{_git_mode(state)} {state.blob}\t{path}")
        usual = details.program_mode if is_program else details.file_mode
        if state.kind == "file" and usual != state.mode:
            modes[path] = state.mode
    with tempfile.TemporaryDirectory(dir=git.directory) as folder:
        index = Path(folder, "index")
        git("read-tree", snapshot.tree, index=index)
        git("update-index", "-z", "--index-info", data=joined([*gone, *lines]), index=index)
        tree = git("write-tree", index=index).decode().strip()
    fields = {**vars(details), "modes": modes, "folders": folders}
    return Snapshot(tree, Details(**fields))


def _git_mode(state: State) -> str:
    if state.kind == "link":
        return "120000"
    return "100755" if state.mode & 0o100 else "100644"


def _too_many(work_tree: Path, count: int, limits: Limits) -> CheckpointError:
    return too_large(
        f"{str(work_tree)!r} has {count} files, more than the limit of {limits.files} for "
        "checkpoints; exclude folders with a .gitignore there, or start in a smaller folder."
    )
