"""The ledgers that a process has open, one object for each file."""

from __future__ import annotations

import atexit
import os
import threading
from pathlib import Path

from oh_jupyter.state.ledger import Ledger
from oh_jupyter.state.location import FILE_NAME, ledger_folder

_lock = threading.Lock()
_open: dict[str, Ledger] = {}


def open_ledger(folder: str | os.PathLike[str] | None = None) -> Ledger:
    """Return the ledger of a folder; nothing is created before the first write.

    Args:
        folder: The folder; by default that of the user's state on this machine.
    """
    path = Path(os.path.realpath(ledger_folder() if folder is None else folder), FILE_NAME)
    with _lock:
        return _open.setdefault(str(path), Ledger(path))


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
