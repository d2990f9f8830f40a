"""Operations on the kernel itself: its variables, and the question before a restart."""

from __future__ import annotations

import os
from contextlib import suppress

from oh_jupyter.control_messages import Reply
from oh_jupyter.errors import InspectionError
from oh_jupyter.events import (
    IPythonRunCellAction,
    IPythonRunCellObservation,
    MCPAction,
    MCPObservation,
    Observation,
)
from oh_jupyter.kernel.cells.inspection import in_time
from oh_jupyter.kernel.cells.tables import TableQuery, table_page
from oh_jupyter.kernel.control.agent_requests import reasons_to_ask
from oh_jupyter.kernel.control.rpc import Request, handles
from oh_jupyter.kernel.control.store_rpc import path_in_workspace
from oh_jupyter.kernel.saving import SAVE_SECONDS, encoded
from oh_jupyter.mcp_tools.results import clipped
from oh_jupyter.operations import kernel as operations
from oh_jupyter.runtime.reasons import Reason
from oh_jupyter.storage import LocalFileStore

RESTART_CODE = "get_ipython().kernel.do_shutdown(restart=True)"
"""What a restart appears as in the log."""

RUNNING_CELL_FILE = "running-cell"
"""Name of the file with the output so far of the running cell."""

MAX_LISTED_NAMES = 20
"""Variables that the question before a restart names."""


@handles(operations.Variables)
async def _variables(request: Request, op: operations.Variables) -> operations.VariableView:
    inspector = request.oh.host.inspector
    if op.name is None:
        return await inspector.overview(op.pattern)
    text, images = await inspector.detail(op.name)
    return operations.VariableView(text=text, images=images)


@handles(operations.TableRows)
async def _table_rows(request: Request, op: operations.TableRows) -> operations.TablePage:
    query = TableQuery(op.start, op.count, op.sort, op.descending, op.filter)
    value = request.oh.host.inspector.value(op.name)
    page: operations.TablePage = await in_time(lambda: table_page(value, query))
    return page


@handles(operations.NotebookFile)
async def _notebook_file(request: Request, op: operations.NotebookFile) -> str:
    return request.oh.host.notebook_file


@handles(operations.RunningCell)
async def _running_cell(
    request: Request, op: operations.RunningCell
) -> operations.CellInProgress | None:
    cell, executor = request.oh.host.running_cell, request.runtime.executor
    if cell is None:
        return None
    whole, file = cell.output.text.rstrip(), ""
    output = clipped(whole)
    if output != whole:
        file = await executor.in_thread(executor.kept_texts.keep, whole, RUNNING_CELL_FILE)
    return operations.CellInProgress(
        **cell.summary(), code=cell.code, cell_id=cell.cell_id, output=output, file=file
    )


@handles(operations.VariableText)
async def _variable_text(request: Request, op: operations.VariableText) -> Reply:
    value = request.oh.host.inspector.value(op.name)
    if isinstance(value, str):
        return Reply(body=value.encode("utf-8", "surrogatepass"))
    with suppress(UnicodeDecodeError):
        if isinstance(value, bytes | bytearray):
            value.decode()
            return Reply(body=bytes(value))
    raise InspectionError(
        f"{op.name} is no text but a {type(value).__name__}. Save it to a file with variables and "
        "save_to"
    )


@handles(operations.SaveVariable)
async def _save_variable(request: Request, op: operations.SaveVariable) -> Reply:
    executor, name = request.runtime.executor, op.name
    path = path_in_workspace(op.path, executor)
    action = MCPAction("save_variable", {"name": name, "path": path})
    action.actor = request.actor

    async def save() -> Observation:
        value = request.oh.host.inspector.value(name)
        contents = await in_time(lambda: encoded(value, path), SAVE_SECONDS)
        # It follows no links, which may have appeared since the path was checked.
        await executor.in_thread(LocalFileStore(executor.workspace_dir).write, path, contents)
        return MCPObservation(f"Saved {name} to {path} ({len(contents)} bytes).", action.name)

    reasons = await reasons_to_ask(request, writes=[os.path.join(executor.workspace_dir, path)])
    observation = await executor.run_action(
        action, "agent", principal="agent", execute=save, reasons=reasons
    )
    return Reply(body=request.runtime.events.encoded(observation))


@handles(operations.Evaluate)
async def _evaluate(request: Request, op: operations.Evaluate) -> Reply:
    action = IPythonRunCellAction(op.expression, include_extra=False)
    action.actor = request.actor

    async def evaluate() -> Observation:
        text, images = await request.oh.host.inspector.evaluate(op.expression)
        return IPythonRunCellObservation(text, code=op.expression, image_urls=images or None)

    observation = await request.runtime.executor.run_action(
        action, "agent", principal="agent", execute=evaluate
    )
    return Reply(body=request.runtime.events.encoded(observation))


@handles(operations.AskRestart)
async def _ask_restart(request: Request, op: operations.AskRestart) -> Reply:
    action = IPythonRunCellAction(RESTART_CODE, include_extra=False)
    action.actor = request.actor
    overview = await request.oh.host.inspector.overview("")
    names = [row.name for row in overview.variables]
    losses = [_variables_lost(names, overview.omitted)] if names else []
    running = request.oh.host.running_cell
    if running is not None:
        summary = running.summary()
        losses.append(Reason("stops_cell", (summary["first_line"],)))

    async def approve() -> Observation:
        return IPythonRunCellObservation("The kernel restarts.", code=RESTART_CODE)

    observation = await request.runtime.executor.run_action(
        action, "agent", principal="agent", execute=approve, only_asks=True, reasons=losses
    )
    return Reply(body=request.runtime.events.encoded(observation))


def _variables_lost(names: list[str], omitted: int) -> Reason:
    """Return the reason that names the variables."""
    shown = ", ".join(names[:MAX_LISTED_NAMES])
    count = len(names) + omitted
    if count > MAX_LISTED_NAMES:
        more = count - MAX_LISTED_NAMES
        return Reason("loses_many_variables", (str(count), shown, str(more)))
    if count > 1:
        return Reason("loses_variables", (str(count), shown))
    return Reason("loses_variable", (shown,))
