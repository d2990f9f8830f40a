"""The edits of one history, as rows of a ledger."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from oh_jupyter.editor.files.atomic_write import Attributes, ConcurrentWriteError
from oh_jupyter.editor.history.edit import Delta, Edit, decode_delta, digest_of, encode_delta
from oh_jupyter.errors import HistoryAccessError, LedgerError
from oh_jupyter.state.contents import Stored, contents_of
from oh_jupyter.state.shared import open_ledger

if TYPE_CHECKING:
    import sqlite3

_COLUMNS = (
    "number, kind, command, time, before, after, state, target, together, files, attributes, tag, "
    "mode, id"
)
_HAS_CONTENT = "SELECT 1 FROM edited_contents WHERE workspace = ? AND digest = ?"
_UNUSED = (
    "FROM edited_contents WHERE workspace = ? AND digest = ? "
    "AND NOT EXISTS (SELECT 1 FROM edited_files WHERE digest = edited_contents.digest) "
    "AND NOT EXISTS (SELECT 1 FROM edits WHERE is_whole AND before = edited_contents.digest) "
    "AND NOT EXISTS (SELECT 1 FROM edits WHERE is_whole AND after = edited_contents.digest)"
)
_ROW_BYTES = 400  # of an edit besides its delta
_UNDONE = "CASE kind WHEN 'outside' THEN 'dropped' ELSE 'undone' END"


class Base(NamedTuple):
    """The stored content of a file, after the change with a number."""

    number: int
    digest: str


class PlannedRow(NamedTuple):
    """An edit to add.

    Attributes:
        path: The file.
        edit: The edit.
        delta: Its delta; None for one that rewrites the file.
        contents: The contents to store by their digests.
        is_base: Whether the content before becomes the base.
    """

    path: Path
    edit: Edit
    delta: Delta | None
    contents: Mapping[str, bytes]
    is_base: bool = False


class EditTable:
    """The edits of the files of one history.

    Args:
        folder: The folder of the ledger; None for the user's.
        name: The history's name in it.
    """

    def __init__(self, folder: Path | None, name: str) -> None:
        self.ledger = open_ledger(folder)
        assert self.ledger.path is not None
        self.folder = self.ledger.path.parent
        self.name = name
        self._workspace = os.fsencode(name)
        self.contents = contents_of(self.ledger)

    @contextmanager
    def access(self) -> Iterator[None]:
        """Turn a system error in the block into a HistoryAccessError."""
        try:
            yield
        except HistoryAccessError:
            raise
        except OSError as error:
            reason = error.reason if isinstance(error, LedgerError) else error
            raise HistoryAccessError(
                f"The edit history in {self.folder} cannot be read or written ({reason}); nothing "
                "was changed. Fix this, or set `history_dir` to another folder, and try again."
            ) from error

    @contextmanager
    def transaction(self, *, is_flushed: bool = False) -> Iterator[sqlite3.Connection]:
        """Run the block as one transaction."""
        with self.access(), self.ledger.transaction(is_flushed=is_flushed) as connection:
            yield connection

    def rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        """Return the rows of a query."""
        with self.access():
            return self.ledger.rows(query, values)

    def file(self, path: Path) -> tuple[int, Base | None]:
        """Return the number of a file, 0 for one without a history, and its base."""
        rows = self.rows(
            "SELECT id, base, digest FROM edited_files WHERE workspace = ? AND path = ?",
            *(self._workspace, os.fsencode(path)),
        )
        if not rows:
            return 0, None
        id, number, digest = rows[0]
        return id, None if number is None else Base(number, digest)

    def edits(self, file: int, condition: str = "", *values: Any, order: str = "") -> list[Edit]:
        """Return edits of a file, the oldest first, without their deltas."""
        rows = self.rows(
            f"SELECT {_COLUMNS} FROM edits WHERE file = ? {condition} ORDER BY {order or 'number'}",
            *(file, *values),
        )
        return [_edit(row) for row in rows]

    def edit(self, file: int, condition: str = "", *values: Any, last: bool = True) -> Edit | None:
        """Return the last edit of a file with a condition, or the first."""
        order = "number DESC LIMIT 1" if last else "number LIMIT 1"
        return next(iter(self.edits(file, condition, *values, order=order)), None)

    def delta(self, file: int, number: int) -> Delta | None:
        """Return the delta of an edit, None for one that rewrites the file.

        Raises:
            LookupError: It is lost or damaged.
        """
        rows = self.rows(
            "SELECT is_whole, delta, delta_file FROM edits WHERE file = ? AND number = ?",
            *(file, number),
        )
        if not rows:
            raise LookupError(f"edit {number} is lost")
        is_whole, *stored = rows[0]
        try:
            return None if is_whole else decode_delta(self._content(*stored))
        except (ValueError, TypeError) as error:
            raise LookupError(str(error)) from error

    def content(self, digest: str) -> bytes:
        """Return a stored content; raise LookupError if it is lost or damaged."""
        rows = self.rows(
            "SELECT data, file FROM edited_contents WHERE workspace = ? AND digest = ?",
            *(self._workspace, digest),
        )
        content = self._content(*rows[0]) if rows else b""
        if digest_of(content) != digest:
            raise LookupError(f"content {digest} is lost")
        return content

    def _content(self, data: bytes | None, name: str | None) -> bytes:
        with self.access():
            return self.contents.get(data, name)

    def is_pruned(self, file: int) -> bool:
        """Return whether the first edits of a file are forgotten."""
        return bool(self.rows("SELECT 1 FROM edited_files WHERE id = ? AND is_pruned", file))

    def add(self, rows: Sequence[PlannedRow], *, is_flushed: bool = False) -> int:
        """Add edits in one transaction; return their size in bytes.

        Raises:
            ConcurrentWriteError: Another process has just removed a content that they need.
        """
        needed = {digest: content for row in rows for digest, content in row.contents.items()}
        missing = {digest: content for digest, content in needed.items() if not self._has(digest)}
        put = partial(self.contents.put, is_flushed=is_flushed)
        with self.access():
            deltas = [put(b"" if row.delta is None else encode_delta(row.delta)) for row in rows]
            contents = {digest: put(content) for digest, content in missing.items()}
        names = [stored.name for stored in (*deltas, *contents.values())]
        unused: list[str | None] = []
        try:
            with self.transaction(is_flushed=is_flushed) as connection:
                for digest, stored in contents.items():
                    unused += self._add_content(connection, digest, stored, len(missing[digest]))
                for digest in needed.keys() - missing.keys():
                    if not connection.execute(_HAS_CONTENT, (self._workspace, digest)).fetchone():
                        raise ConcurrentWriteError
                size = 0
                for row, delta in zip(rows, deltas, strict=True):
                    file, base = self._add_file(connection, row.path)
                    size += _insert(connection, file, row, delta)
                    if row.is_base:
                        unused += self._delete_unused(connection, [base])
        except BaseException:
            self.contents.discard(names)
            raise
        self.contents.discard(unused)
        return size + sum(map(len, missing.values()))

    def _has(self, digest: str) -> bool:
        return bool(self.rows(_HAS_CONTENT, self._workspace, digest))

    def _add_file(self, connection: sqlite3.Connection, path: Path) -> tuple[int, str | None]:
        """Add a file if it is new; return its number, and the digest of its base."""
        values = self._workspace, os.fsencode(path)
        connection.execute(
            "INSERT OR IGNORE INTO edited_files(workspace, path) VALUES (?, ?)", values
        )
        query = "SELECT id, digest FROM edited_files WHERE workspace = ? AND path = ?"
        id, digest = connection.execute(query, values).fetchone()
        return id, digest

    def _add_content(
        self, connection: sqlite3.Connection, digest: str, stored: Stored, size: int
    ) -> list[str | None]:
        """Add a content; return the name of its file if it is there already."""
        cursor = connection.execute(
            "INSERT OR IGNORE INTO edited_contents VALUES (?, ?, ?, ?, ?)",
            (self._workspace, digest, *stored, size),
        )
        return [] if cursor.rowcount else [stored.name]

    def _delete_unused(
        self, connection: sqlite3.Connection, digests: Iterable[str | None]
    ) -> list[str | None]:
        """Delete those contents that nothing needs any more; return the names of large ones."""
        names: list[str | None] = []
        for digest in {*digests} - {None}:
            values = self._workspace, digest
            names += [name for (name,) in connection.execute(f"SELECT file {_UNUSED}", values)]
            connection.execute(f"DELETE {_UNUSED}", values)
        return names

    def _delete_edits(
        self, connection: sqlite3.Connection, condition: str, *values: int
    ) -> list[str | None]:
        """Delete edits of a file; return the names of large deltas and contents."""
        where = f"FROM edits WHERE file = ? AND {condition}"
        query = f"SELECT delta_file, is_whole, before, after {where}"
        rows = connection.execute(query, values).fetchall()
        connection.execute(f"DELETE {where}", values)
        whole = [digest for _, is_whole, *digests in rows if is_whole for digest in digests]
        return [*(row[0] for row in rows), *self._delete_unused(connection, whole)]

    def confirm(self, edits: Iterable[tuple[int, Edit]]) -> None:
        """Record that planned edits of files are done, and what becomes of others by that."""
        with self.transaction() as connection:
            for file, edit in edits:
                _confirm(connection, file, edit)

    def revert(self, edits: Iterable[tuple[int, Edit]]) -> None:
        """Record that planned edits are being reverted, in case that is interrupted."""
        with self.transaction() as connection:
            connection.executemany(
                "UPDATE edits SET state = 'reverting' WHERE file = ? AND number = ?",
                [(file, edit.number) for file, edit in edits],
            )

    def remove(self, edits: Iterable[tuple[int, Edit]]) -> None:
        """Remove planned edits that did not happen."""
        with self.transaction() as connection:
            names = [
                name
                for file, edit in edits
                for name in self._delete_edits(connection, "number = ?", file, edit.number)
            ]
        self.contents.discard(names)

    def drop_undone(self, file: int) -> None:
        """Record that the undone edits of a file can no longer be redone."""
        with self.transaction() as connection:
            _drop_undone(connection, file)

    def forget(self, file: int) -> None:
        """Remove all edits of a file."""
        with self.transaction() as connection:
            base = _base_digest(connection, file)
            names = self._delete_edits(connection, "TRUE", file)
            connection.execute("DELETE FROM edited_files WHERE id = ?", (file,))
            names += self._delete_unused(connection, [base])
        self.contents.discard(names)

    def forget_until(self, file: int, number: int, base: tuple[str, bytes] | None) -> None:
        """Remove the first edits of a file.

        Args:
            file: Number of the file.
            number: Number of the last edit to remove.
            base: Digest and content after that one, if the stored base is older.
        """
        stored = None if base is None else self.contents.put(base[1])
        with self.transaction() as connection:
            before = _base_digest(connection, file)
            names = self._delete_edits(connection, "number <= ?", file, number)
            connection.execute(
                "UPDATE edited_files SET is_pruned = 1, "
                "base = CASE WHEN base < ?1 THEN NULL ELSE base END, "
                "digest = CASE WHEN base < ?1 THEN NULL ELSE digest END WHERE id = ?2",
                (number, file),
            )
            if base is not None and stored is not None:
                digest, content = base
                names += self._add_content(connection, digest, stored, len(content))
                _set_base(connection, file, number, digest)
            names += self._delete_unused(connection, [before])
        self.contents.discard(names)

    def heads(self) -> dict[str, str | None]:
        """Return the SHA-256 of each file after its last edit; None for a removed file."""
        rows = self.rows(
            "SELECT path, (SELECT after FROM edits WHERE file = edited_files.id "
            "AND state NOT IN ('planned', 'reverting') ORDER BY number DESC LIMIT 1) "
            "FROM edited_files WHERE workspace = ? "
            "AND EXISTS (SELECT 1 FROM edits WHERE file = edited_files.id)",
            self._workspace,
        )
        return {os.fsdecode(path): after for path, after in rows}

    def planned(self, together: str | None = None) -> list[tuple[Path, int, Edit]]:
        """Return the edits that are not done: those of one name, or all; with path and file."""
        rows = self.rows(
            f"SELECT path, file, {', '.join(f'edits.{name}' for name in _COLUMNS.split(', '))} "
            "FROM edits JOIN edited_files ON edited_files.id = file "
            "WHERE state IN ('planned', 'reverting') AND workspace = ?",
            self._workspace,
        )
        planned = [(Path(os.fsdecode(path)), file, _edit(row)) for path, file, *row in rows]
        return [each for each in planned if together is None or each[2].together == together]

    def paths(self) -> dict[int, Path]:
        """Return the paths of the files by their numbers."""
        rows = self.rows("SELECT id, path FROM edited_files WHERE workspace = ?", self._workspace)
        return {id: Path(os.fsdecode(path)) for id, path in rows}

    def numbers(self) -> list[tuple[int, int]]:
        """Return file and number of each edit in order of time."""
        rows = self.rows(
            "SELECT file, number FROM edits JOIN edited_files ON edited_files.id = file "
            "WHERE workspace = ? ORDER BY edits.id",
            self._workspace,
        )
        return [(file, number) for file, number in rows]

    def size(self) -> int:
        """Return the size of all edits and contents, in bytes."""
        edits = self.rows(
            "SELECT coalesce(sum(size), 0) FROM edits JOIN edited_files ON edited_files.id = file "
            "WHERE workspace = ?",
            self._workspace,
        )
        contents = self.rows(
            "SELECT coalesce(sum(size), 0) FROM edited_contents WHERE workspace = ?",
            self._workspace,
        )
        return sum(int(size) for (size,) in (*edits, *contents))


def _insert(connection: sqlite3.Connection, file: int, row: PlannedRow, delta: Stored) -> int:
    """Add the row of an edit; return its size in bytes."""
    edit, changes = row.edit, row.delta or []
    size = _ROW_BYTES + sum(len(each.old) + len(each.new) for each in changes)
    attributes = None if edit.attributes is None else json.dumps(edit.attributes.to_json())
    files = json.dumps(edit.files) if edit.files else ""
    values = {
        **{name: getattr(edit, name) for name in _COLUMNS.split(", ") if name != "id"},
        "file": file,
        "size": size,
        "attributes": attributes,
        "files": files,
        "is_whole": row.delta is None,
        "delta": delta.data,
        "delta_file": delta.name,
    }
    names = ", ".join(f":{name}" for name in values)
    connection.execute(f"INSERT INTO edits({', '.join(values)}) VALUES ({names})", values)
    if row.is_base and edit.before is not None:
        _set_base(connection, file, edit.number - 1, edit.before)
    return size


def _confirm(connection: sqlite3.Connection, file: int, edit: Edit) -> None:
    if edit.kind == "edit":
        _drop_undone(connection, file)
    elif edit.target is not None:
        state = "'done'" if edit.kind == "redo" else _UNDONE
        connection.execute(
            f"UPDATE edits SET state = {state} WHERE file = ? AND number = ?", (file, edit.target)
        )
    connection.execute(
        "UPDATE edits SET state = 'done' WHERE file = ? AND number = ?", (file, edit.number)
    )


def _drop_undone(connection: sqlite3.Connection, file: int) -> None:
    connection.execute(
        "UPDATE edits SET state = 'dropped' WHERE file = ? AND kind = 'edit' AND state = 'undone'",
        (file,),
    )


def _set_base(connection: sqlite3.Connection, file: int, number: int, digest: str) -> None:
    connection.execute(
        "UPDATE edited_files SET base = ?, digest = ? WHERE id = ?", (number, digest, file)
    )


def _base_digest(connection: sqlite3.Connection, file: int) -> str | None:
    row = connection.execute("SELECT digest FROM edited_files WHERE id = ?", (file,)).fetchone()
    return None if row is None else row[0]


def _edit(row: Sequence[Any]) -> Edit:
    number, kind, command, time, before, after, state, target, together, files, *rest = row
    attributes, tag, mode, id = rest
    return Edit(
        *(number, kind, command, time, before, after, state, target, together),
        tuple(json.loads(files)) if files else (),
        Attributes.from_json(json.loads(attributes)) if attributes else None,
        *(tag or "", mode, id),
    )
