"""MCP over streamable HTTP and SSE, by the official client, on real kernels."""

from __future__ import annotations

import asyncio
import base64
import json
import re

import httpx
import pytest
from mcp_client import MAJOR, http_library, text_of

from oh_jupyter.operations.actions import Confirm
from oh_jupyter.server.state import state_of

pytestmark = pytest.mark.shared_server

PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJg"
    "gg=="
)
NOTEBOOK_TOOLS = {"list_notebooks", "read_cells", "insert_cell", "edit_cell", "run_cell"}
ACTIONS = {"run", "run_ipython", "read", "write", "edit", "browse", "browse_interactive"}


@pytest.mark.thorough
@pytest.mark.parametrize("transport", ["http", "sse"])
async def test_a_client_lists_and_calls_tools(mcp_connect, transport: str) -> None:
    async with mcp_connect(transport=transport) as session:
        tools = {tool.name: tool for tool in (await session.list_tools()).tools}
        assert tools.keys() >= ACTIONS | NOTEBOOK_TOOLS | {
            "changes",
            "kernel",
            "store",
            "variables",
        }
        assert len(tools) <= 16  # more are more than a model chooses well from
        assert all(tool.description and tool.title for tool in tools.values())
        assert all(tool.annotations for tool in tools.values())
        hints = tools["browse"].annotations
        assert (hints.read_only_hint, hints.destructive_hint, hints.idempotent_hint) == (
            False,
            False,
            True,
        )
        assert all(tool.input_schema["type"] == "object" for tool in tools.values())
        # Claude Code would show its model the names alone.
        assert all(tool._meta == {"anthropic/alwaysLoad": True} for tool in tools.values())
        answer = await session.call_tool("run", {"command": "echo here && exit_code=3"})
        assert not answer.is_error
        assert text_of(answer).startswith("here\n")
        assert "exit code 0" in text_of(answer)
        answer = await session.call_tool("run_ipython", {"code": "6 * 7"})
        assert text_of(answer).startswith("42\n")
        # Those of the kernel are not more: skills repeat what the others do.
        assert {tool.name for tool in (await session.list_tools()).tools} == tools.keys()


def test_the_list_of_tools_is_short(jp_serverapp) -> None:
    toolbox = state_of(jp_serverapp.web_app.settings).mcp.toolbox(None)
    wires = [tool.to_wire() for tool in toolbox.fixed.values() if tool.listed]
    assert len(json.dumps(wires, separators=(",", ":"))) <= 13_000


@pytest.mark.thorough
async def test_skills_are_listed_on_request(mcp_connect, jp_serverapp) -> None:
    heard = asyncio.Event()

    async def listen(message) -> None:
        if getattr(message, "method", "") == "notifications/tools/list_changed":
            heard.set()

    asking = mcp_connect(heard=listen, query="?skills=true")
    async with asking as session, mcp_connect() as other:
        first = {tool.name for tool in (await session.list_tools()).tools}
        assert list(jp_serverapp.kernel_manager.list_kernel_ids()) == []
        assert first >= ACTIONS
        assert text_of(await session.call_tool("skill_search_dir", {"search_term": "x"}))
        await asyncio.wait_for(heard.wait(), 60)
        names = {tool.name for tool in (await session.list_tools()).tools}
        assert {"skill_search_dir", "skill_open_file", "skill_file_editor"} <= names - first
        assert all(name.startswith("skill_") for name in names - first)
        assert {tool.name for tool in (await other.list_tools()).tools} == first


@pytest.mark.server_config(OhJupyter={"confirmation": "always"})
class TestConfirmation:
    @pytest.mark.parametrize("approve", [True, False])
    async def test_the_servers_policy_holds_in_a_persons_kernel(
        self, mcp_connect, ask, plain_kernel, jp_serverapp, approve: bool
    ) -> None:
        async with mcp_connect(plain_kernel) as session:
            calling = asyncio.ensure_future(session.call_tool("run_ipython", {"code": "40 + 2"}))
            code, waiting = 0, []
            async with asyncio.timeout(60):
                while code != 200 or not waiting:  # until oh_jupyter is there it is 424
                    code, waiting = await ask("kernels", plain_kernel, "confirmations")
            assert not calling.done()
            link = state_of(jp_serverapp.web_app.settings).router.link(plain_kernel)
            await link.request(Confirm(waiting[0]["id"], approve))
            answer = await calling  # one act is one question: nothing else waits
            assert answer.is_error is not approve
            assert ("42" in text_of(answer)) is approve


