"""Questions of an agent to the person, as forms, and the answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

from acp import RequestError
from acp.schema import (
    AcceptElicitationResponse,
    CancelElicitationResponse,
    CreateElicitationResponse,
    DeclineElicitationResponse,
    ElicitationSchema,
)

from oh_jupyter.runtime.confirmation import Decision
from oh_jupyter.runtime.form import Choice, FieldType, FormField
from oh_jupyter.text import visible

MAX_FIELDS = 50
MAX_CHOICES = 500

_LIMITS = {"string": ("minLength", "maxLength"), "array": ("minItems", "maxItems")}
"""Names of the limits in the schema of a type; those of numbers are minimum and maximum."""


def form_of(schema: ElicitationSchema) -> tuple[FormField, ...]:
    """Return the fields of an agent's schema; refuse types that ACP does not define."""
    properties = schema.properties or {}
    if len(properties) > MAX_FIELDS:
        raise _invalid(f"a form has at most {MAX_FIELDS} fields")
    required = schema.required or ()
    return tuple(
        _field(name, each.model_dump(by_alias=True, exclude_none=True), name in required)
        for name, each in properties.items()
    )


def _field(name: str, schema: Mapping[str, Any], is_required: bool) -> FormField:
    type: Any = schema.get("type")
    if type not in get_args(FieldType):
        raise _invalid(f"the field {name!r} has an unknown type {type!r}")
    lowest, highest = _LIMITS.get(type, ("minimum", "maximum"))
    choices = _choices(schema["items"] if type == "array" else schema)
    if len(choices) > MAX_CHOICES:
        raise _invalid(f"the field {name!r} has more than {MAX_CHOICES} choices")
    if type == "array" and not choices:
        raise _invalid(f"the field {name!r} has nothing to choose from")
    return FormField(
        name,
        visible(schema.get("title") or name),
        type,
        visible(schema.get("description") or ""),
        choices,
        is_required,
        schema.get("default"),
        schema.get(lowest),
        schema.get(highest),
    )


def _choices(schema: Mapping[str, Any]) -> tuple[Choice, ...]:
    titled = schema.get("oneOf") or schema.get("anyOf") or ()
    return (
        *(Choice(each["const"], visible(each["title"])) for each in titled),
        *(Choice(each, each) for each in schema.get("enum") or ()),
    )


def elicitation_response(decision: Decision | None) -> CreateElicitationResponse:
    """Return an agent's answer from a person's decision; None if there was none."""
    if decision is None:
        return CancelElicitationResponse(action="cancel")
    if not decision.approved:
        return DeclineElicitationResponse(action="decline")
    return AcceptElicitationResponse(action="accept", content=dict(decision.values))


def _invalid(reason: str) -> RequestError:
    return RequestError.invalid_params({"details": reason})
