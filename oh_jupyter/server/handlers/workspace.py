"""Endpoints of ``RemoteWorkspace`` in OpenHands' SDK: commands, files and git below a kernel.

Addresses and JSON are the SDK's. Commands are Actions: logged, and possibly waiting for a person.
"""

from __future__ import annotations

import base64
import hmac
import json
import os
import shlex
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from jupyter_core.utils import ensure_async
from jupyter_server.auth.decorator import allow_unauthenticated
from jupyter_server.base.handlers import JupyterHandler
from jupyter_server.base.websocket import WebSocketMixin
from tornado import web
from tornado.websocket import WebSocketClosedError, WebSocketHandler

from oh_jupyter.background import run_in_background
from oh_jupyter.errors import KernelError, WireError
from oh_jupyter.operations.files import DownloadFile
from oh_jupyter.server.handlers.base import OhHandler, is_session_key
from oh_jupyter.server.handlers.execute_action import note_activity
from oh_jupyter.server.handlers.files import (
    BINARY,
    FormUploadHandler,
    Uploaded,
    start_download,
)
from oh_jupyter.server.handlers.routes import EXECUTE_ACTIONS, READ_EVENTS, RouteTable
from oh_jupyter.server.state import state_of
from oh_jupyter.server.workspace import CommandLog, run_static_command

COMMAND_SECONDS = 300.0  # default timeout of a command, as in the SDK
GIT_SECONDS = 60.0
MAX_COMMAND_SECONDS = 1_000_000
MAX_PAGE_EVENTS = 100

EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"  # HEAD without a commit
SEPARATOR = "--"  # line between two texts in base64
_EXISTS = "echo +;"  # marks an existing file, which may be empty
_STATUS = {"A": "ADDED", "C": "ADDED", "D": "DELETED", "R": "MOVED"}

routes = RouteTable()


@routes.add("GET /(?:health|ready)", None, "")
async def health(handler: OhHandler, kernel_id: str | None = None) -> None:
    """Report that the server runs; the SDK's clients ask before they authenticate."""
    handler.finish_json({"status": "ready" if handler.request.path.endswith("ready") else "ok"})


def _log(handler: OhHandler, kernel_id: str | None) -> CommandLog:
    return handler.state.commands[kernel_id or ""]


@routes.add("POST /api/bash/start_bash_command", EXECUTE_ACTIONS, "")
async def start_command(handler: OhHandler, kernel_id: str | None = None) -> None:
    """Start the command in the body, and send its event."""
    handler.finish_json(await _start_command(handler, kernel_id))


async def _start_command(handler: OhHandler, kernel_id: str | None) -> dict[str, Any]:
    body = handler.json_body()
    body = body if isinstance(body, dict) else {}
    command, cwd = body.get("command"), body.get("cwd")
    timeout = body.get("timeout", COMMAND_SECONDS)
    if not isinstance(command, str) or not command:
        raise WireError("'command' must be a non-empty string", "command")
    if not isinstance(cwd, str | None):
        raise WireError("'cwd' must be a string or null", "cwd")
    if isinstance(timeout, bool) or not isinstance(timeout, int | float):
        raise WireError("'timeout' must be a number of seconds", "timeout")
    if not 0 <= timeout <= MAX_COMMAND_SECONDS:
        raise WireError(f"'timeout' must be 0 to {MAX_COMMAND_SECONDS} seconds", "timeout")
    link = await handler.link(kernel_id)
    note_activity(handler)
    # The SDK sends whole seconds, and 0 for less than one.
    return _log(handler, kernel_id).start(link, command, cwd, timeout or 1)


@routes.add("POST /api/bash/execute_bash_command", EXECUTE_ACTIONS, "")
async def execute_command(handler: OhHandler, kernel_id: str | None = None) -> None:
    """Run the command in the body, and send its output; stop it if the client disconnects."""
    started = await _start_command(handler, kernel_id)
    log = _log(handler, kernel_id)
    handler.finish_json(await handler.while_connected(log.output(started["id"])))


@routes.add(r"POST /api/bash/bash_commands/(?P<key>\w+)/stop", EXECUTE_ACTIONS, "")
async def stop_command(handler: OhHandler, key: str, kernel_id: str | None = None) -> None:
    """Stop a command unless it has ended."""
    await handler.check_kernel(kernel_id)
    if not _log(handler, kernel_id).stop(key):
        raise web.HTTPError(404, f"There is no command {key}")
    handler.finish_json({"success": True})


@routes.add(r"GET /api/bash/bash_events(?:/(?P<key>\w+))?", READ_EVENTS, "")
async def bash_events(handler: OhHandler, key: str, kernel_id: str | None = None) -> None:
    """Send one event of the commands, or a page of a search."""
    await handler.check_kernel(kernel_id)
    log = _log(handler, kernel_id)
    if key == "search":
        _send_page(handler, log)
        return
    event = log.get(key)
    if event is None:
        raise web.HTTPError(404, f"There is no event {key}")
    handler.finish_json(event)


