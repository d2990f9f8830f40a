"""Numbered lines and directory listings."""

from __future__ import annotations

import base64
import os
from pathlib import Path

from oh_jupyter.editor.messages import DIRECTORY_CLIPPED, TEXT_CLIPPED, invalid
from oh_jupyter.editor.text.text_file import TextFile

MAX_VIEW_CHARS = 16_000

IMAGE_TYPES = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
    ".bmp": "image/bmp",
}
"""Media types of the images that are shown, by the suffix of the file."""


def clip(text: str, notice: str) -> str:
    """First 16,000 characters of a text, and a notice for the rest."""
    if len(text) <= MAX_VIEW_CHARS:
        return text
    return text[:MAX_VIEW_CHARS] + notice


def _clip_lines(text: str, notice: str) -> str:
    """Whole lines within the first 16,000 characters, and a notice for the rest."""
    if len(text) <= MAX_VIEW_CHARS:
        return text
    return text[: text.rfind("\n", 0, MAX_VIEW_CHARS) + 1] + notice


def number_lines(text: str, description: object, first: int = 1) -> str:
    """Text as ``cat -n`` shows it, with a heading."""
    lines = clip(text, TEXT_CLIPPED).split("\n")
    numbered = "\n".join(f"{number:6}\t{line}" for number, line in enumerate(lines, first))
    return f"Here's the result of running `cat -n` on {description}:\n{numbered}\n"


def view_lines(file: TextFile, path: Path, view_range: list[int] | tuple[int, int]) -> str:
    """Numbered lines of a range counted from 1; -1 is the end."""
    first, last, note = check_range(view_range, file.line_count)
    text = file.lines(first, last)
    return note + number_lines(text.removesuffix("\n"), path, first)


def check_range(view_range: list[int] | tuple[int, int], count: int) -> tuple[int, int, str]:
    """First and last line of a range, and a note if the file is shorter."""
    if (
        not isinstance(view_range, list | tuple)
        or len(view_range) != 2
        or not all(isinstance(number, int) for number in view_range)
    ):
        raise invalid("view_range", view_range, "It should be a list of two integers.")
    first, last = int(view_range[0]), int(view_range[1])
    if not 1 <= first <= count:
        raise invalid(
            "view_range",
            view_range,
            f"Its first element `{first}` should be within the range of lines of the file: "
            f"{[1, count]}.",
        )
    note = ""
    if last > count:
        note = f"NOTE: We only show up to {count} since there're only {count} lines in this file.\n"
    if last == -1 or last > count:
        last = count
    if last < first:
        raise invalid(
            "view_range",
            view_range,
            f"Its second element `{last}` should be greater than or equal to the first element "
            f"`{first}`.",
        )
    return first, last, note


def list_directory(path: Path) -> str:
    """Show a directory, two levels deep, whatever can be read and is named in it."""
    names = sorted(os.listdir(path))
    entries = [f"{path}/"]
    for name in names:
        if not name.startswith("."):
            entries += _with_children(path / name)
    listing = _clip_lines("\n".join(map(_printable, entries)), DIRECTORY_CLIPPED)
    hidden = sum(name.startswith(".") for name in names)
    text = (
        f"Here's the files and directories up to 2 levels deep in {path}, "
        f"excluding hidden items:\n{listing}"
    )
    if hidden:
        text += (
            f"\n\n{hidden} hidden files/directories in this directory are excluded. "
            f"You can use 'ls -la {path}' to see them."
        )
    return text


def _with_children(path: Path) -> list[str]:
    if not _is_directory(path):
        return [str(path)]
    try:
        names = sorted(os.listdir(path))
    except OSError:
        names = []
    children = (path / name for name in names if not name.startswith("."))
    return [
        f"{path}/",
        *(f"{child}/" if _is_directory(child) else str(child) for child in children),
    ]


def _is_directory(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:  # a loop of links, on some systems
        return False


def _printable(name: str) -> str:
    """Replace what is not text in a file name, so that it can be sent as JSON."""
    return os.fsencode(name).decode("utf-8", "replace")


def data_url(data: bytes, media_type: str) -> str:
    """Data URL of the bytes."""
    return f"data:{media_type};base64,{base64.b64encode(data).decode('ascii')}"
