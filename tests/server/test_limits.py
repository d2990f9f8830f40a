"""Limits of one client: excess is refused in time, without harm to the others."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from waiting import until

from oh_jupyter.errors import LimitExceededError, RequestNotFoundError
from oh_jupyter.server import result_store
from oh_jupyter.server.limits import RateLimit, is_input
from oh_jupyter.server.links import Reply

pytestmark = pytest.mark.thorough

MEGABYTE = 1024**2


def write(path: Path, content: str) -> dict[str, Any]:
    return {"action": {"action": "write", "args": {"path": str(path), "content": content}}}


@pytest.fixture
def begin(mcp_url: str, jp_auth_header: dict[str, str]) -> Any:
    """Begin a request by hand: its head and what there is of the body; the connection."""

    async def begin(
        method: str, path: str, *headers: str, body: bytes = b"", token: str | None = None
    ) -> Any:
        parts = urlsplit(mcp_url)
        reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
        credential = jp_auth_header["Authorization"] if token is None else f"token {token}"
        lines = [f"{method} {parts.path}/{path} HTTP/1.1", f"Host: {parts.netloc}"]
        lines += [f"Authorization: {credential}", *headers, "", ""]
        writer.write("\r\n".join(lines).encode() + body)
        await writer.drain()
        return reader, writer

    return begin


async def leave(writer: asyncio.StreamWriter) -> None:
    writer.transport.abort()
    with suppress(ConnectionError):
        await writer.wait_closed()


async def status_of(connection: Any) -> int:
    reader, writer = connection
    async with asyncio.timeout(60):
        line = await reader.readline()
    await leave(writer)
    return int(line.split()[1])


@pytest.mark.server_config(OhJupyter={"max_body_mb": 1})
class TestBodies:
    async def test_too_large_ones_are_refused(
        self, ask: Any, jp_root_dir: Path, jp_serverapp: Any
    ) -> None:
        target = jp_root_dir / "written"
        for path in ("execute_action", "list_files", "confirmations/0", "update_mcp_server", "mcp"):
            status, answer = await ask(*path.split("/"), body=write(target, "x" * MEGABYTE))
            assert (status, answer["error"]) == (413, "TransferTooLargeError")
            assert "max_body_mb" in answer["detail"]
        assert not list(jp_serverapp.kernel_manager.list_kernel_ids())
        assert (await ask("execute_action", body=write(target, "x" * (MEGABYTE // 2))))[0] == 200
        assert target.exists()

    async def test_those_without_a_length_too(
        self, mcp_url: str, jp_auth_header: dict[str, str], jp_root_dir: Path, jp_serverapp: Any
    ) -> None:
        target = jp_root_dir / "written"

        async def pieces(size: int) -> AsyncIterator[bytes]:
            body = json.dumps(write(target, "x" * size)).encode()
            for start in range(0, len(body), 50_000):
                yield body[start : start + 50_000]

        async with httpx.AsyncClient(headers=jp_auth_header, timeout=60) as client:
            address = f"{mcp_url}/execute_action"
            answer = await client.post(address, content=pieces(3 * MEGABYTE))
            assert answer.status_code == 413
            assert not list(jp_serverapp.kernel_manager.list_kernel_ids())
            answer = await client.post(address, content=pieces(1000))
            assert answer.status_code == 200

    async def test_uploads_have_a_limit_of_their_own(self, jp_fetch: Any) -> None:
        body = b"x" * (2 * MEGABYTE)
        answer = await jp_fetch("oh_jupyter", "store", "large", method="PUT", body=body)
        assert answer.code == 204

    async def test_a_request_is_refused_before_its_body_is_sent(self, begin: Any) -> None:
        for path in ("execute_action", "upload_file", "mcp"):
            announced = f"Content-Length: {400 * MEGABYTE}"
            stranger = await begin("POST", path, announced, token="wrong")
            assert await status_of(stranger) == 403
        large = await begin("POST", "execute_action", f"Content-Length: {400 * MEGABYTE}")
        assert await status_of(large) == 413


@pytest.mark.server_config(OhJupyter={"max_concurrent_actions": 1, "max_queued_actions": 1})
class TestTurns:
    async def test_more_actions_than_may_wait_are_refused(
        self, act: Any, ask: Any, jp_fetch: Any, plain_kernel: str, tmp_path: Path
    ) -> None:
        flag = tmp_path / "continue"
        command = f"until [ -e '{flag}' ]; do sleep 0.05; done; echo went on"
        asked = [asyncio.ensure_future(act("run", command=command)) for _ in range(3)]
        done, _ = await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED)
        (refused,) = done
        status, answer = refused.result()
        assert (status, answer["error"]) == (429, "LimitExceededError")
        assert "max_queued_actions" in answer["detail"]
        # Whatever is no action, and other kernels, have nothing to do with it.
        assert (await ask("list_files", body={}))[0] == 200
        assert (await act("run", plain_kernel, command="true"))[0] == 200
        flag.touch()
        answers = [await one for one in asked if one is not refused]
        assert [(status, answer["content"]) for status, answer in answers] == [(200, "went on")] * 2
        assert (await act("run", command="echo later"))[1]["content"] == "later"

    async def test_a_disconnected_client_frees_its_slot(
        self, act: Any, begin: Any, tmp_path: Path
    ) -> None:
        flag = tmp_path / "continue"
        command = f"until [ -e '{flag}' ]; do sleep 0.05; done; echo went on"
        body = json.dumps({"action": {"action": "run", "args": {"command": command}}}).encode()
        head = f"Content-Length: {len(body)}"
        connections = [await begin("POST", "execute_action", head, body=body) for _ in range(3)]
        readers = [asyncio.ensure_future(reader.readline()) for reader, _ in connections]
        done, waiting = await asyncio.wait(readers, return_when=asyncio.FIRST_COMPLETED)
        assert b" 429 " in done.pop().result()
        for _, writer in connections:
            await leave(writer)
        await asyncio.wait(waiting)
        async with asyncio.timeout(60):
            while (reply := await act("run", command="echo free"))[0] == 429:
                await asyncio.sleep(0.05)
        flag.touch()
        assert reply[0] == 200

    async def test_input_and_decisions_do_not_wait(
        self, act: Any, ask: Any, tmp_path: Path
    ) -> None:
        running = tmp_path / "running"
        # Bash itself forgets an interrupt that comes while it starts a program.
        command = f"bash -c ': >{running}; exec sleep 1000'"
        asked = [
            asyncio.ensure_future(act("run", command=command, blocking=True)),
            asyncio.ensure_future(act("run", command="echo waited")),
        ]
        await until(running.exists)
        async with asyncio.timeout(60):
            assert (await ask("alive"))[0] == 200
            assert (await ask("server_info"))[1]["runtime"]["running"]
            assert await ask("confirmations") == (200, [])
            status, sent = await act("run", command="C-c", is_input=True)
            assert (status, sent["extras"]["metadata"]["exit_code"]) == (200, -1)
            assert "was sent to the running command" in str(sent["extras"]["metadata"])
            (_, ended), (_, waited) = await asyncio.gather(*asked)
        assert ended["extras"]["metadata"]["exit_code"] == 130
        assert waited["content"] == "waited"

    async def test_an_answer_has_a_retry_time(
        self, mcp_url: str, jp_auth_header: dict[str, str], tmp_path: Path
    ) -> None:
        flag = tmp_path / "continue"
        command = f"until [ -e '{flag}' ]; do sleep 0.05; done"
        body = {"action": {"action": "run", "args": {"command": command}}}
        async with httpx.AsyncClient(headers=jp_auth_header, timeout=60) as client:
            address = f"{mcp_url}/execute_action"
            asked = [asyncio.ensure_future(client.post(address, json=body)) for _ in range(3)]
            done, waiting = await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED)
            assert int(done.pop().result().headers["Retry-After"]) >= 1
            flag.touch()
            assert [(await one).status_code for one in waiting] == [200, 200]


# So slow that a test's own pace does not matter.
@pytest.mark.server_config(OhJupyter={"rate_limit": 0.01})
class TestRate:
    async def test_each_asker_has_one(
        self, mcp_url: str, jp_auth_header: dict[str, str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("SESSION_API_KEY", "key")
        async with httpx.AsyncClient(timeout=60) as client:
            for headers in (jp_auth_header, {"X-Session-API-Key": "key"}):
                assert (await client.get(f"{mcp_url}/alive", headers=headers)).status_code == 200
                refused = await client.get(f"{mcp_url}/alive", headers=headers)
                assert refused.status_code == 429
                assert "rate_limit" in refused.json()["detail"]
                assert 0 < int(refused.headers["Retry-After"]) <= 100
            client.cookies.clear()  # of a login by the token
            # Strangers use up nobody's.
            assert (await client.get(f"{mcp_url}/alive")).status_code == 403


def test_the_pace_is_kept() -> None:
    now = 0.0
    limit = RateLimit(10, clock=lambda: now)
    for _ in range(11):  # a second's worth may come at once
        limit.take("a")
    with pytest.raises(LimitExceededError) as refused:
        limit.take("a")
    assert refused.value.retry_after == 1
    limit.take("b")
    now = 0.1
    limit.take("a")
    with pytest.raises(LimitExceededError):
        limit.take("a")


def test_askers_are_forgotten() -> None:
    now = 0.0
    limit = RateLimit(1, clock=lambda: now)
    for number in range(1000):
        now = float(number * 2)
        limit.take(str(number))
    assert len(limit) == 1


@pytest.mark.thorough
async def test_slow_clients_delay_no_others(
    begin: Any, act: Any, ask: Any, jp_fetch: Any, jp_root_dir: Path
) -> None:
    large = b"x" * (32 * MEGABYTE)
    await jp_fetch("oh_jupyter", "store", "large", method="PUT", body=large)
    await act("write", path=str(jp_root_dir / "large"), content="x" * 10_000_000)
    async with AsyncExitStack() as stack:
        for number in range(40):
            connections = [
                await begin("POST", "execute_action", "Content-Length: 1000", body=b'{"action'),
                await begin("PUT", f"store/slow{number}", "Content-Length: 1000", body=b"x"),
                await begin("GET", "events?whole=true", "Accept: text/event-stream"),
                await begin("GET", "store/large"),
            ]
            for _, writer in connections:
                stack.push_async_callback(leave, writer)
        async with asyncio.timeout(60):
            assert await ask("alive") == (200, {"status": "ok"})
            assert (await act("run", command="echo still there"))[1]["content"] == "still there"
    assert (await act("run", command="echo afterwards"))[1]["content"] == "afterwards"


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        ({"action": "run", "args": {"command": "C-c", "is_input": True}}, True),
        ({"action": "run", "args": {"command": "y" * 70_000, "is_input": True}}, False),
        ({"action": "run", "args": {"command": "ls", "is_input": False}}, False),
        ({"action": "run", "args": {"command": "is_input"}}, False),
        ({"action": "run", "args": ["is_input"]}, False),
        ({"action": "run_ipython", "args": {"is_input": True}}, False),
        ("is_input", False),
    ],
)
def test_input_is_recognized(action: Any, expected: bool) -> None:
    assert is_input(json.dumps({"action": action}).encode()) is expected


def test_unreadable_actions_are_no_input() -> None:
    for body in (None, b"", b"is_input", b'"is_input"', b'"is_input"' + b"[" * 50_000):
        assert not is_input(body)


async def test_old_answers_make_room_for_new_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(result_store, "MAX_RESULTS", 3)
    results = result_store.ResultStore()
    released = asyncio.Event()

    async def wait(stored: result_store.StoredResult) -> Reply:
        await released.wait()
        return Reply({}, b"waited")

    async def answer(stored: result_store.StoredResult) -> Reply:
        return Reply({}, b"x" * 100)

    results.start("slow", "a", wait)
    for number in range(5):
        await results.start(str(number), "a", answer).task
    for known in ("slow", "3", "4"):
        results.find(known, "a")
    with pytest.raises(RequestNotFoundError):
        results.find("2", "a")
    results.start("slow-too", "a", wait)
    results.start("slow-as-well", "a", wait)
    with pytest.raises(LimitExceededError):
        results.start("one-more", "a", wait)
    released.set()
    assert (await results.find("slow", "a").task).body == b"waited"


async def test_large_answers_are_kept_in_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(result_store, "MAX_BYTES", 250)
    results = result_store.ResultStore()

    async def answer(stored: result_store.StoredResult) -> Reply:
        return Reply({}, b"x" * 100)

    for number in range(4):
        await results.start(str(number), "a", answer).task
    assert len((await results.find("3", "a").task).body or b"") == 100
    assert len((await results.find("2", "a").task).body or b"") == 100
    with pytest.raises(RequestNotFoundError):
        results.find("1", "a")
