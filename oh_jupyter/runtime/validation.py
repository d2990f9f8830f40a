"""Whether an Action can be executed, and its fields in the form that their types ask for."""

from __future__ import annotations

from functools import cache
from typing import Any

from oh_jupyter.errors import NotRunnableError
from oh_jupyter.events import ACTIONS, Action, Event
from oh_jupyter.events.fields import check_field, check_seconds
from oh_jupyter.schema import field_types

__all__ = ["validate"]


def validate(action: Action) -> None:
    """Check an Action, and bring its fields into their types' form; NotRunnableError, WireError."""
    if not action.runnable:
        runnable = ", ".join(sorted(kind for kind, cls in ACTIONS.items() if cls.runnable))
        raise NotRunnableError(
            f"An action of type {action.kind!r} cannot be executed. Types that can: {runnable}",
            "action",
        )
    kind: Any = type(action)
    for name, hint in _own_fields(kind).items():
        setattr(action, name, check_field(getattr(action, name), hint, f"args.{name}"))
    if action.timeout is not None:
        action.timeout = check_seconds(action.timeout, "timeout")


@cache
def _own_fields(kind: Any) -> dict[str, Any]:
    """Type hints of the fields that belong neither to the log nor to all Actions."""
    common = {*field_types(Event), "timeout"}
    return {name: hint for name, hint in field_types(kind).items() if name not in common}
