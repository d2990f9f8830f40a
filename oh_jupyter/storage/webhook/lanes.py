"""Requests of a plan that wait for their turn, and requests in flight."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Iterable, Sequence

from oh_jupyter.storage.webhook.changes import Request

MAX_REQUESTS = 8
"""Maximum number of requests in flight."""

_MAX_CONCURRENT_BYTES = 1 << 20
# A faster receiver gets one request at a time; more would only compete for the interpreter.
_SLOW_RESPONSE_SECONDS = 0.01


class Lanes:
    """Lanes of requests: each is sent one by one, different ones concurrently.

    Attributes:
        in_flight: The requests in flight, with the rest of their lanes.
        sent_at: Time of the last request on the monotonic clock.
    """

    def __init__(self) -> None:
        self.in_flight: dict[Request, deque[Request]] = {}
        self.sent_at = 0.0
        self._waiting: deque[deque[Request]] = deque()

    def __bool__(self) -> bool:
        """Return whether a request waits or is in flight."""
        return bool(self._waiting or self.in_flight)

    def replace(self, lanes: Iterable[Sequence[Request]]) -> None:
        """Replace the waiting requests by those of a new plan."""
        self._waiting.clear()
        rests = {request.changes[0].key: rest for request, rest in self.in_flight.items()}
        for rest in rests.values():
            rest.clear()
        for lane in lanes:
            key = lane[0].changes[0].key
            if key in rests:
                rests[key].extend(lane)
            else:
                self._waiting.append(deque(lane))

    def clear(self) -> None:
        """Forget the waiting lanes; those in flight continue."""
        self._waiting.clear()

    def seconds_to_send(self, concurrent: bool) -> float:
        """Return the time until the next lane may start; infinite if it waits for an outcome."""
        if not self._waiting:
            return math.inf
        if not self.in_flight:
            return 0.0
        requests = (*self.in_flight, self._waiting[0][0])
        size = sum(change.size for request in requests for change in request.changes)
        is_full = len(self.in_flight) >= MAX_REQUESTS or size > _MAX_CONCURRENT_BYTES
        if is_full or not concurrent:
            return math.inf
        return max(self.sent_at + _SLOW_RESPONSE_SECONDS - time.monotonic(), 0.0)

    def next_lane(self) -> deque[Request]:
        """Remove and return the first waiting lane."""
        return self._waiting.popleft()

    def start(self, request: Request, rest: deque[Request]) -> None:
        """Note that a request is in flight."""
        self.in_flight[request] = rest
        self.sent_at = time.monotonic()

    def open_from(self) -> float:
        """Return the number of the first change that waits or is in flight; infinite if none."""
        requests = [*self.in_flight, *(rest[0] for rest in self.in_flight.values() if rest)]
        if self._waiting:  # by their first change
            requests.append(self._waiting[0][0])
        return min((request.changes[0].number for request in requests), default=math.inf)
