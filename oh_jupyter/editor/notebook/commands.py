"""Editor commands on notebooks, as functions that compute an edit."""

from __future__ import annotations

import os
from pathlib import Path

from oh_jupyter.editor.messages import invalid, missing, quoted
from oh_jupyter.editor.notebook.cells import Cell, Notebook
from oh_jupyter.editor.notebook.edits import (
    CellReference,
    Document,
    changed_cells,
    check_cell_conflicts,
    find_cell,
    insert_lines,
    replace_text,
    rewrite_sources,
    stored_source,
)
from oh_jupyter.editor.notebook.json_spans import Span, Style, indentation_at
from oh_jupyter.editor.notebook.validation import CELL_TYPES, is_notebook
from oh_jupyter.editor.text.edits import SNIPPET_LINES, Compute, Edit
from oh_jupyter.editor.text.text_file import TextFile, to_newlines
from oh_jupyter.errors import NoReplacementError

MODES = ("replace", "insert", "delete", "move")
"""What ``notebook_edit`` can do with a cell."""


def _change_cell(
    document: Document,
    mode: str,
    reference: CellReference | None,
    source: str | None,
    cell_type: str | None,
    to: int | None,
) -> tuple[Edit, str]:
    """Edit of ``notebook_edit``, and a note."""
    if mode not in MODES:
        raise invalid("edit_mode", mode, f"It should be one of {', '.join(MODES)}.")
    if cell_type is not None and cell_type not in CELL_TYPES:
        raise invalid("cell_type", cell_type, f"It should be one of {', '.join(CELL_TYPES)}.")
    if mode in ("replace", "insert") and source is None:
        raise missing(f"notebook_edit ({mode})", "new_str")
    if mode != "insert" and reference is None:
        raise missing(f"notebook_edit ({mode})", "cell")
    cell = find_cell(document.notebook, reference) if reference is not None else None
    note = check_cell_conflicts(document, cell, by_id=isinstance(reference, str))
    if mode == "insert":
        return _insert(document, cell, source or "", cell_type or "code"), note
    assert cell is not None
    if mode == "delete":
        return _delete(document, cell), note
    if mode == "move":
        return _move(document, cell, to), note
    edit, cleared = _replace(document, cell, to_newlines(source or ""), cell_type)
    return edit, cleared + note


def _replace(
    document: Document, cell: Cell, source: str, cell_type: str | None
) -> tuple[Edit, str]:
    text = document.notebook.text
    height = source.count("\n") + 1
    if cell_type is None or cell_type == cell.type:
        if source == cell.source:
            raise invalid("new_str", source, f"It is the source of {cell.name} already.")
        return rewrite_sources(document, {cell.index: source}, cell.line + 1, height)
    retyped = _retyped(cell.span, cell_type)
    retyped["source"] = stored_source(source, as_list=isinstance(cell.span.value["source"], list))
    new = Style.of(text).dump(retyped, indentation_at(text, cell.span.start))
    changes = [(cell.span.start, cell.span.end, new)]
    return changed_cells(document, changes, (cell.line, 0, height), f"in {cell.name}"), ""


def _retyped(span: Span, cell_type: str) -> dict[str, object]:
    """Copy a cell with the fields that cells of another type have."""
    unused_keys = ("outputs", "execution_count") if cell_type != "code" else ("attachments",)
    document = {key: value for key, value in span.value.items() if key not in unused_keys}
    document["cell_type"] = cell_type
    if cell_type == "code":
        document |= {"execution_count": None, "outputs": []}
        if list(span.value) == sorted(span.value):  # the order in which Jupyter writes
            document = dict(sorted(document.items()))
    return document


