"""The current files on disk, read without following links."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Literal, NamedTuple

Kind = Literal["file", "link", "folder", "unknown"]

_BLOCK_BYTES = 1 << 20


class State(NamedTuple):
    """One path at a moment: its type, permission bits and the id of its contents."""

    kind: Kind
    mode: int = 0
    blob: str = ""


UNKNOWN = State("unknown")
"""Something exists whose contents are not stored."""


@dataclass
class Disk:
    """Everything below a workspace that is not ignored.

    Attributes:
        files: Regular files and links, by path relative to the workspace.
        folders: Permission bits of the directories.
        others: Pipes, sockets, devices and unreadable directories, with the reason.
        repositories: Directories that hold a ``.git``, "." for the workspace.
    """

    files: dict[str, os.stat_result] = field(default_factory=dict)
    folders: dict[str, int] = field(default_factory=dict)
    others: dict[str, str] = field(default_factory=dict)
    repositories: list[str] = field(default_factory=list)


def walk(root: Path, ignored: Iterable[str], is_ours: Callable[[str], bool]) -> Disk:
    """Read everything below a directory, except ignored paths and the product's own state.

    Args:
        root: The workspace.
        ignored: Paths relative to it; those of directories end with a slash.
        is_ours: Returns whether an absolute path is the product's own state.
    """
    disk = Disk()
    skipped = {path.rstrip("/") for path in ignored}
    pending = [""]
    while pending:
        folder = pending.pop()
        try:
            entries = list(os.scandir(os.path.join(root, folder)))
        except FileNotFoundError:
            continue
        except OSError as error:
            disk.others[folder] = error.strerror or "not readable"
            continue
        for entry in entries:
            path = f"{folder}/{entry.name}" if folder else entry.name
            if entry.name == ".git":
                disk.repositories.append(folder or ".")
            elif path not in skipped and not is_ours(entry.path):
                _note(disk, path, entry, pending)
    return disk


def _note(disk: Disk, path: str, entry: os.DirEntry[str], pending: list[str]) -> None:
    try:
        status = entry.stat(follow_symlinks=False)
    except OSError:
        return
    if stat.S_ISDIR(status.st_mode):
        disk.folders[path] = stat.S_IMODE(status.st_mode)
        pending.append(path)
    elif stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode):
        disk.files[path] = status
    else:
        disk.others[path] = "neither a file nor a link"


def look(root: Path, path: str) -> os.stat_result | None:
    """Return the status of a path; None if it does not exist or is behind a link."""
    current = os.fspath(root)
    status = None
    for part in PurePosixPath(path).parts:
        if status is not None and not stat.S_ISDIR(status.st_mode):
            return None
        current = os.path.join(current, part)
        try:
            status = os.lstat(current)
        except OSError:
            return None
    return status


def below(root: Path, folder: str) -> list[str]:
    """Return the files and links below a directory, without repositories' own data."""
    paths = []
    for directory, folders, names in os.walk(root / folder):
        links = [name for name in folders if os.path.islink(os.path.join(directory, name))]
        folders[:] = [name for name in folders if name != ".git"]
        paths += [
            os.path.relpath(os.path.join(directory, name), root)
            for name in (*names, *links)
            if name != ".git"
        ]
    return paths


def is_now(root: Path, path: str, state: State | None) -> bool:
    """Return whether a path has exactly this type, permission bits and contents."""
    status = look(root, path)
    if status is None or state is None:
        return status is None and state is None
    mode = stat.S_IMODE(status.st_mode)
    try:
        if state.kind == "folder":
            return stat.S_ISDIR(status.st_mode)
        if state.kind == "link":
            target = os.fsencode(os.readlink(root / path))
            return stat.S_ISLNK(status.st_mode) and _blob_id([target], len(target)) == state.blob
        if not stat.S_ISREG(status.st_mode) or mode != state.mode:
            return False
        with open(root / path, "rb") as file:
            blocks = iter(lambda: file.read(_BLOCK_BYTES), b"")
            return _blob_id(blocks, status.st_size) == state.blob
    except OSError:
        return False


def _blob_id(blocks: Iterable[bytes], size: int) -> str:
    """Return git's id of these contents."""
    digest = hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)
    for block in blocks:
        digest.update(block)
    return digest.hexdigest()
