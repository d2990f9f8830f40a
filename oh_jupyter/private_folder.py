"""Folders of this machine that only their user can write to, whatever the environment says."""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Iterable

if sys.platform == "win32":
    import tempfile

    ROOTS: tuple[str, ...] = (os.environ.get("LOCALAPPDATA") or tempfile.gettempdir(),)

    def user() -> int:
        """Return 0: the root belongs to this user, and files there have no numeric owner."""
        return 0
else:
    ROOTS = ("/var/tmp", "/tmp")  # the first survives a reboot

    def user() -> int:
        """Return the number of the user."""
        return os.geteuid()


_UNUSABLE_ERRNOS = (
    errno.EACCES,
    errno.EPERM,
    errno.EROFS,
    errno.ENOENT,
    errno.ENOTDIR,
    errno.EEXIST,
    errno.ELOOP,
)


def candidates(prefix: str) -> list[str]:
    """Return the folders of this user whose names begin with a prefix, the best first."""
    return [os.path.join(root, f"{prefix}{user()}") for root in ROOTS]


def first_private(folders: Iterable[str]) -> str | None:
    """Return the first folder that is private, made if it is missing; None without one."""
    for folder in folders:
        if is_private(folder):
            return folder
        try:
            os.mkdir(folder, 0o700)
        except OSError as error:
            if error.errno not in _UNUSABLE_ERRNOS:
                raise
        if is_private(folder):
            return folder
    return None


def is_private(folder: str) -> bool:
    """Return whether we can write to a folder, and nobody else can."""
    try:
        info = os.lstat(folder)
    except OSError:
        return False
    if not stat.S_ISDIR(info.st_mode) or not os.access(folder, os.W_OK):
        return False
    return sys.platform == "win32" or (info.st_uid == user() and not info.st_mode & 0o022)
