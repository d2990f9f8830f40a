"""Operations on Actions, tools, the event log and the state of the runtime."""

from __future__ import annotations

import json
import math
import os
from contextlib import suppress
from dataclasses import asdict
from typing import Any
from weakref import WeakValueDictionary

from oh_jupyter.background import wait_while
from oh_jupyter.cells.live import LiveOutputs, live_outputs
from oh_jupyter.control_messages import Reply
from oh_jupyter.errors import AgentNotFoundError, EventNotFoundError, WireError
from oh_jupyter.events import Action, FileEditAction, FileEditObservation, Observation
from oh_jupyter.events.json import encode_json
from oh_jupyter.events.wire import action_from_wire, to_wire
from oh_jupyter.kernel.control.agent_requests import check_approved
from oh_jupyter.kernel.control.broadcast import clipped
from oh_jupyter.kernel.control.rpc import Request, handles
from oh_jupyter.operations import actions, from_json, runtime, to_json
from oh_jupyter.policy import restrictions
from oh_jupyter.runtime import list_directory
from oh_jupyter.runtime.approvals import Scope
from oh_jupyter.runtime.confirmation import Decision, PendingAction
from oh_jupyter.runtime.file_rules import HeldDirectory
from oh_jupyter.runtime.mcp import McpTool, parse_servers
from oh_jupyter.runtime.reasons import Reason

_actions_by_key: WeakValueDictionary[str, Action] = WeakValueDictionary()
"""Actions in progress, by the keys of their requests."""

_live_by_key: WeakValueDictionary[str, LiveOutputs] = WeakValueDictionary()
"""Outputs of the cells that clients follow, by the keys of these clients."""


@handles(actions.ExecuteAction)
async def _execute_action(request: Request, op: actions.ExecuteAction) -> Reply:
    data = request.json("action")
    if not isinstance(data, dict) or not isinstance(data.get("action"), dict):
        raise WireError("The body must be a JSON object with an 'action' object", "action")
    observation = await _observe(request, data["action"], relative_paths=op.relative_paths)
    tools = request.runtime.executor.tools.version
    body = request.runtime.events.encoded(observation)
    return Reply({"tools": tools, **_notes(request)}, body)


@handles(actions.RunCell)
async def _run_cell(request: Request, op: actions.RunCell) -> Reply:
    from oh_jupyter.cells import CellOutput, captured_outputs
    from oh_jupyter.cells.request import begin_within, stores_history
    from oh_jupyter.kernel.cells.followed_cells import prepared_for_client

    runtime, data = request.runtime, request.json()
    outputs: list[CellOutput] = []
    captured_outputs.set(outputs)
    stores_history.set(op.store_history)
    if op.begin_within is not None:
        begin_within.set(op.begin_within)
    wire = data.get("action") if isinstance(data, dict) else data
    rest = actions.UnseenOutputs()
    if op.follow:
        live = _live(op.follow)
        live_outputs.set(live)
        async with prepared_for_client(request.oh.host.formatters, op.env or {}):
            observation = await _observe(request, wire)
        rest = actions.UnseenOutputs(**live.after(op.seen, at_end=True))
    else:
        observation = await _observe(request, wire)
    whole, limit = outputs[-1].text if outputs else "", runtime.executor.settings.cell_output_limit
    keep = runtime.executor.kept_texts.keep
    result = actions.CellResult(
        observation=json.loads(runtime.events.encoded(observation)),
        file=await runtime.executor.in_thread(keep, whole) if len(whole) > limit else "",
        outputs=outputs[-1].notebook_outputs if outputs else [],
        execution_count=outputs[-1].execution_count if outputs else None,
        rest=rest,
    )
    # to_json would walk through the outputs, which are JSON and may be large.
    fields = {**vars(result), "rest": to_json(rest)}
    tools = runtime.executor.tools.version
    return Reply({"tools": tools, **_notes(request)}, encode_json(fields))


def _live(key: str) -> LiveOutputs:
    """Return the outputs of a client's key; either request may come first."""
    return _live_by_key.setdefault(key, LiveOutputs())


@handles(actions.CellOutputs)
async def _cell_outputs(request: Request, op: actions.CellOutputs) -> actions.OutputBatch:
    live = _live(op.of)
    await live.wait(op.seen, op.wait)
    return actions.OutputBatch(**live.after(op.seen))


@handles(actions.KeepText)
async def _keep_text(request: Request, op: actions.KeepText) -> str:
    executor = request.runtime.executor
    text = request.buffers[0].decode() if request.buffers else ""
    path: str = await executor.in_thread(executor.kept_texts.keep, text)
    return path


@handles(actions.UndoNotes)
async def _undo_notes(request: Request, op: actions.UndoNotes) -> Reply:
    return Reply(_notes(request))


def _notes(request: Request) -> dict[str, Any]:
    """Return such notes for a client that shows them to its agent."""
    if not request.wants_notes:
        return {}
    notes = request.runtime.executor.undo_notes.take(request.actor)
    return {"notes": notes} if notes else {}


