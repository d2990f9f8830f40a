"""Deleting below an open directory, also while others write in there."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
import stat

from oh_jupyter.storage.local.directory import Directory

__all__ = ["delete", "temporary_name"]

_MAX_ATTEMPTS = 50


def temporary_name() -> str:
    """Make up a name that the store does not show."""
    return f".oh-{secrets.token_hex(8)}.tmp"


def delete(directory: Directory, name: str) -> None:
    """Delete an entry, and everything below it.

    Args:
        directory: Where it is.
        name: Its name.

    Raises:
        OSError: If it is not there, or cannot be deleted; then nothing is hidden.
    """
    path = directory.at(name)
    status = os.stat(path, dir_fd=directory.fd, follow_symlinks=False)
    if not stat.S_ISDIR(status.st_mode):
        os.unlink(path, dir_fd=directory.fd)
        return
    # Under another name nobody finds it any more, so a steady writer cannot keep it full.
    doomed = directory.at(temporary_name())
    try:
        os.rename(path, doomed, src_dir_fd=directory.fd, dst_dir_fd=directory.fd)
    except FileNotFoundError:
        return
    except OSError:  # such as a disk that is mounted there
        _delete_tree(directory, path)
        return
    try:
        _delete_tree(directory, doomed)
    except OSError:
        with contextlib.suppress(OSError):  # what could not be deleted shall not be hidden
            os.rename(doomed, path, src_dir_fd=directory.fd, dst_dir_fd=directory.fd)
        raise


def _delete_tree(directory: Directory, path: str) -> None:
    for attempt in range(1, _MAX_ATTEMPTS + 1):
        try:
            shutil.rmtree(path, dir_fd=directory.fd)
            return
        except OSError as error:
            # A write or another deletion that began before may still be going on in there.
            racing = error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT)
            if not racing or attempt == _MAX_ATTEMPTS:
                raise
            with contextlib.suppress(FileNotFoundError):
                os.stat(path, dir_fd=directory.fd, follow_symlinks=False)
                continue
            return
