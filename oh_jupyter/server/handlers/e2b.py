"""The interface of E2B's code interpreter: cells and contexts, which are kernels."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import time
import uuid
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from jupyter_core.utils import ensure_async
from tornado import web
from tornado.iostream import StreamClosedError

from oh_jupyter.errors import (
    KernelNotFoundError,
    NotApprovedError,
    OhJupyterError,
    WireError,
)
from oh_jupyter.events.actor import Actor
from oh_jupyter.operations import arguments, reply_to, to_json
from oh_jupyter.operations.actions import CellOutputs, OutputBatch, RunCell, UnseenOutputs
from oh_jupyter.operations.files import AskWorkspace
from oh_jupyter.server.handlers.base import OhHandler
from oh_jupyter.server.handlers.contract import (
    KERNEL_ERRORS,
    TEXT,
    Answer,
    Body,
    Contract,
    Error,
    returns,
    whole,
)
from oh_jupyter.server.handlers.execute_action import note_activity
from oh_jupyter.server.handlers.info import ALIVE, Alive
from oh_jupyter.server.handlers.routes import EXECUTE_ACTIONS, READ_ACTIONS, RouteTable
from oh_jupyter.server.links import KernelLink

WAIT_SECONDS = 15.0
"""Time that the kernel delays a request for further outputs."""

TOKEN_HEADERS = ("X-Access-Token", "E2B-Traffic-Access-Token", "X-API-Key")
"""Headers in which E2B's clients send a key; here it is the Jupyter server's token."""

FIELDS = {
    "text/plain": "text",
    "text/html": "html",
    "text/markdown": "markdown",
    "text/latex": "latex",
    "image/svg+xml": "svg",
    "image/png": "png",
    "image/jpeg": "jpeg",
    "application/pdf": "pdf",
    "application/json": "json",
    "application/javascript": "javascript",
    "e2b/json": "json",
    "e2b/data": "data",
    "e2b/chart": "chart",
}
"""Fields of a result by MIME type; other types go into ``extra``."""

NOT_SERVED = (
    "oh_jupyter serves cells and contexts of E2B's code interpreter. Files, commands, templates, "
    "snapshots and time limits of sandboxes are not available: use Python in a cell, or the "
    "interface of oh_jupyter itself"
)
"""Response to requests for other parts of E2B."""

NEWEST_ENVD = "0.6.0"
"""Version of E2B's daemon that clients take us for; they refuse very old ones."""

routes = RouteTable()


@dataclass(frozen=True)
class Context:
    """A kernel that a client of E2B has started."""

    cwd: str
    sandbox: str

    def described(self, kernel_id: str) -> E2bContext:
        """Return it in E2B's form."""
        return E2bContext(kernel_id, self.cwd)


@dataclass(frozen=True)
class E2bContext:
    """A context in E2B's form.

    Attributes:
        id: The kernel's id.
        cwd: Directory that it was started in; "" for the default.
        language: Language of its cells.
    """

    id: str
    cwd: str
    language: Literal["python"] = "python"


@dataclass(frozen=True)
class Box:
    """A sandbox of a client.

    Attributes:
        variables: Environment variables of its cells.
        cells: Its cells that run.
    """

    variables: Mapping[str, str] = field(default_factory=dict)
    cells: set[asyncio.Future[Any]] = field(default_factory=set)


class E2BHandler(OhHandler):
    """Accepts the server's token in the headers of E2B's clients."""

    async def admit(self, **kwargs: Any) -> None:
        """Take the token from the headers of E2B's clients."""
        headers = self.request.headers
        token = next(filter(None, map(headers.get, TOKEN_HEADERS)), "")
        if token and "Authorization" not in headers:
            headers["Authorization"] = f"token {token}"
        await super().admit(**kwargs)

    async def check_address(self, kernel_id: str | None) -> None:
        """Raise 403 or KernelNotFoundError unless the user may use the kernel of the address."""
        await self.check_kernel(kernel_id)
        if kernel_id is not None:
            self.state.router.check(kernel_id)

    def error_body(self, detail: str, status_code: int) -> Error:
        """Return an error, also in E2B's form."""
        return replace(super().error_body(detail, status_code), code=status_code)

    @property
    def actor(self) -> Actor:
        """The caller for the event log, E2B's client by its name."""
        own = (*TOKEN_HEADERS, "E2b-Sandbox-Id")
        is_e2b = any(name in self.request.headers for name in own)
        actor = super().actor
        return replace(actor, client=actor.client or "E2B") if is_e2b else actor

    @property
    def sandbox(self) -> str:
        """Name of the client's sandbox."""
        return str(self.request.headers.get("E2b-Sandbox-Id", ""))

    @property
    def box(self) -> Box:
        """The client's sandbox; a client that has created none has one without variables."""
        boxes: dict[str, Box] = self.state.sandboxes
        return boxes.setdefault(self.sandbox, Box())

    @property
    def contexts(self) -> dict[str, Context]:
        """The contexts that still exist."""
        contexts, kernels = self.state.contexts, self.kernel_manager
        for kernel_id in [each for each in contexts if each not in kernels]:
            del contexts[kernel_id]
        return contexts

    def own_context(self, kernel_id: str) -> Context:
        """Return a context that a client made; raise KernelNotFoundError for other kernels."""
        if context := self.contexts.get(kernel_id):
            return context
        raise KernelNotFoundError(
            f"There is no context {kernel_id!r} that a client of E2B has made. A notebook's kernel "
            "is restarted and shut down by its person"
        )


