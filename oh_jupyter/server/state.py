"""What the handlers share: one object in the web application's settings."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import psutil

from oh_jupyter.server.limits import Limits
from oh_jupyter.server.result_store import ResultStore
from oh_jupyter.server.router import Router

if TYPE_CHECKING:
    from oh_jupyter.server.mcp.endpoints import Endpoints

__all__ = ["Activity", "ServerState", "state_of"]

SETTINGS_KEY = "oh_jupyter_state"


class Activity:
    """When the server started, and when it was last asked to do something."""

    def __init__(self) -> None:
        self.started = self.last_action = time.time()
        self.process = psutil.Process()
        self.process.cpu_percent()  # the next call tells of the time since this one

    def touch(self) -> None:
        """An Action has arrived."""
        self.last_action = time.time()


@dataclass
class ServerState:
    """The state of the extension on one server.

    Attributes:
        router: Knows the kernels.
        limits: How much each client may take.
        mcp: The MCP endpoints.
        wants_vscode: The settings ask for the plugin ``vscode``.
        confirmation_over_rest: Waiting actions may be approved over REST.
        activity: When the server was last asked to do something.
        results: Answers of requests with an id.
        view_key: Lets a browser that has not logged in view files.
    """

    router: Router
    limits: Limits
    mcp: Endpoints
    wants_vscode: bool
    confirmation_over_rest: bool
    activity: Activity
    results: ResultStore = field(default_factory=ResultStore)
    view_key: str = field(default_factory=lambda: secrets.token_urlsafe(24), repr=False)

    def put_into(self, settings: dict[str, Any]) -> None:
        """Make it the state that handlers with these settings find."""
        settings[SETTINGS_KEY] = self


def state_of(settings: Mapping[str, Any]) -> ServerState:
    """The state in the settings of a web application."""
    return cast("ServerState", settings[SETTINGS_KEY])
