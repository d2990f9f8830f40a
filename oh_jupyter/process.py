"""How children are started, and how it is made sure that they end.

Every child gets a session of its own (the person's Interrupt goes to the kernel's process
group and must not reach it), default signal dispositions (an idle kernel ignores SIGINT, and
that is inherited), and a *guardian* (see ``_guardian.py``) between it and us, which ends the
child and everything below it when this process closes, crashes or is killed.

``subprocess`` alone cannot do this: ``preexec_fn`` is unsafe in a process with threads, and
a parent-death signal is tied to the thread that forked and does not reach grandchildren.
"""

from __future__ import annotations

import contextlib
import marshal
import os
import pwd
import select
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO

from oh_jupyter.errors import ChildStartError

__all__ = ["PIPE", "Child", "spawn"]

PIPE = subprocess.PIPE
"""Ask :func:`spawn` for a pipe, as with ``subprocess``."""

GUARDIAN = Path(__file__).with_name("_guardian.py")
LAST_RESORT = 10.0
"""Seconds beyond the grace in which a guardian must have ended, before it is killed itself."""


class Child:
    """A process that was started by :func:`spawn`. All methods work from any thread.

    Attributes:
        pid: Process id of the child itself.
        returncode: Exit status, negative for a signal, None while it runs.
        stdin: The pipe to its standard input, if PIPE was asked for.
        stdout: The pipe from its standard output, if PIPE was asked for.
        stderr: The pipe from its standard error, if PIPE was asked for.
    """

    def __init__(
        self, pid: int, guardian: subprocess.Popen[bytes], line: socket.socket, received: bytes
    ) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self.stdin: IO[bytes] | None = guardian.stdin
        self.stdout: IO[bytes] | None = guardian.stdout
        self.stderr: IO[bytes] | None = guardian.stderr
        self._guardian = guardian
        self._line = line
        self._received = b""
        self._at_end = False
        # Held while waiting, so that two waiting threads cannot read each other's news.
        self._reading = threading.Lock()
        self._take(received)

    def fileno(self) -> int:
        """Return a descriptor that becomes readable when :meth:`poll` has news.

        Returns:
            The descriptor, for an event loop; -1 once everything has ended.
        """
        return -1 if self._at_end else self._line.fileno()

    def poll(self) -> int | None:
        """Look whether the child has ended, without waiting.

        Returns:
            The exit status, negative for a signal, or None.
        """
        if self._reading.acquire(blocking=False):
            try:
                self._read(0.0)
            finally:
                self._reading.release()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait until the child has ended. Its descendants may live on.

        Args:
            timeout: Seconds to wait at most, or None.

        Returns:
            The exit status, negative for a signal.

        Raises:
            TimeoutError: The child still runs.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        if not self._reading.acquire(timeout=-1 if timeout is None else timeout):
            raise TimeoutError(f"Process {self.pid} still runs after {timeout} s.")
        try:
            while self.returncode is None:
                remaining = None if deadline is None else max(0.0, deadline - time.monotonic())
                if not self._read(remaining):
                    raise TimeoutError(f"Process {self.pid} still runs after {timeout} s.")
        finally:
            self._reading.release()
        return self.returncode

    def terminate(self, grace: float = 2.0) -> None:
        """End the child and all of its descendants; return when they are gone.

        Args:
            grace: Seconds between the polite signals (terminate, hang-up) and the kill.
        """
        self.ask_to_end(grace)
        try:
            self._guardian.wait(grace + LAST_RESORT)
        except subprocess.TimeoutExpired:
            self._guardian.kill()
            self._guardian.wait()
        with self._reading:
            while not self._at_end:
                self._read(None)

    def ask_to_end(self, grace: float = 2.0) -> None:
        """Begin to end the child and all of its descendants, without waiting.

        For an event loop: :meth:`fileno` has news, and turns -1 when all are gone.

        Args:
            grace: Seconds between the polite signals (terminate, hang-up) and the kill.
        """
        # The guardian may have left, since nothing remained to be guarded.
        with contextlib.suppress(OSError):
            self._line.send(f"end {grace}".encode())

    def memory_bytes(self) -> int:
        """Measure the memory of the child and all of its descendants.

        Returns:
            The sum of their proportional set sizes in bytes; shared pages count once. Where the
            system does not tell it, resident set sizes.
        """
        import psutil

        total = 0
        try:
            processes = psutil.Process(self._guardian.pid).children(recursive=True)
        except psutil.NoSuchProcess:
            return 0
        for process in processes:
            try:
                total += getattr(process.memory_full_info(), "pss", 0) or process.memory_info().rss
            except psutil.AccessDenied:
                total += process.memory_info().rss
            except psutil.NoSuchProcess:
                continue
        return total

    def _take(self, data: bytes) -> None:
        """Understand what the guardian has sent."""
        self._received += data
        if self.returncode is None and b"\n" in self._received:
            self.returncode = int(self._received.split()[1])

    def _read(self, timeout: float | None) -> bool:
        """Take news from the guardian.

        Args:
            timeout: Seconds to wait for news, or None.

        Returns:
            Whether anything came; always true after the end.
        """
        if self._at_end:
            return True
        poll = select.poll()
        poll.register(self._line, select.POLLIN)
        if not poll.poll(None if timeout is None else timeout * 1000):
            return False
        try:
            data = self._line.recv(256)
        except ConnectionResetError:
            data = b""
        self._take(data)
        if not data:
            self._at_end = True
            self._line.close()
            self._guardian.wait()
            if self.returncode is None:
                # The guardian itself was killed, and took the child along.
                self.returncode = -9
        return True


