"""The client of a request to our server, with both major versions: its name, and its person."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oh_jupyter.mcp_sdk import major
from oh_jupyter.mcp_sdk.offered import APP_TYPE, APPS, Elicit, form_content

if major() == 1:
    from mcp.shared.exceptions import McpError as ProtocolError
else:
    from mcp.shared.exceptions import MCPError as ProtocolError


def scope_of(request: Any) -> Mapping[str, Any]:
    """Return the ASGI scope of a request, which is empty on a stream."""
    scope: Mapping[str, Any] = {} if request is None else request.scope
    return scope


def client_name(session: Any) -> str:
    """Return a client's name for people, or "" if it gave none."""
    params = session.client_params
    if params is None:
        return ""
    info = params.clientInfo if major() == 1 else params.client_info
    return str(getattr(info, "title", None) or info.name)


def has_forms(session: Any) -> bool:
    """Return whether a client declares that it shows its person forms."""
    if major() == 1:
        params = session.client_params
        capabilities = None if params is None else params.capabilities
    else:
        capabilities = session.client_capabilities
    modes = None if capabilities is None else capabilities.elicitation
    if modes is None:
        return False
    # Naming no mode means forms, as before there were others.
    return getattr(modes, "form", None) is not None or getattr(modes, "url", None) is None


def shows_apps(session: Any) -> bool:
    """Return whether a client declares that it shows MCP Apps."""
    if major() == 1:
        params = session.client_params
        capabilities = None if params is None else params.capabilities
    else:
        capabilities = session.client_capabilities
    # Major 1 has no such field, but keeps it.
    extensions = getattr(capabilities, "extensions", None) or {}
    declared = extensions.get(APPS)
    return declared is not None and APP_TYPE in declared.get("mimeTypes", [APP_TYPE])


def elicit_during(session: Any, request_id: Any) -> Elicit | None:
    """Return how to ask a client's person during a request, or None if the client cannot."""
    if not has_forms(session):
        return None

    async def elicit(message: str, schema: Mapping[str, Any]) -> dict[str, Any] | None:
        try:
            response = await session.elicit(message, dict(schema), request_id)
        except ProtocolError:  # the client failed, or is gone
            return None
        return form_content(response.action, response.content)

    return elicit
