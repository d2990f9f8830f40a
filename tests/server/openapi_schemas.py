"""Generated parts of ``openapi.yaml``: paths, and schemas of all Actions and Observations.

``python tests/server/openapi_schemas.py`` writes them into the file. The paths come from the route
tables, and from the descriptions in ``openapi_operations.yaml`` beside this file.
"""

from __future__ import annotations

import copy
import inspect
import re
import textwrap
from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, get_args

from oh_jupyter.events import (
    ACTIONS,
    OBSERVATIONS,
    Action,
    Actor,
    CmdOutputMetadata,
    Event,
    Observation,
)
from oh_jupyter.events.wire import EXTENSION_KEY
from oh_jupyter.schema import (
    Schema,
    documented_names,
    field_types,
    fields_schema,
    summary,
    type_schema,
)
from oh_jupyter.server.handlers import KERNEL_TABLES, SERVER_TABLES
from oh_jupyter.server.handlers.info import OPENAPI
from oh_jupyter.server.handlers.routes import Route

OPERATIONS = Path(__file__).with_name("openapi_operations.yaml")

ERRORS = {
    400: "BadRequest",
    403: "Forbidden",
    404: "NotFound",
    410: "Cancelled",
    413: "TooLarge",
    422: "Invalid",
    424: "NotLoaded",
    429: "TooMany",
    500: "InternalError",
    502: "BadGateway",
    503: "KernelDied",
    504: "KernelSilent",
    507: "DiskFull",
}
"""Components that describe errors, by status."""

KERNEL_ERRORS = (424, 500, 502, 503, 504)

_ENVELOPE = set(field_types(Event))
_EVENT = {"$ref": "#/components/schemas/Event"}


def event_schemas() -> dict[str, Schema]:
    """Schemas of all Actions and Observations in their wire form, and of their unions, by name."""
    schemas: dict[str, Schema] = {cls.__name__: _action(cls) for cls in ACTIONS.values()}
    schemas |= {cls.__name__: _observation(cls) for cls in OBSERVATIONS.values()}
    schemas["Actor"] = {**_object(Actor, _names(Actor)), "description": _summary(Actor)}
    schemas["CmdOutputMetadata"] = _object(
        CmdOutputMetadata, _names(CmdOutputMetadata), complete=True
    )
    schemas["CmdOutputMetadata"]["description"] = _summary(CmdOutputMetadata)
    schemas["ObservationExtension"] = _object(Observation, ["handling"])
    schemas["ObservationExtension"]["description"] = "Fields that OpenHands lacks."
    schemas["Event"] = _event()
    runnable = {kind: cls for kind, cls in ACTIONS.items() if cls.runnable}
    schemas["RunnableAction"] = _one_of("An Action that a runtime can execute.", runnable, "action")
    schemas["Action"] = _one_of("Any Action.", ACTIONS, "action")
    schemas["Observation"] = _one_of("Result of an Action.", OBSERVATIONS, "observation")
    return schemas


def paths() -> dict[str, Any]:
    """Path items of all routes, those of a kernel also below ``kernels/{kernel_id}``."""
    import yaml

    described = yaml.safe_load(OPERATIONS.read_text(encoding="utf-8"))
    parameters = described.pop("path_parameters")
    items: dict[str, Any] = {}
    of_kernels: dict[str, Any] = {}
    for table in (*SERVER_TABLES, *KERNEL_TABLES):
        for route in table.routes:
            path, names = path_of(route.pattern)
            in_path = [parameters[name] for name in names]
            operation = _operation(route, described[route.name], table in KERNEL_TABLES)
            _add(items, f"/oh_jupyter{path}", in_path, route.method, operation)
            if table in KERNEL_TABLES:
                in_path = [{"$ref": "#/components/parameters/kernel_id"}, *in_path]
                path = f"/oh_jupyter/kernels/{{kernel_id}}{path}"
                _add(of_kernels, path, in_path, route.method, _on_kernel(operation))
    return items | of_kernels


def path_of(pattern: str) -> tuple[str, list[str]]:
    """A route's pattern as OpenAPI writes it, and the names of its parameters."""
    group = r"\(\?P<(\w+)>[^)]*\)"
    return re.sub(group, r"{\1}", pattern).replace("\\.", "."), re.findall(group, pattern)