@pytest.mark.server_config(OhJupyter={"mcp_skills": True})
class TestSkillsForAll:
    @pytest.mark.thorough
    async def test_a_setting_lists_them(self, mcp_connect) -> None:
        async with mcp_connect() as session:
            await session.call_tool("run", {"command": "true"})
            assert "skill_goto_line" in {tool.name for tool in (await session.list_tools()).tools}


@pytest.mark.thorough
async def test_a_list_changes_nothing_in_the_kernel_of_a_notebook(
    mcp_connect, ask, plain_kernel
) -> None:
    async with mcp_connect(plain_kernel) as session:
        assert {tool.name for tool in (await session.list_tools()).tools} >= ACTIONS
        # oh_jupyter is not there.
        assert (await ask("kernels", plain_kernel, "events"))[0] == 424


@pytest.mark.thorough
@pytest.mark.browser
async def test_text_is_all_of_a_result(mcp_connect, tmp_path) -> None:
    """Agents show their models nothing else where there is structured content."""
    path = str(tmp_path / "a.txt")
    (tmp_path / "page.html").write_text("<h1>Hello</h1>")
    calls = [
        ("run", {"command": "echo x"}, "x"),
        ("run_ipython", {"code": "'y'"}, "y"),
        ("write", {"path": path, "content": "one"}, path),
        ("read", {"path": path}, "one"),
        ("edit", {"command": "view", "path": path}, "one"),
        ("browse", {"url": (tmp_path / "page.html").as_uri()}, "Hello"),
        ("browse_interactive", {"browser_actions": "noop(1)"}, "Hello"),
        ("status", {}, "workspace_dir"),
        ("events", {}, "run_ipython"),
        ("skill_search_file", {"search_term": "one", "file_path": path}, "one"),
        ("list_notebooks", {}, "No notebook"),
    ]
    async with mcp_connect(query="?skills=true") as session:
        for name, arguments, expected in calls:
            answer = await session.call_tool(name, arguments)
            assert answer.structured_content is None, name
            assert expected in text_of(answer), name
            assert not answer.is_error, name


@pytest.mark.thorough
async def test_a_running_command_is_reported_in_terms_of_this_tool(
    mcp_connect, monkeypatch
) -> None:
    monkeypatch.setenv("NO_CHANGE_TIMEOUT_SECONDS", "0.3")
    async with mcp_connect() as session:
        (tool,) = [tool for tool in (await session.list_tools()).tools if tool.name == "run"]
        calls = [
            ({"command": "cat"}, "no new output after 0.3 seconds"),
            ({"command": "echo x"}, "is NOT executed"),
            (
                {"command": "text", "is_input": True, "blocking": True, "timeout": 0.5},
                "timed out after 0.5 seconds",
            ),
        ]
        for arguments, expected in calls:
            answer = text_of(await session.call_tool("run", arguments))
            assert expected in answer
            assert "execute_bash" not in answer
            assert "With blocking, a call waits" in answer
        assert {"blocking", "is_input", "timeout"} <= tool.input_schema["properties"].keys()


@pytest.mark.thorough
@pytest.mark.browser
async def test_failures_are_errors(mcp_connect, tmp_path) -> None:
    failing = [
        ("run_ipython", {"code": "1 / 0"}, "ZeroDivisionError"),
        ("run_ipython", {"code": "while True: pass", "timeout": 0.5}, "timed out"),
        ("run", {"command": "x", "is_static": True, "cwd": "/no/such"}, "no directory"),
        ("run", {"command": "pwd", "cwd": "/no/such"}, "cwd is for static commands"),
        ("run", {"command": "x", "is_input": True}, "No previous running command"),
        ("read", {"path": "/no/such"}, "not found"),
        ("edit", {"command": "view", "path": "/no/such"}, "ERROR"),
        ("browse", {"url": "http://127.0.0.1:9/"}, "error"),
    ]
    path = str(tmp_path / "log.txt")
    working = [
        ("run", {"command": "echo ERROR:; (exit 3)"}, "exit code 3"),
        ("run_ipython", {"code": "print('ERROR:\\n')"}, "ERROR"),
        ("write", {"path": path, "content": "ERROR:\nx"}, "log.txt"),
        ("read", {"path": path}, "ERROR:\nx"),
    ]
    async with mcp_connect() as session:
        for failed, calls in ((True, failing), (False, working)):
            for name, arguments, expected in calls:
                answer = await session.call_tool(name, arguments)
                assert expected in text_of(answer), (name, arguments, text_of(answer))
                assert answer.is_error == failed, (name, arguments, text_of(answer))


