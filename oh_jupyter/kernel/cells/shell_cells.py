"""The kernel's CellRunner: cells in the shell that loaded oh_jupyter."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from IPython.core.interactiveshell import InteractiveShell

from oh_jupyter.cells import CellOutput
from oh_jupyter.cells.outputs import OutputCollector
from oh_jupyter.cells.request import (
    AGENT_USERNAME,
    NEVER_BEGAN,
    begin_within,
    cell_trace,
    stores_history,
)
from oh_jupyter.cells.zmq import KernelClient
from oh_jupyter.errors import PluginError, RuntimeClosedError
from oh_jupyter.events.action import progress
from oh_jupyter.kernel.cells.agent_outputs import (
    chunked_streams,
    figures_as_png,
    followed,
    replied_at_once,
    silenced_by_itself,
    without_output_history,
)
from oh_jupyter.kernel.cells.gestures import Gestures
from oh_jupyter.kernel.cells.inline import next_number, run_inline
from oh_jupyter.kernel.cells.main_thread import CodeInterrupt, MainThreadCall, MainThreadWait
from oh_jupyter.kernel.own_server import is_from_vscode
from oh_jupyter.runtime.execution import current_execution
from oh_jupyter.trace_context import in_environment, trace_variables

MAX_LINE_CHARS = 200
"""Characters of a cell's first line in a summary."""


@dataclass(frozen=True)
class RunningCell:
    """A cell that the kernel executes.

    Attributes:
        code: Its code.
        started: When it started, on the monotonic clock.
        is_agents: Whether an agent runs it.
        cell_id: Id of the notebook's cell, if the frontend names it, or "".
        output: What it has printed.
        waits: Whether it waits for an Action or an agent, and computes nothing.
    """

    code: str
    started: float
    is_agents: bool
    cell_id: str = ""
    output: OutputCollector = field(default_factory=OutputCollector)
    waits: bool = False

    def summary(self) -> dict[str, Any]:
        """Return its first line, its age, and who runs it."""
        lines = self.code.strip().splitlines() or [""]
        return {
            "first_line": lines[0][:MAX_LINE_CHARS],
            "lines": len(lines),
            "seconds": round(time.monotonic() - self.started, 1),
            "by": "agent" if self.is_agents else "person",
            **({"waits": True} if self.waits else {}),
        }

    def described(self) -> str:
        """Return who runs it, for how long, and its first line."""
        about = self.summary()
        return f"by the {about['by']}, for {about['seconds']:.0f} s: {about['first_line']}"


