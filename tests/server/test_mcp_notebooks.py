"""Open notebooks as MCP tools: in the file, and in the shared document."""

from __future__ import annotations

import asyncio
import json
import os
import re
from pathlib import Path

import nbformat
import pytest
from mcp_client import text_of
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from tornado.web import HTTPError

from oh_jupyter.operations.actions import Confirm
from oh_jupyter.server.state import state_of

PLOT = """\
from IPython.display import HTML, display
import base64, sys
print("to stdout"); print("to stderr", file=sys.stderr)
display(HTML("<b>bold</b>"))
display({"image/png": "iVBORw0KGgo=", "text/plain": "a plot"}, raw=True)
6 * 7
"""


@pytest.fixture
def opened(jp_serverapp, jp_root_dir: Path):
    """Open a notebook as JupyterLab does, and get its path and its kernel's id."""

    async def opened(name: str = "work/book.ipynb", minor: int = 5) -> tuple[str, str]:
        book = new_notebook(cells=[new_markdown_cell("# Title"), new_code_cell("x = 20")])
        book["nbformat_minor"] = minor
        if minor < 5:
            for cell in book.cells:
                del cell["id"]
        path = jp_root_dir / name
        path.parent.mkdir(exist_ok=True)
        nbformat.write(book, path)
        session = await jp_serverapp.session_manager.create_session(
            path=name, name=path.name, type="notebook", kernel_name="python3"
        )
        return name, session["kernel"]["id"]

    return opened


@pytest.fixture
def stored(jp_root_dir: Path):
    def stored(name: str = "work/book.ipynb") -> list[dict]:
        book = nbformat.read(jp_root_dir / name, as_version=4)
        nbformat.validate(book)
        return [dict(cell) for cell in book.cells]

    return stored


async def test_open_notebooks_are_listed(mcp_connect, opened) -> None:
    async with mcp_connect() as session:
        assert text_of(await session.call_tool("list_notebooks", {})) == "No notebook is open."
        path, kernel = await opened()
        answer = await session.call_tool("list_notebooks", {})
        (notebook,) = json.loads(text_of(answer))
        assert (notebook["path"], notebook["kernel_id"]) == (path, kernel)


async def test_later_text_of_a_person_is_not_replaced(
    mcp_connect, opened, stored, jp_root_dir
) -> None:
    path, _ = await opened()

    def type_(text: str) -> None:
        book = nbformat.read(jp_root_dir / path, as_version=4)
        book.cells[1]["source"] = text
        nbformat.write(book, jp_root_dir / path)

    async with mcp_connect() as session:
        edit = {"notebook": path, "cell": 1, "source": "x = 30"}
        unread = await session.call_tool("edit_cell", edit)
        assert "You had not read this cell. Its text was:]\nx = 20" in text_of(unread)
        again = await session.call_tool("edit_cell", {**edit, "source": "x = 40"})
        assert "Its text was" not in text_of(again)
        for change in ({"source": "x = 50"}, {"delete": True}):
            await session.call_tool("read_cells", {"notebook": path})
            type_(f"precious  # {change}")
            refused = await session.call_tool("edit_cell", {"notebook": path, "cell": 1, **change})
            assert refused.is_error
            assert "has changed since you read it; nothing was written." in text_of(refused)
            assert f"Its text is now:\nprecious  # {change}" in text_of(refused)
            assert stored()[1]["source"] == f"precious  # {change}"
        # Now it knows the text.
        deleted = await session.call_tool(
            "edit_cell", {"notebook": path, "cell": 1, "delete": True}
        )
        assert not deleted.is_error


@pytest.mark.thorough
async def test_edits_of_cells_are_events_with_a_diff(mcp_connect, opened) -> None:
    _, kernel = await opened()
    async with mcp_connect(kernel) as session:
        await session.call_tool("run", {"command": "true"})  # loads the runtime
        await session.call_tool("edit_cell", {"cell": 1, "old_str": "20", "new_str": "21"})
        await session.call_tool("insert_cell", {"source": "y = 1"})
        log = text_of(await session.call_tool("events", {"start_id": 2}))
    assert "agent edit: Editing file" in log
    assert "Replace in work/book.ipynb" in log
    assert "Insert in work/book.ipynb" in log


