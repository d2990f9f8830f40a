"""The one thread that owns the runtime, with an asyncio loop of its own.

Cells may keep the kernel's main thread busy for hours; what people and agents ask for
meanwhile happens here.
"""

from __future__ import annotations

import asyncio
import threading
import uuid
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

from oh_jupyter.errors import RuntimeClosedError

__all__ = ["RuntimeThread"]

T = TypeVar("T")


class RuntimeThread:
    """A daemon thread that runs an asyncio loop until it is closed.

    Attributes:
        generation: Id of this runtime. Another one later means that its state was lost.
        loop: The loop; coroutines reach it by ``submit``.
    """

    def __init__(self, name: str = "oh_jupyter") -> None:
        self.generation = uuid.uuid4().hex
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        exempt_from_debugger(self._thread)
        self._closed = False
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_forever()
        finally:
            self.loop.close()

    def submit(self, coroutine: Coroutine[Any, Any, T]) -> Future[T]:
        """Start a coroutine on the loop, from any thread; cancelling the future cancels it.

        Context variables of the caller are visible in it. A RuntimeClosedError if the thread
        was closed.
        """
        if self._closed:
            coroutine.close()
            raise RuntimeClosedError(
                "The runtime was closed. Load it again with %reload_ext oh_jupyter"
            )
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop)

    def close(self) -> None:
        """Cancel what is running, stop the loop and join the thread. May be repeated."""
        if self._closed:
            return
        self._closed = True
        asyncio.run_coroutine_threadsafe(self._stop(), self.loop)
        if threading.current_thread() is not self._thread:
            self._thread.join(timeout=10)

    async def _stop(self) -> None:
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.loop.shutdown_default_executor()
        self.loop.call_soon(self.loop.stop)


def exempt_from_debugger(thread: threading.Thread) -> None:
    """Keep a thread running at breakpoints, as ipykernel does its own; call it before the start."""
    thread.pydev_do_not_trace = True  # type: ignore[attr-defined]
    thread.is_pydev_daemon_thread = True  # type: ignore[attr-defined]
