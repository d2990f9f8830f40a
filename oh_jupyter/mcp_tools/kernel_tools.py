"""The kernel of a notebook as tools: state, interrupt, restart, start, and its variables."""

from __future__ import annotations

import json
import os
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

from oh_jupyter.errors import ExtensionMissingError, KernelNotFoundError, OhJupyterError
from oh_jupyter.mcp_tools.cells import keep_out_fault, reference_of
from oh_jupyter.mcp_tools.kernel import Kernel
from oh_jupyter.mcp_tools.notebook_calls import NOTEBOOK
from oh_jupyter.mcp_tools.notebooks import Notebooks, OpenNotebook
from oh_jupyter.mcp_tools.results import (
    Result,
    failure,
    image,
    of_observation,
    of_own_tool,
    result,
    text,
)
from oh_jupyter.mcp_tools.toolbox import Caller, Command, McpTool, command_tool, schema
from oh_jupyter.operations import to_json
from oh_jupyter.operations.actions import AnnounceEdit, FinishEdit
from oh_jupyter.operations.files import AskWorkspace
from oh_jupyter.operations.kernel import (
    AskRestart,
    CellSummary,
    Evaluate,
    SaveVariable,
    Variables,
    VariableView,
)
from oh_jupyter.operations.runtime import Status
from oh_jupyter.text import plural

DEFAULT_KERNEL = "the server's default kernel"
"""The kernel of tools at the server's own address."""


def _scope_of_look(arguments: dict[str, Any]) -> str:
    return "execute" if arguments.keys() & {"expression", "save_to"} else "read"


def kernel_tools(notebooks: Notebooks, kernel: Kernel) -> list[McpTool]:
    """Return the tools on a notebook's kernel, by default the agent's."""
    tools = KernelCommands(notebooks, kernel)
    return [
        command_tool(
            "kernel",
            "Control a notebook's kernel. status: state, running cell and its seconds, running "
            "commands. interrupt: stop the running cell. restart: a person may be asked, since "
            "all variables are lost. clear_outputs: of all cells. start: open or create the "
            "notebook with a kernel.",
            {
                "status": Command(tools.status, "read"),
                "interrupt": Command(tools.interrupt),
                "restart": Command(tools.restart),
                "clear_outputs": Command(tools.clear_outputs),
                "start": Command(tools.start),
            },
            notebook=NOTEBOOK,
            kernel_name={
                "type": "string",
                "description": "For start; default: the notebook's own.",
            },
        ),
        McpTool(
            "variables",
            "Look at the notebook's variables, also while a cell runs: all with type, shape and "
            "size, one in detail with statistics or its picture, or the value of a small "
            "expression.",
            schema(
                pattern={"type": "string", "description": "Names to list, such as df*."},
                name={"type": "string", "description": "The variable to detail."},
                save_to={
                    "type": "string",
                    "description": "Save name to this file: .csv, .png, .pkl, ...",
                },
                expression={
                    "type": "string",
                    "description": "Python expression that only reads, such as len(losses).",
                },
                notebook=NOTEBOOK,
            ),
            tools.variables,
            {"readOnlyHint": True},
            "Ask for one variable, or evaluate an expression that returns less.",
            scope="read",
            scope_of=_scope_of_look,
        ),
    ]


async def notebook_and_kernel(
    notebooks: Notebooks, kernel: Kernel, name: str | None
) -> tuple[OpenNotebook | None, Kernel]:
    """Return a notebook, None if it is not open, and its kernel; without a name, the agent's.

    The agent's kernel is the one in which all other tools of its address work.
    """
    if name is None:
        if kernel.kernel_id is None:
            return None, kernel
        open_ones = await notebooks.open_ones()
        ours = [each for each in open_ones if each.kernel_id == kernel.kernel_id]
        return (ours[0] if ours else None), kernel
    notebook = await notebooks.find(name, kernel.kernel_id)
    if notebook.kernel_id is None:
        raise KernelNotFoundError(f"{notebook.path} has no kernel; command=start starts one")
    return notebook, kernel.other_for_agents(notebook.kernel_id)


