"""Cells of the notebook format: made, found and converted."""

from __future__ import annotations

import uuid
from typing import Any

from oh_jupyter.control_messages import KEEP_OUT_TAG
from oh_jupyter.errors import FileChangedError, WireError
from oh_jupyter.plural import plural

Cell = dict[str, Any]  # A cell of the notebook format
Reference = int | str  # A cell: its id, or its position from 0 or from the end


def new_cell(kind: str, source: str) -> Cell:
    """Make a code, markdown or raw cell."""
    cell: Cell = {"cell_type": kind, "id": uuid.uuid4().hex[:8], "metadata": {}, "source": source}
    return {**cell, "outputs": [], "execution_count": None} if kind == "code" else cell


def converted(cell: Cell, kind: str) -> Cell:
    """Return a cell converted to another type."""
    made = new_cell(kind, cell["source"])
    return {**made, "id": cell.get("id") or made["id"], "metadata": dict(cell["metadata"])}


def without_id(cell: Cell) -> Cell:
    """Return a cell for a notebook of an older format."""
    return {name: value for name, value in cell.items() if name != "id"}


def position(cells: list[Cell], reference: Reference) -> int:
    """Return the position of a cell from 0, or raise WireError."""
    for index, cell in enumerate(cells):
        if isinstance(reference, str) and cell.get("id") == reference:
            return index
    number = reference if isinstance(reference, int) else _number(reference)
    if number is None or not -len(cells) <= number < len(cells):
        raise WireError(
            f"There is no cell {reference!r}: the notebook has {plural(len(cells), 'cell')}, "
            "counted from 0",
            "cell",
        )
    return number % len(cells)


def _number(text: str) -> int | None:
    return int(text) if text.lstrip("-").isdigit() else None


def same_cell(cells: list[Cell], index: int, known: Cell) -> int:
    """Return the position of a cell read earlier; raise FileChangedError if it has changed."""
    if "id" in known:
        index = next((n for n, cell in enumerate(cells) if cell.get("id") == known["id"]), -1)
    if not 0 <= index < len(cells) or cells[index]["source"] != known["source"]:
        raise FileChangedError(
            "Someone else changed the cell at the same moment; nothing was written. Read the "
            "cells again, then repeat the change"
        )
    return index


def joined(value: Any) -> str:
    """Return a text of the notebook format, which may be a list of lines."""
    return "".join(value) if isinstance(value, list) else str(value)


def named(index: int, cell: Cell) -> str:
    """Return the name of a cell: its position, and its id if it has one."""
    return f"cell {index} (id {cell['id']})" if cell.get("id") else f"cell {index}"


def key_of(index: int, cell: Cell) -> str:
    """Return what identifies a cell in its notebook: its id, or else its position."""
    return str(cell.get("id") or index)


def keep_out_fault(index: int, cell: Cell) -> str:
    """Return why agents may neither edit nor run a cell, or ""."""
    if KEEP_OUT_TAG not in (cell.get("metadata") or {}).get("tags", ()):
        return ""
    return (
        f"Cell {index} is tagged {KEEP_OUT_TAG}: the person does not want agents to edit or run it."
        " Nothing was done."
    )
