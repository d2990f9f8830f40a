"""The ledgers that a process has open, one object for each file.

The user's stays open, because it is used again and again for a moment. Others close with their last
user, so that they do not use up the files that a process may open.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from oh_jupyter.errors import LedgerError
from oh_jupyter.state.location import FILE_NAME, ledger_folder

if TYPE_CHECKING:
    from oh_jupyter.state.ledger import Ledger

_lock = threading.Lock()
_open: WeakValueDictionary[str, Ledger] = WeakValueDictionary()
_users: Ledger | None = None


def open_ledger(folder: str | os.PathLike[str] | None = None) -> Ledger:
    """Return the ledger of a folder; nothing is created before the first write.

    Args:
        folder: The folder; by default that of the user's state on this machine.

    Raises:
        LedgerError: This Python was built without SQLite.
    """
    try:
        from oh_jupyter.state.ledger import Ledger  # SQLite takes 13 ms to import
    except ImportError as error:
        raise LedgerError(
            f"This Python, {sys.executable}, cannot import SQLite: {error}. Use one that was built "
            "with it.",
            str(error),
        ) from error
    global _users
    path = Path(os.path.realpath(ledger_folder() if folder is None else folder), FILE_NAME)
    with _lock:
        ledger = _open.get(str(path))
        if ledger is None:
            ledger = _open[str(path)] = Ledger(path)
        if folder is None:
            _users = ledger
    return ledger


def close_ledgers() -> None:
    """Close the connections of this process; the next use opens them again."""
    with _lock:
        ledgers = list(_open.values())
    for ledger in ledgers:
        ledger.close()


def _reset_after_fork() -> None:
    global _lock
    _lock = threading.Lock()


atexit.register(close_ledgers)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)
