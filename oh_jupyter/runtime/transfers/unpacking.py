"""Unpacking an uploaded zip file, which may be hostile.

Nothing is written outside of the destination, nothing beyond the limit, and nothing at all
unless everything can be unpacked: members are first unpacked beside their place.
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

from oh_jupyter.errors import TransferError, TransferTooLargeError

__all__ = ["unpack"]

_PIECE_BYTES = 1024 * 1024
_MAX_MEMBERS = 100_000


class _OverLimit(Exception):
    """More is in the archive than may be."""


def unpack(
    archive: Path, name: str, destination: Path, limit: int, own: Callable[[Path], None]
) -> None:
    """Unpack a zip file into a directory; what is there already under a name is replaced.

    Args:
        archive: The zip file.
        name: What to call it in messages.
        destination: The directory, which exists.
        limit: Bytes that its members may have together.
        own: Called with each file and directory that is new, to give it to its owner.

    Raises:
        TransferError: It is no zip file, is damaged or encrypted, or has a member that
            would be written elsewhere.
        TransferTooLargeError: It would need more than the limit.
        OSError: The destination cannot be written.
    """
    staging = Path(tempfile.mkdtemp(prefix=".oh_upload_", dir=destination))
    try:
        with zipfile.ZipFile(archive) as opened:
            members = opened.infolist()
            left = limit if len(members) <= _MAX_MEMBERS else -1
            for member in members:
                # What the archive says of sizes is not trusted.
                left -= _unpack_member(opened, member, staging, left)
        _merge(staging, destination, own)
    except _OverLimit:
        raise TransferTooLargeError(
            f"{name} would unpack to more than {limit / 1024**2:.0f} MiB or {_MAX_MEMBERS} "
            "members; nothing was unpacked"
        ) from None
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError) as problem:
        raise TransferError(f"{name} cannot be unpacked: {problem}") from None
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _unpack_member(
    opened: zipfile.ZipFile, member: zipfile.ZipInfo, staging: Path, left: int
) -> int:
    """Write one member and return its size."""
    if member.file_size > left:
        raise _OverLimit
    name = PurePosixPath(member.filename.replace("\\", "/"))
    if name.is_absolute() or ".." in name.parts or not name.parts or "\0" in member.filename:
        raise TransferError(
            f"The member {member.filename!r} would be written outside of the destination; "
            "nothing was unpacked"
        )
    target = staging.joinpath(*name.parts)
    try:
        if member.is_dir():
            target.mkdir(parents=True, exist_ok=True)
            return 0
        target.parent.mkdir(parents=True, exist_ok=True)
        written = 0
        with opened.open(member) as source, target.open("wb") as sink:
            while piece := source.read(_PIECE_BYTES):
                written += len(piece)
                if written > left:
                    raise _OverLimit
                sink.write(piece)
    except (FileExistsError, NotADirectoryError, IsADirectoryError):
        raise TransferError(
            f"The member {member.filename!r} is a file in one place and a directory in "
            "another; nothing was unpacked"
        ) from None
    mode = stat.S_IMODE(member.external_attr >> 16)
    if mode & stat.S_IXUSR:
        target.chmod(target.stat().st_mode | (mode & 0o111))
    return written


def _merge(staging: Path, destination: Path, own: Callable[[Path], None]) -> None:
    """Move everything to its place."""
    directories = [Path(parent) for parent, _, _ in os.walk(staging)]
    files = [Path(parent, name) for parent, _, names in os.walk(staging) for name in names]
    for kind, paths in (("directory", directories), ("file", files)):
        for path in paths:
            target = destination / path.relative_to(staging)
            if target.exists() and target.is_dir() != (kind == "directory"):
                raise TransferError(f"{target} is in the way of a {kind}; nothing was unpacked")
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
    """A link that is there already may lead elsewhere."""
    if not directory.resolve().is_relative_to(destination.resolve()):
        raise TransferError(
            f"{directory} leads out of the destination {destination}; nothing was unpacked"
        )
