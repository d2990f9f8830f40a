"""State shared by the handlers, in the web application's settings."""

from __future__ import annotations

import secrets
import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import psutil

from oh_jupyter.server.limits import RequestLimits
from oh_jupyter.server.result_store import ResultStore
from oh_jupyter.server.router import Router
from oh_jupyter.server.tokens import ScopedTokens
from oh_jupyter.server.unsaved import UnsavedDocuments
from oh_jupyter.server.workspace import CommandLog

if TYPE_CHECKING:
    from oh_jupyter.server.mcp.endpoints import Endpoints

SETTINGS_KEY = "oh_jupyter_state"


class Activity:
    """Times of the server's start and of the last Action, and the server's process."""

    def __init__(self) -> None:
        self.started = self.last_action = time.time()
        self.process = psutil.Process()
        self.process.cpu_percent()  # the next call measures from here

    def touch(self) -> None:
        """Note that an Action has arrived."""
        self.last_action = time.time()


@dataclass
class ServerState:
    """State of the extension on one server."""

    router: Router
    limits: RequestLimits
    mcp: Endpoints
    wants_vscode: bool
    confirmation_over_rest: bool
    activity: Activity
    unsaved: UnsavedDocuments
    results: ResultStore = field(default_factory=ResultStore)
    tokens: ScopedTokens = field(default_factory=ScopedTokens)
    commands: defaultdict[str, CommandLog] = field(default_factory=lambda: defaultdict(CommandLog))
    contexts: dict[str, Any] = field(default_factory=dict)
    """Kernels that clients of E2B have started, by id."""
    sandboxes: dict[str, Any] = field(default_factory=dict)
    """Sandboxes that clients of E2B have created, by id."""
    view_key: str = field(default_factory=lambda: secrets.token_urlsafe(24), repr=False)
    own_key: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    """Admits programs of this user to our addresses if the server has no token."""

    def put_into(self, settings: dict[str, Any]) -> None:
        """Store it where handlers with these settings find it."""
        settings[SETTINGS_KEY] = self


def state_of(settings: Mapping[str, Any]) -> ServerState:
    """Return the state in the settings of a web application."""
    return cast("ServerState", settings[SETTINGS_KEY])
