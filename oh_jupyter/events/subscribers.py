"""Functions that are called with every new event, in a thread of their own."""

from __future__ import annotations

import copy
import logging
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from oh_jupyter.events.event import Event
from oh_jupyter.events.masking import SecretMasker
from oh_jupyter.events.wire import from_wire

__all__ = ["Subscriber", "Subscribers"]

_log = logging.getLogger(__name__)

Subscriber = Callable[[Event], object]
"""What can subscribe: it gets the event; what it returns is ignored."""


class Subscribers:
    """Calls each subscriber with each event once, in order and with secrets masked."""

    def __init__(self, masker: SecretMasker) -> None:
        self._masker = masker
        self._changed = threading.Condition()
        self._callbacks: dict[object, Subscriber] = {}
        self._queue: deque[tuple[int, Event, dict[str, Any], list[object]]] = deque()
        self._thread: threading.Thread | None = None
        self._published = self._delivered = 0  # events, counted

    def add(self, callback: Subscriber) -> Callable[[], None]:
        """Subscribe to the events that are published from now on; returns what unsubscribes."""
        ticket = object()
        with self._changed:
            self._callbacks[ticket] = callback

        def remove() -> None:
            with self._changed:
                self._callbacks.pop(ticket, None)

        return remove

    def publish(self, event: Event, wire: dict[str, Any]) -> None:
        """Hand an event to those who are subscribed now. It does not wait for them."""
        with self._changed:
            if not self._callbacks:
                return
            self._published += 1
            self._queue.append((self._published, copy.deepcopy(event), wire, list(self._callbacks)))
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="oh-subscribers", daemon=True
                )
                self._thread.start()
            self._changed.notify_all()

    def flush(self, timeout: float | None) -> bool:
        """Wait until what was published is delivered; False if that took ``timeout`` seconds."""
        with self._changed:
            if self._thread is threading.current_thread():
                return True
            last = self._published
            return self._changed.wait_for(lambda: self._delivered >= last, timeout)

    def stop(self) -> None:
        """End the thread after the event it is at. A later event starts it again."""
        with self._changed:
            self._thread = None
            self._changed.notify_all()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._queue or self._stopped())
                if self._stopped():
                    return
                number, event, wire, tickets = self._queue.popleft()
            masked = self._masker.masked(wire)
            for ticket in tickets:
                callback = self._callbacks.get(ticket)
                if callback is None:
                    continue
                try:
                    callback(copy.deepcopy(event) if masked is wire else from_wire(masked))
                except Exception:
                    _log.exception("A subscriber failed with event %s", event.id)
            with self._changed:
                self._delivered = number
                self._changed.notify_all()

    def _stopped(self) -> bool:
        return self._thread is not threading.current_thread()
