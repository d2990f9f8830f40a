"""Uploads of agents, which change nothing before a person need not be asked about them.

An archive names its files only at its end, so the contents wait in an unnamed temporary file.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from oh_jupyter.errors import StorePathError, TransferError, TransferTooLargeError
from oh_jupyter.runtime.file_system import unwritable
from oh_jupyter.runtime.transfers.downloads import DESCRIPTORS
from oh_jupyter.runtime.transfers.unpacking import member_names
from oh_jupyter.runtime.transfers.uploads import Upload, UploadTarget
from oh_jupyter.storage.local.directory import Directory, open_directory

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
            with _made_directory(Path(self._directory), self._owner) as opened:
                has_descriptor = opened.fd is not None and os.path.isdir(DESCRIPTORS)
                yield f"{DESCRIPTORS}/{opened.fd}" if has_descriptor else self._directory
        except StorePathError:
            raise TransferError(
                f"{self._directory} has become a link since the upload began; nothing was changed. "
                "Upload it again"
            ) from None
        except OSError as error:
            raise unwritable(self._directory, error) from None

    def abort(self) -> None:
        """Discard the upload; may be called at any time."""
        self._contents.close()


def _made_directory(path: Path, owner: tuple[int, int] | None) -> Directory:
    """Open a directory, and make it with its missing parents, which belong to the owner.

    Raises StorePathError if a part of the path is a link.
    """
    missing = [each for each in (path, *path.parents) if not os.path.lexists(each)]
    opened = open_directory("/", path.parts[1:], create=True)
    if owner is None:
        return opened
    try:
        for each in missing:
            with open_directory("/", each.parent.parts[1:]) as parent:
                name = parent.at(each.name)
                os.chown(name, *owner, dir_fd=parent.fd, follow_symlinks=False)
    except BaseException:
        opened.close()
        raise
    return opened
