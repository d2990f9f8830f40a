"""Functions that are called with every new event, in a thread of their own."""

from __future__ import annotations

import copy
import logging
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from oh_jupyter.events.event import Event
from oh_jupyter.events.masking import Mask
from oh_jupyter.events.wire import from_wire

__all__ = ["Subscriber", "Subscribers"]

_log = logging.getLogger(__name__)

Subscriber = Callable[[Event], object]
"""What can subscribe: it gets the event; what it returns is ignored."""


class Subscribers:
    """Calls each subscriber with each event once, and in order.

    Args:
        mask: What to keep out of the events that are handed out.
    """

    def __init__(self, mask: Mask) -> None:
        self._mask = mask
        self._changed = threading.Condition()
        self._callbacks: dict[object, Subscriber] = {}
        self._waiting: deque[tuple[int, Event, dict[str, Any], list[object]]] = deque()
        self._thread: threading.Thread | None = None
        self._put = self._done = 0  # events, counted

    def add(self, callback: Subscriber) -> Callable[[], None]:
        """Subscribe to the events that are published from now on.

        Args:
            callback: The function to call.

        Returns:
            A function that ends the subscription.
        """
        ticket = object()
        with self._changed:
            self._callbacks[ticket] = callback

        def remove() -> None:
            with self._changed:
                self._callbacks.pop(ticket, None)

        return remove

    def publish(self, event: Event, wire: dict[str, Any]) -> None:
        """Hand an event to those who are subscribed now. It does not wait for them.

        Args:
            event: The event, which may be changed afterwards.
            wire: Its wire form.
        """
        with self._changed:
            if not self._callbacks:
                return
            self._put += 1
            self._waiting.append((self._put, copy.deepcopy(event), wire, list(self._callbacks)))
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="oh-subscribers", daemon=True
                )
                self._thread.start()
            self._changed.notify_all()

    def flush(self, timeout: float | None) -> bool:
        """Wait until the events that were published before are handed out.

        Args:
            timeout: Seconds to wait at most; None for as long as it takes.

        Returns:
            Whether they are. A subscriber does not wait for itself.
        """
        with self._changed:
            if self._thread is threading.current_thread():
                return True
            last = self._put
            return self._changed.wait_for(lambda: self._done >= last, timeout)

    def stop(self) -> None:
        """End the thread after the event it is at. A later event starts it again."""
        with self._changed:
            self._thread = None
            self._changed.notify_all()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._stopped())
                if self._stopped():
                    return
                number, event, wire, tickets = self._waiting.popleft()
            masked = self._mask.masked(wire)
            for ticket in tickets:
                callback = self._callbacks.get(ticket)
                if callback is None:
                    continue
                try:
                    callback(copy.deepcopy(event) if masked is wire else from_wire(masked))
                except Exception:
                    _log.exception("A subscriber failed with event %s", event.id)
            with self._changed:
                self._done = number
                self._changed.notify_all()

    def _stopped(self) -> bool:
        return self._thread is not threading.current_thread()
