"""Operations on Actions, tools, the event log and the state of the runtime."""

from __future__ import annotations

import json
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
from oh_jupyter.events.fields import mapping
from oh_jupyter.events.json import encode_json
from oh_jupyter.events.wire import action_from_wire, to_wire
from oh_jupyter.kernel.control.agent_requests import check_approved
from oh_jupyter.kernel.control.broadcast import clipped
from oh_jupyter.kernel.control.rpc import Request, operation
from oh_jupyter.policy import restrictions
from oh_jupyter.runtime import list_directory
from oh_jupyter.runtime.approvals import Scope
from oh_jupyter.runtime.confirmation import Decision, PendingAction
from oh_jupyter.runtime.file_system import HeldDirectory
from oh_jupyter.runtime.mcp import McpTool, parse_servers
from oh_jupyter.runtime.reasons import Reason

_actions_by_key: WeakValueDictionary[str, Action] = WeakValueDictionary()
"""Actions in progress, by the keys of their requests."""

_live_by_key: WeakValueDictionary[str, LiveOutputs] = WeakValueDictionary()
"""Outputs of the cells that clients follow, by the keys of these clients."""


@operation("execute_action")
async def _execute_action(request: Request) -> Reply:
    data = request.json("action")
    if not isinstance(data, dict) or not isinstance(data.get("action"), dict):
        raise WireError("The body must be a JSON object with an 'action' object", "action")
    runtime = request.runtime
    observation = await _observe(request, data["action"])
    tools = runtime.executor.tools.version
    return Reply({"tools": tools, **_notes(request)}, runtime.events.encoded(observation))


@operation("run_cell")
async def _run_cell(request: Request) -> Reply:
    """Execute a ``run_ipython`` Action, and return its outputs in the notebook format."""
    from oh_jupyter.cells import CellOutput, captured_outputs
    from oh_jupyter.cells.request import begin_within, stores_history
    from oh_jupyter.kernel.cells.followed_cells import prepared_for_client

    runtime, data = request.runtime, request.json()
    outputs: list[CellOutput] = []
    captured_outputs.set(outputs)
    stores_history.set(request.fields.get("store_history") is True)
    if "begin_within" in request.fields:
        begin_within.set(float(request.fields["begin_within"]))
    wire = data.get("action") if isinstance(data, dict) else data
    rest: dict[str, Any] = {}
    if "follow" in request.fields:
        live = _live(request.text("follow"))
        live_outputs.set(live)
        variables = mapping(request.fields.get("env") or {}, "env_vars")
        async with prepared_for_client(request.oh.host.formatters, variables):
            observation = await _observe(request, wire)
        rest = live.after(int(request.fields.get("seen", 0)), at_end=True)
    else:
        observation = await _observe(request, wire)
    whole, limit = outputs[-1].text if outputs else "", runtime.executor.settings.cell_output_limit
    keep = runtime.executor.kept_texts.keep
    fields = {
        "observation": json.loads(runtime.events.encoded(observation)),
        "file": await runtime.executor.in_thread(keep, whole) if len(whole) > limit else "",
        "outputs": outputs[-1].notebook_outputs if outputs else [],
        "execution_count": outputs[-1].execution_count if outputs else None,
        "rest": rest,
    }
    tools = runtime.executor.tools.version
    return Reply({"tools": tools, **_notes(request)}, encode_json(fields))


def _live(key: str) -> LiveOutputs:
    """Return the outputs of a client's key; either request may come first."""
    return _live_by_key.setdefault(key, LiveOutputs())


@operation("cell_outputs")
async def _cell_outputs(request: Request) -> Reply:
    """Return the outputs of a cell after the ``seen`` first ones; wait for one if necessary."""
    live, seen = _live(request.text("of")), int(request.fields.get("seen", 0))
    await live.wait(seen, float(request.fields.get("wait", 0)))
    return Reply(body=encode_json(live.after(seen)))


@operation("keep_text")
async def _keep_text(request: Request) -> Reply:
    """Keep a text in a file that agents can read; return its path."""
    executor = request.runtime.executor
    text = request.buffers[0].decode() if request.buffers else ""
    return Reply({"path": await executor.in_thread(executor.kept_texts.keep, text)})


