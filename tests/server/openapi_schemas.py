"""JSON schemas of all Actions and Observations, for ``openapi.yaml``.

``python tests/server/openapi_schemas.py`` writes them into the file again, and its addresses below
``kernels/{kernel_id}``, which are those of the default kernel once more. The rest of the file is
written by hand.
"""

from __future__ import annotations

import copy
import inspect
import textwrap
from collections.abc import Iterable
from dataclasses import fields
from typing import Any

from oh_jupyter.events import ACTIONS, OBSERVATIONS, Action, CmdOutputMetadata, Event, Observation
from oh_jupyter.events.wire import EXTENSION_KEY
from oh_jupyter.schema import Schema, documented_names, field_types, fields_schema
from oh_jupyter.server.handlers.info import OPENAPI

OF_THE_SERVER = "server"
"""Tag of the operations that belong to no kernel."""

_ENVELOPE = set(field_types(Event))
_EVENT = {"$ref": "#/components/schemas/Event"}
_METHODS = ("get", "put", "post", "delete", "patch")


def event_schemas() -> dict[str, Schema]:
    """Schemas of all Actions and Observations in their wire form, and of their unions, by name."""
    found: dict[str, Schema] = {cls.__name__: _action(cls) for cls in ACTIONS.values()}
    found |= {cls.__name__: _observation(cls) for cls in OBSERVATIONS.values()}
    found["CmdOutputMetadata"] = _object(
        CmdOutputMetadata, _names(CmdOutputMetadata), complete=True
    )
    found["CmdOutputMetadata"]["description"] = _summary(CmdOutputMetadata)
    found["ObservationExtension"] = _object(Observation, ["handling"])
    found["ObservationExtension"]["description"] = "Fields that OpenHands lacks."
    found["Event"] = _event()
    runnable = {kind: cls for kind, cls in ACTIONS.items() if cls.runnable}
    found["RunnableAction"] = _one_of("An Action that a runtime can execute.", runnable, "action")
    found["Action"] = _one_of("Any Action.", ACTIONS, "action")
    found["Observation"] = _one_of("Result of an Action.", OBSERVATIONS, "observation")
    return found


def kernel_paths(document: dict[str, Any]) -> dict[str, Any]:
    """Path items of an open kernel's addresses, which are those of the default one once more."""
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
    """The description with its generated parts as they should be."""
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
    extensions = _object(cls, [f.name for f in fields(cls) if "extension" in f.metadata])
    extensions["description"] = "Arguments that OpenHands does not have; requests may use args."
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
                "description": _description(Action, "timeout"),
            },
            **({EXTENSION_KEY: extensions} if extensions["properties"] else {}),
        },
        "allOf": [_EVENT],
    }


def _observation(cls: type[Observation]) -> Schema:
    extras = [name for name in _names(cls) if name not in {*_ENVELOPE, "content", "handling"}]
    success = cls.success is not Observation.success
    properties = {
        "observation": {"type": "string", "const": cls.kind},
        "content": {"type": "string", "description": _description(cls, "content")},
        "extras": _object(cls, extras, complete=True),
        **({"success": {"type": "boolean"}} if success else {}),
        EXTENSION_KEY: {"$ref": "#/components/schemas/ObservationExtension"},
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
            **_object(Event, _names(Event), complete=True)["properties"],
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


def _object(cls: Any, names: Iterable[str], *, complete: bool = False) -> Schema:
    """Some fields of a dataclass, in YAML's words."""
    schema = fields_schema(cls, names, complete=complete, reference=_reference, merge_unions=True)
    for described in schema["properties"].values():
        described["description"] = _markdown(described["description"])
    return schema


def _reference(cls: type) -> Schema:
    return {"$ref": f"#/components/schemas/{cls.__name__}"}


def _names(cls: Any) -> list[str]:
    return [f.name for f in fields(cls) if f.init]


def _summary(cls: type) -> str:
    return _markdown((inspect.getdoc(cls) or "").partition("\n\n")[0])


def _description(cls: type, name: str) -> str:
    return _markdown(documented_names(*reversed(cls.__mro__))[name])


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
