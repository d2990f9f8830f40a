"""Journal of the edits of several files that are under way.

A record is there while files change: who finds one and gets the locks knows that its writer died.
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

_STALE_SECONDS = 3600  # seconds; no process needs so long to write a record


class IncompleteTransaction(Exception):
    """A process died in the middle of an edit of several files."""

    def __init__(self, transaction: str) -> None:
        super().__init__(transaction)
        self.transaction = transaction


@dataclass(frozen=True)
class Record:
    """Journal record of one edit."""

    files: tuple[tuple[str, int | None], ...]
    forward: bool = True


class Journal:
    """Journal: one small file for each edit of several files that is under way."""

    def __init__(self, history: Path) -> None:
        """Use a folder; it is created when something is put into it."""
        self._folder = history / "transactions"

    def _file(self, transaction: str) -> Path:
        return self._folder / f"{transaction}.json"

    def has(self, transaction: str) -> bool:
        """Whether an edit is under way."""
        with access(self._folder.parent):
            try:
                os.stat(self._file(transaction))
            except FileNotFoundError:
                return False
        return True

    def names(self) -> list[str]:
        """Names of the edits that are under way."""
        with access(self._folder.parent):
            try:
                names = os.listdir(self._folder)
            except (FileNotFoundError, NotADirectoryError):
                return []
        for name in names:
            if name.endswith(".tmp"):
                self._sweep(self._folder / name)
        return sorted(name.removesuffix(".json") for name in names if name.endswith(".json"))

    @staticmethod
    def _sweep(temporary: Path) -> None:
        """Remove what a process left that died while it wrote a record."""
        with suppress(OSError):
            if time.time() - temporary.stat().st_mtime > _STALE_SECONDS:
                temporary.unlink()

    def put(self, transaction: str, record: Record) -> None:
        """Write a record, and flush it to the disk."""
        temporary = self._file(transaction).with_suffix(".tmp")
        with access(self._folder.parent):
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            with open(temporary, "w", encoding="utf-8") as file:
                json.dump({"version": 1, "forward": record.forward, "files": record.files}, file)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, self._file(transaction))

    def get(self, transaction: str) -> Record | None:
        """Record of an edit; None if there is none, or it is damaged."""
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
        """Remove the record of an edit that is over."""
        with suppress(FileNotFoundError):
            os.unlink(self._file(transaction))
