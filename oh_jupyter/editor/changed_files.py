"""Files that edits changed since a position in the history, with changes of notebook cells."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Literal, NamedTuple

from oh_jupyter.editor.history.edit import Edit
from oh_jupyter.editor.history.edit_history import EditHistory
from oh_jupyter.editor.history.file_history import FileHistory
from oh_jupyter.editor.notebook.cells import Cell, Notebook
from oh_jupyter.editor.notebook.validation import is_notebook
from oh_jupyter.editor.text.line_diff import changed_lines, changed_ranges, unified_diffs
from oh_jupyter.editor.undo import decoded, read_current
from oh_jupyter.runs_when import change_runs_when

_UNKNOWN = "unknown"  # not a digest
_FORGOTTEN = b"\0forgotten"  # compared by identity


@dataclass(frozen=True)
class HistoryPosition:
    """A position in the edit history of a workspace, returned by `FileEditor.position`.

    It is plain data: it can be stored as JSON and used in another process.

    Attributes:
        time: When it was taken, in seconds since the epoch.
        heads: Hexadecimal SHA-256 of each file with a history, after the last step known to
            the history; None for a file that did not exist.
    """

    time: float
    heads: dict[str, str | None] = field(repr=False)


class CellChange(NamedTuple):
    """Change of one cell of a notebook.

    Attributes:
        kind: The kind of change; the source of a moved cell may differ, too.
        id: The cell's id; None in notebooks older than format 4.5.
        cell_type: Current (or last) type: code, markdown or raw.
        old_index: Previous position, counted from 0; None for a new cell.
        new_index: Current position, counted from 0; None for a deleted cell.
        old_source: Previous source; "" for a new cell.
        new_source: Current source; "" for a deleted cell.
        old_outputs: Previous outputs as text.
        new_outputs: Current outputs as text.
        old_metadata: Previous metadata as JSON; "" without metadata.
        new_metadata: Current metadata as JSON; "" without metadata.
    """

    kind: Literal["created", "changed", "deleted", "moved"]
    id: str | None
    cell_type: str
    old_index: int | None
    new_index: int | None
    old_source: str
    new_source: str
    old_outputs: str = ""
    new_outputs: str = ""
    old_metadata: str = ""
    new_metadata: str = ""


@dataclass(frozen=True)
class ChangedFile:
    """A file that differs from its state at a position in the history.

    Attributes:
        path: The real path of the file.
        kind: The overall change.
        old: The bytes at the position; None if the file did not exist, or if they are forgotten.
        new: The current bytes; None if the file does not exist.
        moved_from: For ``moved``: the previous path.
        commands: The editor commands since, in order.
        by_others: Whether somebody else changed the file, too.
        forgotten: Whether the history no longer knows the state at the position.
    """

    path: Path
    kind: Literal["created", "changed", "deleted", "moved"]
    old: bytes | None = field(repr=False)
    new: bytes | None = field(repr=False)
    moved_from: Path | None = None
    commands: tuple[str, ...] = ()
    by_others: bool = False
    forgotten: bool = False

    @classmethod
    def between(cls, path: Path, old: bytes | None, new: bytes | None) -> ChangedFile:
        """Return the change between two contents, without a history; None stands for no file."""
        kind: Literal["created", "changed", "deleted"] = "deleted" if new is None else "changed"
        return cls(path, "created" if old is None else kind, old, new)

    @property
    def is_binary(self) -> bool:
        """Whether the old or the new content is not text."""
        return any(b"\0" in (content or b"") for content in (self.old, self.new))

    @cached_property
    def old_text(self) -> str:
        r"""The text at the position, with ``\n`` line ends; "" without a file."""
        return decoded(self.old)

    @cached_property
    def new_text(self) -> str:
        r"""The current text, with ``\n`` line ends; "" without a file."""
        return decoded(self.new)

    @cached_property
    def _compared(self) -> tuple[str, str]:
        """Both texts as they are compared: for a notebook the headings and sources of its cells."""
        old, new = self._notebooks
        if old is None and new is None:
            return self.old_text, self.new_text
        return _listing(old), _listing(new)

    @cached_property
    def _notebooks(self) -> tuple[Notebook | None, Notebook | None]:
        if not is_notebook(self.path):
            return None, None
        old, new = Notebook.parse(self.old_text), Notebook.parse(self.new_text)
        is_broken = (self.old and old is None) or (self.new and new is None)
        return (None, None) if is_broken else (old, new)

    @cached_property
    def counts(self) -> tuple[int, int]:
        """Numbers of added and of removed lines."""
        ranges = changed_lines(*self._compared)
        return sum(j2 - j1 for _, _, j1, j2 in ranges), sum(i2 - i1 for i1, i2, _, _ in ranges)

    def runs_when(self, workspace: str) -> str | None:
        """Return what a person does that runs the changed part, or None.

        Args:
            workspace: Absolute path of the workspace.
        """
        # Under its new name, all of a moved file is new.
        old = None if self.moved_from is not None else self.old
        return change_runs_when(str(self.path), os.path.realpath(workspace), old, self.new)

    def diff(self, context: int = 3) -> str:
        """Compare the old with the new text; for a notebook the cells without their outputs.

        Args:
            context: Unchanged lines around each change.

        Returns:
            A unified diff; "" if no line differs.
        """
        return self.diffs(context)[0]

    def diffs(self, *contexts: int) -> list[str]:
        """Compare once, and return a unified diff for each number of context lines."""
        return unified_diffs(*self._compared, str(self.path), *contexts)

    @cached_property
    def cells(self) -> list[CellChange]:
        """Changes of the cells of a notebook; empty for other files."""
        old, new = self._notebooks
        return list(_cell_changes(old.cells if old else [], new.cells if new else []))


def _listing(notebook: Notebook | None) -> str:
    listing = notebook.listing(executions=False) if notebook is not None else ""
    return f"{listing}\n" if listing else ""


def changes(store: EditHistory, since: HistoryPosition | None) -> list[ChangedFile]:
    """List the files that were edited since a position (None: ever) and differ from it."""
    changed: dict[Path, ChangedFile] = {}
    transactions: dict[Path, set[str]] = {}
    heads = since.heads if since is not None else {}
    for name, head in store.heads().items():
        old_head = heads.get(name, _UNKNOWN)
        if old_head == head:
            continue
        path = Path(name)
        with store.open(path) as history:
            if history.path != path:  # a link has replaced it, which no edit does
                continue
            current, _ = read_current(history)
            edits = history.changes()
            since_then = _since(edits, old_head)
            if old_head == _UNKNOWN and (since is None or history.is_complete):
                since_then = edits
            old = _before(history, since_then, current)
        if since_then is None or old is _FORGOTTEN:
            change = ChangedFile(path, "changed", None, current, forgotten=True)
        elif old == current:
            continue
        else:
            change = ChangedFile.between(path, old, current)
        edits = _standing(edits, since_then or [])
        transactions[path] = {edit.together for edit in edits} - {""}
        changed[path] = replace(
            change,
            commands=tuple(edit.command for edit in edits if edit.kind == "edit"),
            by_others=any(edit.kind == "outside" for edit in edits),
        )
    _join_moves(changed, transactions)
    return [changed[path] for path in sorted(changed)]


def _since(edits: Sequence[Edit], head: str | None) -> Sequence[Edit] | None:
    """Return the changes after the last one that led to a digest; None if none did."""
    for index in range(len(edits), 0, -1):
        if edits[index - 1].after == head:
            return edits[index:]
    return edits if edits and edits[0].before == head else None


def _before(
    history: FileHistory, edits: Sequence[Edit] | None, current: bytes | None
) -> bytes | None:
    """Return the content before some changes, the current one without any."""
    if not edits:
        return current if edits is not None else _FORGOTTEN
    try:
        return history.content_after(edits[0].number - 1)
    except LookupError:  # the history is damaged
        return _FORGOTTEN


def _standing(edits: Sequence[Edit], since: Sequence[Edit]) -> list[Edit]:
    """Return the edits and others' changes since then that still count."""
    redone = {edit.target for edit in since if edit.kind == "redo"}
    numbers = {edit.number for edit in since} | redone
    return [
        edit
        for edit in edits
        if edit.number in numbers and edit.kind in ("edit", "outside") and edit.state == "done"
    ]