@pytest.mark.browser
async def test_no_result_fills_a_context(mcp_connect, tmp_path) -> None:
    lines = [f"line {number} " + "x" * 60 for number in range(10_000)]
    path = tmp_path / "large.txt"
    path.write_text("\n".join(lines) + "\n")
    links = "".join(f"<p><a href='/a/{number}'>link {number}</a></p>" for number in range(5000))
    page = tmp_path / "links.html"
    page.write_text(f"<h1>Top</h1>{links}<p>Bottom</p>")
    calls = [
        ("read", {"path": str(path)}, "start and end", "line 0 ", "line 9999 "),
        ("edit", {"command": "view", "path": str(path)}, "", "line 0 ", ""),
        ("browse", {"url": page.as_uri()}, "use browse_interactive", "Top", "END webpage"),
        ("run", {"command": f"cat {path}"}, "", "line 0 ", "exit code 0"),
        ("run_ipython", {"code": f"print(open({str(path)!r}).read())"}, "", "line 0 ", "9999 "),
        ("skill_long_answer", {}, "less at a time", "first", "last"),
    ]
    skill = (
        "def long_answer():\n    return 'first' + 50_000 * 'x ' + 'last'\n"
        "%oh_skills add long_answer"
    )
    async with mcp_connect(query="?skills=true") as session:
        await session.call_tool("run_ipython", {"code": skill})
        for name, arguments, rest, first, last in calls:
            answer = text_of(await session.call_tool(name, arguments))
            assert len(answer) <= 30_000, name
            assert first in answer[:500], name
            assert last in answer[-500:], name
            assert rest in answer, name
        part = text_of(
            await session.call_tool("read", {"path": str(path), "start": 5000, "end": 5001})
        )
        assert part == f"{lines[5000]}\n"


async def test_all_tools_of_files_work(mcp_connect, tmp_path) -> None:
    path = str(tmp_path / "a.txt")
    async with mcp_connect() as session:
        answer = await session.call_tool("write", {"path": path, "content": "one\ntwo"})
        assert "I wrote to the file" in text_of(answer)
        edit = {"command": "str_replace", "path": path, "old_str": "two", "new_str": "three"}
        assert not (await session.call_tool("edit", edit)).is_error
        failed = await session.call_tool("edit", edit)
        assert failed.is_error
        assert "No replacement was performed" in text_of(failed)
        assert text_of(await session.call_tool("read", {"path": path})) == "one\nthree\n"
        view = {"command": "view", "path": path, "view_range": [2, 2]}
        shown = text_of(await session.call_tool("edit", view))
        assert "2\tthree" in shown
        assert "one" not in shown
        await session.call_tool("edit", {"command": "undo_edit", "path": path})
        assert text_of(await session.call_tool("read", {"path": path})) == "one\ntwo\n"


async def test_pictures_are_image_content(mcp_connect, tmp_path) -> None:
    (tmp_path / "dot.png").write_bytes(base64.b64decode(PIXEL))
    code = f"import base64\nfrom IPython.display import Image\nImage(base64.b64decode('{PIXEL}'))"
    async with mcp_connect() as session:
        shown = await session.call_tool("run_ipython", {"code": code})
        images = [block for block in shown.content if block.type == "image"]
        assert [(image.mime_type, image.data) for image in images] == [("image/png", PIXEL)]
        seen = await session.call_tool("read", {"path": str(tmp_path / "dot.png")})
        assert [(block.type, block.data) for block in seen.content] == [("image", PIXEL)]


