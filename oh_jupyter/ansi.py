"""Terminal control sequences (ECMA-48) in text: the one pattern for all who want it plain."""

from __future__ import annotations

import re

_SEQUENCE = re.compile(
    r"\x1b(?:\][^\x07\x1b]*(?:\x07|\x1b\\)|\[[0-?]*[ -/]*[@-~]|[PX^_][^\x1b]*\x1b\\|[ -/]*[0-~])"
)


def strip_ansi(text: str) -> str:
    """Remove colour codes and other terminal control sequences."""
    return _SEQUENCE.sub("", text)
