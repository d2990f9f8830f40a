"""Browse Actions and Observations of OpenHands' protocol."""

from __future__ import annotations

import base64
import os
import time
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from oh_jupyter.browser.channel.addresses import shortened_url, shortened_urls, typed_address
from oh_jupyter.browser.channel.downloads import move_downloads_to_workspace
from oh_jupyter.browser.channel.language import parse_actions
from oh_jupyter.browser.channel.own_folder import own_folder
from oh_jupyter.browser.channel.pipe import GET_GOAL, GET_REWARDS, MAX_CONTENT_CHARS
from oh_jupyter.browser.env import BrowserEnv
from oh_jupyter.browser.tree_text import flatten_axtree
from oh_jupyter.errors import BrowserError, BrowserTimeoutError
from oh_jupyter.events import (
    BrowseInteractiveAction,
    BrowserOutputObservation,
    BrowseURLAction,
    ErrorObservation,
    FileDownloadObservation,
)

MIN_PIECE_SECONDS = 1.0  # that a later part of the calls gets of the timeout
PAGES_DIR = ".browser_pages"
SCREENSHOTS_DIR = ".browser_screenshots"
PAGE_PARTS = ("screenshot", "set_of_marks", "text_content", "focused_element_bid")
TREE_PARTS = (
    "screenshot",
    "set_of_marks",
    "axtree_object",
    "extra_element_properties",
    "focused_element_bid",
)
COMPLETE_TREE_HEADER = "Accessibility tree of the COMPLETE webpage:\n"
VISIBLE_TREE_HEADER = (
    "Accessibility tree of the VISIBLE portion of the webpage (accessibility tree of complete "
    "webpage is too large and you may need to scroll to view remaining portion of the webpage):\n"
)
BID_NOTE = (
    "Note: [bid] is the unique alpha-numeric identifier at the beginning of lines for each element "
    "in the AXTree. Always use bid to refer to elements in your actions.\n"
)
FIND_HINT = 'find("words") scrolls to a match; use browse_interactive for these calls'
BrowseAction = BrowseURLAction | BrowseInteractiveAction


def browse(
    action: BrowseAction,
    env: BrowserEnv,
    workspace_dir: str,
    files: Mapping[str, Any] | None = None,
) -> BrowserOutputObservation | FileDownloadObservation | ErrorObservation:
    """Run a browse Action; report failures as Observations, never as exceptions.

    ``files`` limits the local files that its pages load, see ``BrowserEnv.step``.
    """
    try:
        env.start()
    except BrowserError as error:
        return ErrorObservation(f"Browser functionality is not supported or disabled. {error}")
    is_url = isinstance(action, BrowseURLAction)
    url = typed_address(action.url, workspace_dir) if isinstance(action, BrowseURLAction) else ""
    calls = _goto(url) if isinstance(action, BrowseURLAction) else action.browser_actions
    pieces = _pieces(calls)
    start = _text_start(pieces[-1])
    shows_text = is_url or start is not None
    parts = set(PAGE_PARTS if shows_text else TREE_PARTS)
    if action.return_axtree:
        parts |= {"axtree_object", "extra_element_properties"}
    timeout: float = action.timeout or 120
    deadline = time.monotonic() + timeout
    earlier = ""
    try:
        for number, piece in enumerate(pieces, 1):
            if number > 1:
                timeout = max(deadline - time.monotonic(), MIN_PIECE_SECONDS)
            result = env.step(
                piece, timeout=timeout, include=parts, cwd=workspace_dir, token=action,
                nearby=not action.return_axtree, files=files,
            )  # fmt: skip
            if number == len(pieces) or result["last_action_error"] or result["downloads"]:
                start = _text_start(piece)
                break
            earlier += _earlier_text(result, _text_start(piece) or 0, workspace_dir, len(pieces))
    except BrowserError as error:
        is_timeout = isinstance(error, BrowserTimeoutError)
        message = f"TimeoutError: {error}" if is_timeout else str(error)
        return BrowserOutputObservation(
            content=message,
            url=action.url if isinstance(action, BrowseURLAction) else "",
            trigger_by_action=action.kind,
            error=True,
            outcome="timed_out" if is_timeout else "failed",
            last_browser_action=calls,
            last_browser_action_error=message,
        )
    if result["downloads"]:
        try:
            paths = move_downloads_to_workspace(result["downloads"], workspace_dir)
        except OSError as error:
            return ErrorObservation(f"The download cannot be saved in {workspace_dir}: {error}")
        return _downloaded(paths, calls)
    observation = BrowserOutputObservation(
        content="",
        url=result["url"],
        trigger_by_action=action.kind,
        screenshot=result["screenshot"],
        screenshot_path=(
            _save_screenshot(result["screenshot"], workspace_dir) if action.picture else None
        ),
        set_of_marks=result["set_of_marks"],
        error=bool(result["last_action_error"]),
        open_pages_urls=result["open_pages_urls"],
        active_page_index=result["active_page_index"],
        last_browser_action=result["last_action"] if len(pieces) == 1 else calls,
        last_browser_action_error=result["last_action_error"],
        focused_element_bid=result["focused_element_bid"],
        goal_image_urls=result.get("image_content", []),
    )
    if calls.strip() in (GET_GOAL, GET_REWARDS) and not result["url"]:
        # Clients expect the goal or the rewards without any other text.
        observation.content = result["text_content"]
        return observation
    if action.return_axtree:
        observation.axtree_object = result["axtree_object"]
        observation.extra_element_properties = result["extra_element_properties"]
    if shows_text:
        occasion = "trying to visit the URL" if is_url else "executing the last action"
        text = _text_piece(result, start or 0, workspace_dir, len(pieces))
        observation.content = earlier + _page_content(observation, result, text, occasion)
    else:
        observation.content = _tree_content(observation, result, workspace_dir)
    return observation


