"""What a runtime has and waits for: skills, the last page, confirmations, VS Code."""

from __future__ import annotations

import base64
import json
from typing import Any

from jupyter_server.auth.decorator import authorized
from tornado import web

from oh_jupyter.errors import ExtensionMissingError, WireError
from oh_jupyter.server.handlers.base import OhHandler, Routes

NOT_OVER_REST = (
    "Actions are approved in JupyterLab's panel or with %oh_confirm in the notebook, not over "
    "REST, where an agent could approve its own. c.OhJupyter.confirmation_over_rest = True in the "
    "server's configuration allows it; rejecting is always possible"
)


class SkillsHandler(OhHandler):
    """GET the agent skills."""

    @web.authenticated
    @authorized("read", resource="oh_jupyter:actions")
    async def get(self, kernel_id: str | None = None) -> None:
        """List name, signature and docstring of each."""
        reply = await self.ask(kernel_id, "skills")
        self.finish_json(reply.fields["skills"])


class ScreenshotHandler(OhHandler):
    """GET what the browser showed last, as a picture."""

    @web.authenticated
    @authorized("read", resource="oh_jupyter:events")
    async def get(self, kind: str, kernel_id: str | None = None) -> None:
        """Send a PNG."""
        page = json.loads((await self.ask(kernel_id, "page", load=False)).body or b"{}")
        picture = str(page["extras"].get(kind) or "")
        if not picture:
            raise web.HTTPError(404, f"The last page has no {kind}")
        self.set_header("Cache-Control", "no-store")
        data = base64.b64decode(picture.partition(",")[2])
        self.finish(data, set_content_type="image/png")


class MarksHandler(OhHandler):
    """GET what is marked in the last picture."""

    @web.authenticated
    @authorized("read", resource="oh_jupyter:events")
    async def get(self, kernel_id: str | None = None) -> None:
        """Send the address, the focused element, and the properties of elements by bid."""
        page = json.loads((await self.ask(kernel_id, "page", load=False)).body or b"{}")
        extras = page["extras"]
        self.finish_json(
            {
                name: extras.get(name)
                for name in (
                    "url",
                    "open_pages_urls",
                    "active_page_index",
                    "focused_element_bid",
                    "last_browser_action",
                    "last_browser_action_error",
                    "extra_element_properties",
                )
            }
        )


class ConfirmationsHandler(OhHandler):
    """GET the actions that wait for a person."""

    @web.authenticated
    @authorized("read", resource="oh_jupyter:events")
    async def get(self, kernel_id: str | None = None) -> None:
        """List id, message, reasons, diff and the seconds that are left of each."""
        await self.check_kernel(kernel_id)
        # Frontends ask for every kernel, also for those that have nothing to do with us.
        if not self.state.router.is_linked(kernel_id):
            self.finish_json([])
            return
        reply = await self.ask(kernel_id, "confirmations", load=False)
        self.finish_json(reply.fields["waiting"])


class ConfirmHandler(OhHandler):
    """POST what a person has decided on a waiting action."""

    @web.authenticated
    @authorized("execute", resource="oh_jupyter:confirmations")
    async def post(self, event_id: str, kernel_id: str | None = None) -> None:
        """Let it begin, or reject it: ``{"approve": true}`` or ``{"approve": false}``.

        The agent gets the ``reason`` of a rejection; an approval with ``for_session`` holds for
        later actions of the type that wait for the same reasons. Who has the server's token may be
        the agent itself, so that approval has to be allowed by a setting. JupyterLab's panel tells
        the kernel directly.
        """
        if self.by_session_key:
            raise web.HTTPError(403, "An agent cannot confirm its own actions")
        body = self.json_object("approve", "reason", "why", "for_session")
        if not isinstance(body.get("approve"), bool):
            raise WireError('The body must be {"approve": true} or {"approve": false}', "approve")
        if body["approve"] and not self.state.confirmation_over_rest:
            raise web.HTTPError(403, NOT_OVER_REST)
        why, for_session = body.get("reason", body.get("why", "")), body.get("for_session", False)
        if not isinstance(why, str):
            raise WireError("'reason' must be a text", "reason")
        if not isinstance(for_session, bool):
            raise WireError("'for_session' must be true or false", "for_session")
        fields = {
            "id": int(event_id),
            "approve": body["approve"],
            "by": "REST",
            "why": why,
            "for_session": for_session,
        }
        await self.ask(kernel_id, "confirm", fields, load=False)
        self.finish_empty()


