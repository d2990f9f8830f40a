"""What ``RemoteWorkspace`` of OpenHands' SDK asks for: commands, files and git below a kernel.

The addresses and the JSON are the SDK's; commands are Actions, which are logged and may wait
for a person as any other.
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
from jupyter_server.auth.decorator import allow_unauthenticated, authorized
from jupyter_server.base.handlers import JupyterHandler
from jupyter_server.base.websocket import WebSocketMixin
from tornado import web
from tornado.websocket import WebSocketClosedError, WebSocketHandler

from oh_jupyter.background import run_in_background
from oh_jupyter.errors import KernelError, WireError
from oh_jupyter.server.handlers.base import OhHandler, is_session_key
from oh_jupyter.server.handlers.files import UploadHandler
from oh_jupyter.server.links import Transfer
from oh_jupyter.server.state import state_of
from oh_jupyter.server.workspace import CommandLog, static_command

COMMAND_SECONDS = 300.0
"""Seconds that a command may take which says nothing of that; the SDK's default."""

GIT_SECONDS = 60.0
MAX_COMMAND_SECONDS = 1_000_000
MAX_PAGE_EVENTS = 100

EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
"""What a repository without a commit is compared to."""

SEPARATOR = "--"
"""Line between two texts in base64."""

_PRESENT = "echo +;"
"""Says that a file is there, which may be empty."""

_STATUS = {"A": "ADDED", "C": "ADDED", "D": "DELETED", "R": "MOVED"}


class HealthHandler(OhHandler):
    """GET whether the server is there; for the SDK's clients before they show who they are."""

    @allow_unauthenticated
    async def get(self, kernel_id: str | None = None) -> None:
        """Say so, and nothing else."""
        self.finish_json({"status": "ready" if self.request.path.endswith("ready") else "ok"})


class _BashHandler(OhHandler):
    def log_of(self, kernel_id: str | None) -> CommandLog:
        """The commands of a kernel."""
        return self.state.commands[kernel_id or ""]

    async def start(self, kernel_id: str | None) -> dict[str, Any]:
        """Start the command in the body; its event."""
        body = self.json_body()
        body = body if isinstance(body, dict) else {}
        command, cwd = body.get("command"), body.get("cwd")
        timeout = body.get("timeout", COMMAND_SECONDS)
        if not isinstance(command, str) or not command:
            raise WireError("'command' must be a string that is not empty", "command")
        if not isinstance(cwd, str | None):
            raise WireError("'cwd' must be a string or null", "cwd")
        if isinstance(timeout, bool) or not isinstance(timeout, int | float):
            raise WireError("'timeout' must be a number of seconds", "timeout")
        if not 0 <= timeout <= MAX_COMMAND_SECONDS:
            raise WireError(f"'timeout' must be 0 to {MAX_COMMAND_SECONDS} seconds", "timeout")
        link = await self.link(kernel_id)
        self.state.activity.touch()
        # The SDK sends whole seconds, and 0 for less than one.
        return self.log_of(kernel_id).start(link, command, cwd, timeout or 1)


class StartCommandHandler(_BashHandler):
    """POST a command that begins at once."""

    @web.authenticated
    @authorized("execute", resource="oh_jupyter:actions")
    async def post(self, kernel_id: str | None = None) -> None:
        """Send its event without waiting for its end."""
        self.finish_json(await self.start(kernel_id))


class ExecuteCommandHandler(_BashHandler):
    """POST a command, get its output."""

    @web.authenticated
    @authorized("execute", resource="oh_jupyter:actions")
    async def post(self, kernel_id: str | None = None) -> None:
        """Send its output when it has ended; a client that leaves stops it."""
        started = await self.start(kernel_id)
        log = self.log_of(kernel_id)
        self.finish_json(await self.while_connected(log.ended(started["id"])))


class StopCommandHandler(_BashHandler):
    """POST to stop a command."""

    @web.authenticated
    @authorized("execute", resource="oh_jupyter:actions")
    async def post(self, key: str, kernel_id: str | None = None) -> None:
        """Stop it, if it has not ended."""
        await self.check_kernel(kernel_id)
        if not self.log_of(kernel_id).stop(key):
            raise web.HTTPError(404, f"There is no command {key}")
        self.finish_json({"success": True})


