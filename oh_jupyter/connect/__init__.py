"""``oh-jupyter connect``: our MCP server in the configuration files of agents' clients."""
