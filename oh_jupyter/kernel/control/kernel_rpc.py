"""Operations on the kernel itself: its variables, and the question before a restart."""

from __future__ import annotations

import os
from contextlib import suppress

from oh_jupyter.control_messages import Reply
from oh_jupyter.errors import InspectionError, WireError
from oh_jupyter.events import (
    IPythonRunCellAction,
    IPythonRunCellObservation,
    MCPAction,
    MCPObservation,
    Observation,
)
from oh_jupyter.events.json import encode_json
from oh_jupyter.kernel.cells.inspection import in_time
from oh_jupyter.kernel.cells.tables import TableQuery, table_page
from oh_jupyter.kernel.control.agent_requests import reasons_to_ask
from oh_jupyter.kernel.control.rpc import Request, operation
from oh_jupyter.kernel.control.store_rpc import path_in_workspace
from oh_jupyter.kernel.saving import SAVE_SECONDS, encoded
from oh_jupyter.mcp_tools.results import clipped
from oh_jupyter.runtime.reasons import Reason
from oh_jupyter.storage import LocalFileStore

RESTART_CODE = "get_ipython().kernel.do_shutdown(restart=True)"
"""What a restart appears as in the log."""

RUNNING_CELL_FILE = "running-cell"
"""Name of the file with the output so far of the running cell."""

MAX_LISTED_NAMES = 20
"""Variables that the question before a restart names."""


@operation("variables")
async def _variables(request: Request) -> Reply:
    """List the variables that match ``pattern``, or describe the one called ``name``."""
    inspector, name = request.oh.host.inspector, request.fields.get("name")
    if name is None:
        overview = await inspector.overview(str(request.fields.get("pattern") or ""))
        return Reply(body=encode_json(overview))
    text, images = await inspector.detail(request.text("name"))
    return Reply(body=encode_json({"text": text, "images": images}))


@operation("table_rows")
async def _table_rows(request: Request) -> Reply:
    """Return rows of the data frame ``name``; the other fields are those of ``TableQuery``."""
    fields, name = request.fields, request.text("name")
    sort = fields.get("sort")
    numbers = {key: fields.get(key, 0) for key in ("start", "count")}
    for key, number in [*numbers.items(), *([("sort", sort)] if sort is not None else [])]:
        if not isinstance(number, int) or number < 0:
            raise WireError(f"{key!r} must be a number from 0 on", key)
    query = TableQuery(
        **numbers,
        sort=sort,
        descending=request.flag("descending"),
        filter=str(fields.get("filter") or ""),
    )
    value = request.oh.host.inspector.value(name)
    return Reply(body=encode_json(await in_time(lambda: table_page(value, query))))


@operation("notebook_file")
async def _notebook_file(request: Request) -> Reply:
    """Return the path of the notebook, on the machine of its editor, or ""."""
    return Reply({"path": request.oh.host.notebook_file})


@operation("running_cell")
async def _running_cell(request: Request) -> Reply:
    """Return the cell that the kernel executes, with its output so far.

    A long output is shortened, and its ``file`` has more of it.
    """
    cell, executor = request.oh.host.running_cell, request.runtime.executor
    if cell is None:
        return Reply(body=encode_json(None))
    whole, file = cell.output.text.rstrip(), ""
    output = clipped(whole)
    if output != whole:
        file = await executor.in_thread(executor.kept_texts.keep, whole, RUNNING_CELL_FILE)
    fields = {"code": cell.code, "cell_id": cell.cell_id, "output": output, "file": file}
    return Reply(body=encode_json({**cell.summary(), **fields}))


@operation("variable_text")
async def _variable_text(request: Request) -> Reply:
    """Return the text of the variable ``name``, which is a str, or bytes in UTF-8."""
    name = request.text("name")
    value = request.oh.host.inspector.value(name)
    if isinstance(value, str):
        return Reply(body=value.encode("utf-8", "surrogatepass"))
    with suppress(UnicodeDecodeError):
        if isinstance(value, bytes | bytearray):
            value.decode()
            return Reply(body=bytes(value))
    raise InspectionError(
        f"{name} is no text but a {type(value).__name__}. Save it to a file with variables and "
        "save_to"
    )


@operation("save_variable")
async def _save_variable(request: Request) -> Reply:
    """Save the variable ``name`` in the workspace's file ``path``, as an Action of the agent."""
    executor, name = request.runtime.executor, request.text("name")
    path = path_in_workspace(request.text("path"), executor)
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


@operation("evaluate")
async def _evaluate(request: Request) -> Reply:
    """Evaluate an expression beside the running cell; it is an Action of the agent."""
    expression = request.text("expression")
    action = IPythonRunCellAction(expression, include_extra=False)
    action.actor = request.actor

    async def evaluate() -> Observation:
        text, images = await request.oh.host.inspector.evaluate(expression)
        return IPythonRunCellObservation(text, code=expression, image_urls=images or None)

    observation = await request.runtime.executor.run_action(
        action, "agent", principal="agent", execute=evaluate
    )
    return Reply(body=request.runtime.events.encoded(observation))


@operation("ask_restart")
async def _ask_restart(request: Request) -> Reply:
    """Ask a person before a restart of the kernel; return the Observation of the decision."""
    action = IPythonRunCellAction(RESTART_CODE, include_extra=False)
    action.actor = request.actor
    overview = await request.oh.host.inspector.overview("")
    names = [row["name"] for row in overview["variables"]]
    losses = [_variables_lost(names, overview["omitted"])] if names else []
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
