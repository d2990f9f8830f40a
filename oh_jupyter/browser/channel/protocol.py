"""The vocabulary of requests and answers: settings, parts of an observation, special actions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["GET_GOAL", "GET_REWARDS", "PARTS", "RECORDS", "LaunchSettings"]

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
GET_GOAL, GET_REWARDS = "GET_EVAL_GOAL", "GET_EVAL_REWARDS"
"""Actions of OpenHands' evaluation that ask for the goal and for the rewards so far."""


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
    cdp_url: str = ""
    allowed_origins: tuple[str, ...] = ()
    blocked_origins: tuple[str, ...] = ()
    task: str = ""
    seed: int | None = None
