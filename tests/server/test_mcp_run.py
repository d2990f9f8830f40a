"""Commands over MCP: several lines, endless and long output."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest

from oh_jupyter.mcp_tools import action_tools


async def shown(session: Any, tool: str, **arguments: Any) -> str:
    done = await session.call_tool(tool, arguments)
    return "".join(block.text for block in done.content)


async def test_several_lines_are_one_script(mcp_connect: Any, jp_root_dir: Any) -> None:
    script = (
        "cat > x.py <<'END'\nprint(6 * 7)\nEND\npython3 x.py\nplace=$PWD/sub\nmkdir sub\ncd sub"
    )
    async with mcp_connect() as session:
        for more in ({}, {"is_static": True, "cwd": str(jp_root_dir)}):
            output = await shown(
                session, "run", command=script.replace("sub", f"s{len(more)}"), **more
            )
            assert output.startswith("42\n")
        assert f"{jp_root_dir}/s0" in await shown(session, "run", command="pwd\necho $place")
        unfinished = await shown(session, "run", command="cat <<END\nx")
        assert "A here-document is not finished" in unfinished


async def test_an_agent_has_its_turn_back(
    mcp_connect: Any, jp_root_dir: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert action_tools.RUN_REPORT_SECONDS == 30
    monkeypatch.setitem(action_tools._RUN_EXTENSIONS, "report_after", 1.0)
    loop = "while true; do echo tick; sleep 0.05; done"
    async with mcp_connect() as session:
        async with asyncio.timeout(60):
            output = await shown(session, "run", command=loop)
        assert "tick\ntick" in output
        assert f'The command "{loop}" is still running after 1 seconds' in output
        assert "Call run again with an empty command for more output" in output
        assert "with is_input and C-c to stop it" in output
        assert "is still running after 1 seconds" in await shown(session, "run", command="")
        assert "NOT executed" in await shown(session, "run", command="echo other")
        stopped = await shown(session, "run", command="C-c", is_input=True)
        assert "exit code 130" in stopped
        static = await shown(session, "run", command=loop, is_static=True)
        assert "a static command ends with its call" in static
        slow = await shown(
            session, "run", command="for i in {1..40}; do echo $i; sleep 0.05; done", blocking=True
        )
        assert "exit code 0" in slow


@pytest.mark.parametrize("count", [9000, 20_000])
async def test_the_omitted_part_of_a_long_output(
    mcp_connect: Any, jp_root_dir: Any, count: int
) -> None:
    async with mcp_connect() as session:
        output = await shown(session, "run", command=f"seq {count}")
        assert output.count("[...") == 1
        match = re.search(
            r"\[\.\.\. lines (\d+) to (\d+) of (\d+), (\d+) of (\d+) characters, are omitted\. "
            r"The whole output is in (\S+): open parts of it with read\. \.\.\.\]\n",
            output,
        )
        assert match is not None, output[:200]
        first, last, lines, omitted, characters = map(int, match.groups()[:5])
        whole = "\n".join(map(str, range(1, count + 1)))
        assert (lines, characters) == (count, len(whole))
        assert output.startswith(whole[: whole.index(f"\n{first}\n") + 1])
        assert output[match.end() :].startswith(f"{last + 1}\n")
        assert omitted == len("\n".join(map(str, range(first, last + 1)))) + 1
        part = await shown(session, "read", path=match[6], start=first, end=first + 2)
        assert f"{first + 1}\n{first + 2}" in part