@dataclass(frozen=True)
class KernelCommands:
    """The commands on kernels, for an agent of one of them."""

    _notebooks: Notebooks
    _kernel: Kernel

    async def _of(self, arguments: dict[str, Any]) -> tuple[OpenNotebook | None, Kernel]:
        return await notebook_and_kernel(self._notebooks, self._kernel, arguments.get("notebook"))

    async def variables(self, arguments: dict[str, Any], caller: Caller) -> Result:
        """List variables, describe or save one, or evaluate an expression."""
        _, kernel = await self._of(arguments)
        if "save_to" in arguments and "name" not in arguments:
            return failure("variables: save_to needs the name of the variable.")
        if _scope_of_look(arguments) == "execute":
            if not await caller.allowed("execute", "kernels"):
                return failure("You may not run code in the kernels of this server.")
            if "expression" in arguments:
                asked = kernel.ask(Evaluate(arguments["expression"]))
            else:
                name, path = arguments["name"], arguments["save_to"]
                if scheme := _SCHEME.match(path):
                    return failure(_not_a_file(path, scheme[1], name))
                asked = kernel.ask(SaveVariable(name, path))
            return of_own_tool(await asked)
        name, pattern = arguments.get("name"), arguments.get("pattern", "")
        view = await kernel.ask(Variables(name, pattern))
        if view.text is not None:
            return result(text(view.text), *map(image, view.images))
        return result(text(_overview(view)))

    async def status(self, arguments: dict[str, Any], caller: Caller) -> Result:
        """Return the state of the kernel."""
        notebook, kernel = await self._of(arguments)
        status = await kernel.ask(Status())
        state = {} if notebook is None else {"notebook": notebook.path, "state": notebook.state}
        if kernel.kernel_id is None:
            state = {"kernel": DEFAULT_KERNEL}
        if notebook is not None and (runs := self._notebooks.runs.runs(notebook.path)):
            state["state"] = "busy"
            state["run"] = f"{runs[0].place}, for {runs[0].seconds} s"
            if runs[1:]:
                state["waiting_runs"] = str(len(runs) - 1)
        return result(text(json.dumps({**state, **to_json(status)}, indent=1)))

    async def interrupt(self, arguments: dict[str, Any], caller: Caller) -> Result:
        """Interrupt the running cell, and let no other of the agent's runs start."""
        notebook, kernel = await self._of(arguments)
        stopped = self._notebooks.runs.stop(notebook.path) if notebook is not None else 0
        try:
            cell = await _interruptible(kernel)
            if cell is None and notebook is not None:
                stopped += await self._notebooks.running.withdraw(notebook.path)
                cell = await _interruptible(kernel)  # one may have started meanwhile
        except ExtensionMissingError:
            await kernel.interrupt()
            return result(text("Interrupted whatever ran in the kernel, which lacks oh_jupyter."))
        if cell is None:
            if stopped:
                return result(text(f"Stopped the run before its next {plural(stopped, 'cell')}."))
            where = f" in {DEFAULT_KERNEL}" if kernel.kernel_id is None else ""
            return result(text(f"No cell is running{where}; nothing was interrupted."))
        await kernel.interrupt()
        seconds, line = cell.seconds, cell.first_line
        others = f" [{plural(stopped, 'cell')} of the run will not start.]" if stopped else ""
        interrupted = f"Interrupted the cell that had been running for {seconds} s: {line}"
        return result(text(f"{interrupted}{others}"))

    async def restart(self, arguments: dict[str, Any], caller: Caller) -> Result:
        """Restart the kernel, if the person allows it."""
        notebook, kernel = await self._of(arguments)
        if kernel.restart_fault:
            return failure(kernel.restart_fault)
        decision = await kernel.ask(AskRestart())
        if decision.get("observation") != "run_ipython":
            return of_observation(decision)
        await kernel.restart()
        of_notebook = "" if notebook is None else f" of {notebook.path}"
        return result(text(f"Restarted the kernel{of_notebook}. All variables are gone."))

    async def clear_outputs(self, arguments: dict[str, Any], caller: Caller) -> Result:
        """Clear the outputs of all cells."""
        if not await caller.allowed("write", "contents"):
            return failure("You may not write the files of this server.")
        notebook = await self._notebooks.find(arguments.get("notebook"), self._kernel.kernel_id)
        await self._notebooks.check_notebook(self._kernel, notebook, writes=True)
        document = await self._notebooks.document(notebook)
        self._notebooks.announce_edit()
        kernel = self._kernel.other(notebook.kernel_id) if notebook.kernel_id else self._kernel
        cleared = 0
        cells = await document.cells()
        async with self._editing(kernel, document.path):
            for index, cell in enumerate(cells):
                if keep_out_fault(index, cell):
                    continue
                if cell.get("outputs") or cell.get("execution_count"):
                    await document.set_outputs(reference_of(cells, cell, index), [], None)
                    cleared += 1
        return result(text(f"Cleared the outputs of {plural(cleared, 'cell')} of {notebook.path}."))

    async def start(self, arguments: dict[str, Any], caller: Caller) -> Result:
        """Open or create a notebook with a kernel."""
        if not (
            await caller.allowed("write", "sessions") and await caller.allowed("write", "contents")
        ):
            return failure("You may not start kernels on this server.")
        path = str(arguments.get("notebook", "")).strip("/")
        if not path.endswith(".ipynb"):
            return failure("Pass the path of the notebook, such as notebook='analysis.ipynb'.")
        known = [each for each in await self._notebooks.open_ones() if each.path == path]
        if known and known[0].kernel_id:
            return result(text(f"{path} is open already, with the kernel {known[0].kernel_id}."))
        await self._notebooks.check_file(self._kernel, path, writes=True)
        box = await self._check_folder(path)
        async with self._editing(self._kernel, path):
            started = await self._notebooks.start(path, arguments.get("kernel_name"), box)
            return result(text(started))

    async def _check_folder(self, path: str) -> str | None:
        """Ask whether a kernel may start in a notebook's folder; return what its box must be in."""
        if self._kernel.is_boxed:
            return self._kernel.workspace_of_box
        if self._kernel.is_there and self._notebooks.root:
            folder = os.path.dirname(self._notebooks.file_of(path))
            await self._kernel.request(AskWorkspace(folder))
        return None

    @asynccontextmanager
    async def _editing(self, kernel: Kernel, path: str) -> AsyncIterator[None]:
        """Make what the block does to a notebook a part of the agent's turn, for a rewind."""
        file = self._notebooks.file_of(path)
        with suppress(OhJupyterError):
            await kernel.request(AnnounceEdit(file), load=False)
        try:
            yield
        finally:
            with suppress(OhJupyterError):
                await kernel.request(FinishEdit(file), load=False)


