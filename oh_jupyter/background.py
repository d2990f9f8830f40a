"""Background work: tasks that nobody awaits, threads with or without a loop, watchers."""

from __future__ import annotations

import asyncio
import logging
import math
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Generic, ParamSpec, TypeVar

T = TypeVar("T")
P = ParamSpec("P")
logger = logging.getLogger(__name__)

_tasks: set[asyncio.Task[Any]] = set()
"""Strong references: an asyncio loop holds its tasks weakly."""


def run_in_background(work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
    """Start a task whose failure is only logged for debugging."""
    task = asyncio.get_running_loop().create_task(work)
    _tasks.add(task)
    task.add_done_callback(_ended)
    return task


def _ended(task: asyncio.Task[Any]) -> None:
    _tasks.discard(task)
    if not task.cancelled() and task.exception() is not None:
        logger.debug("A background task failed: %s", task.exception())


class Watchers(Generic[P]):
    """Callbacks, called on the thread of the event."""

    def __init__(self) -> None:
        self._callbacks: list[Callable[P, object]] = []

    def add(self, callback: Callable[P, object]) -> Callable[[], None]:
        """Add a callback; return a function that removes it."""
        self._callbacks.append(callback)
        return lambda: self._callbacks.remove(callback)

    def tell(self, *args: P.args, **kwargs: P.kwargs) -> None:
        """Call all callbacks."""
        for callback in list(self._callbacks):
            callback(*args, **kwargs)


async def wait_while(
    subscribe: Callable[[Any], Callable[[], object]],
    is_old: Callable[[], bool],
    timeout_seconds: float,
) -> None:
    """Wait until something has changed or the time is over; any thread may notify."""
    loop, changed = asyncio.get_running_loop(), asyncio.Event()
    unsubscribe = subscribe(lambda *_: loop.call_soon_threadsafe(changed.set))
    try:
        async with asyncio.timeout(timeout_seconds):
            while is_old():
                await changed.wait()
                changed.clear()
    except TimeoutError:
        pass
    finally:
        unsubscribe()


def exempt_from_debugger(thread: threading.Thread) -> None:
    """Keep a thread running at breakpoints, like ipykernel's own; call it before the start."""
    thread.pydev_do_not_trace = True  # type: ignore[attr-defined]
    thread.is_pydev_daemon_thread = True  # type: ignore[attr-defined]


def threads_have_ended() -> bool:
    """Return whether Python is past its exit handlers, where other threads never run again.

    A ``__del__`` or a weak reference's callback that waits for one would wait forever. Processes of
    ``oh_jupyter.process`` end with this one.
    """
    return sys.is_finalizing()


def start_thread(target: Callable[..., object], name: str, *args: Any) -> threading.Thread:
    """Start a daemon thread that keeps running when a debugger stops all others.

    Raises RuntimeError if Python is exiting.
    """
    if threads_have_ended():  # some versions of Python would wait for its start
        raise RuntimeError("Python is exiting")
    thread = threading.Thread(target=target, name=name, args=args, daemon=True)
    exempt_from_debugger(thread)
    thread.start()
    return thread


def start_timer(seconds: float, callback: Callable[[], object], name: str) -> threading.Timer:
    """Start a daemon timer; ``cancel`` it to keep it from calling back."""
    timer = threading.Timer(seconds, callback)
    timer.name, timer.daemon = name, True
    exempt_from_debugger(timer)
    timer.start()
    return timer


def thread_pool(max_workers: int, name: str) -> ThreadPoolExecutor:
    """Return a pool of threads that a debugger leaves alone."""
    return ThreadPoolExecutor(
        max_workers, name, initializer=lambda: exempt_from_debugger(threading.current_thread())
    )


def try_start_thread(
    target: Callable[..., object], name: str, *args: Any
) -> threading.Thread | None:
    """Start a daemon thread, or return None: Python 3.12 cannot start one at exit."""
    try:
        return start_thread(target, name, *args)
    except RuntimeError:
        return None


class QueueThread(ABC):
    """A daemon thread that processes a queue; the first item starts it.

    If no thread runs, as at exit, `_wait_for` does the work.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    @abstractmethod
    def _has_work(self) -> bool:
        """Return whether the queue has an item; ``_changed`` is held."""

    @abstractmethod
    def _work(self) -> None:
        """Process one item."""

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._has_work() or self._stopped())
                if self._stopped():
                    return
            self._work()

    def _wait_for(self, is_done: Callable[[], bool], timeout_seconds: float | None) -> bool:
        """Wait until a condition holds; return False after the timeout."""
        with self._changed:
            if is_done() or (self._thread is not None and not threads_have_ended()):
                return self._changed.wait_for(is_done, timeout_seconds)
        deadline = time.monotonic() + (math.inf if timeout_seconds is None else timeout_seconds)
        while self._has_work() and not is_done() and time.monotonic() < deadline:
            self._work()
        return is_done()

    def _wake(self) -> None:
        """Notify the thread and its waiters of a change; ``_changed`` is held."""
        if self._thread is None:
            self._thread = try_start_thread(self._run, self._name)
        self._changed.notify_all()

    def _stopped(self) -> bool:
        return self._thread is not threading.current_thread()

    def stop(self) -> None:
        """Stop the thread after its current item. A later item starts it again."""
        with self._changed:
            self._thread = None
            self._changed.notify_all()


class LoopThread:
    """A daemon thread that runs an asyncio loop until it is stopped."""

    def __init__(self, name: str) -> None:
        if threads_have_ended():
            raise RuntimeError("Python is exiting")
        self.loop = asyncio.new_event_loop()
        self._thread = start_thread(self._run, name)

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_forever()
        finally:
            self.loop.close()

    def submit(self, coroutine: Coroutine[Any, Any, T]) -> Future[T]:
        """Start a coroutine on the loop from any thread, with the caller's context variables.

        Cancelling the future cancels it. Raises RuntimeError if the thread has ended with Python.
        """
        if threads_have_ended():
            coroutine.close()
            raise RuntimeError("Python is exiting")
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop)

    def stop(self) -> None:
        """Stop the loop and wait for the thread."""
        if threads_have_ended():
            return
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.join()

    def join(self, timeout_seconds: float | None = None) -> None:
        """Wait for the end of the loop, unless this is its thread, or that ended with Python."""
        if not threads_have_ended() and threading.current_thread() is not self._thread:
            self._thread.join(timeout_seconds)