def spawn(
    argv: Sequence[str | os.PathLike[str]],
    *,
    cwd: str | os.PathLike[str] | None = None,
    env: Mapping[str, str] | None = None,
    stdin: int | IO[bytes] | None = None,
    stdout: int | IO[bytes] | None = None,
    stderr: int | IO[bytes] | None = None,
    pass_fds: Iterable[int] = (),
    controlling_terminal: int | None = None,
    user: str | None = None,
) -> Child:
    """Start a program that cannot outlive this process.

    Args:
        argv: Program and arguments; the program is searched on the PATH of ``env``.
        cwd: Working directory.
        env: The whole environment; None for a copy of ours.
        stdin: As for ``subprocess.Popen``.
        stdout: As for ``subprocess.Popen``.
        stderr: As for ``subprocess.Popen``.
        pass_fds: Descriptors to keep open in the child, under the same numbers.
        controlling_terminal: Descriptor of a terminal that becomes the child's own; it is
            closed in the child unless it is one of ``pass_fds``.
        user: Name of the user to run as, if not ours; this needs root.

    Returns:
        The running child.

    Raises:
        ChildStartError: No such program, directory or user, or it may not be used.
    """
    if os.name != "posix":
        raise ChildStartError("Children are started on POSIX systems only; this is not one.")
    passed = sorted(set(pass_fds))
    order = {
        "argv": [os.fsencode(word) for word in argv],
        "cwd": os.fsencode(os.getcwd() if cwd is None else cwd),
        "env": {
            os.fsencode(name): os.fsencode(value)
            for name, value in (os.environ if env is None else env).items()
        },
        "pass_fds": passed,
        "controlling_terminal": controlling_terminal,
        "user": None if user is None else _user(user),
    }
    inherited = {*passed, *([] if controlling_terminal is None else [controlling_terminal])}
    ours, theirs = socket.socketpair()
    try:
        guardian = subprocess.Popen(
            [sys.executable, "-I", "-S", str(GUARDIAN), str(theirs.fileno()), str(os.getpid())],
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            pass_fds=(*inherited, theirs.fileno()),
            start_new_session=True,
            cwd="/",
        )
    except OSError as error:
        ours.close()
        raise ChildStartError(
            error.errno, f"Python at {sys.executable!r} did not start: {error.strerror}."
        ) from error
    finally:
        theirs.close()
    return _hand_over(order, guardian, ours, str(argv[0]), str(cwd))


def _hand_over(
    order: Mapping[str, object],
    guardian: subprocess.Popen[bytes],
    line: socket.socket,
    program: str,
    cwd: str,
) -> Child:
    """Give the guardian its order, and wait until the child runs."""
    data = marshal.dumps(dict(order))
    answer = b""
    try:
        line.sendall(len(data).to_bytes(8, "big") + data)
        while b"\n" not in answer and (piece := line.recv(256)):
            answer += piece
    except ConnectionError:
        pass
    first, _, rest = answer.partition(b"\n")
    kind, *words = first.decode().split() or ["lost"]
    if kind == "pid":
        return Child(int(words[0]), guardian, line, rest)
    line.close()
    for pipe in (guardian.stdin, guardian.stdout, guardian.stderr):
        if pipe is not None:
            pipe.close()
    guardian.wait()
    if kind == "lost":
        raise ChildStartError(
            f"{program!r} was not started: its guardian process ended with status "
            f"{guardian.returncode}. Check that {sys.executable!r} runs."
        )
    number, step = int(words[0]), words[1]
    where = {"cwd": f"directory {cwd!r}", "exec": f"program {program!r}"}.get(step, step)
    raise ChildStartError(number, f"{program!r} was not started: {os.strerror(number)} ({where}).")


def _user(name: str) -> tuple[str, int, int]:
    """Look a user up and make sure that we may become that user."""
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        raise ChildStartError(f"There is no user {name!r} on this machine; create it.") from None
    if os.geteuid() not in (0, entry.pw_uid):
        raise ChildStartError(
            f"Only root can start a process as {name!r}, and this process is not root's."
        )
    return name, entry.pw_uid, entry.pw_gid
