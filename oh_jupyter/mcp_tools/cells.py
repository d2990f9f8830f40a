"""Cells of the notebook format: made, found and converted."""

from __future__ import annotations

import uuid
from typing import Any

from oh_jupyter.control_messages import KEEP_OUT_TAG
from oh_jupyter.errors import FileChangedError, WireError
from oh_jupyter.text import plural

Cell = dict[str, Any]  # A cell of the notebook format
Reference = int | str  # A cell: its id, or its position from 0 or from the end


def new_cell(kind: str, source: str) -> Cell:
    """Make a code, markdown or raw cell."""
    cell: Cell = {"cell_type": kind, "id": uuid.uuid4().hex[:8], "metadata": {}, "source": source}
    return {**cell, "outputs": [], "execution_count": None} if kind == "code" else cell


def converted(cell: Cell, kind: str) -> Cell:
    """Return a cell converted to another type."""
    made = new_cell(kind, cell["source"])
    return {
        **made,
        "id": cell.get("id") or made["id"],
        "metadata": dict(cell.get("metadata") or {}),
    }


def without_id(cell: Cell) -> Cell:
    """Return a cell for a notebook of an older format."""
    return {name: value for name, value in cell.items() if name != "id"}


def position(cells: list[Cell], reference: Reference) -> int:
    """Return the position of a cell from 0, or raise WireError."""
    same = [n for n, cell in enumerate(cells) if reference == cell.get("id")]
    if isinstance(reference, str) and len(same) > 1:
        places = ", ".join(map(str, same))
        raise WireError(
            f"{len(same)} cells have the id {reference!r}, at the positions {places}; nothing was "
            "done. Name the cell by its position",
            "cell",
        )
    if isinstance(reference, str) and same:
        return same[0]
    number = reference if isinstance(reference, int) else _number(reference)
    if number is None or not -len(cells) <= number < len(cells):
        raise WireError(
            f"There is no cell {reference!r}: the notebook has {plural(len(cells), 'cell')}, "
            "counted from 0",
            "cell",
        )
    return number % len(cells)


def reference_of(cells: list[Cell], cell: Cell, index: int) -> Reference:
    """Return what names a cell that was read at an index: its id if no other cell has it."""
    id = cell.get("id")
    is_unique = id and sum(each.get("id") == id for each in cells) <= 1
    return str(id) if is_unique else index


def checked(cells: Any, path: str) -> list[Cell]:
    """Return the same cells of a file; raise WireError if they are not of the notebook format."""
    for index, cell in enumerate(cells if isinstance(cells, list) else [None]):
        if fault := _fault(cell):
            raise WireError(
                f"{path} is not a valid notebook: cell {index} {fault}. Nothing was done. Repair "
                "the file with read and edit"
            )
    checked_cells: list[Cell] = cells
    return checked_cells


def _fault(cell: Any) -> str:
    """Return what is wrong with a cell of a file, or ""."""
    if not isinstance(cell, dict):
        return "is not an object"
    if cell.get("cell_type") not in ("code", "markdown", "raw"):
        return "has no valid 'cell_type'"
    if not _is_text(cell.get("source")):
        return "has no valid 'source'"
    outputs = cell.get("outputs", [])
    if not isinstance(outputs, list) or not all(isinstance(each, dict) for each in outputs):
        return "has no valid 'outputs'"
    return "" if isinstance(cell.get("metadata", {}), dict) else "has no valid 'metadata'"


def _is_text(value: Any) -> bool:
    return isinstance(value, str) or (
        isinstance(value, list) and all(isinstance(line, str) for line in value)
    )


def _number(text: str) -> int | None:
    return int(text) if text.lstrip("-").isdigit() else None


def same_cell(cells: list[Cell], index: int, known: Cell) -> int:
    """Return the position of a cell read earlier; raise FileChangedError if it has changed."""
    if "id" in known:
        same = [n for n, cell in enumerate(cells) if cell.get("id") == known["id"]]
        index = index if index in same else (same or [-1])[0]
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
