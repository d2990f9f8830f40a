"""JSON schemas of all Actions and Observations, for ``openapi.yaml``.

``python -m oh_jupyter.server.schemas`` writes them into the file again, and its addresses below
``kernels/{kernel_id}``, which are those of the default kernel once more. The rest of the file is
written by hand.
"""

from __future__ import annotations

import copy
import inspect
import re
import textwrap
from collections.abc import Iterable
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

from oh_jupyter.events import ACTIONS, OBSERVATIONS, Action, CmdOutputMetadata, Event, Observation
from oh_jupyter.schema import field_types

__all__ = ["OPENAPI", "Schema", "event_schemas", "kernel_paths", "updated"]

OPENAPI = Path(__file__).with_name("openapi.yaml")
"""The description of the REST interface."""

OF_THE_SERVER = "server"
"""Tag of the operations that belong to no kernel."""

Schema = dict[str, Any]

_TYPES = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}
_ENVELOPE = set(field_types(Event))
_EVENT = {"$ref": "#/components/schemas/Event"}
_METHODS = ("get", "put", "post", "delete", "patch")


def event_schemas() -> dict[str, Schema]:
    """Describe every Action and Observation in its wire form.

    Returns:
        Schema by component name: one for each class, and their unions.
    """
    found: dict[str, Schema] = {cls.__name__: _action(cls) for cls in ACTIONS.values()}
    found |= {cls.__name__: _observation(cls) for cls in OBSERVATIONS.values()}
    found["CmdOutputMetadata"] = _object(CmdOutputMetadata, _names(CmdOutputMetadata), whole=True)
    found["CmdOutputMetadata"]["description"] = _summary(CmdOutputMetadata)
    found["Event"] = _event()
    runnable = {kind: cls for kind, cls in ACTIONS.items() if cls.runnable}
    found["RunnableAction"] = _one_of("An Action that a runtime can execute.", runnable, "action")
    found["Action"] = _one_of("Any Action.", ACTIONS, "action")
    found["Observation"] = _one_of("What came of an Action.", OBSERVATIONS, "observation")
    return found


def kernel_paths(document: dict[str, Any]) -> dict[str, Any]:
    """The addresses of an open kernel, which are those of the default one once more.

    Args:
        document: The whole description.

    Returns:
        Path items by path.
    """
    found = {}
    for path, item in document["paths"].items():
        operations = {name: item[name] for name in _METHODS if name in item}
        tags = {tag for operation in operations.values() for tag in operation["tags"]}
        if OF_THE_SERVER in tags or "{kernel_id}" in path:
            continue
        parameters = [{"$ref": "#/components/parameters/kernel_id"}, *item.get("parameters", [])]
        found[path.replace("/oh_jupyter/", "/oh_jupyter/kernels/{kernel_id}/", 1)] = {
            "parameters": parameters,
            **{name: _on_kernel(operation) for name, operation in operations.items()},
        }
    return found


def updated(text: str) -> str:
    """Write the generated parts of the description again.

    Args:
        text: The file.

    Returns:
        The file as it should be.
    """
    import yaml

    document = yaml.safe_load(text)
    text = _replaced(text, "paths", kernel_paths(document), 2)
    return _replaced(text, "schemas", event_schemas(), 4)


def _on_kernel(operation: dict[str, Any]) -> dict[str, Any]:
    copied = copy.deepcopy(operation)
    copied["operationId"] += "OnKernel"
    not_found = {"$ref": "#/components/responses/NotFound"}
    copied["responses"] = dict(sorted({"404": not_found, **copied["responses"]}.items()))
    return copied


def _action(cls: type[Action]) -> Schema:
    args = _object(cls, [name for name in _names(cls) if name not in {*_ENVELOPE, "timeout"}])
    return {
        "type": "object",
        "description": _summary(cls),
        "required": ["action", *(["args"] if "required" in args else [])],
        "properties": {
            "action": {"type": "string", "const": cls.kind},
            "args": args,
            "timeout": {
                "type": ["number", "null"],
                "minimum": 0,
                "exclusiveMaximum": 1_000_000_000,
                "description": _descriptions(Action)["timeout"],
            },
        },
        "allOf": [_EVENT],
    }


def _observation(cls: type[Observation]) -> Schema:
    extras = [name for name in _names(cls) if name not in {*_ENVELOPE, "content"}]
    success = cls.success is not Observation.success
    properties = {
        "observation": {"type": "string", "const": cls.kind},
        "content": {"type": "string", "description": _descriptions(cls)["content"]},
        "extras": _object(cls, extras, whole=True),
        **({"success": {"type": "boolean"}} if success else {}),
    }
    return {
        "type": "object",
        "description": _summary(cls),
        "required": ["observation", "content", "extras", "message", *(["success"] * success)],
        "properties": properties,
        "allOf": [_EVENT],
    }