async def refuse(handler: E2BHandler) -> None:
    """Send 400 with a reason, to authorized users only; for 404 clients show their own text."""
    raise web.HTTPError(400, NOT_SERVED)


@routes.add("GET /e2b/health", READ_ACTIONS, "e2bHealth", E2BHandler, ALIVE)
async def health(handler: E2BHandler, kernel_id: str | None = None) -> None:
    """Check that the server responds and has the kernel, for E2B's clients; start nothing."""
    await handler.check_address(kernel_id)
    handler.finish_json(to_json(Alive()))


@dataclass(frozen=True)
class E2bSandbox:
    """A sandbox in E2B's form, with the token of the request."""

    sandboxID: str
    envdAccessToken: str | None
    trafficAccessToken: str | None
    templateID: str = "oh_jupyter"
    clientID: str = "oh_jupyter"
    envdVersion: str = NEWEST_ENVD


SANDBOX = Contract(
    returns("The sandbox, with the token of the request.", E2bSandbox, 201), errors=(422,)
)


@routes.add("POST /e2b/v2/sandboxes", EXECUTE_ACTIONS, "e2bCreateSandbox", E2BHandler, SANDBOX)
async def create_sandbox(handler: E2BHandler, kernel_id: str | None = None) -> None:
    """Name a sandbox, for E2B's ``Sandbox.create()``; start nothing."""
    await handler.check_address(kernel_id)
    body = handler.json_body() if handler.body else {}  # with many fields, most unknown here
    variables = body.get("envVars") if isinstance(body, dict) else None
    token = handler.request.headers.get("Authorization", "").rpartition(" ")[2] or None
    sandbox_id = f"oh-{secrets.token_hex(8)}"
    handler.state.sandboxes[sandbox_id] = Box(_variables(variables, "envVars"))
    handler.set_status(201)
    handler.finish_json(to_json(E2bSandbox(sandbox_id, token, token)))


_SANDBOX = r"/e2b/sandboxes/(?P<sandbox_id>[\w-]{1,100})"
KILLED = Contract(returns("Done.", status=204), errors=(400,))


@routes.add(f"DELETE {_SANDBOX}", EXECUTE_ACTIONS, "e2bKillSandbox", E2BHandler, KILLED)
async def kill_sandbox(handler: E2BHandler, sandbox_id: str, kernel_id: str | None = None) -> None:
    """Shut down a sandbox's contexts and interrupt its cells; the notebook's kernel stays."""
    await handler.check_address(kernel_id)
    if handler.only_notebook:
        raise web.HTTPError(403, "The token allows only its notebook, and ends no kernels")
    for cell in handler.state.sandboxes.pop(sandbox_id, Box()).cells:
        cell.cancel()
    contexts = handler.contexts.items()
    for context_id in [id for id, context in contexts if context.sandbox == sandbox_id]:
        await _shut_down(handler, context_id)
    handler.finish_empty()


async def _shut_down(handler: E2BHandler, context_id: str) -> None:
    handler.state.contexts.pop(context_id, None)
    await ensure_async(handler.kernel_manager.shutdown_kernel(context_id))


CONTEXTS = Contract(returns("The contexts.", list[E2bContext]))


@routes.add("GET /e2b/contexts", READ_ACTIONS, "e2bListContexts", E2BHandler, CONTEXTS)
async def list_contexts(handler: E2BHandler, kernel_id: str | None = None) -> None:
    """List the kernel of the address, and the contexts that E2B's clients have made."""
    await handler.check_address(kernel_id)
    current = kernel_id or handler.state.router.default_kernel_id
    rows = [context.described(id) for id, context in handler.contexts.items()]
    if current is not None and current not in handler.contexts:
        handler.state.router.check(current)
        rows.insert(0, Context("", "").described(current))
    handler.finish_json(to_json(rows))


