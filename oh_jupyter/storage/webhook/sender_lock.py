"""Lock of the one process that sends an outbox."""

from __future__ import annotations

import contextlib
import logging
import math
import os
import time

from oh_jupyter.liveness import LifeLock
from oh_jupyter.locks import lock_path, read_record
from oh_jupyter.state.ledger import Ledger
from oh_jupyter.storage.webhook.owner import is_stopped, process_identity

_log = logging.getLogger(__name__)
_STOPPED_SECONDS = 3.0  # until another process takes over from one that is stopped


class SenderLock:
    """Life of the process that sends; a temporary outbox has only one.

    From a process that is stopped, by SIGSTOP or a debugger, another one takes the lock over: it
    removes the file, which the first one notices.
    """

    def __init__(self, outbox: Ledger) -> None:
        self._outbox = outbox
        self._life: LifeLock | None = None

    @property
    def is_lost(self) -> bool:
        """Whether another process took the lock over."""
        return self._life is not None and self._life.file.is_lost

    def acquire(self, timeout_seconds: float | None) -> None:
        """Wait until no other process sends; raise TimeoutError after the timeout."""
        if self.is_lost:
            self.release()
        if self._outbox.path is None or self._life is not None:
            return
        sender = f"{self._outbox.path}-sender"
        deadline = time.monotonic() + (math.inf if timeout_seconds is None else timeout_seconds)
        while self._life is None:
            remaining = max(deadline - time.monotonic(), 0)
            try:
                self._life = LifeLock(sender, min(remaining, _STOPPED_SECONDS))
            except TimeoutError:
                if not self._take_over(sender) and remaining <= _STOPPED_SECONDS:
                    raise
        # On a full disk, sending continues, and nobody can take over.
        with contextlib.suppress(OSError):
            self._life.file.write(process_identity().encode())

    def release(self) -> None:
        """Release the lock."""
        if self._life is not None:
            self._life.close()
            self._life = None

    def _take_over(self, sender: str) -> bool:
        """Remove the lock file if its holder is stopped; return whether it is."""
        # Only one process at a time compares the holder and removes the file.
        with self._outbox.transaction():
            try:
                holder = read_record(sender).decode("ascii", "replace")
            except OSError:
                return False
            if not is_stopped(holder):
                return False
            os.unlink(lock_path(sender))
        _log.warning(
            "Process %s, which sends the webhooks of this store, is stopped; process %s sends "
            "them now",
            holder.partition("@")[0],
            os.getpid(),
        )
        return True
