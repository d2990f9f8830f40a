"""Editor commands for notebooks, as functions that compute an edit."""

from __future__ import annotations

import os
from pathlib import Path

from oh_jupyter.editor.messages import invalid, missing, quoted
from oh_jupyter.editor.notebook.cells import Cell, Notebook
from oh_jupyter.editor.notebook.edits import (
    CellReference,
    NotebookFile,
    changed_cells,
    check_cell_conflicts,
    find_cell,
    insert_lines,
    replace_text,
    rewrite_sources,
    stored_source,
)
from oh_jupyter.editor.notebook.validation import (
    CELL_TYPES,
    Span,
    Style,
    indentation_at,
    is_notebook,
)
from oh_jupyter.editor.text.edits import SNIPPET_LINES, Compute, Edit
from oh_jupyter.editor.text.text_file import TextFile, to_newlines
from oh_jupyter.errors import NoReplacementError

_MODES = ("replace", "insert", "delete", "move")


def _change_cell(
    target: NotebookFile,
    mode: str,
    reference: CellReference | None,
    source: str | None,
    cell_type: str | None,
    to: int | None,
) -> tuple[Edit, str]:
    if mode not in _MODES:
        raise invalid("edit_mode", mode, f"It should be one of {', '.join(_MODES)}.")
    if cell_type is not None and cell_type not in CELL_TYPES:
        raise invalid("cell_type", cell_type, f"It should be one of {', '.join(CELL_TYPES)}.")
    if mode in ("replace", "insert") and source is None:
        raise missing(f"notebook_edit ({mode})", "new_str")
    if mode != "insert" and reference is None:
        raise missing(f"notebook_edit ({mode})", "cell")
    cell = find_cell(target.notebook, reference) if reference is not None else None
    note = check_cell_conflicts(target, cell, by_id=isinstance(reference, str))
    if mode == "insert":
        return _insert(target, cell, source or "", cell_type or "code"), note
    assert cell is not None
    if mode == "delete":
        return _delete(target, cell), note
    if mode == "move":
        return _move(target, cell, to), note
    edit, cleared = _replace(target, cell, to_newlines(source or ""), cell_type)
    return edit, cleared + note


def _replace(
    target: NotebookFile, cell: Cell, source: str, cell_type: str | None
) -> tuple[Edit, str]:
    text = target.notebook.text
    height = source.count("\n") + 1
    if cell_type is None or cell_type == cell.type:
        if source == cell.source:
            raise invalid("new_str", source, f"It already is the source of {cell.name}.")
        return rewrite_sources(target, {cell.index: source}, cell.line + 1, height)
    retyped = _retyped(cell.span, cell_type)
    retyped["source"] = stored_source(source, as_list=isinstance(cell.span.value["source"], list))
    new = Style.of(text).dump(retyped, indentation_at(text, cell.span.start))
    replacements = [(cell.span.start, cell.span.end, new)]
    return changed_cells(target, replacements, (cell.line, 0, height), f"in {cell.name}"), ""


def _retyped(span: Span, cell_type: str) -> dict[str, object]:
    """Return a copy of a cell with the fields of another type."""
    unused_keys = ("outputs", "execution_count") if cell_type != "code" else ("attachments",)
    cell = {key: value for key, value in span.value.items() if key not in unused_keys}
    cell["cell_type"] = cell_type
    if cell_type == "code":
        cell |= {"execution_count": None, "outputs": []}
        if list(span.value) == sorted(span.value):  # the order in which Jupyter writes
            cell = dict(sorted(cell.items()))
    return cell


def _insert(target: NotebookFile, after: Cell | None, source: str, cell_type: str) -> Edit:
    new_cell = _new_cell(target.notebook, to_newlines(source), cell_type)
    replacement = _insertion(target.notebook, after, new_cell)
    line = after.last_line + 1 if after is not None else 1
    index = after.index + 1 if after is not None else 0
    lines = (line, 0, source.count("\n") + 1)
    return changed_cells(target, [replacement], lines, f"with the new cell [{index}]")


def _insertion(
    notebook: Notebook, after: Cell | None, new_cell: dict[str, object]
) -> tuple[int, int, str]:
    """Return the replacement that inserts a cell, in the style of the notebook."""
    text, cells = notebook.text, notebook.cells
    style, span = Style.of(text), notebook.top["cells"]
    if not cells:
        if style.indent is None:
            return span.start, span.end, "[" + style.dump(new_cell, "") + "]"
        prefix = indentation_at(text, span.start)
        inner = prefix + style.indent
        return span.start, span.end, f"[\n{inner}{style.dump(new_cell, inner)}\n{prefix}]"
    near = after if after is not None else cells[0]
    new = style.dump(new_cell, indentation_at(text, near.span.start))
    if len(cells) > 1:
        between = text[cells[0].span.end : cells[1].span.start]
    else:
        lead = text[span.start + 1 : cells[0].span.start]
        between = "," + lead if lead or style.indent is not None else style.comma
    if after is not None:
        return after.span.end, after.span.end, between + new
    return cells[0].span.start, cells[0].span.start, new + between


