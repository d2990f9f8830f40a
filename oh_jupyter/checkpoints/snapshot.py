"""The files of a workspace at a moment, as a tree in a git repository beside it."""

from __future__ import annotations

import os
import stat
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from oh_jupyter.checkpoints.git import Git, joined, split
from oh_jupyter.errors import CheckpointError

_MAX_LEFT_OUT = 1000
_FIRST_PACK = 500
"""As many new files at once go into one pack; a file of its own for each takes longer."""


class Entry(NamedTuple):
    """A file or link in a tree: its mode as git has it, and the id of its contents."""

    mode: str
    blob: str

    @property
    def is_file(self) -> bool:
        """Whether it is neither a link nor a repository."""
        return self.mode.startswith("100")


@dataclass(frozen=True)
class Snapshot:
    """The files of a workspace at a moment.

    Attributes:
        tree: Id of the tree in the repository.
        file_mode: Permission bits of most files.
        program_mode: Permission bits of most files that can be executed.
        modes: Permission bits of the others, by path.
        empty: Directories without a file.
        left_out: Files that are not kept, with the reason: too large, or not readable.
    """

    tree: str
    file_mode: int = 0o644
    program_mode: int = 0o755
    modes: dict[str, int] = field(default_factory=dict)
    empty: list[str] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)

    def permissions(self, path: str, entry: Entry) -> int:
        """Permission bits of a file of this snapshot."""
        usual = self.program_mode if entry.mode == "100755" else self.file_mode
        return self.modes.get(path, usual)


@dataclass(frozen=True)
class Limits:
    """Beyond which sizes a workspace is not kept.

    Attributes:
        file_bytes: Size of a file that is left out.
        files: Number of files in the workspace.
        total_bytes: Size of what one snapshot adds.
    """

    file_bytes: int = 10 << 20
    files: int = 100_000
    total_bytes: int = 512 << 20


def take(git: Git, limits: Limits) -> Snapshot:
    """Keep the files as they are now; what did not change costs a ``stat``. A CheckpointError."""
    changed, removed, left_out = _changed(git, limits)
    if changed or removed:
        options = {"core.bigFileThreshold": "1"} if len(changed) > _FIRST_PACK else {}
        git("update-index", "--force-remove", "-z", "--stdin", data=joined(removed))
        git(
            *("update-index", "--add", "--remove", "--replace", "-z", "--stdin"),
            data=joined(changed),
            options=options,
        )
    tree = git("write-tree").decode().strip()
    tracked = split(git("ls-files", "-z"))
    if len(tracked) > limits.files:
        raise _too_many(git.work_tree, len(tracked), limits)
    file_mode, program_mode, modes = _permissions(git.work_tree, tracked)
    return Snapshot(tree, file_mode, program_mode, modes, _empty(git), left_out)


def differences(git: Git, before: str, after: str) -> dict[str, tuple[Entry | None, Entry | None]]:
    """What differs between two trees: for each path the entry before, and the one after."""
    if before == after:
        return {}
    fields = split(git("diff-tree", "-r", "-z", "--no-renames", before, after))
    found = {}
    for about, path in zip(fields[::2], fields[1::2], strict=True):
        mode_before, mode_after, blob_before, blob_after, _ = about[1:].split()
        found[path] = (_entry(mode_before, blob_before), _entry(mode_after, blob_after))
    return found


def _entry(mode: str, blob: str) -> Entry | None:
    return None if mode == "000000" else Entry(mode, blob)


