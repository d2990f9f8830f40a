"""Unpacking of an uploaded zip file, which may be hostile.

Nothing is written outside of the destination or beyond the limit. Members are unpacked into a
staging directory first, so a failure changes nothing. All directories are opened one below the
other, so that a link that another process puts there meanwhile is not followed.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from oh_jupyter.errors import StorePathError, TransferError, TransferTooLargeError
from oh_jupyter.runtime.file_system import check_replaceable
from oh_jupyter.storage.local.directory import Directory, open_directory

_PIECE_BYTES = 1024 * 1024
_MAX_MEMBERS = 100_000

MAX_RATIO = 100
"""Maximum ratio of unpacked to packed size: text seldom reaches 20."""

RATIO_FREE_BYTES = 64 * 1024**2
"""Unpacked size that is allowed whatever the ratio."""

MAX_DISK_SHARE = 0.9
"""Share of the free disk space that one archive may use."""


Own = Callable[[str, int | None], None]
"""Changes the owner of a new file: its path, or its name and its directory's descriptor."""


def unpack(archive: Path, name: str, destination: Path, max_bytes: int, own: Own) -> None:
    """Unpack a zip file and pass new files to ``own``; raise TransferError or OSError."""
    budget = _Budget(name, archive.stat().st_size, max_bytes, shutil.disk_usage(destination).free)
    staging = Path(tempfile.mkdtemp(prefix=".oh_upload_", dir=destination))
    try:
        with (
            zipfile.ZipFile(archive) as opened,
            open_directory(str(destination), ()) as target,
            target.below([staging.name]) as source,
        ):
            members = opened.infolist()
            budget.check(sum(member.file_size for member in members), len(members))
            for member in members:
                _unpack_member(opened, member, source, budget)
            files, directories = _paths(members)
            _check_targets(files, directories, destination)
            _merge(files, directories, source, _Destination(destination, target), own)
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError) as error:
        raise TransferError(f"{name} cannot be unpacked: {error}") from None
    except StorePathError:
        raise TransferError(
            f"{name} was not unpacked as a whole, because a directory became a link meanwhile. "
            "Upload it again"
        ) from None
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
    opened: zipfile.ZipFile, member: zipfile.ZipInfo, staging: Directory, budget: _Budget
) -> None:
    parts = _relative_name(member).parts
    try:
        if member.is_dir():
            staging.below(parts, create=True).close()
            return
        with (
            staging.below(parts[:-1], create=True) as parent,
            opened.open(member) as source,
            parent.open_new(parts[-1]) as sink,
        ):
            while piece := source.read(_PIECE_BYTES):
                budget.spend(len(piece))
                sink.write(piece)
            mode = stat.S_IMODE(member.external_attr >> 16)
            if mode & stat.S_IXUSR and os.chmod in os.supports_fd:
                os.chmod(sink.fileno(), os.fstat(sink.fileno()).st_mode | (mode & 0o111))
    except (FileExistsError, NotADirectoryError, IsADirectoryError):
        raise TransferError(
            f"The member {member.filename!r} is a file in one place and a directory in "
            "another; nothing was unpacked"
        ) from None


def _paths(
    members: Iterable[zipfile.ZipInfo],
) -> tuple[list[PurePosixPath], list[PurePosixPath]]:
    """Return the files of an archive, and its directories, outermost first."""
    files: dict[PurePosixPath, None] = {}
    directories: set[PurePosixPath] = set()
    for member in members:
        name = _relative_name(member)
        directories.update(name.parents)
        if member.is_dir():
            directories.add(name)
        else:
            files[name] = None
    return list(files), sorted(directories)


def _check_targets(
    files: Iterable[PurePosixPath], directories: Iterable[PurePosixPath], destination: Path
) -> None:
    """Raise TransferError unless everything can be put into the destination."""
    for directory in directories:
        target = destination / directory
        if target.exists() and not target.is_dir():
            raise TransferError(f"{target} is in the way of a directory; nothing was unpacked")
        _check_inside(target, destination)
    for file in files:
        check_replaceable(destination / file)
        _check_inside((destination / file).parent, destination)


@dataclass(frozen=True)
class _Destination:
    """An open destination, and its path."""

    path: Path
    opened: Directory

    def below(self, name: PurePosixPath, own: Own) -> Directory:
        """Open a directory, made if it is missing; existing links may lead elsewhere in it."""
        root = os.path.realpath(self.path)
        relative = os.path.relpath(os.path.realpath(self.path / name), root)
        segments = [] if relative == "." else relative.split(os.sep)
        if os.pardir in segments:
            raise StorePathError(f"{name} leads out of {root}")
        try:
            return self.opened.below(segments)
        except FileNotFoundError:
            with self.opened.below(segments[:-1], create=True) as parent:
                opened = parent.below(segments[-1:], create=True)
                own(parent.at(segments[-1]), parent.fd)
                return opened


def _merge(
    files: Iterable[PurePosixPath],
    directories: Iterable[PurePosixPath],
    staging: Directory,
    destination: _Destination,
    own: Own,
) -> None:
    """Move everything from the staging directory to the destination."""
    for directory in directories:
        destination.below(directory, own).close()
    for file in files:
        with (
            staging.below(file.parent.parts) as source,
            destination.below(file.parent, own) as target,
        ):
            own(source.at(file.name), source.fd)
            os.replace(
                source.at(file.name), target.at(file.name),
                src_dir_fd=source.fd, dst_dir_fd=target.fd,
            )  # fmt: skip


def _check_inside(directory: Path, destination: Path) -> None:
    """Raise TransferError if an existing link leads out of the destination."""
    if not directory.resolve().is_relative_to(destination.resolve()):
        raise TransferError(
            f"{directory} leads out of the destination {destination}; nothing was unpacked"
        )
