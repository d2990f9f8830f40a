"""``execute_action``, ``requests/{id}``, ``list_files`` and ``unsaved``."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from oh_jupyter.background import run_in_background
from oh_jupyter.errors import KernelTimeoutError, OhJupyterError, WireError
from oh_jupyter.events.actor import current_actor, scope_of_action
from oh_jupyter.events.json import parse_json
from oh_jupyter.operations import arguments, to_json
from oh_jupyter.operations.actions import ExecuteAction, Withdraw
from oh_jupyter.operations.runtime import ListFiles
from oh_jupyter.server.handlers.base import OhHandler
from oh_jupyter.server.handlers.contract import (
    KERNEL_ERRORS,
    Answer,
    Body,
    Contract,
    component,
    constrained,
    returns,
    whole,
)
from oh_jupyter.server.handlers.routes import (
    EXECUTE_ACTIONS,
    READ_ACTIONS,
    RouteTable,
    send_body,
)
from oh_jupyter.server.links import KernelLink, Reply, is_confined
from oh_jupyter.server.result_store import ID_HEADER, ID_PATTERN, StoredResult
from oh_jupyter.server.tokens import confines

MAX_WAIT_SECONDS = 300
GENERATION_HEADER = "X-OH-Jupyter-Generation"

_REPEATED_ID = {ID_HEADER: {"description": "The request's id."}}

routes = RouteTable(KERNEL_ERRORS)
server_routes = RouteTable()

EXECUTION = Contract(
    (
        Answer(
            "The Observation; one of type `error` if the Action failed.",
            component("Observation"),
            headers={
                **_REPEATED_ID,
                GENERATION_HEADER: {
                    "description": "Id of the runtime; it changes when its state is lost."
                },
            },
        ),
    ),
    headers={
        ID_HEADER: {"description": "The client's id of the request.", "pattern": whole(ID_PATTERN)},
    },
    body=Body(
        {
            "type": "object",
            "required": ["action"],
            "properties": {"action": component("RunnableAction")},
        }
    ),
    errors=(400, 410),
)


@routes.add("POST /execute_action", EXECUTE_ACTIONS, "executeAction", contract=EXECUTION)
async def execute_action(handler: OhHandler, kernel_id: str | None = None) -> None:
    """Execute an Action and return its Observation.

    Closing the connection cancels the Action. A client that sends an id in ``X-Request-ID`` can
    instead fetch the Observation later at ``/oh_jupyter/requests/{id}``; sending the same id again
    executes nothing twice. A question to a person about the Action is withdrawn when its client has
    left, with an id after 30 s, and the Action never runs.
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
    handler.set_header(GENERATION_HEADER, str(reply.fields.get("generation", "")))
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


NAMES = Contract(
    returns("The names; none if there is no such directory.", list[str]),
    body=Body(ListFiles, is_required=False, is_open=True),
)


def _directory(handler: OhHandler) -> ListFiles:
    """List the names in a directory; directories come first and end in a slash."""
    handler.require_scope("execute")  # it lists any directory
    body = handler.json_body() if handler.body else {}
    path = body.get("path") if isinstance(body, dict) else body
    if not isinstance(body, dict) or not isinstance(path, str | None):
        raise WireError('The body must be {"path": "..."}, or {}', "path")
    return ListFiles(path)


routes.forward("POST /list_files", READ_ACTIONS, "listFiles", _directory, contract=NAMES)


@dataclass(frozen=True)
class ResultQuery:
    """The query of a request's result.

    Attributes:
        wait: Seconds to wait for a result.
    """

    wait: float = constrained(
        0, minimum=0, maximum=MAX_WAIT_SECONDS, expected=f"0 to {MAX_WAIT_SECONDS} seconds"
    )


@dataclass(frozen=True)
class Running:
    """The action is running."""

    status: Literal["running"] = "running"


RESULT = Contract(
    (
        Answer("The Observation.", component("Observation"), headers=_REPEATED_ID),
        Answer("The action is running.", Running, status=202),
    ),
    query=ResultQuery,
    errors=(400, 404, 410, 422, *KERNEL_ERRORS),
)


@server_routes.add("GET /requests/(?P<key>[^/]+)", EXECUTE_ACTIONS, "fetchAnswer", contract=RESULT)
async def fetch_result(handler: OhHandler, key: str) -> None:
    """Fetch the result of an action with an id; it is kept for 15 minutes."""
    wait = handler.query(ResultQuery).wait
    stored = handler.state.results.find(key, handler.principal)
    task = stored.task
    with stored.awaited():
        await handler.while_connected(_done(task, wait))
    handler.set_header(ID_HEADER, key)
    if task.done():
        send_body(handler, handler.result_of(task))
    else:
        handler.set_status(202)
        handler.finish_json(to_json(Running()))


async def _done(task: asyncio.Task[Reply], timeout_seconds: float) -> None:
    await asyncio.wait({task}, timeout=timeout_seconds)


CANCELLATION = Contract(
    returns("Cancelled unless it had ended already.", status=204), errors=(404,)
)


@server_routes.add(
    "DELETE /requests/(?P<key>[^/]+)", EXECUTE_ACTIONS, "cancelRequest", contract=CANCELLATION
)
async def cancel_request(handler: OhHandler, key: str) -> None:
    """Cancel an action with an id, and interrupt it if possible."""
    handler.state.results.find(key, handler.principal).task.cancel()
    handler.finish_empty()


@dataclass(frozen=True)
class SaveQuery:
    """The query of a request to save.

    Attributes:
        check: Have them check their files for changes instead.
    """

    check: bool = False


SAVED = Contract(
    returns("They have saved, except for what they must ask the person about.", status=204),
    query=SaveQuery,
)


@server_routes.add("POST /unsaved", EXECUTE_ACTIONS, "saveUnsaved", contract=SAVED)
async def save_unsaved(handler: OhHandler) -> None:
    """Have the windows save before an agent reads files, or check these after it.

    The kernel asks for that around the work of its guests.
    """
    if handler.query(SaveQuery).check:
        handler.state.unsaved.announce_changes()
    else:
        await handler.state.unsaved.save()
    handler.finish_empty()


@dataclass(frozen=True)
class Report:
    """A window's report.

    Attributes:
        client: The window.
        paths: Its unsaved documents, relative to the server's root.
        answered: The save request that this report answers.
    """

    client: str
    paths: list[str]
    answered: int | None = None


REPORT = Contract(returns("Recorded.", status=204), body=Body(Report, is_open=True))


@server_routes.add("PUT /unsaved", ("write", "contents"), "reportUnsaved", contract=REPORT)
async def report_unsaved(handler: OhHandler) -> None:
    """Report a window's unsaved documents, which it must save before agents read."""
    body = handler.json_body()
    report = body if isinstance(body, dict) else {}
    client, paths, answered = map(report.get, arguments(Report))
    if not isinstance(client, str) or not isinstance(paths, list):
        raise WireError('The body must be {"client": "...", "paths": [...]}', "paths")
    handler.state.unsaved.report(
        client,
        frozenset(str(path) for path in paths),
        answered if isinstance(answered, int) else None,
    )
    handler.finish_empty()
