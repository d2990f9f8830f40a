"""Events of the directories of a workspace, with the process that caused each where that is known.

Linux queues an event in the system call that changes a file, so reading the queue shows everything
that changed until now. fanotify names the process, and needs a privilege; inotify does not.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import struct
import sys
import weakref
from collections.abc import Iterator
from typing import NamedTuple, Protocol

from oh_jupyter.checkpoints.c_library import call

_MODIFY, _ATTRIB, _CLOSE_WRITE = 0x2, 0x4, 0x8
_MOVED_FROM, _MOVED_TO, _CREATE, _DELETE = 0x40, 0x80, 0x100, 0x200
_DELETE_SELF, _MOVE_SELF = 0x400, 0x800
_CHANGES = _MODIFY | _ATTRIB | _CLOSE_WRITE | _MOVED_FROM | _MOVED_TO | _CREATE | _DELETE
_SELF = _DELETE_SELF | _MOVE_SELF
_NAMES = _MOVED_FROM | _MOVED_TO | _CREATE | _DELETE
_OVERFLOW = 0x4000
_FOLDER = 0x40000000
_ON_CHILD = 0x08000000
"""Bits of events; fanotify and inotify share them."""

_CLOSE_ON_EXEC_AND_NAMES = 0x1 | 0x400 | 0x800
_NONBLOCK = 0x2
_UNLIMITED_MARKS = 0x20
"""Only with the privilege for this, events name other processes."""

_MARK_ADD_THIS_FOLDER = 0x1 | 0x4 | 0x8
_THIS_FOLDER = 0x01000000 | 0x02000000
"""Flags against following a link, or watching anything but a directory."""

_AT_CURRENT_FOLDER = -100
_HANDLE_BYTES = 128
_READ_BYTES = 1 << 18

REMOTE_FILE_SYSTEMS = ("nfs", "cifs", "smb", "fuse", "9p", "lustre", "gpfs", "ceph", "virtiofs")
"""File systems whose changes by other machines cause no event here."""


class Event(NamedTuple):
    """A change in a directory.

    Attributes:
        path: Relative to the workspace; "" if events were lost: the queue was too long, or the
            workspace itself was moved or removed.
        pid: The process that caused it, 0 if that is not known.
        is_folder: Whether the path is a directory.
        is_new_name: Whether the path appeared or disappeared, rather than changed.
    """

    path: str
    pid: int
    is_folder: bool
    is_new_name: bool


class _Source(Protocol):
    """A queue of events of the system."""

    names_processes: bool
    fd: int

    def add(self, folder: str) -> object:
        """Watch a directory; return the key of its events."""

    def events(self, data: bytes) -> Iterator[tuple[object, int, str, int]]:
        """Return key of the directory, bits, name and process of each event."""


class Watch:
    """Events of some directories of a workspace.

    Attributes:
        names_processes: Whether events name the process that caused them.
        fd: Descriptor that is readable when there are events.
    """

    def __init__(self, root: str) -> None:
        """Watch no directory yet.

        Raises:
            OSError: There is no such queue on this system, or the file system is a remote one.
        """
        if not sys.platform.startswith("linux"):
            raise OSError(errno.ENOSYS, "no change events on this system")
        kind = file_system(root)
        if kind.startswith(REMOTE_FILE_SYSTEMS):
            raise OSError(errno.EREMOTE, f"no change events on the file system {kind}")
        self._root = root
        self._folders: dict[object, str] = {}
        self._source = _open_source(root)
        self.names_processes, self.fd = self._source.names_processes, self._source.fd
        self.close = weakref.finalize(self, os.close, self.fd)
        self.close.atexit = False  # a runtime may be closed after Python's exit handlers

    def add(self, folder: str) -> None:
        """Watch a directory, named relative to the workspace; "" is the workspace.

        Raises:
            OSError: The directory is gone, or the limit of watches is reached.
        """
        self._folders[self._source.add(os.path.join(self._root, folder))] = folder

    def forget(self, folder: str) -> None:
        """Ignore the events of a directory that was moved or removed, and of those below it."""
        below = f"{folder}/"
        self._folders = {
            key: path
            for key, path in self._folders.items()
            if path != folder and not path.startswith(below)
        }

    def read(self) -> Iterator[Event]:
        """Return the events until now."""
        while data := self._read():
            for key, bits, name, pid in self._source.events(data):
                folder = self._folders.get(key)
                if bits & _OVERFLOW or (bits & _SELF and folder == ""):
                    yield Event("", 0, False, False)
                elif folder is not None and (event := self._event(folder, bits, name, pid)):
                    yield event

    def _event(self, folder: str, bits: int, name: str, pid: int) -> Event | None:
        if name in ("", "."):  # of the directory itself
            is_change = folder and bits & _ATTRIB
            return Event(folder, pid, True, False) if is_change else None
        path, is_folder = f"{folder}/{name}" if folder else name, bool(bits & _FOLDER)
        if is_folder and bits & (_MOVED_FROM | _DELETE):
            self.forget(path)
        return Event(path, pid, is_folder, bool(bits & _NAMES))

    def _read(self) -> bytes:
        with contextlib.suppress(BlockingIOError):
            return os.read(self.fd, _READ_BYTES)
        return b""


def file_system(path: str) -> str:
    """Return the type of the file system that holds a path, "" if it is not known."""
    best = kind = ""
    with contextlib.suppress(OSError), open("/proc/self/mountinfo", encoding="utf-8") as mounts:
        for line in mounts:
            fields, _, rest = line.partition(" - ")
            point = fields.split()[4].replace("\\040", " ")
            inside = path == point or path.startswith(point.rstrip("/") + "/")
            if inside and len(point) >= len(best):
                best, kind = point, rest.split()[0]
    return kind


def _open_source(root: str) -> _Source:
    with contextlib.suppress(OSError):
        source = _Fanotify()
        try:
            source.add(root)
            return source
        except OSError:  # such as on an overlay of an old kernel
            os.close(source.fd)
    return _Inotify()


class _Fanotify:
    names_processes = True

    def __init__(self) -> None:
        flags = _CLOSE_ON_EXEC_AND_NAMES | _NONBLOCK | _UNLIMITED_MARKS
        self.fd = call("fanotify_init", flags, os.O_RDONLY)

    def add(self, folder: str) -> object:
        name, mask = os.fsencode(folder), ctypes.c_uint64(_CHANGES | _SELF | _ON_CHILD | _FOLDER)
        call("fanotify_mark", self.fd, _MARK_ADD_THIS_FOLDER, mask, _AT_CURRENT_FOLDER, name)
        handle = ctypes.create_string_buffer(8 + _HANDLE_BYTES)
        struct.pack_into("I", handle, 0, _HANDLE_BYTES)
        mount = ctypes.c_int()
        call("name_to_handle_at", _AT_CURRENT_FOLDER, name, handle, ctypes.byref(mount), 0)
        size = struct.unpack_from("I", handle)[0]
        return handle.raw[4 : 8 + size]

    def events(self, data: bytes) -> Iterator[tuple[object, int, str, int]]:
        start = 0
        while start < len(data):
            length, _, _, header, bits, _, pid = struct.unpack_from("IBBHQii", data, start)
            key, name = b"", b""
            if length > header:  # after the identity of the file system
                record = start + header
                size = struct.unpack_from("I", data, record + 12)[0]
                key = data[record + 16 : record + 20 + size]
                name = data[record + 20 + size : start + length].split(b"\0", 1)[0]
            yield key, bits, os.fsdecode(name), pid
            start += length


class _Inotify:
    names_processes = False

    def __init__(self) -> None:
        self.fd = call("inotify_init1", os.O_NONBLOCK | os.O_CLOEXEC)

    def add(self, folder: str) -> object:
        return call(
            "inotify_add_watch", self.fd, os.fsencode(folder), _CHANGES | _SELF | _THIS_FOLDER
        )

    def events(self, data: bytes) -> Iterator[tuple[object, int, str, int]]:
        start = 0
        while start < len(data):
            key, bits, _, size = struct.unpack_from("iIII", data, start)
            start += 16 + size
            yield key, bits, os.fsdecode(data[start - size : start].split(b"\0", 1)[0]), 0
