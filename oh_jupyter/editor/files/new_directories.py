"""Missing directories of a new file, each made in the directory that was judged."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from oh_jupyter.editor.files.path_guard import pinned


def make_directory(folder: Path, made: list[Path] | None = None) -> None:
    """Make a directory and its missing parents, and add them to a list, outermost first.

    Raises OSError where the Action may not change one of them.
    """
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    for each in reversed(missing):
        with pinned(each) as target:
            target.mkdir(exist_ok=True)
        if made is not None:
            made.append(each)


def remove_directories(made: Iterable[Path]) -> None:
    """Remove new directories, outermost first in the list, unless something was put into them."""
    for each in reversed(list(made)):
        with suppress(OSError), pinned(each) as target:
            os.rmdir(target)
