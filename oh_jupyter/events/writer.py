"""Background writer of events, one file after another, so that the stored log has no gaps.

While the store fails, each new event and each flush retries the oldest unwritten event.

A long text is in a separate file that is named by its digest. The event contains the first part of
the text, which OpenHands' readers show, and a reference to the whole under a key that they ignore:
``{"oh_jupyter": {"blobs": {"/args/content": {"key": ..., "bytes": ..., "sha256": ...}}}}``, where
the name is a JSON pointer (RFC 6901) into the event.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import re
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from oh_jupyter.background import QueueThread
from oh_jupyter.errors import StorageError
from oh_jupyter.events.event import Event
from oh_jupyter.events.json import encode_json
from oh_jupyter.events.masking import SecretMasker
from oh_jupyter.events.wire import BLOBS_KEY, EXTENSION_KEY, EncodedEvent
from oh_jupyter.text import shorten

if TYPE_CHECKING:
    from oh_jupyter.storage import FileStore


MAX_INLINE_CHARS = 1024 * 1024
"""Maximum length of a text in an event's own file."""

_FIRST_PART_CHARS = 10_000
_CODEC = "utf-8", "surrogatepass"


def split_blobs(event: EncodedEvent, folder: str, max_chars: int) -> tuple[bytes, dict[str, bytes]]:
    """Return the JSON of an event with shortened long texts, and the whole texts by path."""
    encoded = event.json()
    texts = {} if len(encoded) <= max_chars else dict(_long_texts(event.wire, "", max_chars))
    if not texts:
        return encoded, {}
    blobs: dict[str, bytes] = {}
    references: dict[str, dict[str, Any]] = {}
    wire = event.wire
    for pointer, text in texts.items():
        first_part = shorten(text, _FIRST_PART_CHARS, marker="")
        wire = _with(wire, pointer, f"{first_part}\n[... {len(text)} characters]")
        if pointer == "/message":  # it repeats another text and is never read back
            continue
        data = text.encode(*_CODEC)
        digest = hashlib.sha256(data).hexdigest()
        key = f"{folder}/{digest}"
        blobs[key] = data
        references[pointer] = {"key": key, "bytes": len(data), "sha256": digest}
    extensions = {**wire.get(EXTENSION_KEY, {}), BLOBS_KEY: references}
    return encode_json({**wire, EXTENSION_KEY: extensions}), blobs


def has_blobs(wire: dict[str, Any]) -> bool:
    """Return whether an event refers to texts in separate files."""
    return bool(_references(wire))


def join_blobs(
    wire: dict[str, Any], folder: str, read: Callable[[str], bytes], *, missing_ok: bool = False
) -> dict[str, Any]:
    """Restore the whole texts; for a missing one, raise StorageError or note it in the text."""
    for pointer, reference in _references(wire).items():
        try:
            wire = _with(wire, pointer, _read(reference, folder, read))
        except (LookupError, TypeError, ValueError, OSError) as error:
            notice = (
                f"The text {pointer!r} of event {wire.get('id')} is missing: its file in "
                f"{folder!r} cannot be read ({error}). The event contains its first part."
            )
            if not missing_ok:
                raise StorageError(notice) from error
            wire = _with(wire, pointer, partial("{1}\n[{0}]".format, notice))
    return wire


def _references(wire: dict[str, Any]) -> dict[str, Any]:
    extensions = wire.get(EXTENSION_KEY)
    references = extensions.get(BLOBS_KEY) if isinstance(extensions, dict) else None
    return references if isinstance(references, dict) else {}


def _read(reference: dict[str, Any], folder: str, read: Callable[[str], bytes]) -> str:
    digest = str(reference["sha256"])
    if not digest.isalnum():  # an event must not choose an arbitrary path
        raise ValueError(f"{digest!r} is not a digest")
    data = read(f"{folder}/{digest}")
    if hashlib.sha256(data).hexdigest() != digest:
        raise ValueError("it was changed")
    return data.decode(*_CODEC)


