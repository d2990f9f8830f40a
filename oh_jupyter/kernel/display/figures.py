"""Figures as people read them: rounded, with units."""

from __future__ import annotations

import math

__all__ = ["number_text", "size_text"]

_DIGITS = 3
_UNITS = ("B", "kB", "MB", "GB", "TB", "PB")


def number_text(number: float) -> str:
    """A number with three significant digits, and every digit of its integer part."""
    if not math.isfinite(number) or not number:
        return f"{number:g}"
    places = max(0, _DIGITS - 1 - math.floor(math.log10(abs(number))))
    text = f"{number:.{places}f}"
    return text.rstrip("0").rstrip(".") if places else text


def size_text(size_bytes: int) -> str:
    """A size in the unit in which it has at most three digits before the point."""
    size, units = float(size_bytes), list(_UNITS)
    while size >= 999.5 and len(units) > 1:  # 999.5 would be written as 1000
        size /= 1000
        units.pop(0)
    return f"{number_text(size)} {units[0]}"
