"""Containment of absolute paths in directories, by their names alone."""

from __future__ import annotations

import os
from collections.abc import Iterable


def is_within(path: str, root: str) -> bool:
    """Return whether a path is a directory or below it."""
    return path == root or path.startswith(root.rstrip(os.sep) + os.sep)


def is_within_any(path: str, roots: Iterable[str]) -> bool:
    """Return whether a path is within one of the directories."""
    return any(is_within(path, root) for root in roots)
