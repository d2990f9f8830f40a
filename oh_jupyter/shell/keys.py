"""Names of control keys, as the protocol has them."""

from __future__ import annotations

__all__ = ["END_OF_INPUT", "INTERRUPT", "control_character"]

INTERRUPT = "\x03"
"""What Ctrl-C sends."""
END_OF_INPUT = "\x04"
"""What Ctrl-D sends."""


def control_character(command: str) -> str | None:
    """Translate a key name such as ``C-c``."""
    if len(command) != 3 or not command.startswith("C-"):
        return None
    key = command[2].upper()
    if key == "?":
        return "\x7f"
    return chr(ord(key) & 0x1F) if "@" <= key <= "_" else None
