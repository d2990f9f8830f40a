"""A patch, whichever of the formats it was written in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

__all__ = ["FilePatch", "Hunk", "Line", "hunk_between"]

Line = tuple[str, str]
"""``" "``, ``"-"`` or ``"+"``, and the text of a line that stays, goes or comes."""


@dataclass(frozen=True)
class Hunk:
    """A change in one place.

    Attributes:
        lines: What is there and what becomes of it.
        source: The line of the patch in which it begins, counted from 1.
        hint: The line of the file where it was when the patch was made, counted from 1.
        anchors: Lines above the place, the outermost first.
        at_end: Whether the place is the end of the file.
        newline: Whether the file ends in a newline afterwards; None as before.
        inline: Whether the place may be a part of a line.
    """

    lines: tuple[Line, ...]
    source: int
    hint: int | None = None
    anchors: tuple[str, ...] = ()
    at_end: bool = False
    newline: bool | None = None
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
    """What happens to one file.

    Attributes:
        action: What.
        path: Its name in the patch; "" for the file that the patch is meant for.
        source: The line of the patch in which it begins, counted from 1.
        hunks: The changes, for ``update``, and for ``delete`` what is deleted.
        content: The text, for ``add``.
        new_path: Its other name, for ``update``.
        renamed: Whether it gets that name; else one of the two is that of a file.
        mode: Permissions, for ``add``; None for the usual ones.
    """

    action: Literal["add", "update", "delete"]
    path: str
    source: int
    hunks: tuple[Hunk, ...] = ()
    content: str = ""
    new_path: str | None = None
    renamed: bool = True
    mode: int | None = None


def hunk_between(old: Sequence[str], new: Sequence[str], source: int) -> Hunk:
    """Make a hunk of two versions of some lines; what both have stays.

    Args:
        old: The lines that are there.
        new: The lines that are to be there.
        source: The line of the patch in which it begins.

    Returns:
        The hunk.
    """
    lines: list[Line] = []
    codes = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    for tag, i1, i2, j1, j2 in codes:
        if tag == "equal":
            lines += [(" ", text) for text in old[i1:i2]]
        else:
            lines += [("-", text) for text in old[i1:i2]]
            lines += [("+", text) for text in new[j1:j2]]
    return Hunk(tuple(lines), source, inline=True)
