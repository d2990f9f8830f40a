"""Input that is not JSON, or that cannot be written again, is refused on arrival."""

from __future__ import annotations

import json

import pytest

from oh_jupyter.errors import WireError
from oh_jupyter.events.json import MAX_DEPTH, parse_json

REFUSED = {
    "nothing": (b"", "not JSON"),
    "half": (b'{"a"', "not JSON"),
    "deep arrays": (b"[" * 100_000 + b"]" * 100_000, "nested too deeply"),
    "deep objects": (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, "nested too deeply"),
    "a level too many": (b"[" * 101 + b"]" * 101, "nested too deeply"),
    "a long integer": (b"1" * 100_000, "more than 64 bits"),
    "a negative one": (b"-18446744073709551616", "more than 64 bits"),
    "infinity": (b"1e999", "too large"),
    "NaN": (b"[NaN]", "NaN is not a JSON number"),
    "Infinity": (b"-Infinity", "not a JSON number"),
    "half a pair": (rb'{"a": ["\uD800"]}', "surrogate"),
    "half a pair in a name": (rb'{"\udc00": 1}', "surrogate"),
    "twice the same name": (b'{"a": 1, "b": 2, "a": 3}', "'a' occurs twice"),
    "Latin-1": ('"é"'.encode("latin-1"), "not UTF-8"),
    "UTF-16": ('"é"'.encode("utf-16"), "not UTF-8"),
    "a control character": (b'"\0"', "not JSON"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_invalid_input_is_refused(name: str) -> None:
    data, reason = REFUSED[name]
    with pytest.raises(WireError, match=reason) as refused:
        parse_json(data)
    assert len(str(refused.value)) < 300
    assert refused.value.field == "body"


def test_valid_input_is_accepted() -> None:
    for value in ({"a": [1, -1.5, None, True, "é😀"]}, 2**64 - 1, -(2**63), "\0"):
        assert parse_json(json.dumps(value).encode()) == value
    assert parse_json(b"\xef\xbb\xbf{}") == {}
    assert parse_json(b"[" * MAX_DEPTH + b"]" * MAX_DEPTH) == json.loads(
        "[" * MAX_DEPTH + "]" * MAX_DEPTH
    )
