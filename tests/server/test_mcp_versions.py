"""Handshakes with each version of MCP, as sent by clients of that time."""

from __future__ import annotations

from typing import Any

import pytest
from plain_mcp import opened

TRACE = {
    "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    "baggage": "user=ann",
}


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
async def test_a_client_of_an_older_version_is_served(mcp_url, jp_auth_header, version) -> None:
    async with opened(mcp_url, jp_auth_header, version) as request:
        assert len((await request("tools/list"))["tools"]) == 16
        shown = await request("tools/call", {"name": "list_notebooks", "arguments": {}})
        assert shown["content"][0]["text"] == "No notebook is open."
        assert (await request("resources/list"))["resources"] == []
        assert len((await request("prompts/list"))["prompts"]) == 2


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("meta", "recorded"),
    [(TRACE, TRACE), ({"traceparent": "x\n", "tracestate": 3, "baggage": "\xe9"}, {})],
    ids=["a trace", "malformed"],
)
async def test_the_trace_of_a_call_is_in_the_log(
    mcp_url, jp_auth_header, ask, meta, recorded
) -> None:
    call = {"name": "run", "arguments": {"command": "echo traced"}, "_meta": meta}
    async with opened(mcp_url, jp_auth_header, "2025-11-25") as request:
        assert (await request("tools/call", call))["content"][0]["text"].startswith("traced")
    events = (await ask("events"))[1]["events"]
    (action,) = [event for event in events if event.get("action") == "run"]
    actor = action["oh_jupyter"]["actor"]
    names = ("traceparent", "tracestate", "baggage")
    assert {name: actor[name] for name in names if name in actor} == recorded


@pytest.mark.thorough
async def test_programs_of_a_traced_call_have_the_trace_in_their_environment(
    mcp_url, jp_auth_header
) -> None:
    show = "printenv TRACEPARENT BAGGAGE"
    cell = f"import subprocess; print(subprocess.run({show!r}.split(), capture_output=True).stdout)"
    expected = f"{TRACE['traceparent']}\n{TRACE['baggage']}\n"

    async with opened(mcp_url, jp_auth_header, "2025-11-25") as request:

        async def text_of(tool: str, arguments: dict[str, str], **meta: Any) -> str:
            call = {"name": tool, "arguments": arguments, **meta}
            return str((await request("tools/call", call))["content"][0]["text"])

        for _ in range(2):
            shown = await text_of("run", {"command": show}, _meta=TRACE)
            assert shown.startswith(expected)
            assert not (await text_of("run", {"command": show})).startswith(expected)
            shown = await text_of("run_ipython", {"code": cell}, _meta=TRACE)
            assert shown.startswith(repr(expected.encode()))
            assert (await text_of("run_ipython", {"code": cell})).startswith("b''")
