"""Introduction of an agent to this kernel."""

from __future__ import annotations

import os
from pathlib import PurePath
from types import FunctionType, ModuleType
from typing import Any

from IPython.core.interactiveshell import InteractiveShell

from oh_jupyter.kernel.own_server import notebook_file
from oh_jupyter.skills.catalog import skill_folders

MAX_NAMES = 50
MAX_SKILLS = 20


def agent_context(shell: InteractiveShell, workspace: str) -> str:
    """Return names of notebook, variables and skill folders; an agent gets more with tools."""
    notebook = PurePath(notebook_file(shell.user_ns)).name
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
        f"{_skills(workspace)}"
    )


def _skills(workspace: str) -> str:
    """Return a paragraph about the skill folders of the workspace, or ""."""
    folders = skill_folders(workspace)[:MAX_SKILLS]
    if not folders:
        return ""
    lines = [
        f"- {each.name}: {each.description} ({os.path.relpath(each.path, workspace)})"
        for each in folders
    ]
    title = "Skills of this workspace; read the file of one before you use it:"
    return "\n\n" + "\n".join([title, *lines])
