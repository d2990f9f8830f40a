"""Files that arrive in pieces, with the semantics of OpenHands' ``upload_file``.

What an agent uploads changes nothing before a person need not be asked about it. An archive names
its files only at its end, so the contents wait in an unnamed temporary file. These functions block;
call them in a worker thread.
"""

from __future__ import annotations

import errno
import os
import secrets
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO

from oh_jupyter.descriptors import SEARCH, has_paths, open_below, path_to
from oh_jupyter.errors import TransferError, TransferTooLargeError
from oh_jupyter.runtime.file_rules import check_replaceable, unwritable
from oh_jupyter.runtime.transfers.unpacking import member_names, unpack

PIECE_BYTES = 1024 * 1024

Approve = Callable[[Sequence[str]], Awaitable[None]]
"""Raises an error unless an upload may write all of these paths."""


class HeldUpload:
    """An upload that waits for its approval; its methods but ``approve`` block.

    Attributes:
        approve: See ``Approve``.
    """

    def __init__(
        self,
        target: UploadTarget,
        make: Callable[[str, str], Upload],
        max_bytes: int,
        owner: tuple[int, int] | None,
        approve: Approve,
    ) -> None:
        """Collect an upload that ``make`` starts with its directory and name once approved."""
        self.approve = approve
        self._target = target
        self._make = make
        self._max_bytes = max_bytes
        self._owner = owner
        self._size = 0
        # From here on, the links of the path do not matter: it is their target that is approved.
        directory, name = os.path.realpath(target.directory), target.name
        if not target.is_zipped:
            directory, name = os.path.split(os.path.realpath(os.path.join(directory, name)))
        self._directory, self._name = directory, name
        self._contents = tempfile.TemporaryFile(prefix="oh_upload_")  # noqa: SIM115

    def write(self, piece: bytes) -> None:
        """Keep the next piece; raise TransferError if it is too large or on failure."""
        self._size += len(piece)
        if self._size > self._max_bytes:
            self.abort()
            raise TransferTooLargeError(
                f"{self._target.name} is larger than {self._max_bytes / 1024**2:.0f} MiB; nothing "
                "was kept"
            )
        try:
            self._contents.write(piece)
        except OSError as error:
            self.abort()
            raise unwritable(self._target.name, error) from None

    def paths(self) -> list[str]:
        """Return every file and directory that it writes; raise TransferError for a bad archive."""
        if not self._target.is_zipped:
            return [os.path.join(self._directory, self._name)]
        self._contents.flush()
        names = member_names(self._contents, self._target.name)
        parents = {parent for name in names for parent in name.parents}
        return [os.path.join(self._directory, name) for name in sorted({*names, *parents})]

    def finish(self) -> None:
        """Put the approved upload in place; a TransferError means no change."""
        try:
            with self._opened_directory() as directory:
                upload = self._make(directory, self._name)
                try:
                    self._contents.seek(0)
                    while piece := self._contents.read(PIECE_BYTES):
                        upload.write(piece)
                    upload.finish()
                finally:
                    upload.abort()
        finally:
            self.abort()

    @contextmanager
    def _opened_directory(self) -> Iterator[str]:
        """Open the approved directory; yield a path that leads to it whatever is renamed."""
        try:
            if not has_paths():
                make_directory(Path(self._directory), self._owner)
                yield self._directory
                return
            descriptor = self._open_directory()
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.ENOTDIR):
                raise TransferError(
                    f"{self._directory} has become a link since the upload began; nothing was "
                    "changed. Upload it again"
                ) from None
            raise unwritable(self._directory, error) from None
        try:
            yield str(path_to(descriptor))
        finally:
            os.close(descriptor)

    def _open_directory(self) -> int:
        """Open the approved directory without following links, and create what is missing."""
        top = os.open("/", SEARCH)
        try:
            names = Path(self._directory).parts[1:]
            return open_below(top, names, created=partial(give_to, self._owner))
        finally:
            os.close(top)

    def abort(self) -> None:
        """Discard the upload; may be called at any time."""
        self._contents.close()


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
            self._contents = self._part if unnamed is None else path_to(unnamed.fileno())
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
            if self._contents != self._part:
                # With a directory descriptor, this call follows the link in /proc.
                os.link(self._contents, self._part, src_dir_fd=self._sink.fileno())
            target = self._directory / self.name
            if self._follows:  # an upload to a link replaces its target
                target = Path(os.path.realpath(target))
            check_replaceable(target)
            if target.exists():
                _set_mode(self._sink, self._part, target.stat().st_mode & 0o7777)
            self._own(self._sink.fileno())
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

    def _own(self, descriptor: int) -> None:
        give_to(self._owner, descriptor)


def _set_mode(opened: IO[bytes], path: Path, mode: int) -> None:
    """Set the permissions of an open file, by its path where the system needs that."""
    os.chmod(opened.fileno() if os.chmod in os.supports_fd else path, mode)


def give_to(owner: tuple[int, int] | None, descriptor: int) -> None:
    """Give an open file or directory to the owner of uploads, if they have one."""
    if owner is not None:
        os.chown(path_to(descriptor) if has_paths() else descriptor, *owner)


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
