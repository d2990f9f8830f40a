"""Actions that start turns, and the titles of these turns."""

from __future__ import annotations

import os

from oh_jupyter.events import (
    Action,
    CmdRunAction,
    FileEditAction,
    FileWriteAction,
    IPythonRunCellAction,
    MCPAction,
)


def title_of(action: Action) -> str:
    """Return a title for the turn that an Action starts: its purpose, or what it does."""
    if thought := getattr(action, "thought", "").strip():
        return str(thought).splitlines()[0]
    if isinstance(action, IPythonRunCellAction):
        lines = [line.strip() for line in action.code.splitlines() if line.strip()]
        telling = [line for line in lines if not line.startswith(("#", "import ", "from "))]
        return next(iter(telling or lines), "")
    if isinstance(action, CmdRunAction):
        return (action.title or action.command).strip()
    if isinstance(action, FileEditAction) and action.command == "notebook_edit":
        return f"edit cells of {os.path.basename(action.path)}"
    if isinstance(action, FileEditAction | FileWriteAction):
        return f"{getattr(action, 'command', None) or 'write'} {action.path}"
    return action.message


def may_change_files(action: Action) -> bool:
    """Return whether an Action may change files, so that it belongs to a turn."""
    if isinstance(action, FileEditAction):
        return action.command != "view" and not action.dry_run
    return isinstance(action, CmdRunAction | FileWriteAction | IPythonRunCellAction | MCPAction)
