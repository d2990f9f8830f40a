"""Cells that agents run, with their output so far."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from oh_jupyter.errors import OhJupyterError
from oh_jupyter.mcp_tools.kernel import Kernel
from oh_jupyter.operations import kernel as operations

Look = Callable[[], Awaitable[tuple[str, str]]]
"""Returns the state of a run, such as waiting, and its output so far."""

_STATES = {"waiting": "Waits for a person's approval", "queued": "Waits for another cell"}


@dataclass(frozen=True)
class RunningCell:
    """A run of one or more cells in progress, with the request to its kernel."""

    look: Look
    request: asyncio.Future[Any] | None = None
    started: float = field(default_factory=time.monotonic)

    async def progress(self) -> str:
        """Return its output so far, its state, and how long it has been running."""
        state, output = await self.look()
        seconds = time.monotonic() - self.started
        head = f"[{_STATES.get(state, 'Running')} for {seconds:.0f} s]"
        return f"{output}\n{head}" if output else head


@dataclass(frozen=True)
class RunningCells:
    """The cells that agents run, by path of the notebook and id or position of the cell."""

    _cells: dict[tuple[str, str], RunningCell] = field(default_factory=dict)

    def begin(self, path: str, cell: str, look: Look, request: asyncio.Future[Any]) -> None:
        """Record the request to run a cell."""
        self._cells[path, cell] = RunningCell(look, request)

    def end(self, path: str, cell: str) -> None:
        """Record the end of a run."""
        self._cells.pop((path, cell), None)

    async def withdraw(self, path: str) -> int:
        """Cancel the requests of a notebook's cells that have not started; return their number."""
        count = 0
        for running in [each for (of, _), each in self._cells.items() if of == path]:
            state, _ = await running.look()
            if state == "queued" and running.request is not None:
                count += running.request.cancel()
        return count

    async def progress(self, path: str, cell: str) -> str:
        """Return the progress of a cell, or "" if no agent runs it."""
        running = self._cells.get((path, cell))
        return "" if running is None else await running.progress()


async def running_in(kernel: Kernel) -> dict[str, Any] | None:
    """Return the cell that a kernel executes, as far as it says so."""
    with suppress(OhJupyterError):
        cell: dict[str, Any] | None = await kernel.ask(operations.RunningCell(), load=False)
        return cell
    return None


def output_so_far(cell: dict[str, Any]) -> str:
    """Return the output so far of a running cell, and where the rest of it is."""
    lines = [cell["output"]] if cell["output"] else []
    if cell["file"]:
        lines.append(f"[The output so far is in {cell['file']}: open parts of it with read.]")
    return "\n".join(lines)
