"""The log of a session: every Action and Observation, on a file store.

The layout is OpenHands': ``sessions/{sid}/events/{id}.json``, or
``users/{uid}/conversations/{sid}/events/{id}.json``, each file an event in its wire form.
Recording is a matter of memory; threads of the log write the files, and call subscribers,
each in the order of the ids. Several processes may record to one session: ids are dense,
and no file is replaced.
"""

from __future__ import annotations

import atexit
import json
import logging
import os
import threading
import time
import weakref
from collections.abc import Callable, Collection, Iterable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any, get_args

from oh_jupyter.errors import RuntimeClosedError, StorageError, StorePathError, WireError
from oh_jupyter.events.blobs import MAX_INLINE_CHARS, has_blobs, join_blobs
from oh_jupyter.events.event import Event, EventSource
from oh_jupyter.events.masking import SecretMasker
from oh_jupyter.events.subscribers import Subscriber, Subscribers
from oh_jupyter.events.wire import EncodedEvent, from_wire, to_wire
from oh_jupyter.events.writer import EventWriter

if TYPE_CHECKING:
    from oh_jupyter.storage import FileStore

__all__ = ["EventStream"]

_log = logging.getLogger(__name__)
_SOURCES = get_args(EventSource)
_READ_BATCH_EVENTS = 100
_EXIT_TIMEOUT_SECONDS = 5.0


