"""Scopes: what a token may allow an agent, and what each Action needs."""

from __future__ import annotations

from collections.abc import Iterable

SCOPES = {
    "read": "read files, cells, events, the store and the last page",
    "edit": "change files, cells and the store",
    "execute": "run commands and cells, and everything else that runs code",
    "browse": "use the browser",
}
"""Scopes with what they allow."""

_SCOPE_OF_ACTION = {
    "read": "read",
    "write": "edit",
    "edit": "edit",
    "browse": "browse",
    "browse_interactive": "browse",
}


def scope_of_action(kind: object) -> str:
    """Return the scope that an Action of a type needs."""
    return _SCOPE_OF_ACTION.get(str(kind), "execute")


def missing_scope(scope: str, scopes: Iterable[str]) -> str:
    """Describe a refusal for lack of a scope."""
    return (
        f"The token allows {', '.join(scopes)}; this needs {scope!r}. The person can make another "
        "token with: oh-jupyter token"
    )
