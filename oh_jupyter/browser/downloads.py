"""Finished downloads on their way into the workspace."""

from __future__ import annotations

import shutil
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path

__all__ = ["file_extension", "keep_downloads", "unused_path"]

DOWNLOADS = ".downloads"
OFFICE = {"word": ".docx", "xl": ".xlsx", "ppt": ".pptx"}
"""Extension by a directory in the archive."""


def keep_downloads(downloads: Iterable[Mapping[str, str]], workspace_dir: str) -> list[str]:
    """Put downloads into the workspace.

    Args:
        downloads: ``downloads`` of an observation.
        workspace_dir: The workspace.

    Returns:
        The paths ``<workspace>/file_N<extension>``; the same files stay under their own names
        in ``<workspace>/.downloads``.
    """
    workspace = Path(workspace_dir)
    kept = []
    for item in downloads:
        source = Path(item["path"])
        directory = workspace / DOWNLOADS
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
    """Find a name that no file has yet.

    Args:
        directory: Where the file will be.
        name: What it should be called.

    Returns:
        The path, with a number in the name where it was taken.
    """
    target, number = directory / name, 1
    while target.exists():
        number += 1
        target = directory / f"{Path(name).stem} ({number}){Path(name).suffix}"
    return target


def file_extension(path: Path) -> str:
    """Guess a file's extension from its content.

    Args:
        path: The file.

    Returns:
        The extension with its dot; that of the name where the content does not tell, or "".
    """
    import puremagic

    if zipfile.is_zipfile(path):
        # To the first bytes, which is where guesses come from, all of these look alike.
        with zipfile.ZipFile(path) as archive:
            names = {name.partition("/")[0] for name in archive.namelist()}
        known = [extension for name, extension in OFFICE.items() if name in names]
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