@dataclass(frozen=True)
class NewContext:
    """A context to start.

    Attributes:
        language: Language of its cells.
        cwd: An existing directory of the kernel's machine.
    """

    language: Literal["python"] | None = None
    cwd: str | None = None


CONTEXT = Contract(returns("The context.", E2bContext), body=Body(NewContext), errors=(500,))


@routes.add("POST /e2b/contexts", EXECUTE_ACTIONS, "e2bCreateContext", E2BHandler, CONTEXT)
async def create_context(handler: E2BHandler, kernel_id: str | None = None) -> None:
    """Start a kernel as a context."""
    await handler.check_address(kernel_id)
    body = handler.json_object(*arguments(NewContext))
    _check_language(body.get("language"))
    cwd = body.get("cwd") or ""
    if not isinstance(cwd, str) or "\0" in cwd or (cwd and not os.path.isdir(cwd)):
        raise WireError(f"'cwd' must be an existing directory, not {cwd!r}", "cwd")
    if handler.only_notebook or not await handler.allowed("execute", "kernels"):
        raise web.HTTPError(403, "This token may not start kernels")
    if cwd and handler.by_whom:
        await _check_workspace(handler, kernel_id, cwd)
    context_id = await handler.state.router.start_kernel(cwd)
    context = handler.state.contexts[context_id] = Context(cwd, handler.sandbox)
    handler.finish_json(to_json(context.described(context_id)))


async def _check_workspace(handler: E2BHandler, kernel_id: str | None, cwd: str) -> None:
    """Ask a person before an agent's context may change a directory elsewhere."""
    link = await handler.link(kernel_id)
    if handler.state.router.is_boxed(link.kernel_id):
        raise NotApprovedError("A sandboxed kernel has no say over other directories: omit cwd")
    await handler.ask_kernel(link, AskWorkspace(cwd))


def _check_language(language: object) -> None:
    if language not in (None, "", "python"):
        raise WireError(f"Cells are in python; {language!r} is not available", "language")


_CONTEXT = r"/e2b/contexts/(?P<context_id>[\w-]{1,100})"
OWN_CONTEXT = Contract(returns("Done.", status=204), errors=(400, 404))


@routes.add(f"DELETE {_CONTEXT}", EXECUTE_ACTIONS, "e2bRemoveContext", E2BHandler, OWN_CONTEXT)
async def remove_context(
    handler: E2BHandler, context_id: str, kernel_id: str | None = None
) -> None:
    """Shut down a context that a client of E2B has made."""
    await handler.check_address(kernel_id)
    handler.own_context(context_id)
    await handler.check_kernel(context_id)
    await _shut_down(handler, context_id)
    handler.finish_empty()


_RESTART = f"POST {_CONTEXT}/restart"


@routes.add(_RESTART, EXECUTE_ACTIONS, "e2bRestartContext", E2BHandler, OWN_CONTEXT)
async def restart_context(
    handler: E2BHandler, context_id: str, kernel_id: str | None = None
) -> None:
    """Restart a context that a client of E2B has made; its variables are lost."""
    await handler.check_address(kernel_id)
    handler.own_context(context_id)
    await handler.check_kernel(context_id)
    await ensure_async(handler.kernel_manager.restart_kernel(context_id))
    handler.finish_empty()


@dataclass(frozen=True)
class CellToRun:
    """A cell of a client.

    Attributes:
        code: Its code.
        context_id: A kernel; by default that of the address.
        language: Its language.
        env_vars: Environment variables of the kernel for as long as the cell; without NUL.
    """

    code: str
    context_id: str | None = None
    language: Literal["python"] | None = None
    env_vars: dict[str, str] | None = field(
        default=None,
        metadata={
            "propertyNames": {"pattern": "^[A-Za-z_][A-Za-z0-9_]*$"},
            "additionalProperties": {**TEXT, "pattern": whole(r"[^\0]*")},
        },
    )


EXECUTION = Contract(
    (Answer("One JSON object in each line.", contents={"application/x-ndjson": TEXT}),),
    body=Body(CellToRun),
    errors=(404,),
    kernel_errors=KERNEL_ERRORS,
)


@routes.add("POST /e2b/execute", EXECUTE_ACTIONS, "e2bExecute", E2BHandler, EXECUTION)
async def execute(handler: E2BHandler, kernel_id: str | None = None) -> None:
    """Run a cell and stream its outputs as lines of JSON, for E2B's clients.

    The lines are E2B's: ``stdout``, ``stderr``, ``result``, ``error``, ``number_of_executions``,
    ``end_of_execution``. The cell is interrupted when the client disconnects.
    """
    handler.require_scope("execute")
    await handler.check_address(kernel_id)
    body = handler.json_object(*arguments(CellToRun))
    code, box = body.get("code"), handler.box
    if not isinstance(code, str):
        raise WireError("'code' must be a string", "code")
    variables = {**box.variables, **_variables(body.get("env_vars"), "env_vars")}
    _check_language(body.get("language"))
    context_id = body.get("context_id")
    if not isinstance(context_id, str | None):
        raise WireError("'context_id' must be a string", "context_id")
    link = await handler.link(context_id or kernel_id)
    note_activity(handler)
    async with handler.state.unsaved.shared():
        await handler.while_connected(_send_cell(handler, link, code, variables, box))


