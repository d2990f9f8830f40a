"""Folder of the user's ledger: that of the rest of the user's state, unless it is on a network.

A write-ahead log is shared memory of one machine. Two machines that open the same one destroy it.
"""

from __future__ import annotations

import functools
import hashlib
import os
import sys
import tempfile
from pathlib import Path

from oh_jupyter.config import state_home
from oh_jupyter.private_folder import candidates, first_private

FILE_NAME = "ledger.db"

_LOCAL_TYPES = {
    *("apfs", "bcachefs", "btrfs", "exfat", "f2fs", "ffs", "hfs", "ntfs", "refs", "ufs", "zfs"),
    *("overlay", "ramfs", "rootfs", "tmpfs"),
}


def ledger_folder() -> Path:
    """Return the folder of the user's ledger, which may not exist yet.

    It is the directory of the user's state. If that is on a network or cannot be written, it is a
    private one in the machine's temporary directory that survives a reboot.
    """
    home = state_home()
    return local_folder(home) if obstacle(home) else home


def obstacle(folder: Path) -> str:
    """Return why a ledger cannot be in a folder, or in the one in which it will be made, or ""."""
    existing = folder
    while not os.path.lexists(existing) and existing != existing.parent:
        existing = existing.parent
    if not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
        return "cannot be written"
    return "" if is_local(existing) else "is on a network"


def local_folder(home: Path) -> Path:
    """Return the folder on this machine for the state that belongs to a directory elsewhere."""
    folder = first_private(candidates("oh_jupyter-"))
    private = _folder_of_process() if folder is None else Path(folder)
    return private / hashlib.sha256(os.fsencode(home)).hexdigest()[:16]


def _folder_of_process() -> Path:
    global _own_folder
    if _own_folder is None:
        _own_folder = tempfile.TemporaryDirectory(prefix="oh_jupyter-")
    return Path(_own_folder.name)


_own_folder: tempfile.TemporaryDirectory[str] | None = None


def is_local(folder: Path) -> bool:
    """Return whether a directory is on a file system of this machine alone."""
    device = os.stat(folder).st_dev
    if sys.platform == "linux" and os.major(device):
        return True  # network and user-space file systems have no device
    return _is_local_type(device, os.path.realpath(folder))


@functools.lru_cache(maxsize=16)
def _is_local_type(device: int, folder: str) -> bool:
    """Return whether the file system of a real path has a type of this machine alone."""
    mounts = _linux_mounts(device) if sys.platform == "linux" else _other_mounts()
    kinds = {
        path: kind
        for path, kind in mounts
        if folder == path or folder.startswith(path.rstrip(os.sep) + os.sep)
    }
    return bool(kinds) and kinds[max(kinds, key=len)].lower() in _LOCAL_TYPES


def _linux_mounts(device: int) -> list[tuple[str, str]]:
    """Return path and type of each file system; those of a device if there are any.

    Only this file is read, because asking a network that hangs would hang, too.
    """
    name = f"{os.major(device)}:{os.minor(device)}"
    mounts = []
    for line in Path("/proc/self/mountinfo").read_bytes().splitlines():
        before, _, after = line.partition(b" - ")
        _, _, number, _, path, *_ = before.split()
        path = path.decode("unicode_escape").encode("latin-1")  # spaces are written as \\040
        mounts.append((number.decode(), os.fsdecode(path), after.split()[0].decode()))
    same = [(path, kind) for number, path, kind in mounts if number == name]
    return same or [(path, kind) for _, path, kind in mounts]


def _other_mounts() -> list[tuple[str, str]]:
    import psutil

    return [(each.mountpoint, each.fstype) for each in psutil.disk_partitions(all=True)]
