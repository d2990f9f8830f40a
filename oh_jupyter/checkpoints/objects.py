"""Contents of files stored as git stores them, without a process for each."""

from __future__ import annotations

import contextlib
import hashlib
import os
import uuid
import zlib
from pathlib import Path

_COMPRESSION = 1
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)


def store(directory: Path, contents: bytes) -> str:
    """Store contents in a repository, unless it has them, and return git's id of them.

    Raises:
        OSError: The repository is not writable, or the disk is full.
    """
    data = b"blob %d\0" % len(contents) + contents
    id = hashlib.sha1(data, usedforsecurity=False).hexdigest()
    folder = os.path.join(directory, "objects", id[:2])
    target = os.path.join(folder, id[2:])
    if os.path.exists(target):
        return id
    fresh = os.path.join(folder, f"tmp_obj_{uuid.uuid4().hex}")
    try:
        descriptor = os.open(fresh, _CREATE, 0o400)
    except FileNotFoundError:
        os.makedirs(folder, exist_ok=True)
        descriptor = os.open(fresh, _CREATE, 0o400)
    try:
        with open(descriptor, "wb") as file:
            file.write(zlib.compress(data, _COMPRESSION))
        os.replace(fresh, target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(fresh)
        raise
    return id
