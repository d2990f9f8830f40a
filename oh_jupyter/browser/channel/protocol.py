"""The vocabulary of requests and answers: settings, parts of an observation, special actions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

PARTS = (
    "screenshot",
    "set_of_marks",
    "dom_object",
    "axtree_object",
    "extra_element_properties",
    "focused_element_bid",
    "text_content",
)
"""The parts of an observation that can be left out, since they cost time."""
RECORDS = ("console_messages", "network_requests")
"""Parts of an observation that have to be asked for."""
MAX_CONTENT_CHARS = 30_000
"""Characters of a page that an agent reads; of a larger tree it gets what is in sight or near,
and of what is larger still the beginning."""
GET_GOAL, GET_REWARDS = "GET_EVAL_GOAL", "GET_EVAL_REWARDS"
"""Actions of OpenHands' evaluation that ask for the goal and for the rewards so far."""


CLOSE_SECONDS, CLOSE_SECONDS_WITH_ARCHIVE = 3.0, 60.0
"""Seconds that a worker may take to end by itself."""


@dataclass(frozen=True, kw_only=True)
class LaunchSettings:
    """How a worker starts its browser."""

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
    video_path: str = ""
    freeze_seconds: float = 0.0
    cdp_url: str = ""
    allowed_origins: tuple[str, ...] = ()
    blocked_origins: tuple[str, ...] = ()
    task: str = ""
    seed: int | None = None

    @property
    def close_seconds(self) -> float:
        """Seconds that the worker may take to end; an archive of requests is written then."""
        return CLOSE_SECONDS_WITH_ARCHIVE if self.har_path else CLOSE_SECONDS
