"""Validation of JSON values against the annotations of dataclass fields."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any

from oh_jupyter.errors import NotRunnableError, WireError
from oh_jupyter.events.action import ACTIONS, Action, ActionSecurityRisk
from oh_jupyter.events.actor import Actor
from oh_jupyter.events.event import Event
from oh_jupyter.schema import Schema, field_types, is_required, type_schema


def build(cls: type, values: dict[str, Any], parent: str, *, ignore_unknown: bool) -> object:
    """Build a dataclass from JSON values; a WireError names the field as ``parent.name``."""
    envelope = {*field_types(Event), *field_types(Action)}
    hints = {name: hint for name, hint in field_types(cls).items() if name not in envelope}
    kind = getattr(cls, "kind", "metadata")
    for name in values:
        if name not in hints and not ignore_unknown:
            known = ", ".join(name for name in hints if name != "content" or parent == "args")
            raise WireError(
                f"'{parent}.{name}' is not an argument of {kind!r}. It has: {known}",
                f"{parent}.{name}",
            )
    for f in fields(cls):
        if f.name in hints and is_required(f) and f.name not in values:
            raise WireError(f"'{parent}.{f.name}' is required for {kind!r}", f"{parent}.{f.name}")
    checked = {
        name: check_field(value, hints[name], f"{parent}.{name}", ignore_unknown=ignore_unknown)
        for name, value in values.items()
        if name in hints
    }
    return cls(**checked)


def check_runnable(action: Action) -> None:
    """Raise NotRunnableError for an Action that cannot be executed, such as ``message``."""
    if not action.runnable:
        runnable = ", ".join(sorted(kind for kind, cls in ACTIONS.items() if cls.runnable))
        raise NotRunnableError(
            f"An action of type {action.kind!r} cannot be executed. Types that can: {runnable}",
            "action",
        )


def check_fields(action: Action) -> None:
    """Convert the fields of an Action that was not parsed from JSON; raise WireError."""
    kind: Any = type(action)
    for name, hint in _own_fields(kind).items():
        setattr(action, name, check_field(getattr(action, name), hint, f"args.{name}"))
    if not isinstance(action.actor, Actor):
        action.actor = Actor.from_json(action.actor)
    if action.timeout is not None:
        action.timeout = check_seconds(action.timeout, "timeout")


@cache
def _own_fields(kind: Any) -> dict[str, Any]:
    """Return the type hints of the fields specific to an Action type."""
    common = {*field_types(Event), "timeout", "actor"}
    return {name: hint for name, hint in field_types(kind).items() if name not in common}


def check_field(value: Any, hint: Any, name: str, *, ignore_unknown: bool = False) -> Any:
    """Convert a value to the type of a field; raise WireError if it does not fit."""
    if hint is ActionSecurityRisk:
        return _security_risk(value)
    if is_dataclass(hint) and isinstance(hint, type):
        return build(hint, mapping(value, name), name, ignore_unknown=ignore_unknown)
    schema = _schema(hint)
    if "enum" in schema:
        if value not in schema["enum"]:
            choices = ", ".join(map(repr, schema["enum"]))
            raise WireError(f"'{name}' must be one of {choices}, not {value!r}", name)
        return hint(value) if isinstance(hint, type) else value
    if not _fits(value, schema):
        raise WireError(f"'{name}' must be {_schema_name(schema)}, not {_json_name(value)}", name)
    return value


def check_seconds(value: Any, name: str) -> float:
    """Convert a number of seconds; raise WireError if it is invalid."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e9:
        raise WireError(f"{name!r} must be a number of seconds, not {value!r}", name)
    return float(value)


_schema = cache(type_schema)


def _security_risk(value: Any) -> ActionSecurityRisk:
    """Convert a risk; like the protocol, silently map an invalid one to UNKNOWN."""
    try:
        return ActionSecurityRisk(value)
    except ValueError:
        return ActionSecurityRisk.UNKNOWN


_PYTHON_TYPES: dict[str, type | tuple[type, ...]] = {
    "string": str,
    "boolean": bool,
    "integer": int,
    "number": (float, int),
    "null": type(None),
    "array": list,
    "object": dict,
}


def _fits(value: Any, schema: Schema) -> bool:
    if "anyOf" in schema:
        return any(_fits(value, option) for option in schema["anyOf"])
    if "enum" in schema:
        return value in schema["enum"]
    if "type" not in schema:
        return True
    if isinstance(value, bool) and schema["type"] != "boolean":
        return False
    if isinstance(value, list) and schema["type"] == "array":
        return all(_fits(item, schema.get("items", {})) for item in value)
    return isinstance(value, _PYTHON_TYPES[schema["type"]])


_PLURALS = {"string": "strings", "integer": "integers", "object": "objects"}
_NAMES = {
    "string": "a string",
    "boolean": "true or false",
    "integer": "an integer",
    "number": "a number",
    "null": "null",
    "array": "an array",
    "object": "an object",
}


def _schema_name(schema: Schema) -> str:
    if "anyOf" in schema:
        return " or ".join(map(_schema_name, schema["anyOf"]))
    if schema["type"] == "array":
        return f"an array of {_PLURALS.get(schema.get('items', {}).get('type'), 'values')}"
    return _NAMES[schema["type"]]


def _json_name(value: object) -> str:
    """Return the JSON type of a value with its article, such as "an array"."""
    for name in ("boolean", "integer", *_NAMES):
        if isinstance(value, _PYTHON_TYPES[name]):
            return _NAMES[name]
    return type(value).__name__


def mapping(value: object, name: str) -> dict[str, Any]:
    """Return a JSON object; raise WireError for another type."""
    if not isinstance(value, dict):
        raise WireError(f"{name!r} must be a JSON object, not {_json_name(value)}", name)
    return value
