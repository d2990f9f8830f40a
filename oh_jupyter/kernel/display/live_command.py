"""Output of a command or a cell while a magic waits for it.

It is shown in one place that is rewritten, so that progress bars do not flood the cell, and is gone
before the magic returns the Observation, whose display has the whole output.
"""

from __future__ import annotations

import asyncio
import shutil
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol, TextIO

from IPython.core.interactiveshell import InteractiveShell
from wcwidth import wcswidth

from oh_jupyter.background import wait_while
from oh_jupyter.events import Action
from oh_jupyter.kernel.display.live import (
    NOTICE_DELAY_SECONDS,
    UPDATE_INTERVAL_SECONDS,
    RunningCellDisplay,
)
from oh_jupyter.runtime import Runtime
from oh_jupyter.runtime.progress import ActionProgress

LOOK_SECONDS = 60.0
"""Longest wait for news in one look at an Action."""


class _Region(Protocol):
    """Display of the output so far."""

    def show(self, text: str) -> None:
        """Show a text in place of the last one."""

    def remove(self) -> None:
        """Remove the text."""


class _CellRegion:
    """An output of the running cell of a notebook."""

    def __init__(self, display: RunningCellDisplay) -> None:
        self._display = display

    def show(self, text: str) -> None:
        """Show a text in place of the last one."""
        self._display.show({"text/plain": text})

    def remove(self) -> None:
        """Remove the text."""
        self._display.remove()


class _TerminalRegion:
    """The last lines of a terminal."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._shown_lines = 0

    def show(self, text: str) -> None:
        """Show a text in place of the last one, as much as fits into the terminal."""
        columns, rows = shutil.get_terminal_size()
        lines = [_fitting(line, columns - 1) for line in text.split("\n")[-(rows - 2) :]]
        self._write("".join(f"{line}\n" for line in lines))
        self._shown_lines = len(lines)

    def remove(self) -> None:
        """Remove the text."""
        if self._shown_lines:
            self._write("")
            self._shown_lines = 0

    def _write(self, text: str) -> None:
        back = f"\x1b[{self._shown_lines}F\x1b[J" if self._shown_lines else ""
        self._stream.write(back + text)
        self._stream.flush()


def _fitting(line: str, columns: int) -> str:
    """Return the start of a line that fits into the columns of a terminal."""
    line = line.expandtabs()[:columns]
    while wcswidth(line) > columns:
        line = line[:-1]
    return line


class _Follower:
    """Shows an Action's output so far, until it is stopped."""

    def __init__(self, region: _Region, runtime: Runtime, action: Action) -> None:
        self._region = region
        self._running = runtime.executor.running
        self._action = action
        self._lock = threading.Lock()
        self._is_stopped = False

    async def follow(self) -> None:
        """Show the output until the end, unless a frontend shows it elsewhere."""
        await wait_while(self._running.on_begin, lambda: self._state is None, LOOK_SECONDS)
        if (state := self._state) is None:
            return
        # Most commands end before, and a frontend that shows the output has asked for it.
        await wait_while(state.on_change, lambda: True, NOTICE_DELAY_SECONDS)
        seen: dict[str, str] | None = None
        while self._state is not None and not state.is_followed and not self._is_stopped:
            seen = await self._running.look(self._action.id, seen, LOOK_SECONDS)
            if not state.is_followed:
                self._show(seen["text"])
                await asyncio.sleep(UPDATE_INTERVAL_SECONDS)
        self.stop()

    @property
    def _state(self) -> ActionProgress | None:
        return None if self._action.id is None else self._running.get(self._action.id)

    def _show(self, text: str) -> None:
        with self._lock:
            if text and not self._is_stopped:
                self._region.show(text)

    def stop(self) -> None:
        """Remove the output."""
        with self._lock:
            if not self._is_stopped:
                self._region.remove()
            self._is_stopped = True


@contextmanager
def live_output(shell: InteractiveShell, runtime: Runtime, action: Action) -> Iterator[None]:
    """Show the output so far of an Action of the running cell, where a person can see it."""
    region = _region(shell)
    if region is None:
        yield
        return
    follower = _Follower(region, runtime, action)
    following = runtime.submit(follower.follow())
    try:
        yield
    finally:
        follower.stop()
        following.cancel()


def _region(shell: InteractiveShell) -> _Region | None:
    if getattr(shell, "kernel", None) is not None:
        display = RunningCellDisplay(shell)
        return _CellRegion(display) if display.watched and display.is_of_notebook else None
    stream = sys.__stdout__
    is_terminal = stream is not None and sys.stdout is stream and stream.isatty()
    return _TerminalRegion(sys.stdout) if is_terminal else None
