"""Two who save one file at the same moment: neither writes over what it does not know."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from jupyter_server.services.contents.largefilemanager import AsyncLargeFileManager
from tornado.web import HTTPError

from oh_jupyter.edit_lock import LockHolder, held
from oh_jupyter.errors import FileChangedError
from oh_jupyter.server.mcp.notebooks import StoredDocument
from oh_jupyter.server.saves import EXPECTED_HASH, OrderedSaves


@pytest.fixture
def contents(tmp_path: Path) -> Any:
    return AsyncLargeFileManager(root_dir=str(tmp_path))


@pytest.fixture
def saves(contents: Any) -> OrderedSaves:
    return OrderedSaves(contents)


def text(content: str, **fields: str) -> dict[str, Any]:
    return {"type": "file", "format": "text", "content": content, **fields}


async def test_of_two_saves_at_once_one_is_refused(contents, saves, tmp_path) -> None:
    await contents.save(text("one"), "a.txt")
    known = (await contents.get("a.txt", content=False, require_hash=True))["hash"]
    answers = await asyncio.gather(
        *(contents.save(text(each, **{EXPECTED_HASH: known}), "a.txt") for each in ("two", "six")),
        return_exceptions=True,
    )
    (refused,) = [each for each in answers if isinstance(each, HTTPError)]
    (saved,) = [each for each in answers if isinstance(each, dict)]
    assert refused.status_code == 409
    assert (tmp_path / "a.txt").read_text() == "two"
    assert saved["hash"] == (await contents.get("a.txt", require_hash=True))["hash"]

    (tmp_path / "a.txt").unlink()
    await contents.save(text("again", **{EXPECTED_HASH: known}), "a.txt")
    assert (tmp_path / "a.txt").read_text() == "again"


async def test_a_cell_that_was_saved_meanwhile_is_not_written_over(
    contents, saves, tmp_path
) -> None:
    cells = [
        {"cell_type": "raw", "id": name, "metadata": {}, "source": name} for name in ("one", "two")
    ]
    notebook = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells}
    (tmp_path / "n.ipynb").write_text(json.dumps(notebook))
    document = StoredDocument("n.ipynb", contents, saves)
    known = await document.cells()
    await document.set_source(0, known[0], "typed")
    await document.move("two", 0)
    with pytest.raises(FileChangedError, match="at the same moment"):
        await document.set_source(0, known[0], "agent")
    await document.set_source(1, known[1], "agent")
    assert [each["source"] for each in await document.cells()] == ["agent", "typed"]


async def test_a_save_waits_for_an_edit_of_the_same_file(contents, saves, tmp_path) -> None:
    await contents.save(text("one"), "a.txt")
    known = (await contents.get("a.txt", content=False, require_hash=True))["hash"]
    file = tmp_path / "a.txt"
    with held([LockHolder(str(tmp_path), "", str(file))]):
        saving = asyncio.ensure_future(
            contents.save(text("two", **{EXPECTED_HASH: known}), "a.txt")
        )
        await asyncio.wait({saving}, timeout=0.1)  # it ends at once if it does not wait
        file.write_text("edited")
    with pytest.raises(HTTPError, match="has changed since it was read"):
        await saving
    assert file.read_text() == "edited"


async def test_a_file_is_not_read_before_it_is_whole(contents, tmp_path) -> None:
    started, whole = asyncio.Event(), asyncio.Event()
    save = contents.save

    async def save_in_two_pieces(model: dict[str, Any], path: str = "") -> dict[str, Any]:
        (tmp_path / path).write_text("on")
        started.set()
        await whole.wait()
        return await save(model, path)

    contents.save = save_in_two_pieces
    OrderedSaves(contents)
    saving = asyncio.ensure_future(contents.save(text("one"), "a.txt"))
    await started.wait()
    reading = asyncio.ensure_future(contents.get("a.txt"))
    await asyncio.wait({reading}, timeout=0.1)  # it ends at once if it does not wait
    assert (await contents.get("a.txt", content=False))["name"] == "a.txt"
    whole.set()
    await saving
    assert (await reading)["content"] == "one"
    assert [each["name"] for each in (await contents.get(""))["content"]] == ["a.txt"]


async def test_a_reader_that_goes_away_while_it_waits_leaves_no_lock(contents, saves, tmp_path):
    file = tmp_path / "a.txt"
    file.write_text("one")
    holder = LockHolder(str(tmp_path), "", str(file))
    with held([holder]):
        reading = asyncio.ensure_future(contents.get("a.txt"))
        await asyncio.wait({reading}, timeout=0.1)
        reading.cancel()
        await asyncio.wait({reading})
    assert reading.cancelled()
    await asyncio.wait(asyncio.all_tasks() - {asyncio.current_task()}, timeout=60)
    await asyncio.to_thread(lock_and_release, holder)
    with pytest.raises(HTTPError, match=r"not a valid path|does not exist"):
        await contents.get("a\0b")


def lock_and_release(holder: LockHolder) -> None:
    with held([holder], timeout_seconds=60):
        pass