async def _observe(request: Request, wire: Any, *, relative_paths: bool = False) -> Observation:
    """Execute a client's Action; the client may name a source, but not a principal."""
    action = action_from_wire(wire)
    action.actor = request.actor
    if relative_paths and isinstance(action, FileEditAction):
        action.path = os.path.join(request.runtime.executor.cwd, action.path)
    if request.key:
        _actions_by_key[request.key] = action
    return await request.runtime.executor.run_action(
        action,
        action.source or "agent",
        principal="agent",
        confined=request.is_confined,
        is_parsed=True,
    )


@handles(actions.AnnounceEdit)
async def _announce_edit(request: Request, op: actions.AnnounceEdit) -> None:
    edit = FileEditAction(_local_path(op.path), "notebook_edit")
    edit.actor = request.actor
    await request.runtime.executor.turns.announce_edit(edit)


@handles(actions.FinishEdit)
async def _finish_edit(request: Request, op: actions.FinishEdit) -> None:
    await request.runtime.executor.turns.finish_edit(_local_path(op.path))


def _local_path(path: str) -> str:
    """Return a path with the home that JupyterLab abbreviates in its root directory."""
    return os.path.expanduser(path)


@handles(actions.RecordEdit)
async def _record_edit(request: Request, op: actions.RecordEdit) -> Reply:
    action, events = action_from_wire(op.action), request.runtime.events
    if not isinstance(action, FileEditAction):
        raise WireError("'action' must be an edit", "action")
    action.path = _local_path(action.path)
    action.actor = request.actor
    events.add_event(action, op.source)
    observation = FileEditObservation(op.content, path=action.path, diff=op.diff)
    observation.cause = action.id
    events.add_event(observation, op.source)
    if op.source == "agent":
        await request.runtime.executor.turns.finish_edit(action.path)
    else:
        request.runtime.executor.undo_notes.add(op.content, op.diff)
    return Reply(_notes(request))


@handles(actions.Peek)
async def _peek(request: Request, op: actions.Peek) -> actions.Progress:
    action, running = _actions_by_key.get(op.of), request.runtime.executor.running
    id = op.id if action is None else action.id
    if action is None and id is not None and id in running:
        running[id].follow()
    return from_json(actions.Progress, await running.look(id, op.seen, op.wait))


@handles(actions.Interrupt)
async def _interrupt(request: Request, op: actions.Interrupt) -> None:
    request.runtime.executor.interrupt_shells(math.inf if op.requested is None else op.requested)


@handles(actions.Confirmations)
async def _confirmations(request: Request, op: actions.Confirmations) -> list[actions.Question]:
    executor = request.runtime.executor
    confirmations = executor.confirmations

    def chosen() -> dict[int, PendingAction]:
        waiting = confirmations.waiting
        if not op.of:
            return waiting
        action = _actions_by_key.get(op.of)
        return {id: entry for id, entry in waiting.items() if entry.action is action}

    if op.wait:
        known = set(op.known)
        await wait_while(confirmations.on_question, lambda: chosen().keys() == known, op.wait)
    return [
        _question(id, entry, await executor.preview(entry.action)) for id, entry in chosen().items()
    ]


def _question(id: int, entry: PendingAction, diff: str) -> actions.Question:
    return actions.Question(
        id=id,
        agent=entry.agent,
        message=entry.message,
        reason=entry.reason,
        reasons=[str(each) for each in entry.reasons],
        diff=diff,
        seconds_left=round(entry.seconds_left, 3),
        sandboxed=entry.sandboxed,
        is_question=entry.is_question,
        form=[from_json(actions.FormField, asdict(each)) for each in entry.form],
    )


def _scope(op: actions.Confirm) -> Scope:
    if op.for_workspace:
        return "workspace"
    return "session" if op.for_session else "once"


@handles(actions.Confirm)
async def _confirm(request: Request, op: actions.Confirm) -> None:
    values = op.values or {}
    decision = Decision(op.approve, by=op.by, why=op.reason, scope=_scope(op), values=values)
    await request.runtime.executor.confirmations.resolve(op.id, decision)


@handles(actions.Withdraw)
async def _withdraw(request: Request, op: actions.Withdraw) -> None:
    executor, action = request.runtime.executor, _actions_by_key.get(op.of)
    if action is not None and action.id in executor.confirmations.waiting:
        executor.running[action.id].task.cancel()


@handles(runtime.Status)
async def _status(request: Request, op: runtime.Status) -> runtime.RuntimeStatus:
    executor, agents = request.runtime.executor, request.oh.agents.at_work.items()
    cell = request.oh.host.running_cell
    status = request.runtime.status()
    started = {
        "waiting": {str(id): reason for id, reason in status["waiting"].items()},
        "cell": None if cell is None else cell.summary(),
        "browsers": executor.browsers.names if executor.has_browser else [],
        "agents": {name: "busy" if session.is_busy else "ready" for name, session in agents},
        "box": executor.boxes.facts(),
        "restrictions": restrictions(executor.settings.policy or {}),
    }
    return from_json(runtime.RuntimeStatus, {**status, **started})


