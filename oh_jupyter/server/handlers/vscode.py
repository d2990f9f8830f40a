"""``vscode/connection_token``, and where VS Code is."""

from __future__ import annotations

from typing import Any

from jupyter_server.auth.decorator import authorized
from tornado import web

from oh_jupyter.errors import ExtensionMissingError
from oh_jupyter.server.handlers.base import OhHandler

__all__ = ["VSCodeHandler", "VSCodeTokenHandler"]

NO_PROXY = "pip install jupyter-server-proxy into the server's environment, and restart the server"


class _FromKernel(OhHandler):
    async def ask(self, kernel_id: str | None) -> dict[str, Any]:
        """``token``, ``url`` and ``problem``, each possibly None, as a kernel's runtime tells them.

        The default kernel is started only if its settings ask for the plugin.
        """
        wanted = self.state.wants_vscode
        if kernel_id is None and not wanted and self.state.router.default_kernel_id is None:
            return {}
        link = await self.link(kernel_id)
        try:
            reply = await link.request("vscode", load=kernel_id is None and wanted)
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
        self.finish_json({"token": (await self.ask(kernel_id)).get("token")})


class VSCodeHandler(_FromKernel):
    """GET where a person finds VS Code."""

    @web.authenticated
    @authorized("execute", resource="oh_jupyter:actions")
    async def get(self, kernel_id: str | None = None) -> None:
        """Send ``{"url": ..., "token": ..., "problem": ...}``; what there is not is null."""
        found = await self.ask(kernel_id)
        url, problem = found.get("url"), found.get("problem")
        extensions = self.serverapp.extension_manager.extensions if self.serverapp else {}
        if url and "jupyter_server_proxy" not in extensions:
            url, problem = None, f"VS Code runs, but nothing leads to it: {NO_PROXY}"
        elif not url and not problem:
            problem = "The plugin 'vscode' is not among the settings' plugins"
        self.finish_json({"url": url, "token": found.get("token"), "problem": problem})
