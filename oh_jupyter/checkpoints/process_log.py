"""The log of processes that start and end, by which even one that has ended has known ancestors.

Linux' performance events record each fork and exit in the moment in which it happens, in memory
that is read without a system call. They need the same privilege as events of files that name the
process.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import mmap
import os
import platform
import struct
import sys
import weakref

from oh_jupyter.checkpoints.c_library import c_library, call

_SYSTEM_CALLS = {"x86_64": 298, "aarch64": 241, "riscv64": 241, "ppc64le": 319, "s390x": 331}
"""Numbers of perf_event_open, which the C library does not wrap."""

_SOFTWARE, _DUMMY = 1, 9
_ATTRIBUTE_BYTES = 128
_DISABLED, _FORKS_AND_EXITS, _WAKE_BY_BYTES = 1 << 0, 1 << 13, 1 << 14
_EVERY_PROCESS = -1
_CLOSE_ON_EXEC = 8
_ENABLE, _DISABLE = 0x2400, 0x2401
_LOST, _EXIT, _FORK = 2, 4, 7

_BUFFER_BYTES = 32 * mmap.PAGESIZE
_MAPPED_BYTES = mmap.PAGESIZE + _BUFFER_BYTES
_WAKE_BYTES = _BUFFER_BYTES // 4
_RECORD_BYTES = 32
_HEAD, _TAIL = 1024, 1032
"""Offsets of the positions of the system and of the reader in the first page."""

MAX_PROCESSES = 4096
"""Number of processes above which those that have ended are forgotten."""


class ProcessLog:
    """The parents of the processes that have started while it was on.

    Attributes:
        fds: Descriptors that are readable when much has been recorded.
        is_complete: Whether every process since then is known.
    """

    def __init__(self) -> None:
        """Be off at first.

        Raises:
            OSError: The system has no such events, or they need a privilege.
        """
        self.fds: list[int] = []
        self.is_complete = False
        self._process = os.getpid()
        self._pages: list[memoryview] = []
        self._parents: dict[int, int] = {}
        self._ended: set[int] = set()
        self._ended_earlier: set[int] = set()
        addresses: list[int] = []
        self.close = weakref.finalize(self, _close, self._process, self.fds, self._pages, addresses)
        self.close.atexit = False  # a runtime may be closed after Python's exit handlers
        try:
            for cpu in sorted(_processors()):
                self.fds.append(_open(cpu))
                addresses.append(_map(self.fds[-1]))
                memory = (ctypes.c_char * _MAPPED_BYTES).from_address(addresses[-1])
                self._pages.append(memoryview(memory).cast("B"))
        except BaseException:
            self.close()
            raise

    def switch(self, on: bool) -> None:
        """Record from now on, or no longer."""
        if on:
            self.read()
            self._parents, self._ended, self._ended_earlier = {}, set(), set()
        for fd in self.fds:
            fcntl.ioctl(fd, _ENABLE if on else _DISABLE, 0)
        self.is_complete = on

    def parent(self, pid: int) -> int:
        """Return the process that started one, 0 if that is not recorded."""
        return self._parents.get(pid, 0)

    def running(self) -> set[int]:
        """Return those that have not ended."""
        return self._parents.keys() - self._ended - self._ended_earlier

    def read(self) -> None:
        """Take in what has been recorded until now."""
        if os.getpid() != self._process:  # a fork, which has no such memory
            return
        records: list[tuple[int, int, int, int]] = []
        for page in self._pages:
            (head,), (tail,) = (struct.unpack_from("Q", page, at) for at in (_HEAD, _TAIL))
            if head - tail >= _BUFFER_BYTES - _RECORD_BYTES:  # full: more was lost
                self._forget_all()
            buffer = page[mmap.PAGESIZE :]
            while tail < head:
                kind, record = _record(buffer, tail % _BUFFER_BYTES)
                if kind == _LOST:
                    self._forget_all()
                elif kind in (_FORK, _EXIT):
                    pid, parent, thread, _, time = struct.unpack_from("IIIIQ", record, 8)
                    if pid == thread:
                        records.append((time, kind, pid, parent))
                tail += len(record)
            struct.pack_into("Q", page, _TAIL, tail)
        for _, kind, pid, parent in sorted(records):
            self._note(kind, pid, parent)

    def _note(self, kind: int, pid: int, parent: int) -> None:
        if kind == _EXIT:
            self._ended.add(pid)
        else:
            self._parents[pid] = parent
            self._ended.discard(pid)
            self._ended_earlier.discard(pid)

    def _forget_all(self) -> None:
        """Forget all, because some were not recorded."""
        self._parents.clear()
        self.is_complete = False

    def forget_ended(self) -> None:
        """If they are many, forget those that had ended the last time.

        Their children get their parents.
        """
        if len(self._parents) <= MAX_PROCESSES:
            return
        self._parents = {
            pid: self._living_parent(pid) for pid in self._parents if pid not in self._ended_earlier
        }
        self._ended_earlier, self._ended = self._ended, set()

    def _living_parent(self, pid: int) -> int:
        parent = self._parents[pid]
        while parent in self._ended_earlier and parent in self._parents:
            parent = self._parents[parent]
        return parent


def _record(buffer: memoryview, start: int) -> tuple[int, bytes]:
    """Return the kind of a record and the record, whose end may be at the buffer's beginning."""
    kind, _, size = struct.unpack_from("IHH", buffer, start)
    record = bytes(buffer[start : start + size])
    return kind, record + bytes(buffer[: size - len(record)])


def _processors() -> set[int]:
    """Return the numbers of the processors that are on."""
    with open("/sys/devices/system/cpu/online", encoding="ascii") as file:
        ranges = [part.split("-") for part in file.read().strip().split(",")]
    return {cpu for each in ranges for cpu in range(int(each[0]), int(each[-1]) + 1)}


def _open(cpu: int) -> int:
    number = _SYSTEM_CALLS.get(platform.machine())
    if number is None or not sys.platform.startswith("linux"):
        raise OSError(errno.ENOSYS, "no events of processes on this system")
    attributes = bytearray(_ATTRIBUTE_BYTES)
    flags = _DISABLED | _FORKS_AND_EXITS | _WAKE_BY_BYTES
    fields = (_SOFTWARE, _ATTRIBUTE_BYTES, _DUMMY, 0, 0, 0, flags, _WAKE_BYTES)
    struct.pack_into("IIQQQQQI", attributes, 0, *fields)
    numbers = map(ctypes.c_long, (_EVERY_PROCESS, cpu, -1, _CLOSE_ON_EXEC))
    return call("syscall", ctypes.c_long(number), bytes(attributes), *numbers)


def _map(fd: int) -> int:
    """Map the buffer of a descriptor, which a fork does not inherit; return its address."""
    kinds = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    map_memory = ctypes.CFUNCTYPE(ctypes.c_void_p, *kinds, use_errno=True)(("mmap", c_library()))
    access = mmap.PROT_READ | mmap.PROT_WRITE
    address = map_memory(None, _MAPPED_BYTES, access, mmap.MAP_SHARED, fd, 0)
    if address in (None, ctypes.c_void_p(-1).value):
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return int(address)


def _close(process: int, fds: list[int], pages: list[memoryview], addresses: list[int]) -> None:
    pages.clear()
    while addresses:
        address = addresses.pop()
        if os.getpid() == process:
            call("munmap", ctypes.c_void_p(address), ctypes.c_size_t(_MAPPED_BYTES))
    while fds:
        os.close(fds.pop())
