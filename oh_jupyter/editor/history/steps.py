"""Stored changes of a file: steps with deltas, and a store of contents."""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from oh_jupyter.editor.text.delta import ByteChange, Delta, apply, compare, invert
from oh_jupyter.errors import HistoryAccessError

_MAX_CACHED_BYTES = 16 * 1024 * 1024
_MAX_INLINE_BYTES = 1024  # up to here a reference carries the content itself


def digest_of(content: bytes | None) -> str | None:
    """Return the hexadecimal SHA-256; None for no file."""
    return None if content is None else hashlib.sha256(content).hexdigest()


class Digests:
    """SHA-256 digests with a cache, since comparing contents is ten times as fast."""

    def __init__(self) -> None:
        self._last: deque[tuple[bytes, str]] = deque(maxlen=2)

    def of(self, content: bytes | None) -> str | None:
        """Return the hexadecimal SHA-256; None for no file."""
        for known, known_digest in tuple(self._last):
            if known == content:
                return known_digest
        digest = digest_of(content)
        if content is not None and digest is not None and len(content) <= _MAX_CACHED_BYTES:
            self._last.append((content, digest))
        return digest


@contextmanager
def access(folder: Path) -> Iterator[None]:
    """Turn a system error in the block into a HistoryAccessError."""
    try:
        yield
    except HistoryAccessError:
        raise
    except OSError as error:
        raise HistoryAccessError(
            f"The edit history in {folder} cannot be read or written ({error}); nothing was "
            "changed. Fix this, or set `history_dir` to another folder, and try again."
        ) from error


class Blobs:
    """Contents in a folder, in files named by their digests, which are verified.

    A reference is ``=`` and base64 for a small content, otherwise its digest.
    """

    def __init__(self, folder: Path, digests: Digests | None = None) -> None:
        self.digests = digests or Digests()
        self.folder = folder
        self.written = 0

    def put(self, content: bytes, digest: str | None = None) -> str:
        """Store a content, and return its reference for ``get``."""
        if len(content) <= _MAX_INLINE_BYTES:
            return "=" + base64.b64encode(content).decode("ascii")
        return self.put_file(content, digest)

    def put_file(self, content: bytes, digest: str | None = None) -> str:
        """Store a content of any size as a file, and return its digest."""
        digest = digest or hashlib.sha256(content).hexdigest()
        target = self.folder / digest
        with access(self.folder.parent):
            if self.size(digest) != len(content) or not content:
                if not self.folder.is_dir():
                    self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
                try:
                    # After a crash, a partial file has another size, or at least another digest.
                    target.write_bytes(content)
                except OSError:  # do not fill the disk with half a content
                    with suppress(OSError):
                        os.unlink(target)
                    raise
                self.written += len(content)
        return digest

    def get(self, reference: str) -> bytes:
        """Load a content; LookupError if lost, HistoryAccessError if temporarily unreadable."""
        if reference.startswith("="):
            return base64.b64decode(reference[1:])
        try:
            with access(self.folder.parent):
                content = (self.folder / reference).read_bytes()
        except HistoryAccessError as error:
            if isinstance(error.__cause__, FileNotFoundError):
                raise LookupError(reference) from error
            raise
        if hashlib.sha256(content).hexdigest() != reference:
            raise LookupError(reference)
        return content

    def size(self, reference: str) -> int:
        """Return the size on disk of a reference, in bytes."""
        if reference.startswith("="):
            return len(reference)
        try:
            return (self.folder / reference).stat().st_size
        except OSError:
            return 0

    def keep_only(self, references: Iterable[str]) -> None:
        """Delete all contents but the referenced ones."""
        needed = set(references)
        with suppress(FileNotFoundError):
            for name in os.listdir(self.folder):
                if name not in needed:
                    self.discard(name)

    def discard(self, reference: str) -> None:
        """Delete one content."""
        if not reference.startswith("="):
            with suppress(OSError):
                os.unlink(self.folder / reference)


_REWRITTEN_SHARE = 0.9  # of the bytes; above it the step is stored as two whole contents