def _join_moves(changed: dict[Path, ChangedFile], transactions: dict[Path, set[str]]) -> None:
    """Join a deleted file and a new one with the same content into one change."""
    for path, change in list(changed.items()):
        if change.kind != "created" or not change.new:
            continue
        deleted = [
            old
            for old, other in changed.items()
            if other.kind == "deleted" and other.old == change.new
        ]
        if deleted:  # prefer the one deleted by the same edit
            source = max(deleted, key=lambda old: len(transactions[old] & transactions[path]))
            old = changed.pop(source).old
            changed[path] = replace(change, kind="moved", old=old, moved_from=source)


def _cell_changes(old: Sequence[Cell], new: Sequence[Cell]) -> Iterator[CellChange]:
    """Compare cells by id, or by content where they have no ids."""
    pairs = _cell_pairs(old, new)
    matched = [index for index in pairs if index is not None]
    in_order = set(_in_order(matched))
    for cell, index in zip(new, pairs, strict=True):
        if index is None:
            yield _cell_change("created", None, cell)
            continue
        before = old[index]
        if index not in in_order:
            yield _cell_change("moved", before, cell)
        elif _compared_parts(before) != _compared_parts(cell):
            yield _cell_change("changed", before, cell)
    for cell in old:
        if cell.index not in matched:
            yield _cell_change("deleted", cell, None)


def _compared_parts(cell: Cell) -> tuple[str, ...]:
    return cell.type, cell.source, cell.outputs, cell.metadata


def _cell_change(
    kind: Literal["created", "changed", "deleted", "moved"], old: Cell | None, new: Cell | None
) -> CellChange:
    cell = new or old
    assert cell is not None
    return CellChange(
        kind,
        cell.id,
        cell.type,
        old.index if old else None,
        new.index if new else None,
        old.source if old else "",
        new.source if new else "",
        old.outputs if old else "",
        new.outputs if new else "",
        old.metadata if old else "",
        new.metadata if new else "",
    )


def _cell_pairs(old: Sequence[Cell], new: Sequence[Cell]) -> list[int | None]:
    """Return the previous position of each new cell."""
    if all(cell.id is not None for cell in (*old, *new)):
        known = {cell.id: cell.index for cell in old}
        return [known.get(cell.id) for cell in new]
    pairs: list[int | None] = []
    position = 0
    before, after = ([(cell.type, cell.source) for cell in cells] for cells in (old, new))
    for i1, i2, j1, j2 in changed_ranges(before, after):
        pairs += range(position, i1)
        pairs += [i1 + n if i1 + n < i2 else None for n in range(j2 - j1)]
        position = i2
    return [*pairs, *range(position, len(old))]


def _in_order(indexes: Sequence[int]) -> Iterator[int]:
    """Yield the positions that are still in order; the others are those of moved cells."""
    ordered, at = sorted(indexes), 0
    for i1, i2, _, _ in changed_ranges(ordered, list(indexes)):
        yield from ordered[at:i1]
        at = i2
    yield from ordered[at:]