def _new_cell(notebook: Notebook, source: str, cell_type: str) -> dict[str, object]:
    is_code = cell_type == "code"
    as_list = not any(isinstance(cell.span.value["source"], str) for cell in notebook.cells)
    cell: dict[str, object] = {"cell_type": cell_type}
    cell |= {"execution_count": None} if is_code else {}
    if notebook.minor >= 5:
        taken = {cell.id for cell in notebook.cells}
        name = os.urandom(4).hex()
        while name in taken:
            name = os.urandom(4).hex()
        cell["id"] = name
    cell["metadata"] = {}
    cell |= {"outputs": []} if is_code else {}
    return cell | {"source": stored_source(source, as_list=as_list)}


def _delete(target: NotebookFile, cell: Cell) -> Edit:
    notebook = target.notebook
    cells, index = notebook.cells, cell.index
    if len(cells) == 1:
        whole = notebook.top["cells"]
        replacement = (whole.start, whole.end, "[]")
    elif index + 1 < len(cells):
        replacement = (cell.span.start, cells[index + 1].span.start, "")
    else:
        replacement = (cells[index - 1].span.end, cell.span.end, "")
    lines = (cell.line, SNIPPET_LINES - 1, SNIPPET_LINES)
    return changed_cells(target, [replacement], lines, f"from which {cell.name} was deleted")


def _move(target: NotebookFile, cell: Cell, to: int | None) -> Edit:
    text, cells = target.notebook.text, target.notebook.cells
    if to is None:
        raise missing("notebook_edit (move)", "to")
    if not isinstance(to, int) or isinstance(to, bool) or not -len(cells) <= to < len(cells):
        raise invalid("to", to, f"It should be a position from 0 to {len(cells) - 1}.")
    to %= len(cells)
    if to == cell.index:
        raise invalid("to", to, f"It already is the position of {cell.name}.")
    order = [other for other in cells if other is not cell]
    order.insert(to, cell)
    first, last = sorted((cell.index, to))
    # Only the cells are swapped; the text between them stays in place.
    replacements = [
        (old.span.start, old.span.end, text[new.span.start : new.span.end])
        for old, new in zip(cells[first : last + 1], order[first : last + 1], strict=True)
    ]
    line = 1 + sum(other.last_line - other.line + 1 for other in order[:to])
    lines = (line, 0, cell.last_line - cell.line + SNIPPET_LINES)
    return changed_cells(target, replacements, lines, f"where {cell.name} was moved to [{to}]")


_JSON_NOTE = (
    "\nNOTE: No cell source has this text, so the JSON of the notebook was edited; the line "
    "numbers are those of the file."
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
    """Return ``str_replace`` for the sources of cells, or else for the JSON."""

    def compute(file: TextFile, shown: str | None) -> tuple[Edit, str]:
        notebook = Notebook.parse(file.text)
        if notebook is None:
            return as_text(file, shown)
        target = NotebookFile(path, file, notebook, shown)
        replaced = replace_text(target, old, new, cell, every=every, expected=expected)
        if replaced is not None:
            return replaced
        if cell is None and old and file.text.count(old) == 1:
            edit, note = as_text(file, shown)
            return edit, _JSON_NOTE + note
        from oh_jupyter.editor.text.fuzzy import explain_absence

        raise NoReplacementError(
            f"No replacement was performed, old_str `{quoted(old.strip())}` did not appear "
            f"verbatim in {path}. The sources of the cells, as shown by `view`, were searched."
            + explain_absence(notebook.listing(), old, new)
        )

    return compute


def cell_insert(path: Path, line: int, text: str, as_text: Compute) -> Compute:
    """Return ``insert`` for cells, by the line numbers of the view."""

    def compute(file: TextFile, shown: str | None) -> tuple[Edit, str]:
        notebook = Notebook.parse(file.text)
        if notebook is None:
            return as_text(file, shown)
        return insert_lines(NotebookFile(path, file, notebook, shown), line, text)

    return compute


def cell_edit(
    path: Path,
    mode: str,
    cell: CellReference | None,
    source: str | None,
    cell_type: str | None,
    to: int | None,
) -> Compute:
    """Return ``notebook_edit``."""
    if not is_notebook(path):
        raise invalid("path", path, "The command `notebook_edit` supports .ipynb files only.")

    def compute(file: TextFile, shown: str | None) -> tuple[Edit, str]:
        notebook = Notebook.parse(file.text)
        if notebook is None:
            raise invalid(
                "path",
                path,
                "It is not a valid notebook of format 4; it can only be edited as text, with the "
                "commands `view`, `str_replace` and `insert`.",
            )
        target = NotebookFile(path, file, notebook, shown)
        return _change_cell(target, mode, cell, source, cell_type, to)

    return compute
