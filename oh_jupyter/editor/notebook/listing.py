"""Edits of a notebook as the text that is shown: headings and sources, one below the other."""

from __future__ import annotations

from pathlib import Path

from oh_jupyter.editor.notebook.cells import Notebook
from oh_jupyter.editor.notebook.edits import rewrite_sources
from oh_jupyter.editor.text.edits import Edit
from oh_jupyter.editor.text.line_diff import changed_ranges
from oh_jupyter.editor.text.text_file import TextFile
from oh_jupyter.errors import EditorError

__all__ = ["rewrite_listing"]


def rewrite_listing(
    path: Path, file: TextFile, notebook: Notebook, listing: str
) -> tuple[Edit, str] | None:
    """Edit that gives cells the sources of a changed listing, and a note; None if none changed."""
    old, new = notebook.listing().split("\n"), listing.split("\n")
    sources = _sources(path, notebook, new)
    changed = {
        cell.index: source
        for cell, source in zip(notebook.cells, sources, strict=True)
        if source != cell.source
    }
    if not changed:
        return None
    first = changed_ranges(old, new)[0]
    line, height = first.j1 + 1, first.j2 - first.j1
    return rewrite_sources(path, file, notebook, changed, line, height)


def _sources(path: Path, notebook: Notebook, lines: list[str]) -> list[str]:
    """Take a listing apart at the headings, which must be those of the notebook."""
    headings = [cell.heading() for cell in notebook.cells]
    places = [number for number, line in enumerate(lines) if line.startswith("# %% [")]
    above = lines[: places[0]] if places else lines
    if [lines[number] for number in places] != headings or any(above):
        raise EditorError(
            f"The edit would change which cells {path} has: lines that begin with `# %% [` are the "
            "headings of cells, and stay as they are. Nothing was changed. Insert, delete, move "
            "and retype cells with the command `notebook_edit`."
        )
    ends = [*places, len(lines)][1:]
    return ["\n".join(lines[start + 1 : end]) for start, end in zip(places, ends, strict=True)]
