"""Behavior that OpenHands 0.62's client needs, as tests/client/openhands_checks.py shows.

Here it is pinned without OpenHands: its requests as it writes them, and what it reads of answers.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from oh_jupyter.events.wire import EXTENSION_KEY

pytestmark = pytest.mark.shared_server

PINNED = json.loads((Path(__file__).parents[1] / "contracts" / "openhands_events.json").read_text())
ACTIONS = {wire["action"]: wire for wire in PINNED if "action" in wire}
OBSERVATIONS = {wire["observation"]: wire for wire in PINNED if "observation" in wire}

ENVELOPE = {"id", "timestamp", "source", "cause", "message", "observation", "content", "extras"}
"""What its client knows at the top level of an Observation; it passes over anything else."""

Execute = Callable[..., Awaitable[dict[str, Any]]]


@pytest.fixture
def execute(ask: Any) -> Execute:
    """Send an Action with all that OpenHands puts around it, and read the answer as it does."""

    async def execute(kind: str, **args: Any) -> dict[str, Any]:
        pinned = ACTIONS[kind]
        assert args.keys() <= pinned["args"].keys()
        action = {**pinned, "args": {**pinned["args"], **args}, "timeout": 60, "message": "…"}
        status, answer = await ask("execute_action", body={"action": action})
        assert status == 200
        observed = OBSERVATIONS[answer["observation"]]
        # Each key of the extras becomes an argument of a constructor.
        assert answer["extras"].keys() == observed["extras"].keys()
        assert answer.keys() - {"success", EXTENSION_KEY} == ENVELOPE
        assert ("success" in answer) == (answer["observation"] in ("run", "run_ipython"))
        return dict(answer)

    return execute


async def test_each_action_has_the_observation_that_its_client_expects(
    execute: Execute, jp_root_dir: Path
) -> None:
    path = str(jp_root_dir / "a.txt")
    kinds = [
        (await execute(kind, **args))["observation"]
        for kind, args in (
            ("run", {"command": "true"}),
            ("run", {"command": "true\nfalse"}),
            ("run_ipython", {"code": "1"}),
            ("write", {"path": path, "content": "one\n"}),
            ("read", {"path": path}),
            ("read", {"path": "/no/such/file"}),
            ("read", {"path": "/no/such/file", "impl_source": "oh_aci"}),
            ("edit", {"path": path, "command": "str_replace", "old_str": "one", "new_str": "2"}),
            ("edit", {"path": path, "command": "no_such_command"}),
            ("call_tool_mcp", {"name": "find_file", "arguments": {"file_name": "a.txt"}}),
        )
    ]
    assert kinds == [
        "run",
        "error",
        "run_ipython",
        "write",
        "read",
        "error",
        "read",
        "edit",
        "edit",
        "mcp",
    ]


async def test_git_is_asked_by_hidden_commands_in_shells_of_their_own(
    execute: Execute, jp_root_dir: Path
) -> None:
    await execute("run", command="cd /")
    static = {"is_static": True, "hidden": True, "cwd": str(jp_root_dir)}
    observation = await execute("run", command="pwd; seq 9000", **static)
    assert observation["extras"]["hidden"] is True
    assert observation["content"].startswith(f"{jp_root_dir}\n1\n")
    assert len(observation["content"]) > 43_000  # which is not cut to 30 000: it may be JSON
    assert (await execute("run", command="pwd"))["content"] == "/"


async def test_refusals_have_a_detail_for_the_agent(ask: Any) -> None:
    for body, status in (
        ({"action": {**ACTIONS["run"], "args": {}}}, 422),
        ({"action": ACTIONS["system"]}, 400),
        ({"action": {"action": "no_such_action"}}, 400),
    ):
        answered, answer = await ask("execute_action", body=body)
        assert answered == status
        assert isinstance(answer["detail"], str)
    for path in ("alive", "server_info"):
        answered, answer = await ask("kernels", "no-such-kernel", path)
        assert (answered, "There is no kernel" in answer["detail"]) == (404, True)


async def test_one_client_keeps_the_cookies_of_all_servers(
    mcp_url: str, jp_auth_header: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SESSION_API_KEY", "the-key")
    async with httpx.AsyncClient(timeout=60) as client:
        client.cookies.set("_xsrf", "of-another-server", domain="127.0.0.1")
        client.cookies.set("username-127-0-0-1", "of-another-server", domain="127.0.0.1")
        for headers in (jp_auth_header, {"X-Session-API-Key": "the-key"}):
            for _ in range(2):  # with the cookies of the first answer, too
                await client.get(f"{mcp_url}/alive", headers=headers)
                answer = await client.post(f"{mcp_url}/list_files", json={}, headers=headers)
                assert answer.status_code == 200


@pytest.mark.parametrize("by_session_key", [True, False])
async def test_its_mcp_client_sends_one_key_in_three_headers(
    by_session_key: bool,
    mcp_connect: Any,
    jp_auth_header: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SESSION_API_KEY", "the-key")
    token = jp_auth_header["Authorization"].removeprefix("token ")
    key = "the-key" if by_session_key else token
    headers = {
        "Authorization": f"Bearer {key}",
        "s": key,
        "X-Session-API-Key": key,
        "X-OpenHands-ServerConversation-ID": "conversation",
    }
    async with mcp_connect(transport="sse", headers=headers) as session:
        assert "run" in {tool.name for tool in (await session.list_tools()).tools}
