"""The notebook's variables around agents' cells, and their way back, on the main thread."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from IPython.core.interactiveshell import InteractiveShell

from oh_jupyter.errors import CheckpointError
from oh_jupyter.kernel.cells.main_thread import MainThreadCall, MainThreadWait

if TYPE_CHECKING:
    from oh_jupyter.checkpoints import VariableChange
    from oh_jupyter.checkpoints.variables.history import VariableHistory
    from oh_jupyter.runtime import ActionExecutor
    from oh_jupyter.runtime.rewind import Scope

T = TypeVar("T")

START_SECONDS = 1.0
"""How long a call from outside waits for the main thread."""

BUSY = (
    "A cell is running, so its variables cannot be restored now. Wait for it or interrupt it, then "
    "rewind; only the files can be restored meanwhile."
)

logger = logging.getLogger(__name__)


class CellVariables:
    """Keeps what agents' cells change, and restores it."""

    def __init__(
        self, shell: InteractiveShell, executor: ActionExecutor, is_executing: Callable[[], bool]
    ) -> None:
        """Prepare; the engine is imported with the first cell of an agent.

        Args:
            shell: The shell with the variables.
            executor: The executor, whose turns own what is kept.
            is_executing: Returns whether the kernel executes a cell.
        """
        self._shell = shell
        self._kernel: Any = getattr(shell, "kernel", None)
        self._executor = executor
        self._is_executing = is_executing
        self._history: VariableHistory | None = None

    @contextmanager
    def around(self, code: str) -> Iterator[None]:
        """Keep what an agent's cell changes; a failure of that does not affect the cell."""
        self._executor.turns.start_cell()
        checkpoint = self._executor.turns.current_id
        if checkpoint is None or self._executor.settings.checkpoint_variables == "off":
            yield
            return
        cell = None
        try:
            cell = self._current().before(self._plain(code), checkpoint)
        except Exception:
            logger.exception("The variables before an agent's cell were not kept")
        try:
            yield
        finally:
            if cell is not None:
                try:
                    end_checkpoint = self._executor.turns.latest(checkpoint)
                    self._current().after(cell, end_checkpoint)
                except Exception:
                    logger.exception("The changes of an agent's cell in variables were not kept")

    def _plain(self, code: str) -> str:
        """Return a cell as Python, or as it is if a transformation of the person's fails."""
        try:
            return str(self._shell.transform_cell(code))
        except Exception:
            return code

    async def mark(self, checkpoint: int, *, in_cell: bool) -> None:
        """Keep all variables as of a mark."""
        await self._call(lambda: self._current().mark(checkpoint), in_cell)

    async def preview(
        self, checkpoint: int, scope: Scope
    ) -> tuple[list[VariableChange], list[str]]:
        """Return what a rewind would do now, and its limits as sentences.

        Raises:
            CheckpointError: A cell is running.
        """

        def preview() -> tuple[list[VariableChange], list[str]]:
            history = self._current()
            rows = history.preview(
                checkpoint, everything=scope.everything, as_person=scope.as_person
            )
            return rows, history.notes(checkpoint) if rows else []

        return await self._call(preview, scope.in_cell)

    async def rewind(
        self, checkpoint: int, new_checkpoint: int, scope: Scope
    ) -> list[VariableChange]:
        """Restore the variables; ``new_checkpoint`` undoes that.

        Raises:
            CheckpointError: A cell is running.
        """
        return await self._call(
            lambda: self._current().rewind(
                checkpoint,
                new_checkpoint,
                everything=scope.everything,
                as_person=scope.as_person,
            ),
            scope.in_cell,
        )

    def close(self) -> None:
        """Store what is to be stored."""
        if self._history is not None:
            self._shell.events.unregister("pre_execute", self._history.settle)
            self._history.close()
            self._history = None

    def _current(self) -> VariableHistory:
        if self._history is None:
            from oh_jupyter.checkpoints.variables.history import VariableHistory
            from oh_jupyter.checkpoints.variables.reach import Namespace

            hidden: Any = self._shell.user_ns_hidden
            turns = self._executor.turns
            self._history = VariableHistory(
                Namespace(self._shell.user_ns, hidden),
                self._executor.workspace_dir,
                turns.checkpoints.directory / "variables",
                notebook=turns.notebook_file(),
                process=turns.checkpoints.process,
                is_alive=turns.checkpoints.is_alive,
            )
            self._history.on_changed = turns.note_variables
            self._shell.events.register("pre_execute", self._history.settle)
        settings = self._executor.settings
        self._history.memory_bytes = settings.checkpoint_variables_mb * 2**20
        self._history.disk_bytes = settings.checkpoint_variables_disk_mb * 2**20
        return self._history

    async def _call(self, function: Callable[[], T], in_cell: bool) -> T:
        """Run a function on the main thread between cells, or within the cell that asks."""
        wait = MainThreadWait.current()
        if wait is not None:
            if not in_cell:
                raise CheckpointError(BUSY)
            return await asyncio.wrap_future(wait.call(function).future)
        if self._kernel is None:
            raise CheckpointError("Without a kernel, variables are restored from the prompt only.")
        loop, started = asyncio.get_running_loop(), asyncio.Event()
        call = MainThreadCall(lambda: self._between_cells(function))

        def run() -> None:
            loop.call_soon_threadsafe(started.set)
            call.run()

        self._kernel.io_loop.add_callback(run)
        try:
            async with asyncio.timeout(START_SECONDS):
                await started.wait()
        except TimeoutError:
            if call.future.cancel():
                raise CheckpointError(BUSY) from None
        return await asyncio.wrap_future(call.future)

    def _between_cells(self, function: Callable[[], T]) -> T:
        if self._is_executing():  # it waits for something with await
            raise CheckpointError(BUSY)
        return function()
