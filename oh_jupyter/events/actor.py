"""Actor: the origin of a request, its name for people, the owner of its turns, and its scopes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, fields
from hashlib import sha256

from oh_jupyter.errors import WireError


@dataclass(frozen=True)
class Actor:
    """Origin of a request, as far as known; false if nothing is known.

    Attributes:
        user: Principal that the server has checked: a user, or the name of a token.
        client: Name that a client gives itself.
        session: Digest of a client's session.
        guest: Name of an agent that a person has started with %oh_agent.
        persona: Id of a persona of Jupyter AI.
        chat: Id of the persona's chat.
        traceparent: Position of the request in a W3C trace.
        tracestate: Vendors' data of that trace.
        baggage: Properties of that trace.
    """

    user: str = ""
    client: str = ""
    session: str = ""
    guest: str = ""
    persona: str = ""
    chat: str = ""
    traceparent: str = ""
    tracestate: str = ""
    baggage: str = ""

    @classmethod
    def from_json(cls, value: object) -> Actor:
        """Return the actor in a JSON object, without what is unknown; raise WireError for others.

        None stands for an unknown origin.
        """
        if value is None:
            return cls()
        if not isinstance(value, Mapping):
            raise WireError(f"'actor' must be a JSON object, not {value!r:.100}", "actor")
        names = {field.name for field in fields(cls)}
        return cls(**{k: v for k, v in value.items() if k in names and isinstance(v, str)})

    def to_json(self) -> dict[str, str]:
        """Return what is known, as JSON-ready data."""
        values = {field.name: str(getattr(self, field.name)) for field in fields(self)}
        return {name: value for name, value in values.items() if value}

    def __bool__(self) -> bool:
        return self != UNKNOWN_ACTOR

    @property
    def name(self) -> str:
        """The agent's name for people, or "" if unknown.

        That is a persona's name, the name by which a person started a guest, or the name that a
        client gives itself. A guest has one name however it reaches us: its MCP client has another.
        """
        if self.persona:
            return re.split("::|/", self.persona)[-1]
        if self.guest:
            return re.sub(r"-[0-9a-f]{8}$", "", self.guest).capitalize()
        return self.client

    @property
    def conversation(self) -> str:
        """Identity of the agent's conversation, or "" if unknown."""
        return self.session or self.chat or self.persona

    @property
    def owner(self) -> str:
        """Digest of the session or guest that owns a turn, or "" if unknown."""
        names = [self.session, self.chat, self.persona, self.guest]
        return sha256("\n".join(names).encode()).hexdigest()[:16] if any(names) else ""


UNKNOWN_ACTOR = Actor()

current_actor: ContextVar[Actor] = ContextVar("current_actor", default=UNKNOWN_ACTOR)
"""Sender of the current request, as recorded in the event log."""


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
