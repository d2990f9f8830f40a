"""MCP servers behind the runtime, whose tools are called as Actions.

``servers`` parses the configuration, ``connection`` runs one server, ``proxy`` all of them.
The official SDK is imported when the first server starts.
"""

from oh_jupyter.runtime.mcp.connection import McpServer, parse_servers
from oh_jupyter.runtime.mcp.proxy import McpProxy, McpTool

__all__ = ["McpProxy", "McpServer", "McpTool", "parse_servers"]
