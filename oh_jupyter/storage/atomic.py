"""Files that become visible as a whole by closing them, or not at all."""

from __future__ import annotations

import io
import os
import tempfile
from collections.abc import Callable


class _AbandonedOnError(io.IOBase):
    """A file that is published by leaving its block, and thrown away by an exception in it."""

    def abandon(self) -> None:
        """Throw the contents away. After closing it does nothing."""
        raise NotImplementedError

    def __exit__(self, kind: object, value: object, traceback: object) -> None:
        if kind is None:
            self.close()
        else:
            self.abandon()

    def __del__(self) -> None:
        self.abandon()


class AtomicFile(_AbandonedOnError, io.BufferedWriter):
    """A binary file for writing, whose contents are published by closing it."""

    def __init__(
        self,
        raw: io.FileIO,
        publish: Callable[[io.FileIO], None],
        discard: Callable[[], None],
    ) -> None:
        self._settled = False
        self._publish = publish
        self._discard = discard
        self._file = raw
        super().__init__(raw)

    def close(self) -> None:
        """Publish the contents, once; a StorageError leaves what was there before."""
        if self._settled:
            return
        self._settled = True
        try:
            self.flush()
            self._publish(self._file)
        except BaseException:
            self._throw_away()
            raise
        self._file.close()

    def abandon(self) -> None:
        """Throw the contents away. After closing it does nothing."""
        if self._settled:
            return
        self._settled = True
        self._throw_away()

    def _throw_away(self) -> None:
        self._file.close()
        self._discard()

    @property
    def closed(self) -> bool:
        """Whether the contents were published or thrown away."""
        return self._settled


class AtomicTextFile(_AbandonedOnError, io.TextIOWrapper):
    """A text file for writing whose contents are published by closing it."""

    def __init__(self, binary: AtomicFile) -> None:
        self._binary = binary
        # newline="" keeps the line ends as they are written, on every platform.
        super().__init__(binary, encoding="utf-8", newline="")

    def abandon(self) -> None:
        """Throw the contents away. After closing it does nothing."""
        self._binary.abandon()


def spooled(publish: Callable[[str], None]) -> AtomicFile:
    """Open a file for writing in the machine's temporary directory; publish it by its path."""
    handle, path = tempfile.mkstemp(prefix="oh-jupyter-")

    def hand_over(raw: io.FileIO) -> None:
        publish(path)
        raw.close()
        os.unlink(path)

    return AtomicFile(io.FileIO(handle, "r+"), hand_over, lambda: os.unlink(path))
