"""Contracts of endpoints: the parameters, bodies and responses that ``openapi.yaml`` describes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field
from typing import Any

from oh_jupyter.schema import Schema

KERNEL_ERRORS = (424, 500, 502, 503, 504)
"""Statuses of endpoints that ask a kernel."""

BYTES: Schema = {}
TEXT: Schema = {"type": "string"}


@dataclass(frozen=True)
class Answer:
    """A successful response.

    Attributes:
        description: Its meaning.
        json: Type of its JSON, or the schema; None without JSON.
        contents: Schemas of its other media types, by their names.
        headers: Schemas of its headers, by their names.
        status: Its status.
    """

    description: str
    json: Any = None
    contents: Mapping[str, Schema] = field(default_factory=dict)
    headers: Mapping[str, Schema] = field(default_factory=dict)
    status: int = 200


@dataclass(frozen=True)
class Body:
    """The body of a request.

    Attributes:
        json: Type of its JSON, or the schema; None without JSON.
        contents: Dataclasses or schemas of its other media types, by their names.
        is_required: Whether a request must have one.
        is_open: Whether unknown fields are ignored.
    """

    json: Any = None
    contents: Mapping[str, Any] = field(default_factory=dict)
    is_required: bool = True
    is_open: bool = False


@dataclass(frozen=True)
class Contract:
    """Parameters, body and responses of an endpoint.

    Attributes:
        answers: The successful responses; those of a declared operation follow from it.
        query: Dataclass of the parameters in the query.
        headers: Schemas of the headers that it reads, by their names.
        body: The body.
        errors: Statuses besides those that follow from the route and the body.
        kernel_errors: Statuses with which a kernel fails; None for those of the table.
        refusals: Statuses with which MCP's transport rejects a request.
    """

    answers: tuple[Answer, ...] = ()
    query: type | None = None
    headers: Mapping[str, Schema] = field(default_factory=dict)
    body: Body | None = None
    errors: tuple[int, ...] = ()
    kernel_errors: tuple[int, ...] | None = None
    refusals: tuple[int, ...] = ()


def returns(description: str, json: Any = None, status: int = 200) -> tuple[Answer, ...]:
    """Return the only response of an endpoint."""
    return (Answer(description, json, status=status),)


def component(name: str) -> Schema:
    """Return the schema that refers to a component without a dataclass."""
    return {"$ref": f"#/components/schemas/{name}"}


def whole(pattern: str) -> str:
    """Return a regular expression of JavaScript for texts that match one of Python as a whole."""
    characters = pattern.replace(r"\w", "A-Za-z0-9_")
    return "^" + re.sub(r"(?<!\\)-\]", r"\-]", characters) + "$"


def constrained(default: Any = MISSING, **constraints: Any) -> Any:
    """Return the field of a dataclass with constraints in the words of JSON schemas.

    Numbers of a query also need ``expected``, which completes "must be …" in an error; required
    texts need ``missing``, the whole error.
    """
    return field(default=default, metadata=constraints)


@dataclass(frozen=True)
class IfLoaded:
    """The query of an endpoint that frontends poll.

    Attributes:
        if_loaded: Respond with 204 instead of 424 if oh_jupyter is not loaded.
    """

    if_loaded: bool = False


@dataclass(frozen=True)
class Error:
    """Error in the formats of FastAPI and Jupyter.

    Attributes:
        detail: The reason, and what to do.
        message: The same.
        error: Name of the error's class in ``oh_jupyter.errors``.
        field: Invalid part of the request.
        withdrawn: If the kernel does not reply: true if the request is certainly not executed and
            can be repeated; false if it may still be executed.
        code: Its status, for E2B's clients.
    """

    detail: str
    message: str
    error: str | None = None
    field: str | None = None
    withdrawn: bool | None = None
    code: int | None = None


NOT_LOADED = Answer("oh_jupyter is not loaded, and `if_loaded` is true.", status=204)
