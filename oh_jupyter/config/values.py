"""Conversion of settings from TOML and from environment variables to the types of their fields."""

from __future__ import annotations

import ast
import json
from types import UnionType
from typing import Any, get_args, get_origin

from oh_jupyter.errors import ConfigError


def parse_setting(value: Any, hint: Any, where: str, example: str) -> Any:
    """Convert a value of TOML, or the text of a variable, to the type of its field.

    Args:
        value: The value.
        hint: Annotation of the field.
        where: Source of the value, for the error.
        example: A valid mapping, for the error.

    Raises:
        ConfigError: The value does not fit the type.
    """
    options = get_args(hint) if get_origin(hint) is UnionType else (hint,)
    kind = options[0]
    try:
        if kind is bool:
            return value if isinstance(value, bool) else _truth(value)
        if kind is float:
            return float(value)
        if kind is int:
            return int(value)
        if kind == tuple[dict[str, Any], ...]:
            tables = json.loads(value) if isinstance(value, str) else value
            return tuple(dict(table) for table in tables)
        if get_origin(kind) is tuple:
            return tuple(value.split(",") if isinstance(value, str) else value)
        if get_origin(kind) is dict:
            parsed = _literal(value, where, example) if isinstance(value, str) else value
            return {str(name): str(text) for name, text in parsed.items()}
    except (ValueError, TypeError, AttributeError) as error:
        raise ConfigError(f"{where} has an invalid value: {error}") from error
    if not isinstance(value, str):
        raise ConfigError(f"{where} must be a string, not {value!r}")
    return value


def _literal(text: str, where: str, example: str) -> dict[str, Any]:
    """Parse a mapping, as JSON or as a Python literal like OpenHands; the text may be secret."""
    for read in (json.loads, ast.literal_eval):
        try:
            value = read(text)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            continue
        if isinstance(value, dict):
            return value
    raise ConfigError(
        f"{where} must be a mapping of names to strings, as JSON or a Python literal such as "
        f"{example}"
    )


def _truth(text: str) -> bool:
    lowered = str(text).strip().lower()
    if lowered in {"1", "true", "yes", "on"}:
        return True
    if lowered in {"0", "false", "no", "off", ""}:
        return False
    raise ValueError(f"{text!r} is neither true nor false")
