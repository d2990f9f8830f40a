"""Identities of processes, and which process of several sends what is in an outbox."""

from __future__ import annotations

import contextlib
import os

from oh_jupyter.locks import file_lock, is_locked_file

__all__ = ["SenderLock", "is_active", "process_identity"]

_CLOCK_SECONDS = 2.0
_CHECK_SECONDS = 2.0
_MAX_IDENTITY_BYTES = 200


def process_identity() -> str:
    """Name this process, by its id and when it started, in a way that no later one shares."""
    import psutil

    return f"{os.getpid()}@{psutil.Process().create_time():.2f}"


def is_active(identity: str) -> bool:
    """Tell whether a process is there, and is not stopped by a signal."""
    import psutil

    pid, _, started = identity.partition("@")
    try:
        process = psutil.Process(int(pid))
        # Correcting the clock moves the time that is reported.
        same = abs(process.create_time() - float(started)) < _CLOCK_SECONDS
        return same and process.status() not in (psutil.STATUS_ZOMBIE, psutil.STATUS_STOPPED)
    except (psutil.Error, ValueError):
        return False


class SenderLock:
    """Held by the one process that sends; another one takes it from a process that is stopped.

    Where the outbox is no file (a path of None), this process is the only one.
    """

    def __init__(self, outbox: str | None) -> None:
        self._path = None if outbox is None else outbox + "-turn"
        self._holding = contextlib.ExitStack()
        self._descriptor: int | None = None

    def acquire(self) -> None:
        """Wait until nobody else sends."""
        if self._path is None or self.is_held():
            return
        self.release()
        while self._descriptor is None:
            try:
                self._descriptor = self._holding.enter_context(
                    file_lock(self._path, _CHECK_SECONDS)
                )
            except TimeoutError:
                self._take_from_stopped()
        with contextlib.suppress(OSError):  # a full disk: then nobody knows that we are stopped
            os.ftruncate(self._descriptor, 0)
            os.write(self._descriptor, process_identity().encode())

    def is_held(self) -> bool:
        """Tell whether it is still held; nobody asks before it is taken away."""
        if self._path is None:
            return True
        return self._descriptor is not None and is_locked_file(self._path, self._descriptor)

    def release(self) -> None:
        """Let others send."""
        self._descriptor = None
        self._holding.close()

    def _take_from_stopped(self) -> None:
        assert self._path is not None
        with file_lock(self._path + "-takeover"):
            holder = _read_identity(self._path)
            if holder and not is_active(holder):
                # Its lock stays with the old file. When it goes on, it sees that it lost it.
                with contextlib.suppress(OSError):
                    os.unlink(self._path)


def _read_identity(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return file.read(_MAX_IDENTITY_BYTES).decode("ascii", "replace")
    except OSError:
        return ""
