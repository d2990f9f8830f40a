"""Text edits of cells: source, outputs and execution count change, every other byte stays."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from oh_jupyter.editor.messages import invalid, no_such_line, plural, quoted, unchanged
from oh_jupyter.editor.notebook.cells import Cell, Notebook
from oh_jupyter.editor.notebook.json_spans import Style, indentation_at, splice
from oh_jupyter.editor.notebook.validation import check_cell
from oh_jupyter.editor.text import conflicts
from oh_jupyter.editor.text.edits import SNIPPET_LINES, Edit, encoded, occurrences
from oh_jupyter.editor.text.line_diff import changed_ranges
from oh_jupyter.editor.text.text_file import TextFile, to_newlines
from oh_jupyter.errors import EditorError, NoReplacementError


@dataclass(frozen=True)
class Document:
    """A notebook, the file that holds it, and the text of that as it was shown."""

    path: Path
    file: TextFile
    notebook: Notebook
    shown: str | None = None


def _check_text_conflicts(document: Document, found: list[tuple[Cell, int]], length: int) -> str:
    """Conflict check of replacements that were found by their text."""
    before, now = _compared(document)
    if before == now:
        return ""
    starts, position = [], 0
    for cell in document.notebook.cells:
        position += len(cell.heading(executions=False)) + 1
        starts.append(position)
        position += len(cell.source) + 1
    begins = [starts[cell.index] + at for cell, at in found]
    places = [(at, at + length) for at in begins]
    return conflicts.check_matches(document.path, before, now, places)


def _check_line_conflicts(document: Document, line: int) -> str:
    """Conflict check of an edit that was given by a line number."""
    before, now = _compared(document)
    return conflicts.check_lines(document.path, before, now, line) if before != now else ""


def check_cell_conflicts(document: Document, cell: Cell | None, *, by_id: bool) -> str:
    """Conflict check of an edit of a whole cell; None is the top of the notebook."""
    path, shown = document.path, document.shown
    before, now = _compared(document)
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


def _compared(document: Document) -> tuple[str, str]:
    """The notebook as it was shown and as it is; the same where it was none before."""
    now = document.notebook.listing(executions=False)
    old = Notebook.parse(document.shown) if document.shown is not None else None
    return (old.listing(executions=False) if old is not None else now), now


CellReference = int | str
"""The id of a cell, or its position counted from 0; negative ones count from the end."""

_Change = tuple[int, int, str]

_MAX_LISTED = 100  # numbers in a message


def find_cell(notebook: Notebook, reference: CellReference) -> Cell:
    """Cell by id or position; a text that is no id may be a position."""
    for cell in notebook.cells:
        if isinstance(reference, str) and cell.id == reference:
            return cell
    try:
        if isinstance(reference, bool):
            raise ValueError
        return notebook.cells[int(reference)]
    except (ValueError, IndexError, TypeError):
        pass
    names = ", ".join(f"[{cell.index}] {cell.id or ''}".rstrip() for cell in notebook.cells[:50])
    more = ", ..." if len(notebook.cells) > 50 else ""
    raise invalid(
        "cell", reference, f"There is no such cell. The cells of the notebook: {names}{more}"
    )


def insert_lines(document: Document, line: int, text: str) -> tuple[Edit, str]:
    """``insert``: after a heading is the top of its cell, and 0 is the top of the first one."""
    notebook = document.notebook
    count = notebook.line_count
    if not notebook.cells:
        raise invalid(
            "insert_line", line, "The notebook has no cells yet; add one with `notebook_edit`."
        )
    if not 0 <= line <= count:
        raise no_such_line(line, count)
    note = _check_line_conflicts(document, line)
    cell = next(cell for cell in notebook.cells if line <= cell.last_line)
    lines = cell.source.split("\n")
    at = max(0, line - cell.line)
    new = to_newlines(text).split("\n")
    # An empty cell has no line that could stay above or below.
    source = "\n".join(new if lines == [""] else [*lines[:at], *new, *lines[at:]])
    first = cell.line + 1 + at
    edit, cleared = rewrite_sources(document, {cell.index: source}, first, len(new))
    return edit, cleared + note


def replace_text(
    document: Document,
    old: str,
    new: str,
    reference: CellReference | None = None,
    *,
    every: bool = False,
    expected: int | None = None,
) -> tuple[Edit, str] | None:
    """``str_replace`` in sources; None if the text is in no source."""
    notebook = document.notebook
    cells = [find_cell(notebook, reference)] if reference is not None else notebook.cells
    wanted = to_newlines(old)
    found = _occurrences(cells, wanted)
    if not found and wanted.strip():
        wanted = wanted.strip()
        found = _occurrences(cells, wanted)
    if not found:
        return None
    _check_count(document.path, wanted, found, every or expected is not None, expected)
    new = to_newlines(new)
    note = _check_text_conflicts(document, found, len(wanted))
    sources: dict[int, str] = {}
    for cell, at in reversed(found):  # from the end, so that the offsets before stay
        source = sources.get(cell.index, cell.source)
        sources[cell.index] = source[:at] + new + source[at + len(wanted) :]
    if all(source == notebook.cells[index].source for index, source in sources.items()):
        raise unchanged(new)
    sources = dict(sorted(sources.items()))
    line, height = _line(*found[0]), new.count("\n") + 1
    edit, cleared = rewrite_sources(document, sources, line, height)
    return edit, cleared + note


def _check_count(
    path: Path, wanted: str, found: list[tuple[Cell, int]], every: bool, expected: int | None
) -> None:
    lines = list(dict.fromkeys(_line(cell, at) for cell, at in found))
    more = ", ...]" if len(lines) > _MAX_LISTED else "]"
    numbers = str(lines[:_MAX_LISTED])[:-1] + more
    if expected is not None and len(found) != expected:
        raise NoReplacementError(
            f"No replacement was performed. Expected {plural(expected, 'occurrence')} of old_str "
            f"`{quoted(wanted)}` in {path}, found {len(found)} in lines {numbers}."
        )
    if len(found) > 1 and not every:
        names = sorted({cell.index for cell, _ in found})
        hint = f" They are in the cells {names[:_MAX_LISTED]}; `cell` chooses one."
        raise NoReplacementError(
            f"No replacement was performed. Multiple occurrences of old_str `{quoted(wanted)}` in "
            f"lines {numbers}. Please ensure it is unique." + (hint if len(names) > 1 else "")
        )


def _occurrences(cells: list[Cell], wanted: str) -> list[tuple[Cell, int]]:
    return [(cell, at) for cell in cells for at in occurrences(cell.source, wanted)]


def _line(cell: Cell, at: int) -> int:
    return cell.line + 1 + cell.source.count("\n", 0, at)


def rewrite_sources(
    document: Document, sources: dict[int, str], line: int, height: int
) -> tuple[Edit, str]:
    """Edit that gives cells other sources; ``height`` lines are new at ``line``."""
    notebook = document.notebook
    changes: list[_Change] = []
    cleared: list[str] = []
    for index, source in sources.items():
        cell = notebook.cells[index]
        changes += _with_source(notebook, cell, source)
        if cell.span.value.get("outputs"):
            cleared.append(cell.name)
    note = f"\nThe outputs of {', '.join(cleared)} were cleared." if cleared else ""
    names = ", ".join(notebook.cells[index].name for index in sources)
    place = (line, SNIPPET_LINES - 1, SNIPPET_LINES + height - 1)
    return changed_cells(document, changes, place, f"in {names}"), note


def _with_source(notebook: Notebook, cell: Cell, source: str) -> list[_Change]:
    """Exchange a source, and clear what came from the old one."""
    text, style = notebook.text, Style.of(notebook.text)
    places = notebook.members_of(cell)
    old = places["source"]
    stored = stored_source(source, as_list=isinstance(old.value, list))
    changes = [(old.start, old.end, style.dump(stored, indentation_at(text, old.start)))]
    if cell.type == "code":
        for key, value, cleared in (("outputs", [], "[]"), ("execution_count", None, "null")):
            span = places.get(key)
            if span is not None and span.value != value:
                changes.append((span.start, span.end, cleared))
    return changes


def stored_source(source: str, *, as_list: bool) -> str | list[str]:
    """JSON value of a source, as Jupyter stores it."""
    return source.splitlines(keepends=True) if as_list else source


def changed_cells(
    document: Document, changes: list[_Change], place: tuple[int, int, int], what: str
) -> Edit:
    """Edit of several spans, if it leaves a valid notebook."""
    path, file, notebook = document.path, document.file, document.notebook
    start, end, new = splice(notebook.text, changes)
    data = encoded(file, start, end, new, "new_str")
    result = Notebook.parse(TextFile(data, file.encoding).text)
    if result is None:
        raise EditorError(f"The edit would leave {path} no valid notebook. Nothing was changed.")
    removed, added = _difference(notebook, result), _difference(result, notebook)
    for cell in added:
        check_cell(path, [other.span.value for other in removed], cell.span.value, result.minor)
    line, before, after = place
    first = max(1, line - before)
    shown = result.listing().split("\n")[first - 1 : line + after]
    return Edit(
        data,
        start,
        line,
        before,
        after,
        excerpt="\n".join(shown),
        caption=f"a snippet of {path}, {what}",
    )


def _difference(some: Notebook, others: Notebook) -> list[Cell]:
    """Find the cells that are not, just so, among the others."""
    texts = {others.text[cell.span.start : cell.span.end] for cell in others.cells}
    return [c for c in some.cells if some.text[c.span.start : c.span.end] not in texts]


def rewrite_listing(document: Document, listing: str) -> tuple[Edit, str] | None:
    """Edit that gives cells the sources of a changed listing, and a note; None if none changed."""
    notebook = document.notebook
    old, new = notebook.listing().split("\n"), listing.split("\n")
    sources = _sources(document.path, notebook, new)
    changed = {
        cell.index: source
        for cell, source in zip(notebook.cells, sources, strict=True)
        if source != cell.source
    }
    if not changed:
        return None
    _, _, first, last = changed_ranges(old, new)[0]
    return rewrite_sources(document, changed, first + 1, last - first)


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
