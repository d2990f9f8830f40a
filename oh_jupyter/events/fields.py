"""Dataclass fields checked against their annotations, for what arrives as JSON.

Written here rather than taken from a validation library: the protocol wants its own
leniency field by field, and a kernel extension must not cost an import of 20 MB.
"""

from __future__ import annotations

from dataclasses import MISSING, fields
from enum import Enum
from functools import cache
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from oh_jupyter.errors import WireError
from oh_jupyter.events.action import Action, ActionSecurityRisk
from oh_jupyter.events.event import Event

__all__ = ["build", "check_field", "field_types", "json_name"]


@cache
def field_types(cls: Any) -> dict[str, Any]:
    """Annotations of a dataclass, resolved.

    Args:
        cls: The dataclass.

    Returns:
        Type by field name.
    """
    hints = get_type_hints(cls)
    return {f.name: hints[f.name] for f in fields(cls)}


def build(cls: type, values: dict[str, Any], where: str, *, ignore_unknown: bool) -> object:
    """Make a dataclass of JSON values.

    Args:
        cls: The dataclass; fields that belong to the log around an event are not looked at.
        values: Value by field name.
        where: What to put before a field's name in messages, such as ``args``.
        ignore_unknown: Drop keys that are no fields instead of refusing them.

    Returns:
        The object.

    Raises:
        WireError: A field is missing, unknown or of the wrong type; ``field`` names it.
    """
    envelope = {*field_types(Event), *field_types(Action)}
    hints = {name: hint for name, hint in field_types(cls).items() if name not in envelope}
    kind = getattr(cls, "kind", "metadata")
    for name in values:
        if name not in hints and not ignore_unknown:
            known = ", ".join(name for name in hints if name != "content" or where == "args")
            raise WireError(
                f"'{where}.{name}' is not an argument of {kind!r}. It has: {known}",
                f"{where}.{name}",
            )
    required = [f.name for f in fields(cls) if f.name in hints and _is_required(f)]
    for name in required:
        if name not in values:
            raise WireError(f"'{where}.{name}' is required for {kind!r}", f"{where}.{name}")
    checked = {
        name: check_field(value, hints[name], f"{where}.{name}")
        for name, value in values.items()
        if name in hints
    }
    return cls(**checked)


def _is_required(f: Any) -> bool:
    return f.default is MISSING and f.default_factory is MISSING


def check_field(value: Any, hint: Any, name: str) -> Any:
    """Check one value against an annotation.

    Args:
        value: What arrived.
        hint: The annotation.
        name: The field, for messages.

    Returns:
        The value as the field wants it.

    Raises:
        WireError: It does not fit; ``field`` is the name.
    """
    if hint is ActionSecurityRisk:
        return _security_risk(value)
    if isinstance(hint, type) and issubclass(hint, Enum):
        try:
            return hint(value)
        except ValueError:
            choices = ", ".join(repr(member.value) for member in hint)
            raise WireError(f"'{name}' must be one of {choices}, not {value!r}", name) from None
    if get_origin(hint) is Literal:
        if value not in get_args(hint):
            choices = ", ".join(map(repr, get_args(hint)))
            raise WireError(f"'{name}' must be one of {choices}, not {value!r}", name)
        return value
    if not _fits(value, hint):
        raise WireError(f"'{name}' must be {_hint_name(hint)}, not {json_name(value)}", name)
    return value


def _security_risk(value: Any) -> ActionSecurityRisk:
    """The protocol drops an unusable risk without a word."""
    try:
        return ActionSecurityRisk(value)
    except ValueError:
        return ActionSecurityRisk.UNKNOWN


def _fits(value: Any, hint: Any) -> bool:
    origin = get_origin(hint)
    if origin in (Union, UnionType):
        return any(_fits(value, option) for option in get_args(hint))
    if origin is list:
        (item,) = get_args(hint)
        return isinstance(value, list) and all(_fits(element, item) for element in value)
    if origin is dict:
        return isinstance(value, dict)
    if origin is Literal:
        return value in get_args(hint)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, hint)


_PLURALS = {str: "strings", int: "integers"}
_NAMES = {str: "a string", bool: "true or false", int: "an integer", type(None): "null"}


def _hint_name(hint: Any) -> str:
    origin = get_origin(hint)
    if origin in (Union, UnionType):
        return " or ".join(_hint_name(option) for option in get_args(hint))
    if origin is list:
        return f"an array of {_PLURALS.get(get_args(hint)[0], 'values')}"
    if origin is dict:
        return "an object"
    return _NAMES.get(hint, getattr(hint, "__name__", str(hint)))


def json_name(value: object) -> str:
    """Name the JSON type of a value.

    Args:
        value: Parsed JSON.

    Returns:
        Such as "an array".
    """
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "an array"
    if isinstance(value, float):
        return "a number"
    return _NAMES.get(type(value), type(value).__name__)
