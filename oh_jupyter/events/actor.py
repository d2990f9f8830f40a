"""Names of the agents that request Actions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any


def agent_name(actor: Mapping[str, Any] | None) -> str:
    """Return an agent's name for people, or "" if unknown.

    That is a persona's name, the name that a client gives itself, or that of the command that
    started the agent.
    """
    known = actor or {}
    if persona := str(known.get("persona") or ""):
        return re.split("::|/", persona)[-1]
    if client := str(known.get("client") or ""):
        return client
    return re.sub(r"-[0-9a-f]{8}$", "", str(known.get("guest") or "")).capitalize()
