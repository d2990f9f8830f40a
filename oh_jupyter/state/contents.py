"""Large contents of a ledger, each in a file of its own, since a database writes them twice."""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Iterable
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from oh_jupyter.state.ledger import Ledger

MAX_ROW_BYTES = 1 << 16
"""Size up to which a content is in the row itself."""

_NAMES = (
    "SELECT delta_file FROM edits WHERE delta_file IS NOT NULL",
    "SELECT file FROM edited_contents WHERE file IS NOT NULL",
    "SELECT file FROM pending_files WHERE file IS NOT NULL",
)
_ORPHAN_SECONDS = 3600.0  # far longer than the transaction takes that names the file


class Stored(NamedTuple):
    """A content in a row: itself, or the name of its file."""

    data: bytes | None
    name: str | None


class Contents:
    """The folder of the large contents."""

    def __init__(self, folder: Path) -> None:
        """Use a folder, which the first large content creates."""
        self.folder = folder

    def put(self, data: bytes, *, is_flushed: bool = False) -> Stored:
        """Store a content before the transaction that adds its row.

        Args:
            data: The content.
            is_flushed: Whether a file survives a power loss.

        Raises:
            OSError: The file cannot be written.
        """
        if len(data) <= MAX_ROW_BYTES:
            return Stored(data, None)
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        name = uuid.uuid4().hex
        try:
            with open(self.folder / name, "xb", buffering=0, opener=_open_private) as file:
                view = memoryview(data)
                while view:
                    view = view[file.write(view) :]
                if is_flushed:
                    os.fsync(file.fileno())
        except OSError:  # do not fill the disk with half a content
            self.discard([name])
            raise
        return Stored(None, name)

    def get(self, data: bytes | None, name: str | None) -> bytes:
        """Return a content; raise LookupError if its file is lost."""
        if name is None:
            return data or b""
        try:
            return (self.folder / name).read_bytes()
        except FileNotFoundError:
            raise LookupError(str(self.folder / name)) from None

    def discard(self, names: Iterable[str | None]) -> None:
        """Remove the files of rows that are gone."""
        for name in names:
            if name is not None:
                with contextlib.suppress(OSError):
                    os.unlink(self.folder / name)


def contents_of(ledger: Ledger) -> Contents:
    """Return the large contents of a ledger, in a folder beside it."""
    assert ledger.path is not None
    return Contents(ledger.path.parent / "contents")


def discard_orphans(ledger: Ledger, age_seconds: float = _ORPHAN_SECONDS) -> None:
    """Remove the files that no row names, such as those of processes that died before they did.

    While a damaged ledger is beside this one, all files stay: it may name the only copy of a file
    that waits for an unreachable store.

    Args:
        ledger: The ledger.
        age_seconds: Time since the file was written; a younger one may be named soon.

    Raises:
        LedgerError: The ledger cannot be read.
    """
    if ledger.damaged():
        return
    contents = contents_of(ledger)
    # One query each, because a ledger may have one of the tables only.
    known = {name for query in _NAMES for (name,) in ledger.rows(query)}
    with contextlib.suppress(FileNotFoundError), os.scandir(contents.folder) as entries:
        for entry in entries:
            if entry.name not in known and time() - entry.stat().st_mtime >= age_seconds:
                contents.discard([entry.name])


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