def _event() -> Schema:
    message = {"type": "string", "description": "One sentence for people; ignored in requests."}
    return {
        "type": "object",
        "description": _summary(Event),
        "properties": {
            **_object(Event, _names(Event), whole=True)["properties"],
            "message": message,
        },
    }


def _one_of(description: str, classes: dict[str, Any], key: str) -> Schema:
    references = {kind: f"#/components/schemas/{cls.__name__}" for kind, cls in classes.items()}
    return {
        "description": description,
        "oneOf": [{"$ref": reference} for reference in references.values()],
        "discriminator": {"propertyName": key, "mapping": references},
    }


def _object(cls: Any, names: Iterable[str], *, whole: bool = False) -> Schema:
    """Some fields of a dataclass; whole if none of them is ever left out."""
    known = {f.name: f for f in fields(cls)}
    descriptions = _descriptions(cls)
    properties = {}
    for name in names:
        schema = _type(field_types(cls)[name])
        properties[name] = {**schema, "description": descriptions[name]}
        if not whole and known[name].default is not MISSING:
            properties[name]["default"] = _plain(known[name].default)
    required = [name for name in properties if whole or _is_required(known[name])]
    schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return {**schema, "required": required} if required else schema


def _is_required(f: Field[Any]) -> bool:
    return f.default is MISSING and f.default_factory is MISSING


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, Enum) else value


def _type(hint: Any) -> Schema:
    origin, options = get_origin(hint), get_args(hint)
    if hint is Any:
        return {}
    if origin in (Union, UnionType):
        return _union([_type(option) for option in options])
    if origin is Literal:
        return {"type": "string", "enum": list(options)}
    if origin is list:
        return {"type": "array", "items": _type(options[0])}
    if origin is dict:
        return {"type": "object"}
    if is_dataclass(hint):
        return {"$ref": f"#/components/schemas/{getattr(hint, '__name__', hint)}"}
    if issubclass(hint, Enum):
        values = [member.value for member in hint]
        return {"type": _TYPES[type(values[0])], "enum": values}
    return {"type": _TYPES[hint]}


def _union(options: list[Schema]) -> Schema:
    if all(set(option) == {"type"} for option in options):
        return {"type": [option["type"] for option in options]}
    return {"anyOf": options}


def _names(cls: Any) -> list[str]:
    return [f.name for f in fields(cls)]


def _summary(cls: type) -> str:
    return _markdown((inspect.getdoc(cls) or "").partition("\n\n")[0])


def _descriptions(cls: type) -> dict[str, str]:
    """What the docstrings of a class and its bases say of each attribute."""
    found: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        section = (inspect.cleandoc(base.__doc__ or "")).partition("\nAttributes:\n")[2]
        for entry in re.split(r"\n(?=    \w)", f"\n{section}")[1:]:
            name, _, text = entry.strip().partition(": ")
            found[name] = _markdown(text)
    return found


def _markdown(text: str) -> str:
    return " ".join(text.split()).replace("``", "`").replace("None", "null")


def _replaced(text: str, name: str, content: dict[str, Any], indent: int) -> str:
    """Put content between the two lines that mark a generated part."""
    import yaml

    class Dumper(yaml.SafeDumper):  # type: ignore[misc]
        def ignore_aliases(self, data: Any) -> bool:
            return True

        def represent_sequence(self, tag: str, sequence: Any, flow_style: Any = None) -> Any:
            one_line = not any(isinstance(item, dict | list) for item in sequence)
            return super().represent_sequence(tag, sequence, one_line)

        def represent_scalar(self, tag: str, value: Any, style: Any = None) -> Any:
            return super().represent_scalar(tag, value, "|" if "\n" in str(value) else style)

    dumped = yaml.dump(content, Dumper=Dumper, sort_keys=False, width=92, allow_unicode=True)
    space = " " * indent
    lines = textwrap.indent(dumped, space)
    begin, end = (f"{space}# {word} of what is generated: {name}\n" for word in ("Begin", "End"))
    head, found, rest = text.partition(begin)
    _, closed, tail = rest.partition(end)
    if not found or not closed:
        raise ValueError(f"{OPENAPI} has no lines {begin.strip()!r} and {end.strip()!r}")
    return f"{head}{begin}{lines}{end}{tail}"


if __name__ == "__main__":
    OPENAPI.write_text(updated(OPENAPI.read_text(encoding="utf-8")), encoding="utf-8")
