"""``oh-jupyter mcp``: the launcher for clients that start a program, against a real server."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import nbformat
import psutil
import pytest
from mcp import StdioServerParameters, stdio_client
from mcp_client import MAJOR, McpError, text_of
from mcp_client import launched as launched_program
from notebook_sessions import open_notebook, shut_down

from oh_jupyter.testing import LiveServer, descendants, run_server
from oh_jupyter.testing.server import TOKEN

COMMAND = "from oh_jupyter.cli import main; raise SystemExit(main())"
SCRIPT = str(Path(__file__).parents[1] / "stdio_server.py")


@pytest.fixture(scope="module")
def root(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("stdio")


@pytest.fixture(scope="module")
def places(root: Path) -> dict[str, str]:
    """The environment of who starts the launcher."""
    known = {name: value for name, value in os.environ.items() if not name.startswith("OH_")}
    return {**known, "JUPYTER_RUNTIME_DIR": str(root / "run"), "HOME": str(root)}


@contextmanager
def jupyter(folder: Path, runtime: Path, *notebooks: str) -> Iterator[LiveServer]:
    """A server with notebooks, noted for other programs in a directory."""
    for name in notebooks:
        (folder / "root").mkdir(parents=True, exist_ok=True)
        nbformat.write(nbformat.v4.new_notebook(), folder / "root" / name)
    variables = {"JUPYTER_RUNTIME_DIR": str(runtime)}
    with run_server(folder, environment=variables, base="/b") as server:
        yield server


@pytest.fixture(scope="module")
def running() -> Iterator[ExitStack]:
    with ExitStack() as running:
        yield running


@pytest.fixture(scope="module")
def server(running: ExitStack, root: Path) -> LiveServer:
    return running.enter_context(jupyter(root, root / "run", "open.ipynb"))


def launched(places, *arguments: str):
    return launched_program(sys.executable, "-c", COMMAND, "mcp", *arguments, env=places)


@pytest.mark.thorough
def test_the_running_server_is_found(server, places) -> None:
    seen: list[float] = []

    async def progress(done: float, total: float | None, message: str | None) -> None:
        seen.append(done)

    async def talk() -> None:
        async with launched(places) as session:
            names = {tool.name for tool in (await session.list_tools()).tools}
            assert {"run", "run_ipython", "read_cells"} <= names
            answer = await session.call_tool(
                "run", {"command": "echo through pipes"}, progress_callback=progress
            )
            assert text_of(answer).startswith("through pipes")
            assert {tool.name for tool in (await session.list_tools()).tools} == names
        assert seen

    asyncio.run(talk())


@pytest.mark.thorough
def test_a_notebook_and_an_address_can_be_named(server, places) -> None:
    open_notebook(server, "open.ipynb")

    async def talk() -> None:
        async with launched(places, "--notebook", "open.ipynb") as session:
            await session.call_tool("insert_cell", {"source": "here = 5", "run": True})
        address = ("--url", f"{server.url}/", "--token", TOKEN, "--notebook", "open.ipynb")
        async with launched(places, *address) as session:
            answer = await session.call_tool("run_ipython", {"code": "here"})
            assert text_of(answer).startswith("5\n")
        async with launched(places, *address[:4]) as session:
            answer = await session.call_tool("run_ipython", {"code": "here"})
            assert "NameError" in text_of(answer)

    asyncio.run(talk())


@pytest.mark.skipif(MAJOR == 1, reason="major 1 of the SDK knows sessions only")
def test_newer_clients_work_too(server, places) -> None:
    from mcp.client.client import Client

    program = StdioServerParameters(command=sys.executable, args=["-c", COMMAND, "mcp"], env=places)

    async def talk() -> None:
        async with Client(stdio_client(program)) as client:
            answer = await client.call_tool("run", {"command": "echo modern"})
            assert text_of(answer).startswith("modern")

    asyncio.run(talk())


INITIALIZE = (
    '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18",'
    '"capabilities":{},"clientInfo":{"name":"t","version":"0"}}}\n'
)


def failing(places, *arguments: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-c", COMMAND, "mcp", *arguments],
        env=places,
        input=INITIALIZE,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    answer = json.loads(done.stdout)
    assert answer["id"] == 1
    assert answer["error"]["message"].removeprefix("oh-jupyter: ") in done.stderr
    return done


@pytest.mark.thorough
def test_failures_are_explained_to_people_and_to_the_client(server, places, tmp_path) -> None:
    done = failing(places, "--notebook", "missing.ipynb")
    assert "missing.ipynb is not open" in done.stderr
    done = failing({**places, "JUPYTER_RUNTIME_DIR": str(tmp_path)})
    assert "No Jupyter server is running" in done.stderr
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        done = failing(places, "--url", f"http://127.0.0.1:{unused.getsockname()[1]}")
    assert "cannot be reached" in done.stderr
    done = failing(places, "--url", server.url, "--token", "wrong")
    assert "rejects the token" in done.stderr
    done = failing(places, "--url", server.url, "--token", "wrong", "--notebook", "open.ipynb")
    assert "rejects the token" in done.stderr
    gone = f"{server.url}/oh_jupyter/kernels/00000000-0000-0000-0000-000000000000"
    done = failing(places, "--url", gone, "--token", TOKEN)
    assert "no kernel" in done.stderr.lower()
    done = failing(places, "--url", "localhost:8888")
    assert "is not the address" in done.stderr


def test_the_address_that_jupyter_prints_will_do(server, places) -> None:
    async def talk() -> None:
        async with launched(places, "--url", f"{server.url}/lab?token={TOKEN}") as session:
            assert (await session.list_tools()).tools

    asyncio.run(talk())


def started(places, *arguments: str, **options) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, *arguments, "-c", COMMAND, "mcp"],
        env=places,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        bufsize=1,
        **options,
    )


def opened(program: subprocess.Popen[str]) -> dict:
    program.stdin.write(INITIALIZE)
    answer = json.loads(program.stdout.readline())
    program.stdin.write('{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
    return answer


@pytest.mark.thorough
def test_it_ends_with_its_input_even_while_a_call_is_under_way(server, places) -> None:
    program = started(places)
    assert opened(program)["result"]["serverInfo"]["name"] == "oh_jupyter"
    call = {"name": "run", "arguments": {"command": "echo started; sleep 1000"}}
    call["_meta"] = {"progressToken": 1}
    asked = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call}
    program.stdin.write(json.dumps(asked) + "\n")
    while "notifications/progress" not in program.stdout.readline():
        pass
    _, errors = program.communicate(timeout=60)
    assert program.returncode == 0
    assert "Traceback" not in errors


@pytest.mark.thorough
def test_a_client_that_is_killed_leaves_no_orphan(server, places) -> None:
    code = "import subprocess, sys; subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE).wait()"
    client = subprocess.Popen(
        [sys.executable, "-c", code, sys.executable, "-c", COMMAND, "mcp"],
        env=places,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert "the tools of" in client.stderr.readline()
    (program,) = psutil.Process(client.pid).children()
    client.kill()
    client.wait()
    program.wait(timeout=60)
    client.stderr.close()


def test_an_invalid_message_is_answered_and_the_session_continues(server, places) -> None:
    program = started(places)
    opened(program)
    program.stdin.write("no JSON\n[]\n\n")
    assert json.loads(program.stdout.readline())["error"]["code"] == -32700
    assert json.loads(program.stdout.readline())["error"]["code"] == -32700
    out, _ = program.communicate('{"jsonrpc":"2.0","id":"p","method":"ping"}\n', timeout=60)
    assert json.loads(out) == {"jsonrpc": "2.0", "id": "p", "result": {}}


@pytest.mark.thorough
def test_it_imports_little(server, places) -> None:
    program = started(places, "-X", "importtime")
    opened(program)
    _, imported = program.communicate(timeout=60)
    names = {line.split("|")[-1].strip() for line in imported.splitlines()}
    assert "httpx" in names
    assert not names & {"mcp", "mcp_types", "pydantic", "jupyter_server", "IPython", "requests"}


@pytest.mark.thorough
def test_all_servers_are_searched_for_a_notebook(places, tmp_path) -> None:
    """The older of two has it; without a notebook, one is taken by the working directory."""
    runtime = tmp_path / "runtime"
    (tmp_path / "elsewhere" / "root").mkdir(parents=True)

    def said(directory: str, *arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, "-c", COMMAND, "env", *arguments],
            env={**places, "JUPYTER_RUNTIME_DIR": str(runtime)},
            cwd=tmp_path / directory / "root",
            capture_output=True,
            text=True,
        )
        assert "Traceback" not in done.stderr
        return done.stderr if done.returncode else done.stdout

    with jupyter(tmp_path / "older", runtime, "older.ipynb", "both.ipynb") as older:
        port = older.url.rpartition(":")[2]
        with jupyter(tmp_path / "newer", runtime, "both.ipynb") as newer:
            open_notebook(older, "older.ipynb")
            open_notebook(older, "both.ipynb")
            open_notebook(newer, "both.ipynb")
            assert f":{port}/oh_jupyter/kernels/" in said("newer", "--notebook", "older.ipynb")
            assert f":{port}/oh_jupyter/kernels/" in said("older", "--notebook", "./both.ipynb")
            assert "matches several open notebooks" in said("elsewhere", "--notebook", "both.ipynb")
            assert "Several Jupyter servers" in said("elsewhere")
            assert f":{port}/oh_jupyter " in said("older")
            # A note that somebody's death has left behind is no server.
            note = runtime / "jpserver-1.json"
            note.write_text('{"url": "http://127.0.0.1:9/", "token": "", "pid": 1}')
            (runtime / "jpserver-2.json").write_text('{"url": "http')
        assert f":{port}/oh_jupyter " in said("elsewhere")


@pytest.mark.thorough
def test_a_server_that_was_restarted_elsewhere_is_found_again(places, tmp_path) -> None:
    environment = {**places, "JUPYTER_RUNTIME_DIR": str(tmp_path)}

    async def talk() -> None:
        first = jupyter(tmp_path, tmp_path)
        await asyncio.to_thread(first.__enter__)
        async with launched(environment) as session:
            assert text_of(await session.call_tool("run", {"command": "echo one"})).startswith(
                "one"
            )
            await asyncio.to_thread(first.__exit__, None, None, None)
            with pytest.raises(McpError, match="No Jupyter server is running here"):
                await session.call_tool("run", {"command": "echo two"})
            with jupyter(tmp_path, tmp_path):
                answer = await session.call_tool("run", {"command": "echo three"})
                assert text_of(answer).startswith("three")

    asyncio.run(talk())


@pytest.mark.thorough
def test_a_missing_kernel_is_reported_and_another_is_found(server, places) -> None:
    kernel = open_notebook(server, "open.ipynb")

    async def talk() -> None:
        async with launched(places, "--notebook", "open.ipynb") as session:
            await session.call_tool("run_ipython", {"code": "mine = 1"})
            await asyncio.to_thread(shut_down, server, kernel)
            with pytest.raises(McpError, match=r"open\.ipynb is not open in"):
                await session.call_tool("run_ipython", {"code": "mine"})
            await asyncio.to_thread(open_notebook, server, "open.ipynb")
            answer = await session.call_tool("run_ipython", {"code": "'new'"})
            assert text_of(answer).startswith("'new'")

    asyncio.run(talk())


@pytest.mark.thorough
def test_nothing_is_left_when_the_server_stops(places, server, running) -> None:
    """Last in this file, since it stops the server."""
    body = f'[{{"name": "small", "command": "{sys.executable}", "args": ["{SCRIPT}"]}}]'
    request = urllib.request.Request(
        f"{server.url}/oh_jupyter/update_mcp_server",
        data=body.encode(),
        headers={**server.headers, "Content-Type": "application/json"},
    )

    async def talk() -> list[psutil.Process]:
        async with launched(places, "--url", server.url, "--token", server.token) as session:
            await asyncio.to_thread(lambda: urllib.request.urlopen(request, timeout=60).close())
            assert text_of(await session.call_tool("echo", {"text": "x"})) == "x"
            await session.call_tool("run", {"command": "true"})
            assert descendants(lambda process: SCRIPT in process.cmdline(), of=server.pid)
            below = descendants(lambda process: True, of=server.pid)
            await asyncio.to_thread(running.close)
            return below

    async def tolerant() -> list[psutil.Process]:
        processes: list[psutil.Process] = []
        try:
            processes = await talk()
        except* Exception:  # the launcher has lost its server
            pass
        return processes

    below = asyncio.run(tolerant())
    assert below
    _, alive = psutil.wait_procs(below, timeout=60)
    assert alive == []
