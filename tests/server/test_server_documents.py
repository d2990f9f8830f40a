"""Documents shared by jupyter-server-documents: what agents write is merged with what is typed."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output
from tornado.httpclient import HTTPRequest
from tornado.websocket import websocket_connect

pytest.importorskip("jupyter_server_documents", reason="needs jupyter-server-documents")

from jupyter_ydoc import ydocs
from pycrdt import (
    Doc,
    TransactionEvent,
    YMessageType,
    create_sync_message,
    create_update_message,
    handle_sync_message,
)
from waiting import until

LATER_SECONDS = count(10, 10)


# The server looks at files and saves only when an agent works.
pytestmark = pytest.mark.server_config(
    ServerApp={
        "jpserver_extensions": {
            "oh_jupyter": True,
            "jupyter_server_documents": True,
            "jupyter_server_fileid": True,
        }
    },
    YRoomFileAPI={"min_poll_interval": 3600.0},
)


class Tab:
    """A document as a person's browser has it, by the websocket of its room."""

    def __init__(self, kind: str, socket: Any) -> None:
        self._socket = socket
        self._receiving = False
        self.synced = asyncio.Event()
        self.ydoc = Doc()
        self.document = ydocs[kind](self.ydoc)
        self.ydoc.observe(self._send)

    def _send(self, event: TransactionEvent) -> None:
        if not self._receiving:
            self._socket.write_message(create_update_message(event.update), binary=True)

    async def follow(self) -> None:
        self._socket.write_message(create_sync_message(self.ydoc), binary=True)
        while (message := await self._socket.read_message()) is not None:
            if message[0] == YMessageType.SYNC:
                self._receiving = True
                reply = handle_sync_message(message[1:], self.ydoc)
                self._receiving = False
                if reply is not None:
                    self._socket.write_message(reply, binary=True)
                    self.synced.set()


class Tabs:
    """Opens tabs, and knows what the server has."""

    def __init__(self, serverapp: Any, port: int, headers: dict[str, str]) -> None:
        self._settings = serverapp.web_app.settings
        self._url = f"ws://127.0.0.1:{port}{serverapp.base_url}api/collaboration/room/"
        self._headers = headers

    def room(self, path: str) -> Any:
        kind = "json:notebook" if path.endswith(".ipynb") else "text:file"
        file_id = self._settings["file_id_manager"].index(path)
        return self._settings["yroom_manager"].get_room(f"{kind}:{file_id}")

    @asynccontextmanager
    async def open(self, path: str) -> AsyncIterator[Tab]:
        room = self.room(path)
        request = HTTPRequest(self._url + room.room_id, headers=self._headers)
        socket = await websocket_connect(request)
        tab = Tab(room.room_id.split(":")[1], socket)
        async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:
            tasks.create_task(tab.follow())
            await tab.synced.wait()
            yield tab
            socket.close()

    async def arrived(self, tab: Tab, path: str) -> None:
        """Wait until tab and server have the same."""
        document = await self.room(path).get_jupyter_ydoc()
        await until(lambda: tab.document.get() == document.get())


@pytest.fixture
def tabs(
    jp_serverapp: Any, http_server_client: Any, jp_http_port: int, jp_auth_header: dict[str, str]
) -> Tabs:
    return Tabs(jp_serverapp, jp_http_port, jp_auth_header)


def write(file: Path, content: Any) -> None:
    """Write as an agent does; two writes are not of the same moment."""
    if isinstance(content, str):
        file.write_text(content)
    else:
        nbformat.write(content, file)
    os.utime(file, (0, file.stat().st_mtime + next(LATER_SECONDS)))


async def test_an_agent_sees_typed_text_and_its_edit_is_merged_with_later_text(
    jp_root_dir: Path, tabs: Tabs, unsaved: Any
) -> None:
    file = jp_root_dir / "notes.md"
    write(file, "one\ntwo\nthree\n")
    async with tabs.open("notes.md") as tab:
        text = tab.document._ysource
        text += "four\n"
        await tabs.arrived(tab, "notes.md")
        async with unsaved.shared():
            assert file.read_text() == "one\ntwo\nthree\nfour\n"
            text.insert(4, "typed ")
            await tabs.arrived(tab, "notes.md")
            write(file, "ONE\ntwo\nthree\nfour\n")
        merged = "ONE\ntyped two\nthree\nfour\n"
        await until(lambda: tab.document.get() == merged)
        await unsaved.save()
        assert file.read_text() == merged
        await until(lambda: not tab.document.dirty)


async def test_a_cell_typed_in_while_an_agent_writes_the_notebook(
    jp_root_dir: Path, tabs: Tabs, unsaved: Any
) -> None:
    file = jp_root_dir / "book.ipynb"
    shown = [new_output("stream", text="42")]
    cells = [new_code_cell("total = price * count", outputs=shown), new_code_cell("b = 2")]
    book = new_notebook(cells=cells)
    write(file, book)
    async with tabs.open("book.ipynb") as tab:
        async with unsaved.shared():
            tab.document.ycells[0]["source"].insert(0, "# typed\n")
            await tabs.arrived(tab, "book.ipynb")
            cells[0].update(source="total = price * count + 1", outputs=[])
            cells.insert(1, new_code_cell("between"))
            write(file, book)
        merged = ["# typed\ntotal = price * count + 1", "between", "b = 2"]
        await until(lambda: sources(tab.document.get()) == merged)
        assert tab.document.get()["cells"][0]["outputs"] == shown
        await unsaved.save()
        stored = nbformat.read(file, 4)
        assert sources(stored) == merged
        assert stored.cells[0].outputs == shown


def sources(notebook: dict[str, Any]) -> list[str]:
    return [cell["source"] for cell in notebook["cells"]]


async def test_an_unedited_file_is_not_written(
    jp_root_dir: Path, tabs: Tabs, unsaved: Any, jp_serverapp: Any
) -> None:
    file = jp_root_dir / "notes.md"
    write(file, "one\r\ntwo\r\n")
    async with tabs.open("notes.md") as tab:
        async with unsaved.shared():
            write(file, "one\r\nTWO\r\n")
        await until(lambda: tab.document.get() == "one\nTWO\n")
        model = await jp_serverapp.contents_manager.get(
            "notes.md", content=False, require_hash=True
        )
        # A tab that has another one asks whether to overwrite the file.
        await until(lambda: tab.document.hash == model["hash"])
        await unsaved.save()
        assert file.read_bytes() == b"one\r\nTWO\r\n"
        await until(lambda: not tab.document.dirty)


async def test_a_file_that_is_gone(jp_root_dir: Path, tabs: Tabs, unsaved: Any) -> None:
    file, other = jp_root_dir / "notes.md", jp_root_dir / "other.md"
    write(file, "one\n")
    write(other, "two\n")
    async with tabs.open("notes.md"), tabs.open("other.md") as tab:
        async with unsaved.shared():
            file.unlink()
            write(other, "TWO\n")
        await until(lambda: tab.document.get() == "TWO\n")
    assert not file.exists()


async def test_a_save_finds_that_an_agent_has_written(
    jp_root_dir: Path, tabs: Tabs, unsaved: Any
) -> None:
    """The agent works in a terminal: the save comes before anyone looks at the file."""
    file = jp_root_dir / "notes.md"
    write(file, "one\ntwo\n")
    async with tabs.open("notes.md") as tab:
        tab.document._ysource.insert(0, "typed ")
        await tabs.arrived(tab, "notes.md")
        write(file, "one\nTWO\n")
        await unsaved.save()
        assert file.read_text() == "typed one\nTWO\n"
        await until(lambda: tab.document.get() == "typed one\nTWO\n")
