"""Plugin for ``run_ipython``: cells in a kernel, with the footers of OpenHands' protocol."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from oh_jupyter.cells import CellOutput, CellRunner, captured_outputs
from oh_jupyter.cells.outputs import truncate_middle
from oh_jupyter.cells.request import begin_within, cell_trace
from oh_jupyter.config import OUTPUT_LIMIT
from oh_jupyter.errors import PluginError
from oh_jupyter.events import IPythonRunCellAction, IPythonRunCellObservation
from oh_jupyter.plugins.base import Plugin, PluginRequirement
from oh_jupyter.trace_context import trace_of

if TYPE_CHECKING:
    from oh_jupyter.cells.remote import RemoteKernel
    from oh_jupyter.cells.subprocess_kernel import SubprocessKernel


MAX_LATE_CHARS = 4000
"""Characters shown of what threads print while no cell of the agent runs."""
HOW_TO_END = (
    "An interrupt of the kernel stops it (MCP: kernel with command=interrupt), or else a restart, "
    "which loses all variables (command=restart)"
)
"""What to do about a cell that holds the kernel."""
HOW_TO_WAIT = (
    "Call again to wait again, or with a timeout to wait that long. The tool kernel shows the "
    "running cell with command=status, and interrupts it with command=interrupt; the other tools "
    "work meanwhile"
)
"""What to do about a cell that did not begin in time."""


@dataclass(frozen=True)
class JupyterRequirement(PluginRequirement):
    """Requirement of the plugin that runs cells."""

    name: str = "jupyter"


class JupyterPlugin(Plugin):
    """Runs ``run_ipython`` Actions through a ``CellRunner``.

    Attributes:
        python_interpreter_path: The kernel's interpreter.
    """

    name: ClassVar[str] = "jupyter"

    def __init__(
        self,
        cells: CellRunner | None = None,
        *,
        kernel: SubprocessKernel | RemoteKernel | None = None,
        output_limit: int = OUTPUT_LIMIT,
    ) -> None:
        """Make the plugin.

        Args:
            cells: Runs the cells. The kernel extension passes one for its own shell; by default
                the plugin starts its own kernel.
            kernel: A kernel to start or to connect to instead.
            output_limit: Characters of text that an Observation holds.
        """
        self._cells = cells
        self._kernel = kernel
        self._output_limit = max(output_limit, 0)
        self._synced_directory: str | None = None
        self._queued: set[asyncio.Task[CellOutput]] = set()
        self.python_interpreter_path = sys.executable

    async def initialize(self, username: str) -> None:
        """Start or connect to a kernel, unless there is a runner already."""
        if self._cells is None:
            if self._kernel is None:
                from oh_jupyter.cells.subprocess_kernel import SubprocessKernel

                self._kernel = SubprocessKernel()
            await self._kernel.start()
            self.python_interpreter_path = self._kernel.python_interpreter_path
            self._cells = self._kernel

    async def close(self) -> None:
        """Shut down the kernel if the plugin started it."""
        if self._kernel is not None:
            await self._kernel.close()

    async def queue_hidden(self, code: str) -> None:
        """Queue code to run silently before the next cell, without waiting for it."""
        # The person's cell may keep the kernel busy for long, and the time limit of the
        # Action that comes next must not start only after that.
        task = asyncio.ensure_future(self._runner.run_cell(code, silent=True))
        self._queued.add(task)
        task.add_done_callback(self._queued.discard)
        # Enqueue it before the cell that follows.
        await asyncio.sleep(0)

    async def sync_directory(self, directory: str) -> None:
        """Change the kernel's directory after the shell's; the first directory is only recorded."""
        moved = self._synced_directory is not None and directory != self._synced_directory
        self._synced_directory = directory
        if moved:
            await self.queue_hidden(f"import os; os.chdir({directory!r})")

    async def queue_startup(self, code: str) -> None:
        """Queue code to run before all cells, also in a kernel that replaces a dead one."""
        await self.queue_hidden(code)
        startup_cells = getattr(self._kernel, "startup_cells", None)
        if startup_cells is not None:
            startup_cells.append(code)

    async def set_env(self, variables: Mapping[str, str]) -> None:
        """Set environment variables in the plugin's own kernel; another shares ours."""
        if self._kernel is not None:
            await self.queue_hidden(f"import os; os.environ.update({dict(variables)!r})")

    async def run(self, action: IPythonRunCellAction) -> IPythonRunCellObservation:
        """Run a cell, which its ``timeout`` interrupts; the caller adds the footer."""
        token = cell_trace.set(trace_of(action.actor.to_json()))
        limit = None if action.timeout is not None else begin_within.get()
        begins = begin_within.set(limit)
        try:
            output = await self._runner.run_cell(action.code, timeout=action.timeout)
        finally:
            begin_within.reset(begins)
            cell_trace.reset(token)
        if output.withdrawn:
            raise PluginError(
                f"It did not begin within {limit:g} s and was withdrawn: it will not run. "
                f"{output.note}. {HOW_TO_WAIT}"
            )
        captured = captured_outputs.get()
        if captured is not None:
            captured.append(output)
        text = truncate_middle(output.text.rstrip(), self._output_limit, output.omitted_chars)
        if output.timed_out:
            notice = f"[Execution timed out ({float(action.timeout or 0)} seconds).]"
            if output.note:
                notice += f"\n[{output.note}. {HOW_TO_END}]"
            text = f"{text}\n{notice}" if text else notice
        elif not text:
            text = "[Code executed successfully with no output]"
        if late := truncate_middle(output.late_text.strip(), MAX_LATE_CHARS):
            text += f"\n[Printed by threads of earlier cells after these had ended:]\n{late}"
        return IPythonRunCellObservation(
            text,
            code=action.code,
            image_urls=output.image_urls or None,
            outcome="timed_out" if output.timed_out else "failed" if output.raised else "done",
        )

    def peek(self, max_lines: int = 3) -> str:
        """Return the last lines of the running cell, if its runner reports them."""
        look: Callable[[int], str] | None = getattr(self._cells, "peek", None)
        return "" if look is None else look(max_lines)

    def footer(self, directory: str) -> str:
        """Return the two lines that OpenHands appends to a cell's output, each after a newline."""
        return (
            f"\n[Jupyter current working directory: {directory}]"
            f"\n[Jupyter Python interpreter: {self.python_interpreter_path}]"
        )

    @property
    def _runner(self) -> CellRunner:
        if self._cells is None:
            raise PluginError("The plugin 'jupyter' was not initialized")
        return self._cells
