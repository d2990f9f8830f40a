"""``execute_action``, ``requests/{id}``, ``list_files`` and ``unsaved``."""

from __future__ import annotations

import asyncio

from jupyter_server.auth.decorator import authorized
from tornado import web

from oh_jupyter.errors import KernelTimeoutError, WireError
from oh_jupyter.server.handlers.base import OhHandler, Routes
from oh_jupyter.server.links import Reply, acting
from oh_jupyter.server.result_store import ID_HEADER, StoredResult


class ExecuteActionHandler(OhHandler):
    """POST an Action, get its Observation.

    A client that goes away takes its Action back: what can be interrupted is. One that sent
    an id in the header ``X-Request-ID`` can fetch the Observation later instead.
    """

    @web.authenticated
    @authorized("execute", resource="oh_jupyter:actions")
    async def post(self, kernel_id: str | None = None) -> None:
        """Carry out the Action in the body."""
        body = self.body
        if not body:
            raise WireError('The request has no body: send {"action": {...}}', "action")
        key = self.request.headers.get(ID_HEADER)
        if key is not None:
            reply = await self._stored(key, kernel_id, body)
        else:
            link = await self.link(kernel_id)
            self._begin()
            async with self.state.unsaved.shared():
                reply = await self.while_connected(
                    link.request("execute_action", body=body, cancellable=True)
                )
        self.set_header("X-OH-Jupyter-Generation", str(reply.fields.get("generation", "")))
        self.finish_json(reply.body or b"null")

    async def _stored(self, key: str, kernel_id: str | None, body: bytes) -> Reply:
        """The answer of a request with an id; KernelTimeoutError while its kernel is silent."""
        await self.check_kernel(kernel_id)

        async def work(stored: StoredResult) -> Reply:
            link = await self.link(kernel_id)
            stored.has_kernel = True
            async with self.state.unsaved.shared():
                return await link.request(
                    "execute_action", None, body, cancellable=True, overdue=stored.overdue
                )

        self._begin()
        stored = self.state.results.start(key, self.principal, work)
        self.set_header(ID_HEADER, key)
        await stored.wait_unless_overdue()
        if not stored.task.done():
            link = await self.link(kernel_id)
            raise KernelTimeoutError(
                f"{link.silence()}. Its answer will be at oh_jupyter/requests/{key}"
            )
        return self.result_of(stored.task)

    def _begin(self) -> None:
        self.state.activity.touch()
        acting.set(self.actor)


class ListFilesHandler(OhHandler):
    """POST a directory, get its names."""

    @web.authenticated
    @authorized("read", resource="oh_jupyter:actions")
    async def post(self, kernel_id: str | None = None) -> None:
        """List a directory of the kernel's machine."""
        body = self.json_body() if self.body else {}
        path = body.get("path") if isinstance(body, dict) else body
        if not isinstance(body, dict) or not isinstance(path, str | None):
            raise WireError('The body must be {"path": "..."}, or {}', "path")
        reply = await self.ask(kernel_id, "list_files", {"path": path})
        self.finish_json(reply.fields["names"])


MAX_WAIT_SECONDS = 300.0


class RequestHandler(OhHandler):
    """GET the answer of a request that was sent with an id; DELETE to take it back."""

    @web.authenticated
    @authorized("execute", resource="oh_jupyter:actions")
    async def get(self, key: str) -> None:
        """Send the answer as ``execute_action`` would have, or 202 while there is none."""
        wait = self._seconds()
        task = self.state.results.find(key, self.principal).task
        await asyncio.wait({task}, timeout=wait)
        self.set_header(ID_HEADER, key)
        if not task.done():
            self.set_status(202)
            self.finish_json({"status": "running"})
        else:
            self.finish_json(self.result_of(task).body or b"null")

    @web.authenticated
    @authorized("execute", resource="oh_jupyter:actions")
    async def delete(self, key: str) -> None:
        """Cancel it, if it is not done."""
        self.state.results.find(key, self.principal).task.cancel()
        self.finish_empty()

    def _seconds(self) -> float:
        text = self.get_query_argument("wait", "0")
        try:
            seconds = float(text)
        except ValueError:
            seconds = -1
        if not 0 <= seconds <= MAX_WAIT_SECONDS:
            raise WireError(
                f"'wait' must be 0 to {MAX_WAIT_SECONDS:.0f} seconds, not {text!r}", "wait"
            )
        return seconds


class UnsavedHandler(OhHandler):
    """PUT the paths of a window's documents that have changes which are not in their files.

    POST to have them saved, as an agent does before it gets at files by other ways than ours.
    """

    @web.authenticated
    @authorized("execute", resource="oh_jupyter:actions")
    async def post(self) -> None:
        """Ask all windows to save, and wait for them."""
        await self.state.unsaved.save()
        self.finish_empty()

    @web.authenticated
    @authorized("write", resource="contents")
    async def put(self) -> None:
        """Take note of ``{"client": "...", "paths": [...]}``, after the save ``answered``."""
        body = self.json_body()
        told = body if isinstance(body, dict) else {}
        client, paths = told.get("client"), told.get("paths")
        if not isinstance(client, str) or not isinstance(paths, list):
            raise WireError('The body must be {"client": "...", "paths": [...]}', "paths")
        answered = told.get("answered")
        self.state.unsaved.report(
            client,
            frozenset(str(path) for path in paths),
            answered if isinstance(answered, int) else None,
        )
        self.finish_empty()


KERNEL_ROUTES: Routes = [
    (r"/execute_action", ExecuteActionHandler),
    (r"/list_files", ListFilesHandler),
]
SERVER_ROUTES: Routes = [
    (r"/unsaved", UnsavedHandler),
    (r"/requests/(?P<key>[^/]+)", RequestHandler),
]
