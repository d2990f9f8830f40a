"""Events on their way to the store: kept in memory until their files are written.

A thread writes one file after another, so that the files on the store are always the log
up to some id, without gaps. While the store refuses, nothing is lost: the oldest event is
tried again whenever another one comes, or somebody flushes.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from oh_jupyter.errors import StorageError
from oh_jupyter.events.masking import Mask

if TYPE_CHECKING:
    from oh_jupyter.storage import FileStore

__all__ = ["Journal"]

_log = logging.getLogger(__name__)


class Journal:
    """Writes the events of one folder, in order and in the background.

    Args:
        store: Where to.
        folder: The folder on it.
        mask: What to keep out of the files.
    """

    def __init__(self, store: FileStore, folder: str, mask: Mask) -> None:
        self._store = store
        self._folder = folder
        self._mask = mask
        self._changed = threading.Condition()
        self._unwritten: dict[int, dict[str, Any]] = {}
        self._thread: threading.Thread | None = None
        self._error: Exception | None = None
        self._asked = self._tried = 0  # attempts that were wanted, and that are over

    def path(self, id: int) -> str:
        """Say where an event is kept.

        Args:
            id: Its id.

        Returns:
            Its path on the store.
        """
        return f"{self._folder}/{id}.json"

    def put(self, id: int, wire: dict[str, Any]) -> None:
        """Add an event.

        Args:
            id: Its id, higher than that of the event before.
            wire: Its wire form, which must not change any more.
        """
        with self._changed:
            self._unwritten[id] = wire
            self._asked += 1
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="oh-journal", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def unwritten(self, ids: Iterable[int]) -> dict[int, dict[str, Any]]:
        """Find events whose files are not written yet.

        Args:
            ids: Which to look for.

        Returns:
            Their wire forms, masked, by id.
        """
        with self._changed:
            found = {id: self._unwritten[id] for id in ids if id in self._unwritten}
        return {id: self._mask.masked(wire) for id, wire in found.items()}

    def flush(self, timeout: float | None) -> None:
        """Wait until the events that were put before are written.

        Args:
            timeout: Seconds to wait at most; None for as long as it takes.

        Raises:
            StorageError: If the store refuses them, or time ran out.
        """
        with self._changed:
            if not self._unwritten:
                return
            last = next(reversed(self._unwritten))
            self._asked += 1
            asked = self._asked
            self._changed.notify_all()

            def written() -> bool:
                return not self._unwritten or next(iter(self._unwritten)) > last

            def refused() -> bool:
                return self._error is not None and self._tried >= asked

            self._changed.wait_for(lambda: written() or refused(), timeout)
            if written():
                return
            first, error = next(iter(self._unwritten)), self._error
        raise StorageError(
            f"The events from {first} on are not written to {self._folder!r} yet "
            f"({error or f'not done within {timeout} s'}); they are kept and tried again."
        ) from error

    def stop(self) -> None:
        """End the thread after the file that it is writing. A later event starts it again."""
        with self._changed:
            self._thread = None
            self._changed.notify_all()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._wanted() or self._stopped())
                if self._stopped():
                    return
                id, wire = next(iter(self._unwritten.items()))
                asked = self._asked
            error = self._write(id, wire)
            with self._changed:
                if error is None:
                    self._unwritten.pop(id, None)  # a stopped thread may have been slow
                elif self._error is None:
                    _log.warning("Event %d is not written yet: %s", id, error)
                self._error, self._tried = error, asked
                self._changed.notify_all()

    def _wanted(self) -> bool:
        return bool(self._unwritten) and (self._error is None or self._asked > self._tried)

    def _stopped(self) -> bool:
        return self._thread is not threading.current_thread()

    def _write(self, id: int, wire: dict[str, Any]) -> Exception | None:
        try:
            text = json.dumps(self._mask.masked(wire), default=str)
            self._store.write(self.path(id), text)
        except Exception as error:
            return error
        return None
