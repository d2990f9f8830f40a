"""Pseudo-terminals, as an event loop reads and writes them, and what types on them."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import os
import pwd
import signal
import termios
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROWS = 100
"""Height that programs are told; the model in ``screen.py`` has the same."""
COLUMNS = 1000
"""Width that programs are told: that of the protocol's window, so that little is wrapped."""
READ_BYTES = 65_536
MAX_READS = 64
"""Reads before the event loop gets its turn: a terminal hands over 4 KiB at a time."""

LFLAG = 3
ECHO_FLAGS = termios.ECHO | termios.ECHONL


class Terminal:
    """A pseudo-terminal: the master side for us, a path for those who open the other side.

    Output is not post-processed, which makes it three times as fast; input is not echoed.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, *, raw: bool, user: str | None) -> None:
        self._loop = loop
        # We hold the slave side, so that the terminal stays up while nobody else has it open; a
        # hang-up reaches us all the same when the session's leader ends.
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
        # Ctrl-S would stop the output for good.
        modes[0] &= ~termios.IXON
        if raw:
            modes[0] &= ~termios.ICRNL
            modes[LFLAG] &= ~(termios.ICANON | termios.ISIG | termios.IEXTEN)
        else:
            # Where the C library has it, the line editor of the driver then knows characters.
            modes[0] |= getattr(termios, "IUTF8", 0)
        termios.tcsetattr(self.slave, termios.TCSANOW, modes)
        termios.tcsetwinsize(self.slave, (ROWS, COLUMNS))
        return termios.tcgetattr(self.slave)

    def restore_modes(self) -> None:
        """Undo what a program did to the terminal's modes, as a person does with ``reset``."""
        with contextlib.suppress(termios.error):
            if termios.tcgetattr(self.master) != self._modes:
                termios.tcsetattr(self.master, termios.TCSANOW, self._modes)

    def foreground(self) -> int:
        """Process group that reads the keyboard; -1 if it cannot be told."""
        try:
            return os.tcgetpgrp(self.master)
        except OSError:
            return -1

    def has_unread_input(self) -> bool:
        """Whether something was typed that no program has read yet, here or in the driver."""
        count = fcntl.ioctl(self.slave, termios.FIONREAD, b"\0\0\0\0")
        return bool(self._unsent) or any(count)

    def discard_input(self) -> bool:
        """Drop what was typed and not read; tell whether there were whole lines of it."""
        unread = self.has_unread_input()
        self._unsent.clear()
        termios.tcflush(self.master, termios.TCOFLUSH)  # on its way to the driver
        termios.tcflush(self.slave, termios.TCIFLUSH)
        return unread

    def start_reading(self, on_data: Callable[[bytes], None], on_end: Callable[[], None]) -> None:
        """Deliver what is written to the slave side; ``on_end`` follows a hang-up, once."""
        self._on_data = on_data
        self._on_end = on_end
        self._reading = True
        self._loop.add_reader(self.master, self.read_now)

    def read_now(self) -> None:
        """Deliver what has arrived already."""
        pieces: list[bytes] = []
        ended = False
        while self._reading and not ended and len(pieces) < MAX_READS:
            try:
                piece = os.read(self.master, READ_BYTES)
            except BlockingIOError:
                break
            except OSError as error:
                if error.errno != errno.EIO:
                    raise
                piece = b""
            if piece:
                pieces.append(piece)
            else:
                ended = True
        if pieces:
            self._on_data(b"".join(pieces))
        if ended:
            self._stop_reading()
            self._on_end()

    def write(self, data: bytes) -> None:
        """Type; what the terminal cannot take yet follows as soon as it can."""
        waiting = bool(self._unsent)
        self._unsent.append(memoryview(data))
        if not waiting and not self._send():
            self._loop.add_writer(self.master, self._send_more)

    def _send(self) -> bool:
        """Write what the terminal takes now, and tell whether that was all."""
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
            self._unsent.clear()  # Hung up: nobody will read it.
        return True

    def _send_more(self) -> None:
        if self._send():
            self._loop.remove_writer(self.master)

    def _stop_reading(self) -> None:
        if self._reading:
            self._reading = False
            self._loop.remove_reader(self.master)

    def inject(self, data: bytes) -> bool:
        """Write to the slave side, behind all that is there; False if it has to be read first."""
        try:
            slave = os.open(self.path, os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK)
        except OSError:
            return True  # Hung up; the reader learns it as well.
        try:
            return os.write(slave, data) == len(data)
        except BlockingIOError:
            return False
        except OSError:
            return True
        finally:
            os.close(slave)

    def close(self) -> None:
        """Give the terminal back. Whoever still has it open sees a hang-up."""
        if self.master >= 0:
            self._stop_reading()
            self._loop.remove_writer(self.master)
            os.close(self.master)
            os.close(self.slave)
            self.master = self.slave = -1


STANDARD_INPUT = b"0x0"
LINE_BUFFER = b"0x400"
"""Size of the buffer into which bash 5 reads command lines; the ``read`` builtin has another."""


def read_proc(pid: int, name: str) -> bytes:
    """Read a file under /proc; empty where there is none. ``auxv`` changes with ``exec``."""
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""


def is_interactive_bash(pid: int) -> bool:
    """Whether a process is, by its arguments, a bash that reads commands from its terminal."""
    program, *options = read_proc(pid, "cmdline").split(b"\0")[:-1] or [b""]
    return os.path.basename(program).lstrip(b"-") == b"bash" and all(
        option.startswith(b"-") and (option.startswith(b"--") or b"c" not in option)
        for option in options
    )


def waits_for_command_line(pid: int, terminal: Terminal) -> bool:
    """Whether a bash waits for a command line, by the system call, and nothing typed is unread."""
    return (
        terminal.foreground() == pid
        and not terminal.has_unread_input()
        # Number, descriptor, address, size.
        and read_proc(pid, "syscall").split()[1:4:2] == [STANDARD_INPUT, LINE_BUFFER]
    )


INTERRUPT = b"\x03"
EXEC_SECONDS = 0.05
"""Seconds in which a program that bash was about to start has certainly started."""


class Keyboard:
    """Types on a terminal on which bash runs.

    An interrupt while bash starts a program is caught by a copy of bash, and forgotten: it is
    repeated.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, terminal: Terminal, pid: int) -> None:
        self._loop = loop
        self._terminal = terminal
        self._pid = pid

    def type(self, data: bytes, is_running: Callable[[], bool]) -> None:
        """Type; ``is_running`` tells later on whether the command that it is for still runs."""
        starting = data == INTERRUPT and self._is_bash(self._terminal.foreground())
        self._terminal.write(data)
        if starting:
            self._loop.call_later(EXEC_SECONDS, self._interrupt_again, is_running)

    def _interrupt_again(self, is_running: Callable[[], bool]) -> None:
        """Interrupt a program that was being started when the key was pressed."""
        if not is_running():
            return
        group = self._terminal.foreground()
        if group > 0 and not self._is_bash(group):
            # To the group itself: bash may be back in the foreground the next instant.
            with contextlib.suppress(OSError):
                os.killpg(group, signal.SIGINT)

    def _is_bash(self, pid: int) -> bool:
        """Tell whether a process is bash, or a fork of it that runs no other program yet."""
        # The command line is empty for an instant while the program is replaced.
        return read_proc(pid, "cmdline") in (b"", read_proc(self._pid, "cmdline"))
