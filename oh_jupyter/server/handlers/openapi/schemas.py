"""Schemas of dataclasses, in the words of OpenAPI."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from typing import Any, get_args

from oh_jupyter.schema import Schema, documented_names, field_types, fields_schema, type_schema


def object_schema(
    cls: Any, names: Iterable[str] | None = None, *, complete: bool = False
) -> Schema:
    """Return the schema of an object with some fields of a dataclass, by default all.

    ``complete`` makes all of them required that are not optional.
    """
    chosen = field_names(cls) if names is None else names
    schema = fields_schema(cls, chosen, complete=complete, reference=reference, merge_unions=True)
    for described in schema["properties"].values():
        if "description" in described:
            described["description"] = markdown(described["description"])
    return schema


def optional_schema(cls: Any) -> Schema:
    """Return the schema of an object that lacks the fields which are None in the dataclass."""
    schema = object_schema(cls)
    for described in schema["properties"].values():
        if isinstance(described.get("type"), list):
            (described["type"],) = (each for each in described["type"] if each != "null")
            if described.get("default", "") is None:
                del described["default"]
    return schema


def schema_of(json: Any) -> Schema:
    """Return the schema of a type hint, in which dataclasses are components; keep a schema."""
    if isinstance(json, dict):
        return json
    return type_schema(json, reference=reference, merge_unions=True)


def reference(cls: type) -> Schema:
    """Return the schema that refers to the component of a dataclass."""
    return {"$ref": f"#/components/schemas/{cls.__name__}"}


def component_schemas(hints: Iterable[Any], *, complete: bool) -> dict[str, Schema]:
    """Return the schemas of the dataclasses in type hints, by name."""
    schemas: dict[str, Schema] = {}

    def add(hint: Any) -> None:
        if is_dataclass(hint) and isinstance(hint, type) and hint.__name__ not in schemas:
            schemas[hint.__name__] = described = object_schema(hint, complete=complete)
            described["description"] = first_line(hint)
            for inner in field_types(hint).values():
                add(inner)
        for part in get_args(hint):
            add(part)

    for hint in hints:
        add(hint)
    return schemas


def field_names(cls: Any) -> list[str]:
    """Return the names of the constructor's arguments of a dataclass."""
    return [each.name for each in fields(cls) if each.init]


def first_line(documented: Any) -> str:
    """Return the first paragraph of a docstring."""
    return markdown((inspect.getdoc(documented) or "").partition("\n\n")[0])


def field_description(cls: type, name: str) -> str:
    """Return the description of a field in the docstrings of a dataclass and its bases."""
    return markdown(documented_names(*reversed(cls.__mro__))[name])


def markdown(text: str) -> str:
    """Return a text of a docstring as one line of Markdown, in the words of JSON."""
    return " ".join(text.split()).replace("``", "`").replace("None", "null")