class ShellCells:
    """Runs cells on the main thread if it waits for us, otherwise through the kernel."""

    def __init__(self, shell: InteractiveShell) -> None:
        """Prepare; plain ``ipython`` without a kernel runs cells only during a wait."""
        self._shell = shell
        self._kernel: Any = getattr(shell, "kernel", None)
        self._client: KernelClient | None = None
        self.around: Callable[[str], AbstractContextManager[None]] = lambda code: nullcontext()
        """Returns a context for an agent's cell on the main thread."""
        self.gestures = Gestures()
        self.waiting: Callable[[], Iterable[int]] = tuple
        """Returns the ids of the Actions that wait for a person."""
        self._guard = _ExecutionGuard(self._kernel, self) if self._kernel is not None else None
        self._inline_agents = 0
        self._inline: list[OutputCollector] = []
        self._inline_cells: list[RunningCell] = []

    @property
    def is_agents(self) -> bool:
        """Whether the running cell is an agent's."""
        return self._inline_agents > 0 or (self._guard is not None and self._guard.is_agents)

    def is_executing(self) -> bool:
        """Return whether the kernel executes a cell."""
        return self._guard is not None and self._guard.is_executing

    @property
    def vscode_cell(self) -> Mapping[str, Any] | None:
        """The request of the person's last cell if it came from VS Code, or None."""
        return None if self._guard is None else self._guard.vscode_cell

    @property
    def running_cell(self) -> RunningCell | None:
        """The cell that the kernel executes, the one inside a waiting cell first, or None."""
        if self._inline_cells:
            return self._inline_cells[-1]
        running = None if self._guard is None else self._guard.running
        if running is None or MainThreadWait.current() is None:
            return running
        return replace(running, waits=True)

    async def run_cell(
        self, code: str, *, timeout: float | None = None, silent: bool = False
    ) -> CellOutput:
        """Run a cell like ``CellRunner``; raise PluginError if nothing can run it."""
        # Read here, because the main thread has the context of the waiting magic.
        is_agents = current_execution.get().principal != "user"
        numbered = stores_history.get() and not silent and self._guard is not None
        variables = {} if silent else trace_variables(cell_trace.get())
        report_start = progress.get().begin
        while (wait := MainThreadWait.current()) is not None:
            interrupt = CodeInterrupt()
            run = partial(
                run_inline,
                self._shell,
                code,
                timeout,
                silent,
                outputs=OutputCollector(),
                interrupt=interrupt,
            )
            around = partial(self.around, code) if is_agents and not silent else nullcontext
            call = wait.call(
                partial(
                    self._run_inline,
                    code,
                    run,
                    is_agents,
                    around,
                    variables,
                    numbered,
                    report_start,
                ),
                interrupt.request,
            )
            try:
                inline = asyncio.wrap_future(call.future)
                if not silent and await _is_withdrawn(call, inline):
                    return self._described(CellOutput(note=NEVER_BEGAN, withdrawn=True))
                return await inline
            except RuntimeClosedError:
                continue  # the wait has just ended
            except asyncio.CancelledError:
                call.cancel()
                raise
        if self._guard is None:
            raise PluginError(
                "This is IPython without a kernel: cells run from its prompt only, with "
                "%%oh_run --cell or oh.run_ipython(...)"
            )
        if self._client is None:
            connection = self._kernel.parent.get_connection_info()
            self._client = KernelClient(connection)
        guard = self._guard
        output = await self._client.run_cell(
            code, guard.cancel, timeout=timeout, silent=silent, withdraw=guard.withdraw
        )
        return self._described(output)

    def _described(self, output: CellOutput) -> CellOutput:
        """Name the cell that holds the kernel, if there is one, in the note of an output."""
        if output.note and (cell := self.running_cell) is not None:
            output.note += f" ({cell.described()})"
        return output

    def _run_inline(
        self,
        code: str,
        run: partial[CellOutput],
        is_agents: bool,
        around: Callable[[], AbstractContextManager[None]],
        variables: Mapping[str, str],
        numbered: bool,
        report_start: Callable[[], None],
    ) -> CellOutput:
        """Run a cell inside the waiting magic; it may be an agent's in a person's magic."""
        report_start()
        self._inline_agents += is_agents
        outputs = run.keywords["outputs"]
        self._inline.append(outputs)
        self._inline_cells.append(RunningCell(code, time.monotonic(), is_agents, output=outputs))
        try:
            with in_environment(variables), around():
                return run(number=next_number(self._shell) if numbered else None)
        finally:
            self._inline_cells.pop()
            self._inline.pop()
            self._inline_agents -= is_agents

    def peek(self, max_lines: int = 3) -> str:
        """Return the last lines of the running cell."""
        for outputs in reversed(list(self._inline)):
            return outputs.last_lines(max_lines)
        return "" if self._client is None else self._client.peek(max_lines)

    async def close(self) -> None:
        """Disconnect from the kernel."""
        if self._client is not None:
            await self._client.close()
        self.remove_guard()

    def remove_guard(self) -> None:
        """Restore the kernel's own execution of requests."""
        if self._guard is not None:
            self._guard.remove()


async def _is_withdrawn(
    call: MainThreadCall[CellOutput], result: asyncio.Future[CellOutput]
) -> bool:
    """Return whether a call did not begin in time, and never will."""
    if (limit := begin_within.get()) is None:
        return False
    await asyncio.wait({result}, timeout=limit)
    return not result.done() and call.withdraw()


