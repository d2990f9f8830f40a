"""Runs of cells by MCP: one after another, with their place, and what was done before an error."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import nbformat
import pytest
from mcp_client import connected, text_of
from nbformat.v4 import new_code_cell
from notebook_sessions import open_notebook

from oh_jupyter.testing import run_server

SLOW = "import time, pathlib\nwhile not pathlib.Path('go').exists(): time.sleep(0.05)"


@pytest.fixture
def stored(jp_root_dir: Path):
    return lambda: nbformat.read(jp_root_dir / "book.ipynb", as_version=4).cells


async def status_of(session) -> dict:
    return json.loads(text_of(await session.call_tool("kernel", {"command": "status"})))


async def place_of(session, place: str) -> dict:
    async with asyncio.timeout(60):
        while place not in (status := await status_of(session)).get("run", ""):
            pass
    return status


async def test_a_second_run_of_a_notebook_waits_for_the_first(
    mcp_connect, book, stored, jp_root_dir
) -> None:
    kernel = await book("n = 0", SLOW, *["n += 1\nn"] * 3)
    async with mcp_connect(kernel) as session:
        whole = {"cell": 0, "to": -1, "wait": 0.5}
        started = text_of(await session.call_tool("run_cell", whole))
        assert "It continues, and its outputs will be in the notebook" in started
        status = await place_of(session, "cell 2 of 5, for ")
        assert status["state"] == "busy"
        second = text_of(await session.call_tool("run_cell", {**whole, "wait": 0}))
        assert "[It waits for another run of book.ipynb, at cell 2 of 5.]" in second
        assert (await status_of(session))["waiting_runs"] == "1"
        alone = asyncio.create_task(session.call_tool("insert_cell", {"source": "n", "run": True}))
        (jp_root_dir / "go").touch()
        assert text_of(await alone).startswith("3\n[Ran")
        assert "run" not in await status_of(session)
    assert [cell.execution_count for cell in stored()] == [6, 7, 8, 9, 10, 11]


async def test_an_interrupt_stops_the_whole_run_and_those_that_wait(
    mcp_connect, book, stored
) -> None:
    kernel = await book("a = 1", SLOW, "b = 2", "c = 3")
    async with mcp_connect(kernel) as session:
        await session.call_tool("run_cell", {"cell": 0, "to": 2, "wait": 0})
        await session.call_tool("run_cell", {"cell": 3, "wait": 0})
        async with asyncio.timeout(60):
            while "import time" not in str((await status_of(session)).get("cell")):
                pass
        stopped = text_of(await session.call_tool("kernel", {"command": "interrupt"}))
        assert stopped.startswith("Interrupted the cell that had been running for")
        assert stopped.endswith("[2 cells of the run will not start.]")
        async with asyncio.timeout(60):
            while "run" in await status_of(session):
                pass
    assert [cell.execution_count for cell in stored()] == [1, 2, None, None]


async def test_a_cell_that_runs_is_waited_for_and_not_run_again(
    mcp_connect, book, stored, jp_root_dir
) -> None:
    kernel = await book(f"{SLOW}\nprint('done')")
    async with mcp_connect(kernel) as session:
        await session.call_tool("run_cell", {"cell": 0, "wait": 0})
        again = text_of(await session.call_tool("run_cell", {"cell": 0, "wait": 0.2}))
        assert "It continues" in again
        last = asyncio.create_task(session.call_tool("run_cell", {"cell": 0, "wait": 60}))
        (jp_root_dir / "go").touch()
        assert text_of(await last).startswith("done\n[Ran cell 0 ")
    assert stored()[0].execution_count == 1


PLOT = (
    "import base64\nfrom IPython.display import Image\n"
    "Image(base64.b64decode('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR42mP4DwABAQEAH"
    "LCMmQAAAABJRU5ErkJggg=='))"
)


async def test_a_run_of_several_names_the_cell_of_each_output(mcp_connect, book) -> None:
    cells = ("91.5", PLOT, "print('x' * 2000)", "1 / 0", "never = 1")
    kernel = await book(*(new_code_cell(cell, id=f"c{n}") for n, cell in enumerate(cells)))
    async with mcp_connect(kernel) as session:
        done = await session.call_tool("run_cell", {"cell": 0, "to": 2})
        lines = text_of(done).splitlines()
        assert lines[:3] == [
            "=== cell 0 | c0 | code [1] ===",
            "91.5",
            "=== cell 1 | c1 | code [2] ===",
        ]
        assert [block.type for block in done.content].count("image") == 1
        assert "=== cell 2 | c2 | code [3] ===" in lines
        assert lines[-2:] == [
            "[read_cells with start=2 and end=3 shows more.]", "[Ran 3 cells of book.ipynb.]"
        ]  # fmt: skip
        failed = await session.call_tool("run_cell", {"cell": 2, "to": -1})
        assert "=== cell 3 | c3 | code [5] ===\n" in text_of(failed)
        read = text_of(await session.call_tool("read_cells", {}))
        assert "=== cell 4 | c4 | code [not run] ===" in read
        missing = await session.call_tool("read_cells", {"start": 99})
        assert missing.is_error
        assert text_of(missing).startswith("There is no cell 99: the notebook has 5 cells")


async def test_an_error_lists_the_finished_cells(mcp_connect, book, jp_root_dir) -> None:
    nbformat.write(nbformat.v4.new_notebook(), jp_root_dir / "closed.ipynb")
    kernel = await book(f"{SLOW}\n'late'", "2")
    async with mcp_connect(kernel) as session:
        arguments = {"source": "1 + 1", "run": True, "notebook": "closed.ipynb"}
        inserted = await session.call_tool("insert_cell", arguments)
        assert inserted.is_error
        assert text_of(inserted).startswith("Inserted cell 0 (id ")
        assert "closed.ipynb has no kernel" in text_of(inserted)
        edited = await session.call_tool("edit_cell", {"cell": 1, "source": "3", "index": 7})
        assert edited.is_error
        assert text_of(edited).startswith("Edited cell 1 (id ")
        ran = asyncio.create_task(session.call_tool("run_cell", {"cell": 0}))
        async with asyncio.timeout(60):
            while not (await status_of(session)).get("cell"):
                pass
        nbformat.write(nbformat.v4.new_notebook(), jp_root_dir / "book.ipynb")
        (jp_root_dir / "go").touch()
        assert "'late'" in text_of(await ran)
        assert "but the notebook lacks its outputs: There is no cell" in text_of(await ran)


def doubled(*sources: str) -> dict:
    return {
        "nbformat": 4, "nbformat_minor": 5, "metadata": {},
        "cells": [
            {"cell_type": "code", "id": "same", "metadata": {}, "outputs": [],
             "execution_count": None, "source": source}
            for source in sources
        ],
    }  # fmt: skip


@pytest.fixture
def own_server(tmp_path: Path):
    """A server in a process of its own, where the warnings of nbformat are no errors."""
    with run_server(tmp_path) as server:
        yield server, tmp_path / "root"


async def test_cells_with_one_id_are_named_by_position(own_server) -> None:
    server, root = own_server
    path = root / "doubled.ipynb"
    path.write_text(json.dumps(doubled("a = 1", "b = 2", "c = 3")))
    kernel = open_notebook(server, "doubled.ipynb")
    url = f"{server.url}/oh_jupyter/kernels/{kernel}/mcp"
    async with connected(url, headers=server.headers) as session:
        for tool, more in (("edit_cell", {"source": "x"}), ("run_cell", {}), ("delete_cell", {})):
            refused = await session.call_tool(tool, {"cell": "same", **more})
            assert refused.is_error
            assert text_of(refused).startswith(
                "3 cells have the id 'same', at the positions 0, 1, 2; nothing was done. Name"
            )
        await session.call_tool("edit_cell", {"cell": 1, "source": "b = 20\nb"})
        await session.call_tool("run_cell", {"cell": 1})
        await session.call_tool("edit_cell", {"cell": 2, "delete": True})
    cells = json.loads(path.read_text())["cells"]
    assert ["".join(cell["source"]) for cell in cells] == ["a = 1", "b = 20\nb"]
    assert [cell["execution_count"] for cell in cells] == [None, 1]


@pytest.mark.parametrize(
    ("cell", "fault"),
    [
        ({"cell_type": "code", "metadata": {}, "outputs": []}, "has no valid 'source'"),
        ({"cell_type": "code", "metadata": {}, "source": 7}, "has no valid 'source'"),
        ({"cell_type": "cell", "metadata": {}, "source": ""}, "has no valid 'cell_type'"),
    ],
)
async def test_an_invalid_notebook_is_an_error_with_the_place(
    mcp_connect, book, jp_root_dir, cell, fault
) -> None:
    kernel = await book("0")
    broken = {**doubled("a = 1"), "cells": [*doubled("a = 1")["cells"], {"id": "b", **cell}]}
    (jp_root_dir / "book.ipynb").write_text(json.dumps(broken))
    async with mcp_connect(kernel) as session:
        for tool, more in (("read_cells", {}), ("edit_cell", {"cell": 0, "source": "x"})):
            refused = await session.call_tool(tool, more)
            assert refused.is_error
            assert "Internal error" not in text_of(refused)
            assert f"cell 1 {fault}" in text_of(refused)