@dataclass(frozen=True)
class Step:
    """One change: hunks with references to their old and new bytes."""

    command: str
    time: float  # seconds since the epoch
    hunks: tuple[tuple[int, str, str], ...]  # offset, references to the old and the new bytes
    existed: bool = True
    exists: bool = True
    external: bool = False
    transaction: str = ""  # name of the edit of several files that it belongs to, or ""
    files: tuple[str, ...] = ()

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Step:
        """Read a step from the JSON object of ``to_json``."""
        hunks = tuple((offset, old, new) for offset, old, new in data["hunks"])
        return cls(**{**data, "hunks": hunks, "files": tuple(data.get("files", ()))})

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object without default values."""
        return {
            field.name: getattr(self, field.name)
            for field in fields(self)
            if getattr(self, field.name) != field.default
        }

    @classmethod
    def between(
        cls,
        old: bytes | None,
        new: bytes | None,
        blobs: Blobs,
        *,
        command: str,
        time: float,
        external: bool = False,
        several_places: bool = False,
        transaction: str = "",
        files: tuple[str, ...] = (),
    ) -> Step:
        """Return the step between two contents; None stands for no file."""
        before, after = old or b"", new or b""
        delta = compare(before, after, lines=external or several_places)
        existed, exists = old is not None, new is not None
        step = cls(command, time, (), existed, exists, external, transaction, files)
        changed = sum(len(hunk.old) + len(hunk.new) for hunk in delta)
        if changed < _REWRITTEN_SHARE * (len(before) + len(after)):
            return step.with_delta(delta, blobs)
        # Steps that replace the whole content share it with the steps before and after.
        old_reference = blobs.put(before, blobs.digests.of(before))
        new_reference = blobs.put(after, blobs.digests.of(after))
        return replace(step, hunks=((0, old_reference, new_reference),))

    def delta(self, blobs: Blobs) -> Delta:
        """Load the delta."""
        return [
            ByteChange(offset, blobs.get(old), blobs.get(new)) for offset, old, new in self.hunks
        ]

    def with_delta(self, delta: Delta, blobs: Blobs) -> Step:
        """Return a copy with another delta."""
        hunks = tuple((h.offset, blobs.put(h.old), blobs.put(h.new)) for h in delta)
        return replace(self, hunks=hunks)

    def undo(self, content: bytes | None, blobs: Blobs) -> bytes | None:
        """Return the content before; None if the file did not exist."""
        old = apply(invert(self.delta(blobs)), content or b"")
        return old if self.existed else None

    def redo(self, content: bytes | None, blobs: Blobs) -> bytes | None:
        """Return the content after; None if the file was removed."""
        new = apply(self.delta(blobs), content or b"")
        return new if self.exists else None

    def line(self) -> bytes:
        """Return a line of JSON."""
        line: bytes | None = self.__dict__.pop("_line", None)
        return line or json.dumps(self.to_json()).encode() + b"\n"

    @cached_property
    def line_bytes(self) -> int:
        """The length of the line of JSON."""
        self.__dict__["_line"] = line = self.line()  # it is written next
        return len(line)

    @cached_property
    def blobs(self) -> tuple[str, ...]:
        """References to contents in files of their own."""
        references = (reference for _, old, new in self.hunks for reference in (old, new))
        return tuple(reference for reference in references if not reference.startswith("="))

    def sizes(self, blobs: Blobs) -> dict[str, int]:
        """Return the size on disk of each of ``blobs``, in bytes; cached."""
        known: dict[str, int] | None = self.__dict__.get("_sizes")
        if known is None:
            known = {reference: blobs.size(reference) for reference in self.blobs}
            self.__dict__["_sizes"] = known
        return known

    def stored_bytes(self, blobs: Blobs) -> int:
        """Return the size on disk of the step with all its contents, in bytes; cached."""
        size: int | None = self.__dict__.get("_stored_bytes")
        if size is None:
            size = self.line_bytes + sum(self.sizes(blobs).values())
            self.__dict__["_stored_bytes"] = size
        return size
