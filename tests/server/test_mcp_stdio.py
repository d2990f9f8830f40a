"""``oh-jupyter mcp``: the launcher for clients that start a program, against a real server."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import nbformat
import psutil
import pytest
from mcp import StdioServerParameters, stdio_client
from mcp_client import MAJOR
from mcp_client import launched as launched_program

TOKEN = "stdio-token"
COMMAND = "from oh_jupyter.cli import main; raise SystemExit(main())"
SCRIPT = str(Path(__file__).parents[1] / "stdio_server.py")


def told(result) -> str:
    return "\n".join(block.text for block in result.content if block.type == "text")


@pytest.fixture(scope="module")
def places(tmp_path_factory) -> dict[str, str]:
    root = tmp_path_factory.mktemp("stdio")
    places = {"JUPYTER_RUNTIME_DIR": str(root / "runtime"), "JUPYTER_CONFIG_DIR": str(root / "c")}
    (root / "work").mkdir()
    nbformat.write(nbformat.v4.new_notebook(), root / "work" / "open.ipynb")
    known = {name: value for name, value in os.environ.items() if not name.startswith("OH_")}
    return {**known, **places, "HOME": str(root), "WORK": str(root / "work")}


@pytest.fixture(scope="module")
def server(places) -> Iterator[subprocess.Popen]:
    """A server as people start it, in a process of its own."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "jupyter_server", "--no-browser", "--allow-root"),
            *(f"--port={port}", f"--IdentityProvider.token={TOKEN}", "--ServerApp.base_url=/b"),
            "--ServerApp.jpserver_extensions={'oh_jupyter': True}",
        ],
        cwd=places["WORK"],
        env=places,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    process.url = f"http://127.0.0.1:{port}/b"
    while "is running at" not in (line := process.stderr.readline()):
        assert line, "the server did not start"
    yield process
    process.terminate()
    process.communicate(timeout=60)


def launched(places, *arguments: str):
    return launched_program(sys.executable, "-c", COMMAND, "mcp", *arguments, env=places)


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
            assert told(answer).startswith("through pipes")
            names = {tool.name for tool in (await session.list_tools()).tools}
            assert "search_dir" in names
        assert seen

    asyncio.run(talk())


def test_a_notebook_and_an_address_can_be_named(server, places) -> None:
    request = urllib.request.Request(
        f"{server.url}/api/sessions",
        data=b'{"path": "open.ipynb", "name": "open", "type": "notebook", '
        b'"kernel": {"name": "python3"}}',
        headers={"Authorization": f"token {TOKEN}", "Content-Type": "application/json"},
    )
    urllib.request.urlopen(request, timeout=60).close()

    async def talk() -> None:
        async with launched(places, "--notebook", "open.ipynb") as session:
            await session.call_tool("insert_cell", {"source": "here = 5", "run": True})
        address = ("--url", f"{server.url}/", "--token", TOKEN, "--notebook", "open.ipynb")
        async with launched(places, *address) as session:
            answer = await session.call_tool("run_ipython", {"code": "here"})
            assert told(answer).startswith("5\n")
        async with launched(places, *address[:4]) as session:
            answer = await session.call_tool("run_ipython", {"code": "here"})
            assert "NameError" in told(answer)

    asyncio.run(talk())


@pytest.mark.skipif(MAJOR == 1, reason="major 1 of the SDK knows sessions only")
def test_newer_clients_work_too(server, places) -> None:
    from mcp.client.client import Client

    program = StdioServerParameters(command=sys.executable, args=["-c", COMMAND, "mcp"], env=places)

    async def talk() -> None:
        async with Client(stdio_client(program)) as client:
            answer = await client.call_tool("run", {"command": "echo modern"})
            assert told(answer).startswith("modern")

    asyncio.run(talk())


def failing(places, *arguments: str) -> subprocess.CompletedProcess[str]:
    message = (
        '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18",'
        '"capabilities":{},"clientInfo":{"name":"t","version":"0"}}}\n'
    )
    return subprocess.run(
        [sys.executable, "-c", COMMAND, "mcp", *arguments],
        env=places,
        input=message,
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_why_it_does_not_work_is_said_on_stderr(server, places, tmp_path) -> None:
    done = failing(places, "--notebook", "missing.ipynb")
    assert done.returncode == 1
    assert "missing.ipynb is not open" in done.stderr
    assert done.stdout == ""
    done = failing({**places, "JUPYTER_RUNTIME_DIR": str(tmp_path)})
    assert done.returncode == 1
    assert "No Jupyter server is running" in done.stderr
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        done = failing(places, "--url", f"http://127.0.0.1:{unused.getsockname()[1]}")
    assert "cannot be reached" in done.stderr
    assert "Traceback" not in done.stderr


def test_nothing_is_left_when_the_server_stops(places, server) -> None:
    """Last in this file, since it stops the server."""
    body = f'[{{"name": "small", "command": "{sys.executable}", "args": ["{SCRIPT}"]}}]'
    request = urllib.request.Request(
        f"{server.url}/oh_jupyter/update_mcp_server",
        data=body.encode(),
        headers={"Authorization": f"token {TOKEN}", "Content-Type": "application/json"},
    )

    async def talk() -> list[psutil.Process]:
        async with launched(places) as session:
            await asyncio.to_thread(lambda: urllib.request.urlopen(request, timeout=60).close())
            assert told(await session.call_tool("echo", {"text": "x"})) == "x"
            await session.call_tool("run", {"command": "true"})
            below = psutil.Process(server.pid).children(recursive=True)
            assert any(SCRIPT in process.cmdline() for process in below)
            server.terminate()
            await asyncio.to_thread(server.wait, 60)
            return below

    async def tolerant() -> list[psutil.Process]:
        found: list[psutil.Process] = []
        try:
            found = await talk()
        except* Exception:  # the launcher has lost its server
            pass
        return found

    below = asyncio.run(tolerant())
    assert below
    _, alive = psutil.wait_procs(below, timeout=30)
    assert alive == []
