"""Actions that start turns."""

from __future__ import annotations

from oh_jupyter.events import (
    Action,
    CmdRunAction,
    FileEditAction,
    FileWriteAction,
    IPythonRunCellAction,
    MCPAction,
)


def may_change_files(action: Action) -> bool:
    """Return whether an Action may change files, so that it belongs to a turn."""
    if isinstance(action, FileEditAction):
        return action.command != "view" and not action.dry_run
    return isinstance(action, CmdRunAction | FileWriteAction | IPythonRunCellAction | MCPAction)
