"""E2B's interface by plain requests: the lines of a cell, kernels of notebooks, rejections."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from oh_jupyter.testing import LiveServer


@pytest.fixture(scope="module")
def http(server: LiveServer) -> Any:
    headers = {"E2B-Traffic-Access-Token": server.token}
    with httpx.Client(base_url=f"{server.url}/oh_jupyter", headers=headers, timeout=120) as http:
        yield http


def lines(response: httpx.Response) -> list[dict[str, Any]]:
    assert response.status_code == 200, response.text
    return [json.loads(line) for line in response.text.splitlines()]


def test_a_cell_is_answered_line_by_line(http: httpx.Client) -> None:
    code = "print('out')\n__import__('sys').stderr.write('err')\n{}['key']"
    messages = lines(http.post("/e2b/execute", json={"code": code, "context_id": None}))
    kinds = [line["type"] for line in messages]
    assert set(kinds[:2]) == {"stdout", "stderr"}
    assert kinds[2:] == ["error", "number_of_executions", "end_of_execution"]
    assert (messages[2]["name"], messages[2]["value"]) == ("KeyError", "'key'")
    assert all(isinstance(line["timestamp"], int) for line in messages[:2])


def test_an_address_names_the_notebooks_kernel(server: LiveServer, http: httpx.Client) -> None:
    kernels = httpx.post(f"{server.url}/api/kernels", headers=server.headers, timeout=60)
    kernel = kernels.json()["id"]
    lines(http.post(f"/kernels/{kernel}/e2b/execute", json={"code": "here = 1"}))
    (context,) = http.get(f"/kernels/{kernel}/e2b/contexts").json()
    assert context["id"] == kernel
    again = lines(http.post("/e2b/execute", json={"code": "here", "context_id": kernel}))
    assert [line.get("text") for line in again if line["type"] == "result"] == ["1"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "code"),
        ({"code": 1}, "code"),
        ({"code": "1", "context_id": 1}, "context_id"),
        ({"code": "1", "language": "r"}, "language"),
        ({"code": "1", "env_vars": {"A=B": "x"}}, "env_vars"),
        ({"code": "1", "env_vars": {"A": 1}}, "env_vars"),
        ({"code": "1", "more": 1}, "more"),
    ],
)
def test_bad_requests_name_the_field(http: httpx.Client, body: Any, field: str) -> None:
    response = http.post("/e2b/execute", json=body)
    assert (response.status_code, response.json()["field"]) == (422, field)
    assert response.json()["code"] == 422


def test_unknown_kernels_and_directories_are_refused(http: httpx.Client) -> None:
    execute = http.post("/e2b/execute", json={"code": "1", "context_id": "none"})
    assert execute.status_code == 404
    assert http.post("/e2b/contexts", json={"cwd": "/no/such"}).status_code == 422
    other = http.get("/e2b/files?path=/etc/passwd")
    assert other.status_code == 400
    assert "not available" in other.json()["message"]


@pytest.mark.thorough
def test_a_rejection_is_an_error(server: LiveServer, http: httpx.Client) -> None:
    """The kernel has a person's setting; nobody is there to approve."""
    kernel = httpx.post(f"{server.url}/api/kernels", headers=server.headers, timeout=60).json()[
        "id"
    ]
    setting = (
        "%config OhJupyter.confirmation = 'always'\n%config OhJupyter.confirmation_timeout = 1"
    )
    code = f"%load_ext oh_jupyter\n{setting}"
    lines(http.post(f"/kernels/{kernel}/e2b/execute", json={"code": code}))
    messages = lines(http.post(f"/kernels/{kernel}/e2b/execute", json={"code": "ran = 1"}))
    assert [line["type"] for line in messages] == ["error", "end_of_execution"]
    assert messages[0]["name"] == "ActionRejectedError"
