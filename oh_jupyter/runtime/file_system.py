"""The file system as doors see it: listings, and which files are replaced or sent."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from oh_jupyter.errors import TransferError


def list_directory(path: str | None, workspace_dir: str) -> list[str]:
    """Names in a directory: directories first, with a slash; each group without regard to case.

    Hidden entries are included, dangling links left out; [] if it is no readable directory, as in
    the protocol. A relative path starts at the workspace, wherever the shell has moved to.
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
    """What a file mode stands for, in words."""
    return _KINDS.get(stat.S_IFMT(mode), "a file")


def check_replaceable(path: Path) -> None:
    """Refuse to replace anything but a regular file, or a link to one (TransferError)."""
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISREG(mode):
        raise TransferError(
            f"{path} is {kind_name(mode)}: only regular files are replaced; nothing was changed"
        )


def virtual_devices() -> set[int]:
    """Device numbers of the mounted file systems whose files the kernel makes up."""
    try:
        with open(_MOUNTS, encoding="utf-8", errors="replace") as mounts:
            # "36 35 98:0 /root /mount/point options ... - type source options", see proc(5)
            split = [line.partition(" - ") for line in mounts]
    except OSError:  # only Linux has them, and this list
        return set()
    found = (before.split()[2] for before, _, after in split if after.partition(" ")[0] in _VIRTUAL)
    return {os.makedev(*map(int, number.split(":"))) for number in found}
