"""State of a runtime: skills, the last page, confirmations, checkpoints, VS Code."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, field, fields
from typing import Any

from tornado import web

from oh_jupyter.errors import ExtensionMissingError, WireError
from oh_jupyter.operations import arguments, from_json, to_json
from oh_jupyter.operations.actions import Confirm, Confirmations, Question
from oh_jupyter.operations.changes import Checkpoints, Decisions, MarkCheckpoint, Rewind
from oh_jupyter.operations.runtime import Page, Skills, Vscode, VSCodeAddress
from oh_jupyter.server.handlers.base import OhHandler
from oh_jupyter.server.handlers.contract import (
    BYTES,
    KERNEL_ERRORS,
    NOT_LOADED,
    Answer,
    Body,
    Contract,
    IfLoaded,
    returns,
)
from oh_jupyter.server.handlers.routes import (
    EXECUTE_ACTIONS,
    READ_ACTIONS,
    READ_EVENTS,
    RouteTable,
    send_body,
    send_nothing,
)
from oh_jupyter.server.links import Reply

NOT_OVER_REST = (
    "Actions are approved in JupyterLab's panel or with %oh_confirm in the notebook, not over "
    "REST, where an agent could approve its own. c.OhJupyter.confirmation_over_rest = True in the "
    "server's configuration allows it; rejecting is always possible"
)
NO_PROXY = "pip install jupyter-server-proxy into the server's environment, and restart the server"

routes = RouteTable(KERNEL_ERRORS)


@dataclass(frozen=True)
class Decided:
    """A decision on a waiting Action.

    Attributes:
        approve: Whether it runs.
        reason: Reason of a rejection for the agent.
        why: The same; its earlier name.
        for_session: Also approve later Actions of its type that wait for the same reasons.
        for_workspace: The same, in all later sessions in the kernel's workspace.
        values: Answers to an agent's question by the names of its form.
    """

    approve: bool
    reason: str = ""
    why: str = ""
    for_session: bool = False
    for_workspace: bool = False
    values: dict[str, Any] = field(default_factory=dict)


DECISION = Contract(
    returns("It starts, or results in `user_rejected`.", status=204),
    body=Body(Decided),
    errors=(400, 404),
)


def _decision(handler: OhHandler, event_id: str) -> Confirm:
    """Approve or reject a waiting Action.

    Rejecting is always possible. JupyterLab's panel and ``%oh_confirm`` approve through the kernel.
    Here approval is rejected (403) unless the server's setting ``confirmation_over_rest`` allows
    it, since an agent may have the server's token. Requests with the session key come from agents,
    and may do neither.
    """
    if handler.by_session_key:
        raise web.HTTPError(403, "An agent cannot confirm its own actions")
    body = handler.json_object(*arguments(Decided))
    if not isinstance(body.get("approve"), bool):
        raise WireError('The body must be {"approve": true} or {"approve": false}', "approve")
    if body["approve"] and not handler.state.confirmation_over_rest:
        raise web.HTTPError(403, NOT_OVER_REST)
    if "why" in body:
        body.setdefault("reason", body.pop("why"))
    return Confirm.from_fields({"id": int(event_id), "by": "REST", **body})


def _page(reply: Reply) -> dict[str, Any]:
    return dict(json.loads(reply.body or b"{}")["extras"])


@dataclass(frozen=True)
class Marks:
    """The last page and its marked elements.

    Attributes:
        url: Its address.
        open_pages_urls: Addresses of the open pages.
        active_page_index: Position of the page among them.
        focused_element_bid: The focused element.
        last_browser_action: The last step.
        last_browser_action_error: Its error.
        extra_element_properties: Properties by bid; empty unless the Action asked for the tree.
    """

    url: str
    open_pages_urls: list[str]
    active_page_index: int
    focused_element_bid: str | None
    last_browser_action: str
    last_browser_action_error: str
    extra_element_properties: dict[str, Any]


MARKS = Contract(
    returns("The page's address, the focused element, properties of elements by bid.", Marks),
    errors=(404,),
)


def _send_marks(handler: OhHandler, reply: Reply) -> None:
    """Get the marked elements of the last picture."""
    page = _page(reply)
    handler.finish_json({each.name: page.get(each.name) for each in fields(Marks)})


NO_CHECKPOINT = Contract(errors=(409,))

routes.forward("GET /skills", READ_ACTIONS, "listSkills", Skills)
routes.forward(
    "GET /browser/marks", READ_EVENTS, "marks", Page, _send_marks, load=False, contract=MARKS
)
_CONFIRM = r"POST /confirmations/(?P<event_id>\d{1,15})"
_CONFIRMING = ("execute", "oh_jupyter:confirmations")
routes.forward(
    _CONFIRM, _CONFIRMING, "confirm", _decision, send_nothing, load=False, contract=DECISION
)
routes.forward("GET /decisions", READ_EVENTS, "listDecisions", Decisions)
routes.forward(
    "GET /checkpoints", READ_EVENTS, "listCheckpoints", Checkpoints, contract=NO_CHECKPOINT
)
routes.forward(
    "POST /checkpoints", EXECUTE_ACTIONS, "markCheckpoint", MarkCheckpoint, contract=NO_CHECKPOINT
)
routes.forward("POST /rewind", EXECUTE_ACTIONS, "rewind", Rewind, contract=NO_CHECKPOINT)

PICTURE = Contract((Answer("A PNG.", contents={"image/png": BYTES}),), errors=(404,))
_PICTURE = "GET /browser/(?P<kind>screenshot|set_of_marks)"


@routes.add(_PICTURE, READ_EVENTS, "screenshot", contract=PICTURE)
async def screenshot(handler: OhHandler, kind: str, kernel_id: str | None = None) -> None:
    """Get a picture of the browser's last page."""
    link = await handler.link(kernel_id)
    picture = str(_page(await link.request(Page(), load=False)).get(kind) or "")
    if not picture:
        raise web.HTTPError(404, f"The last page has no {kind}")
    handler.set_header("Cache-Control", "no-store")
    data = base64.b64decode(picture.partition(",")[2])
    handler.finish(data, set_content_type="image/png")


