"""Strict parsing and fast encoding of JSON.

Every parsed value can be encoded again. Python's own parser also accepts NaN, lone surrogates, and
numbers of any length and arrays of any depth.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from oh_jupyter.errors import WireError
from oh_jupyter.text import shorten

MAX_DEPTH = 100
"""Nesting depth of arrays and objects."""

MAX_INTEGER = 2**64
"""Exclusive limit for the absolute value of integers, as in the JSON of the event log."""

_ESCAPED_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_TOO_DEEP = f"The body is nested too deeply: at most {MAX_DEPTH} levels"


def parse_json(data: bytes) -> Any:
    """Parse JSON in UTF-8, with or without a byte order mark; raise WireError."""
    try:
        value = json.loads(
            data.decode("utf-8-sig"),
            parse_int=_integer,
            parse_float=_number,
            parse_constant=_invalid_constant,
            object_pairs_hook=_object,
        )
    except UnicodeDecodeError as error:
        raise WireError(f"The body is not UTF-8: {error.reason} at {error.start}", "body") from None
    except RecursionError:
        raise WireError(_TOO_DEEP, "body") from None
    except ValueError as error:
        raise WireError(f"The body is not JSON: {error}", "body") from None
    _check_depth(value)
    if _ESCAPED_SURROGATE.search(data):
        _check_texts(value)
    return value


def encode_json(data: Any) -> bytes:
    """Encode as JSON in UTF-8; convert other values with ``str``."""
    # For a megabyte, the standard library holds the GIL for 2 ms, orjson for 0.1 ms.
    import orjson

    try:
        return orjson.dumps(data, default=str)
    except TypeError:  # integers over 64 bits, lone surrogates, non-string keys
        return json.dumps(data, default=str).encode()


def _integer(text: str) -> int:
    # Checked before the conversion, whose time grows quadratically.
    if len(text) > 20 or abs(value := int(text)) >= MAX_INTEGER:
        raise ValueError(f"the integer {shorten(text, 20, marker='...')} has more than 64 bits")
    return value


def _number(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError(f"the number {text[:20]} is too large")
    return value


def _invalid_constant(text: str) -> float:
    raise ValueError(f"{text} is not a JSON number")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        duplicate = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"the name {duplicate[:100]!r} occurs twice in one object")
    return value


def _children(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        return iter(value.values())
    return iter(value if isinstance(value, list) else ())


def _check_depth(value: Any) -> None:
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [
            child for value in level for child in _children(value) if isinstance(child, dict | list)
        ]
        if not level:
            return
    raise WireError(_TOO_DEEP, "body")


def _check_texts(value: Any) -> None:
    pending = [value]
    while pending:
        value = pending.pop()
        texts = [value, *(value if isinstance(value, dict) else ())]
        for text in texts:
            if isinstance(text, str) and any("\ud800" <= char <= "\udfff" for char in text):
                raise WireError("A text in the body has a lone surrogate", "body")
        pending += _children(value)
