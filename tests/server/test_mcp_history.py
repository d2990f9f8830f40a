"""An agent's own turns and the file store by MCP."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from mcp_client import MAJOR, text_of


async def test_an_agent_undoes_its_own_turns_only(mcp_connect, book, jp_root_dir: Path) -> None:
    kernel, results = await book("pass"), {}
    async with mcp_connect(kernel) as mine:

        async def change(**arguments) -> str:
            done = await mine.call_tool("changes", arguments)
            results["failed"] = done.is_error
            return text_of(done)

        assert await change() == "You have no turns that can be undone."
        await mine.call_tool("run", {"command": "echo one > one.txt"})
        await mine.call_tool("run_ipython", {"code": "x = [1]"})
        turns = await change(command="turns")
        assert "echo one > one.txt (" in turns
        assert "1 cell" in turns
        files = await change(command="files")
        assert files == f"created   {jp_root_dir / 'one.txt'} +1 -0"
        diff = await change(command="diff", path="one.txt")
        assert diff.endswith("+one")
        assert await change(command="diff", path="two.txt") == (
            "two.txt has not changed in this session. files lists the changed ones."
        )
        preview = await change(command="preview")
        assert "one.txt" in preview
        assert (jp_root_dir / "one.txt").exists()
        undone = await change(command="rewind")
        assert not results["failed"], undone
        assert undone.startswith("Undid turn ")
        assert not (jp_root_dir / "one.txt").exists()
        await change(command="rewind", id=77)
        assert results["failed"]


async def test_the_diff_of_a_notebook_shows_its_cells(mcp_connect, book, jp_root_dir: Path) -> None:
    kernel, path = await book("pass"), jp_root_dir / "other.ipynb"
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("before = 1", id="a")])
    nbformat.write(notebook, path)
    async with mcp_connect(kernel) as agent:
        await agent.call_tool("run", {"command": f"sed -i s/before/after/ {path.name}"})
        diff = await agent.call_tool("changes", {"command": "diff", "path": path.name})
        assert not diff.is_error, text_of(diff)
        assert text_of(diff) == "before = 1\n=>\nafter = 1"


@pytest.mark.thorough
async def test_an_agent_returns_to_its_checkpoint(mcp_connect, book, jp_root_dir: Path) -> None:
    kernel, path = await book("pass"), jp_root_dir / "state.txt"
    async with mcp_connect(kernel) as agent:

        async def call(tool: str, **arguments: object) -> str:
            return text_of(await agent.call_tool(tool, arguments))

        await call("run_ipython", code="x = [1]; open('state.txt', 'w').write('1')")
        checkpoint = await call("changes", command="checkpoint")
        id = int(checkpoint.split()[1])
        await call("run_ipython", code="x.append(2); y = 1; open('state.txt', 'w').write('2')")
        await call("changes", command="checkpoint")
        await call("run_ipython", code="x.append(3)")
        assert f"{id}: checkpoint (1 file, 1 cell, variables x, y)" in await call("changes")
        assert (await call("changes", command="rewind", id=id)).startswith(f"Undid turn {id}:")
        assert path.read_text() == "1"
        assert "[1] False" in await call("run_ipython", code="print(x, 'y' in globals())")
        assert await call("changes", command="rewind", id=id) == (
            f"Turn {id} is not one of yours. Yours: {int(id) - 1}, {int(id) + 3}"
        )


@pytest.mark.thorough
@pytest.mark.skipif(MAJOR == 1, reason="major 1 of the SDK knows sessions only")
async def test_windows_without_sessions_differ_by_a_header(
    mcp_connect, book, jp_auth_header: dict[str, str]
) -> None:
    kernel = await book("pass")
    windows = {name: jp_auth_header | {"X-Session": name} for name in ("left", "right")}

    async def call(headers: dict[str, str], tool: str, **arguments: object) -> str:
        async with mcp_connect(kernel, transport="sessionless", headers=headers) as client:
            return text_of(await client.call_tool(tool, arguments))

    await call(windows["left"], "run", command="echo one > one.txt; echo all: > Makefile")
    assert "one.txt" in await call(windows["left"], "changes")
    assert "no turns" in await call(windows["right"], "changes")
    assert "no turns" in await call(jp_auth_header, "changes")
    files = await call(jp_auth_header, "changes", command="files")
    assert "Makefile +1 -0 · runs when you run make" in files
    assert "one.txt +1 -0\n" in f"{files}\n"


@pytest.mark.server_config(OhJupyter={"confirmation": "never"})
async def test_files_go_to_the_store_and_back(mcp_connect, book, jp_root_dir: Path) -> None:
    (jp_root_dir / "data.csv").write_text("a,b\n")
    async with mcp_connect(await book("pass")) as session:

        async def store(command: str, **arguments: str) -> str:
            return text_of(await session.call_tool("store", {"command": command, **arguments}))

        assert "Copied 1 file" in await store("put", path="results/data.csv", file="data.csv")
        assert "results/data.csv" in await store("list", path="results")
        assert "Copied 1 file" in await store("get", path="results/data.csv", file="back/d.csv")
        assert (jp_root_dir / "back" / "d.csv").read_text() == "a,b\n"
        assert "Deleted results/data.csv" in await store("delete", path="results/data.csv")
        assert "There is no" in await store("put", path="x", file="missing.csv")
        assert "outside of the workspace" in await store("put", path="x", file="/etc/passwd")
        assert "belongs to a session's log" in await store("delete", path="sessions/a")
        assert "store: put needs file." in await store("put", path="x")
        assert "is not one of" in await store("move", path="x")
