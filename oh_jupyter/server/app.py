"""The server extension: ``c.OhJupyter`` in a Jupyter server's configuration."""

from __future__ import annotations

from typing import Any

from jupyter_server.extension.application import ExtensionApp
from traitlets import Unicode

from oh_jupyter._version import __version__
from oh_jupyter.config import REQUEST_MESSAGE
from oh_jupyter.server.handlers import HANDLERS, Activity
from oh_jupyter.server.router import Router
from oh_jupyter.traits import SettingsTraits, explicit_settings

__all__ = ["OhJupyter"]


class OhJupyter(SettingsTraits, ExtensionApp):  # type: ignore[valid-type, misc]
    """The OpenHands action-execution protocol on the kernels of this server."""

    name = "oh_jupyter"
    version = __version__
    load_other_extensions = True

    default_kernel_name = Unicode(
        "", help="Kernelspec of the kernel for requests that name none. Default: the server's."
    ).tag(config=True)

    default_kernel_path = Unicode(
        "", help="Where that kernel starts, relative to the server's root."
    ).tag(config=True)

    def initialize_settings(self) -> None:
        """Put the router where the handlers find it."""
        server: Any = self.serverapp
        self.settings["oh_jupyter_activity"] = Activity()
        self.settings["oh_jupyter_router"] = Router(
            server.kernel_manager,
            server.event_logger,
            kernel_name=self.default_kernel_name or None,
            start_arguments=self._kernel_arguments(),
            path=self.default_kernel_path,
        )
        _keep_kernels_busy(server)

    def initialize_handlers(self) -> None:
        """Add the endpoints."""
        self.handlers.extend(HANDLERS)

    def _kernel_arguments(self) -> list[str]:
        """The settings given to the server, for the default kernel's command line."""
        return [
            f"--OhJupyter.{name}={value}"
            for name, value in explicit_settings(self).items()
            if isinstance(value, str | bool | float)
        ]

    async def stop_extension(self) -> None:
        """Disconnect from the kernels."""
        self.settings["oh_jupyter_router"].close()


def _keep_kernels_busy(server: Any) -> None:
    """Keep our requests from making a kernel look idle in the middle of a cell.

    Both lists are needed: JupyterLab copies the first into its page when it loads, which
    is before us.
    """
    untracked = server.kernel_manager.untracked_message_types
    if REQUEST_MESSAGE not in untracked:
        server.kernel_manager.untracked_message_types = [*untracked, REQUEST_MESSAGE]
    page: dict[str, Any] = server.web_app.settings.setdefault("page_config_data", {})
    known = page.get("untracked_message_types", untracked)
    if REQUEST_MESSAGE not in known:
        page["untracked_message_types"] = [*known, REQUEST_MESSAGE]
