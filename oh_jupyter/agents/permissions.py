"""What an agent asks permission for, as an Action of the one confirmation policy."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from acp.schema import (
    AllowedOutcome,
    DeniedOutcome,
    FileEditToolCallContent,
    PermissionOption,
    RequestPermissionResponse,
    ToolCallUpdate,
)

from oh_jupyter.events import Action, ActionSecurityRisk, CmdRunAction, FileEditAction, MCPAction

_APPROVE = ("allow_once", "allow_always")
_REJECT = ("reject_once", "reject_always")


def is_our_tool(tool_call: ToolCallUpdate, server: str) -> bool:
    """Whether a tool call is one of our MCP server's: Claude's, Codex's and Gemini's way to say."""
    title, arguments = tool_call.title or "", tool_call.raw_input
    if title.startswith(f"mcp__{server}__") or f"({server} MCP Server)" in title:
        return True
    named = _table(arguments)
    return server in (named.get("server_name"), named.get("server"))


def title_of(tool_call: ToolCallUpdate) -> str:
    """Make a title for a tool call that has none, of what it would act on."""
    arguments = _table(tool_call.raw_input)
    paths = [location.path for location in tool_call.locations or ()]
    paths += [edit.path for edit in _edits(tool_call)]
    subject = arguments.get("command") or arguments.get("path") or (paths[0] if paths else "")
    if isinstance(subject, list):
        subject = " ".join(map(str, subject))
    name = arguments.get("name") or arguments.get("tool") or tool_call.kind or "a tool"
    return f"{name}: {subject}" if subject else str(name)


def asked_action(tool_call: ToolCallUpdate, title: str) -> Action:
    """The Action that a tool call is; it counts as risky, since the agent asks about it."""
    high = ActionSecurityRisk.HIGH
    arguments = _table(tool_call.raw_input)
    command = arguments.get("command")
    if tool_call.kind == "execute":
        if isinstance(command, list):
            command = " ".join(map(str, command))
        return CmdRunAction(str(command or title), thought=title, security_risk=high)
    edits = _edits(tool_call)
    if edits:
        first = edits[0]
        return FileEditAction(
            first.path,
            command="str_replace" if first.old_text is not None else "create",
            old_str=first.old_text,
            new_str=first.new_text,
            thought=title,
            security_risk=high,
        )
    json_ready = json.loads(json.dumps(arguments, default=str))
    return MCPAction(title, json_ready, thought=title, security_risk=high)


def edited_paths(tool_call: ToolCallUpdate) -> list[str]:
    """The files that a tool call is about to change."""
    paths = [edit.path for edit in _edits(tool_call)]
    if not paths and tool_call.kind in ("edit", "delete", "move"):
        paths = [location.path for location in tool_call.locations or ()]
    return paths


def answer(options: Sequence[PermissionOption], approved: bool) -> RequestPermissionResponse:
    """The agent's option that says so, once rather than always; cancelled if it offers none."""
    for kind in _APPROVE if approved else _REJECT:
        for option in options:
            if option.kind == kind and not _changes_the_mode(option):
                outcome = AllowedOutcome(outcome="selected", option_id=option.option_id)
                return RequestPermissionResponse(outcome=outcome)
    return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))


def _changes_the_mode(option: PermissionOption) -> bool:
    """Whether an option gives more than what was asked for, such as all later edits."""
    return bool(re.fullmatch(r"auto|acceptEdits|bypassPermissions|yolo", option.option_id))


def _edits(tool_call: ToolCallUpdate) -> list[FileEditToolCallContent]:
    return [part for part in tool_call.content or () if isinstance(part, FileEditToolCallContent)]


def _table(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
