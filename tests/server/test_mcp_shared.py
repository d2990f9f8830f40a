"""Our tools in jupyter-server-mcp."""

from __future__ import annotations

import pytest

pytest.importorskip("jupyter_server_mcp", reason="needs jupyter-server-mcp")

from jupyter_server_mcp.mcp_server import MCPServer

from oh_jupyter.server.jupyter_ai import shared_tools

pytestmark = pytest.mark.filterwarnings("ignore")


def load(spec: str):
    module, _, name = spec.partition(":")
    assert module == shared_tools.__name__
    return getattr(shared_tools, name)


@pytest.fixture
def registered(jp_serverapp):
    server = MCPServer(parent=jp_serverapp)
    specs = shared_tools.tool_specs()
    for spec in specs:
        server.register_tool(load(spec))
    assert len(server.list_tools()) == len(specs)
    return server


async def test_its_clients_have_our_tools(registered, plain_kernel) -> None:
    from fastmcp import Client

    async with Client(registered.mcp) as client:
        tools = {tool.name: tool for tool in await client.list_tools()}
        assert {"oh_run", "oh_run_ipython", "oh_edit", "oh_browse", "oh_read_cells"} <= set(tools)
        assert "shell that you share with the person" in tools["oh_run"].description
        answer = await client.call_tool("oh_run", {"command": "echo hello"})
        assert answer.content[0].text.startswith("hello\n")
        await client.call_tool("oh_run_ipython", {"code": "a = 1", "kernel_id": plain_kernel})
        answer = await client.call_tool("oh_run_ipython", {"code": "a", "kernel_id": plain_kernel})
        assert answer.content[0].text.startswith("1\n")
        answer = await client.call_tool("oh_run", {}, raise_on_error=False)
        assert answer.is_error
        answer = await client.call_tool(
            "oh_read_cells", {"notebook": "none.ipynb"}, raise_on_error=False
        )
        assert answer.is_error


def test_they_are_shared_only_where_that_is_wanted(jp_serverapp) -> None:
    assert shared_tools.tool_specs()
    (app,) = jp_serverapp.extension_manager.extension_apps["oh_jupyter"]
    app.share_tools = False
    assert shared_tools.tool_specs() == []
    app.share_tools = True
    jp_serverapp.config.MCPServer.host = "0.0.0.0"
    assert shared_tools.tool_specs() == []
