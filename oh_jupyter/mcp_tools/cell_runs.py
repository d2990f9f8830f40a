"""Runs of cells: their outputs are stored in the notebook, and seen while they run."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Any

from oh_jupyter.background import run_in_background
from oh_jupyter.errors import OhJupyterError
from oh_jupyter.mcp_tools.cell_views import IndexedCells, both_ends
from oh_jupyter.mcp_tools.cells import Cell, keep_out_fault, key_of, named, position, reference_of
from oh_jupyter.mcp_tools.kernel import CallActions, Kernel, current_actions
from oh_jupyter.mcp_tools.notebook_calls import (
    CELL,
    NOTEBOOK,
    NotebookCall,
    NotebookTools,
    on_notebook,
)
from oh_jupyter.mcp_tools.notebooks import Notebooks
from oh_jupyter.mcp_tools.results import (
    Result,
    as_one_text,
    cell_head,
    failure,
    kept_in,
    of_observation,
    raised,
    result,
    text,
)
from oh_jupyter.mcp_tools.run_queue import (
    BEGIN_SECONDS,
    Look,
    Run,
    RunningCell,
    RunQueue,
    output_so_far,
    running_in,
)
from oh_jupyter.mcp_tools.toolbox import McpTool, schema
from oh_jupyter.text import plural

CONTINUES = (
    "\n[It continues, and its outputs will be in the notebook. read_cells shows the output so far; "
    "kernel with command=interrupt stops it.]"
)
MAX_PROGRESS_CHARS = 2000  # characters shown of the output so far
MAX_RUN_CHARS = 600  # characters shown of each cell of a run of several


def run_tool(notebooks: Notebooks, kernel: Kernel) -> McpTool:
    """Return the tool that runs cells, for an agent of a kernel."""
    return McpTool(
        "run_cell",
        "Run a cell of a notebook, or all from cell to the cell to, until one fails. The outputs "
        "are stored in the notebook.",
        schema(
            "cell",
            notebook=NOTEBOOK,
            cell=CELL,
            to={**CELL, "description": "Last cell to run."},
            wait={
                "type": "number",
                "minimum": 0,
                "description": "Seconds to wait; then the run continues alone.",
            },
            timeout={
                "type": "number",
                "exclusiveMinimum": 0,
                "description": "Seconds until it is interrupted. Default: no limit.",
            },
        ),
        CellRuns(notebooks, kernel).run_cell,
        {"destructiveHint": True, "openWorldHint": True},
    )


class CellRuns(NotebookTools):
    """Runs of the cells of notebooks."""

    @on_notebook("write")
    async def run_cell(self, call: NotebookCall) -> Result:
        """Run cells and store their outputs."""
        arguments, cells = call.arguments, await call.document.cells()
        first = position(cells, arguments["cell"])
        if cells[first]["cell_type"] != "code" and "to" not in arguments:
            return failure(f"Cell {first} of {call.document.path} is not a code cell.")
        last = position(cells, arguments.get("to", first))
        if last < first:
            return failure(f"Cell {last} comes before cell {first}; nothing was run.")
        chosen = [
            (index, cells[index])
            for index in range(first, last + 1)
            if cells[index]["cell_type"] == "code" and "".join(cells[index]["source"]).strip()
        ]
        wait = arguments.get("wait")
        kernel = self.kernel.other(call.notebook.kernel_id or "")
        if wait is not None and "to" not in arguments:
            same = self._queue.of_cell(call.document.path, key_of(first, cells[first]))
            if same is not None:
                return await self._followed(call, same, wait, kernel)
        if "to" in arguments:
            run = Run([key_of(index, cell) for index, cell in chosen])
            work = self._in_turn(call, run, partial(self._run_all, call, chosen, run))
        else:
            run = Run([key_of(first, cells[first])])
            work = self._in_turn(call, run, partial(self._run_one, call, cells[first], first, run))
        if wait is None:
            return await work
        task = run_in_background(work)
        try:
            await asyncio.wait([task], timeout=wait)
        except asyncio.CancelledError:
            task.cancel()
            raise
        if task.done():
            outcome: Result = await task
            return outcome
        return await self._progress(call, run, kernel)

    @property
    def _queue(self) -> RunQueue:
        return self.notebooks.runs

    async def _in_turn(
        self, call: NotebookCall, run: Run, work: Callable[[], Awaitable[Result]]
    ) -> Result:
        """Do the work of a run when the earlier runs of the notebook have ended."""
        try:
            async with self._queue.turn(call.document.path, run, _begin_within(call)):
                done = await work()
                run.result = {**done, "content": as_one_text(done["content"])}
        except OhJupyterError as error:
            run.result = failure(str(error))
            raise
        return run.result

    async def _followed(
        self, call: NotebookCall, run: Run, wait_seconds: float, kernel: Kernel
    ) -> Result:
        """Wait for a cell that runs already; return its result, or the progress by then."""
        with suppress(TimeoutError):
            async with asyncio.timeout(wait_seconds):
                await run.ended.wait()
        if run.result is not None:
            return run.result
        return await self._progress(call, run, kernel)

    async def _progress(self, call: NotebookCall, run: Run, kernel: Kernel) -> Result:
        """Return the output so far of a run that continues, and where it is."""
        first = self._queue.runs(call.document.path)[:1]
        if first and first[0] is not run:
            shown = f"[It waits for another run of {call.document.path}, at {first[0].place}.]"
            return result(text(f"{shown}{CONTINUES}"))
        running = RunningCell(_look_at(kernel))
        progress = both_ends(await running.progress(), MAX_PROGRESS_CHARS)
        where = f"[At {run.place} of the run.]\n" if len(run.cells) > 1 else ""
        return result(text(f"{where}{progress}{CONTINUES}"))

    async def _run_all(self, call: NotebookCall, cells: IndexedCells, run: Run) -> Result:
        """Run cells until one fails; return what they print in short, and the error whole."""
        blocks: list[dict[str, Any]] = []
        cells = await _as_now(call, cells) if run.has_waited else cells
        for number, (index, cell) in enumerate(cells, 1):
            if run.is_stopped:
                left = f"Stopped: {number - 1} of {len(cells)} cells ran."
                return result(*blocks, text(left), is_error=True)
            run.number = number
            try:
                done = await self.run(call, cell, index)
            except OhJupyterError as error:
                done = failure(str(error))
            count = call.counts.get(key_of(index, cell))
            head = text(cell_head(index, cell, str(count or "")))
            if done["isError"]:
                left = f"{number - 1} of {len(cells)} cells ran before."
                return result(*blocks, head, *done["content"], text(left), is_error=True)
            blocks += [head, *_in_short(index, done["content"])]
        return result(*blocks, text(f"[Ran {plural(len(cells), 'cell')} of {call.document.path}.]"))

    async def _run_one(self, call: NotebookCall, cell: Cell, index: int, run: Run) -> Result:
        if run.is_stopped:
            return _interrupted(call)
        run.number = 1
        ((index, cell),) = (
            await _as_now(call, [(index, cell)]) if run.has_waited else [(index, cell)]
        )
        return await self.run(call, cell, index)

    async def run_alone(self, call: NotebookCall, cell: Cell, index: int) -> Result:
        """Run a cell when the earlier runs of the notebook have ended."""
        run = Run([key_of(index, cell)])
        return await self._in_turn(call, run, partial(self._run_one, call, cell, index, run))

    async def run(self, call: NotebookCall, cell: Cell, index: int) -> Result:
        """Run a cell and store its outputs."""
        notebook, document = call.notebook, call.document
        if notebook.kernel_id is None:
            return failure(
                f"{notebook.path} has no kernel: it is not open. Ask the person to open it, or "
                "start one with kernel and command=start."
            )
        if fault := keep_out_fault(index, cell):
            return failure(fault)
        ours = notebook.kernel_id == self.kernel.kernel_id
        if not ours and not await call.caller.allowed("execute", "kernels"):
            return failure(f"You may not run code in the kernel of {notebook.path}.")
        args = {"code": "".join(cell["source"]), "include_extra": False}
        kernel = self.kernel.other(notebook.kernel_id)
        look = _look_at(kernel)
        request = asyncio.ensure_future(
            kernel.run_cell(
                args,
                call.arguments.get("timeout"),
                begin_within=_begin_within(call),
                store_history=True,
            )
        )
        self.notebooks.running.begin(document.path, key_of(index, cell), look, request)
        try:
            done = await request
        except asyncio.CancelledError:
            if (task := asyncio.current_task()) is None or task.cancelling():
                raise
            return _interrupted(call)
        finally:
            self.notebooks.running.end(document.path, key_of(index, cell))
        shown = of_observation(done.observation)
        if shown["isError"]:  # it did not run
            return shown
        outputs, count = done.outputs, done.execution_count
        call.counts[key_of(index, cell)] = count
        number = "" if count is None else f" as [{count}]"
        ran = f"Ran {named(index, cell)} of {document.path}{number}"
        file, failed = kept_in(done.file), raised(outputs)
        await self.announce(call)
        try:
            await document.set_outputs(
                reference_of(await document.cells(), cell, index), outputs, count
            )
        except OhJupyterError as error:
            ran, failed = f"{ran}, but the notebook lacks its outputs: {error}", True
        finally:
            await self.finish(call)
        ran = ran if ran.endswith(".") else f"{ran}."
        return result(*shown["content"], file, text(f"[{ran}]"), is_error=failed)


def _begin_within(call: NotebookCall) -> float | None:
    """Return the time in which a run must begin, None if its agent chose how long it waits."""
    chosen = call.arguments.keys() & {"wait", "timeout"}
    return None if chosen else BEGIN_SECONDS


async def _as_now(call: NotebookCall, cells: IndexedCells) -> IndexedCells:
    """Return the current texts and positions of cells; raise WireError if one is gone."""
    now = await call.document.cells()
    indices = [position(now, reference_of(now, cell, index)) for index, cell in cells]
    return [(index, now[index]) for index in indices]


def _in_short(index: int, blocks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what a cell of a run printed, shortened, with its pictures."""
    whole = "".join(block.get("text", "") for block in blocks[:-1]).strip()
    shown = both_ends(whole, MAX_RUN_CHARS)
    if shown != whole:
        shown += f"\n[read_cells with start={index} and end={index + 1} shows more.]"
    pictures = [block for block in blocks if block["type"] == "image"]
    return [*([text(shown)] if shown else []), *pictures]


def _interrupted(call: NotebookCall) -> Result:
    return failure(f"{call.notebook.path} was interrupted before the cell began.")


def _look_at(kernel: Kernel) -> Look:
    """Return a function that looks at the Action of the current call, a run in a kernel."""
    actions = current_actions.get() or CallActions()

    async def look() -> tuple[str, str]:
        if actions.current is None:
            return "queued", ""
        state, last_lines = await actions.current.look()
        cell = await running_in(kernel) if state == "running" else None
        is_agents = cell is not None and cell.by == "agent"
        return state, output_so_far(cell) if cell and is_agents else last_lines

    return look