@pytest.mark.browser
async def test_a_page_comes_with_its_screenshot(mcp_connect, tmp_path) -> None:
    page = tmp_path / "page.html"
    page.write_text("<title>t</title><h1>Hello there</h1><button>Press</button>")
    async with mcp_connect() as session:
        answer = await session.call_tool(
            "browse_interactive", {"browser_actions": f"goto('{page.as_uri()}')"}
        )
        assert "Hello there" in text_of(answer)
        (screenshot,) = [block for block in answer.content if block.type == "image"]
        assert base64.b64decode(screenshot.data).startswith(b"\x89PNG")
        answer = await session.call_tool(
            "browse_interactive", {"browser_actions": "noop(1)", "picture": "none"}
        )
        assert [block.type for block in answer.content] == ["text"]


@pytest.mark.browser
async def test_texts_of_variables_fill_a_field(mcp_connect, tmp_path) -> None:
    page = tmp_path / "page.html"
    page.write_text("<title>t</title><textarea aria-label='Notes'></textarea>")
    async with mcp_connect() as session:

        async def act(calls: str) -> str:
            arguments = {"browser_actions": calls, "picture": "none"}
            return text_of(await session.call_tool("browse_interactive", arguments))

        await session.call_tool("run_ipython", {"code": "report = 'two \\'lines\\'\\nof text'"})
        seen = await act(f"goto('{page.as_uri()}')")
        (bid,) = re.findall(r"\[(\w+)\] textbox 'Notes'", seen)
        filled = await act(f"fill('{bid}', 'variable:report')")
        assert "two 'lines'" in filled
        assert "of text" in filled
        assert "There is no variable 'nothing'" in await act(f"fill('{bid}', 'variable:nothing')")


async def test_skills_are_tools(mcp_connect, tmp_path) -> None:
    (tmp_path / "found.txt").write_text("needle\n")
    async with mcp_connect(query="?skills=true") as session:
        answer = await session.call_tool(
            "skill_search_dir", {"search_term": "needle", "dir_path": str(tmp_path)}
        )
        assert not answer.is_error
        assert "found.txt" in text_of(answer)


async def test_invalid_arguments_are_explained(mcp_connect) -> None:
    async with mcp_connect() as session:
        answer = await session.call_tool("run", {})
        assert answer.is_error
        assert "'command' is a required property" in text_of(answer)
        answer = await session.call_tool("run", {"command": 1})
        assert answer.is_error
        assert "argument 'command'" in text_of(answer)
        answer = await session.call_tool("no_such_tool", {})
        assert answer.is_error
        assert "no tool 'no_such_tool'" in text_of(answer)


async def test_state_and_events_are_tools(mcp_connect) -> None:
    async with mcp_connect() as session:
        await session.call_tool("run", {"command": "echo remembered"})
        status = await session.call_tool("status", {})
        assert json.loads(text_of(status))["events"] >= 2
        events = await session.call_tool("events", {"limit": 2})
        assert "remembered" in text_of(events)
        lines = [line.partition("] agent ")[2] for line in text_of(events).splitlines()]
        assert [line.partition(":")[0] for line in lines if line] == ["run", "->run"]


@pytest.mark.thorough
async def test_two_personas_work_on_their_own_kernels(
    mcp_connect, plain_kernel, jp_serverapp, jp_auth_header, ask
) -> None:
    """The actor comes from the request's headers, not from the agent's arguments."""
    other = await jp_serverapp.kernel_manager.start_kernel(path="")
    heads = [
        {**jp_auth_header, "X-JupyterAI-Persona-Id": name, "X-Jupyter-Chat-Id": "c" * 1000}
        for name in ("first", "second")
    ]
    async with (
        mcp_connect(plain_kernel, headers=heads[0]) as one,
        mcp_connect(other, headers=heads[1], transport="sse") as two,
    ):
        await asyncio.gather(
            one.call_tool("run_ipython", {"code": "mine = 'first'"}),
            two.call_tool("run_ipython", {"code": "mine = 'second'"}),
        )
        answers = await asyncio.gather(
            one.call_tool("run_ipython", {"code": "mine"}),
            two.call_tool("run_ipython", {"code": "mine"}),
        )
    assert [text_of(answer).partition("\n")[0] for answer in answers] == ["'first'", "'second'"]
    forged = {"action": "run", "args": {"command": "true"}, "oh_jupyter": {"actor": {"user": "x"}}}
    await ask("kernels", plain_kernel, "execute_action", body={"action": forged})
    logs = [(await ask("kernels", id, "events"))[1]["events"] for id in (plain_kernel, other)]
    actors = [[event.get("oh_jupyter") for event in log if "action" in event] for log in logs]
    for each in filter(None, (event for log in actors for event in log)):
        each["actor"].pop("session", None)  # the newest protocol has no sessions
        assert each["actor"].pop("client") == "mcp"
    first, second = ({"actor": {"persona": who, "chat": "c" * 200}} for who in ("first", "second"))
    assert actors == [[first, first, None], [second, second]]


