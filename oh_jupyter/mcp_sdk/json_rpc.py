"""Messages of MCP as lines of JSON."""

from __future__ import annotations

from typing import Any

from mcp import types
from mcp.shared.message import SessionMessage

from oh_jupyter.mcp_sdk import major

if major() == 1:
    from mcp.types import JSONRPCMessage

    def _parse(line: bytes) -> Any:
        return JSONRPCMessage.model_validate_json(line)
else:
    from mcp_types import jsonrpc_message_adapter

    def _parse(line: bytes) -> Any:
        return jsonrpc_message_adapter.validate_json(line, by_name=False)


def decode(line: bytes) -> Any:
    """Parse a line of JSON as a message for a session; return the error of a malformed one."""
    try:
        return SessionMessage(_parse(line))
    except ValueError as error:
        return error


def encode(message: Any) -> bytes:
    """Serialize a message of a session as one line of JSON."""
    line: str = message.message.model_dump_json(by_alias=True, exclude_unset=True)
    return line.encode() + b"\n"


def content_objects(blocks: list[dict[str, Any]]) -> list[Any]:
    """Return the SDK's objects for texts, pictures and resources."""
    kinds: dict[str, Any] = {
        "text": types.TextContent,
        "image": types.ImageContent,
        "resource": types.EmbeddedResource,
    }
    return [kinds[block["type"]].model_validate(block) for block in blocks]
