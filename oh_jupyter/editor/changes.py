"""What edits made of files since a position in the history, and taking all of it back at once."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Literal, NamedTuple

from oh_jupyter.editor.history.commit import FileChange
from oh_jupyter.editor.history.edit_history import EditHistory
from oh_jupyter.editor.history.file_history import FileHistory
from oh_jupyter.editor.history.timeline import Conflict, Timeline
from oh_jupyter.editor.messages import DRY_RUN, plural
from oh_jupyter.editor.notebook.cells import Cell, Notebook
from oh_jupyter.editor.notebook.validation import is_notebook
from oh_jupyter.editor.result import EditorResult
from oh_jupyter.editor.state import real_path
from oh_jupyter.editor.text.line_diff import changed_lines, changed_ranges, unified_diffs
from oh_jupyter.editor.undo import Contents, decoded, read_current, write
from oh_jupyter.errors import FileChangedError, NoHistoryError


@dataclass(frozen=True)
class HistoryPosition:
    """A place in the edit history of a workspace, which `FileEditor.position` returns.

    It is plain data: it can be kept as JSON and used in another process.

    Attributes:
        time: When it was taken, in seconds since the epoch.
        heads: SHA-256 in hexadecimal of each file with a history, as it was after the last step
            that the history knew; None for a file that was not there.
    """

    time: float
    heads: dict[str, str | None] = field(repr=False)


class CellChange(NamedTuple):
    """What became of one cell of a notebook.

    Attributes:
        kind: What was done to it; a cell that was moved may have another source, too.
        id: Its id; None in notebooks older than format 4.5.
        cell_type: code, markdown or raw, as it is now or was last.
        old_index: Its position before, from 0; None for a new cell.
        new_index: Its position now, from 0; None for a deleted cell.
        old_source: Its source before; "" for a new cell.
        new_source: Its source now; "" for a deleted cell.
    """

    kind: Literal["created", "changed", "deleted", "moved"]
    id: str | None
    cell_type: str
    old_index: int | None
    new_index: int | None
    old_source: str
    new_source: str


@dataclass(frozen=True)
class ChangedFile:
    """A file that is not what it was at a position in the history.

    Attributes:
        path: The file, links followed.
        kind: What was done to it, all in all.
        old: Its bytes at the position; None if it was not there, or if that is forgotten.
        new: Its bytes now; None if it is not there.
        moved_from: For ``moved``: where it was before.
        commands: The editor commands since, in their order.
        by_others: Whether somebody else changed it meanwhile, too.
        forgotten: Whether the history no longer knows what it was at the position.
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
        """A change that the history knows nothing of, by what was and what is; None for no file."""
        return cls(
            path, "created" if old is None else "deleted" if new is None else "changed", old, new
        )

    @property
    def is_binary(self) -> bool:
        """Whether it holds, or held, what is no text."""
        return any(b"\0" in (content or b"") for content in (self.old, self.new))

    @cached_property
    def old_text(self) -> str:
        r"""The text at the position, with ``\n`` line ends; "" where nothing was."""
        return decoded(self.old)

    @cached_property
    def new_text(self) -> str:
        r"""The text now, with ``\n`` line ends; "" where nothing is."""
        return decoded(self.new)

    @cached_property
    def _shown(self) -> tuple[str, str]:
        """Both texts as they are compared: of a notebook the headings and sources of its cells."""
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
        """Numbers of lines that were added and that were removed."""
        ranges = list(changed_lines(*self._shown))
        return sum(j2 - j1 for _, _, j1, j2 in ranges), sum(i2 - i1 for i1, i2, _, _ in ranges)

    def diff(self, context: int = 3) -> str:
        """Compare what was with what is; of a notebook the cells without their outputs.

        Args:
            context: Unchanged lines around each change.

        Returns:
            A unified diff; "" if no line differs.
        """
        return self.diffs(context)[0]

    def diffs(self, *contexts: int) -> list[str]:
        """Compare once, and return a unified diff for each number of context lines."""
        return unified_diffs(*self._shown, str(self.path), *contexts)

    @cached_property
    def cells(self) -> list[CellChange]:
        """What became of each cell of a notebook that is not as it was; empty for other files."""
        old, new = self._notebooks
        return list(_cell_changes(old.cells if old else [], new.cells if new else []))


def _listing(notebook: Notebook | None) -> str:
    listing = notebook.listing(executions=False) if notebook is not None else ""
    return f"{listing}\n" if listing else ""