def _add(items: dict[str, Any], path: str, in_path: list[Any], method: str, operation: Any) -> None:
    item = items.setdefault(path, {"parameters": in_path} if in_path else {})
    item[method] = operation


def _operation(route: Route, described: dict[str, Any], in_kernel: bool) -> dict[str, Any]:
    described = _of_declaration(route.operation, described) if route.operation else dict(described)
    refusals = described.pop("refusals", [])
    statuses = [403, 429, *described.pop("errors", [])]
    statuses += described.pop("kernel_errors", KERNEL_ERRORS if in_kernel else ())
    if route.method in ("post", "put") and not refusals:
        statuses.append(413)
    named = {status: ERRORS[status] for status in statuses}
    named |= dict.fromkeys(refusals, "McpRefusal")
    errors = {str(status): {"$ref": f"#/components/responses/{named[status]}"} for status in named}
    responses = dict(sorted({**described.pop("responses"), **errors}.items()))
    tags = {"tags": described.pop("tags"), "operationId": route.name}
    return {**tags, **described, "responses": responses}


def _of_declaration(operation: Any, described: dict[str, Any]) -> dict[str, Any]:
    """Describe an endpoint by the declaration of its operation, with its further responses."""
    summary, _, more = _markdown_paragraphs(operation)
    derived: dict[str, Any] = {"summary": summary}
    if more:
        derived["description"] = more
    if arguments := _names(operation):
        content = {"application/json": {"schema": _object(operation, arguments)}}
        derived["requestBody"] = {"required": True, "content": content}
    reply = type_schema(operation.reply, reference=_reference, merge_unions=True)
    described_reply = _summary(operation.reply) if is_dataclass(operation.reply) else "All of them."
    success = {"description": described_reply, "content": {"application/json": {"schema": reply}}}
    responses = {"200": success, **described.get("responses", {})}
    return {**described, **derived, "responses": responses}


def _markdown_paragraphs(operation: Any) -> tuple[str, str, str]:
    """Split the docstring of a declaration after its first paragraph."""
    first, gap, more = summary(operation).partition("\n\n")
    return _markdown(first), gap, _markdown(more)


def reply_schemas() -> dict[str, Schema]:
    """Return the schemas of the replies of endpoints that a declaration describes, by name."""
    schemas: dict[str, Schema] = {}

    def add(hint: Any) -> None:
        if is_dataclass(hint) and hint.__name__ not in schemas:
            schemas[hint.__name__] = {**_object(hint, _names(hint)), "description": _summary(hint)}
            for inner in field_types(hint).values():
                add(inner)
        for part in get_args(hint):
            add(part)

    for table in (*SERVER_TABLES, *KERNEL_TABLES):
        for route in table.routes:
            if route.operation is not None:
                add(route.operation.reply)
    return schemas


def updated(text: str) -> str:
    """The description with its generated parts as they should be."""
    text = _replaced(text, "paths", paths(), 2)
    return _replaced(text, "schemas", {**reply_schemas(), **event_schemas()}, 4)


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
    own = {f.name: f for f in fields(cls)}
    extensions = [name for name in _names(cls) if "extension" in own[name].metadata]
    extras = [n for n in _names(cls) if n not in {*_ENVELOPE, "content", *extensions}]
    shared = {"$ref": "#/components/schemas/ObservationExtension"}
    success = cls.success is not Observation.success
    properties = {
        "observation": {"type": "string", "const": cls.kind},
        "content": {"type": "string", "description": _description(cls, "content")},
        "extras": _object(cls, extras, complete=True),
        **({"success": {"type": "boolean"}} if success else {}),
        EXTENSION_KEY: shared if len(extensions) == 1 else _object(cls, extensions),
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
    begin, end = (f"{space}# {word} of the generated part: {name}\n" for word in ("Begin", "End"))
    head, opened, rest = text.partition(begin)
    _, closed, tail = rest.partition(end)
    if not opened or not closed:
        raise ValueError(f"{OPENAPI} has no lines {begin.strip()!r} and {end.strip()!r}")
    return f"{head}{begin}{lines}{end}{tail}"


if __name__ == "__main__":
    OPENAPI.write_text(updated(OPENAPI.read_text(encoding="utf-8")), encoding="utf-8")