def _send_page(handler: OhHandler, log: CommandLog) -> None:
    expected = {}
    for name in ("kind", "command_id"):
        if value := handler.get_query_argument(f"{name}__eq", ""):
            expected[name] = value
    events = list(log.search(expected, after_order=_number(handler, "order__gt")))
    if handler.get_query_argument("sort_order", "TIMESTAMP") == "TIMESTAMP_DESC":
        events.reverse()
    first = handler.get_query_argument("page_id", "")
    ids = [event["id"] for event in events]
    start = ids.index(first) if first in ids else 0
    limit = _number(handler, "limit")
    end = start + min(MAX_PAGE_EVENTS if limit is None else max(limit, 1), MAX_PAGE_EVENTS)
    handler.finish_json(
        {"items": events[start:end], "next_page_id": ids[end] if end < len(ids) else None}
    )


def _number(handler: OhHandler, name: str) -> int | None:
    text = handler.get_query_argument(name, "")
    try:
        return int(text) if text else None
    except ValueError:
        raise WireError(f"{name!r} must be a number, not {text!r}", name) from None


@routes.add(r"DELETE /api/bash/bash_events(?:/(?P<key>\w+))?", EXECUTE_ACTIONS, "")
async def clear_events(handler: OhHandler, key: str, kernel_id: str | None = None) -> None:
    """Forget all events of a kernel's commands."""
    await handler.check_kernel(kernel_id)
    if key:
        raise web.HTTPError(405)
    handler.finish_json({"cleared_count": _log(handler, kernel_id).clear()})


class SdkUploadHandler(FormUploadHandler):
    """Takes a file, as a form, and the path where it goes."""

    async def admit(self, **kwargs: Any) -> None:
        """Reject a relative path before the body is sent."""
        await super().admit(**kwargs)
        self._path = _absolute_path(self)

    def target(self) -> Uploaded:
        """Return name and folder of the file."""
        folder, name = os.path.split(self._path)
        return Uploaded(name, folder, recursive=False)


@routes.add("POST /api/file/upload", EXECUTE_ACTIONS, "", SdkUploadHandler)
async def sdk_upload(handler: SdkUploadHandler, kernel_id: str | None = None) -> None:
    """Store the file, and report its size."""
    await handler.complete()
    handler.finish_json({"success": True, "file_size": handler.sent_bytes})


@routes.add("GET /api/file/download", EXECUTE_ACTIONS, "")
async def sdk_download(handler: OhHandler, kernel_id: str | None = None) -> None:
    """Send the bytes of a file."""
    path = _absolute_path(handler)
    download = await start_download(handler, kernel_id, DownloadFile(path))
    handler.set_header("Content-Type", BINARY)
    await handler.send_pieces(download)


@routes.add("GET /api/git/(?P<kind>changes|diff)", EXECUTE_ACTIONS, "")
async def git(handler: OhHandler, kind: str, kernel_id: str | None = None) -> None:
    """Send the changed files of a repository, or the old and new contents of a file."""
    path = _absolute_path(handler)
    ref = handler.get_query_argument("ref", "") or handler.get_query_argument("commit", "")
    if ref.startswith("-"):
        raise WireError(f"'ref' must be a commit, not {ref!r}", "ref")
    name = shlex.quote(ref or "HEAD")
    base = f"ref=$(git rev-parse -q --verify {name}^{{commit}} || echo {EMPTY_TREE})"
    respond = _git_changes if kind == "changes" else _git_diff
    handler.finish_json(await respond(handler, kernel_id, path, base))


async def _git_changes(handler: OhHandler, kernel_id: str | None, path: str, base: str) -> Any:
    diff = "git diff --name-status -M -z --relative $ref --"
    untracked = "git ls-files --others --exclude-standard -z"
    # In base64, since a terminal changes tabs and line ends.
    script = f"{base}; {diff} | base64; echo {SEPARATOR}; {untracked} | base64"
    tracked, _, new = (await _git_output(handler, kernel_id, path, script)).partition(SEPARATOR)
    words = iter(_decoded(tracked).split("\0"))
    changes = []
    for word in words:
        if word[:1] in ("R", "C"):
            next(words)  # its old name
        if word:
            changes.append({"status": _STATUS.get(word[0], "UPDATED"), "path": next(words)})
    names = _decoded(new).split("\0")
    return [*changes, *({"status": "ADDED", "path": name} for name in names if name)]


