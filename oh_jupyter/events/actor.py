"""Names, sessions and digests of the agents that request Actions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextvars import ContextVar
from hashlib import sha256
from typing import Any

current_actor: ContextVar[Mapping[str, str] | None] = ContextVar("current_actor", default=None)
"""Sender of the current request, as recorded in the event log."""


def agent_name(actor: Mapping[str, Any] | None) -> str:
    """Return an agent's name for people, or "" if unknown.

    That is a persona's name, the name by which a person started a guest, or the name that a client
    gives itself. A guest has one name however it reaches us: its MCP client has another one.
    """
    known = actor or {}
    if persona := str(known.get("persona") or ""):
        return re.split("::|/", persona)[-1]
    if guest := str(known.get("guest") or ""):
        return re.sub(r"-[0-9a-f]{8}$", "", guest).capitalize()
    return str(known.get("client") or "")


def session_of(actor: Mapping[str, Any] | None) -> str:
    """Return what identifies an agent's conversation, or "" if unknown."""
    known = actor or {}
    return str(known.get("session") or known.get("chat") or known.get("persona") or "")


def turn_owner(actor: Mapping[str, Any] | None) -> str:
    """Return a digest of the session or guest that owns a turn, or "" if unknown."""
    known = actor or {}
    names = [str(known.get(name) or "") for name in ("session", "chat", "persona", "guest")]
    return sha256("\n".join(names).encode()).hexdigest()[:16] if any(names) else ""