class EventStream:
    """Records events, reads them back, and tells subscribers of new ones.

    Args:
        file_store: Where the log is kept. A session that is there already is continued.
        sid: Id of the session.
        user_id: Whose session it is, if there are several users.
        max_inline_chars: A text with more characters, such as that of a file that was written, is
            a file of its own in ``blobs`` beside ``events``; the event's file has its first part.

    Attributes:
        sid: Id of the session.
        user_id: Whose session it is, or None.

    Raises:
        StorePathError: If an id is empty or no name of a directory.
        StorageError: If the store cannot be reached.
    """

    def __init__(
        self,
        file_store: FileStore,
        sid: str,
        *,
        user_id: str | None = None,
        max_inline_chars: int = MAX_INLINE_CHARS,
    ) -> None:
        self.sid = sid
        self.user_id = user_id
        self._store = file_store
        self._folder = _folder(sid, user_id)
        self._pid = os.getpid()
        self._masker = SecretMasker()
        self._writer = EventWriter(
            file_store, self._folder, self._masker, self._renumber, max_inline_chars
        )
        self._subscribers = Subscribers(self._masker)
        self._lock = threading.Lock()
        self._next_id = self._writer.free_id()
        _live.add(self)

    @property
    def latest_id(self) -> int:
        """Id of the last event; -1 while there is none."""
        return self._next_id - 1

    def add_event(self, event: Event, source: EventSource) -> Event:
        """Record an event. It takes microseconds and never waits for the store.

        The event is written as it is now; later changes of it are not seen. If another
        process has recorded to the session meanwhile, the event gets a later id when it is
        written, which is sure after `flush`.

        Args:
            event: The event; it gets its id, timestamp and source. One that was recorded
                before is recorded again, under a new id.
            source: Who caused it.

        Returns:
            The same event.

        Raises:
            WireError: If there is no such source.
            RuntimeClosedError: In a forked child, which must not write its parent's log.
        """
        if source not in _SOURCES:
            raise WireError(f"No event has the source {source!r}; use one of {_SOURCES}.", "source")
        if os.getpid() != self._pid:
            raise RuntimeClosedError(
                f"The log of session {self.sid!r} belongs to process {self._pid}, which this one "
                "was forked from; record the event there."
            )
        with self._lock:
            event.id = self._next_id
            # Local time without an offset, as OpenHands writes and compares it.
            event.timestamp = datetime.now().isoformat()
            event.source = source
            wire = to_wire(event)
            self._next_id += 1
            self._writer.put(event, EncodedEvent(wire))
            self._subscribers.publish(event, wire)
        return event

    def subscribe(self, callback: Subscriber) -> Callable[[], None]:
        """Have a function called with every event that is recorded from now on.

        It is called with each event once, in the order of the ids, in a thread of the log,
        and gets a copy in which secrets are masked. An exception in it is logged.

        Args:
            callback: The function.

        Returns:
            A function that ends the subscription.
        """
        return self._subscribers.add(callback)

    def get_event(self, id: int) -> Event:
        """Read an event.

        Args:
            id: Which.

        Returns:
            The event, with secrets masked.

        Raises:
            FileNotFoundError: If there is none of that id.
            StorageError: If its file is damaged, or that of one of its long texts is missing.
            WireError: If it is of a type that is not known here.
        """
        wire = self._writer.unwritten([id]).get(id)
        if wire is None:
            path = self._writer.path(id)
            wire = _parsed(self._store.read_bytes(path), path)
        return from_wire(join_blobs(wire, self._writer.blobs, self._store.read_bytes))

    def encoded(self, event: Event) -> bytes:
        """The JSON of an event that was just recorded, for the one who asked for it.

        Args:
            event: The event, unchanged since; secrets are not masked.

        Returns:
            The JSON, which is shared with the log where that is possible.
        """
        pending = None if event.id is None else self._writer.pending(event.id)
        wire = to_wire(event)
        return (pending if pending and pending.wire == wire else EncodedEvent(wire)).json()

    def search(
        self,
        start: int = 0,
        end: int | None = None,
        limit: int | None = None,
        kinds: Collection[str] | None = None,
        *,
        whole: bool = True,
    ) -> list[Event]:
        """Read events in the order of their ids.

        Events of types that are not known here, from other programs, are left out.

        Args:
            start: First id.
            end: Id after the last, as in `range`; None for all.
            limit: How many to return at most.
            kinds: Types to return, such as ``{"run", "error"}``; None for all.
            whole: Whether to read long texts; else, and where one is missing, there is the first
                part of them, which says so. `get_event` reads one event as a whole.

        Returns:
            The events, with secrets masked.

        Raises:
            StorageError: If a file is damaged, or the store cannot be read.
        """
        found: list[Event] = []
        if limit is not None and limit <= 0:
            return found
        for wire in self._wires(max(start, 0), end):
            if kinds is not None and (wire.get("action") or wire.get("observation")) not in kinds:
                continue
            if whole and has_blobs(wire):
                blobs = self._writer.blobs
                wire = join_blobs(wire, blobs, self._store.read_bytes, missing_ok=True)
            try:
                found.append(from_wire(wire))
            except WireError as error:
                _log.debug("Event %s is left out: %s", wire.get("id"), error)
                continue
            if len(found) == limit:
                break
        return found

    def mask(self, values: Iterable[str]) -> None:
        """Keep secrets out of the log: ``<secret_hidden>`` is recorded in their place.

        Args:
            values: The secrets. What is written already is not changed.
        """
        with self._lock:
            self._masker.add(values)

    @property
    def secrets(self) -> frozenset[str]:
        """What is kept out of the log, for other logs to do the same."""
        return self._masker.values

    def flush(self, timeout: float | None = None) -> None:
        """Wait until the events recorded so far are written and handed to subscribers.

        Args:
            timeout: Seconds to wait at most; None for as long as it takes.

        Raises:
            StorageError: If the store refuses them, or time ran out. They are kept, and
                tried again with the next event or flush.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        self._writer.flush(timeout)
        left = None if deadline is None else max(deadline - time.monotonic(), 0)
        if not self._subscribers.flush(left):
            raise StorageError(
                f"Subscribers of {self._folder!r} have not taken all events within {timeout} s; "
                "the events are recorded."
            )

    def close(self, timeout: float = 10.0) -> None:
        """Flush, and end the threads. An event that is added later starts them again.

        Args:
            timeout: Seconds to wait at most. What could not be written is logged.
        """
        if os.getpid() != self._pid:
            return
        try:
            self.flush(timeout)
        except StorageError as error:
            _log.warning("The log is incomplete: %s", error)
        self._writer.stop()
        self._subscribers.stop()

    def _wires(self, start: int, end: int | None) -> Iterator[dict[str, Any]]:
        """Read the wire forms of a range of ids, many files at a time."""
        if end is None or end > self._next_id:
            self._catch_up()
        stop = self._next_id if end is None else min(end, self._next_id)
        for first in range(start, stop, _READ_BATCH_EVENTS):
            ids = range(first, min(first + _READ_BATCH_EVENTS, stop))
            unwritten = self._writer.unwritten(ids)
            paths = {id: self._writer.path(id) for id in ids if id not in unwritten}
            stored = self._store.read_many(paths.values(), missing_ok=True)
            for id in ids:
                if id in unwritten:
                    yield unwritten[id]
                elif paths[id] in stored:
                    yield _parsed(stored[paths[id]], paths[id])

    def _renumber(self, renumber: Callable[[], int]) -> None:
        with self._lock:
            self._next_id = renumber()

    def _catch_up(self) -> None:
        """Learn of events that other processes have recorded to the session."""
        with self._lock:
            if self._store.exists(self._writer.path(self._next_id)):
                self._next_id = self._writer.free_id(self._next_id)


def _folder(sid: str, user_id: str | None) -> str:
    for name in (sid,) if user_id is None else (sid, user_id):
        if not isinstance(name, str) or name in ("", ".", "..") or "/" in name:
            raise StorePathError(
                f"{name!r} cannot be the id of a session or a user; use letters and digits."
            )
    if user_id is None:
        return f"sessions/{sid}/events"
    return f"users/{user_id}/conversations/{sid}/events"


def _parsed(data: bytes, path: str) -> dict[str, Any]:
    try:
        wire = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise StorageError(f"{path!r} is no event: {error}; delete or repair it.") from error
    if not isinstance(wire, dict):
        raise StorageError(f"{path!r} is no event: it is no JSON object; delete or repair it.")
    return wire


_live: weakref.WeakSet[EventStream] = weakref.WeakSet()


def _close_at_exit() -> None:
    deadline = time.monotonic() + _EXIT_TIMEOUT_SECONDS
    for stream in list(_live):
        stream.close(max(deadline - time.monotonic(), 0))


atexit.register(_close_at_exit)
