"""Content-addressed store of file contents."""

from __future__ import annotations

import base64
import hashlib
import os
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

__all__ = ["Blobs", "Digests", "digest_of"]

_MAX_INLINE_BYTES = 1024  # bytes; up to here a reference carries the content itself


def digest_of(content: bytes | None) -> str | None:
    """SHA-256 in hexadecimal; None for a file that is not there."""
    return None if content is None else hashlib.sha256(content).hexdigest()


class Digests:
    """SHA-256 digests, with a cache of the last ones.

    An edit ends with the content that the next one starts from, and comparing two
    contents is ten times as fast as hashing one.
    """

    def __init__(self) -> None:
        self._last: deque[tuple[bytes, str]] = deque(maxlen=2)

    def of(self, content: bytes | None) -> str | None:
        """SHA-256 in hexadecimal; None for a file that is not there."""
        if content is None:
            return None
        for known, digest in tuple(self._last):
            if known == content:
                return digest
        digest = hashlib.sha256(content).hexdigest()
        self._last.append((content, digest))
        return digest


class Blobs:
    """A folder of contents, each in a file that is named by its digest.

    A reference is ``=`` and base64 for a small content, else its digest. What is read
    is checked against its name: a blob damaged by a power failure counts as lost.
    """

    def __init__(self, folder: Path, digests: Digests | None = None) -> None:
        """Use a folder; it is created when something is put into it."""
        self.digests = digests or Digests()
        self.folder = folder
        self.written = 0

    def put(self, content: bytes, digest: str | None = None) -> str:
        """Store a content; the reference that ``get`` takes."""
        if len(content) <= _MAX_INLINE_BYTES:
            return "=" + base64.b64encode(content).decode("ascii")
        return self.put_file(content, digest)

    def put_file(self, content: bytes, digest: str | None = None) -> str:
        """Store a content as a file, however small; its digest."""
        digest = digest or hashlib.sha256(content).hexdigest()
        target = self.folder / digest
        if not (target.exists() and target.stat().st_size == len(content)):
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            try:
                # A part of it, after a crash, has another size, or at least another digest.
                target.write_bytes(content)
            except OSError:  # a full disk is not to be filled with half of a content
                with suppress(OSError):
                    os.unlink(target)
                raise
            self.written += len(content)
        return digest

    def get(self, reference: str) -> bytes:
        """Load a content; raises LookupError if it is lost or damaged."""
        if reference.startswith("="):
            return base64.b64decode(reference[1:])
        try:
            content = (self.folder / reference).read_bytes()
        except OSError as error:
            raise LookupError(reference) from error
        if hashlib.sha256(content).hexdigest() != reference:
            raise LookupError(reference)
        return content

    def size(self, reference: str) -> int:
        """Bytes on the disk of a reference, without reading it."""
        if reference.startswith("="):
            return len(reference)
        try:
            return (self.folder / reference).stat().st_size
        except OSError:
            return 0

    def keep_only(self, references: Iterable[str]) -> None:
        """Delete every file that no reference names."""
        wanted = set(references)
        with suppress(FileNotFoundError):
            for name in os.listdir(self.folder):
                if name not in wanted:
                    self.discard(name)

    def discard(self, reference: str) -> None:
        """Delete one content."""
        if not reference.startswith("="):
            with suppress(OSError):
                os.unlink(self.folder / reference)
