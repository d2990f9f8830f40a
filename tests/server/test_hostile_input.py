"""Bodies, paths and names that nobody means well with are refused, and nothing breaks."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

pytestmark = [pytest.mark.thorough, pytest.mark.shared_server]

DEEP = 100_000
BODIES = {
    "deep arrays": b"[" * DEEP + b"]" * DEEP,
    "deep objects": b'{"a":' * DEEP + b"1" + b"}" * DEEP,
    "a deep argument": b'{"action": {"action": "run", "args": {"command": %s}}}'
    % (b"[" * DEEP + b"]" * DEEP),
    "900 levels": b'{"action": {"action": "call_tool_mcp", "args": {"name": "x", "arguments": %s}}}'
    % (b'{"a":' * 900 + b"1" + b"}" * 900),
    "a long integer": b'{"action": {"action": "run", "args": {"command": %s}}}' % (b"9" * 100_000),
    "a large integer": b'{"action": {"action": "read", "args": {"path": "/x", "start": %s}}}'
    % (b"9" * 4000),
    "infinity": b'{"action": {"action": "run", "args": {"command": "ls"}, "timeout": 1e999}}',
    "NaN": b'{"action": {"action": "run", "args": {"command": "ls"}, "timeout": NaN}}',
    "half a pair": rb'{"action": {"action": "run", "args": {"command": "echo \ud800"}}}',
    "names twice": b'{"action": {"action": "run", "args": {"command": "a", "command": "b"}}}',
    "Latin-1": '{"action": {"action": "run", "args": {"command": "é"}}}'.encode("latin-1"),
    "UTF-16": '{"action": {}}'.encode("utf-16"),
    "two values": b'{"action": {"action": "run", "args": {"command": "ls"}}} {}',
    "a mere number": b"1",
    "NUL": b"\0",
}
POSTS = (
    "execute_action",
    "list_files",
    "update_mcp_server",
    "confirmations/0",
    "mcp",
    "mcp/messages/?session_id=" + "0" * 32,
)
NAMES = ("a\0b", "x" * 5000, "a\nb", "../../../etc/x", "/etc/x", "a/../../../x", "\ud7ff" * 300)


@pytest.fixture
def send(mcp_url: str, jp_auth_header: dict[str, str]) -> Any:
    """Send a request as it is, without a client that mends addresses: status and JSON."""

    async def send(method: str, path: str, body: bytes = b"", *more: str) -> tuple[int, Any]:
        parts = urlsplit(mcp_url)
        reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
        head = [
            f"{method} {parts.path}/{path} HTTP/1.1",
            f"Host: {parts.netloc}",
            f"Authorization: {jp_auth_header['Authorization']}",
            f"Content-Length: {len(body)}",
            "Accept: application/json, text/event-stream",
            "Connection: close",
            *more,
        ]
        writer.write("\r\n".join([*head, "", ""]).encode() + body)
        async with asyncio.timeout(60):
            answer = await reader.read()
        writer.close()
        head_bytes, _, content = answer.partition(b"\r\n\r\n")
        status = int(head_bytes.split()[1])
        try:
            return status, json.loads(content)
        except ValueError:
            return status, content

    return send


@pytest.mark.thorough
async def test_bodies(send: Any, act: Any, plain_kernel: str) -> None:
    json_type = "Content-Type: application/json"
    status, observation = await act("run", plain_kernel, command="echo $$")
    shell = observation["content"]
    for where in POSTS:
        for name, body in BODIES.items():
            status, answer = await send("POST", f"kernels/{plain_kernel}/{where}", body, json_type)
            assert 400 <= status < 500, (where, name, status, answer)
            assert answer, (where, name)
    status, observation = await act("run", plain_kernel, command="echo $$")
    assert (status, observation["content"]) == (200, shell)


async def test_arguments_of_mcp_tools(mcp_connect: Any) -> None:
    from mcp.shared.exceptions import MCPError

    deep: Any = 1
    for _ in range(200):
        deep = {"a": deep}
    async with mcp_connect(query="?skills=true") as session:
        for name, arguments in (
            ("skill_open_file", {"path": "\0", "line_number": 10**400}),
            ("read", {"path": "a\0b"}),
            ("run", {"command": "a\0b"}),
            ("run", {"command": "ls", "timeout": 10**400}),
        ):
            result = await session.call_tool(name, arguments)
            assert result.is_error, (name, result)
            assert result.content[0].text
        with pytest.raises(MCPError, match="recursion limit"):
            await session.call_tool("skill_open_file", {"path": deep})
        assert not (await session.call_tool("run", {"command": "true"})).is_error


async def test_outputs_of_cells(act: Any, ask: Any) -> None:
    code = "print('\\ud800'); {'\\udfff': float('nan'), 'n': 10**4000}"
    status, observation = await act("run_ipython", code=code)
    assert status == 200
    assert observation["content"]
    assert (await ask("events"))[0] == 200


async def test_paths_in_addresses(send: Any, act: Any) -> None:
    await act("run", command="true")
    escapes = (
        "..%2f..%2fx", "%2e%2e%2f%2e%2e%2fx", "%2e%2e/%2e%2e/x", "a%00b", "%252e%252e%252fx/..",
        "..%5c..%5cx/..", "x" * 5000, "%ff%fe", "%2f%2f..%2f..%2fetc%2fx", "..",
    )  # fmt: skip
    for path in escapes:
        for method in ("PUT", "GET", "DELETE"):
            status, answer = await send(method, f"store/{path}", b"x" if method == "PUT" else b"")
            assert 400 <= status < 500, (method, path, status, answer)
    for path in ("%00", "a%00b", "%ff", "x" * 5000, "relative", "", "%2e%2e", "/no/such"):
        status, answer = await send("GET", f"download_files?path={path}")
        assert 400 <= status < 500, (path, status, answer)
    for path in ("%00", "..%2f", "%ff", "x" * 200):
        status, answer = await send("GET", f"requests/{path}")
        assert 400 <= status < 500, (path, status, answer)
        status, answer = await send("GET", f"kernels/{path}/events")
        assert 400 <= status < 500, (path, status, answer)
    assert (await act("run", command="echo on"))[1]["content"] == "on"


async def test_names_of_uploads(mcp_url: str, jp_auth_header: Any, tmp_path: Path) -> None:
    parent = tmp_path / "parent"
    target, outside = parent / "target", parent / "outside"
    target.mkdir(parents=True)
    outside.mkdir()
    (target / "link").symlink_to(outside)
    async with httpx.AsyncClient(headers=jp_auth_header, timeout=60) as client:
        for name in NAMES:
            for destination in (str(target), f"{target}/a\0b", "x" * 5000):
                params = {"destination": destination}
                answer = await client.post(
                    f"{mcp_url}/upload_file", params=params, files={"file": (name, b"x")}
                )
                assert answer.status_code != 200 or "\0" not in destination
                assert answer.status_code == 200 or 400 <= answer.status_code < 500, (
                    name, destination, answer.text,
                )  # fmt: skip
        answer = await client.get(f"{mcp_url}/alive")
        assert answer.status_code == 200
    assert not list(outside.iterdir())
    assert {path.name for path in parent.iterdir()} == {"target", "outside"}
