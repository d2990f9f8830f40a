"""Unpacking of an uploaded zip file, which may be hostile.

Nothing is written outside of the destination or beyond the limit. Members are unpacked into a
staging directory first, so a failure changes nothing.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from oh_jupyter.containment import is_within
from oh_jupyter.descriptors import NO_LINK, SEARCH, has_paths, open_below, path_of, path_to
from oh_jupyter.errors import TransferError, TransferTooLargeError
from oh_jupyter.runtime.file_rules import check_replaceable

_PIECE_BYTES = 1024 * 1024
_MAX_MEMBERS = 100_000

MAX_RATIO = 100
"""Maximum ratio of unpacked to packed size: text seldom reaches 20."""

RATIO_FREE_BYTES = 64 * 1024**2
"""Unpacked size that is allowed whatever the ratio."""

MAX_DISK_SHARE = 0.9
"""Share of the free disk space that one archive may use."""


Own = Callable[[int], None]
"""Gives a new file or directory, by its descriptor, to the owner of uploads."""


def unpack(archive: Path, name: str, destination: Path, max_bytes: int, own: Own) -> None:
    """Unpack a zip file and pass new files to ``own``; raise TransferError or OSError."""
    budget = _Budget(name, archive.stat().st_size, max_bytes, shutil.disk_usage(destination).free)
    staging = Path(tempfile.mkdtemp(prefix=".oh_upload_", dir=destination))
    try:
        with zipfile.ZipFile(archive) as opened, _held(staging) as held:
            members = opened.infolist()
            budget.check(sum(member.file_size for member in members), len(members))
            layout = _Layout.of(members)
            layout.check(destination)
            for number, member in enumerate(layout.files.values()):
                _unpack_member(opened, member, held / str(number), budget, own)
            layout.put(held, destination, own)
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError) as error:
        raise TransferError(f"{name} cannot be unpacked: {error}") from None
    finally:
        shutil.rmtree(staging, ignore_errors=True)


class _Budget:
    """Bytes that an archive may unpack to, whatever sizes it claims."""

    def __init__(self, name: str, archive_bytes: int, max_bytes: int, disk_bytes: int) -> None:
        allowed_by_ratio = max(RATIO_FREE_BYTES, archive_bytes * MAX_RATIO)
        self._name = name
        self._written_bytes = 0
        self._bounds = (
            (max_bytes, f"{max_bytes / 1024**2:.0f} MiB or {_MAX_MEMBERS} members"),
            (
                allowed_by_ratio,
                f"{MAX_RATIO} times its own size, like archives made to fill disks",
            ),
            (
                int(disk_bytes * MAX_DISK_SHARE),
                f"{MAX_DISK_SHARE:.0%} of the {disk_bytes / 1024**2:.0f} MiB of free disk space",
            ),
        )

    def spend(self, size_bytes: int) -> None:
        """Count bytes before they are written; raise TransferTooLargeError beyond the limit."""
        self._written_bytes += size_bytes
        self.check(self._written_bytes)

    def check(self, size_bytes: int, members: int = 0) -> None:
        """Raise TransferTooLargeError for too large a size or too many members."""
        for bound_bytes, in_words in self._bounds:
            if size_bytes > bound_bytes or members > _MAX_MEMBERS:
                raise TransferTooLargeError(
                    f"{self._name} would unpack to more than {in_words}; nothing was unpacked"
                )


def member_names(archive: Path | IO[bytes], name: str) -> list[PurePosixPath]:
    """Return the relative paths that a zip file unpacks to; raise TransferError if it is bad."""
    try:
        with zipfile.ZipFile(archive) as opened:
            return [_relative_name(member) for member in opened.infolist()]
    except (zipfile.BadZipFile, NotImplementedError, EOFError) as error:
        raise TransferError(f"{name} cannot be unpacked: {error}") from None


def _relative_name(member: zipfile.ZipInfo) -> PurePosixPath:
    name = PurePosixPath(member.filename.replace("\\", "/"))
    if name.is_absolute() or ".." in name.parts or not name.parts or "\0" in member.filename:
        raise TransferError(
            f"The member {member.filename!r} would be written outside of the destination; "
            "nothing was unpacked"
        )
    return name


@dataclass(frozen=True)
class _Layout:
    """Contents of an archive by their relative paths.

    Attributes:
        directories: The directories, parents first.
        files: The last member of each path.
    """

    directories: list[PurePosixPath]
    files: dict[PurePosixPath, zipfile.ZipInfo]

    @classmethod
    def of(cls, members: Iterable[zipfile.ZipInfo]) -> _Layout:
        """Return the layout of members; raise TransferError if two cannot both exist."""
        files: dict[PurePosixPath, zipfile.ZipInfo] = {}
        directories: set[PurePosixPath] = set()
        for member in members:
            path = _relative_name(member)
            directories.update(path.parents if not member.is_dir() else (path, *path.parents))
            if not member.is_dir():
                files[path] = member
        if both := directories & files.keys():
            raise TransferError(
                f"The member {str(min(both))!r} is a file in one place and a directory in "
                "another; nothing was unpacked"
            )
        return cls(sorted(directories - {PurePosixPath()}), files)

    def check(self, destination: Path) -> None:
        """Raise TransferError unless the destination has room for every path."""
        root = os.path.realpath(destination)
        for path in self.directories:
            target = destination / path
            if target.exists() and not target.is_dir():
                raise TransferError(f"{target} is in the way of a directory; nothing was unpacked")
            _check_inside(os.path.realpath(target), root, target)
        for path in self.files:
            check_replaceable(destination / path)

    def put(self, staging: Path, destination: Path, own: Own) -> None:
        """Move the numbered files of a staging directory to the destination."""
        root = os.path.realpath(destination)
        for path in self.directories:
            if not (destination / path).is_dir():
                with _held(destination / path.parent, root) as directory:
                    _make_directory(directory / path.name, own)
        for number, path in enumerate(self.files):
            with _held(destination / path.parent, root) as directory:
                check_replaceable(directory / path.name)
                os.replace(staging / str(number), directory / path.name)


def _unpack_member(
    opened: zipfile.ZipFile, member: zipfile.ZipInfo, target: Path, budget: _Budget, own: Own
) -> None:
    mode = 0o666 | (stat.S_IMODE(member.external_attr >> 16) & 0o111)
    if not mode & stat.S_IXUSR:
        mode = 0o666
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | NO_LINK | getattr(os, "O_BINARY", 0)
    with opened.open(member) as source, open(os.open(target, flags, mode), "wb") as sink:
        while piece := source.read(_PIECE_BYTES):
            budget.spend(len(piece))
            sink.write(piece)
        own(sink.fileno())


def _make_directory(path: Path, own: Own) -> None:
    if not has_paths():
        path.mkdir(exist_ok=True)
        return
    parent = os.open(path.parent, SEARCH)
    try:
        os.close(open_below(parent, [path.name], created=own))
    finally:
        os.close(parent)


@contextmanager
def _held(directory: Path, root: str | None = None) -> Iterator[Path]:
    """Yield a path that leads to a directory whatever becomes of its name.

    Raises TransferError if it is outside of a root.
    """
    if not has_paths():
        _check_inside(os.path.realpath(directory), root, directory)
        yield directory
        return
    descriptor = os.open(directory, SEARCH | (NO_LINK if root is None else 0))
    try:
        _check_inside(path_of(descriptor), root, directory)
        yield path_to(descriptor)
    finally:
        os.close(descriptor)


def _check_inside(real: str, root: str | None, directory: Path) -> None:
    """Raise TransferError if a directory is outside of a root, to which a link can lead."""
    if root is not None and not is_within(real, root):
        raise TransferError(
            f"{directory} leads out of the destination {root}; nothing was unpacked"
        )
