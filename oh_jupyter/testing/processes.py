"""Processes that a test has started, of which each may end at any moment."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import psutil

__all__ = ["descendants"]


def descendants(
    is_wanted: Callable[[psutil.Process], object], *, of: int | None = None
) -> list[psutil.Process]:
    """Find processes below another one.

    Args:
        is_wanted: Whether a process is one of them; one that ends while it is asked about is not.
        of: The id of the process above them, which must be there; None for this process.

    Returns:
        Those that are wanted; any of them may have ended by now.
    """
    found = []
    for process in psutil.Process(of).children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            if is_wanted(process):
                found.append(process)
    return found
