"""Threads of the shell, and an event loop in one for those who call from plain threads."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from oh_jupyter.errors import ShellError

__all__ = ["LoopThread", "call_on", "start_thread"]

T = TypeVar("T")


def start_thread(target: Callable[[], None], name: str) -> threading.Thread:
    """Start a daemon thread that a debugger leaves alone when it stops all others."""
    thread = threading.Thread(target=target, name=name, daemon=True)
    thread.pydev_do_not_trace = True  # type: ignore[attr-defined]
    thread.is_pydev_daemon_thread = True  # type: ignore[attr-defined]
    thread.start()
    return thread


class LoopThread:
    """Runs an event loop in a daemon thread until it is stopped."""

    def __init__(self, name: str) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = start_thread(self._run, name)

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_forever()
        finally:
            self.loop.close()

    def call(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the loop and wait for its result."""
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result()

    def stop(self) -> None:
        """Stop the loop and wait for the thread."""
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()


def call_on(
    loop: asyncio.AbstractEventLoop | None, coroutine: Coroutine[Any, Any, T], *, is_ours: bool
) -> T:
    """Run a coroutine on a loop from another thread, and wait for its result (ShellError)."""
    if loop is None or loop.is_closed() or (not is_ours and not loop.is_running()):
        coroutine.close()
        raise ShellError(
            "The shell session is not running: call initialize() first, and keep its event "
            "loop running."
        )
    try:
        running = asyncio.get_running_loop()
    except RuntimeError:
        running = None
    if running is loop:
        coroutine.close()
        raise ShellError(
            "This would block the event loop that the shell works on: "
            "await the method whose name ends in _async instead."
        )
    return asyncio.run_coroutine_threadsafe(coroutine, loop).result()
