"""A stored content of a file, from which its steps lead to the contents around it.

So a small edit stores its step only, not the whole file again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from oh_jupyter.editor.history.steps import Blobs, Step

# A rebuild copies the file at every step: within these limits it takes 1 to 30 ms, and writing a
# new base costs each edit at most a hundredth of a file of normal size.
_MAX_STEPS = 100
_MAX_COPIED_BYTES = 64 * 1024 * 1024


class Base(NamedTuple):
    """A content whose blob is stored."""

    digest: str
    position: int  # the number of steps that lead to it

    def is_near(self, position: int, size: int) -> bool:
        """Return whether a content of a size in bytes can be rebuilt quickly."""
        distance = abs(position - self.position)
        return distance <= _MAX_STEPS and distance * size <= _MAX_COPIED_BYTES

    def rebuild(self, steps: Sequence[Step], position: int, blobs: Blobs) -> bytes | None:
        """Return the content at another position; LookupError if a part is lost or damaged."""
        content: bytes | None = blobs.get(self.digest)
        try:
            for step in steps[self.position : position]:
                content = step.redo(content, blobs)
            for step in reversed(steps[position : self.position]):
                content = step.undo(content, blobs)
        except ValueError as error:
            raise LookupError(f"the steps do not lead from {self.digest}: {error}") from error
        return content
