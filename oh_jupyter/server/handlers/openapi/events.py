"""Schemas of events in their wire form."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

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
from oh_jupyter.schema import Schema, field_types
from oh_jupyter.server.handlers.openapi.schemas import (
    field_description,
    field_names,
    first_line,
    object_schema,
)

_ENVELOPE = set(field_types(Event))
_EVENT = {"$ref": "#/components/schemas/Event"}


def event_schemas() -> dict[str, Schema]:
    """Return the schemas of all Actions and Observations, and of their unions, by name."""
    schemas: dict[str, Schema] = {cls.__name__: _action(cls) for cls in ACTIONS.values()}
    schemas |= {cls.__name__: _observation(cls) for cls in OBSERVATIONS.values()}
    schemas["Actor"] = {**object_schema(Actor), "description": first_line(Actor)}
    schemas["CmdOutputMetadata"] = object_schema(CmdOutputMetadata, complete=True)
    schemas["CmdOutputMetadata"]["description"] = first_line(CmdOutputMetadata)
    schemas["ObservationExtension"] = object_schema(Observation, ["handling"])
    schemas["ObservationExtension"]["description"] = "Fields that OpenHands lacks."
    schemas["Event"] = _event()
    schemas["ListedEvent"] = _listed_event()
    runnable = {kind: cls for kind, cls in ACTIONS.items() if cls.runnable}
    schemas["RunnableAction"] = _one_of("An Action that a runtime can execute.", runnable, "action")
    schemas["Action"] = _one_of("Any Action.", ACTIONS, "action")
    schemas["Observation"] = _one_of("Result of an Action.", OBSERVATIONS, "observation")
    return schemas


def _action(cls: type[Action]) -> Schema:
    names = [name for name in field_names(cls) if name not in {*_ENVELOPE, "timeout"}]
    extended = [each.name for each in fields(cls) if "extension" in each.metadata]
    args = object_schema(cls, names)
    extensions = object_schema(cls, extended)
    extensions["description"] = "Arguments that OpenHands does not have; requests may use args."
    return {
        "type": "object",
        "description": first_line(cls),
        "required": ["action", *(["args"] if "required" in args else [])],
        "properties": {
            "action": {"type": "string", "const": cls.kind},
            "args": args,
            "timeout": {
                "type": ["number", "null"],
                "minimum": 0,
                "exclusiveMaximum": 1_000_000_000,
                "description": field_description(Action, "timeout"),
            },
            **({EXTENSION_KEY: extensions} if extended else {}),
        },
        "allOf": [_EVENT],
    }


def _observation(cls: type[Observation]) -> Schema:
    own = {each.name: each for each in fields(cls)}
    extended = [name for name in field_names(cls) if "extension" in own[name].metadata]
    extras = [n for n in field_names(cls) if n not in {*_ENVELOPE, "content", *extended}]
    shared = {"$ref": "#/components/schemas/ObservationExtension"}
    success = cls.success is not Observation.success
    properties = {
        "observation": {"type": "string", "const": cls.kind},
        "content": {"type": "string", "description": field_description(cls, "content")},
        "extras": object_schema(cls, extras, complete=True),
        **({"success": {"type": "boolean"}} if success else {}),
        EXTENSION_KEY: shared if len(extended) == 1 else object_schema(cls, extended),
    }
    return {
        "type": "object",
        "description": first_line(cls),
        "required": ["observation", "content", "extras", "message", *(["success"] * success)],
        "properties": properties,
        "allOf": [_EVENT],
    }


def _event() -> Schema:
    message = {"type": "string", "description": "One sentence for people; ignored in requests."}
    properties = object_schema(Event, complete=True)["properties"]
    return {
        "type": "object",
        "description": first_line(Event),
        "properties": {**properties, "message": message},
    }


def _listed_event() -> Schema:
    clipped = "True if strings were cut or pictures omitted."
    return {
        "description": "An Action or Observation, shortened unless `whole` is true.",
        "allOf": [_EVENT],
        "properties": {"clipped": {"type": "boolean", "description": clipped}},
        "anyOf": [{"required": ["action"]}, {"required": ["observation"]}],
    }


def _one_of(description: str, classes: dict[str, Any], key: str) -> Schema:
    references = {kind: f"#/components/schemas/{cls.__name__}" for kind, cls in classes.items()}
    return {
        "description": description,
        "oneOf": [{"$ref": reference} for reference in references.values()],
        "discriminator": {"propertyName": key, "mapping": references},
    }
