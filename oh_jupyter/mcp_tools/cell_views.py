"""Views of a notebook's cells within a budget of characters: their contents, or an outline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from oh_jupyter.mcp_tools.cells import Cell, joined
from oh_jupyter.mcp_tools.results import cell_head, cell_outputs, kept_in, text

FIRST_LOOK_CHARS = 6_000
"""Characters of a look at a whole notebook."""

RANGE_CHARS = 25_000
"""Characters of a look at chosen cells."""

MIN_CELL_CHARS = 120
"""Cells that would have less room than this are only outlined."""

SOURCE_SHARE = 0.6
"""Part of the budget that sources may use, before what the outputs leave."""

MIN_END_CHARS = 40
"""Characters that a shortened output keeps of its start, and of its end."""

OUTLINE_LINE_CHARS = 80
MAX_PICTURES = 4
"""Pictures in a look at a whole notebook."""

IndexedCells = Sequence[tuple[int, Cell]]


@dataclass(frozen=True)
class _Parts:
    """The parts of one cell's view."""

    head: str
    source: str
    outputs: list[str]
    pictures: list[dict[str, Any]]

    @property
    def output(self) -> str:
        return "".join(f"\n--- output ---\n{shown}" for shown in self.outputs)


def cell_contents(
    cells: IndexedCells,
    budget: int,
    *,
    outputs: bool,
    running: Mapping[int, str],
    files: Mapping[int, str] | None = None,
    max_pictures: int | None = None,
) -> list[dict[str, Any]]:
    """Return content blocks of cells, shortened to a budget; each cell gets a fair share.

    Args:
        cells: The cells with their positions.
        budget: Maximum characters of the text.
        outputs: Whether to show outputs.
        running: What to say of running cells, by position.
        files: Files with whole outputs that are too long, by position.
        max_pictures: Maximum number of pictures, None for all.
    """
    parts = [_parts(index, cell, outputs, running.get(index, "")) for index, cell in cells]
    heads = sum(len(part.head) + 2 for part in parts)
    room = budget - heads
    whole = sum(len(part.source) + len(part.output) for part in parts)
    if whole > room and room < MIN_CELL_CHARS * len(parts):
        return [text("\n".join([*outline(cells), _rest_hint("the contents")]))]
    source_lengths = [len(part.source) for part in parts]
    output_lengths = [len(part.output) for part in parts]
    spare = max(0, int(room * (1 - SOURCE_SHARE)) - sum(output_lengths))
    source_limit = fair_share(source_lengths, int(room * SOURCE_SHARE) + spare)
    used = sum(min(length, source_limit) for length in source_lengths)
    output_limit = fair_share(output_lengths, room - used)
    blocks: list[dict[str, Any]] = []
    shortened, pictures = whole > room, 0
    for (index, _), part in zip(cells, parts, strict=True):
        shown = f"{part.head}\n{_first_lines(part.source, source_limit)}"
        shown += both_ends(part.output, output_limit)
        blocks.append(text(shown))
        if block := kept_in((files or {}).get(index, "")):
            blocks.append(block)
        for picture in part.pictures:
            pictures += 1
            if max_pictures is None or pictures <= max_pictures:
                blocks.append(picture)
    omitted = [] if max_pictures is None else range(pictures - max_pictures)
    what = [*(["the rest"] if shortened else []), *(["more pictures"] if len(omitted) else [])]
    return [*blocks, text(_rest_hint(" and ".join(what)))] if what else blocks


def _rest_hint(what: str) -> str:
    return f"[read_cells with start and end shows {what}; search finds text.]"


def _parts(index: int, cell: Cell, outputs: bool, running: str) -> _Parts:
    texts, pictures = cell_outputs(cell) if outputs else ([], [])
    if running:
        texts, pictures = [running], []
    state = "running" if running else None
    return _Parts(cell_head(index, cell, state), joined(cell.get("source", "")), texts, pictures)


def fair_share(lengths: Sequence[int], budget: int) -> int:
    """Return the largest limit for which the lengths, cut to it, fit into a budget."""
    remaining, room = sorted(lengths), max(budget, 0)
    for number, length in enumerate(remaining):
        share = room // (len(remaining) - number)
        if length > share:
            return share
        room -= length
    return max(remaining, default=0)


def _first_lines(source: str, limit: int) -> str:
    if len(source) <= limit:
        return source
    whole_lines = source[:limit].rpartition("\n")[0] or source[:limit]
    missing = source.count("\n") - whole_lines.count("\n")
    if not missing:
        return f"{whole_lines} [...]"
    return f"{whole_lines}\n[... {missing} more line{'s' * (missing > 1)}]"


def both_ends(output: str, limit: int) -> str:
    """Return an output without the middle if it is longer than a limit; prefer whole lines."""
    if len(output) <= limit:
        return output
    half = max(limit // 2, MIN_END_CHARS)
    start, end = output[:half], output[-half:]
    # Whole lines, unless that would lose most of it.
    if (cut := start.rfind("\n")) > half // 2:
        start = start[:cut]
    if 0 <= (cut := end.find("\n")) < half // 2:
        end = end[cut + 1 :]
    omitted = len(output) - len(start) - len(end)
    return f"{start}\n[... {omitted} characters ...]\n{end}"


def outline(cells: IndexedCells, running: Mapping[int, str] | None = None) -> list[str]:
    """Return one line for each cell: position, id, state, first line, and size of its outputs."""
    return [_outline_line(index, cell, index in (running or {})) for index, cell in cells]


def _outline_line(index: int, cell: Cell, is_running: bool) -> str:
    lines = joined(cell.get("source", "")).strip().splitlines()
    first = next((line for line in lines if line.startswith("#")), "") if lines else ""
    if cell["cell_type"] == "code" or not first:
        first = lines[0] if lines else "(empty)"
    state = [f"{len(lines)} lines"] if len(lines) > 1 else []
    outputs = cell.get("outputs") or []
    if cell["cell_type"] == "code":
        count = cell.get("execution_count")
        state.append("running" if is_running else f"[{count}]" if count else "not run")
    state += [f"{output['ename']}" for output in outputs if output.get("output_type") == "error"]
    texts, pictures = cell_outputs(cell)
    if texts or pictures:
        chars = sum(map(len, texts))
        state.append(f"output {chars} characters" + (", picture" if pictures else ""))
    kind = {"code": "", "markdown": "md "}.get(cell["cell_type"], f"{cell['cell_type']} ")
    about = f" ({', '.join(state)})" if state else ""
    return f"{index} {cell.get('id', '-')} {kind}{first[:OUTLINE_LINE_CHARS]}{about}"
