"""Lock of the one process that sends an outbox."""

from __future__ import annotations

import contextlib
import logging
import math
import os
import time
from pathlib import Path

from oh_jupyter.locks import file_lock, is_locked_file
from oh_jupyter.storage.webhook.owner import is_stopped, process_identity

_log = logging.getLogger(__name__)
_STOPPED_SECONDS = 3.0  # until another process takes over from one that is stopped


class SenderLock:
    """Lock of the process that sends; without a path there is only one.

    The system releases it when the process ends. From a process that is stopped, by SIGSTOP or a
    debugger, another one takes it over: it replaces the file, which the first one notices.
    """

    def __init__(self, outbox: str | None) -> None:
        self._path = None if outbox is None else outbox + "-turn"
        self._holding = contextlib.ExitStack()
        self._descriptor: int | None = None

    @property
    def is_lost(self) -> bool:
        """Whether another process took the lock over."""
        if self._path is None or self._descriptor is None:
            return False
        return not is_locked_file(self._path, self._descriptor)

    def acquire(self, timeout_seconds: float | None) -> None:
        """Wait until no other process sends; raise TimeoutError after the timeout."""
        if self.is_lost:
            self.release()
        if self._path is None or self._descriptor is not None:
            return
        deadline = time.monotonic() + (math.inf if timeout_seconds is None else timeout_seconds)
        while self._descriptor is None:
            remaining = max(deadline - time.monotonic(), 0)
            try:
                lock = file_lock(self._path, min(remaining, _STOPPED_SECONDS))
                self._descriptor = self._holding.enter_context(lock)
            except TimeoutError:
                if not self._take_over(self._path) and remaining <= _STOPPED_SECONDS:
                    raise
        # On a full disk, sending continues, and nobody can take over.
        with contextlib.suppress(OSError):
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, process_identity().encode(), 0)

    def release(self) -> None:
        """Release the lock."""
        self._descriptor = None
        self._holding.close()

    def _take_over(self, path: str) -> bool:
        """Remove the lock file if its holder is stopped; return whether it is."""
        with file_lock(path + "-over"):
            try:
                holder = Path(path).read_text("ascii")
            except OSError:
                return False
            if not is_stopped(holder):
                return False
            os.unlink(path)
        _log.warning(
            "Process %s, which sends the webhooks of this store, is stopped; process %s sends "
            "them now",
            holder.partition("@")[0],
            os.getpid(),
        )
        return True
