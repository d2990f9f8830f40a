"""The name that a misspelled one most resembles."""

from __future__ import annotations

from collections.abc import Iterable

MIN_RESEMBLANCE = 0.6
"""Ratio of difflib above which a name counts as a misspelled one."""


def did_you_mean(name: str, names: Iterable[str], min_resemblance: float = MIN_RESEMBLANCE) -> str:
    """Return a question with the nearest name and a space behind it, or "" if none is near."""
    near = nearest_name(name, names, min_resemblance)
    return f"Did you mean {near}? " if near else ""


def nearest_name(name: str, names: Iterable[str], min_resemblance: float = MIN_RESEMBLANCE) -> str:
    """Return the name that another most resembles, or ""."""
    from difflib import get_close_matches

    return next(iter(get_close_matches(name, names, 1, min_resemblance)), "")
