"""Declarations of operations: what a runtime does besides Actions, and replies as JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import MISSING, Field, field, fields, is_dataclass
from types import NoneType, UnionType
from typing import Any, ClassVar, Generic, Literal, Self, TypeVar, Union, cast, get_args, get_origin

from oh_jupyter.errors import KernelError, WireError
from oh_jupyter.events.fields import check_field
from oh_jupyter.schema import OPTIONAL, constraints_of, field_types, is_optional, is_required
from oh_jupyter.text import did_you_mean

Scope = Literal["anyone", "agent", "person"]
"""Who may ask for an operation: any holder of the server's token, an agent for itself, or a person
through Jupyter's own connection to the kernel."""

ENVELOPE = frozenset(
    {"op", "generation", "key", "keep", "expires", "actor", "by_agent", "confined", "notes"}
)
"""Fields of every request, which say who asks and how; no operation has an argument of that name.

=============== ==================================================================================
``op``          Name of the operation.
``generation``  The expected runtime.
``key``         Name by which other requests refer to this one.
``keep``        Whether the request may be sent again after a broken connection.
``expires``     Time of the kernel's monotonic clock, in seconds, after which it must not start.
``actor``       Origin of the request, see `Actor`.
``by_agent``    Whether an agent makes it, as opposed to a person's frontend or token.
``confined``    Whether the agent may use only the workspace's files and pages of the web.
``notes``       Whether the reply should have the notes for the agent on undone changes.
=============== ==================================================================================
"""


R = TypeVar("R")


class Operation(Generic[R]):
    """Base class of operations: dataclasses whose fields are the arguments.

    Its parameter is the type of the reply: a dataclass, a list of them, an object in wire form, or
    None. The class keywords of a subclass are ``scope``, and ``names_actor`` if the operation is
    recorded with the origin of the request.

    Attributes:
        reply: Type of the reply.
        wire_name: Name on the wire, derived from that of the class.
        scope: Who may ask for it.
        names_actor: Whether a request names its actor even if no agent makes it.
    """

    reply: ClassVar[Any]
    wire_name: ClassVar[str]
    scope: ClassVar[Scope]
    names_actor: ClassVar[bool]

    def __init_subclass__(cls, *, scope: Scope, names_actor: bool = False, **keywords: Any) -> None:
        """Set the attributes of the class."""
        super().__init_subclass__(**keywords)
        (cls.reply,) = get_args(cls.__orig_bases__[0])  # type: ignore[attr-defined]
        cls.wire_name = re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()
        cls.scope, cls.names_actor = scope, names_actor

    @classmethod
    def from_fields(cls, content: Mapping[str, Any]) -> Self:
        """Parse the content of a request.

        Args:
            content: The arguments, and fields of the envelope, which are ignored.

        Raises:
            WireError: An argument is missing or unknown, has another type, or is out of bounds.
        """
        kind: Any = cls
        known, types, values = arguments(cls), field_types(kind), {}
        for name, value in content.items():
            if name in known:
                values[name] = _in_bounds(check_field(value, types[name], name), known[name])
            elif name not in ENVELOPE:
                raise WireError(_unknown(cls, name), name)
        for name, argument in known.items():
            if name not in values and is_required(argument):
                raise WireError(f"'{name}' is required for {cls.wire_name!r}", name)
        return cls(**values)

    def to_fields(self) -> dict[str, Any]:
        """Return the arguments that differ from their defaults, as ``from_fields`` takes them."""
        return {
            name: value
            for name, argument in arguments(type(self)).items()
            if (value := getattr(self, name)) != _default(argument)
        }


def bounded(default: Any = MISSING, *, minimum: float | None = None) -> Any:
    """Return the field of an argument that is a number of at least ``minimum``."""
    return field(default=default, metadata={"minimum": minimum})


def optional(default: Any) -> Any:
    """Return the field of a reply that its JSON lacks where it has the default."""
    return field(default=default, metadata={OPTIONAL: True})


def arguments(cls: Any) -> dict[str, Field[Any]]:
    """Return the fields of an operation by name."""
    return {argument.name: argument for argument in fields(cls)}


def _in_bounds(value: Any, argument: Field[Any]) -> Any:
    minimum = constraints_of(argument).get("minimum")
    # The comparison is false for NaN.
    if minimum is not None and value is not None and not value >= minimum:
        raise WireError(
            f"'{argument.name}' must be at least {minimum}, not {value!r}", argument.name
        )
    return value


def _unknown(cls: type[Operation[Any]], name: str) -> str:
    known = arguments(cls)
    has = f"It has: {', '.join(known)}" if known else "It has no arguments"
    return f"'{name}' is not an argument of {cls.wire_name!r}. {did_you_mean(name, known)}{has}"


def _default(argument: Field[Any]) -> Any:
    factory = argument.default_factory
    return argument.default if factory is MISSING else factory()


def to_json(value: Any) -> Any:
    """Return a reply as a JSON value: dataclasses become objects."""
    if is_dataclass(value):
        return {
            each.name: to_json(getattr(value, each.name))
            for each in fields(value)
            if not (is_optional(each) and getattr(value, each.name) == each.default)
        }
    if isinstance(value, dict):
        return {key: to_json(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(each) for each in value]
    return value


def from_json(hint: type[R], value: Any) -> R:
    """Return the reply of a type that a JSON value contains.

    The runtime's types are trusted. Members of objects that the type lacks are ignored, those that
    the object lacks get their defaults: the runtime may have another version.

    Raises:
        KernelError: The object lacks a member that has no default.
    """
    return cast("R", _of(hint, value))


def reply_to(operation: Operation[R], body: bytes | None) -> R:
    """Return the reply to an operation from the body of the kernel's message.

    Raises:
        KernelError: It lacks a member that has no default.
    """
    return cast("R", _of(operation.reply, json.loads(body or b"null")))


def _of(hint: Any, value: Any) -> Any:
    if is_dataclass(hint):
        kind: Any = hint
        known = field_types(kind)
        for member in fields(kind):
            if is_required(member) and member.name not in value:
                raise KernelError(
                    f"The kernel's reply has no {member.name!r} in {kind.__name__}, because it has "
                    "another version of oh_jupyter. Update that, and restart the kernel."
                )
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