@pytest.mark.parametrize("transport", ["http", "sse"])
async def test_a_long_call_shows_signs_of_life(mcp_connect, transport: str, tmp_path) -> None:
    seen: list[float] = []
    go = tmp_path / "go"

    async def progress(done: float, total: float | None, message: str | None) -> None:
        seen.append(done)
        assert message
        if len(seen) == 2:
            go.touch()

    async with mcp_connect(transport=transport) as session:
        wait = f"until [ -e {go} ]; do sleep 0.05; done; echo done"
        command = {"command": wait, "blocking": True}
        answer = await session.call_tool("run", command, progress_callback=progress)
        assert text_of(answer).startswith("done")
    assert seen == sorted(set(seen))


@pytest.mark.parametrize("tool", ["run", "run_ipython"])
async def test_progress_contains_the_output(mcp_connect, tool: str, tmp_path) -> None:
    told_so_far: list[tuple[float, str]] = []
    go, second = tmp_path / "go", tmp_path / "second"

    async def progress(done: float, total: float | None, message: str | None) -> None:
        told_so_far.append((done, message or ""))
        if message == "first line":
            second.touch()
        if message == "first line\nsecond line":
            go.touch()

    shell = (
        f"echo first line; until [ -e {second} ]; do sleep 0.05; done; "
        f"echo second line; until [ -e {go} ]; do sleep 0.05; done; echo done"
    )
    cell = (
        "import pathlib, time\nprint('first line')\n"
        f"while not pathlib.Path({str(second)!r}).exists(): time.sleep(0.05)\n"
        "print('\\x1b[31msecond line\\x1b[0m')\n"
        f"while not pathlib.Path({str(go)!r}).exists(): time.sleep(0.05)\n"
        "print('done')"
    )
    arguments = {"command": shell, "blocking": True} if tool == "run" else {"code": cell}
    async with mcp_connect() as session:
        answer = await session.call_tool(tool, arguments, progress_callback=progress)
    assert text_of(answer).startswith("first line\nsecond line\ndone")
    numbers = [number for number, _ in told_so_far]
    assert numbers == sorted(set(numbers))


@pytest.mark.thorough
async def test_changes_of_skills_are_announced_at_once(mcp_connect, act, plain_kernel) -> None:
    heard = asyncio.Queue()

    async def listen(message) -> None:
        if getattr(message, "method", "") == "notifications/tools/list_changed":
            heard.put_nowait(message)

    async def names(session) -> set[str]:
        return {tool.name for tool in (await session.list_tools()).tools}

    async with mcp_connect(plain_kernel, heard=listen, query="?skills=true") as session:
        assert "skill_greet" not in await names(session)
        await session.call_tool("run", {"command": "true"})
        await asyncio.wait_for(heard.get(), 60)
        assert "skill_greet" not in await names(session)
        code = "def greet(name: str):\n    'Say hello.'\n    return f'hello {name}'"
        for change, there in (("add", True), ("remove", False)):
            # By another door, so that no answer to this session can tell.
            await act("run_ipython", plain_kernel, code=f"{code}\n%oh_skills {change} greet")
            await asyncio.wait_for(heard.get(), 60)
            assert ("skill_greet" in await names(session)) == there


async def cancelled_event(session) -> None:
    """Wait until the log says that an action was cancelled."""
    start = 0
    while True:
        answer = await session.call_tool("events", {"start_id": start, "limit": 500})
        if "The action was cancelled." in text_of(answer):
            return
        await asyncio.sleep(0.05)


