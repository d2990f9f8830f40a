"""Children on POSIX systems: a guardian (``_guardian.py``) stops each with its descendants.

``preexec_fn`` is unsafe in a process with threads. A parent-death signal is tied to the thread that
forked, and does not reach grandchildren.
"""

from __future__ import annotations

import contextlib
import marshal
import os
import select
import socket
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import IO, cast

from oh_jupyter.errors import ChildStartError
from oh_jupyter.process.child import Child, memory_bytes_of

GUARDIAN_PROGRAM = (
    "import sys; sys.path.append(sys.argv[1]); "
    "import _guardian; _guardian.main(int(sys.argv[2]), int(sys.argv[3]))"
)
"""An import, since Python would compile a script at each start, which takes 0.7 MB."""
GUARDIAN_TIMEOUT_SECONDS = 10.0
"""Seconds after the grace period until a guardian is killed itself."""


class PosixChild(Child):
    """A child below a guardian."""

    def __init__(
        self, pid: int, guardian: subprocess.Popen[bytes], channel: socket.socket, received: bytes
    ) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self.stdin: IO[bytes] | None = guardian.stdin
        self.stdout: IO[bytes] | None = guardian.stdout
        self.stderr: IO[bytes] | None = guardian.stderr
        self._guardian = guardian
        _children.add(self)
        self._channel = channel
        self._received = b""
        self._at_end = False
        # Held while waiting, so that waiting threads do not read each other's messages.
        self._reading = threading.Lock()
        # Held while writing or closing: after a close, the descriptor may be reused.
        self._sending = threading.Lock()
        self._parse(received)

    @property
    def guardian_pid(self) -> int:  # noqa: D102
        return self._guardian.pid

    def fileno(self) -> int:  # noqa: D102
        return -1 if self._at_end else self._channel.fileno()

    def poll(self) -> int | None:  # noqa: D102
        if self._reading.acquire(blocking=False):
            try:
                self._read(0.0)
            finally:
                self._reading.release()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:  # noqa: D102
        deadline = None if timeout is None else time.monotonic() + timeout
        if not self._reading.acquire(timeout=-1 if timeout is None else timeout):
            raise TimeoutError(f"Process {self.pid} is still running after {timeout} s.")
        try:
            while self.returncode is None:
                remaining = None if deadline is None else max(0.0, deadline - time.monotonic())
                if not self._read(remaining):
                    raise TimeoutError(f"Process {self.pid} is still running after {timeout} s.")
        finally:
            self._reading.release()
        return self.returncode

    def terminate(self, grace: float = 2.0) -> None:  # noqa: D102
        self.begin_termination(grace)
        try:
            self._guardian.wait(grace + GUARDIAN_TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            self._guardian.kill()
            self._guardian.wait()
        with self._reading:
            while not self._at_end:
                self._read(None)

    def begin_termination(self, grace: float = 2.0) -> None:  # noqa: D102
        # The guardian may have exited after the last descendant.
        with self._sending, contextlib.suppress(OSError):
            # With a newline: a second request may arrive before the first was read.
            self._channel.send(f"end {grace}\n".encode())

    def memory_bytes(self) -> int:  # noqa: D102
        import psutil

        try:
            descendants = psutil.Process(self._guardian.pid).children(recursive=True)
        except psutil.NoSuchProcess:
            return 0
        return memory_bytes_of({process.pid for process in descendants})

    def _parse(self, data: bytes) -> None:
        """Parse messages of the guardian."""
        self._received += data
        if self.returncode is None and b"\n" in self._received:
            self.returncode = int(self._received.split()[1])

    def _read(self, timeout: float | None) -> bool:
        """Read messages of the guardian; return False if none arrives within the timeout."""
        if self._at_end:
            return True
        poll = select.poll()
        poll.register(self._channel, select.POLLIN)
        if not poll.poll(None if timeout is None else timeout * 1000):
            return False
        try:
            data = self._channel.recv(256)
        except ConnectionResetError:
            data = b""
        self._parse(data)
        if not data:
            self._at_end = True
            with self._sending:
                self._channel.close()
            self._guardian.wait()
            if self.returncode is None:
                # The guardian itself was killed, and the child with it.
                self.returncode = -9
        return True


_children: weakref.WeakSet[PosixChild] = weakref.WeakSet()


def guardian_pids() -> set[int]:
    """Return the ids of the guardians of this process' children."""
    return {child.guardian_pid for child in list(_children)}


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
    resume: bool = False,
    remove_when_orphaned: str | os.PathLike[str] | None = None,
) -> Child:
    """Start a program that cannot outlive this process.

    Args:
        argv: Program and arguments; the program is searched on the PATH of ``env``.
        cwd: Working directory.
        env: The whole environment; None for a copy of the current one.
        stdin: See ``subprocess.Popen``.
        stdout: See ``subprocess.Popen``.
        stderr: See ``subprocess.Popen``.
        pass_fds: Descriptors to keep open in the child, with the same numbers. POSIX only.
        controlling_terminal: Descriptor of the child's controlling terminal; it is closed in
            the child unless it is one of ``pass_fds``. POSIX only.
        user: Name of a different user to run as; requires root. POSIX only.
        resume: Continue the child whenever it is stopped, even by itself. POSIX only.
        remove_when_orphaned: A folder to remove if this process is killed; ignored on Windows.

    Returns:
        The running child.

    Raises:
        ChildStartError: The program, directory or user does not exist or is not permitted.
    """
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
        "user": None if user is None else _user_entry(user),
        "resume": resume,
        "remove": None if remove_when_orphaned is None else os.fspath(remove_when_orphaned),
    }
    inherited = {*passed, *([] if controlling_terminal is None else [controlling_terminal])}
    ours, theirs = socket.socketpair()
    try:
        with _without_debugger():
            guardian = subprocess.Popen(
                [
                    sys.executable,
                    "-I",
                    "-S",
                    *(["-B"] if sys.dont_write_bytecode else []),
                    "-c",
                    GUARDIAN_PROGRAM,
                    os.path.dirname(os.path.abspath(__file__)),
                    str(theirs.fileno()),
                    str(os.getpid()),
                ],
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
            error.errno, f"Python at {sys.executable!r} cannot be started: {error.strerror}."
        ) from error
    finally:
        theirs.close()
    return _send_order(order, guardian, ours, str(argv[0]), str(cwd))