def _insert(document: Document, after: Cell | None, source: str, cell_type: str) -> Edit:
    notebook, text = document.notebook, document.notebook.text
    style = Style.of(text)
    added = _new_cell(notebook, to_newlines(source), cell_type)
    cells = notebook.cells
    if not cells:
        span = notebook.top["cells"]
        prefix = indentation_at(text, span.start)
        indent = style.indent
        new = "[" + style.dump(added, "") + "]"
        if indent is not None:
            inner = prefix + indent
            new = f"[\n{inner}{style.dump(added, inner)}\n{prefix}]"
        change = (span.start, span.end, new)
    else:
        near = after if after is not None else cells[0]
        new = style.dump(added, indentation_at(text, near.span.start))
        if len(cells) > 1:
            between = text[cells[0].span.end : cells[1].span.start]
        else:
            lead = text[notebook.top["cells"].start + 1 : cells[0].span.start]
            between = "," + lead if lead or style.indent is not None else style.comma
        if after is not None:
            change = (after.span.end, after.span.end, between + new)
        else:
            change = (cells[0].span.start, cells[0].span.start, new + between)
    line = after.last_line + 1 if after is not None else 1
    place = (line, 0, source.count("\n") + 1)
    index = after.index + 1 if after is not None else 0
    return changed_cells(document, [change], place, f"with the new cell [{index}]")


def _new_cell(notebook: Notebook, source: str, cell_type: str) -> dict[str, object]:
    as_list = not any(isinstance(cell.span.value["source"], str) for cell in notebook.cells)
    document: dict[str, object] = {"cell_type": cell_type}
    if cell_type == "code":
        document["execution_count"] = None
    if notebook.minor >= 5:
        taken = {cell.id for cell in notebook.cells}
        name = os.urandom(4).hex()
        while name in taken:
            name = os.urandom(4).hex()
        document["id"] = name
    document["metadata"] = {}
    if cell_type == "code":
        document["outputs"] = []
    document["source"] = stored_source(source, as_list=as_list)
    return document


def _delete(document: Document, cell: Cell) -> Edit:
    notebook = document.notebook
    cells, index = notebook.cells, cell.index
    if len(cells) == 1:
        whole = notebook.top["cells"]
        change = (whole.start, whole.end, "[]")
    elif index + 1 < len(cells):
        change = (cell.span.start, cells[index + 1].span.start, "")
    else:
        change = (cells[index - 1].span.end, cell.span.end, "")
    place = (cell.line, SNIPPET_LINES - 1, SNIPPET_LINES)
    return changed_cells(document, [change], place, f"from which {cell.name} was deleted")


def _move(document: Document, cell: Cell, to: int | None) -> Edit:
    text, cells = document.notebook.text, document.notebook.cells
    if to is None:
        raise missing("notebook_edit (move)", "to")
    if not isinstance(to, int) or isinstance(to, bool) or not -len(cells) <= to < len(cells):
        raise invalid("to", to, f"It should be a position from 0 to {len(cells) - 1}.")
    to %= len(cells)
    if to == cell.index:
        raise invalid("to", to, f"It is the position of {cell.name} already.")
    order = [other for other in cells if other is not cell]
    order.insert(to, cell)
    first, last = sorted((cell.index, to))
    # What is between the cells stays where it is; only the cells change places.
    changes = [
        (old.span.start, old.span.end, text[new.span.start : new.span.end])
        for old, new in zip(cells[first : last + 1], order[first : last + 1], strict=True)
    ]
    line = 1 + sum(other.last_line - other.line + 1 for other in order[:to])
    place = (line, 0, cell.last_line - cell.line + SNIPPET_LINES)
    return changed_cells(document, changes, place, f"where {cell.name} was moved to [{to}]")


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
    """``str_replace`` in the sources of cells; a text in none of them is replaced in the JSON."""

    def compute(file: TextFile, shown: str | None) -> tuple[Edit, str]:
        notebook = Notebook.parse(file.text)
        if notebook is None:
            return as_text(file, shown)
        document = Document(path, file, notebook, shown)
        found = replace_text(document, old, new, cell, every=every, expected=expected)
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
        return insert_lines(Document(path, file, notebook, shown), line, text)

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
        document = Document(path, file, notebook, shown)
        return _change_cell(document, mode, cell, source, cell_type, to)

    return compute
