"""Event log of a session on a file store, in OpenHands' layout; several processes may share it.

Recording only touches memory: threads write the files and call subscribers, in the order of ids.
"""

from __future__ import annotations

import atexit
import copy
import json
import logging
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar, get_args

from oh_jupyter.background import QueueThread
from oh_jupyter.errors import RuntimeClosedError, StorageError, StorePathError, WireError
from oh_jupyter.events.event import Event, EventSource
from oh_jupyter.events.masking import SecretMasker
from oh_jupyter.events.wire import EncodedEvent, from_wire, to_wire
from oh_jupyter.events.writer import MAX_INLINE_CHARS, EventWriter, has_blobs, join_blobs

if TYPE_CHECKING:
    from oh_jupyter.storage import FileStore

_log = logging.getLogger(__name__)

T = TypeVar("T")

Subscriber = Callable[[Event], object]
"""Callback for new events; its return value is ignored."""

WireSubscriber = Callable[[dict[str, Any]], object]
"""Callback for the wire forms of new events, which it must not change."""


class Subscribers(QueueThread):
    """Calls each subscriber with each event once, in order and with secrets masked."""

    def __init__(self, masker: SecretMasker) -> None:
        super().__init__("oh-events-subscribers")
        self._masker = masker
        self._callbacks: dict[object, Subscriber] = {}
        self._wire_callbacks: dict[object, WireSubscriber] = {}
        self._queue: deque[tuple[int, Event | None, dict[str, Any], list[object]]] = deque()
        self._published = self._delivered = 0  # events, counted

    def add(self, callback: Subscriber) -> Callable[[], None]:
        """Subscribe to events published from now on; return a function that unsubscribes."""
        return self._add(self._callbacks, callback)

    def add_for_wires(self, callback: WireSubscriber) -> Callable[[], None]:
        """Subscribe like ``add`` to the wire forms, which costs no copies of the events."""
        return self._add(self._wire_callbacks, callback)

    def _add(self, callbacks: dict[object, T], callback: T) -> Callable[[], None]:
        key = object()
        with self._changed:
            callbacks[key] = callback

        def remove() -> None:
            with self._changed:
                callbacks.pop(key, None)

        return remove

    def publish(self, event: Event, wire: dict[str, Any]) -> None:
        """Queue an event for the current subscribers."""
        with self._changed:
            keys = [*self._callbacks, *self._wire_callbacks]
            if not keys:
                return
            self._published += 1
            copied = copy.deepcopy(event) if self._callbacks else None
            self._queue.append((self._published, copied, wire, keys))
            self._wake()

    def flush(self, timeout: float | None) -> bool:
        """Wait until all published events are delivered; return False on a timeout."""
        with self._changed:
            if self._thread is threading.current_thread():
                return True
            last = self._published
        return self._wait_for(lambda: self._delivered >= last, timeout)

    def _has_work(self) -> bool:
        return bool(self._queue)

    def _work(self) -> None:
        with self._changed:
            if not self._queue:  # another thread was faster
                return
            number, event, wire, keys = self._queue.popleft()
        masked = self._masker.masked(wire)
        for key in keys:
            try:
                if (callback := self._callbacks.get(key)) is not None:
                    if event is None or masked is not wire:
                        callback(from_wire(masked))
                    else:
                        callback(copy.deepcopy(event))
                elif (wire_callback := self._wire_callbacks.get(key)) is not None:
                    wire_callback(masked)
            except Exception:
                _log.exception("A subscriber failed with event %s", wire["id"])
        with self._changed:
            self._delivered = number
            self._changed.notify_all()


_SOURCES = get_args(EventSource)
_READ_BATCH_EVENTS = 100
_EXIT_TIMEOUT_SECONDS = 5.0