def position(store: EditHistory) -> HistoryPosition:
    """Current position in the history."""
    return HistoryPosition(time.time(), store.heads())


def changes(store: EditHistory, since: HistoryPosition | None) -> list[ChangedFile]:
    """Files that were edited since a position, or ever for None, and are not what they were."""
    found: dict[Path, ChangedFile] = {}
    transactions: dict[Path, set[str]] = {}
    for path in _edited(store, since):
        with store.open(path) as history:
            current, _ = read_current(history)
            past = _Past.of(history, current, since, store.max_steps)
            if past.content == current and past.index is not None:
                continue
            known = history.timeline.steps[past.index or 0 : history.timeline.cursor]
        kind: Literal["created", "changed", "deleted"] = "changed"
        if past.index is not None and (past.content is None or current is None):
            kind = "created" if past.content is None else "deleted"
        transactions[path] = {step.transaction for step in known} - {""}
        found[path] = ChangedFile(
            path,
            kind,
            past.content,
            current,
            commands=tuple(step.command for step in known if not step.external),
            by_others=any(step.external for step in known),
            forgotten=past.index is None,
        )
    _join_moves(found, transactions)
    return [found[path] for path in sorted(found)]


def undo_to(
    store: EditHistory,
    workspace: Path,
    to: HistoryPosition,
    paths: Iterable[Path] | None,
    *,
    skip_conflicts: bool,
    dry_run: bool,
) -> tuple[EditorResult, Contents]:
    """Take back every edit since a position, as one step of all its files."""
    wanted = None if paths is None else set(map(real_path, paths))
    targets = [path for path in _edited(store, to) if wanted is None or path in wanted]
    conflicts: dict[Path, str] = {}
    with store.open_all(targets) as histories:
        planned = list(_planned(histories, to, store.max_steps, conflicts))
        if conflicts and not skip_conflicts:
            raise FileChangedError(
                "Nothing was changed, because these files cannot be taken back to what they were:\n"
                + _listed(conflicts)
                + "Take the others back with `skip_conflicts`, or these by hand."
            )
        if not planned and not conflicts:
            raise NoHistoryError("No edit was made since; nothing was changed.")
        changes = _recorded(planned)
        write(store, changes, workspace, dry_run)
        if dry_run:
            for history in histories:
                history.rollback(history.timeline)
    files = [_result(change, dry_run=dry_run) for change in changes]
    said = f"{plural(len(files), 'file')} taken back to what they were.\n"
    said += "".join(f"- {file.output}\n" for file in files)
    if conflicts:
        said += f"Left as they are:\n{_listed(conflicts)}"
    result = EditorResult(
        DRY_RUN * dry_run + said, path=str(workspace), dry_run=dry_run, files=files
    )
    return result, {} if dry_run else {change.history.path: change.new for change in changes}


def _edited(store: EditHistory, since: HistoryPosition | None) -> list[Path]:
    """Files whose history went on since a position."""
    known = since.heads if since is not None else {}
    return [Path(path) for path, head in store.heads().items() if known.get(path, _UNKNOWN) != head]


_UNKNOWN = "unknown"  # no digest


@dataclass(frozen=True)
class _Past:
    """A file as it was: its content, and the number of steps done then; None if forgotten."""

    content: bytes | None
    index: int | None

    @classmethod
    def of(
        cls,
        history: FileHistory,
        current: bytes | None,
        since: HistoryPosition | None,
        max_steps: int,
    ) -> _Past:
        steps, cursor, blobs = history.timeline.steps, history.timeline.cursor, history.blobs
        head = since.heads.get(str(history.path), _UNKNOWN) if since is not None else _UNKNOWN
        content = current
        try:
            for index in range(cursor, 0, -1):
                if blobs.digests.of(content) == head:
                    return cls(content, index)
                content = steps[index - 1].undo(content, blobs)
            if head == _UNKNOWN:
                dropped = since is not None and len(steps) >= max_steps
                return cls(None, None) if dropped else cls(content, 0)
            if blobs.digests.of(content) == head:
                return cls(content, 0)
            content = current
            for index in range(cursor, len(steps)):
                content = steps[index].redo(content, blobs)
                if blobs.digests.of(content) == head:
                    return cls(content, index + 1)
        except (LookupError, ValueError):
            pass  # the history is damaged
        return cls(None, None)


