"""Bytes kept under the name of their content."""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

__all__ = ["Blobs", "Digests", "digest_of"]

_MAX_INLINE_BYTES = 1024  # bytes; up to here a reference carries the content itself


def digest_of(content: bytes | None) -> str | None:
    """Name a content.

    Args:
        content: The bytes, or None for a file that is not there.

    Returns:
        The SHA-256 digest in hexadecimal, or None.
    """
    return None if content is None else hashlib.sha256(content).hexdigest()


class Digests:
    """Digests, with the last one remembered.

    An edit ends with the content that the next one starts from, and comparing two
    contents is ten times as fast as hashing one.
    """

    def __init__(self) -> None:
        self._last: tuple[bytes, str] = b"", hashlib.sha256().hexdigest()

    def of(self, content: bytes | None) -> str | None:
        """Name a content.

        Args:
            content: The bytes, or None for a file that is not there.

        Returns:
            The same as ``digest_of``.
        """
        if content is None:
            return None
        last, digest = self._last
        if last != content:
            digest = hashlib.sha256(content).hexdigest()
            self._last = content, digest
        return digest


class Blobs:
    """A folder of contents, each in a file that is named by its digest.

    A reference is ``=`` and base64 for a small content, else its digest. What is read
    is checked against its name: a blob damaged by a power failure counts as lost.

    Attributes:
        folder: Where the files are.
        digests: Where digests come from.
        written: Bytes that were written here meanwhile.
    """

    def __init__(self, folder: Path, digests: Digests | None = None) -> None:
        """Use a folder; it is created when something is put into it.

        Args:
            folder: Where the files are.
            digests: Where digests come from.
        """
        self.digests = digests or Digests()
        self.folder = folder
        self.written = 0

    def put(self, content: bytes) -> str:
        """Keep a content.

        Args:
            content: Any bytes.

        Returns:
            The reference that ``get`` takes.
        """
        if len(content) <= _MAX_INLINE_BYTES:
            return "=" + base64.b64encode(content).decode("ascii")
        return self.put_file(content)

    def put_file(self, content: bytes, digest: str | None = None) -> str:
        """Keep a content as a file, however small it is.

        Args:
            content: Any bytes.
            digest: Its digest, if it is known already.

        Returns:
            The digest, which is also the reference.
        """
        digest = digest or hashlib.sha256(content).hexdigest()
        target = self.folder / digest
        if not (target.exists() and target.stat().st_size == len(content)):
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            temporary = self.folder / f"{digest}.tmp"
            try:
                temporary.write_bytes(content)
                os.replace(temporary, target)
            except OSError:  # a full disk is not to be filled with half of a content
                with suppress(OSError):
                    os.unlink(temporary)
                raise
            self.written += len(content)
        return digest

    def get(self, reference: str) -> bytes:
        """Fetch a content.

        Args:
            reference: What ``put`` returned.

        Returns:
            The bytes.

        Raises:
            LookupError: It is lost.
        """
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
        """Measure what a reference keeps, without reading it.

        Args:
            reference: What ``put`` returned.

        Returns:
            Bytes on the disk.
        """
        if reference.startswith("="):
            return len(reference)
        try:
            return (self.folder / reference).stat().st_size
        except OSError:
            return 0

    def keep_only(self, references: Iterable[str]) -> None:
        """Delete every file that is not referred to.

        Args:
            references: What is still needed.
        """
        wanted = set(references)
        with suppress(FileNotFoundError):
            for name in os.listdir(self.folder):
                if name not in wanted:
                    self.discard(name)

    def discard(self, reference: str) -> None:
        """Delete one content.

        Args:
            reference: What ``put`` returned.
        """
        if not reference.startswith("="):
            with suppress(OSError):
                os.unlink(self.folder / reference)