def _text_start(calls: str) -> int | None:
    """Return the ``start`` of the last ``page_text`` call, or None if there is none."""
    try:
        text_calls = [call for call in parse_actions(calls) if call.name == "page_text"]
    except BrowserError:
        return None
    return text_calls[-1].arguments["start"] if text_calls else None


def _pieces(calls: str) -> list[str]:
    """Split calls after each ``page_text`` but the last, so that each text is returned."""
    try:
        parsed = parse_actions(calls)
    except BrowserError:
        return [calls]
    ends = [number for number, call in enumerate(parsed, 1) if call.name == "page_text"][:-1]
    if not ends:
        return [calls]
    bounds = zip([0, *ends], [*ends, len(parsed)], strict=True)
    return ["\n".join(call.source for call in parsed[begin:end]) for begin, end in bounds]


def _earlier_text(result: Mapping[str, Any], start: int, workspace_dir: str, count: int) -> str:
    """Return the content of a ``page_text`` before the last one."""
    page = BrowserOutputObservation(content="", url=result["url"], trigger_by_action="")
    text = _text_piece(result, start, workspace_dir, count)
    return _page_content(page, result, text, "") + "\n"


def _goto(url: str) -> str:
    # Clients compare with the unescaped form.
    return f'goto("{url}")' if not set(url) & {'"', "\\", "\n", "\r"} else f"goto({url!r})"


def _save_screenshot(screenshot: str, workspace_dir: str) -> str | None:
    if not screenshot:
        return None
    return _save_file(
        base64.b64decode(screenshot.partition(",")[2]),
        workspace_dir, SCREENSHOTS_DIR, "screenshot", ".png",
    )  # fmt: skip


def _save_file(data: bytes, workspace_dir: str, folder: str, name: str, suffix: str) -> str | None:
    """Save a file with a timestamp in its name; return None if it cannot be written."""
    file_name = f"{name}_{datetime.now():%Y%m%d_%H%M%S_%f}{suffix}"
    try:
        with (
            own_folder(Path(workspace_dir), folder) as directory,
            open(directory / file_name, "xb") as file,
        ):
            file.write(data)
    except OSError:
        return None
    return os.path.join(workspace_dir, folder, file_name)


def _downloaded(paths: list[str], calls: str) -> FileDownloadObservation:
    if len(paths) == 1:
        where = f"The downloaded file is saved at location: {paths[0]}"
    else:
        where = f"The {len(paths)} downloaded files are saved at locations: {', '.join(paths)}"
    return FileDownloadObservation(
        f"Execution of the previous action {shortened_urls(calls)} resulted in a file download. "
        f"{where}",
        file_path=paths[0],
    )


