"""Events as JSON, exactly as OpenHands' action-execution protocol writes them, both ways.

What OpenHands does not have stands in ``oh_jupyter``, which its readers ignore, where an unknown
argument would cost them the event; in ``args`` it is read as well.
"""

from __future__ import annotations

import ast
import copy
import re
import threading
from dataclasses import fields
from enum import Enum
from typing import Any, cast

from oh_jupyter.errors import UnknownTypeError, WireError
from oh_jupyter.events.action import ACTIONS, Action
from oh_jupyter.events.event import Event
from oh_jupyter.events.fields import build, check_field, check_seconds, mapping
from oh_jupyter.events.json import encode_json
from oh_jupyter.events.observation import OBSERVATIONS, CmdOutputMetadata, Observation
from oh_jupyter.schema import field_types

_ENVELOPE = ("id", "timestamp", "source", "cause", "tool_call_metadata", "llm_metrics")
EXTENSION_KEY = "oh_jupyter"
"""Key of an event for what OpenHands does not have."""

ACTOR_KEY = "actor"
"""Key below it for who asked for an Action."""

BLOBS_KEY = "blobs"
"""Key below it for the long texts that the log keeps in files of their own."""

_ENVELOPE_TYPES = field_types(Event)
_LOG_FIELDS = {*_ENVELOPE_TYPES, "timeout"}
_DROPPED_ARGS = ("timestamp", "keep_prompt", "task_completed")
_RENAMED_ARGS = {"is_confirmed": "confirmation_state", "images_urls": "image_urls"}


class EncodedEvent:
    """An event whose JSON the log and the one who asked share: encoded once, by the first."""

    def __init__(self, wire: dict[str, Any]) -> None:
        self.wire = wire  # must not change
        self._lock = threading.Lock()
        self._json: bytes | None = None

    def json(self) -> bytes:
        """The event as JSON in UTF-8."""
        with self._lock:
            if self._json is None:
                self._json = encode_json(self.wire)
            return self._json


def to_wire(event: Event) -> dict[str, Any]:
    """Write an event as new JSON-ready data; fields of the log that are not set are left out."""
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
    """Read an Action or an Observation (WireError names the field that is wrong)."""
    if isinstance(data, dict) and "observation" in data:
        return observation_from_wire(data)
    return action_from_wire(data)


def action_from_wire(data: object) -> Action:
    """Read an Action (UnknownTypeError, or WireError that names the field)."""
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
    actor = envelope.get(EXTENSION_KEY, {}).get(ACTOR_KEY)
    if actor is not None:
        action.actor = dict(mapping(actor, f"{EXTENSION_KEY}.{ACTOR_KEY}"))
    _read_envelope(action, envelope)
    return action


def observation_from_wire(data: object) -> Observation:
    """Read an Observation (UnknownTypeError, or WireError that names the field)."""
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
    if "handling" in extensions:
        extras["handling"] = extensions["handling"]
    observation = cast(Observation, build(cls, extras, "extras", ignore_unknown=lenient))
    _read_envelope(observation, envelope)
    return observation


def _type_fields(event: Event) -> dict[str, Any]:
    """Fields of the protocol: not the log's, not the extensions, and none that is not sent."""
    return {
        f.name: _plain(getattr(event, f.name))
        for f in fields(cast(Any, event))
        if f.init and f.name not in _LOG_FIELDS and "extension" not in f.metadata
    }


def _extensions(event: Event) -> dict[str, Any]:
    """The fields that OpenHands does not have, where they are set."""
    found = {
        f.name: (getattr(event, f.name), f.default)
        for f in fields(cast(Any, event))
        if "extension" in f.metadata
    }
    return {name: _plain(value) for name, (value, default) in found.items() if value != default}


def _read_extensions(cls: type[Action], envelope: dict[str, Any]) -> dict[str, Any]:
    given = dict(mapping(envelope.get(EXTENSION_KEY, {}), EXTENSION_KEY))
    given.pop(BLOBS_KEY, None)
    given.pop(ACTOR_KEY, None)
    known = [f.name for f in fields(cls) if "extension" in f.metadata and f.name != ACTOR_KEY]
    for name in given:
        if name not in known:
            raise WireError(
                f"'{EXTENSION_KEY}.{name}' is not an argument of ours for {cls.kind!r}. "
                f"It has: {', '.join(known) or 'none'}",
                f"{EXTENSION_KEY}.{name}",
            )
    return given


def _plain(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, CmdOutputMetadata):
        return {f.name: getattr(value, f.name) for f in fields(value)}
    if isinstance(value, dict | list):
        return copy.deepcopy(value)  # whoever has the event may go on changing it
    return value


def _read_envelope(event: Event, envelope: dict[str, Any]) -> None:
    for name in _ENVELOPE:
        value = envelope.get(name)
        if value is not None:
            setattr(event, name, check_field(value, _ENVELOPE_TYPES[name], name))


def _current_args(args: dict[str, Any]) -> dict[str, Any]:
    """Apply the renamings and removals that the protocol keeps for old logs."""
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
    """Arguments of a legacy ``print(file_editor(**{...}))``."""
    match = re.search(r"file_editor\(\*\*(.*?)\)\)?\s*$", code, re.DOTALL)
    if match is None:
        return {}
    try:
        arguments = ast.literal_eval(match.group(1))
    except (ValueError, SyntaxError) as problem:
        raise WireError(
            "'args.translated_ipython_code' does not hold a file_editor call",
            "args.translated_ipython_code",
        ) from problem
    if not isinstance(arguments, dict):
        return {}
    return {k: v for k, v in arguments.items() if v is not None}


def _current_run_extras(extras: dict[str, Any]) -> dict[str, Any]:
    """Move the old names of exit code and pid into the metadata."""
    extras = dict(extras)
    given = extras.get("metadata")
    metadata = dict(mapping(given, "extras.metadata")) if given is not None else {}
    for old, new in (("exit_code", "exit_code"), ("command_id", "pid")):
        if extras.get(old) is not None:
            metadata.setdefault(new, extras[old])
    return {**extras, "metadata": metadata}
