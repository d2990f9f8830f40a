"""From ``oh-jupyter connect`` to a variable that an agent changed in the open notebook."""

from __future__ import annotations

import asyncio
import json
import re
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from mcp_client import connected, launched
from notebook_sessions import open_notebook

from oh_jupyter.testing import run_server
from oh_jupyter.testing.server import TOKEN

SKILL = Path(__file__).parents[2] / "plugins/oh-jupyter/skills/live-notebook/SKILL.md"


@pytest.fixture(scope="module")
def running(tmp_path_factory: Any) -> Iterator[dict[str, str]]:
    """A server with an open notebook: its address, and where it is noted."""
    directory = tmp_path_factory.mktemp("running")
    (directory / "root").mkdir()
    nbformat.write(nbformat.v4.new_notebook(), directory / "root" / "open.ipynb")
    with run_server(directory, base="/b") as server:
        kernel = open_notebook(server, "open.ipynb")
        yield {"url": server.url, "runtime": str(directory / "run"), "kernel": kernel}


def named_in_the_skill() -> set[str]:
    text = SKILL.read_text("utf-8")
    rows = [line.split("|")[2] for line in text.splitlines() if line.startswith("| ")]
    return {name for row in rows for name in re.findall(r"`(\w+)`", row)}


@pytest.mark.thorough
def test_a_variable_is_changed(place: Any, running: dict[str, str], record_property: Any) -> None:
    """Each step as a person takes it, and how long it takes."""
    seconds, began = {}, time.perf_counter()

    def step(name: str) -> None:
        seconds[name] = time.perf_counter() - began - sum(seconds.values())

    output = place.written(
        *("claude", "--project", "--notebook", "open.ipynb"),
        JUPYTER_RUNTIME_DIR=running["runtime"],
    )
    assert f"/kernels/{running['kernel']} answers" in output
    step("connect")
    # From here on as Claude Code does it, which knows this file alone.
    entry = json.loads((place.project / ".mcp.json").read_text())["mcpServers"]["oh-jupyter"]
    assert entry["type"] == "stdio"
    assert TOKEN not in json.dumps(entry)

    async def talk() -> str:
        environment = {**place.environment, **entry["env"]}
        async with launched(entry["command"], *entry["args"], env=environment) as session:
            step("start")
            names = {tool.name for tool in (await session.list_tools()).tools}
            assert named_in_the_skill() <= names
            step("list tools")
            await session.call_tool("run_ipython", {"code": "answer = 42"})
            step("change a variable")
            answer = await session.call_tool("run_ipython", {"code": "answer"})
            return str(answer.content[0].text)

    assert asyncio.run(talk()).startswith("42")
    output = place.written("claude", "--project", JUPYTER_RUNTIME_DIR=running["runtime"])
    assert "It replaces the entry for open.ipynb" in output
    assert "It uses the only open notebook, open.ipynb" in output
    assert f"/kernels/{running['kernel']} answers" in output
    refused = place.refused(
        *("claude", "--notebook", "renamed.ipynb"), JUPYTER_RUNTIME_DIR=running["runtime"]
    )
    assert "oh-jupyter connect CLIENT --notebook NAME" in refused
    for name, passed in seconds.items():
        record_property(name, passed)
        print(f"{name:20} {passed:6.2f} s")


@pytest.mark.thorough
def test_an_address_is_written_with_the_token_for_its_owner_alone(
    place: Any, running: dict[str, str]
) -> None:
    address = f"{running['url']}/lab?token={TOKEN}"
    output = place.written("cursor", "--url", address, "--notebook", "open.ipynb")
    assert "keep the file private" in output
    file: Path = place.home / ".cursor" / "mcp.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    entry = json.loads(file.read_text())["mcpServers"]["oh-jupyter"]
    assert entry["headers"] == {"Authorization": f"token {TOKEN}"}

    async def talk() -> str:
        async with connected(entry["url"], transport="http", headers=entry["headers"]) as session:
            answer = await session.call_tool("run_ipython", {"code": "6 * 7"})
            return str(answer.content[0].text)

    assert asyncio.run(talk()).startswith("42")
    # From an address to the command and back, nothing of the other is left.
    place.written("cursor", JUPYTER_RUNTIME_DIR=running["runtime"])
    assert set(json.loads(file.read_text())["mcpServers"]["oh-jupyter"]) == {
        *("command", "args", "env")
    }


@pytest.mark.thorough
def test_a_server_that_is_of_no_use_is_one_line_and_nothing_is_written(
    place: Any, running: dict[str, str], tmp_path: Path
) -> None:
    noted = {"JUPYTER_RUNTIME_DIR": running["runtime"]}
    assert "is not open in" in place.refused("claude", "--notebook", "other.ipynb", **noted)
    url = ("--url", running["url"])
    output = place.refused("claude", *url, "--token", "wrong")
    assert "rejects the token" in output
    assert "A server with a password has no token: on its machine, omit the address" in output
    gone = f"{running['url']}/oh_jupyter/kernels/00000000-0000-0000-0000-000000000000"
    assert "no kernel" in place.refused("claude", "--url", gone, "--token", TOKEN).lower()
    (note,) = Path(running["runtime"]).glob("jpserver-*.json")
    about = json.loads(note.read_text())
    runtime = tmp_path / "runtime"
    runtime.mkdir()
    # The same server by two names is as good as two.
    (runtime / "jpserver-1.json").write_text(note.read_text())
    about["url"] = about["url"].replace("127.0.0.1", "localhost")
    (runtime / "jpserver-2.json").write_text(json.dumps(about))
    output = place.refused("claude", JUPYTER_RUNTIME_DIR=str(runtime))
    assert "Several Jupyter servers are running" in output
    about["token"] = "old"
    (runtime / "jpserver-1.json").unlink()
    (runtime / "jpserver-2.json").write_text(json.dumps(about))
    assert "rejects the token" in place.refused("claude", JUPYTER_RUNTIME_DIR=str(runtime))
    assert not list(place.home.iterdir())


@pytest.mark.thorough
def test_an_agent_that_may_only_read(place: Any, tmp_path_factory: Any) -> None:
    folder = tmp_path_factory.mktemp("scoped")
    (folder / "root").mkdir()
    nbformat.write(nbformat.v4.new_notebook(), folder / "root" / "open.ipynb")
    with run_server(folder, environment={"XDG_STATE_HOME": str(place.state)}) as server:
        open_notebook(server, "open.ipynb")
        place.written(
            *("claude", "--project", "--notebook", "open.ipynb", "--scope", "read"),
            JUPYTER_RUNTIME_DIR=str(folder / "run"),
        )
        entry = json.loads((place.project / ".mcp.json").read_text())["mcpServers"]["oh-jupyter"]

        async def talk() -> tuple[set[str], str]:
            environment = {**place.environment, **entry["env"]}
            async with launched(entry["command"], *entry["args"], env=environment) as session:
                names = {tool.name for tool in (await session.list_tools()).tools}
                answer = await session.call_tool("run_ipython", {"code": "1"})
                return names, str(answer.content[0].text)

        names, refused = asyncio.run(talk())
    looking = {"read", "list_notebooks", "read_cells", "changes", "kernel", "store", "variables"}
    assert names == looking
    assert refused.startswith("run_ipython: The token allows read; this needs 'execute'")
