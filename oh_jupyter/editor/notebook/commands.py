"""Editor commands on notebooks, as functions that compute an edit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from oh_jupyter.editor.messages import invalid, quoted
from oh_jupyter.editor.notebook.cells import Notebook
from oh_jupyter.editor.notebook.edits import CellReference, insert_lines, replace_text
from oh_jupyter.editor.notebook.structure import change_cell
from oh_jupyter.editor.notebook.validation import is_notebook
from oh_jupyter.editor.text.edits import Edit
from oh_jupyter.editor.text.text_file import TextFile
from oh_jupyter.errors import NoReplacementError

__all__ = ["cell_edit", "cell_insert", "cell_replace"]

Compute = Callable[[TextFile, str | None], tuple[Edit, str]]
"""Given a file and its text as it was shown, an edit and what to tell besides."""

_JSON_NOTE = (
    "\nNOTE: The text is in the source of no cell, so the JSON of the notebook was edited; the "
    "line numbers are those of the file."
)


def cell_replace(
    path: Path,
    old: str,
    new: str,
    cell: CellReference | None,
    as_text: Compute,
    *,
    every: bool = False,
    expected: int | None = None,
) -> Compute:
    """``str_replace`` in the sources of cells; a text in none of them is replaced in the JSON.

    A text that is in none of them, but once in the JSON, is replaced there.
    """

    def compute(file: TextFile, shown: str | None) -> tuple[Edit, str]:
        notebook = Notebook.parse(file.text)
        if notebook is None:
            return as_text(file, shown)
        found = replace_text(
            path, file, notebook, shown, old, new, cell, every=every, expected=expected
        )
        if found is not None:
            return found
        if cell is None and old and file.text.count(old) == 1:
            edit, note = as_text(file, shown)
            return edit, _JSON_NOTE + note
        from oh_jupyter.editor.text.fuzzy import explain_absence

        raise NoReplacementError(
            f"No replacement was performed, old_str `{quoted(old.strip())}` did not appear "
            f"verbatim in {path}. It was sought in the sources of the cells, as `view` shows them."
            + explain_absence(notebook.listing(), old, new)
        )

    return compute


def cell_insert(path: Path, line: int, text: str, as_text: Compute) -> Compute:
    """``insert`` into cells, by the line numbers of the view."""

    def compute(file: TextFile, shown: str | None) -> tuple[Edit, str]:
        notebook = Notebook.parse(file.text)
        if notebook is None:
            return as_text(file, shown)
        return insert_lines(path, file, notebook, shown, line, text)

    return compute


def cell_edit(
    path: Path,
    mode: str,
    cell: CellReference | None,
    source: str | None,
    cell_type: str | None,
    to: int | None,
) -> Compute:
    """``notebook_edit``."""
    if not is_notebook(path):
        raise invalid("path", path, "The command `notebook_edit` is for .ipynb files.")

    def compute(file: TextFile, shown: str | None) -> tuple[Edit, str]:
        notebook = Notebook.parse(file.text)
        if notebook is None:
            raise invalid(
                "path",
                path,
                "It is no notebook of format 4, or its JSON is broken; it can only be edited as "
                "text, with the commands `view`, `str_replace` and `insert`.",
            )
        return change_cell(path, file, notebook, shown, mode, cell, source, cell_type, to)

    return compute
