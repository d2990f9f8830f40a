"""Runs of cells: a queue for each notebook, and the output so far of what runs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from oh_jupyter.errors import OhJupyterError, PluginError
from oh_jupyter.mcp_tools.kernel import Kernel
from oh_jupyter.mcp_tools.results import Result
from oh_jupyter.operations import kernel as operations

BEGIN_SECONDS = 30.0
"""Time in which a cell must begin, or an agent has its turn back; see ``RUN_REPORT_SECONDS``."""


@dataclass(eq=False)
class Run:
    """A run of one or more cells of a notebook.

    Attributes:
        cells: What identifies the cells, in order.
        number: Number of the cell that runs, from 1; 0 before the first.
        has_waited: Whether another run was in progress first.
        is_stopped: Whether no further cell may start.
        result: Its result, once it has ended.
        ended: Set at the end.
    """

    cells: Sequence[str]
    number: int = 0
    has_waited: bool = False
    is_stopped: bool = False
    result: Result | None = None
    started: float = field(default_factory=time.monotonic)
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def place(self) -> str:
        """Its position, such as "cell 87 of 149"."""
        return f"cell {max(self.number, 1)} of {len(self.cells)}"

    @property
    def seconds(self) -> int:
        """Seconds since it was asked for."""
        return round(time.monotonic() - self.started)


class RunQueue:
    """Runs by the path of their notebook; the first of each list is in progress."""

    def __init__(self) -> None:
        self._runs: dict[str, list[Run]] = {}

    def runs(self, path: str) -> Sequence[Run]:
        """Return the runs of a notebook, the one in progress first."""
        return self._runs.get(path, ())

    def of_cell(self, path: str, cell: str) -> Run | None:
        """Return the run of one cell alone that is in progress or waits, or None."""
        return next((run for run in self.runs(path) if list(run.cells) == [cell]), None)

    @asynccontextmanager
    async def turn(
        self, path: str, run: Run, begin_within: float | None = None
    ) -> AsyncIterator[None]:
        """Wait for the earlier runs of a notebook; later ones wait for this one.

        Raises PluginError if it is not its turn in time.
        """
        runs = self._runs.setdefault(path, [])
        runs.append(run)
        try:
            try:
                async with asyncio.timeout(begin_within):
                    while runs[0] is not run:
                        run.has_waited = True
                        await runs[0].ended.wait()
            except TimeoutError:
                raise PluginError(
                    f"It did not begin within {begin_within:g} s and was withdrawn: it will not "
                    f"run. Another run of {path} is at {runs[0].place}, for {runs[0].seconds} s. "
                    "Call run_cell again to wait again, or with wait to leave it in the queue; "
                    "kernel with command=interrupt stops the other run"
                ) from None
            yield
        finally:
            runs.remove(run)
            run.ended.set()
            if not runs:
                del self._runs[path]

    def stop(self, path: str) -> int:
        """Let no further cell of a notebook start; return how many that concerns."""
        runs = self.runs(path)
        waiting = sum(len(run.cells) - run.number for run in runs if not run.is_stopped)
        for run in runs:
            run.is_stopped = True
        return waiting


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


async def running_in(kernel: Kernel) -> operations.CellInProgress | None:
    """Return the cell that a kernel executes, as far as it says so."""
    with suppress(OhJupyterError):
        return await kernel.ask(operations.RunningCell(), load=False)
    return None


def output_so_far(cell: operations.CellInProgress) -> str:
    """Return the output so far of a running cell, and where the rest of it is."""
    lines = [cell.output] if cell.output else []
    if cell.file:
        lines.append(f"[The output so far is in {cell.file}: open parts of it with read.]")
    return "\n".join(lines)
