"""Files and directories as a zip file, with the semantics of ``download_files``.

The archive is made while it is sent: it is nowhere on disk, and one piece of it in memory.
These functions block; call them in a worker thread.
"""

from __future__ import annotations

import io
import os
import stat
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

from oh_jupyter.errors import TransferError, TransferNotFoundError

__all__ = ["check_source", "zipped"]

PIECE_BYTES = 1024 * 1024
"""How much is read at once, and about as much is sent at once."""


def check_source(path: str) -> Path:
    """The path, if it can be downloaded; a TransferError if not."""
    if not os.path.isabs(path):
        raise TransferError("Path must be an absolute path")
    source = Path(path)
    if "\0" in path or not source.exists():
        raise TransferNotFoundError("File not found")
    if not (source.is_dir() or source.is_file()):
        raise TransferError(f"{path} is neither a file nor a directory")
    if not os.access(source, os.R_OK | (os.X_OK if source.is_dir() else 0)):
        raise TransferError(f"{path} may not be read")
    return source


def zipped(source: Path) -> Iterator[bytes]:
    """Zip a file, or all that is in a directory.

    Members are named relative to the directory. Empty directories are members too. What a
    link to a file leads to is taken; links to directories are left out, since they may lead in
    circles; so is what is no file (sockets, pipes) and what may not be read.

    Args:
        source: The file or directory.
    """
    sink = _Sink()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_STORED) as archive:
        for path, name in _members(source):
            if name.endswith("/"):
                archive.writestr(_entry(path, name), b"")
                continue
            try:
                opened = path.open("rb")
            except OSError:
                continue
            with opened, archive.open(_entry(path, name), "w", force_zip64=True) as member:
                while piece := opened.read(PIECE_BYTES):
                    member.write(piece)
                    if sink.size >= PIECE_BYTES:
                        yield sink.take()
    yield sink.take()


def _members(source: Path) -> Iterator[tuple[Path, str]]:
    """Paths and member names, sorted, a directory's with a slash at the end."""
    if source.is_file():
        yield source, source.name
        return
    for parent, directories, files in os.walk(source):
        directories[:] = sorted(d for d in directories if not os.path.islink(Path(parent, d)))
        here = Path(parent)
        if not directories and not files and here != source:
            yield here, here.relative_to(source).as_posix() + "/"
        for name in sorted(files):
            path = here / name
            if path.is_file():
                yield path, path.relative_to(source).as_posix()


def _entry(path: Path, name: str) -> zipfile.ZipInfo:
    """The header of a member; a zip file knows no years before 1980."""
    found = path.stat()
    moment = time.localtime(found.st_mtime)[:6]
    entry = zipfile.ZipInfo(
        name, min(max(moment, (1980, 1, 1, 0, 0, 0)), (2107, 12, 31, 23, 59, 59))
    )
    entry.external_attr = (found.st_mode & 0xFFFF) << 16
    if stat.S_ISDIR(found.st_mode):
        entry.external_attr |= 0x10
    return entry


class _Sink(io.RawIOBase):
    """What the archive writes into; it cannot be rewound, so the archive streams."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self.size = 0

    def writable(self) -> bool:
        return True

    def write(self, data: object) -> int:
        piece = bytes(data)  # type: ignore[call-overload]
        self._pieces.append(piece)
        self.size += len(piece)
        return len(piece)

    def take(self) -> bytes:
        """Take out what was written."""
        data = b"".join(self._pieces)
        self._pieces.clear()
        self.size = 0
        return data
