"""Introduction of an agent to this kernel."""

from __future__ import annotations

import os
from pathlib import PurePath
from types import FunctionType, ModuleType
from typing import Any

from IPython.core.interactiveshell import InteractiveShell

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
