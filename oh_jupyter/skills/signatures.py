"""What signature and docstring of a skill say: for people, and as a JSON schema for tools."""

from __future__ import annotations

import inspect
import re
import types
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

__all__ = ["schema_of", "signature_of", "summary_of"]

_SIMPLE: dict[Any, str] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    type(None): "null",
}
_SECTION = re.compile(r"^\s*(Args|Arguments|Parameters):\s*$")
_ARGUMENT = re.compile(r"^(\s+)\*{0,2}(\w+)(?:\s*\([^)]*\))?:\s*(.*)$")


def signature_of(function: Callable[..., Any]) -> str:
    """Write the parameters of a function.

    Args:
        function: The function.

    Returns:
        Such as ``(path: str, line_number: int = 1) -> None``.
    """
    try:
        return str(inspect.signature(function, eval_str=True))
    except (NameError, AttributeError):  # an annotation that exists for type checkers only
        return str(inspect.signature(function))
    except (TypeError, ValueError):  # a function in C that does not tell
        return "(...)"


def schema_of(function: Callable[..., Any]) -> dict[str, Any]:
    """Describe the arguments of a function.

    Args:
        function: The function.

    Returns:
        A JSON schema of an object; what has no annotation may be anything.
    """
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # a function in C that does not tell
        return {"type": "object", "properties": {}}
    try:
        hints = get_type_hints(function)
    except Exception:  # an annotation that cannot be resolved here
        hints = {}
    texts = _argument_texts(inspect.getdoc(function) or "")
    properties: dict[str, Any] = {}
    required = []
    open_ended = False
    for parameter in parameters:
        if parameter.kind is parameter.VAR_KEYWORD:
            open_ended = True
            continue
        if parameter.kind is parameter.VAR_POSITIONAL:
            continue
        described = _type_schema(hints.get(parameter.name, Any))
        if parameter.name in texts:
            described["description"] = texts[parameter.name]
        if parameter.default is parameter.empty:
            required.append(parameter.name)
        elif isinstance(parameter.default, str | int | float | bool | None):
            described["default"] = parameter.default
        properties[parameter.name] = described
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    if required:
        schema["required"] = required
    if not open_ended:
        schema["additionalProperties"] = False
    return schema


def summary_of(function: Callable[..., Any]) -> str:
    """Describe what a function does, without its arguments, which the schema describes.

    Args:
        function: The function.

    Returns:
        The docstring up to its section on arguments.
    """
    lines = []
    for line in (inspect.getdoc(function) or "").splitlines():
        if _SECTION.match(line):
            break
        lines.append(line)
    return "\n".join(lines).strip()


def _type_schema(hint: Any) -> dict[str, Any]:
    if hint in _SIMPLE:
        return {"type": _SIMPLE[hint]}
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return {"anyOf": [_type_schema(argument) for argument in arguments]}
    if origin is Literal:
        return {"enum": list(arguments)}
    if isinstance(hint, type) and issubclass(hint, Enum):
        return {"enum": [member.value for member in hint]}
    kind = origin or hint
    if isinstance(kind, type) and issubclass(kind, Mapping):
        return {"type": "object"}
    if isinstance(kind, type) and issubclass(kind, Sequence | set | frozenset):
        items = [argument for argument in arguments if argument is not Ellipsis]
        schema: dict[str, Any] = {"type": "array"}
        if len(set(items)) == 1:
            schema["items"] = _type_schema(items[0])
        return schema
    return {}


def _argument_texts(docstring: str) -> dict[str, str]:
    """What a docstring in Google's style says of each argument."""
    texts: dict[str, str] = {}
    inside, indent, name = False, 0, ""
    for line in docstring.splitlines():
        if _SECTION.match(line):
            inside, indent = True, 0
            continue
        if not inside or not line.strip():
            continue
        depth = len(line) - len(line.lstrip())
        if not depth:
            inside = False
            continue
        found = _ARGUMENT.match(line)
        if found is not None and (not indent or depth == indent):
            indent, name = depth, found[2]
            texts[name] = found[3].strip()
        elif name:
            texts[name] = f"{texts[name]} {line.strip()}".strip()
    return texts
