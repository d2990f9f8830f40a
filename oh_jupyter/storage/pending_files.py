"""Files that wait for their unreachable store, as rows of the ledger that processes share."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import io
import sqlite3
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

from oh_jupyter.errors import StorageError, StoreNotFoundError
from oh_jupyter.state.contents import contents_of, discard_orphans
from oh_jupyter.state.shared import open_ledger
from oh_jupyter.storage.base import FileInfo, directory_info, file_info
from oh_jupyter.storage.keyed import KeyedFileStore
from oh_jupyter.storage.webhook.owner import is_alive, new_owner

_SENDERS = "SELECT DISTINCT sender FROM pending_files WHERE store = ? AND sender IS NOT NULL"


class PendingFile(NamedTuple):
    """A version of a file to send.

    Attributes:
        key: Its path on the store.
        contents: Its contents.
        sent: Digests of earlier versions that the store may have.
    """

    key: str
    contents: bytes
    sent: frozenset[str]


class PendingFiles(KeyedFileStore):
    """The pending files of one store; one live process at a time reserves what it sends.

    Args:
        name: Name of the store, the same in all processes.

    Attributes:
        ledger: The ledger with the rows.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self.ledger = open_ledger()
        self._contents = contents_of(self.ledger)
        self._sender = new_owner()

    def __repr__(self) -> str:
        return f"PendingFiles({self._name!r})"

    # Delivery:

    def keys(self) -> dict[int, str]:
        """Return the keys of the files by their numbers, oldest version first."""
        query = "SELECT number, key FROM pending_files WHERE store = ? ORDER BY number"
        return dict(self._rows(query, self._name))

    def reserve(self, number: int) -> bool:
        """Reserve a version for this sender; return False while another process sends.

        What a process has reserved that ended is free.
        """
        ended = {sender for sender in self._senders() if not is_alive(sender)}
        with self._transaction() as connection:
            senders = {sender for (sender,) in connection.execute(_SENDERS, (self._name,))}
            if senders - ended - {self._sender}:
                return False
            connection.executemany(
                "UPDATE pending_files SET sender = NULL WHERE store = ? AND sender = ?",
                [(self._name, sender) for sender in senders],
            )
            connection.execute(
                "UPDATE pending_files SET sender = ?, tries = tries + 1 WHERE number = ?",
                (self._sender, number),
            )
        return True

    def release(self) -> None:
        """End the reservation of this sender."""
        if self._sender in self._senders():
            self._execute(
                "UPDATE pending_files SET sender = NULL WHERE store = ? AND sender = ?",
                *(self._name, self._sender),
            )

    def _senders(self) -> set[str]:
        return {sender for (sender,) in self._rows(_SENDERS, self._name)}

    def version(self, number: int) -> PendingFile | None:
        """Return a version, or None if it was deleted or replaced.

        Raises:
            FileNotFoundError: Its contents are lost.
        """
        query = "SELECT key, contents, file, sent FROM pending_files WHERE number = ?"
        while rows := self._rows(query, number):
            key, data, file, sent = rows[0]
            try:
                with self._access():
                    contents = self._contents.get(data, file)
            except LookupError:
                if self.is_pending(number):
                    reason = f"{self!r} has lost the contents of this path"
                    raise StoreNotFoundError(errno.ENOENT, reason, key) from None
            else:
                return PendingFile(key, contents, frozenset(sent.split()))
        return None

    def is_file(self, key: str) -> bool:
        """Return whether a version of a file is pending."""
        return bool(self._file(key))

    def is_pending(self, number: int) -> bool:
        """Return whether a version was neither deleted nor replaced nor accepted."""
        return bool(self._rows("SELECT 1 FROM pending_files WHERE number = ?", number))

    def accept(self, number: int) -> None:
        """Delete a version that the store has."""
        self._delete("number = ?", number)

    def discard_orphans(self) -> None:
        """Delete large contents that a killed process did not list."""
        with self._access():
            discard_orphans(self.ledger)

    # The methods of a store:

    def _put(self, key: str, data: bytes) -> None:
        self._add(key, data)

    def _put_new(self, key: str, data: bytes) -> None:
        if not self._add(key, data, is_new=True):
            raise self._exists_already(key)

    def _add(self, key: str, data: bytes, *, is_new: bool = False) -> bool:
        """Add a version and delete the earlier one; return False if it must be new and is not."""
        digest = hashlib.sha256(data).hexdigest()
        with self._access():
            stored = self._contents.put(data)
        version = (self._name, key, time.time(), len(data), digest, *stored)
        try:
            with self._transaction() as connection:
                is_added = not (is_new and self._has(connection, key))
                unused = _replace(connection, version) if is_added else stored.name
        except Exception:
            self._contents.discard([stored.name])
            raise
        self._contents.discard([unused])
        return is_added

    def _has(self, connection: sqlite3.Connection, key: str) -> bool:
        """Return whether there is a file or a directory."""
        condition, values = self._at_or_below(key)
        query = f"SELECT 1 FROM pending_files WHERE {condition} LIMIT 1"
        return connection.execute(query, values).fetchone() is not None

    def _put_file(self, key: str, source: str) -> None:
        self._put(key, Path(source).read_bytes())

    def _get(self, key: str) -> bytes:
        query = "SELECT number FROM pending_files WHERE store = ? AND key = ?"
        while rows := self._rows(query, self._name, key):
            version = self.version(rows[0][0])
            if version is not None:
                return version.contents
        raise self._is_directory(key) if self._is_directory_key(key) else self._missing(key)

    def _open_read(self, key: str) -> BinaryIO:
        return io.BytesIO(self._get(key))

    def _children(self, key: str) -> tuple[list[str], list[str]]:
        condition, values = self._below(key)
        rows = self._rows(f"SELECT key FROM pending_files WHERE {condition}", *values)
        start = len(key) + 1 if key else 0
        parts = [below[start:].partition("/") for (below,) in rows]
        if not parts and key and self.is_file(key):
            raise self._not_directory(key)
        directories = dict.fromkeys(name for name, slash, _ in parts if slash)
        return list(directories), [name for name, slash, _ in parts if not slash]

    def _info(self, key: str) -> FileInfo:
        for size, modified in self._file(key):
            return file_info(key, size, datetime.fromtimestamp(modified, UTC))
        if self._is_directory_key(key):
            return directory_info(key)
        raise self._missing(key)

    def _remove(self, key: str) -> None:
        condition, values = self._at_or_below(key)
        self._delete(condition, *values)

    def _file(self, key: str) -> list[tuple[Any, ...]]:
        query = "SELECT size, time FROM pending_files WHERE store = ? AND key = ?"
        return self._rows(query, self._name, key)

    def _is_directory_key(self, key: str) -> bool:
        condition, values = self._below(key)
        return bool(self._rows(f"SELECT 1 FROM pending_files WHERE {condition} LIMIT 1", *values))

    def _below(self, key: str) -> tuple[str, tuple[str, ...]]:
        """Return the condition for the files below a directory, and its values."""
        if not key:
            return "store = ?", (self._name,)
        # "0" is the character after "/".
        return "store = ? AND key > ? AND key < ?", (self._name, f"{key}/", f"{key}0")

    def _at_or_below(self, key: str) -> tuple[str, tuple[str, ...]]:
        condition, values = self._below(key)
        return f"store = ? AND key = ? OR {condition}", (self._name, key, *values)

    def _delete(self, condition: str, *values: Any) -> None:
        """Delete rows and their files; a ledger without such rows is only read."""
        if not self._rows(f"SELECT 1 FROM pending_files WHERE {condition} LIMIT 1", *values):
            return
        chosen = f"FROM pending_files WHERE {condition}"
        with self._transaction() as connection:
            files = connection.execute(f"SELECT file {chosen}", values).fetchall()
            connection.execute(f"DELETE {chosen}", values)
        self._contents.discard(file for (file,) in files)

    def _rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        with self._access():
            return self.ledger.rows(query, values)

    def _execute(self, statement: str, *values: Any) -> None:
        with self._access():
            self.ledger.execute(statement, values)

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._access(), self.ledger.transaction() as connection:
            yield connection

    @contextlib.contextmanager
    def _access(self) -> Iterator[None]:
        """Turn a system error, such as a full disk, into a StorageError."""
        try:
            yield
        except OSError as error:
            raise StorageError(
                f"The files that wait for their store cannot be read or written: {error}"
            ) from error


def _replace(connection: sqlite3.Connection, version: tuple[Any, ...]) -> str | None:
    """Insert a version in the stead of an earlier one; return the name of that one's file."""
    chosen = "FROM pending_files WHERE store = ? AND key = ?"
    earlier = connection.execute(
        f"SELECT sender, tries, digest, sent, file {chosen}", version[:2]
    ).fetchone()
    connection.execute(f"DELETE {chosen}", version[:2])
    sender, tries, digest, sent, file = earlier or (None, 0, "", "", None)
    connection.execute(
        "INSERT INTO pending_files"
        "(store, key, time, size, digest, contents, file, sender, sent) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (*version, sender, f"{sent} {digest}" if tries else sent),
    )
    return cast("str | None", file)
