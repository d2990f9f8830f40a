"""Patches, whichever format they were written in: parsing, matching, application."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from oh_jupyter.editor.text.line_diff import changed_ranges

__all__ = ["FilePatch", "Hunk", "Line", "hunk_between"]

Line = tuple[str, str]
"""``" "``, ``"-"`` or ``"+"``, and the text of a line that stays, goes or comes."""


@dataclass(frozen=True)
class Hunk:
    """A change in one place."""

    lines: tuple[Line, ...]
    source: int  # the line of the patch in which it begins, counted from 1
    # the line of the file where it was when the patch was made, counted from 1
    hint: int | None = None
    anchors: tuple[str, ...] = ()
    at_end: bool = False
    newline: bool | None = None  # whether the file ends in a newline afterwards; None as before
    inline: bool = False

    @property
    def old(self) -> list[str]:
        """The lines that are looked for."""
        return [text for kind, text in self.lines if kind != "+"]

    @property
    def new(self) -> list[str]:
        """The lines that take their place."""
        return [text for kind, text in self.lines if kind != "-"]

    @property
    def identical(self) -> bool:
        """Whether nothing would change."""
        return self.old == self.new and self.newline is None


@dataclass(frozen=True)
class FilePatch:
    """Patch of one file."""

    action: Literal["add", "update", "delete"]
    path: str  # its name in the patch; "" for the file that the patch is meant for
    source: int  # the line of the patch in which it begins, counted from 1
    hunks: tuple[Hunk, ...] = ()
    content: str = ""
    new_path: str | None = None
    renamed: bool = True
    mode: int | None = None  # permissions, for ``add``; None for the usual ones


def hunk_between(old: Sequence[str], new: Sequence[str], source: int) -> Hunk:
    """Hunk between two versions of some lines."""
    lines: list[Line] = []
    position = 0
    for i1, i2, j1, j2 in changed_ranges(old, new):
        lines += [(" ", text) for text in old[position:i1]]
        lines += [("-", text) for text in old[i1:i2]]
        lines += [("+", text) for text in new[j1:j2]]
        position = i2
    lines += [(" ", text) for text in old[position:]]
    return Hunk(tuple(lines), source, inline=True)