NO_PROXY = "pip install jupyter-server-proxy into the server's environment, and restart the server"


class _FromKernel(OhHandler):
    async def plugin(self, kernel_id: str | None) -> dict[str, Any]:
        """``token``, ``url`` and ``problem``, each possibly None, as a kernel's runtime tells them.

        The default kernel is started only if its settings ask for the plugin.
        """
        wanted = self.state.wants_vscode
        if kernel_id is None and not wanted and self.state.router.default_kernel_id is None:
            return {}
        try:
            reply = await self.ask(kernel_id, "vscode", load=kernel_id is None and wanted)
        except ExtensionMissingError:
            return {}
        return reply.fields


class VSCodeTokenHandler(_FromKernel):
    """GET the token, as OpenHands' clients do."""

    # Who has the token can execute anything.
    @web.authenticated
    @authorized("execute", resource="oh_jupyter:actions")
    async def get(self, kernel_id: str | None = None) -> None:
        """Send ``{"token": "<uuid>"}``, or ``{"token": null}`` where VS Code does not run."""
        self.finish_json({"token": (await self.plugin(kernel_id)).get("token")})


class VSCodeHandler(_FromKernel):
    """GET where a person finds VS Code."""

    @web.authenticated
    @authorized("execute", resource="oh_jupyter:actions")
    async def get(self, kernel_id: str | None = None) -> None:
        """Send ``{"url": ..., "token": ..., "problem": ...}``; what there is not is null."""
        found = await self.plugin(kernel_id)
        url, problem = found.get("url"), found.get("problem")
        extensions = self.serverapp.extension_manager.extensions if self.serverapp else {}
        if url and "jupyter_server_proxy" not in extensions:
            url, problem = None, f"VS Code runs, but nothing leads to it: {NO_PROXY}"
        elif not url and not problem:
            problem = "The plugin 'vscode' is not among the settings' plugins"
        self.finish_json({"url": url, "token": found.get("token"), "problem": problem})


class CheckpointsHandler(OhHandler):
    """GET the checkpoints, POST one."""

    @web.authenticated
    @authorized("read", resource="oh_jupyter:events")
    async def get(self, kernel_id: str | None = None) -> None:
        """List them, the oldest first."""
        reply = await self.ask(kernel_id, "checkpoints")
        self.finish_json(reply.body or b"null")

    @web.authenticated
    @authorized("execute", resource="oh_jupyter:actions")
    async def post(self, kernel_id: str | None = None) -> None:
        """Keep the files as they are now: ``{"label": "..."}``."""
        body = self.json_object("label")
        if not isinstance(body.get("label"), str):
            raise WireError('The body must be {"label": "..."}', "label")
        reply = await self.ask(kernel_id, "mark_checkpoint", {"label": body["label"]})
        self.finish_json(reply.body or b"null")


class RewindHandler(OhHandler):
    """POST the wish to go back to a checkpoint."""

    @web.authenticated
    @authorized("execute", resource="oh_jupyter:actions")
    async def post(self, kernel_id: str | None = None) -> None:
        """Undo the turns since then, or tell what that would do (``"preview": true``)."""
        fields = self.json_object("id", "everything", "preview", "source", "path")
        reply = await self.ask(kernel_id, "rewind", fields)
        self.finish_json(reply.body or b"null")


KERNEL_ROUTES: Routes = [
    (r"/confirmations", ConfirmationsHandler),
    (r"/confirmations/(?P<event_id>\d{1,15})", ConfirmHandler),
    (r"/checkpoints", CheckpointsHandler),
    (r"/rewind", RewindHandler),
    (r"/skills", SkillsHandler),
    (r"/browser/(?P<kind>screenshot|set_of_marks)", ScreenshotHandler),
    (r"/browser/marks", MarksHandler),
    (r"/vscode", VSCodeHandler),
    (r"/vscode/connection_token", VSCodeTokenHandler),
]
