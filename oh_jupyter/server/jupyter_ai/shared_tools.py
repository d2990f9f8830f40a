"""Our tools in jupyter-server-mcp, if it is installed, for Jupyter AI's agents.

It finds ``tool_specs`` by the entry point group ``jupyter_server_mcp.tools``, and loads each
``module:function`` that is listed. Those functions are made of the tools' own descriptions.

That server's port has no authentication, so the tools are offered on the loopback interface only,
and not at all with ``c.OhJupyter.share_tools = False``.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Literal

from oh_jupyter.events.actor import Actor
from oh_jupyter.mcp_tools.results import Result
from oh_jupyter.mcp_tools.toolbox import McpTool, Toolbox
from oh_jupyter.server.state import state_of

PREFIX = "oh_"  # prefix of our names: other packages' tools are in the same list
LOOPBACK = ("localhost", "127.0.0.1", "::1")

_KERNEL = "Id of the kernel to work in, from list_notebooks. Default: a kernel of its own."
_TYPES: dict[str, Any] = {
    "string": str,
    "integer": int,
    "number": float,
    "boolean": bool,
    "object": dict,
    "array": list,
}

logger = logging.getLogger(__name__)


def tool_specs() -> list[str]:
    """Return ``module:function`` of each tool for jupyter-server-mcp to register."""
    server = _server()
    apps = () if server is None else server.extension_manager.extension_apps.get("oh_jupyter", ())
    if not any(app.share_tools for app in apps):
        return []
    host = server.config.get("MCPServer", {}).get("host", LOOPBACK[0])
    if host not in LOOPBACK:
        logger.warning(
            "oh_jupyter shares no tools with the MCP server on %s: it has no login", host
        )
        return []
    tools = _toolbox(None).fixed.values()
    return [f"{__name__}:{PREFIX}{tool.name}" for tool in tools if tool.listed]


def __getattr__(name: str) -> Any:
    """Make the function of a tool that jupyter-server-mcp loads by name."""
    if name.startswith(PREFIX) and _server() is not None:
        tool = _toolbox(None).fixed.get(name.removeprefix(PREFIX))
        if tool is not None:
            return _function(tool)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class _Owner:
    """Caller through that server: it has no users, so it stands for its owner."""

    actor = Actor()
    principal = ""
    scopes: tuple[str, ...] | None = None
    only_notebook = ""

    async def allowed(self, action: str, resource: str) -> bool:
        return True


def _function(tool: McpTool) -> Callable[..., Awaitable[Any]]:
    async def call(kernel_id: str | None = None, **arguments: Any) -> Any:
        present = {name: value for name, value in arguments.items() if value is not None}
        return _content(await _toolbox(kernel_id).call(tool.name, present, _Owner()))

    required = tool.schema.get("required", ())
    parameters = [
        _parameter(name, described, name in required)
        for name, described in sorted(
            tool.schema["properties"].items(), key=lambda item: item[0] not in required
        )
    ]
    parameters.append(_parameter("kernel_id", {"type": "string", "description": _KERNEL}, False))
    call.__name__ = call.__qualname__ = f"{PREFIX}{tool.name}"
    call.__doc__ = tool.description
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return call


def _parameter(name: str, described: dict[str, Any], required: bool) -> inspect.Parameter:
    from pydantic import Field

    kind = described.get("type", "string")
    hint: Any = _TYPES[kind] if isinstance(kind, str) else int | str
    if "enum" in described:
        hint = Literal[tuple(described["enum"])]
    hint = hint if required else hint | None
    return inspect.Parameter(
        name,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        default=inspect.Parameter.empty if required else None,
        annotation=Annotated[hint, Field(description=described.get("description", ""))],
    )


def _content(result: Result) -> Any:
    """Return the SDK's content objects, or raise the error."""
    from oh_jupyter.mcp_sdk.json_rpc import content_objects

    if result.get("isError"):
        texts = [block["text"] for block in result["content"] if block["type"] == "text"]
        raise RuntimeError("\n".join(texts))
    return content_objects(result["content"])


def _server() -> Any:
    from jupyter_server.serverapp import ServerApp

    return ServerApp.instance() if ServerApp.initialized() else None


def _toolbox(kernel_id: str | None) -> Toolbox:
    return state_of(_server().web_app.settings).mcp.toolbox(kernel_id)
