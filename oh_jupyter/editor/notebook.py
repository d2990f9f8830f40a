"""Keeping notebooks valid when they are edited as text."""

from __future__ import annotations

import json
from pathlib import Path

from oh_jupyter.errors import EditorError

__all__ = ["check_notebook"]


def check_notebook(path: Path, old: str | None, new: str) -> None:
    """Refuse an edit that would break a notebook.

    A notebook that is broken already may be edited in any way, to repair it.

    Args:
        path: The file.
        old: Its text before the edit; None if it was not there.
        new: Its text after the edit.

    Raises:
        EditorError: It was a notebook, and would not be one any more.
    """
    if path.suffix.lower() != ".ipynb" or old is None or _problem(old) is not None:
        return
    problem = _problem(new)
    if problem is not None:
        raise EditorError(
            f"The edit would leave {path} no valid notebook: {problem}. Nothing was changed. "
            "A notebook is JSON: edit inside the strings of a cell's `source`, and write a "
            r"newline there as \n and a quote as \"."
        )


def _problem(text: str) -> str | None:
    """Say why a text is not a notebook."""
    try:
        document = json.loads(text)
    except ValueError as error:
        return f"invalid JSON ({error})"
    if not isinstance(document, dict) or not isinstance(document.get("nbformat"), int):
        return "`nbformat` is missing"
    cells = document.get("cells")
    if not isinstance(cells, list) or not all(_is_cell(cell) for cell in cells):
        return "`cells` is not a list of cells"
    return None


def _is_cell(cell: object) -> bool:
    return (
        isinstance(cell, dict)
        and cell.get("cell_type") in ("code", "markdown", "raw")
        and isinstance(cell.get("source"), str | list)
    )
