"""Files and directories as a zip file with the semantics of ``download_files``, or as a page.

The archive is made while it is sent: never on disk, and one piece in memory. A page shows a picture
or a PDF file as OpenHands' file viewer does: its agents open them in a browser without a PDF
viewer, and expect the pages of a PDF as canvases. These functions block; call them in a worker
thread.
"""

from __future__ import annotations

import base64
import errno
import hashlib
import html
import io
import mimetypes
import os
import stat
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from oh_jupyter.descriptors import has_paths, path_of, path_to
from oh_jupyter.errors import TransferError, TransferNotFoundError
from oh_jupyter.runtime.file_rules import kind_name, virtual_devices

STYLE = (
    "body{margin:0;background:#eee;text-align:center}img,canvas{max-width:100%}"
    "pre{white-space:pre-wrap;text-align:left;margin:1em auto;max-width:60em}"
)

DRAW = (
    "addEventListener('load',()=>{for(const image of document.querySelectorAll('section>img')){"
    "const canvas=image.nextElementSibling;canvas.width=image.naturalWidth;"
    "canvas.height=image.naturalHeight;canvas.getContext('2d').drawImage(image,0,0);"
    "image.remove()}})"
)
"""Script that draws the pictures of pages on their canvases."""

POLICY = (
    "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-"
    f"{base64.b64encode(hashlib.sha256(DRAW.encode()).digest()).decode()}'"
)
"""Content security policy of the pages: no script but ``DRAW``, and nothing from elsewhere."""


def page_pieces(source: Path, contents: Path | None = None) -> Iterator[bytes]:
    """Yield the page of a file in pieces; ``contents`` is another path that leads to it."""
    name = html.escape(source.name)
    head = f"<!doctype html><title>File Viewer - {name}</title><style>{STYLE}</style>"
    yield f"{head}<main>".encode()
    show = _pdf_sections if source.suffix.lower() == ".pdf" else _picture
    yield from show(source, contents or source)
    yield b"</main>"


def _picture(source: Path, contents: Path) -> Iterator[bytes]:
    kind = mimetypes.guess_type(source.name)[0]
    yield f'<img alt="{html.escape(source.name)}" src="data:{kind};base64,'.encode()
    rest = b""
    for piece in file_pieces(contents):
        whole = rest + piece
        rest = whole[len(whole) - len(whole) % 3 :]
        yield base64.b64encode(whole[: len(whole) - len(rest)])
    yield base64.b64encode(rest) + b'">'


def _pdf_sections(source: Path, contents: Path) -> Iterator[bytes]:
    """Yield the pages of a PDF file with their texts, or why they cannot be shown."""
    from oh_jupyter.browser.worker.pdf_view import pdf_pages

    try:
        pages, count = pdf_pages(contents)
    except Exception as error:  # the renderer may raise anything for a damaged file
        reason = f"{source.name} cannot be shown: {error}"
        yield f"<p>{html.escape(reason)}</p>".encode()
        return
    for page in pages:
        picture = base64.b64encode(page.picture)
        yield f'<section><img alt="{page.title}" src="data:image/png;base64,'.encode() + picture
        canvas = f'<canvas aria-label="{page.title}"></canvas>'
        yield f'">{canvas}<pre>{html.escape(page.text)}</pre></section>'.encode()
    if count > len(pages):
        yield f"<p>Only the first {len(pages)} of {count} pages are shown.</p>".encode()
    yield f"<script>{DRAW}</script>".encode()


PIECE_BYTES = 1024 * 1024
"""Size of a read, and approximate size of a sent piece."""

NOT_APPROVED = "a person would have to approve reading it"

MAX_NAMED_LEFT_OUT = 200
MAX_NAME_CHARS = 200


def check_source(path: str) -> Path:
    """Return the path if it can be downloaded; otherwise raise TransferError."""
    if not os.path.isabs(path):
        raise TransferError("Path must be an absolute path")
    source = Path(path)
    if "\0" in path or not source.exists():
        raise TransferNotFoundError("File not found")
    status = source.stat()
    if not (stat.S_ISDIR(status.st_mode) or stat.S_ISREG(status.st_mode)):
        raise TransferError(
            f"{path} is neither a file nor a directory, but {kind_name(status.st_mode)}"
        )
    if status.st_dev in virtual_devices():
        raise TransferError(
            f"{path} is a virtual file of the operating system. Read it with a command such as cat"
        )
    if not os.access(source, os.R_OK | (os.X_OK if source.is_dir() else 0)):
        raise TransferError(f"{path} may not be read")
    return source


def check_file(path: str) -> Path:
    """Return the path if it is a downloadable file; otherwise raise TransferError."""
    source = check_source(path)
    if source.is_dir():
        raise TransferError(f"{path} is a directory; download_files sends it as a zip file")
    return source


def file_pieces(source: Path) -> Iterator[bytes]:
    """Yield the pieces of a file."""
    with _open_regular(source) as opened:
        while piece := opened.read(PIECE_BYTES):
            yield piece


