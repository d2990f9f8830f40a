"""Guardian: a program between us and one child that stops the child's descendants.

``main(FD, PARENT_PID)``, with ``FD`` one end of a socket pair, reads one marshalled order, starts
the child, and replies ``pid N`` or ``error N STEP``, later ``exit N``. On ``end SECONDS``, on
end-of-file and when the parent has ended, it stops all descendants. Other systems than Linux have
no child subreaper; there it stops the child's process group.

A guardian stays in memory as long as its child, so it imports little: ``contextlib``, ``signal``
and ``typing`` would take another 1.4 MB.
"""

from __future__ import annotations

import marshal
import os
import select
import sys
import time
import warnings  # noqa: F401  (os.execvpe wants it, after a change of user that may not read it)

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from typing import Any, NoReturn
else:
    import _signal as signal  # the same functions with plain numbers

LINUX = sys.platform == "linux"
ORPHAN_GRACE_SECONDS = 1.0
"""Time between SIGTERM and SIGKILL after the parent has ended."""
KILL_TIMEOUT_SECONDS = 5.0
"""Time limit for the end of processes after SIGKILL."""

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36


class suppress:
    """Ignore exceptions, like ``contextlib.suppress``."""

    def __init__(self, *errors: type[Exception]) -> None:
        self._errors = errors

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> bool:
        return kind is not None and issubclass(kind, self._errors)


def prctl(option: int, argument: int) -> None:
    """Call ``prctl``, which Python does not wrap."""
    import ctypes

    ctypes.CDLL(None).prctl(option, ctypes.c_ulong(argument), 0, 0, 0)


def descendants() -> list[int]:
    """Return the ids of all descendants; not every kernel has ``children`` files."""
    children: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with suppress(OSError), open(f"/proc/{entry}/stat", "rb") as file:
                # The name in parentheses may contain spaces and parentheses.
                parent = int(file.read().rpartition(b")")[2].split()[1])
                children.setdefault(parent, []).append(int(entry))
    pids: list[int] = []
    pending = [os.getpid()]
    while pending:
        below = children.get(pending.pop(), [])
        pids += below
        pending += below
    return pids


