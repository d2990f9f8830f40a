"""What a started child is to its caller, on every system."""

from __future__ import annotations

import subprocess
from abc import ABC, abstractmethod
from typing import IO

PIPE = subprocess.PIPE
"""Ask :func:`~oh_jupyter.process.spawn` for a pipe, as with ``subprocess``."""


class Child(ABC):
    """A process that was started by :func:`~oh_jupyter.process.spawn`.

    All methods work from any thread.

    Attributes:
        pid: Process id of the child itself.
        returncode: Exit status, negative for a signal, None while it runs.
        stdin: The pipe to its standard input, if PIPE was asked for.
        stdout: The pipe from its standard output, if PIPE was asked for.
        stderr: The pipe from its standard error, if PIPE was asked for.
    """

    pid: int
    returncode: int | None
    stdin: IO[bytes] | None
    stdout: IO[bytes] | None
    stderr: IO[bytes] | None

    @abstractmethod
    def fileno(self) -> int:
        """Return a descriptor that becomes readable when :meth:`poll` has news.

        Returns:
            The descriptor, for an event loop; -1 once everything has ended, and always on
            Windows, where no loop could wait for it.
        """

    @abstractmethod
    def poll(self) -> int | None:
        """Look whether the child has ended, without waiting.

        Returns:
            The exit status, negative for a signal, or None.
        """

    @abstractmethod
    def wait(self, timeout: float | None = None) -> int:
        """Wait until the child has ended. Its descendants may live on.

        Args:
            timeout: Seconds to wait at most, or None.

        Returns:
            The exit status, negative for a signal.

        Raises:
            TimeoutError: The child still runs.
        """

    @abstractmethod
    def terminate(self, grace: float = 2.0) -> None:
        """End the child and all of its descendants; return when they are gone.

        Args:
            grace: Seconds between terminate and hang-up, which a program may act on, and the
                kill; Windows knows only the kill.
        """

    @abstractmethod
    def begin_termination(self, grace: float = 2.0) -> None:
        """Begin to end the child and all of its descendants, without waiting.

        For an event loop: :meth:`fileno` has news, and turns -1 when all are gone.

        Args:
            grace: As for :meth:`terminate`.
        """

    @abstractmethod
    def memory_bytes(self) -> int:
        """Measure the memory of the child and all of its descendants.

        Returns:
            The sum of their proportional set sizes in bytes; shared pages count once. Where the
            system does not tell it, resident set sizes.
        """


def memory_bytes_of(pids: set[int]) -> int:
    """Proportional set sizes of processes together; those that have ended count nothing."""
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
