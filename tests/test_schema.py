from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Literal

from oh_jupyter.schema import fields_schema, parameters_schema, summary, type_schema


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


def test_a_schema_follows_the_signature():
    schema = parameters_schema(example)
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
        "mode": {"type": "string", "enum": ["a", "b"], "default": "a"},
        "colour": {"type": "string", "enum": ["red"]},
        "table": {"anyOf": [{"type": "object"}, {"type": "null"}], "default": None},
        "anything": {"default": None},
        "pair": {"type": "array", "items": {"type": "integer"}},
    }
    assert summary(example) == "Do it.\n\nAll of it."


def test_functions_without_annotations():
    def loose(a, *rest, **more):
        pass

    assert parameters_schema(loose) == {
        "type": "object",
        "properties": {"a": {}},
        "required": ["a"],
    }
    assert parameters_schema(print)["type"] == "object"
    assert summary(loose) == ""


@dataclass
class Base:
    """Fields of all.

    Attributes:
        path: Where it is.
    """

    path: str


@dataclass
class Derived(Base):
    """One more.

    Attributes:
        colour: Which,
            of one.
        tags: Words.
        inner: Another.
    """

    colour: Colour = Colour.RED
    tags: list[str] = field(default_factory=list)
    inner: Base | None = None


def test_a_schema_of_a_dataclass_follows_its_fields_and_docstrings():
    reference = {"$ref": "#/Base"}
    schema = fields_schema(Derived, reference=lambda cls: {"$ref": f"#/{cls.__name__}"})
    assert schema == {
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "Where it is."},
            "colour": {
                "type": "string",
                "enum": ["red"],
                "description": "Which, of one.",
                "default": "red",
            },
            "tags": {"type": "array", "items": {"type": "string"}, "description": "Words."},
            "inner": {
                "anyOf": [reference, {"type": "null"}],
                "description": "Another.",
                "default": None,
            },
        },
        "additionalProperties": False,
        "required": ["path"],
    }
    complete = fields_schema(Derived, ["tags", "path"], complete=True)
    assert complete["required"] == ["tags", "path"]


def test_a_union_of_simple_types_may_be_a_list_of_types():
    hint = int | str | None
    assert type_schema(hint, merge_unions=True) == {"type": ["integer", "string", "null"]}
    assert [option["type"] for option in type_schema(hint)["anyOf"]] == [
        "integer",
        "string",
        "null",
    ]