class EventStream:
    """Records events, reads them back, and notifies subscribers of new ones.

    A text of more than ``max_inline_chars`` becomes a separate file in ``blobs`` beside ``events``.
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
        """Id of the last event; -1 if there is none."""
        return self._next_id - 1

    def add_event(self, event: Event, source: EventSource) -> Event:
        """Record a copy of an event; set its id, timestamp and source.

        If another process has taken the id, it changes; it is final after `flush`. Raise WireError
        for an unknown source, RuntimeClosedError in a forked child.
        """
        if source not in _SOURCES:
            raise WireError(f"Unknown event source {source!r}; use one of {_SOURCES}.", "source")
        if os.getpid() != self._pid:
            raise RuntimeClosedError(
                f"The log of session {self.sid!r} belongs to the parent process {self._pid}; "
                "record the event there."
            )
        with self._lock:
            event.id = self._next_id
            # OpenHands writes and compares local time without an offset.
            event.timestamp = datetime.now().isoformat()
            event.source = source
            wire = to_wire(event)
            self._next_id += 1
            self._writer.put(event, EncodedEvent(wire))
            self._subscribers.publish(event, wire)
        return event

    def subscribe(self, callback: Subscriber) -> Callable[[], None]:
        """Call a function with a masked copy of each new event; return a function to stop that."""
        return self._subscribers.add(callback)

    def subscribe_to_wires(self, callback: WireSubscriber) -> Callable[[], None]:
        """Subscribe like ``subscribe`` to the wire forms, which the function must not change."""
        return self._subscribers.add_for_wires(callback)

    def get_event(self, id: int) -> Event:
        """Read a masked event; raise FileNotFoundError, StorageError (damaged) or WireError."""
        wire = self._writer.unwritten([id]).get(id)
        if wire is None:
            path = self._writer.path(id)
            wire = _parsed(self._store.read_bytes(path), path)
        return from_wire(join_blobs(wire, self._writer.blobs, self._store.read_bytes))

    def encoded(self, event: Event) -> bytes:
        """Return the unmasked JSON of a recorded event, shared with the log if possible."""
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
        """Return masked events from ``start`` to before ``end``, without those of unknown types.

        Without ``whole``, or if its file is missing, a long text is cut and notes that.
        """
        matches: list[Event] = []
        if limit is not None and limit <= 0:
            return matches
        for wire in self._wires(max(start, 0), end):
            if kinds is not None and (wire.get("action") or wire.get("observation")) not in kinds:
                continue
            if whole and has_blobs(wire):
                blobs = self._writer.blobs
                wire = join_blobs(wire, blobs, self._store.read_bytes, missing_ok=True)
            try:
                matches.append(from_wire(wire))
            except WireError as error:
                _log.debug("Event %s is skipped: %s", wire.get("id"), error)
                continue
            if len(matches) == limit:
                break
        return matches

    def mask(self, values: Iterable[str]) -> None:
        """Replace secrets with ``<secret_hidden>`` from now on."""
        with self._lock:
            self._masker.add(values)

    @property
    def secrets(self) -> frozenset[str]:
        """Masked values, so that other logs can mask them, too."""
        return self._masker.values

    def flush(self, timeout: float | None = None) -> None:
        """Wait until all events are written and delivered; raise StorageError otherwise."""
        deadline = None if timeout is None else time.monotonic() + timeout
        self._writer.flush(timeout)
        remaining = None if deadline is None else max(deadline - time.monotonic(), 0)
        if not self._subscribers.flush(remaining):
            raise StorageError(
                f"Subscribers of {self._folder!r} did not process all events within {timeout} s; "
                "the events are recorded."
            )

    def close(self, timeout: float = 10.0) -> None:
        """Flush, and stop the threads; a later event starts them again."""
        if os.getpid() != self._pid:
            return
        try:
            self.flush(timeout)
        except StorageError as error:
            _log.warning("The log is incomplete: %s", error)
        self._writer.stop()
        self._subscribers.stop()

    def _wires(self, start: int, end: int | None) -> Iterator[dict[str, Any]]:
        """Read the wire forms of a range of ids in batches."""
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
        """Update the next id from events that other processes have recorded."""
        with self._lock:
            if self._store.exists(self._writer.path(self._next_id)):
                self._next_id = self._writer.free_id(self._next_id)


def _folder(sid: str, user_id: str | None) -> str:
    for name in (sid,) if user_id is None else (sid, user_id):
        if not isinstance(name, str) or name in ("", ".", "..") or "/" in name:
            raise StorePathError(
                f"{name!r} is not a valid session or user id; use letters and digits."
            )
    if user_id is None:
        return f"sessions/{sid}/events"
    return f"users/{user_id}/conversations/{sid}/events"


def _parsed(data: bytes, path: str) -> dict[str, Any]:
    try:
        wire = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise StorageError(f"{path!r} is not an event: {error}; delete or repair it.") from error
    if not isinstance(wire, dict):
        raise StorageError(f"{path!r} is not an event: not a JSON object; delete or repair it.")
    return wire


_live: weakref.WeakSet[EventStream] = weakref.WeakSet()


def _close_at_exit() -> None:
    deadline = time.monotonic() + _EXIT_TIMEOUT_SECONDS
    for stream in list(_live):
        stream.close(max(deadline - time.monotonic(), 0))


atexit.register(_close_at_exit)
