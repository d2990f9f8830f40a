"""Whether the client of a session sees the agent skills as tools."""

from __future__ import annotations

from contextvars import ContextVar

__all__ = ["skills_shown"]

skills_shown: ContextVar[bool] = ContextVar("skills_shown", default=False)
"""Set where a request arrives: a session runs in the context of the request that began it."""
