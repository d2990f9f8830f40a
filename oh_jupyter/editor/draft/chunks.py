"""Similarity search for the part of a file that a draft is about."""

from __future__ import annotations

from typing import NamedTuple

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
    positions: dict[str, int] = {}
    for index, character in enumerate(draft):
        positions[character] = positions.get(character, 0) | 1 << index
    chunks = []
    for start in range(0, len(lines), CHUNK_LINES):
        part = lines[start : start + CHUNK_LINES]
        text = "\n".join(part)
        common = _common_length(text, positions, len(draft))
        chunks.append(Chunk(first + start, part, common / len(text) if text else 0.0))
    return sorted(chunks, key=lambda chunk: -chunk.similarity)[:count]


def _common_length(text: str, positions: dict[str, int], size: int) -> int:
    """Length of the longest common subsequence.

    Hyyrö's bit-parallel algorithm: a row of the table is one integer, so a file of many
    thousand lines takes a fraction of a second without any library.
    """
    full = row = (1 << size) - 1
    for character in text:
        matches = row & positions.get(character, 0)
        row = ((row + matches) | (row - matches)) & full
    return size - row.bit_count()
