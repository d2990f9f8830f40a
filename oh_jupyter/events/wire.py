"""Conversion of events to and from the JSON of OpenHands' action-execution protocol.

Fields that OpenHands lacks are written under ``oh_jupyter``, which its readers ignore; they would
reject an event with an unknown argument. We also accept these fields in ``args``.
"""

from __future__ import annotations

import ast
import copy
import re
import threading
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields
from enum import Enum
from functools import cache
from typing import Any, NamedTuple, cast

from oh_jupyter.errors import UnknownTypeError, WireError
from oh_jupyter.events.action import ACTIONS, Action
from oh_jupyter.events.actor import Actor
from oh_jupyter.events.event import Event
from oh_jupyter.events.fields import build, check_field, check_seconds, mapping
from oh_jupyter.events.json import encode_json
from oh_jupyter.events.observation import (
    OBSERVATIONS,
    CmdOutputMetadata,
    Observation,
    Outcome,
)
from oh_jupyter.schema import field_types

_ENVELOPE = ("id", "timestamp", "source", "cause", "tool_call_metadata", "llm_metrics")
EXTENSION_KEY = "oh_jupyter"
"""Key of an event for the fields that OpenHands lacks."""

ACTOR_KEY = "actor"
"""Key below it for the origin of an Action."""

BLOBS_KEY = "blobs"
"""Key below it for the long texts that the log keeps in separate files."""

_ENVELOPE_TYPES = field_types(Event)
_LOG_FIELDS = {*_ENVELOPE_TYPES, "timeout"}
_DROPPED_ARGS = ("timestamp", "keep_prompt", "task_completed")
_RENAMED_ARGS = {"is_confirmed": "confirmation_state", "images_urls": "image_urls"}


class EncodedEvent:
    """Event whose JSON is encoded once, for the log and for the reply."""

    def __init__(self, wire: dict[str, Any]) -> None:
        self.wire = wire  # must not change
        self._lock = threading.Lock()
        self._json: bytes | None = None

    def json(self) -> bytes:
        """Return the event as JSON in UTF-8."""
        with self._lock:
            if self._json is None:
                self._json = encode_json(self.wire)
            return self._json


def to_wire(event: Event) -> dict[str, Any]:
    """Convert an event to JSON-ready data; omit fields of the log that are not set."""
    data: dict[str, Any] = {
        name: getattr(event, name) for name in _ENVELOPE if getattr(event, name) is not None
    }
    data["message"] = event.message
    if isinstance(event, Action):
        data["action"] = event.kind
        data["args"] = _type_fields(event)
        if extensions := _extensions(event):
            data[EXTENSION_KEY] = extensions
        if event.timeout is not None:
            data["timeout"] = event.timeout
        return data
    observation = cast(Observation, event)
    extras = _type_fields(observation)
    data["observation"] = observation.kind
    data["content"] = extras.pop("content")
    data["extras"] = extras
    if extensions := _extensions(observation):
        data[EXTENSION_KEY] = extensions
    if observation.success is not None:
        data["success"] = observation.success
    return data


def from_wire(data: object) -> Event:
    """Parse an Action or an Observation; a WireError names the invalid field."""
    if isinstance(data, dict) and "observation" in data:
        return observation_from_wire(data)
    return action_from_wire(data)


def action_from_wire(data: object) -> Action:
    """Parse an Action; raise UnknownTypeError, or a WireError that names the field."""
    envelope = mapping(data, "action")
    if "action" not in envelope and "observation" in envelope:
        raise UnknownTypeError(
            "Invalid action type: an observation was sent in its place", "action"
        )
    kind = envelope.get("action")
    if not isinstance(kind, str):
        raise WireError("'action' must be the name of an action type", "action")
    cls = ACTIONS.get(kind)
    if cls is None:
        raise UnknownTypeError(
            f"Unknown action type {kind!r}. Known types: {', '.join(sorted(ACTIONS))}", "action"
        )
    args = _current_args(mapping(envelope.get("args", {}), "args"))
    args = {**_read_extensions(cls, envelope), **args}
    action = cast(Action, build(cls, args, "args", ignore_unknown=False))
    if envelope.get("timeout") is not None:
        action.timeout = check_seconds(envelope["timeout"], "timeout")
    action.actor = Actor.from_json(envelope.get(EXTENSION_KEY, {}).get(ACTOR_KEY))
    _read_envelope(action, envelope)
    return action


def observation_from_wire(data: object) -> Observation:
    """Parse an Observation; raise UnknownTypeError, or a WireError that names the field."""
    envelope = mapping(data, "observation")
    kind = envelope.get("observation")
    cls = OBSERVATIONS.get(kind) if isinstance(kind, str) else None
    if cls is None:
        raise UnknownTypeError(
            f"Unknown observation type {kind!r}. Known types: {', '.join(sorted(OBSERVATIONS))}",
            "observation",
        )
    extras = dict(mapping(envelope.get("extras", {}), "extras"))
    lenient = kind == "run"
    if lenient:
        extras = _current_run_extras(extras)
    extras["content"] = envelope.get("content", "")
    extensions = mapping(envelope.get(EXTENSION_KEY, {}), EXTENSION_KEY)
    known = {f.name for f in fields(cls) if "extension" in f.metadata}
    extras |= {name: value for name, value in extensions.items() if name in known}
    observation = cast(Observation, build(cls, extras, "extras", ignore_unknown=lenient))
    _read_envelope(observation, envelope)
    return observation


