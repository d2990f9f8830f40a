"""The main thread waiting for the runtime, and doing for it what only it can do.

A magic blocks the main thread until its Action is done. If that Action has to run a cell,
the cell needs the very thread that is waiting: so the wait is a loop that takes calls.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError, Future
from contextvars import ContextVar
from queue import SimpleQueue
from typing import Any, TypeVar

__all__ = ["MainThread", "waiting_main_thread"]

T = TypeVar("T")

waiting_main_thread: ContextVar[MainThread | None] = ContextVar("waiting_main_thread", default=None)
"""The main thread, if it is the one that waits for the Action being carried out."""


class MainThread:
    """One wait of the main thread."""

    def __init__(self) -> None:
        """Prepare the wait."""
        self._calls: SimpleQueue[Callable[[], None] | None] = SimpleQueue()

    def wait_for(
        self,
        submit: Callable[[Coroutine[Any, Any, T]], Future[T]],
        coroutine: Coroutine[Any, Any, T],
    ) -> T:
        """Run a coroutine on the runtime thread and wait for it here.

        Args:
            submit: Starts a coroutine on the runtime thread.
            coroutine: What to run; calls from within it reach this thread.

        Returns:
            What it returns.

        Raises:
            KeyboardInterrupt: The person interrupted; the coroutine is cancelled.
        """
        token = waiting_main_thread.set(self)
        try:
            future = submit(coroutine)
        finally:
            waiting_main_thread.reset(token)
        future.add_done_callback(lambda _: self._calls.put(None))
        try:
            while (call := self._calls.get()) is not None:
                call()
            return future.result()
        except KeyboardInterrupt:
            future.cancel()
            raise
        except CancelledError:
            raise KeyboardInterrupt from None

    def call(self, function: Callable[[], T]) -> Future[T]:
        """Have the waiting thread call something.

        Args:
            function: What to call.

        Returns:
            A future of its result.
        """
        future: Future[T] = Future()

        def run() -> None:
            try:
                future.set_result(function())
            except BaseException as problem:
                future.set_exception(problem)
                if isinstance(problem, KeyboardInterrupt):
                    raise

        self._calls.put(run)
        return future
