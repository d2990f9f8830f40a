"""JSON: read from outside so that whatever comes of it can be written again, and written fast.

Python's reader also takes NaN, lone surrogates, numbers of any length and any depth.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from oh_jupyter.errors import WireError

MAX_DEPTH = 100
"""Levels of arrays and objects inside each other."""

MAX_INTEGER = 2**64
"""Integers must be smaller, as in the JSON of the event log."""

_ESCAPED_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_TOO_DEEP = f"The body is nested too deeply: at most {MAX_DEPTH} levels"


def parse_json(data: bytes) -> Any:
    """Read JSON in UTF-8, with or without a byte order mark (WireError says what is wrong)."""
    try:
        value = json.loads(
            data.decode("utf-8-sig"),
            parse_int=_integer,
            parse_float=_number,
            parse_constant=_no_number,
            object_pairs_hook=_object,
        )
    except UnicodeDecodeError as problem:
        raise WireError(
            f"The body is not UTF-8: {problem.reason} at {problem.start}", "body"
        ) from None
    except RecursionError:
        raise WireError(_TOO_DEEP, "body") from None
    except ValueError as problem:
        raise WireError(f"The body is not JSON: {problem}", "body") from None
    _check_depth(value)
    if _ESCAPED_SURROGATE.search(data):
        _check_texts(value)
    return value


def encode_json(data: Any) -> bytes:
    """Encode as JSON in UTF-8; what is no JSON is written as its text."""
    # The standard library takes 2 ms for a megabyte, in which no other thread runs; orjson 0.1.
    import orjson

    try:
        return orjson.dumps(data, default=str)
    except TypeError:  # integers of more than 64 bits, lone surrogates, keys that are no strings
        return json.dumps(data, default=str).encode()


def _integer(text: str) -> int:
    # Before it is converted, which takes time that grows with the square.
    if len(text) > 20 or abs(value := int(text)) >= MAX_INTEGER:
        raise ValueError(f"the integer {text[:20]}... has more than 64 bits")
    return value


def _number(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError(f"the number {text[:20]} is too large")
    return value


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is no number in JSON")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"the name {twice[:100]!r} is there twice in one object")
    return found


def _inside(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        return iter(value.values())
    return iter(value if isinstance(value, list) else ())


def _check_depth(value: Any) -> None:
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [
            inner for outer in level for inner in _inside(outer) if isinstance(inner, dict | list)
        ]
        if not level:
            return
    raise WireError(_TOO_DEEP, "body")


def _check_texts(value: Any) -> None:
    waiting = [value]
    while waiting:
        each = waiting.pop()
        texts = [each, *(each if isinstance(each, dict) else ())]
        for text in texts:
            if isinstance(text, str) and any("\ud800" <= char <= "\udfff" for char in text):
                raise WireError("A text in the body has half of a surrogate pair", "body")
        waiting += _inside(each)
