"""Parsing of queries into dataclasses."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import fields
from typing import Any, TypeVar

from oh_jupyter.errors import WireError
from oh_jupyter.schema import constraints_of, field_types, is_required

T = TypeVar("T")


def parse_query(
    kind: type[T],
    flag: Callable[[str], bool],
    text: Callable[[str], str | None],
    number: Callable[[str, str], str],
) -> T:
    """Return the arguments of a query as a dataclass; raise WireError if one is missing or invalid.

    The functions return an argument by its name: whether it is true, its unchanged text or None,
    and its stripped text, by default the second parameter.
    """
    known: Any = kind
    values: dict[str, Any] = {}
    for field in fields(known):
        name, hint = field.name, field_types(known)[field.name]
        if hint is bool:
            values[name] = flag(name)
        elif hint in (int, float):
            values[name] = _number(number(name, str(field.default)), hint, field)
        elif (value := text(name)) is not None:
            values[name] = value
        elif is_required(field):
            raise WireError(field.metadata["missing"], name)
    return kind(**values)


def _number(text: str, kind: type[int] | type[float], field: Any) -> int | float:
    bounds = constraints_of(field)
    try:
        # int() would accept underscores and digits of other scripts.
        number = kind(text) if kind is float or re.fullmatch(r"\d{1,15}", text, re.ASCII) else -1
    except ValueError:
        number = -1
    if not bounds["minimum"] <= number <= bounds["maximum"]:
        expected = field.metadata["expected"]
        raise WireError(f"{field.name!r} must be {expected}, not {text!r}", field.name)
    return number
