"""Components that many operations share: errors, parameters, credentials and tags."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from oh_jupyter.schema import Schema
from oh_jupyter.server.handlers.base import SESSION_KEY_HEADER
from oh_jupyter.server.handlers.contract import TEXT, Error, component, whole
from oh_jupyter.server.handlers.openapi.schemas import first_line, optional_schema
from oh_jupyter.server.result_store import ID_HEADER, ID_PATTERN


class Response(NamedTuple):
    """A component that describes errors."""

    name: str
    description: str


RESPONSES = {
    400: Response(
        "BadRequest",
        "The request is not possible, such as an unknown type of Action or a relative path.",
    ),
    403: Response(
        "Forbidden", "Credentials are missing or wrong, or the authorizer does not allow it."
    ),
    404: Response("NotFound", "The kernel, event, request or file does not exist."),
    409: Response(
        "Conflict",
        "The checkpoint does not exist, none can be created, or a cell is running, so that its "
        "variables cannot be restored.",
    ),
    410: Response("Cancelled", "The action was cancelled."),
    413: Response(
        "TooLarge", "The body is larger than `max_body_mb`, or the upload than `max_upload_mb`."
    ),
    422: Response("Invalid", "The body or a parameter is invalid; `field` names it."),
    424: Response(
        "NotLoaded", "oh_jupyter is not loaded in the kernel, or not installed where it runs."
    ),
    429: Response(
        "TooMany",
        "More actions wait than `max_queued_actions`, or more requests than `rate_limit`.",
    ),
    500: Response(
        "InternalError", "The kernel cannot be started, or an unexpected error occurred."
    ),
    502: Response("BadGateway", "The gateway that runs the kernels cannot be reached."),
    503: Response(
        "KernelDied", "The kernel died or was restarted before it replied; its state is lost."
    ),
    504: Response("KernelSilent", "The kernel does not reply."),
    507: Response(
        "DiskFull", "The disk or the quota has no room; nothing was changed. Retry when there is."
    ),
}
"""Components that describe errors, by status."""


class Tag(NamedTuple):
    """A group of operations: those whose path starts with one of some words."""

    description: str
    words: str


TAGS = {
    "server": Tag("The server itself.", ""),
    "health": Tag("State of server and kernel.", "alive server_info"),
    "actions": Tag("Actions of agents.", "execute_action skills"),
    "files": Tag("Files of the kernel's machine.", "list_files upload_file download_files view"),
    "events": Tag("The event log, and Actions that wait for a person.", "events confirmations"),
    "checkpoints": Tag("Checkpoints of the workspace.", "checkpoints decisions rewind"),
    "store": Tag("The kernel's file store.", "store"),
    "browser": Tag("The browser's last page.", "browser"),
    "mcp": Tag("The same tools over the Model Context Protocol.", "mcp update_mcp_server"),
    "vscode": Tag("VS Code on the kernel's machine.", "vscode"),
    "e2b": Tag("Cells and contexts for clients of E2B's code interpreter.", "e2b"),
}

_PARAMETERS = {
    "kernel_id": "Id of a kernel, from `/api/kernels`.",
    "view_key": "The key in the file that the setting `server_url_file` names.",
    "key": f"The request's id, as sent in `{ID_HEADER}`.",
    "event_id": "Position of an event in the log.",
    "path": "Path in the store; slashes in it need not be quoted. An empty one, or one that ends "
    "in a slash, is a directory.",
    "kind": "The page as it was, or with its interactive elements marked.",
    "context_id": "A context's id, which is that of its kernel.",
    "sandbox_id": "A sandbox's id, as `POST /e2b/sandboxes` returned it.",
}

_CREDENTIALS = {
    "token": ("header", "Authorization", "`token `, followed by the Jupyter server's token."),
    "tokenInQuery": ("query", "token", "The Jupyter server's token."),
    "sessionKey": (
        "header",
        SESSION_KEY_HEADER,
        "The value of `SESSION_API_KEY` in the server's environment, if it is set.",
    ),
    "cookie": (
        "header",
        "Cookie",
        "A browser's login. Requests other than GET also need the header `X-XSRFToken`.",
    ),
}


def tag_of(path: str) -> str:
    """Return the name of the group of a path."""
    word = path.split("/")[1]
    return next(name for name, tag in TAGS.items() if word in tag.words.split())


def parameter(name: str, pattern: str) -> Schema:
    """Return a parameter of a path, which a route matches by a pattern."""
    schema = _schema_of_pattern(ID_PATTERN if name == "key" else pattern)
    return {
        "name": name,
        "in": "path",
        "required": True,
        "description": _PARAMETERS[name],
        "schema": schema,
    }


def _schema_of_pattern(pattern: str) -> Schema:
    if digits := re.fullmatch(r"\\d\{1,(\d+)\}", pattern):
        return {"type": "integer", "minimum": 0, "maximum": 10 ** int(digits[1]) - 1}
    if re.fullmatch(r"\w+(\|\w+)+", pattern):
        return {**TEXT, "enum": pattern.split("|")}
    return TEXT if pattern == ".*" else {**TEXT, "pattern": whole(pattern)}


def security_schemes() -> dict[str, Schema]:
    """Return the credentials that requests can have, by name."""
    return {
        name: {"type": "apiKey", "in": sent_in, "name": key, "description": description}
        for name, (sent_in, key, description) in _CREDENTIALS.items()
    }


def responses() -> dict[str, Any]:
    """Return the components that describe errors, by name."""
    content = {"application/json": {"schema": component("Error")}}
    described = {
        name: {"description": description, "content": content}
        for name, description in RESPONSES.values()
    }
    delay = {"description": "Suggested delay of a retry in seconds.", "schema": {"type": "integer"}}
    described["TooMany"]["headers"] = {"Retry-After": delay}
    described["McpRefusal"] = {
        "description": "The transport or the server rejected the request.",
        "content": {
            "application/json": {"schema": {"anyOf": [component("Error"), component("JsonRpc")]}},
            "text/plain": {"schema": TEXT},
        },
    }
    return described


def shared_schemas() -> dict[str, Schema]:
    """Return the schemas of errors and of JSON-RPC, by name."""
    error = {**optional_schema(Error), "description": first_line(Error)}
    del error["additionalProperties"]
    return {
        "Error": error,
        "JsonRpc": {
            "description": "One or several JSON-RPC 2.0 messages of the Model Context Protocol.",
            "type": ["object", "array"],
        },
    }
