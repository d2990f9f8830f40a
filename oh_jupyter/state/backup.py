"""Verification and backup of a database that others may be writing meanwhile."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from oh_jupyter.errors import ConfigError, LedgerError
from oh_jupyter.state.ledger import is_damage


def find_damage(path: Path) -> str:
    """Return the first damage of a database, or ""; raise LedgerError if it cannot be read."""
    with _opened(path) as connection:
        return _damage_of(connection, path)


def back_up(path: Path, target: Path) -> None:
    """Copy a database to a new file that only the owner can read.

    Args:
        path: The database, which is copied as it is at one moment.
        target: The new file.

    Raises:
        ConfigError: The target exists.
        LedgerError: The database is damaged or cannot be read, or the target cannot be written.
    """
    with _opened(path) as source:
        if damage := _damage_of(source, path):
            raise LedgerError(f"{path} is damaged ({damage}), so no backup was made.")
        try:
            os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        except FileExistsError:
            raise ConfigError(f"{target} exists already. Name a new file") from None
        except OSError as error:
            raise _unwritable(target, error) from error
        try:
            with contextlib.closing(sqlite3.connect(target)) as copy:
                source.backup(copy)
                copy.execute("PRAGMA journal_mode=DELETE")  # so that it is a single file
        except BaseException as error:
            os.unlink(target)
            if isinstance(error, sqlite3.Error):
                raise _unwritable(target, error) from error
            raise


def _unreadable(path: Path, error: Exception) -> LedgerError:
    return LedgerError(f"The ledger {path} cannot be read: {error}. Make it readable for you.")


def _unwritable(target: Path, error: Exception) -> LedgerError:
    reason = getattr(error, "strerror", None) or error
    return LedgerError(f"{target} cannot be written: {reason}. Name a file in another folder.")


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a database only to read: a Ledger would move a damaged one aside."""
    if not path.exists():
        raise LedgerError(f"There is no ledger {path} yet: nothing was saved.")
    uri = f"{path.absolute().as_uri()}?mode=ro"
    try:
        connection = sqlite3.connect(uri, uri=True)
    except sqlite3.Error as error:
        raise _unreadable(path, error) from error
    with contextlib.closing(connection):
        yield connection


def _damage_of(connection: sqlite3.Connection, path: Path) -> str:
    try:
        (result,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
    except sqlite3.Error as error:
        if is_damage(error):
            return str(error)
        raise _unreadable(path, error) from error
    return "" if result == "ok" else str(result).replace("\n", " ")