def _changed(git: Git, limits: Limits) -> tuple[list[str], list[str], dict[str, str]]:
    """Paths whose contents are to be kept, those to be forgotten, and those left out."""
    paths = _listed(git)
    if len(paths) > limits.files:
        raise _too_many(git.work_tree, len(paths), limits)
    changed: list[str] = []
    removed: list[str] = []
    left_out: dict[str, str] = {}
    links: dict[str, bool] = {}
    total = 0
    for path in paths:
        full = os.path.join(git.work_tree, path)
        if _is_behind_link(git.work_tree, os.path.dirname(path), links):
            removed.append(path)  # its folder was replaced by a link
            continue
        try:
            status = os.lstat(full)
        except OSError:
            changed.append(path)  # it is gone
            continue
        reason = ""
        if stat.S_ISREG(status.st_mode):
            if status.st_size > limits.file_bytes:
                reason = f"larger than {limits.file_bytes / 2**20:g} MB"
            elif not os.access(full, os.R_OK):
                reason = "not readable"
        elif not stat.S_ISLNK(status.st_mode):
            removed.append(path)  # a directory or a pipe, where a file was
            continue
        if reason:
            removed.append(path)
            if len(left_out) < _MAX_LEFT_OUT:
                left_out[path] = reason
        else:
            changed.append(path)
            total += status.st_size
    if total > limits.total_bytes:
        raise CheckpointError(
            f"A checkpoint of {str(git.work_tree)!r} would copy {total / 2**20:.0f} MB, more than "
            f"{limits.total_bytes / 2**20:.0f} MB; leave data out by a .gitignore there."
        )
    return changed, removed, left_out


def _is_behind_link(work_tree: Path, directory: str, known: dict[str, bool]) -> bool:
    """Whether a directory of the workspace is a link, or lies behind one."""
    if not directory:
        return False
    if directory not in known:
        known[directory] = _is_behind_link(
            work_tree, os.path.dirname(directory), known
        ) or os.path.islink(os.path.join(work_tree, directory))
    return known[directory]


def _listed(git: Git) -> list[str]:
    """What is new, changed or gone since the index was written; within repositories, too."""
    seen: set[str] = set()
    while True:
        paths = split(git("ls-files", "-z", "-o", "-m", "--exclude-standard"))
        # A repository within the workspace is listed as a folder, until a file of it is known.
        inner = [path for path in paths if path.endswith("/") and path not in seen]
        first = [file for folder in inner if (file := _any_file(git.work_tree, folder))]
        if not first:
            return list(dict.fromkeys(path for path in paths if not path.endswith("/")))
        seen.update(inner)
        git("update-index", "--add", "-z", "--stdin", data=joined(first))


def _any_file(work_tree: Path, folder: str) -> str | None:
    """A small file of a repository within the workspace."""
    for directory, folders, names in os.walk(os.path.join(work_tree, folder)):
        folders[:] = [name for name in folders if name != ".git"]
        for name in names:
            path = os.path.join(directory, name)
            if name != ".git" and os.path.isfile(path) and os.access(path, os.R_OK):
                return os.path.relpath(path, work_tree)
    return None


def _permissions(work_tree: Path, paths: Iterable[str]) -> tuple[int, int, dict[str, int]]:
    """The permission bits that most files and most programs have, and those of the others."""
    found: dict[str, int] = {}
    for path in paths:
        try:
            status = os.lstat(os.path.join(work_tree, path))
        except OSError:
            continue
        if stat.S_ISREG(status.st_mode):
            found[path] = stat.S_IMODE(status.st_mode)
    files = Counter(mode for mode in found.values() if not mode & 0o100)
    programs = Counter(mode for mode in found.values() if mode & 0o100)
    usual_file = files.most_common(1)[0][0] if files else 0o644
    usual_program = programs.most_common(1)[0][0] if programs else 0o755
    usual = {usual_file, usual_program}
    return usual_file, usual_program, {p: m for p, m in found.items() if m not in usual}


def _empty(git: Git) -> list[str]:
    """Directories without a file that is kept, outermost first."""
    outermost = split(git("ls-files", "-z", "-o", "--directory", "--exclude-standard"))
    return list(_directories(git.work_tree, (path for path in outermost if path.endswith("/"))))


def _directories(work_tree: Path, roots: Iterable[str]) -> Iterator[str]:
    for root in roots:
        for directory, folders, names in os.walk(os.path.join(work_tree, root)):
            if names or ".git" in folders:
                folders.clear()
            else:
                yield os.path.relpath(directory, work_tree)


def _too_many(work_tree: Path, count: int, limits: Limits) -> CheckpointError:
    return CheckpointError(
        f"{str(work_tree)!r} has {count} files, more than the {limits.files} of which checkpoints "
        "are made; leave folders out by a .gitignore there, or start in a smaller folder."
    )
