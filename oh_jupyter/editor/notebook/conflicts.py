"""Changes that somebody else made to a notebook since it was last shown.

Notebooks are compared as they are shown, without outputs and execution counts: who
runs a cell does not come between an agent and its edit.
"""

from __future__ import annotations

from pathlib import Path

from oh_jupyter.editor.notebook.cells import Cell, Notebook
from oh_jupyter.editor.text import conflicts

__all__ = ["check_cell", "check_lines", "check_texts"]


def check_texts(
    path: Path, shown: str | None, notebook: Notebook, found: list[tuple[Cell, int]], length: int
) -> str:
    """Conflict check of replacements that were found by their text."""
    before, now = _compared(shown, notebook)
    if before == now:
        return ""
    starts, position = [], 0
    for cell in notebook.cells:
        position += len(cell.heading(executions=False)) + 1
        starts.append(position)
        position += len(cell.source) + 1
    begins = [starts[cell.index] + at for cell, at in found]
    return conflicts.check_matches(path, before, now, [(at, at + length) for at in begins])


def check_lines(path: Path, shown: str | None, notebook: Notebook, line: int) -> str:
    """Conflict check of an edit that was given by a line number."""
    before, now = _compared(shown, notebook)
    return conflicts.check_lines(path, before, now, line) if before != now else ""


def check_cell(
    path: Path, shown: str | None, notebook: Notebook, cell: Cell | None, *, by_id: bool
) -> str:
    """Conflict check of an edit of a whole cell; None is the top of the notebook."""
    before, now = _compared(shown, notebook)
    if before == now:
        return ""
    old = Notebook.parse(shown) if shown is not None else None
    if cell is not None and old is not None and not _same(old, cell, by_id=by_id):
        raise conflicts.changed_error(path, before, now)
    return conflicts.check_lines(path, before, now, -1)  # all changes are elsewhere


def _same(old: Notebook, cell: Cell, *, by_id: bool) -> bool:
    if by_id and cell.id is not None:
        known = [other for other in old.cells if other.id == cell.id]
        if not known:
            return True  # the caller learnt of it elsewhere
    else:
        known = old.cells[cell.index : cell.index + 1]
    return any((c.id, c.type, c.source) == (cell.id, cell.type, cell.source) for c in known)


def _compared(shown: str | None, notebook: Notebook) -> tuple[str, str]:
    """The notebook as it was shown and as it is; the same where it was none before."""
    now = notebook.listing(executions=False)
    old = Notebook.parse(shown) if shown is not None else None
    return (old.listing(executions=False) if old is not None else now), now
