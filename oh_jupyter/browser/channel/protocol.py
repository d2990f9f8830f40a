"""Constants and settings of the protocol between BrowserEnv and its worker."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from oh_jupyter.browser.channel.addresses import OriginFilter

PARTS = (
    "screenshot",
    "set_of_marks",
    "dom_object",
    "axtree_object",
    "extra_element_properties",
    "focused_element_bid",
    "text_content",
)
"""Optional parts of an observation, which take time to compute."""
RECORDS = ("console_messages", "network_requests")
"""Parts of an observation that are included only on request."""
MAX_CONTENT_CHARS = 30_000
"""Maximum length of a page's text or tree for an agent. A longer tree is limited to the viewport
and its surroundings; if it is still too long, it is truncated."""
GET_GOAL, GET_REWARDS = "GET_EVAL_GOAL", "GET_EVAL_REWARDS"
"""Actions of OpenHands' evaluation that return the goal and the rewards so far."""


CLOSE_SECONDS, CLOSE_SECONDS_WITH_ARCHIVE = 3.0, 60.0
"""Seconds that a worker may take to exit before it is terminated."""


@dataclass(frozen=True, kw_only=True)
class LaunchSettings:
    """Settings with which a worker starts its browser."""

    executable: str = ""
    headless: bool = True
    viewport: tuple[int, int] = (1280, 720)
    downloads_dir: str = ""
    accept_dialogs: bool = False
    sandbox: bool = True
    storage_state: dict[str, Any] | None = None
    user_data_dir: str = ""
    device: str = ""
    har_path: str = ""
    cdp_url: str = ""
    allowed_origins: tuple[str, ...] = ()
    blocked_origins: tuple[str, ...] = ()
    task: str = ""
    seed: int | None = None

    @property
    def origins(self) -> OriginFilter:
        """Filter of the allowed and blocked origins."""
        return OriginFilter(self.allowed_origins, self.blocked_origins)

    @property
    def close_seconds(self) -> float:
        """Seconds that the worker may take to exit; writing a HAR archive takes longer."""
        return CLOSE_SECONDS_WITH_ARCHIVE if self.har_path else CLOSE_SECONDS