@operation("undo_notes")
async def _undo_notes(request: Request) -> Reply:
    """Return the notes on undone changes that the client has not received."""
    return Reply(_notes(request))


def _notes(request: Request) -> dict[str, Any]:
    """Return such notes for a client that shows them to its agent."""
    if request.fields.get("notes") is not True:
        return {}
    notes = request.runtime.executor.undo_notes.take(request.actor)
    return {"notes": notes} if notes else {}


async def _observe(request: Request, wire: Any) -> Observation:
    """Execute a client's Action; the client may name a source, but not a principal."""
    action = action_from_wire(wire)
    action.actor = request.actor
    if request.fields.get("relative_paths") is True and isinstance(action, FileEditAction):
        action.path = os.path.join(request.runtime.executor.cwd, action.path)
    if "key" in request.fields:
        _actions_by_key[request.fields["key"]] = action
    source = action.source or "agent"
    confined = request.fields.get("confined") is True
    return await request.runtime.executor.run_action(
        action, source, principal="agent", confined=confined, is_parsed=True
    )


@operation("announce_edit")
async def _announce_edit(request: Request) -> Reply:
    """Begin a turn for an edit that the server is about to make for an agent."""
    edit = FileEditAction(_local_path(request.json()["path"]), "notebook_edit")
    edit.actor = request.actor
    await request.runtime.executor.turns.announce_edit(edit)
    return Reply()


@operation("finish_edit")
async def _finish_edit(request: Request) -> Reply:
    """Record that the server has made an announced edit."""
    path = _local_path(request.json()["path"])
    await request.runtime.executor.turns.finish_edit(path)
    return Reply()


def _local_path(path: object) -> str:
    """Return a path with the home that JupyterLab abbreviates in its root directory."""
    return os.path.expanduser(str(path))


@operation("record_edit")
async def _record_edit(request: Request) -> Reply:
    """Record an edit with its diff: one that the server made for an agent, or a person in a tab."""
    fields, events = request.fields, request.runtime.events
    source = fields.get("source", "agent")
    if source not in ("agent", "user"):
        raise WireError("'source' must be 'agent' or 'user'", "source")
    edit = fields["edit"] if source == "user" else request.json()
    wire = edit["action"]
    path = _local_path(wire["args"]["path"])
    action = action_from_wire({**wire, "args": {**wire["args"], "path": path}})
    action.actor = request.actor
    events.add_event(action, source)
    observation = FileEditObservation(str(edit["content"]), path=path, diff=str(edit["diff"]))
    observation.cause = action.id
    events.add_event(observation, source)
    if source == "agent":
        await request.runtime.executor.turns.finish_edit(path)
    else:
        request.runtime.executor.undo_notes.add(observation.content, str(edit["diff"]))
    return Reply(_notes(request))


@operation("record_keep")
async def _record_keep(request: Request) -> Reply:
    """Note for agents that a person kept changes of a file in a tab."""
    name, count = request.text("name"), request.fields.get("count")
    if not isinstance(count, int) or isinstance(count, bool) or count < 1:
        raise WireError("'count' must be the number of changes, at least 1", "count")
    request.runtime.executor.undo_notes.add_keep(name, count)
    return Reply()


@operation("peek")
async def _peek(request: Request) -> Reply:
    """Return the progress of an Action by its ``id`` or its request's key ``of``; see ``look``."""
    fields = request.fields
    action = _actions_by_key.get(fields.get("of", ""))
    id = action.id if action is not None else fields.get("id")
    seconds = float(fields.get("wait", 0))
    running = request.runtime.executor.running
    if action is None and id is not None and id in running:
        running[id].follow()
    return Reply({**await running.look(id, fields.get("seen"), seconds)})


@operation("interrupt")
async def _interrupt(request: Request) -> Reply:
    """Interrupt the command in the shell, as the kernel's own interrupt does for cells.

    A command that started after the time ``requested`` on this clock is left alone.
    """
    executor, requested = request.runtime.executor, request.fields.get("requested")
    if executor.has_shell and not (requested and executor.running.began_after(requested)):
        await executor.in_thread(executor.interrupt_shells)
    return Reply()


