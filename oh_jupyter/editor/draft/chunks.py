"""Similarity search for the part of a file that a draft is about."""

from __future__ import annotations

from typing import NamedTuple

from oh_jupyter.editor.text.line_diff import common_lengths

__all__ = ["CHUNK_LINES", "Chunk", "closest_chunks"]

CHUNK_LINES = 20


class Chunk(NamedTuple):
    """Some lines of a file."""

    first: int  # the first of them, counted from 1
    lines: list[str]
    similarity: float

    @property
    def last(self) -> int:
        """The last line, counted from 1."""
        return self.first + len(self.lines) - 1

    def __str__(self) -> str:
        """Show the lines with their numbers."""
        numbered = (f"{number}|{line}" for number, line in enumerate(self.lines, self.first))
        return "\n".join(numbered)


def closest_chunks(lines: list[str], draft: str, count: int = 3, first: int = 1) -> list[Chunk]:
    """Chunks of 20 lines that have most in common with a draft, the closest first.

    The measure is that of OpenHands: the length of the longest common subsequence, as a
    part of the chunk's.
    """
    parts = [lines[start : start + CHUNK_LINES] for start in range(0, len(lines), CHUNK_LINES)]
    texts = ["\n".join(part) for part in parts]
    chunks = [
        Chunk(first + number * CHUNK_LINES, part, common / len(text) if text else 0.0)
        for number, (part, text, common) in enumerate(
            zip(parts, texts, common_lengths(texts, draft), strict=True)
        )
    ]
    return sorted(chunks, key=lambda chunk: -chunk.similarity)[:count]
