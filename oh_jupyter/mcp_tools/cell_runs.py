"""Runs of cells: their outputs are stored in the notebook, and seen while they run."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine

from oh_jupyter.background import run_in_background
from oh_jupyter.mcp_tools.cell_views import IndexedCells, both_ends
from oh_jupyter.mcp_tools.cells import Cell, keep_out_fault, key_of, named, position
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
    failure,
    kept_in,
    of_observation,
    raised,
    result,
    text,
)
from oh_jupyter.mcp_tools.running_cells import Look, RunningCell, output_so_far, running_in
from oh_jupyter.mcp_tools.toolbox import McpTool, schema
from oh_jupyter.plural import plural

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
        "Run a cell of a notebook, or all from cell to the cell to, until one fails. The "
        "person sees it run, and the outputs are stored in the notebook.",
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
        if "to" in arguments:
            work = self._run_all(call, chosen)
        else:
            work = self.run(call, cells[first], first)
        kernel = self.kernel.other(call.notebook.kernel_id or "")
        return await _within(arguments.get("wait"), work, kernel)

    async def _run_all(self, call: NotebookCall, cells: IndexedCells) -> Result:
        """Run cells until one fails; return what they print in short, and the error whole."""
        lines: list[str] = []
        for number, (index, cell) in enumerate(cells, 1):
            done = await self.run(call, cell, index)
            shown = "".join(block.get("text", "") for block in done["content"]).strip()
            if done["isError"]:
                left = f"{number - 1} of {len(cells)} cells ran before."
                return {**done, "content": [*map(text, lines), *done["content"], text(left)]}
            head = shown[:MAX_RUN_CHARS].strip()
            lines.append(f"{head}{' [...]' if len(shown) > MAX_RUN_CHARS else ''}\n")
        return result(
            *map(text, lines), text(f"[Ran {plural(len(cells), 'cell')} of {call.document.path}.]")
        )

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
        self.notebooks.running.begin(document.path, key_of(index, cell), look)
        try:
            done = await kernel.run_cell(args, call.arguments.get("timeout"), store_history=True)
        finally:
            self.notebooks.running.end(document.path, key_of(index, cell))
        shown = of_observation(done["observation"])
        if shown["isError"]:  # it did not run
            return shown
        outputs, count = done["outputs"], done["execution_count"]
        await document.set_outputs(cell.get("id") or index, outputs, count)
        number = "" if count is None else f" as [{count}]"
        ran = f"[Ran {named(index, cell)} of {document.path}{number}.]"
        file = kept_in(done.get("file", ""))
        return result(*shown["content"], file, text(ran), is_error=raised(outputs))


def _look_at(kernel: Kernel) -> Look:
    """Return a function that looks at the Action of the current call, a run in a kernel."""
    actions = current_actions.get() or CallActions()

    async def look() -> tuple[str, str]:
        if actions.current is None:
            return "queued", ""
        state, last_lines = await actions.current.look()
        cell = await running_in(kernel) if state == "running" else None
        is_agents = cell is not None and cell["by"] == "agent"
        return state, output_so_far(cell) if cell and is_agents else last_lines

    return look


async def _within(
    wait_seconds: float | None, work: Coroutine[None, None, Result], kernel: Kernel
) -> Result:
    """Return the result of runs, or after ``wait_seconds`` their progress while they continue."""
    if wait_seconds is None:
        return await work
    running = RunningCell(_look_at(kernel))
    task = run_in_background(work)
    try:
        await asyncio.wait([task], timeout=wait_seconds)
    except asyncio.CancelledError:
        task.cancel()
        raise
    if task.done():
        outcome: Result = await task
        return outcome
    progress = both_ends(await running.progress(), MAX_PROGRESS_CHARS)
    return result(text(f"{progress}{CONTINUES}"))
