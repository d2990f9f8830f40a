"""Pseudo-terminals on an event loop, and a keyboard for them."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import os
import pwd
import re
import signal
import termios
from collections import deque
from collections.abc import Callable
from typing import Any

ROWS = 100
"""Height reported to programs, as in ``screen.py``."""
COLUMNS = 1000
"""Width reported to programs, as in the protocol, so that few lines wrap."""
READ_BYTES = 65_536
MAX_READS = 64
"""Maximum reads without yielding to the event loop; a terminal returns 4 KiB per read."""

LFLAG = 3
ECHO_FLAGS = termios.ECHO | termios.ECHONL


class Terminal:
    """Pseudo-terminal: the master side for us, a path for programs.

    Without output post-processing it is three times as fast. Input is not echoed.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, *, raw: bool, user: str | None) -> None:
        self._loop = loop
        # We keep the slave side open, so that the terminal survives without other users; we still
        # get a hang-up when the session's leader ends.
        self.master, self.slave = os.openpty()
        self.path = os.ttyname(self.slave)
        os.set_blocking(self.master, False)
        self._modes = self._set_up(raw)
        if user is not None:
            os.chown(self.path, pwd.getpwnam(user).pw_uid, -1)
        self._unsent: deque[memoryview] = deque()
        self._reading = False

    def _set_up(self, raw: bool) -> list[Any]:
        modes = termios.tcgetattr(self.slave)
        modes[1] &= ~termios.OPOST
        modes[LFLAG] &= ~ECHO_FLAGS
        # Ctrl-S would stop the output permanently.
        modes[0] &= ~termios.IXON
        # Ctrl-C would discard output that we have not read, such as a marker.
        modes[LFLAG] |= termios.NOFLSH
        if raw:
            modes[0] &= ~termios.ICRNL
            modes[LFLAG] &= ~(termios.ICANON | termios.ISIG | termios.IEXTEN)
        else:
            # With IUTF8 the driver's line editor deletes whole characters.
            modes[0] |= getattr(termios, "IUTF8", 0)
        termios.tcsetattr(self.slave, termios.TCSANOW, modes)
        termios.tcsetwinsize(self.slave, (ROWS, COLUMNS))
        return termios.tcgetattr(self.slave)

    def restore_modes(self) -> None:
        """Restore the terminal's modes after a program has changed them, like ``reset``."""
        with contextlib.suppress(termios.error):
            if termios.tcgetattr(self.master) != self._modes:
                termios.tcsetattr(self.master, termios.TCSANOW, self._modes)

    def foreground(self) -> int:
        """Return the foreground process group; -1 if it is unknown."""
        try:
            return os.tcgetpgrp(self.master)
        except OSError:
            return -1

    def has_unread_input(self) -> bool:
        """Return whether typed input is unread, here or in the driver."""
        count = fcntl.ioctl(self.slave, termios.FIONREAD, b"\0\0\0\0")
        return bool(self._unsent) or any(count)

    def discard_input(self) -> bool:
        """Discard unread input; return whether there was any."""
        unread = self.has_unread_input()
        self._unsent.clear()
        termios.tcflush(self.master, termios.TCOFLUSH)  # in transit to the driver
        termios.tcflush(self.slave, termios.TCIFLUSH)
        return unread

    def start_reading(self, on_data: Callable[[bytes], None], on_end: Callable[[], None]) -> None:
        """Deliver output of the slave side; call ``on_end`` once after a hang-up."""
        self._on_data = on_data
        self._on_end = on_end
        self._reading = True
        self._loop.add_reader(self.master, self.read_now)

    def read_now(self) -> None:
        """Deliver output that has arrived."""
        chunks: list[bytes] = []
        ended = False
        while self._reading and not ended and len(chunks) < MAX_READS:
            try:
                chunk = os.read(self.master, READ_BYTES)
            except BlockingIOError:
                break
            except OSError as error:
                if error.errno != errno.EIO:
                    raise
                chunk = b""
            if chunk:
                chunks.append(chunk)
            else:
                ended = True
        if chunks:
            self._on_data(b"".join(chunks))
        if ended:
            self._stop_reading()
            self._on_end()

    def write(self, data: bytes) -> None:
        """Type; queue what the terminal cannot accept yet."""
        is_queued = bool(self._unsent)
        self._unsent.append(memoryview(data))
        if not is_queued and not self._send():
            self._loop.add_writer(self.master, self._send_more)

    def _send(self) -> bool:
        """Write as much as the terminal accepts; return whether that was all."""
        try:
            while self._unsent:
                sent = os.write(self.master, self._unsent[0])
                if sent < len(self._unsent[0]):
                    self._unsent[0] = self._unsent[0][sent:]
                else:
                    self._unsent.popleft()
        except BlockingIOError:
            return False
        except OSError:
            self._unsent.clear()  # hung up: no program will read it
        return True

    def _send_more(self) -> None:
        if self._send():
            self._loop.remove_writer(self.master)

    def _stop_reading(self) -> None:
        if self._reading:
            self._reading = False
            self._loop.remove_reader(self.master)

    def inject(self, data: bytes) -> bool:
        """Write to the slave side after all pending output; return False if it is full."""
        try:
            slave = os.open(self.path, os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK)
        except OSError:
            return True  # hung up; the reader detects it, too
        try:
            return os.write(slave, data) == len(data)
        except BlockingIOError:
            return False
        except OSError:
            return True
        finally:
            os.close(slave)

    def close(self) -> None:
        """Close the terminal; programs that have it open get a hang-up."""
        if self.master >= 0:
            self._stop_reading()
            self._loop.remove_writer(self.master)
            os.close(self.master)
            os.close(self.slave)
            self.master = self.slave = -1


