"""Permission requests of agents, as Actions for the confirmation policy."""

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
    """Return whether a tool call is for our MCP server, as Claude, Codex and Gemini report it."""
    title, arguments = tool_call.title or "", tool_call.raw_input
    if title.startswith(f"mcp__{server}__") or f"({server} MCP Server)" in title:
        return True
    table = _table(arguments)
    return server in (table.get("server_name"), table.get("server"))


def title_of(tool_call: ToolCallUpdate) -> str:
    """Return a title for a tool call without one."""
    arguments = _table(tool_call.raw_input)
    paths = [location.path for location in tool_call.locations or ()]
    paths += [edit.path for edit in _edits(tool_call)]
    subject = arguments.get("command") or arguments.get("path") or (paths[0] if paths else "")
    if isinstance(subject, list):
        subject = " ".join(map(str, subject))
    name = arguments.get("name") or arguments.get("tool") or tool_call.kind or "a tool"
    return f"{name}: {subject}" if subject else str(name)


def action_of(tool_call: ToolCallUpdate, title: str) -> Action:
    """Return a tool call as an Action; it counts as risky, since the agent asks about it."""
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
        if first.old_text is None:
            return FileEditAction(
                first.path,
                command="create",
                file_text=first.new_text,
                thought=title,
                security_risk=high,
            )
        return FileEditAction(
            first.path,
            command="str_replace",
            old_str=first.old_text,
            new_str=first.new_text,
            thought=title,
            security_risk=high,
        )
    json_ready = json.loads(json.dumps(arguments, default=str))
    return MCPAction(title, json_ready, thought=title, security_risk=high)


def edited_paths(tool_call: ToolCallUpdate) -> list[str]:
    """Return the files that a tool call will change."""
    paths = [edit.path for edit in _edits(tool_call)]
    if not paths and tool_call.kind in ("edit", "delete", "move"):
        paths = [location.path for location in tool_call.locations or ()]
    return paths


def permission_response(
    options: Sequence[PermissionOption], approved: bool
) -> RequestPermissionResponse:
    """Return the agent's one-time option for a decision, or "cancelled" if it offers none."""
    for kind in _APPROVE if approved else _REJECT:
        for option in options:
            if option.kind == kind and not _changes_the_mode(option):
                outcome = AllowedOutcome(outcome="selected", option_id=option.option_id)
                return RequestPermissionResponse(outcome=outcome)
    return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))


def _changes_the_mode(option: PermissionOption) -> bool:
    """Return whether an option grants more than was asked, such as all later edits."""
    return bool(re.fullmatch(r"auto|acceptEdits|bypassPermissions|yolo", option.option_id))


def _edits(tool_call: ToolCallUpdate) -> list[FileEditToolCallContent]:
    return [part for part in tool_call.content or () if isinstance(part, FileEditToolCallContent)]


def _table(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