WAITING = Contract((Answer("All of them.", list[Question]), NOT_LOADED), query=IfLoaded)


@routes.add("GET /confirmations", READ_EVENTS, "listConfirmations", contract=WAITING)
async def confirmations(handler: OhHandler, kernel_id: str | None = None) -> None:
    """List the Actions that wait for a person.

    Frontends poll every kernel: none is started, and nothing is loaded into it. A kernel without
    oh_jupyter has no Actions.
    """
    await handler.check_kernel(kernel_id)
    router = handler.state.router
    kernel_id = await handler.kernel_of(kernel_id) or router.default_kernel_id
    if kernel_id is None:
        handler.finish_json([])
        return
    try:
        reply = await router.link(kernel_id).request(Confirmations(), load=False)
    except ExtensionMissingError:
        if handler.flag("if_loaded"):
            raise
        handler.finish_json([])
        return
    send_body(handler, reply)


async def _vscode_address(handler: OhHandler, kernel_id: str | None) -> VSCodeAddress:
    """Return the address of a kernel's VS Code.

    Starts the default kernel only if its settings enable the plugin.
    """
    wanted = handler.state.wants_vscode
    if kernel_id is None and not wanted and handler.state.router.default_kernel_id is None:
        return VSCodeAddress()
    link = await handler.link(kernel_id)
    try:
        load = kernel_id is None and wanted
        reply = await handler.ask_kernel(link, Vscode(), load=load)
    except ExtensionMissingError:
        return VSCodeAddress()
    return from_json(VSCodeAddress, json.loads(reply.body or b"{}"))


_VSCODE_ERRORS = tuple(status for status in KERNEL_ERRORS if status != 424)
ADDRESS = Contract(returns("Missing values are null.", VSCodeAddress), kernel_errors=_VSCODE_ERRORS)


@routes.add("GET /vscode", EXECUTE_ACTIONS, "vscode", contract=ADDRESS)
async def vscode(handler: OhHandler, kernel_id: str | None = None) -> None:
    """Get the address of VS Code for a person.

    The problem says why VS Code is missing, and what to do.
    """
    address = await _vscode_address(handler, kernel_id)
    url, problem = address.url, address.problem
    extensions = handler.serverapp.extension_manager.extensions if handler.serverapp else {}
    if url and "jupyter_server_proxy" not in extensions:
        url, problem = None, f"VS Code runs, but the server has no proxy to it: {NO_PROXY}"
    elif not url and not problem:
        problem = "The plugin 'vscode' is not among the settings' plugins"
    handler.finish_json(to_json(VSCodeAddress(address.token, url, problem)))


@dataclass(frozen=True)
class VSCodeToken:
    """VS Code's connection token, as OpenHands expects it; null if it does not run."""

    token: str | None


TOKEN = Contract(returns("Null if it does not run.", VSCodeToken), kernel_errors=_VSCODE_ERRORS)


# The token allows executing anything.
@routes.add("GET /vscode/connection_token", EXECUTE_ACTIONS, "vscodeToken", contract=TOKEN)
async def vscode_token(handler: OhHandler, kernel_id: str | None = None) -> None:
    """Get VS Code's connection token."""
    token = (await _vscode_address(handler, kernel_id)).token
    handler.finish_json(to_json(VSCodeToken(token)))