@operation("confirmations")
async def _confirmations(request: Request) -> Reply:
    """Return the waiting Actions, with the diffs of edits.

    With a request's key ``of``, return only its Action. ``wait`` waits until the ids differ from
    those in ``known``, by default none.
    """
    executor, fields = request.runtime.executor, request.fields
    confirmations = executor.confirmations

    def chosen() -> dict[int, PendingAction]:
        waiting = confirmations.waiting
        if "of" not in fields:
            return waiting
        action = _actions_by_key.get(fields["of"])
        return {id: entry for id, entry in waiting.items() if entry.action is action}

    if "wait" in fields:
        seconds = float(fields["wait"])
        known = set(fields.get("known", ()))
        await wait_while(confirmations.on_question, lambda: chosen().keys() == known, seconds)
    waiting = [
        {
            "id": id,
            "agent": entry.agent,
            "message": entry.message,
            "reason": entry.reason,
            "reasons": [str(each) for each in entry.reasons],
            "diff": await executor.preview(entry.action),
            "seconds_left": round(entry.seconds_left, 3),
            "sandboxed": entry.sandboxed,
            "is_question": entry.is_question,
            "form": [asdict(field) for field in entry.form],
        }
        for id, entry in chosen().items()
    ]
    return Reply({"waiting": waiting})


def _scope(fields: dict[str, Any]) -> Scope:
    if fields.get("for_workspace") is True:
        return "workspace"
    return "session" if fields.get("for_session") is True else "once"


@operation("confirm")
async def _confirm(request: Request) -> Reply:
    fields = request.fields
    approve = fields.get("approve")
    if not isinstance(approve, bool):
        raise WireError("'approve' must be true or false", "approve")
    values = fields.get("values") or {}
    if not isinstance(values, dict):
        raise WireError("'values' must be an object", "values")
    decision = Decision(
        approve,
        by=str(fields.get("by", "")),
        why=str(fields.get("why", "")),
        scope=_scope(fields),
        values=values,
    )
    request.runtime.executor.confirmations.resolve(fields.get("id", -1), decision)
    return Reply()


@operation("withdraw")
async def _withdraw(request: Request) -> Reply:
    """Cancel the Action of a request's key ``of`` while it waits for a person."""
    executor, action = request.runtime.executor, _actions_by_key.get(request.text("of"))
    if action is not None and action.id in executor.confirmations.waiting:
        executor.running[action.id].task.cancel()
    return Reply()


@operation("status")
async def _status(request: Request) -> Reply:
    executor, agents = request.runtime.executor, request.oh.agents.at_work.items()
    cell = request.oh.host.running_cell
    started = {
        "cell": None if cell is None else cell.summary(),
        "browsers": executor.browsers.names if executor.has_browser else [],
        "agents": {name: "busy" if session.is_busy else "ready" for name, session in agents},
        "box": executor.boxes.facts(),
        "restrictions": restrictions(executor.settings.policy or {}),
    }
    return Reply({"runtime": {**request.runtime.status(), **started}})


@operation("end_resource")
async def _end_resource(request: Request) -> Reply:
    """End the shell, a browser or an agent by its name; the next use starts a new one."""
    executor, kind, name = request.runtime.executor, request.text("kind"), request.text("name")
    if kind == "shell":
        await executor.end_shell()
    elif kind == "browser":
        await executor.in_thread(executor.browsers.close, name)
    elif kind == "agent":
        with suppress(AgentNotFoundError):  # it has already ended
            await request.oh.agents.stop(name)
    else:
        raise WireError("'kind' must be 'shell', 'browser' or 'agent'", "kind")
    return Reply()


@operation("list_files")
async def _list_files(request: Request) -> Reply:
    executor = request.runtime.executor
    path = os.path.join(executor.workspace_dir, request.fields.get("path") or "")
    directory = await executor.in_thread(HeldDirectory, path)
    try:
        await check_approved(request, "list_files", {}, reads=[directory.real])
        names = await executor.in_thread(list_directory, directory.contents, "")
    finally:
        directory.close()
    return Reply({"names": names})


