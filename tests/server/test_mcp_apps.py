"""MCP Apps: who gets them, and what their tools answer."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from plain_mcp import Request, opened

from oh_jupyter.mcp_tools.app_tools import apps_are_built

VERSION = "2025-11-25"
SHOWS_APPS = {
    "extensions": {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html;profile=mcp-app"]}}
}
OTHER_TYPE = {"extensions": {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/x-other"]}}}
APP_TOOLS = {"show_table", "table_rows", "show_page", "page_picture"}
APPROVAL_TOOLS = {"pending_approval", "decide_approval"}

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.skipif(not apps_are_built(), reason="needs the apps: jlpm build in labextension"),
]

FRAME = """
import pandas as pd
df = pd.DataFrame({"city": ["Bern", "Oslo", "Rome", "bergen"], "size": [2, 4, None, 1]})
"""


async def tools_of(request: Request) -> dict[str, dict[str, Any]]:
    return {tool["name"]: tool for tool in (await request("tools/list"))["tools"]}


async def call(request: Request, tool: str, /, **arguments: Any) -> dict[str, Any]:
    return await request("tools/call", {"name": tool, "arguments": arguments})


def text_of(result: dict[str, Any]) -> str:
    return str(result["content"][0]["text"])


async def test_only_clients_that_show_apps_get_their_tools(mcp_url, jp_auth_header) -> None:
    async with opened(mcp_url, jp_auth_header, VERSION) as request:
        plain = await tools_of(request)
    async with opened(mcp_url, jp_auth_header, VERSION, OTHER_TYPE) as request:
        assert await tools_of(request) == plain
    async with opened(mcp_url, jp_auth_header, VERSION, SHOWS_APPS) as request:
        tools = await tools_of(request)
    assert not any("ui" in tool["_meta"] for tool in plain.values())
    assert tools.keys() - plain.keys() == APP_TOOLS
    assert {name: tools[name] for name in plain} == plain
    for name in ("table_rows", "page_picture"):
        assert tools[name]["_meta"]["ui"] == {"visibility": ["app"]}


async def test_the_pages_of_the_apps_are_resources(mcp_url, jp_auth_header) -> None:
    async with opened(mcp_url, jp_auth_header, VERSION, SHOWS_APPS) as request:
        tools = await tools_of(request)
        for name in ("show_table", "show_page"):
            uri = tools[name]["_meta"]["ui"]["resourceUri"]
            (page,) = (await request("resources/read", {"uri": uri}))["contents"]
            assert page["mimeType"] == "text/html;profile=mcp-app"
            assert page["text"].startswith("<!doctype html>")
            assert len(page["text"]) < 60_000
            # A frame's policy would block what is not in the page itself.
            assert "http://" not in page["text"].replace("http://www.w3.org", "")


async def test_rows_are_sorted_filtered_and_paged(mcp_url, jp_auth_header) -> None:
    async with opened(mcp_url, jp_auth_header, VERSION, SHOWS_APPS) as request:
        await call(request, "run_ipython", code=FRAME)
        shown = await call(request, "show_table", name="df")
        assert text_of(shown) == "The person sees df: DataFrame, 4 rows and 2 columns."

        async def rows(**query: Any) -> dict[str, Any]:
            return dict(
                (await call(request, "table_rows", name="df", **query))["structuredContent"]
            )

        page = await rows(count=2)
        assert page["rows"] == [["Bern", "2.0"], ["Oslo", "4.0"]]
        assert [column["name"] for column in page["columns"]] == ["city", "size"]
        assert [column["is_number"] for column in page["columns"]] == [False, True]
        assert (page["total"], page["matching"], page["index"]) == (4, 4, ["0", "1"])
        assert (await rows(count=2, start=2))["index"] == ["2", "3"]
        ascending = await rows(count=4, sort=1)
        assert [row[0] for row in ascending["rows"]] == ["bergen", "Bern", "Oslo", "Rome"]
        descending = await rows(count=4, sort=1, descending=True)
        assert [row[0] for row in descending["rows"]] == ["Oslo", "Bern", "bergen", "Rome"]
        result = await rows(count=4, filter="BER")
        assert ([row[0] for row in result["rows"]], result["matching"]) == (["Bern", "bergen"], 2)


async def test_a_value_that_is_no_table_is_not_shown(mcp_url, jp_auth_header) -> None:
    async with opened(mcp_url, jp_auth_header, VERSION, SHOWS_APPS) as request:
        await call(request, "run_ipython", code="number = 3")
        shown = await call(request, "show_table", name="number")
        assert shown["isError"]
        assert text_of(shown) == "It is a int, not a data frame or series of pandas or polars"
        missing = await call(request, "show_table", name="nothing")
        assert "There is no variable 'nothing'" in text_of(missing)


async def test_without_a_page_none_is_shown(mcp_url, jp_auth_header) -> None:
    async with opened(mcp_url, jp_auth_header, VERSION, SHOWS_APPS) as request:
        shown = await call(request, "show_page")
        assert shown["isError"]
        assert text_of(shown).startswith("No page is open. Open one with browse")


@pytest.mark.server_config(OhJupyter={"confirmation": "always", "approval_by_client": True})
class TestApproval:
    async def test_tools_that_may_ask_name_the_app(self, mcp_url, jp_auth_header) -> None:
        async with opened(mcp_url, jp_auth_header, VERSION, SHOWS_APPS) as request:
            tools = await tools_of(request)
        assert tools.keys() > APPROVAL_TOOLS
        with_app = {
            name
            for name, tool in tools.items()
            if tool["_meta"].get("ui", {}).get("resourceUri", "").endswith("approval")
        }
        assert {"run", "run_ipython", "write", "edit", "browse", "run_cell"} <= with_app
        assert not {"read", "variables", "list_notebooks"} & with_app

    @pytest.mark.parametrize("approve", [True, False])
    async def test_a_decision_needs_the_key_of_the_question(
        self, mcp_url, jp_auth_header, tmp_path, approve
    ) -> None:
        target = tmp_path / "a.txt"
        arguments = {"path": str(target), "content": "new line\n"}
        pending = {"tool": "write", "arguments": arguments}
        async with (
            opened(mcp_url, jp_auth_header, VERSION, SHOWS_APPS) as request,
            opened(mcp_url, jp_auth_header, VERSION, SHOWS_APPS) as other,
            asyncio.TaskGroup() as group,
        ):
            # The app may ask before the call has arrived.
            asking = group.create_task(call(request, "pending_approval", **pending))
            writing = group.create_task(call(request, "write", **arguments))
            answer = await asking
            question = answer["structuredContent"]["question"]
            assert answer["structuredContent"]["state"] == "waiting"
            assert "+new line" in question["diff"]
            key = answer["_meta"]["oh_jupyter/approval"]
            assert key not in str({**answer, "_meta": None})

            verdict = {"approve": approve, "reason": "not there"}
            for client, wrong in ((request, "guess"), (other, key)):
                refused = await call(client, "decide_approval", key=wrong, **verdict)
                assert refused["isError"]
                assert text_of(refused).startswith("There is no question with this key.")
            assert not writing.done()
            following = {**pending, "known": question["id"]}
            deciding = group.create_task(call(request, "pending_approval", **following))
            assert not (await call(request, "decide_approval", key=key, **verdict))["isError"]
            assert (await deciding)["structuredContent"]["state"] in ("running", "over")
        written = writing.result()
        assert written["isError"] is not approve
        assert target.exists() is approve
        assert ("not there" in text_of(written)) is not approve

    async def test_a_client_without_apps_cannot_call_their_tools(
        self, mcp_url, jp_auth_header
    ) -> None:
        async with opened(mcp_url, jp_auth_header, VERSION) as request:
            refused = await call(request, "decide_approval", key="x", approve=True)
            assert text_of(refused) == (
                "Only an MCP App calls decide_approval, and the client shows none."
            )


async def test_without_the_setting_no_app_approves(mcp_url, jp_auth_header) -> None:
    async with opened(mcp_url, jp_auth_header, VERSION, SHOWS_APPS) as request:
        assert not APPROVAL_TOOLS & (await tools_of(request)).keys()
        refused = await call(request, "decide_approval", key="x", approve=True)
        assert text_of(refused).startswith("There is no tool 'decide_approval'")