def _planned(
    histories: Sequence[FileHistory],
    to: HistoryPosition,
    max_steps: int,
    conflicts: dict[Path, str],
) -> Iterator[FileChange]:
    """Files with what they become, still without a step; or why that cannot be."""
    for history in histories:
        current, fingerprint = read_current(history)
        past = _Past.of(history, current, to, max_steps)
        if past.index is None:
            conflicts[history.path] = "the history does not reach back so far"
            continue
        if past.content == current:
            continue
        try:
            content = _rewound(history, current, past.index)
        except Conflict:
            conflicts[history.path] = "somebody else changed the same place since"
        except NoHistoryError:
            conflicts[history.path] = "somebody else deleted it since"
        else:
            if content != current:
                yield FileChange(history, history.timeline, current, content, fingerprint)
        finally:
            # Steps that changed places have contents of their own, which nothing needs now.
            history.blobs.keep_only(history.timeline.references)


def _rewound(history: FileHistory, current: bytes | None, index: int) -> bytes | None:
    """Content without the edits since a step, and with what others changed meanwhile."""
    timeline: Timeline = history.timeline
    content = current
    for _ in range(timeline.cursor, index):
        timeline, content = timeline.redo(content, history.blobs)
    for _ in [step for step in timeline.steps[index : timeline.cursor] if not step.external]:
        last = timeline.last
        if last is None or last.external:
            raise NoHistoryError
        timeline, content = timeline.undo(content, history.blobs)
    return content


def _recorded(planned: Sequence[FileChange]) -> list[FileChange]:
    """The changes with a step in each history; they are undone and redone together."""
    together = tuple(str(change.history.path) for change in planned) if len(planned) > 1 else ()
    transaction = os.urandom(16).hex() if together else ""
    recorded = []
    for change in planned:
        timeline = change.history.record(
            "undo_to",
            change.old,
            change.new,
            several_places=True,
            transaction=transaction,
            files=together,
        )
        recorded.append(replace(change, timeline=timeline))
    return recorded


def _result(change: FileChange, *, dry_run: bool) -> EditorResult:
    path = change.history.path
    verb = "removed" if change.new is None else "restored" if change.old is None else "changed back"
    old, new = (None if data is None else decoded(data) for data in (change.old, change.new))
    return EditorResult.of_change(f"{path}: {verb}", path, old, new, dry_run=dry_run)


def _listed(conflicts: dict[Path, str]) -> str:
    return "".join(f"- {path}: {reason}\n" for path, reason in conflicts.items())


def _join_moves(found: dict[Path, ChangedFile], transactions: dict[Path, set[str]]) -> None:
    """Make one change of a file that is gone and a new one with the same content."""
    for path, change in list(found.items()):
        if change.kind != "created" or not change.new:
            continue
        gone = [
            old
            for old, other in found.items()
            if other.kind == "deleted" and other.old == change.new
        ]
        if gone:  # of several that of the same edit
            source = max(gone, key=lambda old: len(transactions[old] & transactions[path]))
            old = found.pop(source).old
            found[path] = replace(change, kind="moved", old=old, moved_from=source)


def _cell_changes(old: Sequence[Cell], new: Sequence[Cell]) -> Iterator[CellChange]:
    """Compare cells by their ids, or where they have none by what is in them."""
    pairs = _cell_pairs(old, new)
    kept = [index for index in pairs if index is not None]
    in_order = set(_kept_order(kept))
    for cell, index in zip(new, pairs, strict=True):
        if index is None:
            yield CellChange("created", cell.id, cell.type, None, cell.index, "", cell.source)
            continue
        before = old[index]
        moved = index not in in_order
        if moved or (before.source, before.type) != (cell.source, cell.type):
            yield CellChange(
                "moved" if moved else "changed",
                cell.id,
                cell.type,
                index,
                cell.index,
                before.source,
                cell.source,
            )
    for cell in old:
        if cell.index not in kept:
            yield CellChange("deleted", cell.id, cell.type, cell.index, None, cell.source, "")


def _cell_pairs(old: Sequence[Cell], new: Sequence[Cell]) -> list[int | None]:
    """For each new cell the position of the same one before."""
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


def _kept_order(indexes: Sequence[int]) -> Iterator[int]:
    """The positions that still follow each other; the others are those of moved cells."""
    ordered, at = sorted(indexes), 0
    for i1, i2, _, _ in changed_ranges(ordered, list(indexes)):
        yield from ordered[at:i1]
        at = i2
    yield from ordered[at:]
