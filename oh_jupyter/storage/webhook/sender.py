"""Threads that make a webhook's requests, and report the outcomes in any order."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from queue import SimpleQueue
from typing import IO

from oh_jupyter.background import try_start_thread
from oh_jupyter.storage.webhook.changes import Failure, PendingChange, RefusedError, Request
from oh_jupyter.storage.webhook.lanes import MAX_REQUESTS

Send = Callable[[Request, Sequence[bytes | IO[bytes]]], None]
"""Sends a request with the contents of its changes; raises if the receiver does not accept it."""

Contents = Callable[[int], AbstractContextManager[bytes | IO[bytes] | None]]
"""Opens the contents of a change by its number; None if the change is gone."""


@dataclass(frozen=True)
class Outcome:
    """Outcome of a request; ``sent`` has its changes except those that were dropped meanwhile."""

    request: Request
    sent: tuple[PendingChange, ...]
    failure: Failure | None = None


class Sender:
    """Pool of request threads."""

    def __init__(
        self, send: Send, contents: Contents, on_outcome: Callable[[Outcome], None]
    ) -> None:
        self._send = send
        self._contents = contents
        self._on_outcome = on_outcome
        self._requests: SimpleQueue[Request | None] = SimpleQueue()
        self.threads = 0

    def start(self) -> None:
        """Start all threads, since from Python 3.12 on none can be started at exit.

        Without any, `submit` makes each request itself.
        """
        # Daemon threads: a hanging request does not block the exit of Python.
        while self.threads < MAX_REQUESTS and try_start_thread(self._run, "oh-storage-request"):
            self.threads += 1

    def submit(self, request: Request) -> None:
        """Make a request, in a thread if there is one."""
        if self.threads:
            self._requests.put(request)
        else:
            self._on_outcome(self._outcome(request))

    def stop(self) -> None:
        """Stop the threads after their queued requests."""
        for _ in range(self.threads):
            self._requests.put(None)
        self.threads = 0

    def _run(self) -> None:
        while (request := self._requests.get()) is not None:
            self._on_outcome(self._outcome(request))

    def _outcome(self, request: Request) -> Outcome:
        try:
            return Outcome(request, self._make(request))
        except RefusedError as error:
            failure = error.failure
        except BaseException as error:  # an interrupt must not end the thread
            # The text of a client's error may quote the URL with a password.
            failure = Failure(f"no response ({type(error).__name__})", answered=False)
        return Outcome(request, request.changes, failure)

    def _make(self, request: Request) -> tuple[PendingChange, ...]:
        """Make a request; return the changes that it contained."""
        with contextlib.ExitStack() as stack:
            try:
                contents = [stack.enter_context(self._contents(c.number)) for c in request.changes]
            except FileNotFoundError:
                raise RefusedError(Failure("its contents are missing", permanent=True)) from None
            available = [
                (change, data)
                for change, data in zip(request.changes, contents, strict=True)
                if data is not None
            ]
            if not available:
                return ()
            sent, bodies = zip(*available, strict=True)
            self._send(request._replace(changes=sent), bodies)
            return sent