class _ExecutionGuard:
    """Tracks which requests the kernel executes, so that only the intended one is interrupted.

    That of the main shell may be an agent's; those of subshells run beside it.
    """

    def __init__(self, kernel: Any, cells: ShellCells) -> None:
        self._kernel = kernel
        self._cells = cells
        self._execute = kernel.shell_handlers["execute_request"]
        self._lock = threading.Lock()
        self._interrupts: dict[str, CodeInterrupt] = {}  # of the requests that are executed
        self.running: RunningCell | None = None
        current = kernel.get_parent("shell")
        self.vscode_cell = current if is_from_vscode(current) else None
        self._cancelled: set[str] = set()
        self.is_agents = False
        self._first = str((current.get("header") or {}).get("msg_id") or "")
        self._note_gestures(current)
        kernel.shell_handlers["execute_request"] = self._guarded

    @property
    def is_executing(self) -> bool:
        return bool(self._interrupts)

    def _note_gestures(self, request: Mapping[str, Any]) -> None:
        """Note what the text of a person's request says, until the request ends."""
        header, content = request.get("header") or {}, request.get("content") or {}
        if "code" in content and header.get("username") != AGENT_USERNAME:
            waiting = list(self._cells.waiting())
            self._cells.gestures.begin(header["msg_id"], str(content["code"]), waiting)

    async def _guarded(self, stream: Any, ident: Any, parent: dict[str, Any]) -> None:
        msg_id = parent["header"]["msg_id"]
        self._cells.gestures.end(self._first)  # it was running when the runtime started
        with self._lock:
            cancelled = msg_id in self._cancelled
            self._cancelled.discard(msg_id)
            if not cancelled:
                interrupt = self._interrupts[msg_id] = CodeInterrupt()
        if cancelled:
            status = {"status": "aborted"}
            self._kernel.session.send(stream, "execute_reply", status, parent, ident=ident)
            return
        try:
            await self._run(stream, ident, parent, interrupt)
        finally:
            with self._lock:
                del self._interrupts[msg_id]

    async def _run(
        self, stream: Any, ident: Any, parent: dict[str, Any], interrupt: CodeInterrupt
    ) -> None:
        """Execute a request, and note what it is until its end."""
        ours = parent["header"].get("username") == AGENT_USERNAME
        content = parent["content"]
        numbered = content.get("store_history") is True
        running = None
        in_subshell = threading.current_thread() is not threading.main_thread()
        if not content.get("silent") and not in_subshell:
            cell_id = str(parent["metadata"].get("cellId") or "")
            running = RunningCell(content["code"], time.monotonic(), ours, cell_id)
            self.running = running
            if not ours:
                self.vscode_cell = parent if is_from_vscode(parent) else None
        self._note_gestures(parent)
        shell = self._kernel.shell
        shell.execution_count = max(shell.execution_count, next_number(shell))
        try:
            with ExitStack() as stack:
                if not numbered:
                    stack.enter_context(silenced_by_itself(shell, content["code"]))
                if ours:
                    self.is_agents = True
                    if not numbered:
                        stack.enter_context(without_output_history(shell))
                    stack.enter_context(chunked_streams())
                    stack.enter_context(figures_as_png(shell))
                    stack.enter_context(replied_at_once(self._kernel))
                    if not content.get("silent"):
                        variables = trace_variables(parent["metadata"])
                        stack.enter_context(in_environment(variables))
                        stack.enter_context(self._cells.around(content["code"]))
                    stack.enter_context(interrupt.applied(shell))
                if running is not None:
                    stack.enter_context(followed(running.output.add_stream))
                await self._execute(stream, ident, parent)
        finally:
            self._cells.gestures.end(parent["header"]["msg_id"])
            if ours:
                self.is_agents = False
            if not in_subshell:
                self.running = None

    def withdraw(self, msg_id: str) -> bool:
        """Prevent a waiting request from starting; return False if it runs."""
        with self._lock:
            if msg_id in self._interrupts:
                return False
            self._cancelled.add(msg_id)
            return True

    def cancel(self, msg_id: str) -> None:
        """Interrupt the code of a request, or prevent a waiting one from starting."""
        with self._lock:
            interrupt = self._interrupts.get(msg_id)
            if interrupt is not None:
                interrupt.request()
            else:
                self._cancelled.add(msg_id)

    def remove(self) -> None:
        if self._kernel.shell_handlers.get("execute_request") == self._guarded:
            self._kernel.shell_handlers["execute_request"] = self._execute