async def test_cells_are_read_inserted_edited_moved_deleted(mcp_connect, opened, stored) -> None:
    _, kernel = await opened()
    async with mcp_connect(kernel) as session:
        answer = await session.call_tool("read_cells", {})
        assert "# Title" in text_of(answer)
        assert "2 cells" in text_of(answer)
        ids = re.findall(r"=== cell \d+ \| (\S+) \|", text_of(answer))
        assert ids == [cell["id"] for cell in stored()]
        answer = await session.call_tool(
            "insert_cell", {"source": "some *text*", "cell_type": "markdown", "index": 1}
        )
        assert f"Inserted cell 1 (id {stored()[1]['id']}) of work/book.ipynb" in text_of(answer)
        assert [cell["source"] for cell in stored()] == ["# Title", "some *text*", "x = 20"]
        edit = {"cell": ids[1], "old_str": "20", "new_str": "21"}
        answer = await session.call_tool("edit_cell", edit)
        assert text_of(answer).splitlines()[-2:] == ["-x = 20", "+x = 21"]
        failed = await session.call_tool("edit_cell", edit)
        assert failed.is_error
        assert "0 times" in text_of(failed)
        await session.call_tool("edit_cell", {"cell": 0, "source": "## Other"})
        await session.call_tool("edit_cell", {"cell": ids[1], "index": 0})
        assert [cell["source"] for cell in stored()] == ["x = 21", "## Other", "some *text*"]
        await session.call_tool("edit_cell", {"cell": -1, "delete": True})
        assert [cell["source"] for cell in stored()] == ["x = 21", "## Other"]
        await session.call_tool("edit_cell", {"cell": 1, "cell_type": "code", "source": "y = 1"})
        assert [cell["cell_type"] for cell in stored()] == ["code", "code"]
        for wrong in (2, -3, "no-such-id"):
            answer = await session.call_tool("delete_cell", {"cell": wrong})
            assert answer.is_error
            assert "There is no cell" in text_of(answer)


@pytest.mark.thorough
async def test_a_cell_is_run_in_the_notebooks_kernel(mcp_connect, opened, stored, act) -> None:
    _, kernel = await opened()
    async with mcp_connect(kernel) as session:
        answer = await session.call_tool("run_cell", {"cell": 1})
        assert not answer.is_error
        answer = await session.call_tool("insert_cell", {"source": PLOT, "run": True})
        assert "42" in text_of(answer)
        assert f"Ran cell 2 (id {stored()[2]['id']}) of work/book.ipynb as [" in text_of(answer)
        assert answer.structured_content is None
        assert [block.type for block in answer.content].count("image") == 1
        cell = stored()[2]
        kinds = [output["output_type"] for output in cell["outputs"]]
        assert kinds[-3:] == ["display_data", "display_data", "execute_result"]
        texts = {o["name"]: o["text"] for o in cell["outputs"] if o["output_type"] == "stream"}
        assert texts == {"stdout": "to stdout\n", "stderr": "to stderr\n"}
        assert cell["outputs"][-3]["data"]["text/html"] == "<b>bold</b>"
        assert cell["outputs"][-1]["data"]["text/plain"] == "42"
        read = await session.call_tool("read_cells", {"start": 2})
        assert [block.type for block in read.content].count("image") == 1
        assert "to stdout" in text_of(read)
        assert read.structured_content is None
        unseen = await session.call_tool("read_cells", {"start": 2, "outputs": False})
        assert [block.type for block in unseen.content] == ["text", "text"]
        failed = await session.call_tool("insert_cell", {"source": "1 / 0", "run": True})
        assert failed.is_error
        assert "ZeroDivisionError" in text_of(failed)
        (error,) = stored()[3]["outputs"]
        assert (error["output_type"], error["ename"]) == ("error", "ZeroDivisionError")
    # The person has the variable, and the log has the cells.
    _, observation = await act("run_ipython", kernel, code="x")
    assert observation["content"].startswith("20\n")


