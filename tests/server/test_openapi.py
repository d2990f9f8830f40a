"""``openapi.yaml`` against the handlers, and against what a server really answers."""

from __future__ import annotations

import hashlib
import os
import shlex
from dataclasses import MISSING, fields
from typing import Any

import pytest
import requests
import schemathesis
import yaml
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from openapi_spec_validator import validate
from schemathesis import GenerationMode, checks

from oh_jupyter.errors import WireError
from oh_jupyter.events import ACTIONS, OBSERVATIONS, Event
from oh_jupyter.events.wire import from_wire, to_wire
from oh_jupyter.schema import field_types
from oh_jupyter.server.handlers import HANDLERS, NotFoundHandler, NotOfE2BHandler
from oh_jupyter.server.handlers.base import OhHandler
from oh_jupyter.server.handlers.openapi.operations import path_of
from oh_jupyter.server.handlers.tables import described

DOCUMENT = described()
METHODS = ("get", "put", "post", "delete", "patch")


def test_it_is_openapi() -> None:
    validate(DOCUMENT)


def methods_of(handler: type[OhHandler]) -> set[str]:
    inherited = {name: getattr(OhHandler, name) for name in METHODS}
    return {name for name in METHODS if getattr(handler, name) is not inherited[name]}


def test_handlers_and_addresses_agree() -> None:
    served = {
        path_of(pattern)[0]: methods_of(handler)
        for pattern, handler in HANDLERS
        if handler not in (NotFoundHandler, NotOfE2BHandler)
    }
    described = {path: set(item) & set(METHODS) for path, item in DOCUMENT["paths"].items()}
    assert described == served


def validator(name: str) -> Draft202012Validator:
    components = {"schemas": DOCUMENT["components"]["schemas"]}
    return Draft202012Validator({"$ref": f"#/components/schemas/{name}", "components": components})


NAMED_JSON = st.dictionaries(st.text(), st.none() | st.integers() | st.text(), max_size=2)


def events(cls: type[Event]) -> st.SearchStrategy[Event]:
    """Any event of a class."""
    mappings = {}
    for name, hint in field_types(cls).items():
        if "dict" in str(hint):
            values = st.lists(NAMED_JSON, max_size=2) if "list" in str(hint) else NAMED_JSON
            mappings[name] = st.none() | values if "None" in str(hint) else values
    seconds = {"timeout": st.none() | st.floats(0, 1e8)} if cls in ACTIONS.values() else {}
    return st.builds(cls, **mappings, **seconds)


def required(cls: type[Event]) -> list[str]:
    return [f.name for f in fields(cls) if f.default is MISSING and f.default_factory is MISSING]


@pytest.mark.parametrize("cls", [*ACTIONS.values(), *OBSERVATIONS.values()])
def test_schemas_describe_what_is_written_and_read(cls: type[Event]) -> None:
    described = validator(cls.__name__)
    union = validator("Action" if cls in ACTIONS.values() else "Observation")

    @settings(max_examples=30)
    @given(events(cls))
    def agree(event: Event) -> None:
        written = to_wire(event)
        described.validate(written)
        union.validate(written)
        assert to_wire(from_wire(written)) == written

    agree()


@pytest.mark.parametrize("cls", ACTIONS.values())
def test_schemas_refuse_what_is_refused(cls: type[Event]) -> None:
    described = validator(cls.__name__)
    values = {"inputs": {}, "recall_type": "knowledge"}
    good = to_wire(cls(**{name: values.get(name, "x") for name in required(cls)}))
    assert described.is_valid(good)
    wrong = [{**good, "args": {**good["args"], "unknown": 1}}, {**good, "timeout": -1}]
    wrong += [{**good, "args": {**good["args"], name: 3.5}} for name in good["args"]]
    wrong += [
        {**good, "args": {n: value for n, value in good["args"].items() if n != name}}
        for name in required(cls)
    ]
    for data in wrong:
        assert not described.is_valid(data)
        if data["args"].get("security_risk") != 3.5:  # which the protocol drops
            with pytest.raises(WireError):
                from_wire(data)


# Credentials are the matter of test_authorization.py.
PUBLIC = {**DOCUMENT, "security": [], "components": {**DOCUMENT["components"]}}
del PUBLIC["components"]["securitySchemes"]
OPERATIONS = [found.ok() for found in schemathesis.openapi.from_dict(PUBLIC).get_all_operations()]


def name_of(operation: Any) -> str:
    return str(operation.definition.raw["operationId"]).removesuffix("OnKernel")


ENDLESS = {"mcpStream", "mcpSse"}
"""Streams that last as long as their session; test_mcp.py follows them."""

UNLIKELY = {
    # Only of a browser; starting one and a second for each step would take minutes.
    *("screenshot", "marks"),
    # Only with a session, or an action that waits for a person, which chance does not make.
    *("mcpMessage", "mcpEnd", "mcpSseMessage", "confirm"),
}
"""What random requests do not succeed with; they must be refused well."""

