"""One variable in a rewind, planned or done."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Outcome = Literal["restored", "rebound", "removed", "unchanged", "yours", "not kept"]


@dataclass(frozen=True)
class VariableChange:
    """One variable in a rewind.

    Attributes:
        name: Its name.
        outcome: ``restored`` (the same object, with its earlier content), ``rebound`` (another
            object with that content), ``removed`` (an agent created it), ``unchanged``, ``yours``
            (changed since by others, so it stays) or ``not kept`` (it stays, for this reason).
        type: Name of its type.
        size: Size in bytes, without the objects that it refers to.
        reason: Why it stays, or which part of it stays; "" if nothing does.
    """

    name: str
    outcome: Outcome
    type: str = ""
    size: int = 0
    reason: str = ""

    def __bool__(self) -> bool:
        """Whether the rewind changes the variable."""
        return self.outcome in ("restored", "rebound", "removed")

    def __str__(self) -> str:
        """One line, like those of files."""
        size = f"{self.size:,} bytes" if self.size else ""
        about = ", ".join(filter(None, (self.type, size, self.reason)))
        return f"{self.outcome:12}{self.name}" + (f"  ({about})" if about else "")
