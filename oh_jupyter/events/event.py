"""Base class of Actions and Observations: an entry of a session's log."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Literal, TypeVar

EventSource = Literal["agent", "user", "environment"]
"""Cause of an event: a program, the user, or the runtime itself."""


@dataclass(kw_only=True, repr=False, eq=False)
class Event:
    """Entry of a session's log; base class of Actions and Observations.

    The fields are the top-level keys of an event's JSON in OpenHands.

    Attributes:
        id: Position in the log, counted from 0; None until it is recorded.
        timestamp: ISO 8601 time of recording; None until it is recorded.
        source: Cause of the event; None until it is recorded.
        cause: For an Observation, the id of its Action.
        tool_call_metadata: Passed through for clients that attach it.
        llm_metrics: Passed through for clients that attach it.
    """

    kind: ClassVar[str] = ""
    says: ClassVar[str] = ""  # template of ``message``

    id: int | None = field(default=None, repr=False, compare=False)
    timestamp: str | None = field(default=None, repr=False, compare=False)
    source: EventSource | None = field(default=None, repr=False, compare=False)
    cause: int | None = field(default=None, repr=False, compare=False)
    tool_call_metadata: dict[str, Any] | None = field(default=None, repr=False, compare=False)
    llm_metrics: dict[str, Any] | None = field(default=None, repr=False, compare=False)

    @property
    def message(self) -> str:
        """Description of the event for people, in one sentence."""
        return self.says.format(self=self)

    # Same behaviour as generated methods, whose generation would take a third of the import time.

    def __repr__(self) -> str:
        values = (f"{f.name}={getattr(self, f.name)!r}" for f in fields(self) if f.repr)
        return f"{type(self).__qualname__}({', '.join(values)})"

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        compared = (f.name for f in fields(self) if f.compare)
        return all(getattr(self, name) == getattr(other, name) for name in compared)

    __hash__ = None  # type: ignore[assignment]


_E = TypeVar("_E", bound=Event)


def register(cls: type[_E], registry: dict[str, type[_E]]) -> None:
    """Register a class under its ``kind``; raise TypeError if another class has that kind."""
    kind = cls.__dict__.get("kind")
    if kind is None:
        return
    other = registry.setdefault(kind, cls)
    if other.__qualname__ != cls.__qualname__:
        raise TypeError(f"{kind!r} is the kind of {other.__name__}; give {cls.__name__} another.")
    registry[kind] = cls