async def _git_diff(handler: OhHandler, kernel_id: str | None, path: str, base: str) -> Any:
    folder, name = os.path.split(path)
    quoted = shlex.quote(f"./{name}")
    before = f"if git cat-file -e $ref:{quoted} 2>/dev/null; then {_EXISTS}"
    before += f" git cat-file blob $ref:{quoted} | base64; fi"
    now = f"if test -f {quoted}; then {_EXISTS} base64 {quoted}; fi"
    script = f"{base}; {before}; echo {SEPARATOR}; {now}"
    output = await _git_output(handler, kernel_id, folder, script)
    parts = [part.strip() for part in output.split(SEPARATOR)]
    original, modified = (_decoded(part[1:]) if part else None for part in parts)
    return {"modified": modified, "original": original}


async def _git_output(handler: OhHandler, kernel_id: str | None, folder: str, script: str) -> str:
    link = await handler.link(kernel_id)
    note_activity(handler)
    command = f"git rev-parse --git-dir > /dev/null || exit; {script}"
    command = f"export GIT_OPTIONAL_LOCKS=0 GIT_PAGER=cat; {command}"
    code, output, error = await handler.while_connected(
        run_static_command(link, command, folder, GIT_SECONDS)
    )
    if code != 0:
        raise web.HTTPError(400, f"git in {folder}: {error or output}".replace("%", "%%"))
    return output


def _absolute_path(handler: OhHandler) -> str:
    path = handler.path_argument("path") or ""
    if not os.path.isabs(path):
        raise web.HTTPError(400, "'path' must be an absolute path")
    return path


def _decoded(text: str) -> str:
    """Decode base64 that a terminal may have wrapped."""
    return base64.b64decode("".join(text.split())).decode("utf-8", "replace")


class BashEventsSocket(WebSocketMixin, WebSocketHandler, JupyterHandler):  # type: ignore[misc]
    """Websocket that sends the events of commands; the first frame may carry the key."""

    _unsubscribe: Callable[[], None] | None = None
    _admitted = False

    async def prepare(self, *args: Any, **kwargs: Any) -> None:
        """Accept the key of the SDK's clients as a token."""
        key = self.request.headers.get("X-Session-API-Key") or self.get_query_argument(
            "session_api_key", ""
        )
        if key and "Authorization" not in self.request.headers:
            self.request.headers["Authorization"] = f"token {key}"
        self._admitted = is_session_key(key)
        prepared: Any = super().prepare(*args, **kwargs)
        await ensure_async(prepared)

    @allow_unauthenticated
    async def get(self, kernel_id: str | None = None) -> None:
        """Open the socket."""
        self._kernel_id = kernel_id
        if self.current_user is not None:
            self._admitted = await self._is_authorized()
            if not self._admitted:
                raise web.HTTPError(403)
        opened: Any = super().get()
        await ensure_async(opened)

    async def _is_authorized(self) -> bool:
        permissions = [EXECUTE_ACTIONS]
        permissions += [("execute", "kernels")] if self._kernel_id is not None else []
        for action, resource in permissions:
            verdict = self.authorizer.is_authorized(self, self.current_user, action, resource)
            if not await ensure_async(verdict):
                return False
        return True

    def open(self, *args: Any, **kwargs: Any) -> None:
        """Start sending if the client has authenticated."""
        if self._admitted:
            self._subscribe()

    def on_message(self, message: str | bytes) -> None:
        """Take the key from the first frame."""
        if self._unsubscribe is not None:
            return
        try:
            key = str(json.loads(message)["session_api_key"])
        except (ValueError, LookupError, TypeError):
            key = ""
        token = str(getattr(self.identity_provider, "token", ""))
        if is_session_key(key) or (token and hmac.compare_digest(key.encode(), token.encode())):
            self._subscribe()
        else:
            self.close(4001, "Invalid API Key")

    def _subscribe(self) -> None:
        state = state_of(self.settings)
        try:
            if self._kernel_id is not None:
                state.router.check(self._kernel_id)
        except KernelError as error:
            self.close(4004, str(error)[:100])
            return
        log = state.commands[self._kernel_id or ""]
        if self.get_query_argument("resend_mode", "") == "all":
            for event in log.search({}):
                self._send(event)
        self._unsubscribe = log.subscribe(self._send)

    def _send(self, event: dict[str, Any]) -> None:
        async def send() -> None:
            with suppress(WebSocketClosedError):
                await self.write_message(json.dumps(event))

        run_in_background(send())

    def on_close(self) -> None:
        """Stop sending."""
        if self._unsubscribe is not None:
            self._unsubscribe()
        super().on_close()


_PREFIXES = ("/oh_jupyter", r"/oh_jupyter/kernels/(?P<kernel_id>[\w-]+)")

WORKSPACE_HANDLERS: list[tuple[str, type[Any]]] = [
    *(each for prefix in _PREFIXES for each in routes.handlers(prefix)),
    *((f"{prefix}/sockets/bash-events", BashEventsSocket) for prefix in _PREFIXES),
]
"""Patterns below the server's base address, and their handlers."""
