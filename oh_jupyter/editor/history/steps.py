"""One change to a file, as the history keeps it."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

from oh_jupyter.editor.history.blobs import Blobs
from oh_jupyter.editor.text.delta import Delta, Hunk, apply, compare, invert

__all__ = ["Step"]


@dataclass(frozen=True)
class Step:
    """One change.

    Attributes:
        command: The editor command that made it.
        time: When, in seconds since the epoch.
        hunks: Offset and references to the old and the new bytes of each hunk.
        existed: Whether the file was there before.
        exists: Whether it is there afterwards.
        external: Whether somebody else made it.
        transaction: Name of the edit of several files that it is a part of, or "".
        files: All files of that edit.
    """

    command: str
    time: float
    hunks: tuple[tuple[int, str, str], ...]
    existed: bool = True
    exists: bool = True
    external: bool = False
    transaction: str = ""
    files: tuple[str, ...] = ()

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Step:
        """Read what ``to_json`` wrote.

        Args:
            data: The JSON object.

        Returns:
            The step.
        """
        known = {"external" if name == "foreign" else name: value for name, value in data.items()}
        hunks = tuple((offset, old, new) for offset, old, new in data["hunks"])
        return cls(**{**known, "hunks": hunks, "files": tuple(data.get("files", ()))})

    def to_json(self) -> dict[str, Any]:
        """Turn it into a JSON object; what is as usual is left out.

        Returns:
            The object.
        """
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
    ) -> Step:
        """Describe what happened between two contents.

        Args:
            old: The content before; None if the file was not there.
            new: The content after; None if the file is gone.
            blobs: Where the changed bytes are kept.
            command: The editor command that made the change.
            time: When, in seconds since the epoch.
            external: Whether somebody else made it.

        Returns:
            The step.
        """
        delta = compare(old or b"", new or b"", lines=external)
        step = cls(command, time, (), old is not None, new is not None, external)
        return step.with_delta(delta, blobs)

    def delta(self, blobs: Blobs) -> Delta:
        """Fetch the changed bytes.

        Args:
            blobs: Where they are kept.

        Returns:
            The delta.
        """
        return [Hunk(offset, blobs.get(old), blobs.get(new)) for offset, old, new in self.hunks]

    def with_delta(self, delta: Delta, blobs: Blobs) -> Step:
        """Give the step other hunks.

        Args:
            delta: The hunks.
            blobs: Where the changed bytes are kept.

        Returns:
            A step that is otherwise the same.
        """
        hunks = tuple((h.offset, blobs.put(h.old), blobs.put(h.new)) for h in delta)
        return replace(self, hunks=hunks)

    def undo(self, content: bytes | None, blobs: Blobs) -> bytes | None:
        """Compute the content before.

        Args:
            content: The content after.
            blobs: Where the changed bytes are kept.

        Returns:
            The content before; None if the file was not there.
        """
        old = apply(invert(self.delta(blobs)), content or b"")
        return old if self.existed else None

    def redo(self, content: bytes | None, blobs: Blobs) -> bytes | None:
        """Compute the content after.

        Args:
            content: The content before.
            blobs: Where the changed bytes are kept.

        Returns:
            The content after; None if the file is gone.
        """
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
