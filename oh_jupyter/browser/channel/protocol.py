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
    """How a worker starts its browser.

    Attributes:
        executable: Path of the browser.
        headless: Whether it runs without a window.
        viewport: Width and height in px.
        downloads_dir: Where finished downloads are put.
        accept_dialogs: Whether confirm and prompt dialogs are accepted; alerts always are.
        sandbox: Whether Chromium's own sandbox is on.
        storage_state: Cookies and local storage to begin with, as Playwright saves them.
        user_data_dir: Folder of a profile that is kept, or "".
        device: Name of a device of Playwright's list to be, or "".
        cdp_url: DevTools address of a running browser to use, or "".
        allowed_origins: The only origins that may be reached; empty for all.
        blocked_origins: Origins that may not be reached.
        task: Name of a task of BrowserGym to set up, or "".
        seed: What the random choices of that task begin with.
    """

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