@pytest.mark.thorough
@pytest.mark.parametrize("transport", ["http", "sse"])
async def test_a_cancelled_call_is_cancelled_in_the_kernel(
    mcp_connect, transport: str, plain_kernel
) -> None:
    async with mcp_connect(plain_kernel, transport=transport) as session:
        await session.call_tool("run_ipython", {"code": "import time"})
        started = asyncio.Event()

        async def progress(done: float, total: float | None, message: str | None) -> None:
            started.set()

        call = asyncio.ensure_future(
            session.call_tool(
                "run_ipython", {"code": "time.sleep(600)"}, progress_callback=progress
            )
        )
        await asyncio.wait_for(started.wait(), 60)
        call.cancel()
        await asyncio.wait_for(cancelled_event(session), 60)
        answer = await session.call_tool("run_ipython", {"code": "'free again'"})
        assert "free again" in text_of(answer)


@pytest.mark.parametrize("transport", ["http", "sse"])
async def test_a_client_that_goes_away_takes_its_call_back(
    mcp_connect, transport: str, plain_kernel
) -> None:
    started = asyncio.Event()

    async def progress(done: float, total: float | None, message: str | None) -> None:
        started.set()

    async def leave() -> None:
        async with mcp_connect(plain_kernel, transport=transport) as session:
            await session.call_tool(
                "run_ipython",
                {"code": "input_ = __import__('time').sleep(600)"},
                progress_callback=progress,
            )

    async with mcp_connect(plain_kernel) as watching:
        await watching.list_tools()
        client = asyncio.ensure_future(leave())
        await asyncio.wait_for(started.wait(), 60)
        client.cancel()
        await asyncio.gather(client, return_exceptions=True)
        await asyncio.wait_for(cancelled_event(watching), 60)


async def test_the_announced_address_has_the_whole_path(
    mcp_url, jp_auth_header, jp_base_url, plain_kernel
) -> None:
    for below in ("", f"/kernels/{plain_kernel}"):
        async with (
            httpx.AsyncClient(headers=jp_auth_header, timeout=30) as client,
            client.stream("GET", f"{mcp_url}{below}/mcp/sse") as response,
        ):
            assert response.headers["content-type"].startswith("text/event-stream")
            lines = response.aiter_lines()
            assert await anext(lines) == "event: endpoint"
            address = (await anext(lines)).removeprefix("data: ")
        assert address.startswith(f"{jp_base_url}oh_jupyter{below}/mcp/messages/?session_id=")


MESSAGE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "0"},
    },
}
ACCEPT = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}


@pytest.mark.parametrize(
    ("credential", "allowed"),
    [
        ("none", False),
        ("wrong token", False),
        ("token header", True),
        ("bearer token", True),
        ("token in query", True),
        ("session key", True),
        ("bearer session key", True),
        ("as openhands", True),
        ("wrong session key", False),
        ("wrong bearer", False),
    ],
)
async def test_permissions_of_addresses(
    mcp_url, plain_kernel, jp_auth_header, monkeypatch, credential: str, allowed: bool
) -> None:
    monkeypatch.setenv("SESSION_API_KEY", "secret")
    token = jp_auth_header["Authorization"].split()[1]
    headers = {
        "none": {},
        "wrong token": {"Authorization": "token guess"},
        "token header": jp_auth_header,
        "bearer token": {"Authorization": f"Bearer {token}"},
        "token in query": {},
        "session key": {"X-Session-API-Key": "secret"},
        "bearer session key": {"Authorization": "Bearer secret"},
        "as openhands": {
            "Authorization": "Bearer secret",
            "s": "secret",
            "X-Session-API-Key": "secret",
            "X-OpenHands-ServerConversation-ID": "1",
        },
        "wrong session key": {"X-Session-API-Key": "guess"},
        "wrong bearer": {"Authorization": "Bearer guess"},
    }[credential]
    query = {"token": token} if credential == "token in query" else {}
    async with httpx.AsyncClient(headers=ACCEPT | headers, params=query, timeout=30) as client:
        for below in ("", f"/kernels/{plain_kernel}"):
            answer = await client.post(f"{mcp_url}{below}/mcp", json=MESSAGE)
            assert answer.status_code == (200 if allowed else 403), answer.text
            async with client.stream("GET", f"{mcp_url}{below}/mcp/sse") as response:
                assert response.status_code == (200 if allowed else 403)
            answer = await client.post(
                f"{mcp_url}{below}/mcp/messages/", params={"session_id": "0" * 32}, json=MESSAGE
            )
            assert answer.status_code == (404 if allowed else 403)
            answer = await client.get(f"{mcp_url}{below}/mcp")
            assert answer.status_code == (400 if allowed else 403)