_SCHEME = re.compile(r"([a-zA-Z][\w+.-]+):")


def _not_a_file(path: str, scheme: str, name: str) -> str:
    """Return why a variable cannot be saved to an address."""
    store_path = path.partition(":")[2].lstrip("/") if scheme == "store" else path
    return (
        f"save_to is a file of the workspace, and {path!r} is an address; nothing was saved. Copy "
        f"the variable into the file store with the tool store: command='put', "
        f"path={store_path!r}, file='variable:{name}'"
    )


def _overview(view: VariableView) -> str:
    """Return a table of variables in text."""
    rows = [
        (row.name, f"{row.type} {row.shape}".strip(), f"{row.bytes:,}", row.head)
        for row in view.variables
    ]
    if not rows and not view.modules:
        return "There are no such variables."
    widths = [max((len(row[column]) for row in rows), default=0) for column in range(3)]
    lines = [
        f"{name:{widths[0]}}  {kind:{widths[1]}}  {size:>{widths[2]}} B  {head}".rstrip()
        for name, kind, size, head in rows
    ]
    if view.omitted:
        lines.append(f"[{view.omitted} more; list fewer with pattern]")
    if view.modules:
        lines.append(f"modules: {', '.join(view.modules)}")
    return "\n".join(lines)


async def _interruptible(kernel: Kernel) -> CellSummary | None:
    """Return the running cell, unless it is an agent's prompt, which may wait for the caller."""
    status = await kernel.ask(Status(), load=False)
    cell = status.cell
    is_prompt = cell is not None and cell.waits and "busy" in status.agents.values()
    return None if is_prompt else cell
