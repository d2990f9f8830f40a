"""Titles of Actions, for lists that people read."""

from __future__ import annotations

import os

from oh_jupyter.events.action import (
    Action,
    BrowseInteractiveAction,
    BrowseURLAction,
    CmdRunAction,
    FileEditAction,
    FileReadAction,
    FileWriteAction,
    IPythonRunCellAction,
)
from oh_jupyter.text import first_line, shown_path


def title(action: Action, root: str = "", *, purpose: bool = False) -> str:
    """Return what an Action does, in one line of any length.

    Args:
        action: Any Action.
        root: The workspace, relative to which paths are named; "" for none.
        purpose: Prefer the first line of the agent's reason. It is a claim, so lists of what was
            done go without it.
    """
    if purpose and (thought := getattr(action, "thought", "").strip()):
        return str(thought).splitlines()[0]
    return first_line(_work(action, root))


def _work(action: Action, root: str) -> str:
    match action:
        case CmdRunAction():
            return action.title or action.command
        case IPythonRunCellAction():
            return _without_preparation(action.code)
        case BrowseInteractiveAction():
            return action.browser_actions
        case BrowseURLAction():
            return f"open {action.url}"
        case FileReadAction():
            return f"read {shown_path(action.path, root)}"
        case FileWriteAction():
            return f"write {shown_path(action.path, root)}"
        case FileEditAction(command="notebook_edit"):
            return f"edit cells of {os.path.basename(action.path)}"
        case FileEditAction():
            return f"{action.command or 'write'} {shown_path(action.path, root)}"
    return action.message


def _without_preparation(code: str) -> str:
    """Return the lines of a cell other than comments and imports; all if there are no others."""
    lines = [line.strip() for line in code.splitlines() if line.strip()]
    telling = [line for line in lines if not line.startswith(("#", "import ", "from "))]
    return "\n".join(telling or lines)
