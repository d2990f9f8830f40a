"""Names of turns: the session that an Action belongs to, the turn's owner, and its title."""

from __future__ import annotations

import os
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from oh_jupyter.events import (
    Action,
    CmdRunAction,
    FileEditAction,
    FileWriteAction,
    IPythonRunCellAction,
)


def session_of(action: Action) -> str:
    """Return what identifies the conversation of an Action's client, or "" if unknown."""
    actor = action.actor or {}
    return str(actor.get("session") or actor.get("chat") or actor.get("persona") or "")


def turn_owner(actor: Mapping[str, Any] | None) -> str:
    """Return a digest of the session or guest that owns a turn, or "" if unknown."""
    known = actor or {}
    names = [str(known.get(name) or "") for name in ("session", "chat", "persona", "guest")]
    return sha256("\n".join(names).encode()).hexdigest()[:16] if any(names) else ""


def title_of(action: Action) -> str:
    """Return a title for the turn that an Action starts: its purpose, or what it does."""
    if thought := getattr(action, "thought", "").strip():
        return str(thought).splitlines()[0]
    if isinstance(action, IPythonRunCellAction):
        lines = [line.strip() for line in action.code.splitlines() if line.strip()]
        telling = [line for line in lines if not line.startswith(("#", "import ", "from "))]
        return next(iter(telling or lines), "")
    if isinstance(action, CmdRunAction):
        return action.command.strip()
    if isinstance(action, FileEditAction) and action.command == "notebook_edit":
        return f"edit cells of {os.path.basename(action.path)}"
    if isinstance(action, FileEditAction | FileWriteAction):
        return f"{getattr(action, 'command', None) or 'write'} {action.path}"
    return action.message
