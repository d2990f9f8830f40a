"""The clients against a real server, whole ways there and back."""

from __future__ import annotations

import asyncio
import inspect
import io
import os
import signal
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import anyio
import httpx
import pytest
from anyio.from_thread import start_blocking_portal

from oh_jupyter.client import AsyncRuntimeClient, RuntimeClient
from oh_jupyter.client.thread import wait_in
from oh_jupyter.errors import (
    KernelDiedError,
    KernelNotFoundError,
    ServerError,
    TransferError,
    TransferNotFoundError,
    TransferTooLargeError,
    WireError,
)
from oh_jupyter.events import CmdOutputObservation, CmdRunAction, MessageAction
from oh_jupyter.testing import wait_until
from oh_jupyter.testing.server import TOKEN


@pytest.fixture
def client(url: str) -> Iterator[RuntimeClient]:
    with RuntimeClient(url, TOKEN) as client:
        yield client


def test_a_server_on_this_machine_is_reached_without_the_proxy(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    with RuntimeClient(url, TOKEN) as client:
        assert client.run("echo hello").content == "hello"


@pytest.mark.thorough
def test_actions_and_observations(client: RuntimeClient, tmp_path: Path) -> None:
    path = str(tmp_path / "a.txt")
    observation = client.run("echo hello; exit_code() { return 3; }; exit_code")
    assert isinstance(observation, CmdOutputObservation)
    assert (observation.content, observation.exit_code) == ("hello", 3)
    assert client.write(path, "one\n").kind == "write"
    edited = client.edit("str_replace", path, old_str="one", new_str="two")
    assert "has been edited" in edited.content
    assert client.read(path).content == "two\n"
    assert client.run_ipython("6*7").content.startswith("42")
    assert client.execute({"action": "run", "args": {"command": "echo raw"}}).content == "raw"
    timed_out = client.run("sleep 100", timeout=0.5)
    assert "timed out after 0.5 seconds" in timed_out.metadata.suffix
    client.run("C-c", is_input=True)
    assert client.alive()
    assert client.server_info()["runtime"]["workspace_dir"]
    assert client.list_files(str(tmp_path)) == ["a.txt"]
    assert "open_file" in {skill["name"] for skill in client.skills()}
    assert client.waiting() == []


def test_refusals_are_the_errors_of_the_runtime(client: RuntimeClient, url: str) -> None:
    with pytest.raises(WireError, match=r"args\.command") as caught:
        client.execute({"action": "run", "args": {}})
    assert caught.value.field == "args.command"
    with pytest.raises(WireError):
        client.execute(MessageAction("hello"))
    with pytest.raises(TransferError, match="absolute"):
        client.download("relative", "never-written.zip")
    assert not Path("never-written.zip").exists()
    with RuntimeClient(url, TOKEN, "no-such-kernel") as other:
        assert not other.alive()
        with pytest.raises(KernelNotFoundError):
            other.run("ls")
    with RuntimeClient(url, "wrong") as other, pytest.raises(ServerError, match="token") as refused:
        other.run("ls")
    assert refused.value.status == 403
    with RuntimeClient("http://127.0.0.1:1", TOKEN) as other:
        assert not other.alive()
        with pytest.raises(ServerError, match="cannot be reached"):
            other.run("ls")


def test_files_there_and_back(client: RuntimeClient, tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "sub" / "empty").mkdir(parents=True)
    (source / "sub" / "a.bin").write_bytes(os.urandom(1_500_000))
    target = tmp_path / "target"
    client.upload(source, str(target))
    client.upload(source / "sub" / "a.bin", str(target))
    assert (target / "a.bin").read_bytes() == (source / "sub" / "a.bin").read_bytes()
    assert (target / "source/sub/a.bin").is_file()
    assert (target / "source/sub/empty").is_dir()
    sink = io.BytesIO()
    client.read_into(str(target / "a.bin"), sink)
    assert sink.getvalue() == (target / "a.bin").read_bytes()
    with pytest.raises(TransferTooLargeError, match="larger than 1000 bytes"):
        client.read_into(str(target / "a.bin"), io.BytesIO(), 1000)
    with pytest.raises(TransferNotFoundError):
        client.read_into(str(target / "none"), io.BytesIO())
    archive_path = client.download(str(target), tmp_path / "back.zip")
    with zipfile.ZipFile(archive_path) as archive:
        assert archive.namelist() == ["a.bin", "source/sub/a.bin", "source/sub/empty/"]


def test_the_store(client: RuntimeClient) -> None:
    client.store_write("notes/a é.txt", b"text")
    assert client.store_read("notes/a é.txt") == b"text"
    assert client.store_list("notes") == ["notes/a é.txt"]
    client.store_delete("notes/a é.txt")
    with pytest.raises(TransferNotFoundError):
        client.store_read("notes/a é.txt")


def test_events(client: RuntimeClient, url: str) -> None:
    client.run("echo first")
    start = client.history()[-1].id
    assert start is not None
    seen = []
    with RuntimeClient(url, TOKEN) as watcher:
        events = watcher.events(start)
        seen.append(next(events))
        client.run("echo second")
        seen += [next(events), next(events)]
        events.close()
    assert [event.kind for event in seen] == ["run"] * 3
    assert seen[2].content == "second"


def test_many_at_once_on_an_event_loop(url: str, tmp_path: Path) -> None:
    async def scenario() -> list[str]:
        async with AsyncRuntimeClient(url, TOKEN) as client:
            path = tmp_path / "x"
            await client.write(str(path), "x\n")
            await client.upload(path, str(tmp_path / "up"))
            await client.download(str(path), tmp_path / "x.zip")
            events = client.events()
            assert (await anext(events)).id == 0
            await events.aclose()
            answers = await asyncio.gather(
                *(client.run_ipython(f"{n} * 2") for n in range(10)), client.run("true")
            )
            return [answer.content.split("\n")[0] for answer in answers[:-1]]

    assert asyncio.run(scenario()) == [str(n * 2) for n in range(10)]
    assert (tmp_path / "up" / "x").read_text() == "x\n"


def test_a_cancelled_task_takes_its_cell_back(url: str) -> None:
    async def scenario() -> str:
        async with AsyncRuntimeClient(url, TOKEN) as client:
            await client.run_ipython("import time, threading; ready = threading.Event()")
            code = "ready.set(); time.sleep(300)"
            task = asyncio.ensure_future(client.run_ipython(code))
            while not (await client.server_info())["runtime"]["running"]:
                assert not task.done(), task
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            return (await client.run_ipython("1 + 1")).content

    assert asyncio.run(scenario()).startswith("2")


@pytest.mark.parametrize("started", [True, False])
def test_an_interrupt_before_the_wait_leaves_nothing_running(started: bool) -> None:
    ends = []

    async def work() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            ends.append("cancelled")

    class InterruptedPortal:
        """A portal whose caller is interrupted before it has the future."""

        def start_task_soon(self, run: Any) -> NoReturn:
            if started:
                portal.start_task_soon(run)
            raise KeyboardInterrupt

        def call(self, function: Any) -> None:
            portal.call(function)

    with start_blocking_portal() as portal:
        interrupted: Any = InterruptedPortal()
        with pytest.raises(KeyboardInterrupt):
            wait_in(interrupted, work)
        assert ends == (["cancelled"] if started else [])


def test_an_interrupt_takes_the_cell_back(client: RuntimeClient, url: str) -> None:
    client.run_ipython("import time")

    def interrupt_when_it_runs() -> None:
        with RuntimeClient(url, TOKEN) as other:
            while not other.server_info()["runtime"]["running"]:
                pass
        os.kill(os.getpid(), signal.SIGINT)

    interrupting = threading.Thread(target=interrupt_when_it_runs)
    interrupting.start()
    with pytest.raises(KeyboardInterrupt):
        client.run_ipython("time.sleep(300)")
    interrupting.join()
    assert client.run_ipython("1 + 1").content.startswith("2")


def test_a_client_that_is_not_closed_ends_with_its_process(url: str) -> None:
    code = f"""
from oh_jupyter.client import RuntimeClient
client = RuntimeClient({url!r}, {TOKEN!r})
print(client.run("echo hello").content)
"""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, timeout=60
    )
    assert (done.stdout, done.stderr, done.returncode) == ("hello\n", "", 0)


