"""The declarations of all operations, and the runtime's replies to invalid requests for each."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from typing import Any, get_type_hints

import pytest

from oh_jupyter.control_messages import Reply
from oh_jupyter.errors import KernelError, WireError
from oh_jupyter.kernel.control.rpc import find_handler
from oh_jupyter.operations import ENVELOPE, Operation, arguments, from_json, to_json
from oh_jupyter.operations.catalog import declared
from oh_jupyter.operations.kernel import CellSummary
from oh_jupyter.schema import documented_names, field_types, is_required, summary, type_schema
from oh_jupyter.server.handlers import KERNEL_TABLES, SERVER_TABLES
from oh_jupyter.server.handlers.openapi.schemas import object_schema
from oh_jupyter.testing import LiveKernel

pytest_plugins = ("oh_jupyter.testing.kernel",)

OPERATIONS = declared()

EXAMPLES: dict[str, Any] = {
    "string": "text",
    "boolean": True,
    "integer": 3,
    "number": 2.5,
    "array": [],
    "object": {},
    "null": None,
}
"""A JSON value of each type."""


def types_of(hint: Any) -> set[str]:
    """Return the JSON types that a type hint admits; none if it admits all."""
    schema = type_schema(hint)
    options = schema.get("anyOf", [schema])
    types = {option["type"] for option in options if "type" in option}
    return types | ({"integer"} if "number" in types else set())


def wrong_values(operation: type[Operation[Any]]) -> Iterator[tuple[str, Any]]:
    """Yield each argument with a value of each type that it does not admit."""
    for name, hint in field_types(operation).items():
        if types := types_of(hint):
            yield from ((name, EXAMPLES[each]) for each in EXAMPLES.keys() - types)


def valid_fields(operation: type[Operation[Any]]) -> dict[str, Any]:
    """Return values of the required arguments."""
    fields = {}
    for name, argument in arguments(operation).items():
        if is_required(argument):
            schema = type_schema(field_types(operation)[name])
            fields[name] = schema["enum"][0] if "enum" in schema else EXAMPLES[schema["type"]]
    return fields


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda each: each.wire_name)
def test_declaration(operation: type[Operation[Any]]) -> None:
    assert summary(operation).endswith(".")
    assert arguments(operation).keys() == documented_names(operation).keys()
    assert not arguments(operation).keys() & ENVELOPE
    assert find_handler(operation.wire_name).declaration is operation
    execute = find_handler(operation.wire_name).execute
    hints = get_type_hints(execute)
    assert hints["op"] is operation
    assert hints["return"] in (operation.reply, Reply)
    fields = valid_fields(operation)
    asked = operation.from_fields({**fields, "op": operation.wire_name, "key": "k"})
    with pytest.raises(dataclasses.FrozenInstanceError):
        asked.anything = 1  # type: ignore[attr-defined]
    assert operation.from_fields(json.loads(json.dumps(asked.to_fields()))) == asked
    assert asked.to_fields() == fields


def test_names_differ() -> None:
    assert len({each.wire_name for each in OPERATIONS}) == len(OPERATIONS)


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda each: each.wire_name)
def test_wrong_arguments(operation: type[Operation[Any]], live_kernel: LiveKernel) -> None:
    fields = valid_fields(operation)
    attempts = [({**fields, name: value}, name) for name, value in wrong_values(operation)]
    attempts += [({**fields, "unheard_of": 1}, "unheard_of")]
    attempts += [
        ({**fields, name[:-1] + "#": 1}, name[:-1] + "#") for name in field_types(operation)
    ]
    attempts += [({n: v for n, v in fields.items() if n != name}, name) for name in fields]
    sent = [live_kernel.send(operation.wire_name, **wrong) for wrong, _ in attempts]
    for (wrong, name), id in zip(attempts, sent, strict=True):
        reply, body = live_kernel.reply(id)
        assert (reply["status"], reply["ename"], body) == ("error", "WireError", None), wrong
        assert reply["field"] == name
        assert reply["evalue"].startswith(f"'{name}' ")


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda each: each.wire_name)
def test_agents_may_not_ask_for_what_is_a_persons(
    operation: type[Operation[Any]], live_kernel: LiveKernel
) -> None:
    asked = {**valid_fields(operation), "unheard_of": 1, "by_agent": True}
    reply = live_kernel.ask(operation.wire_name, **asked)[0]
    expected = "NotApprovedError" if operation.scope == "person" else "WireError"
    assert (reply["status"], reply["ename"]) == ("error", expected)


def test_endpoints_ask_only_for_what_anyone_may() -> None:
    tables = (*KERNEL_TABLES, *SERVER_TABLES)
    asked = [route.operation for table in tables for route in table.routes if route.operation]
    assert {each.scope for each in asked} == {"anyone"}


def test_messages() -> None:
    from oh_jupyter.operations.changes import RecordKeep, Rewind

    for cls, fields, message in (
        (
            Rewind,
            {"prewiew": True},
            "'prewiew' is not an argument of 'rewind'. Did you mean preview?",
        ),
        (Rewind, {"id": "3"}, "'id' must be an integer or null, not a string"),
        (Rewind, {"source": "me"}, "'source' must be one of 'agent', 'user', not 'me'"),
        (RecordKeep, {"name": "a"}, "'count' is required for 'record_keep'"),
        (RecordKeep, {"name": "a", "count": 0}, "'count' must be at least 1, not 0"),
    ):
        with pytest.raises(WireError, match=message):
            cls.from_fields(fields)


def test_replies_lack_optional_parts_with_their_defaults() -> None:
    fields = {"first_line": "1", "lines": 1, "seconds": 0.5, "by": "agent"}
    for wire in (fields, {**fields, "waits": True}):
        assert to_json(from_json(CellSummary, wire)) == wire
    required = object_schema(CellSummary, complete=True)["required"]
    assert required == list(fields)


def test_a_reply_of_another_version_is_refused_by_the_missing_member() -> None:
    with pytest.raises(KernelError, match=r"has no 'first_line' in CellSummary.*another version"):
        from_json(CellSummary, {"lines": 1})
