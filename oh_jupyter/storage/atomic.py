"""Files that are published atomically when they are closed."""

from __future__ import annotations

import io
import os
import tempfile
from collections.abc import Callable


class _AbandonedOnError(io.IOBase):
    """A file that is published at the end of its ``with`` block, or discarded if it raises."""

    def abandon(self) -> None:
        """Discard the contents, unless the file is closed."""
        raise NotImplementedError

    def __exit__(self, kind: object, value: object, traceback: object) -> None:
        if kind is None:
            self.close()
        else:
            self.abandon()

    def __del__(self) -> None:
        self.abandon()


class AtomicFile(_AbandonedOnError, io.BufferedWriter):
    """A writable binary file whose contents are published on close."""

    def __init__(
        self,
        raw: io.FileIO,
        publish: Callable[[io.FileIO], None],
        discard: Callable[[], None],
    ) -> None:
        self._is_closed = False
        self._publish = publish
        self._discard = discard
        self._file = raw
        super().__init__(raw)

    def close(self) -> None:
        """Publish the contents once; after a StorageError the previous contents remain."""
        if self._is_closed:
            return
        self._is_closed = True
        try:
            self.flush()
            self._publish(self._file)
        except BaseException:
            self._discard_file()
            raise
        self._file.close()

    def abandon(self) -> None:  # noqa: D102
        if self._is_closed:
            return
        self._is_closed = True
        self._discard_file()

    def _discard_file(self) -> None:
        self._file.close()
        self._discard()

    @property
    def closed(self) -> bool:
        """True after the contents were published or discarded."""
        return self._is_closed


class AtomicTextFile(_AbandonedOnError, io.TextIOWrapper):
    """A writable text file whose contents are published on close."""

    def __init__(self, binary: AtomicFile) -> None:
        self._binary = binary
        # newline="" keeps line endings unchanged on every platform.
        super().__init__(binary, encoding="utf-8", newline="")

    def abandon(self) -> None:  # noqa: D102
        self._binary.abandon()


def spooled(publish: Callable[[str], None]) -> AtomicFile:
    """Open a temporary file for writing; on close, call ``publish`` with its path."""
    handle, path = tempfile.mkstemp(prefix="oh-jupyter-")

    def publish_and_remove(raw: io.FileIO) -> None:
        publish(path)
        raw.close()
        os.unlink(path)

    return AtomicFile(io.FileIO(handle, "r+"), publish_and_remove, lambda: os.unlink(path))
