"""Numbered lines and directory listings."""

from __future__ import annotations

import base64
import os
from bisect import bisect_left
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from operator import add, attrgetter
from pathlib import Path

from oh_jupyter.editor.files.path_guard import opened_directory
from oh_jupyter.editor.messages import DIRECTORY_CLIPPED, TEXT_CLIPPED, invalid
from oh_jupyter.editor.text.text_file import TextFile
from oh_jupyter.text import shorten

MAX_VIEW_CHARS = 16_000
"""Maximum length of what a view shows; a notice follows."""
_MAX_CACHED_NUMBERS = 2000
_NAME = attrgetter("name")

IMAGE_TYPES = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
    ".bmp": "image/bmp",
}
"""Media types of the images that are shown, by suffix."""


def number_lines(text: str, description: object, first: int = 1) -> str:
    """Return the text as ``cat -n`` shows it, with a heading."""
    lines = shorten(text, MAX_VIEW_CHARS, marker=TEXT_CLIPPED).split("\n")
    numbered = "\n".join(map(add, _line_numbers(first, len(lines)), lines))
    return f"Here's the result of running `cat -n` on {description}:\n{numbered}\n"


def _line_numbers(first: int, count: int) -> Sequence[str]:
    if first + count <= _MAX_CACHED_NUMBERS:
        return _small_line_numbers()[first - 1 : first - 1 + count]
    return [f"{number:6}\t" for number in range(first, first + count)]


@cache
def _small_line_numbers() -> list[str]:
    """Format the first line numbers once: that takes most of the time of a view."""
    return [f"{number:6}\t" for number in range(1, _MAX_CACHED_NUMBERS)]


def view_lines(file: TextFile, path: Path, view_range: list[int] | tuple[int, int]) -> str:
    """Return the numbered lines of a range counted from 1; -1 is the end."""
    first, last, note = check_range(view_range, file.line_count)
    text = file.lines(first, last)
    return note + number_lines(text.removesuffix("\n"), path, first)


def check_range(view_range: list[int] | tuple[int, int], count: int) -> tuple[int, int, str]:
    """Validate a range; return its first and last line, and a note if the file is shorter."""
    first, last = two_integers(view_range)
    if not 1 <= first <= count:
        lines = f"the range of lines of the file: {[1, count]}."
        hint = f"Its first element `{first}` should be within {lines}"
        raise invalid("view_range", view_range, hint)
    note = ""
    if last > count:
        note = f"NOTE: We only show up to {count} since there're only {count} lines in this file.\n"
    if last == -1 or last > count:
        last = count
    if last < first:
        hint = f"Its second element `{last}` should be greater than or equal to the first element"
        raise invalid("view_range", view_range, f"{hint} `{first}`.")
    return first, last, note


def two_integers(view_range: list[int] | tuple[int, int]) -> tuple[int, int]:
    """Validate the type of a range, and return its ends."""
    if (
        not isinstance(view_range, list | tuple)
        or len(view_range) != 2
        or not all(isinstance(number, int) for number in view_range)
    ):
        raise invalid("view_range", view_range, "It should be a list of two integers.")
    return int(view_range[0]), int(view_range[1])


def list_directory(path: Path) -> str:
    """List a directory two levels deep, as far as it is readable."""
    entries = [f"{path}/"]
    length = 0
    with opened_directory(str(path)) as directory:
        children = _children(directory)
        for child in children:
            if not child.name.startswith("."):
                entries += _with_children(child, os.path.join(path, child.name))
                length += len(entries[-1])
            if length > MAX_VIEW_CHARS:
                break
    # Names that are not valid text cannot be sent as JSON.
    listing = os.fsencode("\n".join(entries)).decode("utf-8", "replace")
    if len(listing) > MAX_VIEW_CHARS:
        listing = listing[: listing.rfind("\n", 0, MAX_VIEW_CHARS) + 1] + DIRECTORY_CLIPPED
    # In a sorted list they are adjacent: "/" is the character after ".".
    first, last = (bisect_left(children, start, key=_NAME) for start in "./")
    hidden = last - first
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


def _with_children(entry: os.DirEntry[str], path: str) -> list[str]:
    if not _is_directory(entry):
        return [path]
    shown: list[str] = []
    with suppress(OSError), opened_directory(path) as directory:
        shown = [
            os.path.join(path, child.name) + ("/" if _is_directory(child) else "")
            for child in _children(directory)
            if not child.name.startswith(".")
        ]
    return [f"{path}/", *shown]


def _children(directory: int | str) -> list[os.DirEntry[str]]:
    with os.scandir(directory) as entries:
        return sorted(entries, key=_NAME)


def _is_directory(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a loop of links, on some systems
        return False


def data_url(data: bytes, media_type: str) -> str:
    """Return the bytes as a data URL."""
    return f"data:{media_type};base64,{base64.b64encode(data).decode('ascii')}"