@handles(runtime.EndResource)
async def _end_resource(request: Request, op: runtime.EndResource) -> None:
    executor = request.runtime.executor
    if op.kind == "shell":
        await executor.end_shell()
    elif op.kind == "browser":
        await executor.in_thread(executor.browsers.close, op.name)
    else:
        with suppress(AgentNotFoundError):  # it has already ended
            await request.oh.agents.stop(op.name)


@handles(runtime.ListFiles)
async def _list_files(request: Request, op: runtime.ListFiles) -> list[str]:
    executor = request.runtime.executor
    path = os.path.join(executor.workspace_dir, op.path or "")
    directory = await executor.in_thread(HeldDirectory, path)
    try:
        await check_approved(request, "list_files", {}, reads=[directory.real])
        names: list[str] = await executor.in_thread(list_directory, directory.contents, "")
    finally:
        directory.close()
    return names


@handles(runtime.Events)
async def _events(request: Request, op: runtime.Events) -> runtime.EventPage:
    executor, log = request.runtime.executor, request.runtime.events
    if op.wait:
        await wait_while(log.subscribe, lambda: log.latest_id < op.start_id, op.wait)
    events = await executor.in_thread(log.search, start=op.start_id, limit=op.limit)
    wires = [to_wire(event) for event in events]
    shown = wires if op.whole else [clipped(wire) for wire in wires]
    return runtime.EventPage(executor.workspace_dir, shown)


@handles(runtime.Event)
async def _event(request: Request, op: runtime.Event) -> dict[str, Any]:
    events = request.runtime.events
    try:
        event = await request.runtime.executor.in_thread(events.get_event, op.id)
    except FileNotFoundError:
        raise EventNotFoundError(
            f"There is no event {op.id}; the last one is {events.latest_id}"
        ) from None
    return to_wire(event)


@handles(runtime.Page)
async def _page(request: Request, op: runtime.Page) -> dict[str, Any]:
    page = request.runtime.executor.last_page
    if page is None:
        raise EventNotFoundError("No page was visited yet. Open one with a browse action")
    return to_wire(page)


@handles(runtime.Vscode)
async def _vscode(request: Request, op: runtime.Vscode) -> runtime.VSCodeAddress:
    from oh_jupyter.plugins import VSCodePlugin

    plugins = request.runtime.executor.plugins
    plugin = await plugins.find(VSCodePlugin.name)
    if isinstance(plugin, VSCodePlugin):
        await check_approved(request, "vscode", {}, reasons=[Reason("gets_vscode_key")])
    else:
        problem = plugins.problems.get(VSCodePlugin.name)
        return runtime.VSCodeAddress(problem=problem)
    return runtime.VSCodeAddress(plugin.vscode_connection_token, plugin.url())


@handles(runtime.Skills)
async def _skills(request: Request, op: runtime.Skills) -> list[runtime.Skill]:
    from oh_jupyter.skills import registry

    skills = await request.runtime.executor.in_thread(registry)
    return [runtime.Skill(name, skill.signature, skill.docstring) for name, skill in skills.items()]


@handles(runtime.Tools)
async def _list_tools(request: Request, op: runtime.Tools) -> Reply:
    executor = request.runtime.executor
    await executor.mcp.begin()
    version = executor.tools.version
    tools = await executor.in_thread(executor.tools.tools) if op.skills else {}
    own = [tool for tool in tools.values() if not isinstance(tool, McpTool)]
    taken = {*op.taken, *(tool.name for tool in own)}
    listing = [
        {"name": tool.name, "description": tool.description, "inputSchema": tool.input_schema}
        for tool in own
    ]
    listing += executor.mcp.listed(taken)
    tool_list = runtime.ToolList([tool.name for tool in own], listing)
    return Reply({"tools": version}, encode_json(to_json(tool_list)))


@handles(runtime.ToolsChanged)
async def _tools_changed(request: Request, op: runtime.ToolsChanged) -> Reply:
    tools = request.runtime.executor.tools
    await wait_while(tools.on_change, lambda: tools.version == op.known, op.wait)
    return Reply({"tools": tools.version}, encode_json(tools.version))


@handles(runtime.UpdateMcpServer)
async def _update_mcp_server(request: Request, op: runtime.UpdateMcpServer) -> str:
    servers = parse_servers(request.json())
    executor = request.runtime.executor
    started = [] if executor.boxes.contains(is_boxed=False) else executor.mcp.unknown(servers)
    if started:
        lines = [server.command_line for server in started]
        reasons = [Reason("starts_program", (line,)) for line in lines]
        await check_approved(request, "update_mcp_server", {"programs": lines}, reasons=reasons)
    return await request.runtime.executor.mcp.sync(servers)