async def test_edited_cells_come_back_with_a_rewind(
    mcp_connect, opened, stored, act, ask, monkeypatch
) -> None:
    monkeypatch.setenv("OH_JUPYTER_CHECKPOINTS", "auto")
    _, kernel = await opened()
    await act("read", kernel, path="book.ipynb")  # loads the runtime, and begins no turn
    before = stored()
    async with mcp_connect(kernel) as session:
        await session.call_tool("edit_cell", {"cell": 1, "source": "x = 21"})
        await session.call_tool("insert_cell", {"source": "y = 1"})
    assert [cell["source"] for cell in stored()] == ["# Title", "x = 21", "y = 1"]
    _, listed = await ask("kernels", kernel, "checkpoints")
    (turn,) = listed["checkpoints"]
    assert (turn["kind"], turn["label"]) == ("turn", "edit cells of book.ipynb")
    status, plan = await ask("kernels", kernel, "rewind", body={"source": "user"})
    assert (status, plan["changes"], plan["kept"]) == (
        200,
        [{"path": "book.ipynb", "kind": "restore"}],
        {},
    )
    assert stored() == before


@pytest.mark.thorough
async def test_files_are_edited_by_relative_paths_too(mcp_connect, opened) -> None:
    _, kernel = await opened()
    async with mcp_connect(kernel) as session:
        await session.call_tool("run", {"command": "echo one > notes.txt"})
        edit = {"command": "str_replace", "path": "notes.txt", "old_str": "one", "new_str": "two"}
        assert not (await session.call_tool("edit", edit)).is_error
        assert "two" in text_of(await session.call_tool("read", {"path": "notes.txt"}))
        pandas = "import json\njson.loads('{')"
        answer = await session.call_tool("run_ipython", {"code": pandas})
        assert "frames of libraries; the last is json/decoder.py" in text_of(answer)


async def test_cells_that_an_agent_runs_are_numbered_like_a_persons(
    mcp_connect, opened, stored
) -> None:
    _, kernel = await opened()
    async with mcp_connect(kernel) as session:
        await session.call_tool("insert_cell", {"source": "x + 1"})
        await session.call_tool("insert_cell", {"source": "_ + 1"})
        for cell in (1, 2, 3):
            assert not (await session.call_tool("run_cell", {"cell": cell})).is_error
        history = "print(In[1:4], Out, get_ipython().execution_count)"
        answer = await session.call_tool("run_ipython", {"code": history})
    assert [cell["execution_count"] for cell in stored()[1:]] == [1, 2, 3]
    (result,) = stored()[3]["outputs"]
    assert (result["output_type"], result["execution_count"]) == ("execute_result", 3)
    assert "['x = 20', 'x + 1', '_ + 1'] {2: 21, 3: 22} 4" in text_of(answer)


async def test_a_cell_inside_a_persons_has_the_next_number(
    mcp_connect, opened, stored, jp_serverapp, tmp_path
) -> None:
    _, kernel = await opened()
    gate, started = tmp_path / "gate", tmp_path / "started"
    for pipe in (gate, started):
        os.mkfifo(pipe)
    client = jp_serverapp.kernel_manager.get_kernel(kernel).client()
    client.start_channels()

    async def run(code: str) -> dict:
        client.execute(code)
        return (await client.get_shell_msg(timeout=60))["content"]

    async with mcp_connect(kernel) as session:
        source = f"import sys; print('late', file=sys.stderr); open({str(gate)!r}, 'w').close(); 7"
        await session.call_tool("edit_cell", {"cell": 1, "source": source})
        assert (await run("%load_ext oh_jupyter"))["execution_count"] == 1
        outer = asyncio.ensure_future(run(f"%oh_run echo > {started}; cat {gate}"))
        await asyncio.to_thread(started.read_text)
        answer = await session.call_tool("run_cell", {"cell": 1})
        assert not answer.is_error, text_of(answer)
        assert (await outer)["execution_count"] == 2
        reply = await run("assert Out[3] == 7 and 'late' in In[3] and 'oh_run' in In[2]")
    assert (reply["status"], reply["execution_count"]) == ("ok", 4)
    cell = stored()[1]
    assert cell["execution_count"] == 3
    assert [(o["output_type"], o.get("name")) for o in cell["outputs"]] == [
        ("stream", "stderr"),
        ("execute_result", None),
    ]
    client.stop_channels()


