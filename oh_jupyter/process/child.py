"""Interface of a child process on every system."""

from __future__ import annotations

import subprocess
from abc import ABC, abstractmethod
from typing import IO

PIPE = subprocess.PIPE
"""Requests a pipe from :func:`~oh_jupyter.process.spawn`, as in ``subprocess``."""


class Child(ABC):
    """A process started by :func:`~oh_jupyter.process.spawn`; all methods are thread-safe.

    Attributes:
        pid: Process id of the child itself.
        returncode: Exit status, negative for a signal, None while it runs.
        stdin: The pipe to its standard input, if PIPE was requested.
        stdout: The pipe from its standard output, if PIPE was requested.
        stderr: The pipe from its standard error, if PIPE was requested.
    """

    pid: int
    returncode: int | None
    stdin: IO[bytes] | None
    stdout: IO[bytes] | None
    stderr: IO[bytes] | None

    @property
    def guardian_pid(self) -> int:
        """Process id above the child and everything that it starts; 0 if there is none."""
        return 0

    @abstractmethod
    def fileno(self) -> int:
        """Return a descriptor that becomes readable when the child's state changes.

        Returns:
            The descriptor, for an event loop that then calls :meth:`poll`; -1 once everything
            has ended, and always on Windows, where no loop could wait for it.
        """

    @abstractmethod
    def poll(self) -> int | None:
        """Return the exit status if the child has exited, without waiting.

        Returns:
            The exit status, negative for a signal; None while the child runs.
        """

    @abstractmethod
    def wait(self, timeout: float | None = None) -> int:
        """Wait until the child has exited; its descendants may continue.

        Args:
            timeout: Seconds to wait at most, or None.

        Returns:
            The exit status, negative for a signal.

        Raises:
            TimeoutError: The child is still running.
        """

    @abstractmethod
    def terminate(self, grace: float = 2.0) -> None:
        """Stop the child and all its descendants, and wait until they have ended.

        Args:
            grace: Seconds between SIGTERM and SIGHUP, which a program may handle, and SIGKILL;
                Windows only kills.
        """

    @abstractmethod
    def begin_termination(self, grace: float = 2.0) -> None:
        """Stop the child and all its descendants without waiting, for use on an event loop.

        :meth:`fileno` becomes readable on each change, and -1 when all have ended.

        Args:
            grace: See :meth:`terminate`.
        """

    @abstractmethod
    def memory_bytes(self) -> int:
        """Return the memory usage of the child and all its descendants.

        Returns:
            The sum of their proportional set sizes in bytes, in which shared pages count once,
            or of their resident set sizes if the system provides no others.
        """


def memory_bytes_of(pids: set[int]) -> int:
    """Return the sum of the proportional set sizes of the running processes."""
    import psutil

    total = 0
    for pid in pids:
        try:
            process = psutil.Process(pid)
            try:
                total += getattr(process.memory_full_info(), "pss", 0) or process.memory_info().rss
            except psutil.AccessDenied:
                total += process.memory_info().rss
        except psutil.NoSuchProcess:
            continue
    return total
