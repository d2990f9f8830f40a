"""``run_ipython``: cells in a kernel, with the footers of OpenHands' protocol."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol

from oh_jupyter.cells.bounded import shortened
from oh_jupyter.cells.outputs import CellOutput, kept_output
from oh_jupyter.config import OUTPUT_LIMIT
from oh_jupyter.errors import PluginError
from oh_jupyter.events import Action, IPythonRunCellAction, IPythonRunCellObservation, Observation
from oh_jupyter.plugins.base import Plugin, PluginRequirement

if TYPE_CHECKING:
    from oh_jupyter.cells.remote import RemoteKernel
    from oh_jupyter.cells.subprocess_kernel import OwnKernel

__all__ = ["CellRunner", "JupyterPlugin", "JupyterRequirement"]


class CellRunner(Protocol):
    """Runs cells in a kernel's main shell."""

    async def run_cell(
        self, code: str, *, timeout: float | None = None, silent: bool = False
    ) -> CellOutput:
        """Run a cell to its end.

        Args:
            code: The cell.
            timeout: Seconds after which it is interrupted; None for no limit.
            silent: Show it to nobody.

        Returns:
            Its output, complete and in order.
        """
        ...


@dataclass(frozen=True)
class JupyterRequirement(PluginRequirement):
    """Asks for the plugin that runs cells."""

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
        kernel: OwnKernel | RemoteKernel | None = None,
        output_limit: int = OUTPUT_LIMIT,
    ) -> None:
        """Make the plugin.

        Args:
            cells: Runs the cells. The kernel extension hands in one for its own shell;
                without one, the plugin starts a kernel of its own.
            kernel: A kernel to start or to connect to instead.
            output_limit: Characters of text that an Observation holds.
        """
        self._cells = cells
        self._kernel = kernel
        self._output_limit = max(output_limit, 0)
        self._pushed_dir: str | None = None
        self._queued: set[asyncio.Task[CellOutput]] = set()
        self.python_interpreter_path = sys.executable

    async def initialize(self, username: str) -> None:
        """Start or reach a kernel, unless there is one to run cells in.

        Args:
            username: Not needed: cells run as whoever runs the kernel.

        Raises:
            PluginError: It cannot be started.
        """
        if self._cells is None:
            if self._kernel is None:
                from oh_jupyter.cells.subprocess_kernel import OwnKernel

                self._kernel = OwnKernel()
            await self._kernel.start()
            self.python_interpreter_path = self._kernel.python_interpreter_path
            self._cells = self._kernel

    async def close(self) -> None:
        """Shut the kernel down, if it is the plugin's own."""
        if self._kernel is not None:
            await self._kernel.close()

    async def queue_silently(self, code: str) -> None:
        """Have code run before the next cell, seen by nobody, and do not wait for it.

        The person's cell may keep the kernel busy for long, and the time limit of the
        Action that comes next must not start only after that.

        Args:
            code: The code.
        """
        task = asyncio.ensure_future(self._runner.run_cell(code, silent=True))
        self._queued.add(task)
        task.add_done_callback(self._queued.discard)
        # Let it take its place in the queue, in front of the cell that follows.
        await asyncio.sleep(0)

    async def follow(self, directory: str) -> None:
        """Take the kernel along when the shell has moved to another directory.

        Args:
            directory: The shell's working directory. The first one is only noted, since
                shell and kernel start in the same place.
        """
        moved = self._pushed_dir is not None and directory != self._pushed_dir
        self._pushed_dir = directory
        if moved:
            await self.queue_silently(f"import os; os.chdir({directory!r})")

    async def queue_first(self, code: str) -> None:
        """Have code run before all cells, also in a kernel that replaces a dead one.

        Args:
            code: The code.
        """
        await self.queue_silently(code)
        first_cells = getattr(self._kernel, "first_cells", None)
        if first_cells is not None:
            first_cells.append(code)

    async def set_env(self, variables: Mapping[str, str]) -> None:
        """Set environment variables in a kernel of its own; another has ours.

        Args:
            variables: Names and values.
        """
        if self._kernel is not None:
            await self.queue_silently(f"import os; os.environ.update({dict(variables)!r})")

    async def run(self, action: Action) -> Observation:
        """Run a cell.

        Args:
            action: An ``IPythonRunCellAction``; its ``timeout`` interrupts the cell.

        Returns:
            The Observation, without the footers: they name the shell's directory,
            which the executor knows.

        Raises:
            PluginError: It is an Action of another type.
        """
        if not isinstance(action, IPythonRunCellAction):
            return await super().run(action)
        output = await self._runner.run_cell(action.code, timeout=action.timeout)
        kept = kept_output.get()
        if kept is not None:
            kept.append(output)
        text = shortened(output.text.rstrip(), self._output_limit, output.left_out)
        if output.timed_out:
            notice = f"[Execution timed out ({float(action.timeout or 0)} seconds).]"
            text = f"{text}\n{notice}" if text else notice
        elif not text:
            text = "[Code executed successfully with no output]"
        return IPythonRunCellObservation(
            text, code=action.code, image_urls=output.image_urls or None
        )

    def peek(self) -> str:
        """The last lines of the cell that runs, where its runner can tell."""
        look: Callable[[], str] | None = getattr(self._cells, "peek", None)
        return "" if look is None else look()

    def footer(self, directory: str) -> str:
        """The two lines that OpenHands appends to a cell's output.

        Args:
            directory: The shell's working directory.

        Returns:
            The lines, with a newline before each.
        """
        return (
            f"\n[Jupyter current working directory: {directory}]"
            f"\n[Jupyter Python interpreter: {self.python_interpreter_path}]"
        )

    @property
    def _runner(self) -> CellRunner:
        if self._cells is None:
            raise PluginError("The plugin 'jupyter' was not initialized")
        return self._cells
