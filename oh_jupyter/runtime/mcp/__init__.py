"""MCP servers that run behind the runtime: their tools are called as Actions.

``servers`` reads what is to run, ``connection`` runs one of them, ``proxy`` all.
The official SDK is imported when the first one is started.
"""

from oh_jupyter.runtime.mcp.proxy import McpProxy, McpTool
from oh_jupyter.runtime.mcp.servers import McpServer, parse_servers

__all__ = ["McpProxy", "McpServer", "McpTool", "parse_servers"]
