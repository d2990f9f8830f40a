"""JSON schemas of types, dataclasses and functions, from type hints and docstrings."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import cache
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

Schema = dict[str, Any]
"""A JSON schema (2020-12, as in OpenAPI 3.1 and MCP)."""

Reference = Callable[[type], Schema]
"""Returns the schema that replaces a dataclass, such as a ``$ref`` to a component."""

_JSON_TYPES: dict[Any, str] = {
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    type(None): "null",
}
_SECTION = re.compile(r"^\s*(Args|Arguments|Parameters|Attributes):\s*$")
_ENTRY = re.compile(r"^(\s+)\*{0,2}(\w+)(?:\s*\([^)]*\))?:\s*(.*)$")


def type_schema(
    hint: Any, *, reference: Reference | None = None, merge_unions: bool = False
) -> Schema:
    """Return the schema of a type hint, ``{}`` for an unknown one.

    ``merge_unions`` makes a union of simple types a list of types instead of ``anyOf``.
    """
    origin, arguments = get_origin(hint), get_args(hint)
    if hint in _JSON_TYPES:
        return {"type": _JSON_TYPES[hint]}
    if origin in (Union, UnionType):
        options = [
            type_schema(argument, reference=reference, merge_unions=merge_unions)
            for argument in arguments
        ]
        if merge_unions and all(option.keys() == {"type"} for option in options):
            return {"type": [option["type"] for option in options]}
        return {"anyOf": options}
    if origin is Literal:
        return _enum_schema(arguments)
    kind = origin or hint
    if not isinstance(kind, type):
        return {}
    if issubclass(kind, Enum):
        return _enum_schema([member.value for member in kind])
    if is_dataclass(kind):
        return reference(kind) if reference else fields_schema(kind)
    if issubclass(kind, Mapping):
        return {"type": "object"}
    if issubclass(kind, Sequence | set | frozenset):
        items = [argument for argument in arguments if argument is not Ellipsis]
        schema: Schema = {"type": "array"}
        if len(set(items)) == 1:
            schema["items"] = type_schema(items[0], reference=reference, merge_unions=merge_unions)
        return schema
    return {}


def _enum_schema(values: Sequence[Any]) -> Schema:
    types = {_JSON_TYPES.get(type(value)) for value in values}
    named = {"type": types.pop()} if len(types) == 1 and None not in types else {}
    return {**named, "enum": list(values)}


def fields_schema(
    cls: type,
    names: Iterable[str] | None = None,
    *,
    complete: bool = False,
    reference: Reference | None = None,
    merge_unions: bool = False,
) -> Schema:
    """Return the schema of an object with fields of a dataclass, by default all.

    ``complete`` makes all of them required that are not optional.
    """
    known = {f.name: f for f in fields(cls)}
    texts = documented_names(*reversed(cls.__mro__))
    properties: dict[str, Schema] = {}
    for name in known if names is None else names:
        hint = field_types(cls)[name]
        described = type_schema(hint, reference=reference, merge_unions=merge_unions)
        if name in texts:
            described["description"] = texts[name]
        default = known[name].default
        if not complete and default is not MISSING and not is_dataclass(default):
            described["default"] = default.value if isinstance(default, Enum) else default
        properties[name] = {**described, **constraints_of(known[name])}
    required = [
        name
        for name in properties
        if is_required(known[name]) or (complete and not is_optional(known[name]))
    ]
    schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return {**schema, "required": required} if required else schema


@cache
def field_types(cls: Any) -> dict[str, Any]:
    """Return the resolved type hints of a dataclass's constructor arguments."""
    hints = get_type_hints(cls)
    return {f.name: hints[f.name] for f in fields(cls) if f.init}


_CONSTRAINTS = (
    *("minimum", "maximum", "pattern", "format", "contentMediaType"),
    *("items", "propertyNames", "additionalProperties"),
)


def constraints_of(field: Any) -> Schema:
    """Return the constraints in the metadata of a dataclass's field, as a part of its schema."""
    return {name: field.metadata[name] for name in _CONSTRAINTS if name in field.metadata}


OPTIONAL = "optional"
"""Name in the metadata of fields that the JSON of a reply may lack."""


def is_optional(field: Any) -> bool:
    """Return whether the JSON of a reply lacks a field where it has its default."""
    return OPTIONAL in field.metadata


def is_required(field: Any) -> bool:
    """Return whether a field of a dataclass has no default."""
    return field.default is MISSING and field.default_factory is MISSING


def parameters_schema(function: Callable[..., Any]) -> Schema:
    """Return the schema of an object with the arguments of a function."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # a C function without a signature
        return {"type": "object", "properties": {}}
    try:
        hints = get_type_hints(function)
    except Exception:  # an annotation that cannot be resolved here
        hints = {}
    texts = documented_names(function)
    properties: dict[str, Schema] = {}
    required = []
    open_ended = False
    for parameter in parameters:
        if parameter.kind is parameter.VAR_KEYWORD:
            open_ended = True
            continue
        if parameter.kind is parameter.VAR_POSITIONAL:
            continue
        described = type_schema(hints.get(parameter.name, Any))
        if parameter.name in texts:
            described["description"] = texts[parameter.name]
        if parameter.default is parameter.empty:
            required.append(parameter.name)
        elif isinstance(parameter.default, str | int | float | bool | None):
            described["default"] = parameter.default
        properties[parameter.name] = described
    schema: Schema = {"type": "object", "properties": properties}
    if required:
        schema["required"] = required
    if not open_ended:
        schema["additionalProperties"] = False
    return schema


def summary(documented: Any) -> str:
    """Return a docstring up to its section on arguments or attributes."""
    lines = []
    for line in (inspect.getdoc(documented) or "").splitlines():
        if _SECTION.match(line):
            break
        lines.append(line)
    return "\n".join(lines).strip()


def documented_names(*documented: Any) -> dict[str, str]:
    """Texts about arguments and attributes in Google-style docstrings; the last one wins."""
    texts: dict[str, str] = {}
    for each in documented:
        inside, indent, name = False, 0, ""
        for line in inspect.cleandoc(each.__doc__ or "").splitlines():
            if _SECTION.match(line):
                inside, indent = True, 0
                continue
            if not inside or not line.strip():
                continue
            depth = len(line) - len(line.lstrip())
            if not depth:
                inside = False
                continue
            entry = _ENTRY.match(line)
            if entry is not None and (not indent or depth == indent):
                indent, name = depth, entry[2]
                texts[name] = entry[3].strip()
            elif name:
                texts[name] = f"{texts[name]} {line.strip()}".strip()
    return texts
