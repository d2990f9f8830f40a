"""Folders of ours in a workspace, which git ignores, and which no link redirects."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from oh_jupyter.descriptors import SEARCH, has_paths, open_below, path_to


@contextlib.contextmanager
def own_folder(workspace: Path, name: str) -> Iterator[Path]:
    """Yield a path that leads to a folder of ours, made if it is missing.

    Raises OSError if it is a link: an agent could have planted it.
    """
    workspace.mkdir(parents=True, exist_ok=True)
    if not has_paths():
        with contextlib.suppress(FileExistsError):
            (workspace / name).mkdir()
            _ignore_in_git(workspace / name)
        yield workspace / name
        return
    top = os.open(workspace, SEARCH)
    try:
        folder = open_below(top, [name], created=lambda new: _ignore_in_git(path_to(new)))
    finally:
        os.close(top)
    try:
        yield path_to(folder)
    finally:
        os.close(folder)


def _ignore_in_git(folder: Path) -> None:
    with contextlib.suppress(OSError), open(folder / ".gitignore", "x", encoding="ascii") as file:
        file.write("*\n")