class BashEventsHandler(_BashHandler):
    """GET what commands have put out; DELETE it."""

    @web.authenticated
    @authorized("read", resource="oh_jupyter:events")
    async def get(self, kernel_id: str | None = None, key: str = "search") -> None:
        """Send one event, or a page of those that were asked for."""
        await self.check_kernel(kernel_id)
        log = self.log_of(kernel_id)
        if key != "search":
            event = log.get(key)
            if event is None:
                raise web.HTTPError(404, f"There is no event {key}")
            self.finish_json(event)
            return
        wanted = {}
        for name in ("kind", "command_id"):
            if value := self.get_query_argument(f"{name}__eq", ""):
                wanted[name] = value
        events = list(log.search(wanted, after_order=self._number("order__gt")))
        if self.get_query_argument("sort_order", "TIMESTAMP") == "TIMESTAMP_DESC":
            events.reverse()
        first = self.get_query_argument("page_id", "")
        ids = [event["id"] for event in events]
        begin = ids.index(first) if first in ids else 0
        limit = self._number("limit")
        end = begin + min(MAX_PAGE_EVENTS if limit is None else max(limit, 1), MAX_PAGE_EVENTS)
        self.finish_json(
            {"items": events[begin:end], "next_page_id": ids[end] if end < len(ids) else None}
        )

    @web.authenticated
    @authorized("execute", resource="oh_jupyter:actions")
    async def delete(self, kernel_id: str | None = None, key: str = "") -> None:
        """Forget all events of the kernel's commands."""
        await self.check_kernel(kernel_id)
        if key:
            raise web.HTTPError(405)
        self.finish_json({"cleared_count": self.log_of(kernel_id).clear()})

    def _number(self, name: str) -> int | None:
        text = self.get_query_argument(name, "")
        try:
            return int(text) if text else None
        except ValueError:
            raise WireError(f"{name!r} must be a number, not {text!r}", name) from None


class UploadFileHandler(UploadHandler):
    """POST a file, as a form, to the path that it is to have."""

    async def admit(self, **kwargs: Any) -> None:
        """Refuse a path that is none before the body is sent."""
        await super().admit(**kwargs)
        self._path = _absolute(self)

    @web.authenticated
    @authorized("execute", resource="oh_jupyter:actions")
    async def post(self, kernel_id: str | None = None) -> None:
        """Put the file in its place."""
        self.check_form()
        await self.complete()
        self.finish_json({"success": True, "file_size": self.sent_bytes})

    async def start(self) -> None:
        """Name the file and its folder."""
        folder, name = os.path.split(self._path)
        fields = {"destination": folder, "filename": name, "recursive": False}
        await self.begin(self.path_kwargs.get("kernel_id"), "upload", **fields)


class DownloadFileHandler(OhHandler):
    """GET the bytes of a file."""

    @web.authenticated
    @authorized("execute", resource="oh_jupyter:actions")
    async def get(self, kernel_id: str | None = None) -> None:
        """Send them as they are."""
        path = _absolute(self)
        link = await self.link(kernel_id)
        self.state.activity.touch()
        reply = await link.request("download_file", {"path": path})
        self.set_header("Content-Type", "application/octet-stream")
        self.set_header("X-Content-Type-Options", "nosniff")
        await self.send_pieces(Transfer(link, reply))


class GitHandler(OhHandler):
    """GET what git says has changed."""

    @web.authenticated
    @authorized("execute", resource="oh_jupyter:actions")
    async def get(self, kind: str, kernel_id: str | None = None) -> None:
        """Send the changed files of a repository, or a file as it was and as it is."""
        path = _absolute(self)
        ref = self.get_query_argument("ref", "") or self.get_query_argument("commit", "")
        if ref.startswith("-"):
            raise WireError(f"'ref' must be a commit, not {ref!r}", "ref")
        name = shlex.quote(ref or "HEAD")
        base = f"ref=$(git rev-parse -q --verify {name}^{{commit}} || echo {EMPTY_TREE})"
        answer = self._changes if kind == "changes" else self._diff
        self.finish_json(await answer(kernel_id, path, base))

    async def _changes(self, kernel_id: str | None, path: str, base: str) -> Any:
        diff = "git diff --name-status -M -z --relative $ref --"
        others = "git ls-files --others --exclude-standard -z"
        # In base64, since a terminal changes tabs and ends of lines.
        told = await self._told(
            kernel_id, path, f"{base}; {diff} | base64; echo {SEPARATOR}; {others} | base64"
        )
        changed, _, new = told.partition(SEPARATOR)
        words = iter(_decoded(changed).split("\0"))
        found = []
        for word in words:
            if word[:1] in ("R", "C"):
                next(words)  # its old name
            if word:
                found.append({"status": _STATUS.get(word[0], "UPDATED"), "path": next(words)})
        names = _decoded(new).split("\0")
        return [*found, *({"status": "ADDED", "path": name} for name in names if name)]

    async def _diff(self, kernel_id: str | None, path: str, base: str) -> Any:
        folder, name = os.path.split(path)
        quoted = shlex.quote(f"./{name}")
        before = f"if git cat-file -e $ref:{quoted} 2>/dev/null; then {_PRESENT}"
        before += f" git cat-file blob $ref:{quoted} | base64; fi"
        now = f"if test -f {quoted}; then {_PRESENT} base64 {quoted}; fi"
        told = await self._told(kernel_id, folder, f"{base}; {before}; echo {SEPARATOR}; {now}")
        parts = [part.strip() for part in told.split(SEPARATOR)]
        original, modified = (_decoded(part[1:]) if part else None for part in parts)
        return {"modified": modified, "original": original}

    async def _told(self, kernel_id: str | None, folder: str, script: str) -> str:
        link = await self.link(kernel_id)
        command = f"git rev-parse --git-dir > /dev/null || exit; {script}"
        command = f"export GIT_OPTIONAL_LOCKS=0 GIT_PAGER=cat; {command}"
        code, output, problem = await self.while_connected(
            static_command(link, command, folder, GIT_SECONDS)
        )
        if code != 0:
            said = f"git in {folder}: {problem or output}".replace("%", "%%")
            raise web.HTTPError(400, said)
        return output