@pytest.mark.thorough
async def test_another_notebook_is_named_by_its_path(mcp_connect, opened, stored) -> None:
    _, one = await opened()
    await opened("other.ipynb")
    async with mcp_connect(one) as session:
        await session.call_tool("edit_cell", {"cell": 1, "source": "a = 1"})
        await session.call_tool(
            "edit_cell", {"cell": 1, "source": "a = 2", "notebook": "other.ipynb"}
        )
        assert stored()[1]["source"] == "a = 1"
        assert stored("other.ipynb")[1]["source"] == "a = 2"
        for name in ("book.ipynb", "other.ipynb"):
            answer = await session.call_tool("run_cell", {"cell": 1, "notebook": name})
            assert not answer.is_error
        answer = await session.call_tool("run_ipython", {"code": "a"})
        assert text_of(answer).startswith("1\n")
    async with mcp_connect() as session:
        answer = await session.call_tool("read_cells", {})
        assert answer.is_error
        assert "'work/book.ipynb'" in text_of(answer)
        answer = await session.call_tool("read_cells", {"notebook": "missing.ipynb"})
        assert answer.is_error
        assert "missing.ipynb" in text_of(answer)


async def test_notebooks_of_older_formats_stay_valid(mcp_connect, opened, stored) -> None:
    _, kernel = await opened(minor=4)
    async with mcp_connect(kernel) as session:
        assert not (await session.call_tool("insert_cell", {"source": "y = 2"})).is_error
        assert not (await session.call_tool("run_cell", {"cell": 2})).is_error
    assert [cell["source"] for cell in stored()] == ["# Title", "x = 20", "y = 2"]


async def test_a_concurrent_save_is_not_lost(
    mcp_connect, opened, stored, jp_serverapp, monkeypatch, jp_root_dir
) -> None:
    path, kernel = await opened()
    contents = jp_serverapp.contents_manager
    get = contents.get

    async def slow_get(name, content=True, **more):
        model = get(name, content=content, **more)
        model = await model if asyncio.iscoroutine(model) else model
        if content and name == path:
            book = nbformat.read(jp_root_dir / path, as_version=4)
            book.cells[0]["source"] = "# The person's"
            nbformat.write(book, jp_root_dir / path)
        return model

    monkeypatch.setattr(contents, "get", slow_get)
    async with mcp_connect(kernel) as session:
        answer = await session.call_tool("edit_cell", {"cell": 1, "source": "gone"})
        assert answer.is_error
        assert "Someone else saved" in text_of(answer)
    assert [cell["source"] for cell in stored()] == ["# The person's", "x = 20"]


async def test_a_failed_save_is_reported(mcp_connect, opened, jp_serverapp, monkeypatch) -> None:
    _, kernel = await opened()
    for problem, words in (
        (HTTPError(507, "the disk is full"), "work/book.ipynb was not saved: the disk is full"),
        (
            RuntimeError("odd"),
            "Internal error in 'insert_cell': RuntimeError: odd. The server still",
        ),
    ):

        def save(model, path, problem=problem):
            raise problem

        monkeypatch.setattr(jp_serverapp.contents_manager, "save", save)
        async with mcp_connect(kernel) as session:
            answer = await session.call_tool("insert_cell", {"source": "y"})
        assert answer.is_error
        assert words in text_of(answer)


async def test_changes_at_once_are_all_kept(mcp_connect, opened, stored) -> None:
    _, kernel = await opened()
    async with mcp_connect(kernel) as one, mcp_connect() as two:
        answers = await asyncio.gather(
            *(
                session.call_tool("insert_cell", {"source": f"# {number}"})
                for number, session in enumerate([one, two] * 5)
            )
        )
    assert [text_of(answer) for answer in answers if answer.is_error] == []
    assert {f"# {number}" for number in range(10)} <= {cell["source"] for cell in stored()}


async def test_a_risky_cell_waits_in_the_notebooks_kernel(
    mcp_connect, opened, stored, ask, jp_serverapp
) -> None:
    _, kernel = await opened()
    # The default kernel, by whose tools it is asked for, asks nobody.
    async with mcp_connect() as session:
        arguments = {"source": "!sudo -n true", "run": True}
        asked = asyncio.ensure_future(session.call_tool("insert_cell", arguments))
        code, waiting = 0, []
        async with asyncio.timeout(60):
            while code != 200 or not waiting:  # until oh_jupyter is there it is 424
                code, waiting = await ask("kernels", kernel, "confirmations")
        # The document was edited, and nothing was executed.
        assert (stored()[2]["source"], stored()[2]["outputs"]) == ("!sudo -n true", [])
        link = state_of(jp_serverapp.web_app.settings).router.link(kernel)
        await link.request(Confirm(waiting[0]["id"], False))
        answer = await asked
        assert answer.is_error
        assert "rejected by the user" in text_of(answer)
        assert stored()[2]["outputs"] == []


