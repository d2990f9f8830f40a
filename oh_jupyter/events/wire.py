"""Events as JSON, exactly as OpenHands' action-execution protocol writes them, both ways.

An Action is ``{"action": type, "args": {...}, "timeout"?}``, an Observation
``{"observation": type, "content": str, "extras": {...}, "success"?}``; either may
carry ``id``, ``timestamp``, ``source``, ``cause`` and ``message`` at the top level.
What cannot be read is refused with the name of the field.
"""

from __future__ import annotations

import ast
import copy
import re
from dataclasses import fields
from enum import Enum
from typing import Any, cast

from oh_jupyter.errors import NotRunnableError, UnknownTypeError, WireError
from oh_jupyter.events.action import Action
from oh_jupyter.events.event import Event
from oh_jupyter.events.fields import build, check_field, field_types, json_name
from oh_jupyter.events.observation import CmdOutputMetadata, Observation
from oh_jupyter.events.registry import ACTIONS, OBSERVATIONS

__all__ = [
    "action_from_wire",
    "from_wire",
    "observation_from_wire",
    "runnable_from_wire",
    "to_wire",
]

_ENVELOPE = ("id", "timestamp", "source", "cause", "tool_call_metadata", "llm_metrics")
_ENVELOPE_TYPES = field_types(Event)
_NOT_OWN = {*_ENVELOPE_TYPES, "timeout"}
_DROPPED_ARGS = ("timestamp", "keep_prompt", "task_completed")
_RENAMED_ARGS = {"is_confirmed": "confirmation_state", "images_urls": "image_urls"}


def to_wire(event: Event) -> dict[str, Any]:
    """Write an event as JSON-ready data.

    Args:
        event: An Action or an Observation.

    Returns:
        A new dict in the protocol's form; fields of the log that are not set are left out.
    """
    data: dict[str, Any] = {
        name: getattr(event, name) for name in _ENVELOPE if getattr(event, name) is not None
    }
    data["message"] = event.message
    if isinstance(event, Action):
        data["action"] = event.kind
        data["args"] = _own_fields(event)
        if event.timeout is not None:
            data["timeout"] = event.timeout
        return data
    observation = cast(Observation, event)
    extras = _own_fields(observation)
    data["observation"] = observation.kind
    data["content"] = extras.pop("content")
    data["extras"] = extras
    if observation.success is not None:
        data["success"] = observation.success
    return data


def from_wire(data: object) -> Event:
    """Read an event of either sort.

    Args:
        data: Parsed JSON.

    Returns:
        The Action or Observation.

    Raises:
        WireError: It is neither, or a field of it is wrong.
    """
    if isinstance(data, dict) and "observation" in data:
        return observation_from_wire(data)
    return action_from_wire(data)


def action_from_wire(data: object) -> Action:
    """Read an Action.

    Args:
        data: Parsed JSON: ``{"action": type, "args": {...}, "timeout"?: seconds}``.

    Returns:
        The Action, with ``timeout`` set if it was given.

    Raises:
        UnknownTypeError: There is no Action of that type.
        WireError: A field is missing, unknown or of the wrong type; ``field`` names it.
    """
    envelope = _mapping(data, "action")
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
    args = _current_args(_mapping(envelope.get("args", {}), "args"))
    action = cast(Action, build(cls, args, "args", ignore_unknown=False))
    if envelope.get("timeout") is not None:
        action.timeout = _seconds(envelope["timeout"])
    _read_envelope(action, envelope)
    return action


def runnable_from_wire(data: object) -> Action:
    """Read an Action that a runtime can execute.

    Args:
        data: Parsed JSON.

    Returns:
        The Action.

    Raises:
        NotRunnableError: It is an Action such as ``message``, with nothing to execute.
        WireError: As for ``action_from_wire``.
    """
    action = action_from_wire(data)
    if not action.runnable:
        runnable = ", ".join(sorted(kind for kind, cls in ACTIONS.items() if cls.runnable))
        raise NotRunnableError(
            f"An action of type {action.kind!r} cannot be executed. Types that can: {runnable}",
            "action",
        )
    return action


def observation_from_wire(data: object) -> Observation:
    """Read an Observation.

    Args:
        data: Parsed JSON: ``{"observation": type, "content": str, "extras": {...}}``.

    Returns:
        The Observation.

    Raises:
        UnknownTypeError: There is no Observation of that type.
        WireError: A field is missing, unknown or of the wrong type; ``field`` names it.
    """
    envelope = _mapping(data, "observation")
    kind = envelope.get("observation")
    cls = OBSERVATIONS.get(kind) if isinstance(kind, str) else None
    if cls is None:
        raise UnknownTypeError(
            f"Unknown observation type {kind!r}. Known types: {', '.join(sorted(OBSERVATIONS))}",
            "observation",
        )
    extras = dict(_mapping(envelope.get("extras", {}), "extras"))
    lenient = kind == "run"
    if lenient:
        extras = _current_run_extras(extras)
    extras["content"] = envelope.get("content", "")
    observation = cast(Observation, build(cls, extras, "extras", ignore_unknown=lenient))
    _read_envelope(observation, envelope)
    return observation


def _own_fields(event: Event) -> dict[str, Any]:
    """The fields of a type, without those of the log around it."""
    kind: Any = type(event)
    unset = {
        f.name for f in fields(kind) if "own" in f.metadata and getattr(event, f.name) == f.default
    }
    names = (name for name in field_types(kind) if name not in _NOT_OWN | unset)
    return {name: _plain(getattr(event, name)) for name in names}


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
    """Move the old names of exit code and pid into the metadata; drop its unknown keys."""
    extras = dict(extras)
    given = extras.get("metadata")
    metadata = dict(_mapping(given, "extras.metadata")) if given is not None else {}
    for old, new in (("exit_code", "exit_code"), ("command_id", "pid")):
        if extras.get(old) is not None:
            metadata.setdefault(new, extras[old])
    extras["metadata"] = build(CmdOutputMetadata, metadata, "extras.metadata", ignore_unknown=True)
    return extras


def _mapping(value: object, name: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise WireError(f"{name!r} must be a JSON object, not {json_name(value)}", name)
    return value


def _seconds(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e9:
        raise WireError(f"'timeout' must be a number of seconds, not {value!r}", "timeout")
    return float(value)
