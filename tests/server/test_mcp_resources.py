"""Resources and prompts of MCP: what people attach to a prompt in their client."""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable
from pathlib import Path

import nbformat
import pytest
from mcp_client import MAJOR, McpError
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5E"
    "rkJggg=="
)


@pytest.fixture
def open_notebook(jp_serverapp, jp_root_dir: Path) -> Callable[[], Awaitable[str]]:
    async def open_notebook() -> str:
        """Open a notebook whose second code cell has failed; return its address."""
        failure = new_output("error", ename="NameError", evalue="y", traceback=["NameError: y"])
        picture = new_output("display_data", {"image/png": PIXEL})
        cells = [
            new_markdown_cell("# A title"),
            new_code_cell("x = 20", execution_count=1, outputs=[picture]),
            new_code_cell("y + 1", execution_count=2, outputs=[failure]),
        ]
        for cell, id in zip(cells, ("title", "first", "second"), strict=True):
            cell["id"] = id
        path = jp_root_dir / "work dir" / "a book.ipynb"
        path.parent.mkdir()
        nbformat.write(new_notebook(cells=cells), path)
        await jp_serverapp.session_manager.create_session(
            path="work dir/a book.ipynb", name=path.name, type="notebook", kernel_name="python3"
        )
        return "jupyter://notebooks/work%20dir/a%20book.ipynb"

    return open_notebook


@pytest.mark.parametrize(
    "transport",
    [
        "http",
        pytest.param(
            "sessionless",
            marks=pytest.mark.skipif(MAJOR == 1, reason="major 1 of the SDK knows sessions only"),
        ),
    ],
)
async def test_notebooks_and_their_cells_are_resources(
    mcp_connect, open_notebook, transport: str
) -> None:
    notebook = await open_notebook()
    async with mcp_connect(transport=transport) as session:
        (listed,) = await session.list_resources()
        assert (listed.uri, listed.title) == (notebook, "a book.ipynb")
        templates = await session.list_resource_templates()
        assert [template.uri_template for template in templates] == [
            "jupyter://notebooks/{+path}{#cell}",
            "jupyter://store/{+path}",
        ]
        whole = await session.read_resource(notebook)
        assert "# A title" in "".join(getattr(each, "text", "") for each in whole)
        cell = await session.read_resource(f"{notebook}#second")
        assert "y + 1" in cell[0].text
        assert "NameError" in cell[0].text
        _, picture = await session.read_resource(f"{notebook}#1")
        assert picture.mime_type == "image/png"


async def test_files_of_the_store_and_the_last_page_are_resources(
    mcp_connect, plain_kernel, act, tmp_path
) -> None:
    code = f"""
%load_ext oh_jupyter
oh.store.write("notes.txt", "hello")
oh.store.write("folder/pixel.png", __import__("base64").b64decode({PIXEL!r}))
oh.store.write("large.bin", bytes(2**20 + 1))
"""
    status, shown = await act("run_ipython", plain_kernel, code=code)
    assert (status, "Error" in shown["content"]) == (200, False), shown
    async with mcp_connect(plain_kernel) as session:
        listed = {each.uri for each in await session.list_resources()}
        assert {"jupyter://store/notes.txt", "jupyter://store/large.bin"} <= listed
        assert "jupyter://browser/last-page" not in listed
        (notes,) = await session.read_resource("jupyter://store/notes.txt")
        assert notes.text == "hello"
        with pytest.raises(McpError, match="more than 1048576 bytes"):
            await session.read_resource("jupyter://store/large.bin")
        (pixel,) = await session.read_resource("jupyter://store/folder/pixel.png")
        assert base64.b64decode(pixel.blob) == base64.b64decode(PIXEL)


@pytest.mark.browser
@pytest.mark.thorough
async def test_the_last_page_is_a_resource(mcp_connect, plain_kernel, act, tmp_path) -> None:
    page = tmp_path / "page.html"
    page.write_text("<h1>Here</h1>")
    assert (await act("browse", plain_kernel, url=page.as_uri()))[0] == 200
    async with mcp_connect(plain_kernel) as session:
        uri = "jupyter://browser/last-page"
        assert uri in {each.uri for each in await session.list_resources()}
        (picture,) = await session.read_resource(uri)
        assert base64.b64decode(picture.blob).startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("uri", "reason"),
    [
        ("jupyter://notebooks/none.ipynb", "none.ipynb"),
        ("jupyter://browser/last-page", "not loaded in kernel"),
        ("file:///etc/passwd", "Addresses begin with jupyter://notebooks/"),
        ("jupyter://notebooks/none.ipynb#3", "none.ipynb"),
        ("jupyter://notebooks/", "list_notebooks shows the open ones"),
        ("jupyter://store/../secret", "secret"),
        ("jupyter://store/none.txt", "The store has no file 'none.txt'"),
        ("jupyter://store/", "store"),
    ],
)
async def test_unreadable_resources_are_errors(
    mcp_connect, plain_kernel, uri: str, reason: str
) -> None:
    async with mcp_connect(plain_kernel) as session:
        with pytest.raises(McpError, match=reason):
            await session.read_resource(uri)


async def test_prompts_include_their_subject(mcp_connect, open_notebook) -> None:
    await open_notebook()
    async with mcp_connect() as session:
        prompts = await session.list_prompts()
        assert [prompt.name for prompt in prompts] == [
            "explain_failing_cell",
            "run_from_top_to_bottom",
        ]
        explain = await session.get_prompt("explain_failing_cell", {"notebook": "a book.ipynb"})
        texts = [message.content.text for message in explain]
        assert "fails in the notebook that we share" in texts[0]
        assert texts[1] == "Cell 2 of work dir/a book.ipynb:"
        assert "y + 1" in texts[2]
        run = await session.get_prompt("run_from_top_to_bottom")
        assert "2 second y + 1" in run[-1].content.text
        with pytest.raises(McpError, match="There is no prompt 'x'"):
            await session.get_prompt("x")
        with pytest.raises(McpError, match="has no argument 'cell'"):
            await session.get_prompt("explain_failing_cell", {"cell": "1"})
