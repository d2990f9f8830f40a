"""The operations of OpenAPI, one for each route."""

from __future__ import annotations

import copy
import re
from dataclasses import is_dataclass
from typing import Any, get_args

from oh_jupyter.operations import Operation, arguments
from oh_jupyter.schema import Schema, summary
from oh_jupyter.server.handlers.contract import TEXT, Answer, Body
from oh_jupyter.server.handlers.openapi.components import RESPONSES, parameter, tag_of
from oh_jupyter.server.handlers.openapi.schemas import (
    first_line,
    markdown,
    object_schema,
    optional_schema,
    schema_of,
)
from oh_jupyter.server.handlers.routes import Route, RouteTable

_GROUP = re.compile(r"\(\?P<(\w+)>([^)]*)\)")


def paths(
    server_tables: tuple[RouteTable, ...], kernel_tables: tuple[RouteTable, ...]
) -> dict[str, Any]:
    """Return the path items of all routes, those of a kernel also below ``kernels/{kernel_id}``."""
    items: dict[str, Any] = {}
    of_kernels: dict[str, Any] = {}
    for table in (*server_tables, *kernel_tables):
        for route in table.routes:
            path, groups = path_of(route.pattern)
            in_path = [parameter(name, pattern) for name, pattern in groups.items()]
            tag = "server" if table in server_tables else tag_of(path)
            operation = _operation(route, table, tag)
            _add(items, f"/oh_jupyter{path}", in_path, route.method, operation)
            if table in kernel_tables:
                in_path = [parameter("kernel_id", r"[\w-]+"), *in_path]
                path = f"/oh_jupyter/kernels/{{kernel_id}}{path}"
                _add(of_kernels, path, in_path, route.method, _on_kernel(operation))
    return items | of_kernels


def path_of(pattern: str) -> tuple[str, dict[str, str]]:
    """Return a route's pattern as OpenAPI writes it, and the patterns of its parameters by name."""
    path = _GROUP.sub(r"{\1}", pattern).replace("\\.", ".")
    return path, dict(_GROUP.findall(pattern))


def reply_types(tables: tuple[RouteTable, ...]) -> list[Any]:
    """Return the types of all replies in JSON."""
    return [answer.json for route in _routes(tables) for answer in _answers(route)]


def body_types(tables: tuple[RouteTable, ...]) -> list[Any]:
    """Return the types of the parts of all bodies in JSON that are no objects."""
    bodies = [body.json for body in map(_body, _routes(tables)) if body]
    return [part for each in bodies for part in get_args(each)]


def _routes(tables: tuple[RouteTable, ...]) -> list[Route]:
    return [route for table in tables for route in table.routes]


def _add(items: dict[str, Any], path: str, in_path: list[Any], method: str, operation: Any) -> None:
    item = items.setdefault(path, {"parameters": in_path} if in_path else {})
    item[method] = operation


def _on_kernel(operation: dict[str, Any]) -> dict[str, Any]:
    copied = copy.deepcopy(operation)
    copied["operationId"] += "OnKernel"
    not_found = {"$ref": f"#/components/responses/{RESPONSES[404].name}"}
    copied["responses"] = dict(sorted({"404": not_found, **copied["responses"]}.items()))
    return copied


def _operation(route: Route, table: RouteTable, tag: str) -> dict[str, Any]:
    title, _, more = summary(route.documented or route.respond).partition("\n\n")
    described: dict[str, Any] = {"tags": [tag], "operationId": route.name}
    described["summary"] = markdown(title)
    if more:
        described["description"] = markdown(more)
    if parameters := _parameters(route):
        described["parameters"] = parameters
    if body := _body(route):
        described["requestBody"] = _described_body(body)
    answers = {str(answer.status): _described_answer(answer) for answer in _answers(route)}
    described["responses"] = dict(sorted({**answers, **_errors(route, table, body)}.items()))
    return described


def _parameters(route: Route) -> list[Schema]:
    contract, described = route.contract, []
    if contract.query is not None:
        schema = optional_schema(contract.query)
        for name, value in schema["properties"].items():
            described.append(_parameter(name, "query", value))
            if name in schema.get("required", ()):
                described[-1]["required"] = True
    described += [_parameter(name, "header", value) for name, value in contract.headers.items()]
    return described


def _parameter(name: str, sent_in: str, schema: Schema) -> Schema:
    return {"name": name, "in": sent_in, **_with_description(schema)}


def _with_description(schema: Schema) -> Schema:
    """Return a parameter's or header's description and its schema, by default of a text."""
    rest = {name: value for name, value in schema.items() if name != "description"}
    return {"description": schema["description"], "schema": {**TEXT, **rest}}


def _body(route: Route) -> Body | None:
    declared = route.operation
    return Body(declared) if declared and arguments(declared) else route.contract.body


def _described_body(body: Body) -> Schema:
    contents = {**body.contents, **_json(body.json)}
    content = {name: _content(_body_schema(kind, body)) for name, kind in contents.items()}
    return {**({"required": True} if body.is_required else {}), "content": content}


def _body_schema(kind: Any, body: Body) -> Schema:
    if not isinstance(kind, type) or not is_dataclass(kind):
        return schema_of(kind)
    schema = object_schema(kind)
    if body.is_open:
        del schema["additionalProperties"]
    return schema


def _answers(route: Route) -> tuple[Answer, ...]:
    declared: type[Operation[Any]] | None = route.operation
    if declared is None:
        return route.contract.answers
    reply = declared.reply
    return (Answer(first_line(reply) if is_dataclass(reply) else "All of them.", reply),)


def _described_answer(answer: Answer) -> Schema:
    headers = {name: _with_description(value) for name, value in answer.headers.items()}
    contents = {**_json(answer.json), **answer.contents}
    content = {name: _content(schema_of(kind)) for name, kind in contents.items()}
    return {
        "description": answer.description,
        **({"headers": headers} if headers else {}),
        **({"content": content} if content else {}),
    }


def _json(kind: Any) -> dict[str, Any]:
    return {} if kind is None else {"application/json": kind}


def _content(schema: Schema) -> Schema:
    return {"schema": schema} if schema else {}


def _errors(route: Route, table: RouteTable, body: Body | None) -> dict[str, Schema]:
    contract = route.contract
    in_kernel = table.kernel_errors if contract.kernel_errors is None else contract.kernel_errors
    statuses = {403, 429, *contract.errors, *in_kernel}
    if not contract.refusals:
        statuses |= {413} if route.method in ("post", "put") else set()
        statuses |= {422} if body is not None and body.json is not None else set()
    names = {status: RESPONSES[status].name for status in statuses}
    names |= dict.fromkeys(contract.refusals, "McpRefusal")
    return {str(each): {"$ref": f"#/components/responses/{names[each]}"} for each in names}