def _variables(variables: object, field: str) -> dict[str, str]:
    """Return environment variables; raise WireError if the field has something else."""
    if not isinstance(variables, dict | None) or not all(
        isinstance(value, str) and name and "=" not in name and "\0" not in name + value
        for name, value in (variables or {}).items()
    ):
        raise WireError(f"'{field}' must be an object of strings", field)
    return variables or {}


async def _send_cell(
    handler: E2BHandler, link: KernelLink, code: str, variables: dict[str, str], box: Box
) -> None:
    """Send the outputs of a cell while it runs."""
    handler.set_header("Content-Type", "application/x-ndjson")
    handler.set_header("X-Accel-Buffering", "no")
    try:
        async for line in _lines(link, code, variables, box):
            handler.write(json.dumps(line) + "\n")
            await handler.flush()
    except StreamClosedError:
        return
    except OhJupyterError as error:
        if not handler._headers_written:
            raise
        handler.write(json.dumps(_error(type(error).__name__, str(error))) + "\n")
    handler.write(json.dumps({"type": "end_of_execution"}) + "\n")
    handler.finish(set_content_type="application/x-ndjson")


async def _lines(
    link: KernelLink, code: str, variables: dict[str, str], box: Box
) -> AsyncIterator[dict[str, Any]]:
    """Run a cell, and yield its outputs in E2B's form."""
    key, seen = uuid.uuid4().hex, 0
    args = {"code": code, "include_extra": False}
    body = json.dumps({"action": {"action": "run_ipython", "args": args}}).encode()
    running = RunCell(store_history=True, follow=key, env=variables)
    cell = asyncio.ensure_future(link.request(running, body=body, cancellable=True))
    box.cells.add(cell)
    try:
        while not cell.done():
            later = CellOutputs(key, seen=seen, wait=WAIT_SECONDS)
            more = asyncio.ensure_future(link.request(later, cancellable=True))
            try:
                await asyncio.wait({cell, more}, return_when=asyncio.FIRST_COMPLETED)
                if not more.done():
                    break
                batch = reply_to(later, more.result().body)
            finally:
                more.cancel()
                with suppress(asyncio.CancelledError, OhJupyterError):
                    await more
            for output in _new(batch, seen):
                yield _line(output)
            seen = max(seen, batch.first + len(batch.outputs))
        if cell.cancelled():
            yield _error("SandboxKilled", "The sandbox was killed while this cell was running")
            return
        done = reply_to(running, (await cell).body)
    finally:
        box.cells.discard(cell)
        cell.cancel()
    for output in _new(done.rest, seen):
        yield _line(output)
    observation = done.observation
    if observation.get("observation") != "run_ipython":  # a person rejected it, or it did not run
        yield _error("ActionRejectedError", str(observation.get("content", "")))
    if done.execution_count is not None:
        yield {"type": "number_of_executions", "execution_count": done.execution_count}


def _new(batch: OutputBatch | UnseenOutputs, seen: int) -> list[dict[str, Any]]:
    """Return the outputs after those that were sent."""
    return (batch.outputs or [])[max(0, seen - (batch.first or 0)) :]


def _error(name: str, value: str, traceback: str = "") -> dict[str, Any]:
    return {"type": "error", "name": name, "value": value, "traceback": traceback or value}


def _line(output: dict[str, Any]) -> dict[str, Any]:
    """Return an output of the notebook format in E2B's form."""
    kind = output["output_type"]
    if kind == "stream":
        name = "stderr" if output["name"] == "stderr" else "stdout"
        return {"type": name, "text": output["text"], "timestamp": time.time_ns()}
    if kind == "error":
        return _error(output["ename"], output["evalue"], "\n".join(output["traceback"]))
    line: dict[str, Any] = {"type": "result", "is_main_result": kind == "execute_result"}
    for mime, value in output["data"].items():
        if mime in FIELDS:
            line[FIELDS[mime]] = _unquoted(value) if mime == "text/plain" else value
        else:
            line.setdefault("extra", {})[mime] = value
    return line


def _unquoted(text: str) -> str:
    """Return the text of a result without the quotes of a string, as E2B's clients get it."""
    is_quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "'\""
    return text[1:-1] if is_quoted else text
