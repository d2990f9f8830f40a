"""Atomic replacement: a crash or a full disk leaves the old file or the new one."""

from __future__ import annotations

import base64
import errno
import os
import stat
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from oh_jupyter.editor.files.path_guard import open_guarded, pinned


@dataclass(frozen=True)
class Attributes:
    """Mode, owner and extended attributes of a file."""

    mode: int
    owner: tuple[int, int]
    extended: Mapping[str, bytes]

    @classmethod
    def of(cls, path: Path) -> Attributes | None:
        """Return the attributes of a file; None if it does not exist."""
        try:
            info = os.stat(path)
        except OSError:
            return None
        extended: dict[str, bytes] = {}
        if hasattr(os, "listxattr"):
            with suppress(OSError):  # the file system has none
                extended = {name: os.getxattr(path, name) for name in os.listxattr(path)}
        return cls(stat.S_IMODE(info.st_mode), (info.st_uid, info.st_gid), extended)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Attributes:
        """Read attributes from the JSON object of ``to_json``."""
        user, group = data["owner"]
        extended = {name: base64.b64decode(value) for name, value in data["extended"].items()}
        return cls(data["mode"], (user, group), extended)

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object."""
        extended = {
            name: base64.b64encode(value).decode("ascii") for name, value in self.extended.items()
        }
        return {"mode": self.mode, "owner": self.owner, "extended": extended}

    def apply_to(self, path: Path) -> None:
        """Set the attributes of a new file, as far as the system allows."""
        if hasattr(os, "chown"):
            with suppress(OSError):  # only root may change the owner
                os.chown(path, *self.owner)
        for name, value in self.extended.items():
            with suppress(OSError):  # only the system may set some, such as labels
                os.setxattr(path, name, value)
        os.chmod(path, self.mode)


# Errors for a file that cannot be replaced but may be writable: a directory without write
# permission, a mount point, a read-only directory.
_NOT_REPLACEABLE = (errno.EACCES, errno.EPERM, errno.EBUSY, errno.EROFS, errno.EXDEV)
_BINARY = getattr(os, "O_BINARY", 0)
_MIN_READ_BYTES = 4096
_MAX_NAME_BYTES = 200  # of a name in that of its temporary file; systems allow 255 in all


class ConcurrentWriteError(Exception):
    """Someone else wrote the file between reading and writing it."""


class Fingerprint(NamedTuple):
    """Inode, size and time of the last write: every write changes one of them."""

    inode: int
    size: int  # bytes
    mtime_ns: int


def fingerprint_of(path: Path) -> Fingerprint | None:
    """Return the fingerprint of a file; None if it does not exist."""
    try:
        info = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return Fingerprint(info.st_ino, info.st_size, info.st_mtime_ns)


def read(path: Path) -> tuple[bytes, Fingerprint]:
    """Read a whole file, and its fingerprint."""
    descriptor = open_guarded(path, os.O_RDONLY | _BINARY)
    try:
        info = os.fstat(descriptor)
        data = _read_all(descriptor, info.st_size)
    finally:
        os.close(descriptor)
    return data, Fingerprint(info.st_ino, info.st_size, info.st_mtime_ns)


def _read_all(descriptor: int, expected_bytes: int) -> bytes:
    pieces = []
    while piece := os.read(descriptor, max(expected_bytes + 1, _MIN_READ_BYTES)):
        pieces.append(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def read_if_exists(path: Path) -> tuple[bytes | None, Fingerprint | None]:
    """Read a whole file, and its fingerprint; None for both if it does not exist."""
    try:
        return read(path)
    except FileNotFoundError:
        return None, None


def write_new(path: Path, data: bytes) -> None:
    """Write a whole file that nobody needs if this is interrupted."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | _BINARY, 0o666)
    try:
        write_all(descriptor, data)
    finally:
        os.close(descriptor)


def flush(path: Path) -> None:
    """Flush a file to disk."""
    descriptor = os.open(path, os.O_RDWR | _BINARY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def replace(
    path: Path,
    data: bytes,
    *,
    mode: int | None = None,
    attributes: Attributes | None = None,
    tag: str | None = None,
    check: Callable[[], None] = lambda: None,
    is_real: bool = False,
) -> None:
    """Replace a file by a flushed temporary file with the same attributes.

    A file with several hard links, or one that cannot be replaced, is written in place, and
    restored on failure. ``is_real`` says that the path contains no symbolic links.
    """
    with pinned(path if is_real else Path(os.path.realpath(path)), is_real=is_real) as target:
        _replace(path, target, data, mode, attributes, tag, check)


def _replace(
    path: Path,
    target: Path,
    data: bytes,
    mode: int | None,
    attributes: Attributes | None,
    tag: str | None,
    check: Callable[[], None],
) -> None:
    try:
        old = os.stat(target)
    except FileNotFoundError:
        old = None
    if old is not None and not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    if old is not None and old.st_nlink > 1:
        check()
        _write_in_place(target, data)
        return
    temporary = temporary_for(target, tag or os.urandom(6).hex())
    try:
        _rename_over(target, temporary, data, old, mode, attributes, check)
    except OSError as error:
        if old is None or error.errno not in _NOT_REPLACEABLE:
            raise
        check()
        _write_in_place(target, data)


def temporary_for(target: Path, tag: str) -> Path:
    """Return the name of the temporary file of a write: hidden, in the same directory."""
    start = os.fsencode(target.name)[:_MAX_NAME_BYTES].decode("utf-8", "ignore")
    return target.with_name(f".{start}.{tag}.tmp")


def _rename_over(
    target: Path,
    temporary: Path,
    data: bytes,
    old: os.stat_result | None,
    mode: int | None,
    attributes: Attributes | None,
    check: Callable[[], None],
) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY
    # Until the old mode is set, nobody else may read the new content.
    descriptor = os.open(temporary, flags, 0o666 if old is None and attributes is None else 0o600)
    try:
        try:
            write_all(descriptor, data)
            if old is not None:
                _copy_attributes(target, descriptor, temporary, old)
            else:
                if attributes is not None:
                    attributes.apply_to(temporary)
                if mode is not None:
                    os.chmod(temporary, mode)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        check()
        os.replace(temporary, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise


def write_all(descriptor: int, data: bytes) -> None:
    """Write all bytes at the position of an open file."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _copy_attributes(target: Path, descriptor: int, temporary: Path, old: os.stat_result) -> None:
    new = os.fstat(descriptor)
    if (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid) and hasattr(os, "chown"):
        os.chown(temporary, old.st_uid, old.st_gid)  # if this fails, the file is written in place
    if hasattr(os, "listxattr"):
        with suppress(OSError):  # the file system has none
            for name in os.listxattr(target):
                with suppress(OSError):  # only the system may set some, such as labels
                    os.setxattr(temporary, name, os.getxattr(target, name))
    os.chmod(temporary, stat.S_IMODE(old.st_mode))


def _write_in_place(target: Path, data: bytes) -> None:
    with open(open_guarded(target, os.O_RDWR | _BINARY, writes=True), "r+b", buffering=0) as file:
        old = file.readall()
        try:
            _overwrite(file.fileno(), data)
        except OSError:
            _overwrite(file.fileno(), old)
            raise


def _overwrite(descriptor: int, data: bytes) -> None:
    os.lseek(descriptor, 0, os.SEEK_SET)
    write_all(descriptor, data)
    os.ftruncate(descriptor, len(data))
    os.fsync(descriptor)