def _without_debugger() -> AbstractContextManager[object]:
    """Return a context in which an attached debugger does not attach to new children.

    debugpy rewrites the arguments of started Python programs; the child would then hang while the
    debugger is at a breakpoint.
    """
    pydevd = sys.modules.get("_pydev_bundle.pydev_monkey")
    skip = getattr(pydevd, "skip_subprocess_arg_patch", None)
    return nullcontext() if skip is None else cast("AbstractContextManager[object]", skip())


def _send_order(
    order: Mapping[str, object],
    guardian: subprocess.Popen[bytes],
    channel: socket.socket,
    program: str,
    cwd: str,
) -> Child:
    """Send the order to the guardian, and wait until the child runs."""
    data = marshal.dumps(dict(order))
    reply = b""
    try:
        channel.sendall(len(data).to_bytes(8, "big") + data)
        while b"\n" not in reply and (chunk := channel.recv(256)):
            reply += chunk
    except ConnectionError:
        pass
    first, _, rest = reply.partition(b"\n")
    kind, *words = first.decode().split() or ["lost"]
    if kind == "pid":
        return PosixChild(int(words[0]), guardian, channel, rest)
    channel.close()
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
    cause = {"cwd": f"directory {cwd!r}", "exec": f"program {program!r}"}.get(step, step)
    raise ChildStartError(number, f"{program!r} was not started: {os.strerror(number)} ({cause}).")


def _user_entry(name: str) -> tuple[str, int, int]:
    """Return name and ids of a user; raise ChildStartError unless we may run as that user."""
    import pwd

    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        raise ChildStartError(f"There is no user {name!r} on this machine; create it.") from None
    if os.geteuid() not in (0, entry.pw_uid):
        raise ChildStartError(
            f"Only root can start a process as {name!r}; run this process as root."
        )
    return name, entry.pw_uid, entry.pw_gid
