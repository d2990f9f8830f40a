"""Uploads of agents, which change nothing before a person need not be asked about them.

An archive names its files only at its end, so the contents wait in an unnamed temporary file.
"""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from oh_jupyter.descriptors import SEARCH, has_paths, open_below, path_to
from oh_jupyter.errors import TransferError, TransferTooLargeError
from oh_jupyter.runtime.file_system import unwritable
from oh_jupyter.runtime.transfers.unpacking import member_names
from oh_jupyter.runtime.transfers.uploads import Upload, UploadTarget, give_to, make_directory

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
