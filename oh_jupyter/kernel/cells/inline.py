"""Execution of a cell inside another one, on the main thread."""

from __future__ import annotations

import asyncio
import sys
import threading
from base64 import b64encode
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from functools import partial
from io import TextIOBase
from typing import Any, TypeVar

from IPython.core.displayhook import CapturingDisplayHook
from IPython.core.displaypub import CapturingDisplayPublisher
from IPython.core.interactiveshell import InteractiveShell

from oh_jupyter.background import start_timer
from oh_jupyter.cells import CellOutput
from oh_jupyter.cells.outputs import OutputCollector
from oh_jupyter.cells.request import pages_of
from oh_jupyter.kernel.cells.agent_outputs import (
    figures_as_png,
    is_silenced,
    without_output_history,
)
from oh_jupyter.kernel.cells.main_thread import CodeInterrupt

T = TypeVar("T")


def run_nested(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in a thread whose own loop may be running; an interrupt cancels it."""
    with _no_loop_running():
        loop = asyncio.new_event_loop()
        task = loop.create_task(coroutine)
        try:
            return loop.run_until_complete(task)
        except KeyboardInterrupt:
            raise KeyboardInterrupt from None  # without the loop's traceback
        finally:
            _end(loop)


def _end(loop: asyncio.AbstractEventLoop) -> None:
    """Cancel a coroutine's remaining tasks like ``asyncio.run``."""
    try:
        tasks = asyncio.all_tasks(loop)
        for task in tasks:
            task.cancel()
        if tasks:
            loop.run_until_complete(asyncio.wait(tasks))
        loop.run_until_complete(loop.shutdown_asyncgens())
    finally:
        loop.close()


@contextmanager
def _no_loop_running() -> Iterator[None]:
    """Hide this thread's running loop and task."""
    outer = asyncio._get_running_loop()
    if outer is None:
        yield
        return
    # Only newer versions of Python have one task per thread.
    swap = getattr(asyncio.tasks, "_swap_current_task", None)
    task = swap(outer, None) if swap is not None else None
    asyncio._set_running_loop(None)
    try:
        yield
    finally:
        asyncio._set_running_loop(outer)
        if swap is not None:
            swap(outer, task)


def run_inline(
    shell: InteractiveShell,
    code: str,
    timeout: float | None,
    silent: bool,
    outputs: OutputCollector,
    interrupt: CodeInterrupt,
    number: int | None = None,
) -> CellOutput:
    """Run a cell on this thread with a timeout, apart from the outer cell's outputs.

    With a ``number`` it is stored in the shell's history.
    """
    expired = threading.Event()
    timer = None
    with _captured(shell, code, outputs, stored=number is not None), _numbered(shell, number):
        try:
            if timeout is not None:
                expire = partial(_expire, expired, interrupt)
                timer = start_timer(timeout, expire, "oh-kernel-cell-timeout")
            with _pages(shell, outputs), interrupt.applied(shell):
                shell.run_cell(code, store_history=number is not None, silent=silent)
        except KeyboardInterrupt:
            if not expired.is_set():
                raise
        finally:
            if timer is not None:
                timer.cancel()
    if number is not None:
        outputs.execution_count = number
    return outputs.result(timed_out=expired.is_set())


def next_number(shell: InteractiveShell) -> int:
    """Return the first number that is not in the history.

    While a cell runs, the shell's own counter may be ahead by one (since IPython 9), and it does
    not count cells inside another one.
    """
    history: Any = shell.history_manager
    return len(history.input_hist_raw)


@contextmanager
def _numbered(shell: InteractiveShell, number: int | None) -> Iterator[None]:
    """Run a cell as ``number``; without one, keep its outputs out of the history."""
    if number is None:
        with without_output_history(shell):
            yield
        return
    outer, shell.execution_count = shell.execution_count, number
    try:
        yield
    finally:
        shell.execution_count = outer


@contextmanager
def _pages(shell: InteractiveShell, outputs: OutputCollector) -> Iterator[None]:
    """Add what a cell shows in the pager to its outputs, and not to those of the outer cell."""
    payloads: Any = getattr(shell, "payload_manager", None)
    if payloads is None:
        yield
        return
    outer = payloads.read_payload()
    payloads.clear_payload()
    try:
        yield
        for page in pages_of(payloads.read_payload()):
            outputs.add_display(page)
    finally:
        payloads.clear_payload()
        for payload in outer:
            payloads.write_payload(payload)


def _expire(expired: threading.Event, interrupt: CodeInterrupt) -> None:
    expired.set()
    interrupt.request()


class _Stream(TextIOBase):
    """Text stream that writes into the outputs."""

    def __init__(self, outputs: OutputCollector, name: str) -> None:
        self._outputs = outputs
        self._name = name

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self._outputs.add_stream(text, self._name)
        return len(text)


class _DisplayPublisher(CapturingDisplayPublisher):
    """Display publisher that publishes into the outputs."""

    def __init__(self, collected: OutputCollector) -> None:
        super().__init__()
        self._collected = collected

    def publish(
        self,
        data: dict[str, Any],
        metadata: Any = None,
        source: Any = None,
        *,
        transient: Any = None,
        update: bool = False,
        **kwargs: Any,
    ) -> None:
        display_id = (transient or {}).get("display_id")
        if update:
            self._collected.update_display(_as_json(data), display_id)
        else:
            self._collected.add_display(_as_json(data), display_id, metadata=metadata)

    def clear_output(self, wait: bool = False) -> None:
        self._collected.clear(wait)


class _ResultHook(CapturingDisplayHook):
    """Display hook that obeys ``;``, and puts a numbered cell's result into ``Out``."""

    def __init__(
        self, shell: InteractiveShell, code: str, outputs: OutputCollector, stored: bool
    ) -> None:
        super().__init__(shell=shell, outputs=_Results(outputs))
        self._code = code
        self._stored = stored

    def __call__(self, result: Any = None) -> None:
        if is_silenced(self.shell, self._code):
            return
        super().__call__(result)
        if self._stored and result is not None:
            self.shell.displayhook.update_user_ns(result)


class _Results(list[dict[str, Any]]):
    """List that the capturing display hook appends to."""

    def __init__(self, outputs: OutputCollector) -> None:
        super().__init__()
        self._outputs = outputs

    def append(self, result: dict[str, Any]) -> None:
        self._outputs.add_display(
            _as_json(result["data"]), metadata=result.get("metadata"), is_result=True
        )


def _as_json(data: dict[str, Any]) -> dict[str, Any]:
    """Encode the bytes of a MIME bundle like a kernel."""
    return {
        mime: b64encode(value).decode() if isinstance(value, bytes) else value
        for mime, value in data.items()
    }


@contextmanager
def _captured(
    shell: InteractiveShell, code: str, outputs: OutputCollector, stored: bool
) -> Iterator[None]:
    publisher, hook, runner = shell.display_pub, sys.displayhook, shell.loop_runner
    shell.display_pub = _DisplayPublisher(outputs)
    sys.displayhook = _ResultHook(shell, code, outputs, stored)
    # A kernel's shell would send the traceback to the outer cell, which nbclient and nbval
    # would report as failed.
    shell.loop_runner = run_nested
    shell.__dict__["_showtraceback"] = lambda etype, evalue, stb: outputs.add_error(
        stb, etype.__name__, str(evalue)
    )
    try:
        with (
            figures_as_png(shell),
            redirect_stdout(_Stream(outputs, "stdout")),
            redirect_stderr(_Stream(outputs, "stderr")),
        ):
            yield
    finally:
        shell.display_pub, sys.displayhook, shell.loop_runner = publisher, hook, runner
        del shell.__dict__["_showtraceback"]
