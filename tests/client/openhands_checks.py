"""OpenHands 0.62's own client with a server of ours; run by the Python that has it.

Arguments: address of the extension, token, a directory for files, a command that starts an MCP
server on standard input and output, and where the results are to be written: a JSON object, null or
a traceback for each check. test_openhands_client.py starts it.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
import time
import traceback
import zipfile
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import openhands.agenthub  # noqa: F401 - it registers the agents
from openhands.core.config.mcp_config import MCPStdioServerConfig
from openhands.events import EventSource, EventStreamSubscriber
from openhands.events.action import (
    ActionConfirmationStatus,
    AgentThinkAction,
    BrowseInteractiveAction,
    BrowseURLAction,
    CmdRunAction,
    FileEditAction,
    FileReadAction,
    FileWriteAction,
    IPythonRunCellAction,
)
from openhands.events.action.mcp import MCPAction
from openhands.events.event import FileReadSource
from openhands.events.observation import (
    AgentThinkObservation,
    BrowserOutputObservation,
    CmdOutputObservation,
    ErrorObservation,
    FileEditObservation,
    FileReadObservation,
    FileWriteObservation,
    IPythonRunCellObservation,
    MCPObservation,
    NullObservation,
    UserRejectObservation,
)
from openhands.runtime import get_runtime_cls
from openhands.runtime.utils.request import RequestHTTPError
from openhands_setting import (
    CHECKS,
    MCP_COMMAND,
    RESULTS,
    TOKEN,
    URL,
    WORK,
    check,
    configuration,
    refused,
    runtime,
)

client: Any = None
"""Connected by the first check."""


def run(command: str, timeout: float | None = None, **args: Any) -> CmdOutputObservation:
    action = CmdRunAction(command, **args)
    if timeout is not None:
        action.set_hard_timeout(timeout, blocking=args.get("blocking", True))
    observation = client.run_action(action)
    assert type(observation) is CmdOutputObservation, observation
    return observation


def edit(command: str, path: Path | str, **args: Any) -> FileEditObservation:
    observation = client.run_action(FileEditAction(str(path), command=command, **args))
    assert type(observation) is FileEditObservation, observation
    return observation


@check
def connecting_sets_variables_in_shell_and_kernel() -> None:
    global client
    os.environ["SANDBOX_ENV_SPOKEN"] = 'say "so"'
    client = runtime(env_vars={"plain": "value"})
    asyncio.run(client.connect())
    assert run('echo "$SPOKEN|$PLAIN"').content == 'say "so"|value'
    cell = client.run_action(IPythonRunCellAction("import os; os.environ['PLAIN']"))
    assert cell.content.startswith("'value'")
    assert "openhands" in run("git config --global user.name").content
    client.add_env_vars({})
    assert client.runtime_initialized


@check
def a_command_has_its_output_and_metadata() -> None:
    observation = run(f"cd {WORK} && echo one && (exit 3)")
    assert (observation.content, observation.exit_code, observation.success) == ("one", 3, False)
    assert (observation.command, observation.error) == (f"cd {WORK} && echo one && (exit 3)", True)
    metadata = observation.metadata
    assert metadata.working_dir == str(WORK)
    assert metadata.username
    assert metadata.hostname
    assert metadata.py_interpreter_path
    assert metadata.suffix == "\n[The command completed with exit code 3.]"
    assert "[Command finished with exit code 3]" in observation.to_agent_observation()


@check
def a_long_command_is_continued() -> None:
    observation = run("read -p 'name? ' name; echo \"hello $name\"", timeout=1)
    assert observation.exit_code == -1
    assert observation.content == "name?"
    assert "timed out after 1.0 seconds" in observation.metadata.suffix
    assert "is NOT executed" in run("echo other", timeout=1).metadata.suffix
    assert run("you", is_input=True).content.endswith("hello you")
    assert run("sleep 100", timeout=0.5).exit_code == -1
    assert run("C-c", is_input=True).exit_code == 130
    assert "no new output after" in run("sleep 100").metadata.suffix  # by the no-change limit
    assert run("C-c", is_input=True).exit_code == 130
    assert run("", is_input=False).content.startswith("ERROR: No previous running command")


@check
def commands_are_hidden_static_or_too_many() -> None:
    observation = run("pwd", hidden=True)
    assert observation.hidden
    assert run("cd /; pwd", is_static=True, hidden=True, cwd=str(WORK)).content == "/"
    assert run("pwd").content == str(WORK)
    long = run("seq 9000", hidden=True, blocking=True, timeout=30)
    assert len(long.content) == 43_892
    observation = client.run_action(CmdRunAction("echo a\necho b"))
    assert type(observation) is ErrorObservation
    assert observation.content.startswith("ERROR: Cannot execute multiple commands at once.")


@check
def cells_have_text_pictures_and_tracebacks() -> None:
    observation = client.run_action(IPythonRunCellAction("print('one')\n6 * 7"))
    assert type(observation) is IPythonRunCellObservation
    assert observation.content.startswith("one\n42\n[Jupyter current working directory: ")
    assert observation.image_urls is None
    picture = "from PIL import Image\nImage.new('RGB', (2, 2))"
    observation = client.run_action(IPythonRunCellAction(picture, include_extra=False))
    assert observation.image_urls[0].startswith("data:image/png;base64,")
    assert "Jupyter" not in observation.content
    observation = client.run_action(IPythonRunCellAction("1 / 0"))
    assert "ZeroDivisionError" in observation.content
    assert observation.success
    action = IPythonRunCellAction("import time; time.sleep(100)")
    action.set_hard_timeout(1)
    observation = client.run_action(action)
    assert "\n[Execution timed out (1.0 seconds).]\n[Jupyter" in observation.content
    observation = client.run_action(IPythonRunCellAction("print(file_editor('view', '/no/file'))"))
    assert "<oh_aci_output_" in observation.content, observation.content


@check
def files_are_read_and_written() -> None:
    path = WORK / "sub" / "a.txt"
    observation = client.run_action(FileWriteAction(str(path), "one\ntwo"))
    assert type(observation) is FileWriteObservation
    assert (observation.path, observation.content) == (str(path), "")
    observation = client.run_action(FileReadAction(str(path)))
    assert type(observation) is FileReadObservation
    assert (observation.content, observation.impl_source) == ("one\ntwo\n", FileReadSource.DEFAULT)
    observation = client.run_action(
        FileReadAction(str(path), impl_source=FileReadSource.OH_ACI, view_range=[2, 2])
    )
    assert "     2\ttwo" in observation.content
    assert observation.impl_source == "oh_aci"
    observation = client.run_action(FileReadAction("/no/such/file"))
    assert type(observation) is ErrorObservation
    observation = client.run_action(FileReadAction(str(WORK)))
    assert "Path is a directory" in observation.content


@check
def the_editor_has_all_commands() -> None:
    path = WORK / "b.txt"
    assert edit("create", path, file_text="one\ntwo\n").content.startswith("File created")
    changed = edit("str_replace", path, old_str="two", new_str="2")
    assert (changed.old_content, changed.new_content, changed.prev_exist) == ("two", "2", False)
    assert "-two\n+2" in changed.diff
    assert changed.path == str(path)
    edit("insert", path, insert_line=0, new_str="zero")
    assert path.read_text() == "zero\none\n2\n"
    assert "undone successfully" in edit("undo_edit", path).content
    assert "     1\tone" in edit("view", path).content
    for command, args in (
        ("create", {"file_text": "again"}),
        ("str_replace", {"old_str": "nowhere", "new_str": ""}),
        ("str_replace", {}),
        ("insert", {"insert_line": 99, "new_str": "x"}),
        ("no_such_command", {}),
    ):
        assert edit(command, path, **args).content.startswith("ERROR:\n"), command
    assert path.read_text() == "one\n2\n"
    assert edit("view", "relative.txt").content.startswith("ERROR:\n")


@check
def pages_are_browsed() -> None:
    page = WORK / "page.html"
    page.write_text("<title>t</title><h1>Hello</h1><button onclick='this.textContent=1'>B</button>")
    observation = client.run_action(BrowseURLAction(page.as_uri()))
    assert type(observation) is BrowserOutputObservation, observation
    assert "Hello" in observation.content
    assert observation.url == page.as_uri()
    assert observation.screenshot.startswith("data:image/png;base64,")
    assert Path(observation.screenshot_path).is_file()
    assert observation.trigger_by_action == "browse"
    action = BrowseInteractiveAction("noop()", return_axtree=True)
    observation = client.run_action(action)
    assert observation.axtree_object["nodes"]
    assert observation.set_of_marks
    assert observation.open_pages_urls == [page.as_uri()]
    observation = client.run_action(BrowseInteractiveAction("click('no-such-bid')"))
    assert observation.error
    assert observation.last_browser_action_error


@check
def what_does_not_run_is_answered_by_the_client() -> None:
    think = client.run_action(AgentThinkAction("hm"))
    assert type(think) is AgentThinkObservation
    waiting = CmdRunAction("ls", confirmation_state=ActionConfirmationStatus.AWAITING_CONFIRMATION)
    assert type(client.run_action(waiting)) is NullObservation
    rejected = CmdRunAction("ls", confirmation_state=ActionConfirmationStatus.REJECTED)
    assert type(client.run_action(rejected)) is UserRejectObservation


@check
def mcp_servers_run_behind_the_kernel() -> None:
    command, *words = json.loads(MCP_COMMAND)
    env = {"NAMED": "first"}
    client.config.mcp.stdio_servers = [
        MCPStdioServerConfig(name="first", command=command, args=words, env=env)
    ]
    config = client.get_mcp_config()
    assert config.sse_servers[-1].url == f"{URL}/mcp/sse"
    observation = call_tool("echo", {"text": "hello"})
    assert json.loads(observation.content)["content"][0]["text"] == "hello"
    assert (observation.name, observation.arguments) == ("echo", {"text": "hello"})
    assert json.loads(call_tool("fail", {}).content)["isError"]
    more = [MCPStdioServerConfig(name="second", command=command, args=words)]
    more += [MCPStdioServerConfig(name="broken", command="no-such-program")]
    client.get_mcp_config(more)
    observation = call_tool("second_echo", {"text": "there"})
    assert json.loads(observation.content)["content"][0]["text"] == "there"


def call_tool(name: str, arguments: dict[str, Any]) -> MCPObservation:
    observation = asyncio.run(client.call_tool_mcp(MCPAction(name, arguments)))
    assert type(observation) is MCPObservation, observation
    return observation


@check
def files_are_listed_and_copied() -> None:
    here, there = WORK / "here", WORK / "there"
    (here / "sub").mkdir(parents=True)
    (here / "sub" / "x").write_bytes(os.urandom(300_000))
    (here / "y.txt").write_text("why")
    client.copy_to(str(here / "y.txt"), str(there))
    client.copy_to(str(here), str(there), recursive=True)
    assert client.list_files(str(there)) == ["here/", "y.txt"]
    assert (there / "here" / "sub" / "x").read_bytes() == (here / "sub" / "x").read_bytes()
    assert client.list_files(str(WORK / "nowhere")) == []
    assert client.list_files()
    archive = client.copy_from(str(there))
    with zipfile.ZipFile(archive) as opened:
        assert {"y.txt", "here/y.txt", "here/sub/x"} <= set(opened.namelist())
    archive.unlink()
    relative = partial(client.copy_to, str(here / "y.txt"), "relative")
    assert "absolute" in refused(relative, RequestHTTPError)


@check
def microagents_and_setup_scripts_are_found() -> None:
    agents = WORK / ".openhands" / "microagents"
    agents.mkdir(parents=True)
    (agents / "repo.md").write_text("---\nname: repo\nagent: CodeActAgent\n---\nBe kind.\n")
    (agents / "known.md").write_text("---\nname: known\ntriggers: [kiwi]\n---\nA bird.\n")
    (WORK / ".openhands" / "setup.sh").write_text("export SET_UP=yes\n")
    agents = client.get_microagents_from_selected_repo(None)
    assert {agent.name for agent in agents} == {"repo", "known"}
    client.maybe_run_setup_script()
    assert run("echo $SET_UP").content == "yes"
    client.maybe_setup_git_hooks()


@check
def git_is_used_through_the_shell() -> None:
    origin = WORK / "origin"
    origin.mkdir()
    run(f"cd {origin}")
    client.config.init_git_in_empty_workspace = True
    assert asyncio.run(client.clone_or_init_repo(None, None, None)) == ""
    (origin / "kept.txt").write_text("one\n")
    assert run("git add . && git commit -qm first && git branch -M trunk").exit_code == 0
    (WORK / "cloned").mkdir()
    client.config.workspace_mount_path_in_sandbox = str(WORK / "cloned")

    async def address(*_: Any) -> str:
        return str(origin)

    client.provider_handler.get_authenticated_git_url = address
    assert asyncio.run(client.clone_or_init_repo(None, "acme/origin", "trunk")) == "origin"
    cloned = WORK / "cloned" / "origin"
    assert run("pwd").content == str(cloned)
    (cloned / "kept.txt").write_text("two\n")
    (cloned / "new.txt").write_text("new\n")
    changes = client.get_git_changes(str(cloned))
    statuses = {(change["status"], change["path"]) for change in changes}
    assert statuses == {("M", "kept.txt"), ("A", "new.txt")}, statuses
    diff = client.get_git_diff("kept.txt", str(cloned))
    assert (diff["original"], diff["modified"]) == ("one", "two")
    assert client.get_workspace_branch("origin") == "trunk"
    client.config.workspace_mount_path_in_sandbox = str(WORK)
    assert client.get_workspace_branch("here") is None
    run(f"cd {WORK}")


@check
def events_get_their_observations() -> None:
    heard: list[Any] = []
    done = threading.Event()

    def hear(event: Any) -> None:
        if hasattr(event, "observation"):
            heard.append(event)
            done.set()

    client.event_stream.subscribe(EventStreamSubscriber.TEST, hear, "hear")
    for action in (CmdRunAction("echo heard"), MCPAction("first_echo", {"text": "heard"})):
        done.clear()
        client.event_stream.add_event(action, EventSource.AGENT)
        assert done.wait(60)
        assert (heard[-1].cause, heard[-1].source) == (action.id, EventSource.AGENT)
        assert heard[-1].id == action.id + 1
        assert heard[-1].timestamp > action.timestamp
        assert "heard" in heard[-1].content
    client.event_stream.unsubscribe(EventStreamSubscriber.TEST, "hear")


@check
def there_is_no_vscode_unless_it_was_asked_for() -> None:
    assert client.get_vscode_token() == ""
    other = runtime(sid="vscode", headless_mode=False)
    other._runtime_initialized = True
    assert other.get_vscode_token() == ""
    other.close()


@check
def a_kernel_of_its_own_is_a_runtime() -> None:
    other = runtime(sid="other")
    other.url = f"{URL}/kernels/no-such-kernel"
    assert "There is no kernel" in refused(other.check_if_alive, RequestHTTPError)
    answer = client.session.get(URL + "/server_info", headers={"Authorization": f"token {TOKEN}"})
    other.url = f"{URL}/kernels/{answer.json()['default_kernel']}"
    other.check_if_alive()
    assert other.run_action(CmdRunAction("echo $PLAIN")).content == "value"
    other.close()


class RuntimeApi(BaseHTTPRequestHandler):
    """The requests of RemoteRuntime before it contacts the runtime."""

    def do_GET(self) -> None:
        answer = {
            "status": "running", "runtime_id": "r", "url": URL, "pod_status": "ready",
            "session_id": "remote", "session_api_key": os.environ["SESSION_API_KEY"],
        }  # fmt: skip
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET

    def log_message(self, *args: Any) -> None:
        pass


@check
def the_remote_runtime_works() -> None:
    api = ThreadingHTTPServer(("127.0.0.1", 0), RuntimeApi)
    threading.Thread(target=api.serve_forever, daemon=True).start()
    config = configuration()
    config.sandbox.remote_runtime_api_url = f"http://127.0.0.1:{api.server_port}"
    config.sandbox.api_key = "key"
    remote = runtime(get_runtime_cls("remote"), sid="remote", config=config)
    asyncio.run(remote.connect())
    assert remote.run_action(CmdRunAction("echo remote")).content == "remote"
    assert str(WORK.name) + "/" in remote.list_files(str(WORK.parent))
    remote.close()
    api.shutdown()


@check
def closing_ends_nothing_but_the_session() -> None:
    client.close()
    client.close()


def main() -> None:
    import openhands_example_checks  # noqa: F401 - it adds its checks

    results: dict[str, str | None] = {}
    for function in CHECKS:
        began = time.monotonic()
        try:
            function()
            results[function.__name__] = None
        except BaseException:
            results[function.__name__] = traceback.format_exc()
        print(f"{function.__name__}: {time.monotonic() - began:.1f} s", flush=True)
        Path(RESULTS).write_text(json.dumps(results))


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    os._exit(0)  # OpenHands leaves threads behind that do not end
