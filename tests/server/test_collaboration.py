"""Documents shared by jupyter-collaboration: what agents write is merged with what people type."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output
from waiting import until

pytest.importorskip(
    "jupyter_server_ydoc", reason="needs jupyter-server-ydoc, of jupyter-collaboration"
)

Open = Callable[[str], Awaitable[Any]]


@pytest.fixture
def jp_server_config(jp_server_config: dict[str, Any], tmp_path: Path) -> dict[str, Any]:
    """Files are looked at when an agent has worked, and when something is saved."""
    extensions = {"jupyter_server_ydoc": True, "jupyter_server_fileid": True}
    server = jp_server_config["ServerApp"]
    return {
        **jp_server_config,
        "ServerApp": {
            **server,
            "jpserver_extensions": {**server["jpserver_extensions"], **extensions},
        },
        "SQLiteYStore": {"db_path": str(tmp_path / "ystore.db")},
        "YDocExtension": {"file_poll_interval": 3600, "document_save_delay": 0.01},
    }


@pytest.fixture
def opened(jp_serverapp: Any) -> Open:
    """Open a document as the first tab does."""

    async def opened(path: str) -> Any:
        (app,) = jp_serverapp.extension_manager.extension_apps["jupyter_server_ydoc"]
        notebook = path.endswith(".ipynb")
        document = await app.get_document(
            path=path,
            content_type="notebook" if notebook else "file",
            file_format="json" if notebook else "text",
            copy=False,
            create=True,
        )
        loader = app.file_loaders[jp_serverapp.web_app.settings["file_id_manager"].get_id(path)]
        await until(lambda: "load_content" in vars(loader))
        return document

    return opened


async def test_text_typed_while_an_agent_writes_the_file(
    jp_root_dir: Path, opened: Open, unsaved: Any
) -> None:
    file = jp_root_dir / "notes.md"
    file.write_text("one\ntwo\nthree\n")
    document = await opened("notes.md")
    async with unsaved.shared():
        document._ysource.insert(4, "typed ")
        file.write_text("ONE\ntwo\nthree\nfour\n")
    merged = "ONE\ntyped two\nthree\nfour\n"
    await until(lambda: document.get() == merged)
    await until(lambda: file.read_text() == merged)


async def test_a_cell_typed_in_while_an_agent_writes_the_notebook(
    jp_root_dir: Path, opened: Open, unsaved: Any
) -> None:
    file = jp_root_dir / "book.ipynb"
    shown = [new_output("stream", text="42")]
    book = new_notebook(
        cells=[new_code_cell("total = price * count", outputs=shown), new_code_cell("b = 2")]
    )
    nbformat.write(book, file)
    document = await opened("book.ipynb")
    async with unsaved.shared():
        document.ycells[0]["source"].insert(0, "# typed\n")
        book.cells[0].update(source="total = price * count + 1", outputs=[])
        nbformat.write(book, file)
    async with unsaved.shared():
        book.cells.insert(1, new_code_cell("between"))
        nbformat.write(book, file)

    def sources(cells: list[dict[str, Any]]) -> list[str]:
        return [cell["source"] for cell in cells]

    merged = ["# typed\ntotal = price * count + 1", "between", "b = 2"]
    await until(lambda: sources(document.get()["cells"]) == merged)

    assert document.get()["cells"][0]["outputs"] == shown

    def stored() -> list[str]:
        text = file.read_text()
        # Jupyter writes it in place, and it can be read half written.
        return sources(nbformat.reads(text, 4).cells) if text.endswith("}\n") else []

    await until(lambda: stored() == merged)


async def test_outputs_that_an_edit_has_dropped_are_saved_again(
    jp_root_dir: Path, opened: Open, unsaved: Any
) -> None:
    file = jp_root_dir / "book.ipynb"
    shown = [new_output("stream", text="42")]
    book = new_notebook(cells=[new_code_cell("print(42)", outputs=shown)])
    nbformat.write(book, file)
    await opened("book.ipynb")
    async with unsaved.shared():
        book.cells[0].update(source="print(42) # the answer", outputs=[])
        nbformat.write(book, file)
    await until(lambda: "output_type" in file.read_text())


async def test_a_save_finds_that_an_agent_has_written(
    jp_root_dir: Path, opened: Open, jp_serverapp: Any
) -> None:
    """The agent works in a terminal: the person's save comes before anyone looks at the file."""
    file = jp_root_dir / "notes.md"
    file.write_text("one\ntwo\n")
    document = await opened("notes.md")
    document._ysource.insert(0, "typed ")
    await until(lambda: file.read_text() == "typed one\ntwo\n")
    file.write_text("typed one\nTWO\n")
    document._ysource.insert(0, "more ")
    await until(lambda: document.get() == "more typed one\nTWO\n")
    document._ysource.insert(0, "and ")
    await until(lambda: file.read_text() == "and more typed one\nTWO\n")


async def test_an_unedited_file_is_not_written(
    jp_root_dir: Path, opened: Open, unsaved: Any, jp_serverapp: Any
) -> None:
    file = jp_root_dir / "notes.md"
    file.write_bytes(b"one\r\ntwo\r\n")
    document = await opened("notes.md")
    saves = []

    async def on_room(logger: Any, schema_id: str, data: dict[str, Any]) -> None:
        saves.append(data.get("action"))

    jp_serverapp.event_logger.add_listener(
        schema_id="https://schema.jupyter.org/jupyter_collaboration/session/v1", listener=on_room
    )
    async with unsaved.shared():
        file.write_bytes(b"one\r\nTWO\r\n")
    await until(lambda: document.get() == "one\nTWO\n")
    await until(lambda: "save" in saves)
    assert file.read_bytes() == b"one\r\nTWO\r\n"


async def test_a_room_that_was_cleaned_has_no_part_in_saves(
    jp_root_dir: Path, opened: Open, jp_serverapp: Any
) -> None:
    """Another view of the file keeps its loader."""
    file = jp_root_dir / "notes.md"
    file.write_text("one\n")
    await opened("notes.md")
    (app,) = jp_serverapp.extension_manager.extension_apps["jupyter_server_ydoc"]
    file_id = jp_serverapp.web_app.settings["file_id_manager"].get_id("notes.md")
    jp_serverapp.event_logger.emit(
        schema_id="https://schema.jupyter.org/jupyter_collaboration/session/v1",
        data={
            "level": "INFO",
            "room": f"text:file:{file_id}",
            "path": "notes.md",
            "action": "clean",
            "msg": "Room deleted.",
        },
    )
    await asyncio.sleep(0)  # the listener's turn
    model = {"format": "text", "type": "file", "content": "of the next room\n"}
    await app.file_loaders[file_id].maybe_save_content(model)
    assert file.read_text() == "of the next room\n"


async def test_a_file_that_is_gone(jp_root_dir: Path, opened: Open, unsaved: Any) -> None:
    file, other = jp_root_dir / "notes.md", jp_root_dir / "other.md"
    file.write_text("one\n")
    other.write_text("two\n")
    await opened("notes.md")
    document = await opened("other.md")
    async with unsaved.shared():
        file.unlink()
        other.write_text("TWO\n")
    await until(lambda: document.get() == "TWO\n")
