"""Our MCP server for this kernel, which agents get, and a first list of its tools."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

from oh_jupyter._version import __version__
from oh_jupyter.errors import AgentError

__all__ = ["ToolServer", "list_tools"]

TIMEOUT_SECONDS = 30.0


@dataclass(frozen=True)
class ToolServer:
    """Address of our MCP server for this kernel.

    Attributes:
        url: Address of the kernel below the extension, without ``/mcp``.
        token: Token of the Jupyter server, or "".
    """

    url: str
    token: str = field(repr=False)

    @property
    def headers(self) -> dict[str, str]:
        """HTTP headers of a request to it."""
        return {"Authorization": f"token {self.token}"} if self.token else {}


async def list_tools(server: ToolServer) -> list[dict[str, Any]]:
    """Our tools, as an agent's client lists them; an AgentError if they cannot be had.

    An agent whose tools cannot be had goes on without them and says nothing, and one whose
    client connects after the first prompt would begin without them.
    """
    from oh_jupyter.mcp_sdk.client import Session
    from oh_jupyter.mcp_sdk.streams import http_streams

    async def ignore() -> None:
        """Nobody keeps the list."""

    try:
        async with (
            asyncio.timeout(TIMEOUT_SECONDS),
            http_streams(f"{server.url}/mcp", server.headers) as (reading, writing),
            Session(
                reading, writing, name="oh_jupyter", version=__version__, tools_changed=ignore
            ) as session,
        ):
            return await session.tools()
    except TimeoutError:
        reason = f"no answer within {TIMEOUT_SECONDS:g} s"
    except Exception as problem:
        while isinstance(problem, ExceptionGroup):
            problem = problem.exceptions[0]
        reason = f"{type(problem).__name__}: {problem}"
    raise AgentError(f"The tools of this kernel at {server.url}/mcp cannot be had: {reason}")