def zipped(
    source: Path, may_send: Callable[[str], bool] = lambda path: True, name: str | None = None
) -> Iterator[bytes]:
    """Yield a file, or a directory's contents, as a zip file in pieces of about ``PIECE_BYTES``.

    Members are named relative to the directory; empty directories are members too. Links to files
    are followed. Links to directories are omitted because they may form cycles, and so are sockets,
    pipes, devices, unreadable files and virtual files (``/proc``): the zip file's comment, which
    ``unzip`` prints, lists them. ``may_send`` decides about the real path of each open file;
    ``name`` names a single file.
    """
    sink = _Sink()
    left_out = _LeftOut()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_STORED) as archive:
        for path, member_name in _members(source, left_out, name or source.name):
            if member_name.endswith("/"):
                archive.writestr(_entry(path, member_name), b"")
                continue
            try:
                opened = _open_regular(path)
            except OSError as error:
                left_out.add(member_name, error.strerror or "it cannot be read")
                continue
            if not may_send(path_of(opened.fileno()) or os.path.realpath(path)):
                opened.close()
                left_out.add(member_name, NOT_APPROVED)
                continue
            entry = _entry(path, member_name)
            with opened, archive.open(entry, "w", force_zip64=True) as member:
                while piece := opened.read(PIECE_BYTES):
                    member.write(piece)
                    if sink.size >= PIECE_BYTES:
                        yield sink.take()
        archive.comment = left_out.text().encode()
    yield sink.take()


class HeldSource:
    """A file or directory that stays open while a person is asked about it.

    Attributes:
        name: Its name.
        real: Its real path.
        contents: A path that leads to it whatever becomes of its name.
        size: Its size in bytes.
    """

    def __init__(self, path: str, *, is_file: bool) -> None:
        """Open it; raise TransferError if it cannot be downloaded."""
        self._descriptor = -1
        source = check_file(path) if is_file else check_source(path)
        self._descriptor = os.open(source, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        self.name = source.name or "root"
        self.real = path_of(self._descriptor) or os.path.realpath(source)
        self.size = os.fstat(self._descriptor).st_size
        self.contents = path_to(self._descriptor) if has_paths() else Path(self.real)

    def pieces(self, make: Callable[[Path], Iterator[bytes]]) -> Iterator[bytes]:
        """Yield what ``make`` makes of the contents; close it at the end."""
        try:
            yield from make(self.contents)
        finally:
            self.close()

    def close(self) -> None:
        """Close it; may be called repeatedly."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __del__(self) -> None:
        """Close it: a transfer may end before its first piece."""
        self.close()


def _open_regular(path: Path) -> IO[bytes]:
    """Open a regular file without blocking on a pipe that may have replaced it."""
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, f"it is {kind_name(mode)}")
    return open(descriptor, "rb")


class _LeftOut:
    """Files of a directory that are not in its archive, with reasons."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._count = 0

    def add(self, name: str, reason: str) -> None:
        """Add a name relative to the directory."""
        self._count += 1
        if len(self._lines) < MAX_NAMED_LEFT_OUT:
            self._lines.append(f"{name[:MAX_NAME_CHARS]}: {reason}")

    def text(self) -> str:
        """Return a bounded list with one line for each, or ""."""
        if not self._lines:
            return ""
        more = self._count - len(self._lines)
        lines = [*self._lines, *([f"and {more} more"] if more else [])]
        return "\n".join(["Left out:", *lines])


def _members(source: Path, left_out: _LeftOut, own_name: str) -> Iterator[tuple[Path, str]]:
    """Yield paths and member names, sorted; names of directories end with a slash."""
    if source.is_file():
        yield source, own_name
        return
    virtual = virtual_devices()

    def unreadable(problem: OSError) -> None:
        left_out.add(os.path.relpath(problem.filename, source), problem.strerror or "unreadable")

    for parent, directories, files in os.walk(source, onerror=unreadable):
        folder = Path(parent)
        for name in list(directories):
            path = folder / name
            if path.is_symlink():
                directories.remove(name)
            elif path.stat().st_dev in virtual:
                directories.remove(name)
                left_out.add(path.relative_to(source).as_posix() + "/", "a virtual file")
        directories.sort()
        if not directories and not files and folder != source:
            yield folder, folder.relative_to(source).as_posix() + "/"
        for name in sorted(files):
            path = folder / name
            member = path.relative_to(source).as_posix()
            try:
                status = path.stat()
            except OSError:
                left_out.add(member, "a link to nothing")
                continue
            if not stat.S_ISREG(status.st_mode):
                left_out.add(member, kind_name(status.st_mode))
            elif status.st_dev in virtual:
                left_out.add(member, "a virtual file")
            else:
                yield path, member


def _entry(path: Path, name: str) -> zipfile.ZipInfo:
    """Return the header of a member; zip files support the years from 1980 to 2107."""
    status = path.stat()
    moment = time.localtime(status.st_mtime)[:6]
    entry = zipfile.ZipInfo(
        name, min(max(moment, (1980, 1, 1, 0, 0, 0)), (2107, 12, 31, 23, 59, 59))
    )
    entry.external_attr = (status.st_mode & 0xFFFF) << 16
    if stat.S_ISDIR(status.st_mode):
        entry.external_attr |= 0x10
    return entry


class _Sink(io.RawIOBase):
    """Non-seekable output of the archive, which makes it stream."""

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
        """Return and clear the written data."""
        data = b"".join(self._pieces)
        self._pieces.clear()
        self.size = 0
        return data
