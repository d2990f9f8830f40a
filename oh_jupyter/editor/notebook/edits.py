"""Text edits of cells: source, outputs and execution count change, other bytes do not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from oh_jupyter.editor.messages import invalid, no_such_line, unchanged
from oh_jupyter.editor.notebook.cells import Cell, Notebook
from oh_jupyter.editor.notebook.validation import Style, check_cell, indentation_at, members, splice
from oh_jupyter.editor.text import conflicts
from oh_jupyter.editor.text.edits import (
    SNIPPET_LINES,
    Edit,
    encoded,
    not_unique,
    occurrences,
    unexpected_count,
)
from oh_jupyter.editor.text.line_diff import changed_ranges
from oh_jupyter.editor.text.text_file import TextFile, to_newlines
from oh_jupyter.errors import EditorError


@dataclass(frozen=True)
class NotebookFile:
    """A notebook, its file, and the text of the file when it was last shown."""

    path: Path
    file: TextFile
    notebook: Notebook
    shown: str | None = None

    @property
    def listings(self) -> tuple[str, str]:
        """Listings of the notebook as last shown and now; equal if it was not shown."""
        now = self.notebook.listing(executions=False)
        old = Notebook.parse(self.shown) if self.shown is not None else None
        return (old.listing(executions=False) if old is not None else now), now


def _check_text_conflicts(target: NotebookFile, matches: list[tuple[Cell, int]], size: int) -> str:
    before, now = target.listings
    if before == now:
        return ""
    starts, position = [], 0
    for cell in target.notebook.cells:
        position += len(cell.heading(executions=False)) + 1
        starts.append(position)
        position += len(cell.source) + 1
    offsets = [starts[cell.index] + at for cell, at in matches]
    ranges = [(at, at + size) for at in offsets]
    return conflicts.check_matches(target.path, before, now, ranges)


def check_cell_conflicts(target: NotebookFile, cell: Cell | None, *, by_id: bool) -> str:
    """Check an edit of a whole cell for conflicts; None is the top of the notebook."""
    path, shown = target.path, target.shown
    before, now = target.listings
    if before == now:
        return ""
    old = Notebook.parse(shown) if shown is not None else None
    if cell is not None and old is not None and not _is_unchanged(old, cell, by_id=by_id):
        raise conflicts.changed_error(path, before, now)
    return conflicts.check_lines(path, before, now, -1)  # all changes are elsewhere


def _is_unchanged(old: Notebook, cell: Cell, *, by_id: bool) -> bool:
    if by_id and cell.id is not None:
        candidates = [other for other in old.cells if other.id == cell.id]
        if not candidates:
            return True  # the caller knows the cell from elsewhere
    else:
        candidates = old.cells[cell.index : cell.index + 1]
    return any((c.id, c.type, c.source) == (cell.id, cell.type, cell.source) for c in candidates)


CellReference = int | str
"""The id of a cell, or its position counted from 0; negative ones count from the end."""

_Replacement = tuple[int, int, str]

_MAX_LISTED = 50  # cells in a message


def find_cell(notebook: Notebook, reference: CellReference) -> Cell:
    """Find a cell by id or position; a string that is not an id may be a position."""
    for cell in notebook.cells:
        if isinstance(reference, str) and cell.id == reference:
            return cell
    try:
        if isinstance(reference, bool):
            raise ValueError
        return notebook.cells[int(reference)]
    except (ValueError, IndexError, TypeError):
        pass
    cells = notebook.cells[:_MAX_LISTED]
    names = ", ".join(f"[{cell.index}] {cell.id or ''}".rstrip() for cell in cells)
    more = ", ..." if len(notebook.cells) > _MAX_LISTED else ""
    raise invalid(
        "cell", reference, f"There is no such cell. The cells of the notebook: {names}{more}"
    )


def insert_lines(target: NotebookFile, line: int, text: str) -> tuple[Edit, str]:
    """Compute ``insert``: after a heading is the top of its cell, 0 is the top of the first one."""
    notebook = target.notebook
    count = notebook.line_count
    if not notebook.cells:
        raise invalid(
            "insert_line", line, "The notebook has no cells yet; add one with `notebook_edit`."
        )
    if not 0 <= line <= count:
        raise no_such_line(line, count)
    before, now = target.listings
    note = conflicts.check_lines(target.path, before, now, line) if before != now else ""
    cell = next(cell for cell in notebook.cells if line <= cell.last_line)
    lines = cell.source.split("\n")
    at = max(0, line - cell.line)
    new = to_newlines(text).split("\n")
    # An empty cell has no line to keep above or below.
    source = "\n".join(new if lines == [""] else [*lines[:at], *new, *lines[at:]])
    first = cell.line + 1 + at
    edit, cleared = rewrite_sources(target, {cell.index: source}, first, len(new))
    return edit, cleared + note


def replace_text(
    target: NotebookFile,
    old: str,
    new: str,
    reference: CellReference | None = None,
    *,
    every: bool = False,
    expected: int | None = None,
) -> tuple[Edit, str] | None:
    """Compute ``str_replace`` in sources; None if no source has the text."""
    notebook = target.notebook
    cells = [find_cell(notebook, reference)] if reference is not None else notebook.cells
    old, new = to_newlines(old), to_newlines(new)
    matches = _occurrences(cells, old)
    if not matches and old.strip():
        old = old.strip()
        matches = _occurrences(cells, old)
    if not matches:
        return None
    lines = [cell.line + 1 + cell.source.count("\n", 0, at) for cell, at in matches]
    if expected is not None and len(matches) != expected:
        raise unexpected_count(old, target.path, expected, len(matches), lines)
    if len(matches) > 1 and not every and expected is None:
        indexes = sorted({cell.index for cell, _ in matches})
        hint = f" They are in the cells {indexes[:_MAX_LISTED]}; `cell` chooses one."
        raise not_unique(old, lines, hint if len(indexes) > 1 else "")
    note = _check_text_conflicts(target, matches, len(old))
    sources: dict[int, str] = {}
    for cell, at in reversed(matches):  # from the end, so that earlier offsets stay valid
        source = sources.get(cell.index, cell.source)
        sources[cell.index] = source[:at] + new + source[at + len(old) :]
    if all(source == notebook.cells[index].source for index, source in sources.items()):
        raise unchanged(new)
    sources = dict(sorted(sources.items()))
    edit, cleared = rewrite_sources(target, sources, lines[0], new.count("\n") + 1)
    return edit, cleared + note


def _occurrences(cells: Sequence[Cell], text: str) -> list[tuple[Cell, int]]:
    return [(cell, at) for cell in cells for at in occurrences(cell.source, text)]


def rewrite_sources(
    target: NotebookFile, sources: dict[int, str], line: int, height: int
) -> tuple[Edit, str]:
    """Return the edit that changes sources, and a note; ``height`` lines are new at ``line``."""
    notebook = target.notebook
    replacements: list[_Replacement] = []
    cleared: list[str] = []
    for index, source in sources.items():
        cell = notebook.cells[index]
        replacements += _with_source(notebook, cell, source)
        if cell.span.value.get("outputs"):
            cleared.append(cell.name)
    note = f"\nThe outputs of {', '.join(cleared)} were cleared." if cleared else ""
    names = ", ".join(notebook.cells[index].name for index in sources)
    lines = (line, SNIPPET_LINES - 1, SNIPPET_LINES + height - 1)
    return changed_cells(target, replacements, lines, f"in {names}"), note


def _with_source(notebook: Notebook, cell: Cell, source: str) -> list[_Replacement]:
    """Replace the source of a cell, and clear its outputs and execution count."""
    text, style = notebook.text, Style.of(notebook.text)
    spans = members(text, cell.span.start)
    old = spans["source"]
    stored = stored_source(source, as_list=isinstance(old.value, list))
    replacements = [(old.start, old.end, style.dump(stored, indentation_at(text, old.start)))]
    if cell.type == "code":
        for key, value, cleared in (("outputs", [], "[]"), ("execution_count", None, "null")):
            span = spans.get(key)
            if span is not None and span.value != value:
                replacements.append((span.start, span.end, cleared))
    return replacements


def stored_source(source: str, *, as_list: bool) -> str | list[str]:
    """Return the JSON value of a source, as Jupyter stores it."""
    return source.splitlines(keepends=True) if as_list else source


def changed_cells(
    target: NotebookFile,
    replacements: list[_Replacement],
    lines: tuple[int, int, int],
    description: str,
) -> Edit:
    """Return the edit that replaces spans, if it leaves a valid notebook.

    ``lines`` are the first changed line, and the numbers of lines to show before and after it.
    """
    path, file, notebook = target.path, target.file, target.notebook
    start, end, new = splice(notebook.text, replacements)
    data = encoded(file, start, end, new, "new_str")
    result = Notebook.parse(TextFile(data, file.encoding).text)
    if result is None:
        raise EditorError(f"The edit would make {path} an invalid notebook. Nothing was changed.")
    removed, added = _difference(notebook, result), _difference(result, notebook)
    for cell in added:
        check_cell(path, [other.span.value for other in removed], cell.span.value, result.minor)
    line, before, after = lines
    shown = result.listing().split("\n")[max(1, line - before) - 1 : line + after]
    caption = f"a snippet of {path}, {description}"
    return Edit(data, start, line, before, after, excerpt="\n".join(shown), caption=caption)


def _difference(some: Notebook, others: Notebook) -> list[Cell]:
    """Return the cells whose text no other cell has."""
    texts = {others.text[cell.span.start : cell.span.end] for cell in others.cells}
    return [c for c in some.cells if some.text[c.span.start : c.span.end] not in texts]


def rewrite_listing(target: NotebookFile, listing: str) -> tuple[Edit, str] | None:
    """Return the edit for a changed listing, and a note; None if no source changed."""
    notebook = target.notebook
    old, new = notebook.listing().split("\n"), listing.split("\n")
    sources = _sources(target.path, notebook, new)
    changed = {
        cell.index: source
        for cell, source in zip(notebook.cells, sources, strict=True)
        if source != cell.source
    }
    if not changed:
        return None
    _, _, first, last = changed_ranges(old, new)[0]
    return rewrite_sources(target, changed, first + 1, last - first)


def _sources(path: Path, notebook: Notebook, lines: list[str]) -> list[str]:
    """Split a listing at the headings, which must not have changed."""
    headings = [cell.heading() for cell in notebook.cells]
    starts = [number for number, line in enumerate(lines) if line.startswith("# %% [")]
    above = lines[: starts[0]] if starts else lines
    if [lines[number] for number in starts] != headings or any(above):
        raise EditorError(
            f"The edit would change the list of cells of {path}: lines that start with `# %% [` "
            "are cell headings and must not change. Nothing was changed. Use `notebook_edit` to "
            "insert, delete, move and retype cells."
        )
    ends = [*starts, len(lines)][1:]
    return ["\n".join(lines[start + 1 : end]) for start, end in zip(starts, ends, strict=True)]