def outcome_of(observation: Mapping[str, Any]) -> Outcome:
    """Return the outcome in an Observation's JSON, which omits that of most of its type."""
    if own := (observation.get(EXTENSION_KEY) or {}).get("outcome"):
        return cast(Outcome, own)
    kind = observation.get("observation")
    if kind == "browse" and (observation.get("extras") or {}).get("error"):
        return "failed"
    cls: Any = OBSERVATIONS.get(str(kind), Observation)
    return cast(Outcome, _fields_of_type(cls).extensions["outcome"])


def _type_fields(event: Event) -> dict[str, Any]:
    """Return the protocol's fields of a type, without log fields, extensions and unsent ones."""
    return {name: _plain(getattr(event, name)) for name in _fields_of(event).protocol}


def _extensions(event: Event) -> dict[str, Any]:
    """Return the fields that OpenHands lacks and that are set."""
    values = {
        name: (getattr(event, name), default)
        for name, default in _fields_of(event).extensions.items()
    }
    return {name: _plain(value) for name, (value, default) in values.items() if value != default}


class _Fields(NamedTuple):
    """Names of a type's fields in the protocol, and of its extensions with their defaults."""

    protocol: tuple[str, ...]
    extensions: dict[str, Any]


def _fields_of(event: Event) -> _Fields:
    return _fields_of_type(cast(Any, type(event)))


@cache
def _fields_of_type(cls: Any) -> _Fields:
    all_fields = fields(cls)
    extensions = {f.name: _default(f) for f in all_fields if "extension" in f.metadata}
    own = (f.name for f in all_fields if f.init and f.name not in {*_LOG_FIELDS, *extensions})
    return _Fields(tuple(own), extensions)


def _default(f: Field[Any]) -> Any:
    return f.default if f.default_factory is MISSING else f.default_factory()


def _read_extensions(cls: type[Action], envelope: dict[str, Any]) -> dict[str, Any]:
    extensions = dict(mapping(envelope.get(EXTENSION_KEY, {}), EXTENSION_KEY))
    extensions.pop(BLOBS_KEY, None)
    extensions.pop(ACTOR_KEY, None)
    known = [f.name for f in fields(cls) if "extension" in f.metadata and f.name != ACTOR_KEY]
    for name in extensions:
        if name not in known:
            raise WireError(
                f"'{EXTENSION_KEY}.{name}' is not an extension of {cls.kind!r}. "
                f"It has: {', '.join(known) or 'none'}",
                f"{EXTENSION_KEY}.{name}",
            )
    return extensions


def _plain(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Actor):
        return value.to_json()
    if isinstance(value, CmdOutputMetadata):
        return {f.name: getattr(value, f.name) for f in fields(value)}
    if isinstance(value, dict | list):
        return copy.deepcopy(value)  # the caller may change the event later
    return value


def _read_envelope(event: Event, envelope: dict[str, Any]) -> None:
    for name in _ENVELOPE:
        value = envelope.get(name)
        if value is not None:
            setattr(event, name, check_field(value, _ENVELOPE_TYPES[name], name))


def _current_args(args: dict[str, Any]) -> dict[str, Any]:
    """Apply the protocol's renamings and removals for old logs."""
    args = dict(args)
    legacy = args.pop("translated_ipython_code", None)
    if isinstance(legacy, str):
        args = {**_file_editor_call(legacy), **args}
    for name in _DROPPED_ARGS:
        args.pop(name, None)
    for old, new in _RENAMED_ARGS.items():
        if old in args:
            args.setdefault(new, args[old])
            del args[old]
    return args


def _file_editor_call(code: str) -> dict[str, Any]:
    """Return the arguments of a legacy ``print(file_editor(**{...}))``."""
    match = re.search(r"file_editor\(\*\*(.*?)\)\)?\s*$", code, re.DOTALL)
    if match is None:
        return {}
    try:
        arguments = ast.literal_eval(match.group(1))
    except (ValueError, SyntaxError) as error:
        raise WireError(
            "'args.translated_ipython_code' does not contain a file_editor call",
            "args.translated_ipython_code",
        ) from error
    if not isinstance(arguments, dict):
        return {}
    return {k: v for k, v in arguments.items() if v is not None}


def _current_run_extras(extras: dict[str, Any]) -> dict[str, Any]:
    """Move the old names of exit code and pid into the metadata."""
    extras = dict(extras)
    metadata = extras.get("metadata")
    metadata = {} if metadata is None else dict(mapping(metadata, "extras.metadata"))
    for old, new in (("exit_code", "exit_code"), ("command_id", "pid")):
        if extras.get(old) is not None:
            metadata.setdefault(new, extras[old])
    return {**extras, "metadata": metadata}