STANDARD_INPUT = b"0x0"
LINE_BUFFER = b"0x400"
"""Size of bash 5's buffer for command lines; the ``read`` builtin uses a different one."""


def read_proc(pid: int, name: str) -> bytes:
    """Return a file under /proc, or b""; ``auxv`` changes with ``exec``."""
    try:
        with open(f"/proc/{pid}/{name}", "rb", buffering=0) as file:
            return file.readall()
    except OSError:
        return b""


def is_interactive_bash(pid: int) -> bool:
    """Return whether the arguments of a process are those of an interactive bash."""
    program, *options = read_proc(pid, "cmdline").split(b"\0")[:-1] or [b""]
    return os.path.basename(program).lstrip(b"-") == b"bash" and all(
        option.startswith(b"-") and (option.startswith(b"--") or b"c" not in option)
        for option in options
    )


def waits_for_command_line(pid: int, terminal: Terminal) -> bool:
    """Return whether bash is in the system call that reads a command line, without unread input."""
    return (
        terminal.foreground() == pid
        and not terminal.has_unread_input()
        # Fields: number, descriptor, address, size.
        and read_proc(pid, "syscall").split()[1:4:2] == [STANDARD_INPUT, LINE_BUFFER]
    )


def ends_on_interrupt(pid: int) -> bool:
    """Return whether a process neither catches nor ignores SIGINT."""
    masks = re.findall(rb"^Sig(?:Ign|Cgt):\s*([0-9a-f]+)$", read_proc(pid, "status"), re.MULTILINE)
    return not any(int(mask, 16) >> (signal.SIGINT - 1) & 1 for mask in masks)


def has_not_ended(pid: int) -> bool:
    """Return whether a process exists and has not exited."""
    return read_proc(pid, "stat").rpartition(b") ")[2][:1] not in (b"", b"Z", b"X")


INTERRUPT = b"\x03"
EXEC_SECONDS = 0.05
"""Time that bash usually needs to start a program."""
MAX_EXEC_CHECKS = 40
"""Maximum number of checks whether a fork of bash has started its program."""


class Keyboard:
    """Types on the terminal of a bash.

    An interrupt is lost if it arrives while bash starts a program, since it then reaches only a
    fork of bash, or a program that ends at the same moment. So a command that continues is
    interrupted once more: its program, and bash, which then runs no other one.
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, terminal: Terminal, find_pid: Callable[[], int]
    ) -> None:
        self._loop = loop
        self._terminal = terminal
        self._find_pid = find_pid

    def type(self, data: bytes, is_running: Callable[[], bool]) -> None:
        """Type; ``is_running`` reports whether the addressed command is still running."""
        group = self._terminal.foreground()
        may_be_lost = data == INTERRUPT and not self._handles_interrupts(group)
        self._terminal.write(data)
        if may_be_lost:
            has_reached_bash = group == self._find_pid()
            self._interrupt_later(is_running, has_reached_bash, MAX_EXEC_CHECKS)

    def _interrupt_later(
        self, is_running: Callable[[], bool], has_reached_bash: bool, checks: int
    ) -> None:
        self._loop.call_later(
            EXEC_SECONDS, self._interrupt_again, is_running, has_reached_bash, checks - 1
        )

    def _interrupt_again(
        self, is_running: Callable[[], bool], has_reached_bash: bool, checks: int
    ) -> None:
        """Interrupt what the key has not reached, once it is known what that is."""
        group, bash = self._terminal.foreground(), self._find_pid()
        if group <= 0 or not is_running():
            return
        has_fork = any(map(self._is_bash, self._programs_of(group)))
        if checks and (has_reached_bash if group == bash else has_fork):
            # A fork may be about to start a program that handles interrupts, and bash may be about
            # to run a trap.
            self._interrupt_later(is_running, has_reached_bash, checks)
            return
        interrupts_bash = not self._handles_interrupts(group) and is_interactive_bash(bash)
        with contextlib.suppress(OSError):  # they end at this moment
            if group != bash:
                os.killpg(group, signal.SIGINT)
        with contextlib.suppress(OSError):
            if interrupts_bash:
                os.kill(bash, signal.SIGINT)

    def _handles_interrupts(self, group: int) -> bool:
        """Return whether a group has a program that handles an interrupt itself.

        Where one does, bash runs the rest of the command line, which a repeated interrupt must not
        reach.
        """
        return group != self._find_pid() and not all(
            self._is_bash(pid) or ends_on_interrupt(pid) for pid in self._programs_of(group)
        )

    def _programs_of(self, group: int) -> list[int]:
        """Return bash's children in a group; only its leader if bash has none there."""
        bash = self._find_pid()
        pids = []
        for pid in map(int, read_proc(bash, f"task/{bash}/children").split()):
            with contextlib.suppress(OSError):
                pids += [pid] if os.getpgid(pid) == group else []
        return pids or [group]

    def _is_bash(self, pid: int) -> bool:
        """Return whether a process is bash, or a fork of it before ``exec``."""
        command_line = read_proc(pid, "cmdline")
        if not command_line:  # during exec, and at the end
            return has_not_ended(pid)
        return command_line == read_proc(self._find_pid(), "cmdline")