async def test_a_cookie_alone_does_not_do(mcp_url, jp_auth_header) -> None:
    """A page of another site could send it: Jupyter wants its XSRF token with it."""
    async with httpx.AsyncClient(headers=ACCEPT, timeout=30) as client:
        root = mcp_url.removesuffix("oh_jupyter")
        token = jp_auth_header["Authorization"].split()[1]
        await client.post(f"{root}login", data={"password": token}, params={"token": token})
        assert client.cookies
        answer = await client.post(f"{mcp_url}/mcp", json=MESSAGE)
        assert answer.status_code == 403


async def test_the_authorizer_decides(mcp_url, jp_auth_header, jp_serverapp, monkeypatch) -> None:
    other = await jp_serverapp.kernel_manager.start_kernel(path="")
    asked: list[tuple[str, str]] = []

    def is_authorized(handler, user, action, resource) -> bool:
        asked.append((action, resource))
        return resource != "kernels"

    monkeypatch.setattr(jp_serverapp.authorizer, "is_authorized", is_authorized)
    async with httpx.AsyncClient(headers=ACCEPT | jp_auth_header, timeout=30) as client:
        assert (await client.post(f"{mcp_url}/mcp", json=MESSAGE)).status_code == 200
        assert asked == [("execute", "oh_jupyter:actions")]
        answer = await client.post(f"{mcp_url}/kernels/{other}/mcp", json=MESSAGE)
        assert answer.status_code == 403
        assert asked[1:] == [("execute", "oh_jupyter:actions"), ("execute", "kernels")]


async def test_unknown_kernels_and_methods(mcp_url, jp_auth_header) -> None:
    async with httpx.AsyncClient(headers=ACCEPT | jp_auth_header, timeout=30) as client:
        answer = await client.post(f"{mcp_url}/kernels/none/mcp", json=MESSAGE)
        assert answer.status_code == 404
        assert "none" in answer.json()["detail"]
        assert (await client.put(f"{mcp_url}/mcp", json=MESSAGE)).status_code == 405
        answer = await client.post(f"{mcp_url}/mcp", content=b"{")
        assert answer.status_code == 400
        assert json.loads(answer.content)["error"]["code"] == -32700


@pytest.mark.skipif(MAJOR == 1, reason="major 1 of the SDK knows sessions only")
async def test_newer_clients_need_no_session(mcp_url, jp_auth_header) -> None:
    from mcp.client.client import Client
    from mcp.client.streamable_http import streamable_http_client

    http = http_library.AsyncClient(headers=jp_auth_header, timeout=60)
    transport = streamable_http_client(f"{mcp_url}/mcp", http_client=http)
    async with http, Client(transport) as client:
        tools = await client.list_tools()
        assert {tool.name for tool in tools.tools} >= ACTIONS
        assert tools.ttl_ms > 0  # a list may be kept for a while
        answer = await client.call_tool("run", {"command": "echo modern"})
        assert text_of(answer).startswith("modern")


@pytest.mark.skipif(MAJOR > 1, reason="major 2 of the SDK answers without a session")
async def test_a_missing_session_is_reported(mcp_url, jp_auth_header) -> None:
    listing = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    async with httpx.AsyncClient(headers=ACCEPT | jp_auth_header, timeout=30) as client:
        answer = await client.post(f"{mcp_url}/mcp", json=listing)
    assert answer.status_code == 400
    assert "session" in answer.json()["error"]["message"]


@pytest.mark.thorough
async def test_sessions_end_when_their_kernel_is_shut_down(
    mcp_connect, plain_kernel, jp_serverapp, mcp_url, jp_auth_header
) -> None:
    async with (
        httpx.AsyncClient(headers=jp_auth_header, timeout=60) as client,
        client.stream("GET", f"{mcp_url}/kernels/{plain_kernel}/mcp/sse") as response,
    ):
        lines = response.aiter_lines()
        await anext(lines)
        await jp_serverapp.kernel_manager.shutdown_kernel(plain_kernel)
        async for _ in lines:
            pass