class Guardian:
    """Starts one child, reports its exit, and stops all descendants."""

    def __init__(self, fd: int, parent: int) -> None:
        self.fd = fd
        self.child = 0
        self.resume = False
        self.remove: str | None = None
        os.set_inheritable(fd, False)
        self.parent_fd = -1
        if LINUX:
            prctl(PR_SET_CHILD_SUBREAPER, 1)
            # A fork of the parent without exec would keep our socket open; the pidfd still
            # reports the parent's end. Old kernels do not have it.
            with suppress(OSError):
                self.parent_fd = os.pidfd_open(parent)
            if os.getppid() != parent:
                sys.exit(0)
        self.sigchld_fd, write_fd = os.pipe()
        os.set_blocking(write_fd, False)
        os.set_blocking(self.sigchld_fd, False)
        signal.set_wakeup_fd(write_fd, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, lambda *_: self.end_all(ORPHAN_GRACE_SECONDS))
        for name in (signal.SIGINT, signal.SIGHUP, signal.SIGTTOU, signal.SIGTTIN):
            signal.signal(name, signal.SIG_IGN)

    def report(self, text: str) -> None:
        """Send one line to the parent, which may have ended already."""
        with suppress(OSError):
            os.write(self.fd, text.encode() + b"\n")

    def read_order(self) -> dict[str, Any]:
        """Read the order: eight bytes of length, then marshalled data."""
        size = int.from_bytes(self.read_exactly(8), "big")
        order: dict[str, Any] = marshal.loads(self.read_exactly(size))
        return order

    def read_exactly(self, size: int) -> bytes:
        """Read a number of bytes; exit if the parent has ended."""
        data = b""
        while len(data) < size:
            chunk = os.read(self.fd, size - len(data))
            if not chunk:
                sys.exit(0)
            data += chunk
        return data

    def start(self, order: dict[str, Any]) -> None:
        """Fork and exec the child, and report its process id or the error."""
        self.resume = order["resume"]
        self.remove = order["remove"]
        error_read, error_write = os.pipe()
        self.child = os.fork()
        if self.child == 0:
            become_child(order, error_write)
        os.close(error_write)
        release_inherited(keep={self.fd, self.parent_fd, self.sigchld_fd, error_read})
        error = os.read(error_read, 64)
        os.close(error_read)
        if error:
            os.waitpid(self.child, 0)
            self.report(f"error {error.decode()}")
            sys.exit(0)
        self.report(f"pid {self.child}")

    def watch(self) -> None:
        """Process events until all descendants have ended."""
        poll = select.poll()
        for fd in (self.fd, self.sigchld_fd, self.parent_fd):
            if fd >= 0:
                poll.register(fd, select.POLLIN)
        while self.reap():
            ready = {fd for fd, _ in poll.poll()}
            if self.sigchld_fd in ready:
                self.clear_sigchld()
            if self.fd in ready:
                words = os.read(self.fd, 64).split()
                if words[:1] == [b"end"]:
                    self.end_all(float(words[1]))
                elif not words:
                    self.end_orphans()
            elif self.parent_fd in ready:
                self.end_orphans()

    def end_orphans(self) -> None:
        """Stop all descendants, and remove the folder of the killed parent."""
        try:
            self.end_all(ORPHAN_GRACE_SECONDS)
        finally:
            if self.remove is not None:
                import shutil

                shutil.rmtree(self.remove, ignore_errors=True)

    def clear_sigchld(self) -> None:
        """Empty the wakeup pipe of SIGCHLD."""
        with suppress(BlockingIOError):
            while os.read(self.sigchld_fd, 512):
                pass

    def reap(self) -> bool:
        """Reap all ended processes; return False if no child is left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG | os.WUNTRACED)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if os.WIFSTOPPED(status):
                if pid == self.child and self.resume:
                    os.kill(pid, signal.SIGCONT)
            elif pid == self.child:
                self.report(f"exit {os.waitstatus_to_exitcode(status)}")

    def end_all(self, grace: float) -> None:
        """Stop all descendants and exit; ``grace`` is the time between SIGTERM and SIGKILL."""
        begin = time.monotonic()
        self.signal_all(signal.SIGTERM, signal.SIGCONT)
        self.wait_for_none(begin + grace / 2)
        # Interactive shells ignore SIGTERM, but not SIGHUP.
        self.signal_all(signal.SIGHUP)
        self.wait_for_none(begin + grace)
        deadline = time.monotonic() + KILL_TIMEOUT_SECONDS
        # Repeated, since a process may fork between the search and the kill.
        while time.monotonic() < deadline and self.reap():
            self.signal_all(signal.SIGKILL)
            self.wait_for_none(time.monotonic() + 0.05)
        sys.exit(0)

    def wait_for_none(self, deadline: float) -> None:
        """Wait until no child is left, or until the deadline."""
        while self.reap():
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                return
            select.select([self.sigchld_fd], [], [], remaining)
            self.clear_sigchld()

    def signal_all(self, *numbers: signal.Signals) -> None:
        """Send signals to every descendant, or to the child's group on other systems than Linux."""
        if not LINUX:
            for number in numbers:
                with suppress(OSError):
                    os.killpg(self.child, number)
            return
        for pid in descendants():
            for number in numbers:
                with suppress(OSError):
                    os.kill(pid, number)


def release_inherited(keep: set[int]) -> None:
    """Close the child's descriptors here, so that their other ends see an end-of-file."""
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    wakeup = signal.set_wakeup_fd(-1)
    signal.set_wakeup_fd(wakeup, warn_on_full_buffer=False)
    for name in os.listdir("/dev/fd"):
        if int(name) > 2 and int(name) not in keep | {wakeup}:
            with suppress(OSError):
                os.close(int(name))


def become_child(order: dict[str, Any], error_fd: int) -> NoReturn:
    """Execute the requested program in this fork; report an error through the pipe."""
    step = "session"
    try:
        os.setsid()
        terminal = order["controlling_terminal"]
        if terminal is not None:
            import fcntl  # in this fork only
            import termios

            fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
            if terminal > 2 and terminal not in order["pass_fds"]:
                os.close(terminal)
        step = "user"
        if order["user"] is not None:
            name, uid, gid = order["user"]
            os.initgroups(name, gid)
            os.setgid(gid)
            os.setuid(uid)
        step = "cwd"
        if order["cwd"] is not None:
            os.chdir(order["cwd"])
        if LINUX:
            # After the change of user, which would clear it.
            prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        for number in signal.valid_signals():
            with suppress(OSError, ValueError):
                signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        step = "exec"
        os.execvpe(order["argv"][0], order["argv"], order["env"])
    except OSError as error:
        os.write(error_fd, f"{error.errno or 0} {step}".encode())
    finally:
        os._exit(127)


def main(fd: int, parent: int) -> None:
    """Run the guardian; see the module's docstring."""
    guardian = Guardian(fd, parent)
    guardian.start(guardian.read_order())
    guardian.watch()