@operation("events")
async def _events(request: Request) -> Reply:
    runtime, fields = request.runtime, request.fields
    start = fields.get("start_id", 0)
    if fields.get("wait"):
        log = runtime.events
        await wait_while(log.subscribe, lambda: log.latest_id < start, float(fields["wait"]))
    events = await runtime.executor.in_thread(
        runtime.events.search, start=start, limit=fields.get("limit")
    )
    wires = [to_wire(event) for event in events]
    return Reply(
        {"workspace_dir": runtime.executor.workspace_dir},
        encode_json(wires if fields.get("whole") else [clipped(wire) for wire in wires]),
    )


@operation("event")
async def _event(request: Request) -> Reply:
    events, number = request.runtime.events, request.fields.get("id", -1)
    try:
        event = await request.runtime.executor.in_thread(events.get_event, number)
    except FileNotFoundError:
        raise EventNotFoundError(
            f"There is no event {number}; the last one is {events.latest_id}"
        ) from None
    return Reply(body=encode_json(to_wire(event)))


@operation("page")
async def _page(request: Request) -> Reply:
    """Return the Observation of the last browser step."""
    page = request.runtime.executor.last_page
    if page is None:
        raise EventNotFoundError("No page was visited yet. Open one with a browse action")
    return Reply(body=encode_json(to_wire(page)))


@operation("vscode")
async def _vscode(request: Request) -> Reply:
    from oh_jupyter.plugins import VSCodePlugin

    plugins = request.runtime.executor.plugins
    plugin = await plugins.find(VSCodePlugin.name)
    if isinstance(plugin, VSCodePlugin):
        await check_approved(request, "vscode", {}, reasons=[Reason("gets_vscode_key")])
    else:
        problem = plugins.problems.get(VSCodePlugin.name)
        return Reply({"token": None, "url": None, "problem": problem})
    return Reply({"token": plugin.vscode_connection_token, "url": plugin.url(), "problem": None})


@operation("skills")
async def _skills(request: Request) -> Reply:
    from oh_jupyter.skills import registry

    skills = await request.runtime.executor.in_thread(registry)
    listing = [
        {"name": name, "signature": skill.signature, "docstring": skill.docstring}
        for name, skill in skills.items()
    ]
    return Reply({"skills": listing})


@operation("tools")
async def _list_tools(request: Request) -> Reply:
    """List tools as MCP does, with ``skills`` also skills; the server uses the ``taken`` names."""
    executor = request.runtime.executor
    await executor.mcp.begin()
    version = executor.tools.version
    wanted = request.fields.get("skills", True)
    tools = await executor.in_thread(executor.tools.tools) if wanted else {}
    own = [tool for tool in tools.values() if not isinstance(tool, McpTool)]
    taken = {*request.fields.get("taken", ()), *(tool.name for tool in own)}
    listing = [
        {"name": tool.name, "description": tool.description, "inputSchema": tool.input_schema}
        for tool in own
    ]
    listing += executor.mcp.listed(taken)
    skills = [tool.name for tool in own]
    return Reply({"tools": version, "skills": skills}, json.dumps(listing).encode())


@operation("tools_changed")
async def _tools_changed(request: Request) -> Reply:
    """Wait up to ``wait`` seconds for a version of the tools other than ``known``."""
    tools = request.runtime.executor.tools
    known, seconds = request.fields.get("known"), float(request.fields.get("wait", 0))
    await wait_while(tools.on_change, lambda: tools.version == known, seconds)
    return Reply({"tools": tools.version})


@operation("update_mcp_server")
async def _update_mcp_server(request: Request) -> Reply:
    """Run exactly the MCP servers of the body; return the errors of those that fail.

    A person must allow the programs that an agent starts, unless the kernel's own box holds them.
    """
    servers = parse_servers(request.json())
    executor = request.runtime.executor
    started = [] if executor.boxes.contains(is_boxed=False) else executor.mcp.unknown(servers)
    if started:
        lines = [server.command_line for server in started]
        reasons = [Reason("starts_program", (line,)) for line in lines]
        await check_approved(request, "update_mcp_server", {"programs": lines}, reasons=reasons)
    return Reply({"router_error_log": await request.runtime.executor.mcp.sync(servers)})
