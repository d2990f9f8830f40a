"""``requests/{id}``: the answer of a request that was sent with an id."""

from __future__ import annotations

import asyncio

from jupyter_server.auth.decorator import authorized
from tornado import web

from oh_jupyter.errors import WireError
from oh_jupyter.server.handlers.base import OhHandler
from oh_jupyter.server.result_store import ID_HEADER

__all__ = ["RequestHandler"]

MAX_WAIT_SECONDS = 300.0


class RequestHandler(OhHandler):
    """GET the answer of a request that was sent with an id; DELETE to take it back."""

    @web.authenticated
    @authorized("execute", resource="oh_jupyter:actions")
    async def get(self, key: str) -> None:
        """Send the answer as ``execute_action`` would have, or 202 while there is none."""
        wait = self._seconds()
        task = self.state.results.find(key, self.principal)
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
        self.state.results.find(key, self.principal).cancel()
        self.set_status(204)
        self.finish()

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
