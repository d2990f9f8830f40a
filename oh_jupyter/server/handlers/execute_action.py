"""``execute_action``, ``requests/{id}``, ``list_files`` and ``unsaved``."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from oh_jupyter.background import run_in_background
from oh_jupyter.errors import KernelTimeoutError, OhJupyterError, WireError
from oh_jupyter.events.actor import current_actor
from oh_jupyter.events.json import parse_json
from oh_jupyter.events.scopes import scope_of_action
from oh_jupyter.operations.actions import ExecuteAction, Withdraw
from oh_jupyter.operations.runtime import ListFiles
from oh_jupyter.server.handlers.base import OhHandler
from oh_jupyter.server.handlers.routes import (
    EXECUTE_ACTIONS,
    READ_ACTIONS,
    RouteTable,
    send_body,
)
from oh_jupyter.server.links import KernelLink, Reply, is_confined
from oh_jupyter.server.result_store import ID_HEADER, StoredResult
from oh_jupyter.server.tokens import confines

MAX_WAIT_SECONDS = 300.0

routes = RouteTable()
server_routes = RouteTable()


@routes.add("POST /execute_action", EXECUTE_ACTIONS, "executeAction")
async def execute_action(handler: OhHandler, kernel_id: str | None = None) -> None:
    """Execute the Action in the body, and send its Observation.

    The Action is cancelled when its client disconnects, unless the client has sent an id in the
    header ``X-Request-ID``, by which it can fetch the Observation later. A question to a person is
    withdrawn if such a client does not return within 30 s.
    """
    body = handler.body
    if not body:
        raise WireError('The request has no body: send {"action": {...}}', "action")
    if handler.scoped is not None:
        handler.require_scope(scope_of_action(_kind_of(parse_json(body))))
    key = handler.request.headers.get(ID_HEADER)
    if key is not None:
        reply = await _stored_reply(handler, key, kernel_id, body)
    else:
        link = await handler.link(kernel_id)
        note_activity(handler)
        async with handler.state.unsaved.shared():
            reply = await handler.while_connected(
                link.request(ExecuteAction(), body=body, cancellable=True)
            )
    handler.set_header("X-OH-Jupyter-Generation", str(reply.fields.get("generation", "")))
    send_body(handler, reply)


def _kind_of(body: object) -> object:
    """Return the type of the Action in a body, None if the kernel will reject it."""
    action = body.get("action") if isinstance(body, dict) else None
    return action.get("action") if isinstance(action, dict) else None


async def _stored_reply(handler: OhHandler, key: str, kernel_id: str | None, body: bytes) -> Reply:
    """Return the reply to a request with an id, or raise KernelTimeoutError."""
    await handler.check_kernel(kernel_id)
    state = handler.state

    async def execute(stored: StoredResult) -> Reply:
        link = await handler.link(kernel_id)
        stored.has_kernel = True
        stored.abandon = lambda: run_in_background(_withdraw(link, stored.key))
        async with state.unsaved.shared():
            return await link.request(
                ExecuteAction(),
                body=body,
                key=stored.key,
                cancellable=True,
                overdue=stored.overdue,
            )

    note_activity(handler)
    stored = state.results.start(key, handler.principal, execute)
    handler.set_header(ID_HEADER, key)
    with stored.awaited():
        await handler.while_connected(stored.wait_unless_overdue())
    if not stored.task.done():
        link = await handler.link(kernel_id)
        raise KernelTimeoutError(
            f"{link.silence()}. Its response will be at oh_jupyter/requests/{key}"
        )
    return handler.result_of(stored.task)


async def _withdraw(link: KernelLink, key: str) -> None:
    """Cancel a request while it waits for a person, since no client waits for it."""
    with suppress(OhJupyterError):  # the kernel is gone, and with it the question
        await link.request(Withdraw(key), load=False)


def note_activity(handler: OhHandler) -> None:
    """Note who sends an Action, for the log, and that one has arrived."""
    handler.state.activity.touch()
    current_actor.set(handler.actor)
    is_confined.set(confines(handler.scopes))


def _directory(handler: OhHandler) -> ListFiles:
    handler.require_scope("execute")  # it lists any directory
    body = handler.json_body() if handler.body else {}
    path = body.get("path") if isinstance(body, dict) else body
    if not isinstance(body, dict) or not isinstance(path, str | None):
        raise WireError('The body must be {"path": "..."}, or {}', "path")
    return ListFiles(path)


routes.forward("POST /list_files", READ_ACTIONS, "listFiles", _directory)


@server_routes.add("GET /requests/(?P<key>[^/]+)", EXECUTE_ACTIONS, "fetchAnswer")
async def fetch_result(handler: OhHandler, key: str) -> None:
    """Send the result of a request with an id as ``execute_action`` does, or 202 while it runs."""
    wait = _wait_seconds(handler)
    stored = handler.state.results.find(key, handler.principal)
    task = stored.task
    with stored.awaited():
        await handler.while_connected(_done(task, wait))
    handler.set_header(ID_HEADER, key)
    if task.done():
        send_body(handler, handler.result_of(task))
    else:
        handler.set_status(202)
        handler.finish_json({"status": "running"})


async def _done(task: asyncio.Task[Reply], timeout_seconds: float) -> None:
    await asyncio.wait({task}, timeout=timeout_seconds)


@server_routes.add("DELETE /requests/(?P<key>[^/]+)", EXECUTE_ACTIONS, "cancelRequest")
async def cancel_request(handler: OhHandler, key: str) -> None:
    """Cancel a request with an id unless it is done."""
    handler.state.results.find(key, handler.principal).task.cancel()
    handler.finish_empty()


def _wait_seconds(handler: OhHandler) -> float:
    text = handler.get_query_argument("wait", "0")
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1
    if not 0 <= seconds <= MAX_WAIT_SECONDS:
        raise WireError(f"'wait' must be 0 to {MAX_WAIT_SECONDS:.0f} seconds, not {text!r}", "wait")
    return seconds


@server_routes.add("POST /unsaved", EXECUTE_ACTIONS, "saveUnsaved")
async def save_unsaved(handler: OhHandler) -> None:
    """Have all windows save before an agent reads files, or ``check`` them after it changed some.

    The kernel asks for that around the work of its guests.
    """
    if handler.flag("check"):
        handler.state.unsaved.announce_changes()
    else:
        await handler.state.unsaved.save()
    handler.finish_empty()


@server_routes.add("PUT /unsaved", ("write", "contents"), "reportUnsaved")
async def report_unsaved(handler: OhHandler) -> None:
    """Note a window's unsaved documents, and the save request that the report answers."""
    body = handler.json_body()
    report = body if isinstance(body, dict) else {}
    client, paths, answered = (report.get(name) for name in ("client", "paths", "answered"))
    if not isinstance(client, str) or not isinstance(paths, list):
        raise WireError('The body must be {"client": "...", "paths": [...]}', "paths")
    handler.state.unsaved.report(
        client,
        frozenset(str(path) for path in paths),
        answered if isinstance(answered, int) else None,
    )
    handler.finish_empty()
