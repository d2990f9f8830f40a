"""Patches in any format: parsing, matching, application."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from oh_jupyter.editor.text.line_diff import changed_ranges

__all__ = ["FilePatch", "Line", "PatchHunk", "hunk_between"]

Line = tuple[str, str]
"""``" "``, ``"-"`` or ``"+"``, and the text of an unchanged, removed or added line."""


@dataclass(frozen=True)
class PatchHunk:
    """A change in one place."""

    lines: tuple[Line, ...]
    source: int  # its first line in the patch, counted from 1
    hint: int | None = None  # its line in the file when the patch was made, counted from 1
    anchors: tuple[str, ...] = ()
    at_end: bool = False
    newline: bool | None = None  # whether the file ends in a newline afterwards; None as before
    inline: bool = False

    @property
    def old(self) -> list[str]:
        """The lines to find."""
        return [text for kind, text in self.lines if kind != "+"]

    @property
    def new(self) -> list[str]:
        """The lines that replace them."""
        return [text for kind, text in self.lines if kind != "-"]


@dataclass(frozen=True)
class FilePatch:
    """Patch of one file."""

    action: Literal["add", "update", "delete"]
    path: str  # its name in the patch; "" for the only file
    source: int  # its first line in the patch, counted from 1
    hunks: tuple[PatchHunk, ...] = ()
    content: str = ""
    new_path: str | None = None
    renamed: bool = True
    mode: int | None = None  # permissions, for ``add``; None for the default


def hunk_between(old: Sequence[str], new: Sequence[str], source: int) -> PatchHunk:
    """Return the hunk between two versions of some lines."""
    lines: list[Line] = []
    position = 0
    for i1, i2, j1, j2 in changed_ranges(old, new):
        lines += [(" ", text) for text in old[position:i1]]
        lines += [("-", text) for text in old[i1:i2]]
        lines += [("+", text) for text in new[j1:j2]]
        position = i2
    lines += [(" ", text) for text in old[position:]]
    return PatchHunk(tuple(lines), source, inline=True)
