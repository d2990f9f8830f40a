"""Large contents of a ledger, each in a file of its own, since a database writes them twice."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path
from time import time
from typing import IO, TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from oh_jupyter.state.ledger import Ledger

MAX_ROW_BYTES = 1 << 16
"""Size up to which a content is in the row itself."""

_COLUMNS = {
    "edits": "delta_file",
    "edited_contents": "file",
    "pending_files": "file",
    "deliveries": "file",
    "dead_letters": "file",
}
"""The columns with names of files, by table."""

_ORPHAN_SECONDS = 3600.0  # far longer than the transaction takes that names the file


class Stored(NamedTuple):
    """A content in a row: itself, or the name of its file."""

    data: bytes | None
    name: str | None


class Contents:
    """The folder of the large contents.

    Args:
        folder: The folder, which the first large content creates; None for a temporary one.
    """

    def __init__(self, folder: Path | None) -> None:
        self._is_temporary = folder is None
        # Its name is chosen here, because several threads may store the first content.
        self.folder = folder or Path(
            tempfile.gettempdir(), f"oh-jupyter-contents-{uuid.uuid4().hex}"
        )

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
        with self._new_file() as path, open(path, "wb", buffering=0) as file:
            view = memoryview(data)
            while view:
                view = view[file.write(view) :]
            if is_flushed:
                os.fsync(file.fileno())
        return Stored(None, path.name)

    def copy(self, source: str) -> tuple[str, int]:
        """Copy a file before the transaction that adds its row; return name and size of the copy.

        Raises:
            OSError: The file cannot be read, or its copy not be written.
        """
        with self._new_file() as path:
            shutil.copyfile(source, path)
            return path.name, path.stat().st_size

    def get(self, data: bytes | None, name: str | None) -> bytes:
        """Return a content; raise LookupError if its file is lost."""
        if name is None:
            return data or b""
        try:
            with self.open(name) as file:
                return file.read()
        except FileNotFoundError as error:
            raise LookupError(str(error.filename)) from None

    def open(self, name: str) -> IO[bytes]:
        """Open the file of a content; raise FileNotFoundError if it is lost."""
        return open(self.folder / name, "rb")

    def discard(self, names: Iterable[str | None]) -> None:
        """Remove the files of rows that are gone."""
        for name in names:
            if name is not None:
                with contextlib.suppress(OSError):
                    os.unlink(self.folder / name)

    def discard_all_but(self, names: set[str], age_seconds: float) -> None:
        """Remove the files of a certain age that have none of some names."""
        with contextlib.suppress(OSError), os.scandir(self.folder) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):  # another process has removed it
                    if entry.name not in names and time() - entry.stat().st_mtime >= age_seconds:
                        self.discard([entry.name])

    def close(self) -> None:
        """Remove a temporary folder; the next large content creates it again."""
        if self._is_temporary:
            shutil.rmtree(self.folder, ignore_errors=True)

    @contextlib.contextmanager
    def _new_file(self) -> Iterator[Path]:
        """Create a file that only the owner can read; remove it if the block fails."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self.folder / uuid.uuid4().hex
        try:
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
            yield path
        except BaseException:  # do not fill the disk with half a content
            self.discard([path.name])
            raise


def contents_of(ledger: Ledger) -> Contents:
    """Return the large contents of a ledger, in a folder beside it, or in a temporary one."""
    return Contents(None if ledger.path is None else Path(f"{ledger.path}-contents"))


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
    if not ledger.damaged():
        contents_of(ledger).discard_all_but(_names(ledger), age_seconds)


def _names(ledger: Ledger) -> set[str]:
    """Return the names of all files of a ledger."""
    tables = _tables(ledger)
    # A single query sees one moment: a row may move from one table to another meanwhile.
    query = " UNION ALL ".join(
        f"SELECT {_COLUMNS[table]} FROM {table} WHERE {_COLUMNS[table]} IS NOT NULL"
        for table in tables
    )
    names = {name for (name,) in ledger.rows(query)} if tables else set()
    return names if _tables(ledger) == tables else _names(ledger)


def _tables(ledger: Ledger) -> list[str]:
    """Return the tables with names of files; a ledger may have some of them only."""
    existing = {name for (name,) in ledger.rows("SELECT name FROM sqlite_master")}
    return [table for table in _COLUMNS if table in existing]
