"""What a linter found."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

__all__ = ["Finding", "Findings"]


class Finding(NamedTuple):
    """One problem.

    Attributes:
        line: Counted from 1.
        column: Counted from 1.
        message: What is wrong.
    """

    line: int
    column: int
    message: str


@dataclass(frozen=True)
class Findings:
    """Everything that was found in a text.

    Attributes:
        text: What the line numbers count.
        findings: The problems.
        missing: Which package is not installed, and how to get it; "" if all are.
        complete: Whether nothing found means something in spite of that.
    """

    text: str
    findings: list[Finding] = field(default_factory=list)
    missing: str = ""
    complete: bool = True
