"""Introduction of an agent to this kernel, and the server that has its tools."""

from __future__ import annotations

import os
from pathlib import PurePath
from types import FunctionType, ModuleType
from typing import Any

from IPython.core.interactiveshell import InteractiveShell

from oh_jupyter.agents import ToolServer
from oh_jupyter.server_notes import server_notes

MAX_NAMES = 50


def agent_context(shell: InteractiveShell) -> str:
    """Return the notebook's name and its variables' names; an agent gets more with tools."""
    notebook = PurePath(os.environ.get("JPY_SESSION_NAME", "")).name
    where = f"the notebook {notebook}" if notebook else "a notebook"
    hidden: Any = shell.user_ns_hidden
    names = [
        name
        for name, value in shell.user_ns.items()
        if not name.startswith("_")
        and name not in hidden
        and not isinstance(value, ModuleType | FunctionType | type)
    ]
    more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
    variables = ", ".join(names[:MAX_NAMES]) + more if names else "none yet"
    return (
        f"You are a guest in the running kernel of {where}, and share it with a person. The tools "
        "of the MCP server oh work in it: run_ipython runs a cell on the person's variables, run a "
        f"command, and edits of files can be undone. Variables so far: {variables}."
    )


TIMEOUT_SECONDS = 5.0


def find_tool_server(kernel_id: str) -> ToolServer | None:
    """Return this kernel's address on a server of this user, or None; its parent comes first."""
    import requests

    parent = f"jpserver-{os.environ.get('JPY_PARENT_PID', '')}.json"
    for note in sorted(server_notes(), key=lambda note: note.file != parent):
        address = f"{note.url}/oh_jupyter/kernels/{kernel_id}"
        tools = ToolServer(address, note.token)
        try:
            response = requests.get(
                f"{address}/alive", headers=tools.headers, timeout=TIMEOUT_SECONDS
            )
        except requests.RequestException:
            continue
        if response.ok:
            return tools
    return None
