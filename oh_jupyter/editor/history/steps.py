"""One change to a file, as the history stores it."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

from oh_jupyter.editor.history.blobs import Blobs
from oh_jupyter.editor.text.delta import Delta, Hunk, apply, compare, invert

__all__ = ["Step"]

_REWRITTEN_SHARE = 0.9  # of the bytes; above it nothing that others change can be kept apart


@dataclass(frozen=True)
class Step:
    """One change: hunks with references to their old and new bytes."""

    command: str
    time: float  # when, in seconds since the epoch
    # offset and references to the old and the new bytes of each hunk
    hunks: tuple[tuple[int, str, str], ...]
    existed: bool = True
    exists: bool = True
    external: bool = False
    transaction: str = ""  # name of the edit of several files that it is a part of, or ""
    files: tuple[str, ...] = ()

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Step:
        """Inverse of ``to_json``; also reads the field names of older versions."""
        known = {"external" if name == "foreign" else name: value for name, value in data.items()}
        hunks = tuple((offset, old, new) for offset, old, new in data["hunks"])
        return cls(**{**known, "hunks": hunks, "files": tuple(data.get("files", ()))})

    def to_json(self) -> dict[str, Any]:
        """JSON object; defaults are left out."""
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
    ) -> Step:
        """Step between two contents; None stands for no file."""
        before, after = old or b"", new or b""
        delta = compare(before, after, lines=external or several_places)
        step = cls(command, time, (), old is not None, new is not None, external)
        changed = sum(len(hunk.old) + len(hunk.new) for hunk in delta)
        if changed < _REWRITTEN_SHARE * (len(before) + len(after)):
            return step.with_delta(delta, blobs)
        # Both contents as a whole are stored anyway, as the heads before and after it.
        old_reference = blobs.put(before, blobs.digests.of(before))
        new_reference = blobs.put(after, blobs.digests.of(after))
        return replace(step, hunks=((0, old_reference, new_reference),))

    def delta(self, blobs: Blobs) -> Delta:
        """Delta with the bytes loaded."""
        return [Hunk(offset, blobs.get(old), blobs.get(new)) for offset, old, new in self.hunks]

    def with_delta(self, delta: Delta, blobs: Blobs) -> Step:
        """Copy of the step with other hunks."""
        hunks = tuple((h.offset, blobs.put(h.old), blobs.put(h.new)) for h in delta)
        return replace(self, hunks=hunks)

    def undo(self, content: bytes | None, blobs: Blobs) -> bytes | None:
        """Content before; None if the file was not there."""
        old = apply(invert(self.delta(blobs)), content or b"")
        return old if self.existed else None

    def redo(self, content: bytes | None, blobs: Blobs) -> bytes | None:
        """Content after; None if the file is gone."""
        new = apply(self.delta(blobs), content or b"")
        return new if self.exists else None

    @cached_property
    def text(self) -> str:
        """The step as JSON text, which is written with every later step again."""
        return json.dumps(self.to_json())

    @cached_property
    def blobs(self) -> tuple[str, ...]:
        """The references to contents that are files of their own."""
        references = (reference for _, old, new in self.hunks for reference in (old, new))
        return tuple(reference for reference in references if not reference.startswith("="))

    def sizes(self, blobs: Blobs) -> dict[str, int]:
        """Bytes on the disk of each of ``blobs``, looked up once."""
        known: dict[str, int] | None = self.__dict__.get("_sizes")
        if known is None:
            known = {reference: blobs.size(reference) for reference in self.blobs}
            self.__dict__["_sizes"] = known
        return known
