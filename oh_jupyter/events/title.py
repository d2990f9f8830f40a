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
from oh_jupyter.text import first_line


def title(action: Action, *, purpose: bool = False) -> str:
    """Return what an Action does, in one line of any length.

    Args:
        action: Any Action.
        purpose: Prefer the first line of the agent's reason. It is a claim, so lists of what was
            done go without it.
    """
    if purpose and (thought := getattr(action, "thought", "").strip()):
        return str(thought).splitlines()[0]
    return first_line(_work(action))


def _work(action: Action) -> str:
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
            return f"read {action.path}"
        case FileWriteAction():
            return f"write {action.path}"
        case FileEditAction(command="notebook_edit"):
            return f"edit cells of {os.path.basename(action.path)}"
        case FileEditAction():
            return f"{action.command or 'write'} {action.path}"
    return action.message


def _without_preparation(code: str) -> str:
    """Return the lines of a cell other than comments and imports; all if there are no others."""
    lines = [line.strip() for line in code.splitlines() if line.strip()]
    telling = [line for line in lines if not line.startswith(("#", "import ", "from "))]
    return "\n".join(telling or lines)
