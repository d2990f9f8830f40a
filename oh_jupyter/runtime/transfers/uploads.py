"""Files that arrive in pieces, with the semantics of OpenHands' ``upload_file``.

These functions block; call them in a worker thread.
"""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from oh_jupyter.errors import TransferError, TransferTooLargeError
from oh_jupyter.runtime.file_system import check_replaceable, unwritable
from oh_jupyter.runtime.transfers.unpacking import unpack


@dataclass(frozen=True)
class UploadTarget:
    """The place of an uploaded file.

    Attributes:
        directory: The directory.
        name: The name of the file.
        is_zipped: Whether it is a zip file to unpack.
    """

    directory: Path
    name: str
    is_zipped: bool

    @classmethod
    def parse(
        cls, destination: str, filename: str, *, recursive: bool, exact: bool
    ) -> UploadTarget:
        """Return the target of a request, or raise TransferError; see ``Upload``."""
        if not os.path.isabs(destination):
            raise TransferError("Destination must be an absolute path")
        # Some clients send a path; its last part names the file.
        name = os.path.basename(filename.replace("\\", "/"))
        if name in ("", ".", "..") or "\0" in name or "\0" in destination:
            raise TransferError(f"{filename!r} is not a valid file name")
        is_zipped = name.lower().endswith(".zip") and not exact
        if recursive and not is_zipped:
            raise TransferError("Recursive uploads must be zip files")
        return cls(Path(destination), name, is_zipped)


class Upload:
    """One incoming file, written beside its destination and moved there at the end."""

    def __init__(
        self,
        destination: str,
        filename: str,
        *,
        recursive: bool,
        max_bytes: int,
        owner: tuple[int, int] | None = None,
        exact: bool = False,
        follows: bool = True,
    ) -> None:
        """Create the destination and start; raise TransferError if it is not writable.

        ``exact`` stores a zip file as a file; without ``follows``, a link is replaced itself.
        """
        target = UploadTarget.parse(destination, filename, recursive=recursive, exact=exact)
        self.name, self._zipped, self._directory = target.name, target.is_zipped, target.directory
        self._max_bytes = max_bytes
        self._owner = owner
        self._follows = follows
        self._size = 0
        try:
            make_directory(self._directory, owner)
            if not self._zipped:
                check_replaceable(self._directory / self.name)
            self._part = self._directory / f".oh_upload_{secrets.token_hex(8)}"
            unnamed = _unnamed_file(self._directory)
            # Not tempfile, which would make the file private to its owner.
            self._sink = unnamed or self._part.open("xb")
            self._contents = self._part if unnamed is None else _path_of(unnamed)
        except OSError as error:
            raise unwritable(destination, error) from None

    def write(self, piece: bytes) -> None:
        """Write the next piece; raise TransferError if it is too large or on failure."""
        self._size += len(piece)
        if self._size > self._max_bytes:
            self.abort()
            raise TransferTooLargeError(
                f"{self.name} is larger than {self._max_bytes / 1024**2:.0f} MiB; nothing was kept"
            )
        try:
            self._sink.write(piece)
        except OSError as error:
            self.abort()
            raise unwritable(self.name, error) from None

    def finish(self) -> None:
        """Put the file in place, or unpack it; a TransferError means no change."""
        try:
            self._sink.flush()
            if self._zipped:
                unpack(self._contents, self.name, self._directory, self._max_bytes, self._own)
                return
            target = self._directory / self.name
            if self._follows:  # an upload to a link replaces its target
                target = Path(os.path.realpath(target))
            check_replaceable(target)
            # By the descriptor: another process could replace the file by a link.
            open_file = self._sink.fileno() if os.chmod in os.supports_fd else self._part
            if target.exists():
                os.chmod(open_file, target.stat().st_mode & 0o7777)
            if self._owner is not None:
                os.chown(open_file, *self._owner)
            if self._contents != self._part:
                # With a directory descriptor, this call follows the link in /proc.
                os.link(self._contents, self._part, src_dir_fd=self._sink.fileno())
            self._sink.close()
            os.replace(self._part, target)
        except OSError as error:
            raise unwritable(self.name, error) from None
        finally:
            self.abort()

    def abort(self) -> None:
        """Discard the upload; may be called at any time."""
        with suppress(OSError):
            self._sink.close()
        with suppress(OSError):
            self._part.unlink(missing_ok=True)

    def _own(self, path: str, dir_fd: int | None) -> None:
        if self._owner is not None:
            os.chown(path, *self._owner, dir_fd=dir_fd, follow_symlinks=False)


def make_directory(path: Path, owner: tuple[int, int] | None) -> None:
    """Create a directory and its missing parents, which belong to the owner."""
    missing = [each for each in (path, *path.parents) if not each.exists()]
    path.mkdir(parents=True, exist_ok=True)
    for directory in missing:
        if owner is not None:
            os.chown(directory, *owner)


def _unnamed_file(directory: Path) -> IO[bytes] | None:
    """Return a file that vanishes with its process, or None if unsupported."""
    flag = getattr(os, "O_TMPFILE", None)
    if flag is None:
        return None
    try:
        return open(os.open(directory, os.O_RDWR | flag, 0o666), "wb")
    except OSError:  # not supported by every file system
        return None


def _path_of(opened: IO[bytes]) -> Path:
    return Path(f"/proc/self/fd/{opened.fileno()}")
