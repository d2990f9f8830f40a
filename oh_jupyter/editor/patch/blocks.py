"""Parser of SEARCH and REPLACE blocks, as Aider's models write them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from oh_jupyter.editor.patch.model import FilePatch, hunk_between
from oh_jupyter.errors import PatchError

__all__ = ["SEARCH", "parse_blocks", "split_blocks"]

SEARCH = re.compile(r"<{5,}\s*SEARCH\s*>?\s*\Z")
"""The line that begins a block."""

_DIVIDER = re.compile(r"={5,}\s*\Z")
# An input prompt of three of these signs may have been taken for one of Python and removed.
_REPLACE = re.compile(r">{2,}\s*REPLACE\s*\Z")
_FENCE = re.compile(r"\s*(```|~~~)")


def parse_blocks(text: str) -> list[FilePatch]:
    """Patches of SEARCH and REPLACE blocks; the file is named above a block.

    The file of a block is named in a line above it, in front of the fence or behind it;
    a block without one belongs to the file of the block before.
    """
    lines = text.replace("\r\n", "\n").split("\n")
    patches: list[FilePatch] = []
    path = ""
    for start, middle, end in _blocks(lines):
        path = _path_above(lines, start) or path
        old, new = lines[start + 1 : middle], lines[middle + 1 : end]
        if old:
            hunk = hunk_between(old, new, start + 1)
            patches.append(FilePatch("update", path, start + 1, (hunk,)))
        else:
            content = "".join(f"{line}\n" for line in new)
            patches.append(FilePatch("add", path, start + 1, content=content))
    return patches


def split_blocks(text: str) -> list[tuple[str, str]]:
    """Old and new texts of SEARCH and REPLACE blocks."""
    lines = text.split("\n")
    return [
        ("\n".join(lines[start + 1 : middle]), "\n".join(lines[middle + 1 : end]))
        for start, middle, end in _blocks(lines)
    ]


def _blocks(lines: list[str]) -> Iterator[tuple[int, int, int]]:
    """Find the three markers of each block."""
    position = 0
    while position < len(lines):
        if SEARCH.match(lines[position]):
            middle = _find(lines, position + 1, _DIVIDER, position, "=======")
            end = _find(lines, middle + 1, _REPLACE, position, ">>>>>>> REPLACE")
            yield position, middle, end
            position = end
        position += 1


def _find(lines: list[str], start: int, marker: re.Pattern[str], block: int, name: str) -> int:
    for number in range(start, len(lines)):
        line = lines[number]
        if marker.match(line):
            return number
        if SEARCH.match(line):
            break
    raise PatchError(
        f"The block that begins in line {block + 1} of the patch has no line {name!r}; nothing was "
        "changed. A block is: <<<<<<< SEARCH, the old lines, =======, the new lines, "
        ">>>>>>> REPLACE, each marker in a line of its own."
    )


def _path_above(lines: list[str], block: int) -> str:
    """Find the name of the file in the lines above a block."""
    for line in reversed(lines[max(0, block - 3) : block]):
        if _REPLACE.match(line):
            return ""
        if _FENCE.match(line):
            continue
        name = line.strip().lstrip("#").strip().rstrip(":").strip("`*").strip()
        if name:
            return name if _is_name(name) else ""
    return ""


def _is_name(text: str) -> bool:
    """Whether a line is the name of a file, not a sentence."""
    return " " not in text or ("." in text.rsplit("/", 1)[-1] and not text.endswith("."))