async def test_users_without_permission_neither_read_nor_run(
    mcp_connect, opened, jp_serverapp, monkeypatch
) -> None:
    await opened()
    denied = {("write", "contents"), ("execute", "kernels")}

    def is_authorized(handler, user, action, resource) -> bool:
        return (action, resource) not in denied

    monkeypatch.setattr(jp_serverapp.authorizer, "is_authorized", is_authorized)
    async with mcp_connect() as session:
        assert not (await session.call_tool("read_cells", {})).is_error
        answer = await session.call_tool("delete_cell", {"cell": 0})
        assert answer.is_error
        assert "may not write" in text_of(answer)
        denied.discard(("write", "contents"))
        answer = await session.call_tool("run_cell", {"cell": 1})
        assert answer.is_error
        assert "may not run code" in text_of(answer)


class TestLive:
    """With jupyter-collaboration's server part."""

    extension = "jupyter_server_ydoc"

    @pytest.fixture
    def jp_server_config(self, jp_server_config, tmp_path):
        pytest.importorskip(self.extension, reason=f"needs {self.extension}")
        ystore = {"db_path": str(tmp_path / "ystore.db")}
        config = {**jp_server_config, "SQLiteYStore": ystore}
        extensions = {self.extension: True, "jupyter_server_fileid": True}
        config["ServerApp"] = {
            **config["ServerApp"],
            "jpserver_extensions": {
                **config["ServerApp"]["jpserver_extensions"],
                **extensions,
            },
        }
        return config

    @pytest.fixture
    def shared(self, jp_serverapp):
        """The document that people's tabs would show."""

        async def shared(path: str):
            (app,) = jp_serverapp.extension_manager.extension_apps["jupyter_server_ydoc"]
            return await app.get_document(
                path=path, content_type="notebook", file_format="json", copy=False, create=True
            )

        return shared

    @pytest.mark.filterwarnings("ignore")
    async def test_tools_work_on_the_shared_document(self, mcp_connect, opened, shared) -> None:
        path, kernel = await opened()
        document = await shared(path)

        def cells() -> list[dict]:
            return document.get()["cells"]

        async with mcp_connect(kernel) as session:
            answer = await session.call_tool("insert_cell", {"source": PLOT, "run": True})
            assert "42" in text_of(answer)
            assert [cell["source"] for cell in cells()] == ["# Title", "x = 20", PLOT]
            outputs = cells()[2]["outputs"]
            streams = {o["name"]: o["text"] for o in outputs if o["output_type"] == "stream"}
            assert streams == {"stdout": "to stdout\n", "stderr": "to stderr\n"}
            assert outputs[-1]["data"] == {"text/plain": "42"}
            edited = document.ycells[1]
            await session.call_tool("edit_cell", {"cell": 1, "old_str": "20", "new_str": "21"})
            assert str(edited["source"]) == "x = 21"
            await session.call_tool("move_cell", {"cell": 2, "index": 0})
            await session.call_tool("delete_cell", {"cell": 1})
            assert [cell["source"] for cell in cells()] == [PLOT, "x = 21"]
            await session.call_tool("edit_cell", {"cell": 1, "cell_type": "markdown"})
            assert cells()[1]["cell_type"] == "markdown"
            read = await session.call_tool("read_cells", {})
            assert "to stdout" in text_of(read)
            assert [block.type for block in read.content].count("image") == 1


class TestLiveOnServerDocuments(TestLive):
    """With jupyter-server-documents."""

    extension = "jupyter_server_documents"

    @pytest.fixture
    def shared(self, jp_serverapp):
        """The document that people's tabs would show."""

        async def shared(path: str):
            return await jp_serverapp.web_app.settings["jupyter_server_ydoc"].get_document(
                path=path, content_type="notebook", file_format="json"
            )

        return shared
