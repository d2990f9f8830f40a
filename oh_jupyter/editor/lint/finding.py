"""Findings of a linter."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

__all__ = ["Finding", "Findings"]


class Finding(NamedTuple):
    """One problem."""

    line: int
    column: int
    message: str


@dataclass(frozen=True)
class Findings:
    """Everything that was found in a text."""

    text: str
    findings: list[Finding] = field(default_factory=list)
    missing: str = ""  # which package is not installed, and how to get it; "" if all are
    complete: bool = True
