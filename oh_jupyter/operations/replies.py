"""Replies to operations, as JSON."""

from __future__ import annotations

import json
from dataclasses import fields, is_dataclass
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, cast, get_args, get_origin

from oh_jupyter.operations.declaration import Operation
from oh_jupyter.schema import field_types

R = TypeVar("R")


def to_json(value: Any) -> Any:
    """Return a reply as a JSON value: dataclasses become objects."""
    if is_dataclass(value):
        return {each.name: to_json(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, dict):
        return {key: to_json(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(each) for each in value]
    return value


def from_json(hint: type[R], value: Any) -> R:
    """Return the reply of a type that a JSON value contains.

    The runtime's types are trusted. Members of objects that the type lacks are ignored, those that
    the object lacks get their defaults: the runtime may have another version.
    """
    return cast("R", _of(hint, value))


def reply_to(operation: Operation[R], body: bytes | None) -> R:
    """Return the reply to an operation from the body of the kernel's message."""
    return cast("R", _of(operation.reply, json.loads(body or b"null")))


def _of(hint: Any, value: Any) -> Any:
    if is_dataclass(hint):
        kind: Any = hint
        known = field_types(kind)
        return kind(**{name: _of(known[name], value[name]) for name in known if name in value})
    origin, parts = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        parts = tuple(part for part in parts if part is not NoneType)
        if isinstance(value, dict) and len(parts) > 1:
            parts = tuple(part for part in parts if is_dataclass(part))
        return _of(parts[0], value) if value is not None and len(parts) == 1 else value
    if origin is list:
        return [_of(parts[0], each) for each in value]
    if origin is dict:
        return {key: _of(parts[1], each) for key, each in value.items()}
    return value