def _error_block(observation: BrowserOutputObservation, occasion: str) -> str:
    return (
        "================ BEGIN error message ===============\n"
        f"The following error occurred when {occasion}:\n"
        f"{shortened_urls(observation.last_browser_action_error)}\n"
        "================ END error message ===============\n"
    )


def _notices(result: Mapping[str, Any]) -> str:
    return "".join(
        f"[{notice}]\n" for notice in result["notices"] if notice not in result["last_action_error"]
    )


def _bounded(
    text: str,
    full_text: str,
    workspace_dir: str,
    start: int | None = None,
    subject: str = "The whole page",
    limit: int = MAX_CONTENT_CHARS,
) -> str:
    """Truncate a long text, and append where its full version is and how to read on."""
    if len(text) <= limit:
        return text
    end = text.rfind("\n", limit // 2, limit)
    end = limit if end < 0 else end
    path = _save_file(full_text.encode("utf-8"), workspace_dir, PAGES_DIR, "page", ".txt")
    location = "" if path is None else f" {subject} is in the file {path}."
    next_call = (
        "page_text(0) reads the text" if start is None else f"page_text({start + end}) reads on"
    )
    return (
        f"{text[:end]}\n[{len(text) - end} of {len(text)} characters are left out here.{location} "
        f"scroll(0, 600) shows other parts, {next_call}, {FIND_HINT}.]"
    )


def _text_piece(result: Mapping[str, Any], start: int, workspace_dir: str, count: int = 1) -> str:
    """Return a page's text from ``start`` on, up to the length that agents read at once.

    ``count`` texts share that length.
    """
    piece = result.get("text_range")
    text = shortened_urls(result["text_content"])
    if piece is None:
        header = f"[From character {start} of {len(text)} on:]\n" if start else ""
        limit = MAX_CONTENT_CHARS // count
        return header + _bounded(text[start:], text, workspace_dir, start, limit=limit)
    end, total = piece["end"], piece["total"]
    more = f" page_text({end}) reads on." if end < total else ""
    position = f"[These are characters {piece['start']} to {end} of {total}.{more}"
    return text if not start and end >= total else f"{text}\n{position} {FIND_HINT}.]"


def _page_content(
    observation: BrowserOutputObservation, result: Mapping[str, Any], text: str, occasion: str
) -> str:
    content = f"[Current URL: {shortened_url(observation.url)}]\n"
    if observation.error:
        content += _error_block(observation, occasion)
    content += _notices(result)
    content += "============== BEGIN webpage content ==============\n"
    content += f"{text}\n============== END webpage content ==============\n"
    return content


def _tree_content(
    observation: BrowserOutputObservation, result: Mapping[str, Any], workspace_dir: str
) -> str:
    content = f"[Current URL: {shortened_url(observation.url)}]\n"
    content += f"[Focused element bid: {observation.focused_element_bid}]\n"
    if observation.screenshot_path:
        content += f"[Screenshot saved to: {observation.screenshot_path}]\n"
    content += "\n"
    if observation.error:
        content += _error_block(observation, "executing the last action")
    else:
        content += "[Action executed successfully.]\n"
    content += _notices(result)
    tree, properties = result["axtree_object"], result["extra_element_properties"]
    text = full_text = flatten_axtree(tree, properties, with_clickable=True, skip_generic=False)
    left_out = result.get("left_out", 0)
    if left_out:
        observation.filter_visible_only = True
    if len(text) > MAX_CONTENT_CHARS:
        observation.filter_visible_only = True
        text = flatten_axtree(
            tree, properties, with_clickable=True, skip_generic=False, visible_only=True
        )
    content += VISIBLE_TREE_HEADER if observation.filter_visible_only else COMPLETE_TREE_HEADER
    content += f"{BID_NOTE}============== BEGIN accessibility tree ==============\n"
    subject = "The nearby part" if left_out else "The whole page"
    text = _bounded(text, full_text, workspace_dir, subject=subject)
    if left_out:
        text += f"\n[{left_out} elements further away are left out. scroll(0, 600) shows other "
        text += f"parts, page_text(0) reads the text, {FIND_HINT}.]"
    content += f"{text}\n============== END accessibility tree ==============\n"
    return content