def test_a_closed_client_reports_it(url: str) -> None:
    client = RuntimeClient(url, TOKEN)
    assert client.alive()
    client.close()
    with pytest.raises(ServerError, match="closed"):
        client.run("ls")


def test_both_clients_have_the_same_face() -> None:
    def face(cls: type) -> dict[str, str]:
        methods = {name: member for name, member in vars(cls).items() if name[0] != "_"}
        return {name: str(inspect.signature(m, eval_str=False)) for name, m in methods.items()}

    waiting, awaited = face(RuntimeClient), face(AsyncRuntimeClient)
    assert waiting.keys() == awaited.keys()
    for name in waiting.keys() - {"events"}:
        assert waiting[name] == awaited[name], name


def test_an_answer_survives_a_broken_connection(url: str, tmp_path: Path) -> None:
    """A proxy of our own cuts the first connection in the middle of the answer's wait."""
    host, port = url.removeprefix("http://").split(":")
    ready, gate = tmp_path / "ready", tmp_path / "gate"
    os.mkfifo(gate)

    async def scenario() -> str:
        cut, relayed = asyncio.Event(), asyncio.Event()

        async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            up, down = await asyncio.open_connection(host, int(port))
            pipes = [asyncio.ensure_future(_pump(reader, down))]
            if cut.is_set():
                pipes.append(asyncio.ensure_future(_pump(up, writer)))
                await asyncio.wait(pipes, return_when=asyncio.FIRST_COMPLETED)
            else:
                cut.set()
                await asyncio.to_thread(wait_until, ready.exists, what="the command")
            for pipe in pipes:
                pipe.cancel()
            for end in (down, writer):
                end.close()
                await asyncio.gather(end.wait_closed(), return_exceptions=True)
            relayed.set()

        proxy = await asyncio.start_server(relay, "127.0.0.1", 0)
        address = "http://127.0.0.1:%d" % proxy.sockets[0].getsockname()[1]  # noqa: UP031
        async with proxy, AsyncRuntimeClient(address, TOKEN) as client:
            command = CmdRunAction(f"touch {ready}; cat {gate}", blocking=True)
            asked = asyncio.ensure_future(client.execute(command))
            await relayed.wait()
            await asyncio.to_thread(gate.write_text, "kept")
            answer = await asked
            relayed.clear()
            await client.close()
            await relayed.wait()
        return answer.content

    assert asyncio.run(scenario()) == "kept"


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()


def test_an_answer_survives_a_proxy_that_does_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """Errors of a proxy are no JSON; those of the server are, and are not asked about again."""
    impatient = httpx.Response(504, html="<h1>Gateway Time-out</h1>")
    done = {"observation": "run", "content": "kept", "extras": {"command": "ls"}}
    answers = [impatient, httpx.Response(202, json={}), impatient, httpx.Response(200, json=done)]
    refused = {"error": "KernelDiedError", "detail": "it died"}
    answers += [impatient, httpx.Response(503, json=refused)]
    asked = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append((request.method, request.url.path.split("/")[2]))
        return answers.pop(0)

    make = partial(httpx.AsyncClient, transport=httpx.MockTransport(answer))
    monkeypatch.setattr(httpx, "AsyncClient", make)
    with RuntimeClient("http://127.0.0.1:1") as client:
        assert client.run("ls").content == "kept"
        with pytest.raises(KernelDiedError, match="it died"):
            client.run("ls")
    fetched = ("GET", "requests")
    assert asked == [
        ("POST", "execute_action"),
        *[fetched] * 3,
        ("POST", "execute_action"),
        fetched,
    ]