CHECKS = [
    checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
]

EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", "6"))
"""Requests to each address by each method; with 20 and more, some of them have to succeed."""


def send(server: Any, method: str, path: str, **options: Any) -> Any:
    headers = {**server.headers, **options.pop("headers", {})}
    answer = requests.request(method, server.url + path, headers=headers, timeout=60, **options)
    answer.raise_for_status()
    return answer


def test_the_server_sends_it_as_yaml(live_server: Any) -> None:
    answer = send(live_server, "get", "/oh_jupyter/openapi.yaml")
    assert answer.headers["Content-Type"] == "application/yaml"
    assert yaml.safe_load(answer.content) == DOCUMENT


@pytest.fixture(scope="module")
def kernel_id(live_server: Any) -> str:
    """A kernel that has acted, as the default one has."""
    kernel = send(live_server, "post", "/api/kernels").json()["id"]
    action = {"action": {"action": "run", "args": {"command": "true"}}}
    for below in ("/oh_jupyter", f"/oh_jupyter/kernels/{kernel}"):
        send(live_server, "post", f"{below}/execute_action", json=action)
    headers = {"X-Request-ID": "known"}
    send(live_server, "post", "/oh_jupyter/execute_action", json=action, headers=headers)
    return str(kernel)


@pytest.fixture
def known(live_server: Any, kernel_id: str) -> dict[str, Any]:
    """Path parameters that exist: of a kernel, a response, an event, a file of the store."""
    send(live_server, "put", "/oh_jupyter/store/known", data=b"contents")
    return {"kernel_id": kernel_id, "key": "known", "path": "known", "event_id": 1}


def inside(place: str, path: str) -> str:
    return f"{place}/{path.replace('..', '').lstrip('/')}"


def tamed(action: dict[str, Any], place: str) -> dict[str, Any]:
    """An action that can do no harm to the machine: what is random in it is data only."""
    args = dict(action["args"])
    if isinstance(args.get("path"), str):
        args["path"] = inside(place, args["path"])
    if isinstance(args.get("code"), str):
        args["code"] = repr(args["code"])
    if action.get("action") == "run" and isinstance(args.get("command"), str):
        args["command"] = f"printf %s {shlex.quote(args['command'])}"
    if args.get("confirmation_state") == "awaiting_confirmation":
        del args["confirmation_state"]  # a person would have to come
    return {**action, "args": args}


def confine(case: Any, place: str, known: dict[str, Any]) -> None:
    """Keep what a random request changes in one directory; mostly let it find something."""
    for name, value in (case.path_parameters or {}).items():
        chosen = hashlib.md5(str(value).encode()).digest()[0]
        if name in known and chosen % 4:
            case.path_parameters[name] = known[name]
    for name in ("destination", "path"):
        if isinstance((case.query or {}).get(name), str):
            case.query[name] = inside(place, case.query[name])
    if isinstance(case.body, dict) and isinstance(case.body.get("action"), dict):
        action = case.body["action"]
        if isinstance(action.get("args"), dict):
            case.body = {**case.body, "action": tamed(action, place)}
    if case.path.endswith("/e2b/execute") and isinstance(case.body, dict):
        case.body = {**case.body, "code": repr(case.body.get("code"))}
    if case.path.endswith("/update_mcp_server") and isinstance(case.body, list):
        case.body = [
            {**server, "command": "no-such-program"} if isinstance(server, dict) else server
            for server in case.body
        ]


@pytest.mark.thorough
@pytest.mark.parametrize(
    "operation",
    [
        pytest.param(
            operation,
            id=operation.label,
            # The same handlers, with a kernel named.
            marks=[pytest.mark.slow] if "{kernel_id}" in operation.path else [],
        )
        for operation in sorted(
            (operation for operation in OPERATIONS if name_of(operation) not in ENDLESS),
            # Whatever saves afterwards waits for the windows that it makes up.
            key=lambda operation: operation.label == "PUT /oh_jupyter/unsaved",
        )
    ],
)
def test_whatever_is_sent_is_answered_as_described(
    operation: Any, live_server: Any, known: dict[str, Any]
) -> None:
    folder = live_server.directory / "place"
    folder.mkdir(exist_ok=True)
    cases = [operation.as_strategy(generation_mode=mode) for mode in GenerationMode]
    statuses = set()

    # Without a seed of its own, a run would find what the next one does not.
    @seed(20)
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.one_of(*cases))
    def answered(case: Any) -> None:
        confine(case, str(folder), known)
        answer = case.call_and_validate(
            base_url=live_server.url, headers=live_server.headers, checks=CHECKS, timeout=60
        )
        statuses.add(answer.status_code)

    answered()
    assert statuses
    assert EXAMPLES < 20 or min(statuses) < 300 or name_of(operation) in UNLIKELY
