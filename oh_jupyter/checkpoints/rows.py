"""The rows of one workspace in a ledger."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from oh_jupyter.errors import CheckpointError, LedgerError
from oh_jupyter.state.ledger import Ledger


class WorkspaceRows:
    """The rows of one workspace, which all of the user's processes share.

    Attributes:
        workspace: The value of their column ``workspace``.
    """

    def __init__(self, ledger: Ledger, workspace: Path) -> None:
        self.workspace = os.fsencode(workspace)
        self._ledger = ledger

    def select(self, query: str, values: Mapping[str, Any] | None = None) -> list[tuple[Any, ...]]:
        """Return the rows of a query; its parameter ``:workspace`` is set.

        Raises:
            CheckpointError: The ledger cannot be read.
        """
        with self._errors():
            return self._ledger.rows(query, {"workspace": self.workspace, **(values or {})})

    @contextlib.contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Run the block as one transaction, or as a part of that around it.

        Raises:
            CheckpointError: The ledger cannot be written; nothing of the block was.
        """
        with self._errors(), self._ledger.transaction() as connection:
            yield connection

    def insert(self, statement: str, values: Sequence[Any]) -> int:
        """Insert one row; return its number.

        Raises:
            CheckpointError: The ledger cannot be written.
        """
        with self._errors():
            return self._ledger.insert(statement, values)

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except LedgerError as error:
            workspace = os.fsdecode(self.workspace)
            raise CheckpointError(
                f"Agents' turns in {workspace!r} are not recorded now, and files stay as they are. "
                f"{error}"
            ) from error


def storable(text: str) -> str:
    """Replace lone surrogates, which a database cannot store."""
    return text.encode("utf-8", "replace").decode()
