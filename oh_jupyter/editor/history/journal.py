"""Journal of the unfinished edits of several files.

A record exists while files change: a process that finds one and gets the locks knows that its
writer died.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from oh_jupyter.editor.history.steps import access
from oh_jupyter.errors import HistoryAccessError

_STALE_SECONDS = 3600  # far longer than writing a record takes


class IncompleteTransaction(Exception):
    """A process died during an edit of several files."""

    def __init__(self, transaction: str) -> None:
        super().__init__(transaction)
        self.transaction = transaction


@dataclass(frozen=True)
class Record:
    """Record of one edit in the journal."""

    files: tuple[tuple[str, int | None], ...]
    forward: bool = True


class EditJournal:
    """One small file for each unfinished edit of several files."""

    def __init__(self, history: Path) -> None:
        """Use a folder, which is created on the first write."""
        self._folder = history / "transactions"

    def _file(self, transaction: str) -> Path:
        return self._folder / f"{transaction}.json"

    def has(self, transaction: str) -> bool:
        """Return whether an edit is unfinished."""
        with access(self._folder.parent):
            try:
                os.stat(self._file(transaction))
            except FileNotFoundError:
                return False
        return True

    def names(self) -> list[str]:
        """Return the names of the unfinished edits; remove stale temporary files."""
        with access(self._folder.parent):
            try:
                names = os.listdir(self._folder)
            except (FileNotFoundError, NotADirectoryError):
                return []
        for name in names:
            temporary = self._folder / name
            if name.endswith(".tmp"):
                with suppress(OSError):
                    if time.time() - temporary.stat().st_mtime > _STALE_SECONDS:
                        temporary.unlink()
        return sorted(name.removesuffix(".json") for name in names if name.endswith(".json"))

    def put(self, transaction: str, record: Record) -> None:
        """Write a record, and flush it to disk."""
        temporary = self._file(transaction).with_suffix(".tmp")
        with access(self._folder.parent):
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            with open(temporary, "w", encoding="utf-8") as file:
                json.dump({"version": 1, "forward": record.forward, "files": record.files}, file)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, self._file(transaction))

    def get(self, transaction: str) -> Record | None:
        """Return the record of an edit; None if it is missing or damaged."""
        try:
            with access(self._folder.parent):
                text = self._file(transaction).read_bytes()
            data = json.loads(text)
            return Record(tuple((str(p), mode) for p, mode in data["files"]), data["forward"])
        except HistoryAccessError as error:
            if isinstance(error.__cause__, FileNotFoundError):
                return None
            raise
        except (ValueError, KeyError, TypeError):
            return None

    def remove(self, transaction: str) -> None:
        """Remove the record of a finished edit."""
        with suppress(FileNotFoundError):
            os.unlink(self._file(transaction))
