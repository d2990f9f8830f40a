"""Directory listings, and the rules for replacing and sending files."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

from oh_jupyter.descriptors import SEARCH, has_paths, path_of, path_to
from oh_jupyter.errors import DiskFullError, TransferError, is_full


def list_directory(path: str | None, workspace_dir: str) -> list[str]:
    """Return the names in a directory, directories first with a slash, ignoring case.

    Hidden entries are included, dangling links are not. As in the protocol, an unreadable directory
    is []. A relative path starts at the workspace, whatever the shell's directory.
    """
    directory = os.path.join(workspace_dir, path) if path else workspace_dir
    directories: list[str] = []
    files: list[str] = []
    try:
        with os.scandir(directory) as entries:
            for entry in entries:
                if entry.is_dir():
                    directories.append(entry.name + "/")
                elif os.path.exists(entry.path):
                    files.append(entry.name)
    except (OSError, ValueError):
        return []
    return sorted(directories, key=str.lower) + sorted(files, key=str.lower)


class HeldDirectory:
    """A directory that stays open while a person is asked about it.

    Attributes:
        real: Its real path.
        contents: A path that leads to it whatever becomes of its name.
    """

    def __init__(self, path: str) -> None:
        """Open it; one that cannot be opened has no contents."""
        self._descriptor = -1
        self.real = self.contents = path
        with suppress(OSError, ValueError):  # a path with a NUL character
            self.real = self.contents = os.path.realpath(path)
            if has_paths():
                self._descriptor = os.open(path, SEARCH)
                self.real, self.contents = path_of(self._descriptor), str(path_to(self._descriptor))

    def close(self) -> None:
        """Close it; may be called repeatedly."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


_KINDS = {
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}

_MOUNTS = "/proc/self/mountinfo"
_VIRTUAL = {
    "binfmt_misc",
    "bpf",
    "cgroup",
    "cgroup2",
    "configfs",
    "debugfs",
    "devpts",
    "fusectl",
    "mqueue",
    "proc",
    "pstore",
    "securityfs",
    "sysfs",
    "tracefs",
}


def kind_name(mode: int) -> str:
    """Return the kind of file that a mode describes, in words."""
    return _KINDS.get(stat.S_IFMT(mode), "a file")


def unwritable(message: str, error: OSError) -> TransferError:
    """Return the error for a failed write, with its own class if the disk is full."""
    cls = DiskFullError if is_full(error) else TransferError
    return cls(f"{message} cannot be written: {error.strerror or error}")


def check_replaceable(path: Path) -> None:
    """Raise TransferError unless a path is missing, or a writable regular file or link to one."""
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISREG(mode):
        raise TransferError(
            f"{path} is {kind_name(mode)}: only regular files are replaced; nothing was changed"
        )
    if not os.access(path, os.W_OK):
        raise TransferError(f"{path} may not be written; nothing was changed")


def virtual_devices() -> set[int]:
    """Return the device numbers of mounted virtual file systems such as ``/proc``."""
    try:
        with open(_MOUNTS, encoding="utf-8", errors="replace") as mounts:
            # "36 35 98:0 /root /mount/point options ... - type source options", see proc(5)
            split = [line.partition(" - ") for line in mounts]
    except OSError:  # exists on Linux only
        return set()
    numbers = (
        before.split()[2] for before, _, after in split if after.partition(" ")[0] in _VIRTUAL
    )
    return {os.makedev(*map(int, number.split(":"))) for number in numbers}