def _absolute(handler: OhHandler) -> str:
    path = handler.path_argument("path") or ""
    if not os.path.isabs(path):
        raise web.HTTPError(400, "'path' must be an absolute path")
    return path


def _decoded(told: str) -> str:
    """A text in base64, as a terminal may have shown it."""
    return base64.b64decode("".join(told.split())).decode("utf-8", "replace")


class BashEventsSocket(WebSocketMixin, WebSocketHandler, JupyterHandler):  # type: ignore[misc]
    """A web socket that tells the events of commands; the first frame may show the key."""

    _end: Callable[[], None] | None = None
    _admitted = False

    async def prepare(self, *args: Any, **kwargs: Any) -> None:
        """Take the key of the SDK's clients for a token."""
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
            self._admitted = await self._authorized()
            if not self._admitted:
                raise web.HTTPError(403)
        opened: Any = super().get()
        await ensure_async(opened)

    async def _authorized(self) -> bool:
        wanted = [("execute", "oh_jupyter:actions")]
        wanted += [("execute", "kernels")] if self._kernel_id is not None else []
        for action, resource in wanted:
            asked = self.authorizer.is_authorized(self, self.current_user, action, resource)
            if not await ensure_async(asked):
                return False
        return True

    def open(self, *args: Any, **kwargs: Any) -> None:
        """Begin to tell, to who has shown who they are."""
        if self._admitted:
            self._follow()

    def on_message(self, message: str | bytes) -> None:
        """The first frame may show the key."""
        if self._end is not None:
            return
        try:
            key = str(json.loads(message)["session_api_key"])
        except (ValueError, LookupError, TypeError):
            key = ""
        token = str(getattr(self.identity_provider, "token", ""))
        if is_session_key(key) or (token and hmac.compare_digest(key.encode(), token.encode())):
            self._follow()
        else:
            self.close(4001, "Invalid API Key")

    def _follow(self) -> None:
        state = state_of(self.settings)
        try:
            if self._kernel_id is not None:
                state.router.check(self._kernel_id)
        except KernelError as problem:
            self.close(4004, str(problem)[:100])
            return
        log = state.commands[self._kernel_id or ""]
        if self.get_query_argument("resend_mode", "") == "all":
            for event in log.search({}):
                self._tell(event)
        self._end = log.listen(self._tell)

    def _tell(self, event: dict[str, Any]) -> None:
        async def tell() -> None:
            with suppress(WebSocketClosedError):
                await self.write_message(json.dumps(event))

        run_in_background(tell())

    def on_close(self) -> None:
        """Tell no more."""
        if self._end is not None:
            self._end()
        super().on_close()


_OF_A_KERNEL: list[tuple[str, type[Any]]] = [
    (r"/(?:health|ready)", HealthHandler),
    (r"/api/bash/start_bash_command", StartCommandHandler),
    (r"/api/bash/execute_bash_command", ExecuteCommandHandler),
    (r"/api/bash/bash_commands/(?P<key>\w+)/stop", StopCommandHandler),
    (r"/api/bash/bash_events(?:/(?P<key>\w+))?", BashEventsHandler),
    (r"/api/file/upload", UploadFileHandler),
    (r"/api/file/download", DownloadFileHandler),
    (r"/api/git/(?P<kind>changes|diff)", GitHandler),
    (r"/sockets/bash-events", BashEventsSocket),
]

WORKSPACE_HANDLERS: list[tuple[str, type[Any]]] = [
    (rf"/oh_jupyter{kernel}{path}", handler)
    for kernel in ("", r"/kernels/(?P<kernel_id>[\w-]+)")
    for path, handler in _OF_A_KERNEL
]
"""Patterns below the server's base address, and their handlers."""
