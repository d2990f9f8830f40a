"""Questions of an agent to the person: permission requests as Actions, and forms."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, get_args

from acp import RequestError
from acp.schema import (
    AcceptElicitationResponse,
    AllowedOutcome,
    CancelElicitationResponse,
    CreateElicitationResponse,
    DeclineElicitationResponse,
    DeniedOutcome,
    ElicitationSchema,
    FileEditToolCallContent,
    PermissionOption,
    RequestPermissionResponse,
    ToolCallUpdate,
)

from oh_jupyter.events import Action, ActionSecurityRisk, CmdRunAction, FileEditAction, MCPAction
from oh_jupyter.runtime.confirmation import Decision
from oh_jupyter.runtime.form import Choice, FieldType, FormField
from oh_jupyter.text import visible

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


MAX_FIELDS = 50
MAX_CHOICES = 500

_LIMITS = {"string": ("minLength", "maxLength"), "array": ("minItems", "maxItems")}
"""Names of the limits in the schema of a type; those of numbers are minimum and maximum."""


def form_of(schema: ElicitationSchema) -> tuple[FormField, ...]:
    """Return the fields of an agent's schema; refuse types that ACP does not define."""
    properties = schema.properties or {}
    if len(properties) > MAX_FIELDS:
        raise _invalid(f"a form has at most {MAX_FIELDS} fields")
    required = schema.required or ()
    return tuple(
        _field(name, each.model_dump(by_alias=True, exclude_none=True), name in required)
        for name, each in properties.items()
    )


def _field(name: str, schema: Mapping[str, Any], is_required: bool) -> FormField:
    type: Any = schema.get("type")
    if type not in get_args(FieldType):
        raise _invalid(f"the field {name!r} has an unknown type {type!r}")
    lowest, highest = _LIMITS.get(type, ("minimum", "maximum"))
    choices = _choices(schema["items"] if type == "array" else schema)
    if len(choices) > MAX_CHOICES:
        raise _invalid(f"the field {name!r} has more than {MAX_CHOICES} choices")
    if type == "array" and not choices:
        raise _invalid(f"the field {name!r} has nothing to choose from")
    return FormField(
        name,
        visible(schema.get("title") or name),
        type,
        visible(schema.get("description") or ""),
        choices,
        is_required,
        schema.get("default"),
        schema.get(lowest),
        schema.get(highest),
    )


def _choices(schema: Mapping[str, Any]) -> tuple[Choice, ...]:
    titled = schema.get("oneOf") or schema.get("anyOf") or ()
    return (
        *(Choice(each["const"], visible(each["title"])) for each in titled),
        *(Choice(each, each) for each in schema.get("enum") or ()),
    )


def elicitation_response(decision: Decision | None) -> CreateElicitationResponse:
    """Return an agent's answer from a person's decision; None if there was none."""
    if decision is None:
        return CancelElicitationResponse(action="cancel")
    if not decision.approved:
        return DeclineElicitationResponse(action="decline")
    return AcceptElicitationResponse(action="accept", content=dict(decision.values))


def _invalid(reason: str) -> RequestError:
    return RequestError.invalid_params({"details": reason})
