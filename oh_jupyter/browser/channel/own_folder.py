"""Folders of ours in a workspace, which git ignores."""

from __future__ import annotations

import contextlib
from pathlib import Path


def make_own_folder(directory: Path) -> None:
    """Create a folder that ignores itself in git; one that exists stays as it is."""
    try:
        directory.mkdir(parents=True)
    except FileExistsError:
        return
    with contextlib.suppress(OSError):
        (directory / ".gitignore").write_text("*\n", "ascii")