def _long_texts(
    value: Any, pointer: str, max_chars: int, depth: int = 100
) -> Iterator[tuple[str, str]]:
    """Iterate over the texts above a length, with their JSON pointers."""
    if isinstance(value, str):
        if len(value) > max_chars:
            yield pointer, value
    elif depth and isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for name, inner in items:
            escaped = str(name).replace("~", "~0").replace("/", "~1")
            yield from _long_texts(inner, f"{pointer}/{escaped}", max_chars, depth - 1)


def _with(value: Any, pointer: str, new: str | Callable[[str], str]) -> Any:
    """Return a copy of JSON data with another text at a pointer."""
    if not pointer:
        return new if isinstance(new, str) else new(value)
    escaped, _, rest = pointer[1:].partition("/")
    name = escaped.replace("~1", "/").replace("~0", "~")
    copy = value.copy()
    key = int(name) if isinstance(value, list) else name
    copy[key] = _with(value[key], f"/{rest}" if rest else "", new)
    return copy


_log = logging.getLogger(__name__)
_FILE_NAME = re.compile(r"(\d+)\.json")
_PRIVATE_FOLDER, _PRIVATE_FILE = 0o700, 0o600  # permissions


class EventWriter(QueueThread):
    """Writes the events of one session's folder, in order and in the background.

    If another process has taken an id, it calls ``on_taken`` with a function that renumbers the
    queued events.
    """

    def __init__(
        self,
        store: FileStore,
        folder: str,
        masker: SecretMasker,
        on_taken: Callable[[Callable[[], int]], None],
        max_inline_chars: int,
    ) -> None:
        super().__init__("oh-events-writer")
        self._store = store
        self._on_taken = on_taken
        self._folder = folder
        self._session = folder.rpartition("/")[0]
        self.blobs = f"{self._session}/blobs"
        self._max_inline_chars = max_inline_chars
        self._is_prepared = False
        self._masker = masker
        self._unwritten: dict[int, tuple[Event, EncodedEvent]] = {}
        self._error: Exception | None = None
        self._put = self._written = 0  # numbers of events, whose ids may change
        self._requested = self._attempted = 0  # numbers of requested and finished attempts

    def path(self, id: int) -> str:
        """Return the path of an event on the store."""
        return f"{self._folder}/{id}.json"

    def free_id(self, start: int = 0) -> int:
        """Return the first id after all stored ones, at least ``start``."""
        try:
            entries = self._store.list(self._folder)
        except FileNotFoundError:
            return start
        names = (_FILE_NAME.fullmatch(entry.rpartition("/")[2]) for entry in entries)
        return max((int(name[1]) + 1 for name in names if name), default=start)

    def put(self, event: Event, encoded: EncodedEvent) -> None:
        """Queue an event; its id must be higher than the previous one."""
        with self._changed:
            self._unwritten[int(encoded.wire["id"])] = (event, encoded)
            self._put += 1
            self._requested += 1
            self._wake()

    def unwritten(self, ids: Iterable[int]) -> dict[int, dict[str, Any]]:
        """Return the masked wire forms of unwritten events, by id."""
        with self._changed:
            events = {id: self._unwritten[id][1] for id in ids if id in self._unwritten}
        return {id: self._masker.masked(event.wire) for id, event in events.items()}

    def pending(self, id: int) -> EncodedEvent | None:
        """Return an event as it was queued, if it is not written yet."""
        with self._changed:
            return self._unwritten[id][1] if id in self._unwritten else None

    def flush(self, timeout: float | None) -> None:
        """Wait ``timeout`` seconds at most until what was put before is written (StorageError)."""
        with self._changed:
            if not self._unwritten:
                return
            last = self._put
            self._requested += 1
            requested = self._requested
            self._changed.notify_all()

        def has_failed() -> bool:
            return self._error is not None and self._attempted >= requested

        self._wait_for(lambda: self._written >= last or has_failed(), timeout)
        with self._changed:
            if self._written >= last:
                return
            first, error = next(iter(self._unwritten)), self._error
        raise StorageError(
            f"The events from {first} on are not written to {self._folder!r} yet "
            f"({error or f'timeout after {timeout} s'}); they are kept and retried."
        ) from error

    def _work(self) -> None:
        with self._changed:
            if not self._unwritten:  # another thread was faster
                return
            id, (_, encoded) = next(iter(self._unwritten.items()))
            requested = self._requested
        error = self._write(id, encoded)
        if isinstance(error, FileExistsError):
            self._on_taken(self._renumber)
            return
        with self._changed:
            if error is None and self._unwritten.pop(id, None) is not None:
                self._written += 1  # None if another thread was faster
            elif error is not None and self._error is None:
                _log.warning("Event %d is not written yet: %s", id, error)
            self._error, self._attempted = error, requested
            self._changed.notify_all()

    def _has_work(self) -> bool:
        return bool(self._unwritten) and (self._error is None or self._requested > self._attempted)

    def _write(self, id: int, encoded: EncodedEvent) -> Exception | None:
        try:
            if not self._is_prepared:
                self._prepare()
                self._is_prepared = True
            data, blobs = self._files(encoded)
            for path, blob in blobs.items():
                self._create_blob(path, blob)
            self._create(self.path(id), data)
        except FileExistsError as error:
            return None if self._is_written(id, encoded) else error
        except Exception as error:
            return error
        return None

    def _create(self, path: str, data: bytes) -> None:
        # A third-party store may lack create().
        create = getattr(self._store, "create", self._store.write)
        create(path, data)
        self._restrict(path, _PRIVATE_FILE)

    def _create_blob(self, path: str, data: bytes) -> None:
        """Write a long text unless it exists; its name is the digest of its contents."""
        self._restrict(self.blobs, _PRIVATE_FOLDER)
        with contextlib.suppress(FileExistsError):
            self._create(path, data)

    def _prepare(self) -> None:
        """Make the session's folders private, and write its metadata if it has none."""
        for folder in (self._session, self._folder):
            self._restrict(folder, _PRIVATE_FOLDER)
        owner, _, sid = self._session.rpartition("/")
        metadata = {
            "conversation_id": sid,
            "selected_repository": None,
            "user_id": owner.split("/")[1] if owner.startswith("users/") else None,
            "title": f"oh_jupyter {sid[:8]}",
            "created_at": datetime.now(UTC).isoformat(),
        }
        with contextlib.suppress(FileExistsError):
            self._create(f"{self._session}/metadata.json", encode_json(metadata))

    def _restrict(self, path: str, mode: int) -> None:
        """Set permissions on a local store; create missing folders."""
        locate = getattr(self._store, "get_absolute_path", None)
        local = "" if locate is None else locate(path)
        if not os.path.isabs(local) or not hasattr(os, "fchmod"):
            return
        # Another user may own the path, or the filesystem may lack permissions.
        with contextlib.suppress(OSError):
            if mode == _PRIVATE_FOLDER:
                os.makedirs(local, mode, exist_ok=True)
            handle = os.open(local, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            try:
                os.fchmod(handle, mode)
            finally:
                os.close(handle)

    def _is_written(self, id: int, encoded: EncodedEvent) -> bool:
        """Return whether the file is ours: a store may report a completed write as failed."""
        try:
            # Timestamps of two processes can be equal, so compare the whole contents.
            return self._store.read_bytes(self.path(id)) == self._files(encoded)[0]
        except OSError:
            return False

    def _files(self, encoded: EncodedEvent) -> tuple[bytes, dict[str, bytes]]:
        """Return the masked contents of the event's file, and of its long texts by path."""
        masked = self._masker.masked(encoded.wire)
        event = encoded if masked is encoded.wire else EncodedEvent(masked)
        return split_blobs(event, self.blobs, self._max_inline_chars)

    def _renumber(self) -> int:
        """Give the queued events ids after the stored ones; return the next free id."""
        with self._changed:
            start = self.free_id(next(iter(self._unwritten), 0))
            ids = {old: start + n for n, old in enumerate(self._unwritten)}
            renumbered: dict[int, tuple[Event, EncodedEvent]] = {}
            for old, (event, encoded) in self._unwritten.items():
                event.id = ids[old]
                wire = {**encoded.wire, "id": event.id}
                if wire.get("cause") in ids:
                    event.cause = wire["cause"] = ids[wire["cause"]]
                renumbered[event.id] = (event, EncodedEvent(wire))
            if renumbered:
                _log.debug("Another process writes to %r; ids continue at %d", self._folder, start)
            self._unwritten = renumbered
            return start + len(renumbered)
