"""Finished downloads on their way into the workspace."""

from __future__ import annotations

import shutil
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path

__all__ = ["file_extension", "move_downloads_to_workspace", "unused_path"]

DOWNLOADS_DIR = ".downloads"
OFFICE_EXTENSIONS = {"word": ".docx", "xl": ".xlsx", "ppt": ".pptx"}
"""Extension by a directory in the archive."""


def move_downloads_to_workspace(
    downloads: Iterable[Mapping[str, str]], workspace_dir: str
) -> list[str]:
    """Put ``downloads`` of an observation into the workspace; return their new paths.

    These are ``<workspace>/file_N<extension>``; the same files stay under their own names in
    ``<workspace>/.downloads``.
    """
    workspace = Path(workspace_dir)
    kept = []
    for item in downloads:
        source = Path(item["path"])
        directory = workspace / DOWNLOADS_DIR
        directory.mkdir(parents=True, exist_ok=True)
        if source.parent != directory:
            named = unused_path(directory, item["name"])
            shutil.move(source, named)
            source = named
        number = 1
        while any(workspace.glob(f"file_{number}.*")) or (workspace / f"file_{number}").exists():
            number += 1
        target = workspace / f"file_{number}{file_extension(source)}"
        shutil.copy2(source, target)
        kept.append(str(target))
    return kept


def unused_path(directory: Path, name: str) -> Path:
    """Return a path that no file has yet, with a number in its name where it was taken."""
    target, number = directory / name, 1
    while target.exists():
        number += 1
        target = directory / f"{Path(name).stem} ({number}){Path(name).suffix}"
    return target


def file_extension(path: Path) -> str:
    """Guess a file's extension with its dot from its content, else from its name."""
    import puremagic

    if zipfile.is_zipfile(path):
        # To the first bytes, which is where guesses come from, all of these look alike.
        with zipfile.ZipFile(path) as archive:
            names = {name.partition("/")[0] for name in archive.namelist()}
        known = [extension for name, extension in OFFICE_EXTENSIONS.items() if name in names]
        return known[0] if known else path.suffix.lower() or ".zip"
    try:
        guesses = puremagic.magic_file(path)
    except (ValueError, OSError, puremagic.PureError):
        guesses = []
    for guess in guesses:
        if guess.extension.strip() == path.suffix.lower():
            # Where several kinds look alike, the name decides.
            return path.suffix.lower()
    for guess in guesses:
        if guess.extension.strip():
            return str(guess.extension.strip())
    return path.suffix
