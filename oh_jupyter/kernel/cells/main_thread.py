"""The main thread: its wait for the runtime, during which it runs calls, and its interrupts.

A magic blocks the main thread until its Action is done. Cells need that thread: a cell that belongs
to the Action, but also one of an agent that the person started with ``%oh_run``, which would
otherwise wait for the magic that waits for the agent. So the wait is a loop that runs calls.

An interrupt is for the code of a cell only. Before the code run our own preparations, which a
KeyboardInterrupt would leave half done, and the callbacks of IPython's events, which catch it: the
cell would run on. Afterwards, ipykernel would send no reply.
"""

from __future__ import annotations

import ast
import contextlib
import signal
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import CancelledError, Future
from contextlib import contextmanager, suppress
from queue import Empty, SimpleQueue
from typing import Any, Generic, TypeVar

from oh_jupyter.errors import RuntimeClosedError


def interrupt_main_thread() -> None:
    """Raise KeyboardInterrupt in the main thread only; shell and browser are unaffected."""
    ident = threading.main_thread().ident
    if sys.platform == "win32" or ident is None:
        import _thread

        _thread.interrupt_main()
    else:
        signal.pthread_kill(ident, signal.SIGINT)


T = TypeVar("T")

SIGNAL_CHECK_SECONDS = 0.25

_waits: list[MainThreadWait] = []
"""Waits of the main thread, the innermost one last."""


class MainThreadCall(Generic[T]):
    """A call for the waiting main thread; ``future`` has its result."""

    def __init__(
        self, function: Callable[[], T], interrupt: Callable[[], object] = interrupt_main_thread
    ) -> None:
        self.future: Future[T] = Future()
        self._function = function
        self._interrupt = interrupt
        self._lock = threading.Lock()
        self._runs = self._cancelled = False

    def run(self) -> None:
        """Run the call on the main thread; a person's KeyboardInterrupt also propagates."""
        try:
            with self._lock:
                self._runs = self.future.set_running_or_notify_cancel()
            if not self._runs:
                return
            try:
                result = self._function()
            finally:
                with self._lock:
                    self._runs = False
        except KeyboardInterrupt as error:
            self.future.set_exception(error)
            if not self._cancelled:
                raise
        except BaseException as error:
            self.future.set_exception(error)
        else:
            self.future.set_result(result)

    def cancel(self) -> None:
        """Interrupt only this call if it runs; otherwise prevent it from starting."""
        with self._lock:
            self._cancelled = True
            if self._runs:
                self._interrupt()
            self.future.cancel()

    def withdraw(self) -> bool:
        """Keep this call from starting; return False if it has."""
        with self._lock:
            return not self._runs and self.future.cancel()


def _interruptible() -> Any:
    """Make SIGINT raise KeyboardInterrupt; return the previous handler, or None if unchanged."""
    if threading.current_thread() is not threading.main_thread():
        return None
    previous = signal.getsignal(signal.SIGINT)
    if previous is signal.default_int_handler:
        return None
    signal.signal(signal.SIGINT, signal.default_int_handler)
    return previous


class MainThreadWait:
    """A wait of the main thread, during which it runs calls."""

    def __init__(self) -> None:
        self._calls: SimpleQueue[MainThreadCall[Any] | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._over = False

    @staticmethod
    def current() -> MainThreadWait | None:
        """Return the main thread's innermost wait, or None."""
        try:
            return _waits[-1]
        except IndexError:
            return None

    def wait_for(
        self,
        submit: Callable[[Coroutine[Any, Any, T]], Future[T]],
        coroutine: Coroutine[Any, Any, T],
    ) -> T:
        """Run a coroutine with ``submit`` and wait for it; a KeyboardInterrupt cancels it."""
        _waits.append(self)
        previous = _interruptible()
        try:
            future = submit(coroutine)
            try:
                future.add_done_callback(lambda _: self._calls.put(None))
                while (call := self._next_call()) is not None:
                    call.run()
                return future.result()
            except KeyboardInterrupt:
                future.cancel()
                raise
            except CancelledError:
                raise KeyboardInterrupt from None
        finally:
            if previous is not None:
                signal.signal(signal.SIGINT, previous)
            _waits.remove(self)
            self._end()

    def _next_call(self) -> MainThreadCall[Any] | None:
        """Wait for a call; return None at the end of the wait."""
        while True:
            # Without a timeout, interrupts go unnoticed on Windows, and wherever the system
            # sends the signal to another thread.
            with contextlib.suppress(Empty):
                return self._calls.get(timeout=SIGNAL_CHECK_SECONDS)

    def _end(self) -> None:
        """Reject late calls, whose callers then take another route."""
        with self._lock:
            self._over = True
        while not self._calls.empty():
            call = self._calls.get()
            if call is not None and call.future.set_running_or_notify_cancel():
                call.future.set_exception(RuntimeClosedError("The wait is over"))

    def call(
        self, function: Callable[[], T], interrupt: Callable[[], object] = interrupt_main_thread
    ) -> MainThreadCall[T]:
        """Run a function in the waiting thread; RuntimeClosedError if the wait is over.

        ``interrupt`` interrupts the function when its call is cancelled.
        """
        call = MainThreadCall(function, interrupt)
        with self._lock:
            if not self._over:
                self._calls.put(call)
                return call
        call.future.set_exception(RuntimeClosedError("The wait is over"))
        return call


_INTERRUPTED = "raise KeyboardInterrupt"


class CodeInterrupt:
    """Interrupts the code of a cell on the main thread, or keeps it from beginning."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_running = self._is_requested = False

    def request(self) -> None:
        """Interrupt the code now, or as soon as it begins; do nothing after its end."""
        with self._lock:
            self._is_requested = True
            if self._is_running:
                interrupt_main_thread()

    @contextmanager
    def applied(self, shell: Any) -> Iterator[None]:
        """Apply requests to the next cell of a shell."""
        outer = shell.__dict__.get("run_ast_nodes")
        run_nodes = shell.run_ast_nodes

        async def run(nodes: list[ast.stmt], *args: Any, **options: Any) -> Any:
            is_nested = self._is_running
            if is_nested or threading.current_thread() is not threading.main_thread():
                return await run_nodes(nodes, *args, **options)
            if self._begin():
                nodes = ast.parse(_INTERRUPTED).body
            try:
                return await run_nodes(nodes, *args, **options)
            finally:
                self._end()

        shell.run_ast_nodes = run
        try:
            yield
        finally:
            if outer is None:
                shell.__dict__.pop("run_ast_nodes", None)
            else:
                shell.run_ast_nodes = outer

    def _begin(self) -> bool:
        """Note that the code runs; return whether it must not."""
        with self._lock:
            self._is_running = not self._is_requested
            return self._is_requested

    def _end(self) -> None:
        """Note the end of the code, and wait for a signal on its way."""
        with self._lock:
            self._is_running = False
            is_requested = self._is_requested
        if is_requested:
            with suppress(KeyboardInterrupt):
                time.sleep(0)  # a system call, after which a sent signal has arrived
