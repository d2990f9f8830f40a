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
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import IO

from oh_jupyter.errors import TransferError, TransferTooLargeError
from oh_jupyter.runtime.file_system import check_replaceable

_PIECE_BYTES = 1024 * 1024
_MAX_MEMBERS = 100_000

MAX_RATIO = 100
"""Maximum ratio of unpacked to packed size: text seldom reaches 20."""

RATIO_FREE_BYTES = 64 * 1024**2
"""Unpacked size that is allowed whatever the ratio."""

MAX_DISK_SHARE = 0.9
"""Share of the free disk space that one archive may use."""


def unpack(
    archive: Path, name: str, destination: Path, max_bytes: int, own: Callable[[Path], None]
) -> None:
    """Unpack a zip file and pass new files to ``own``; raise TransferError or OSError."""
    budget = _Budget(name, archive.stat().st_size, max_bytes, shutil.disk_usage(destination).free)
    staging = Path(tempfile.mkdtemp(prefix=".oh_upload_", dir=destination))
    try:
        with zipfile.ZipFile(archive) as opened:
            members = opened.infolist()
            budget.check(sum(member.file_size for member in members), len(members))
            for member in members:
                _unpack_member(opened, member, staging, budget)
        _merge(staging, destination, own)
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


def _unpack_member(
    opened: zipfile.ZipFile, member: zipfile.ZipInfo, staging: Path, budget: _Budget
) -> None:
    target = staging.joinpath(*_relative_name(member).parts)
    try:
        if member.is_dir():
            target.mkdir(parents=True, exist_ok=True)
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        with opened.open(member) as source, target.open("wb") as sink:
            while piece := source.read(_PIECE_BYTES):
                budget.spend(len(piece))
                sink.write(piece)
    except (FileExistsError, NotADirectoryError, IsADirectoryError):
        raise TransferError(
            f"The member {member.filename!r} is a file in one place and a directory in "
            "another; nothing was unpacked"
        ) from None
    mode = stat.S_IMODE(member.external_attr >> 16)
    if mode & stat.S_IXUSR:
        target.chmod(target.stat().st_mode | (mode & 0o111))


def _merge(staging: Path, destination: Path, own: Callable[[Path], None]) -> None:
    """Move everything from the staging directory to the destination."""
    directories = [Path(parent) for parent, _, _ in os.walk(staging)]
    files = [Path(parent, name) for parent, _, names in os.walk(staging) for name in names]
    for kind, paths in (("directory", directories), ("file", files)):
        for path in paths:
            target = destination / path.relative_to(staging)
            if kind == "file":
                check_replaceable(target)
            elif target.exists() and not target.is_dir():
                raise TransferError(f"{target} is in the way of a directory; nothing was unpacked")
            _check_inside(target if kind == "directory" else target.parent, destination)
    for path in directories:
        target = destination / path.relative_to(staging)
        if not target.exists():
            target.mkdir()
            own(target)
    for path in files:
        own(path)
        os.replace(path, destination / path.relative_to(staging))


def _check_inside(directory: Path, destination: Path) -> None:
    """Raise TransferError if an existing link leads out of the destination."""
    if not directory.resolve().is_relative_to(destination.resolve()):
        raise TransferError(
            f"{directory} leads out of the destination {destination}; nothing was unpacked"
        )
