"""All tools, in their fixed order."""

from __future__ import annotations

from oh_jupyter.mcp_tools.action_tools import action_tools
from oh_jupyter.mcp_tools.app_tools import app_tools
from oh_jupyter.mcp_tools.attached_tools import attached_tools
from oh_jupyter.mcp_tools.cell_runs import run_tool
from oh_jupyter.mcp_tools.cell_tools import cell_tools
from oh_jupyter.mcp_tools.history_tools import history_tools
from oh_jupyter.mcp_tools.kernel import Kernel
from oh_jupyter.mcp_tools.kernel_tools import kernel_tools
from oh_jupyter.mcp_tools.notebooks import Notebooks
from oh_jupyter.mcp_tools.store_tools import store_tool
from oh_jupyter.mcp_tools.toolbox import McpTool


def all_tools(notebooks: Notebooks, kernel: Kernel) -> list[McpTool]:
    """Return the tools of an agent whose kernel, and its notebook, are the default."""
    return [
        *action_tools(kernel),
        *history_tools(kernel),
        *cell_tools(notebooks, kernel),
        run_tool(notebooks, kernel),
        *kernel_tools(notebooks, kernel),
        store_tool(kernel),
        *attached_tools(notebooks, kernel),
        *app_tools(notebooks, kernel),
    ]
