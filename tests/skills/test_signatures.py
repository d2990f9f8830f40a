from enum import Enum
from typing import Any, Literal

from oh_jupyter.skills.signatures import schema_of, summary_of


class Colour(Enum):
    RED = "red"


def example(
    path: str,
    number: int | None = 1,
    *,
    ratio: float = 0.5,
    flags: list[str] | None = None,
    mode: Literal["a", "b"] = "a",
    colour: Colour = Colour.RED,
    table: dict[str, int] | None = None,
    anything: Any = None,
    pair: tuple[int, ...] = (),
) -> None:
    """Do it.

    All of it.

    Args:
        path: Where it is,
            or is not.
        number: How many: some.
        ratio (float): How much.

    Returns:
        number: Nothing.
    """


def test_a_schema_says_what_the_signature_says():
    schema = schema_of(example)
    assert schema["type"] == "object"
    assert schema["required"] == ["path"]
    assert schema["additionalProperties"] is False
    assert schema["properties"] == {
        "path": {"type": "string", "description": "Where it is, or is not."},
        "number": {
            "anyOf": [{"type": "integer"}, {"type": "null"}],
            "description": "How many: some.",
            "default": 1,
        },
        "ratio": {"type": "number", "description": "How much.", "default": 0.5},
        "flags": {
            "anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}],
            "default": None,
        },
        "mode": {"enum": ["a", "b"], "default": "a"},
        "colour": {"enum": ["red"]},
        "table": {"anyOf": [{"type": "object"}, {"type": "null"}], "default": None},
        "anything": {"default": None},
        "pair": {"type": "array", "items": {"type": "integer"}},
    }
    assert summary_of(example) == "Do it.\n\nAll of it."


def test_functions_that_say_less():
    def loose(a, *rest, **more):
        pass

    assert schema_of(loose) == {"type": "object", "properties": {"a": {}}, "required": ["a"]}
    assert schema_of(print)["type"] == "object"
    assert summary_of(loose) == ""
