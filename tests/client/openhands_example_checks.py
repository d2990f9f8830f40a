"""The example that plugs a kernel into OpenHands, and OpenHands' own agent working through it."""

from __future__ import annotations

import asyncio
import json
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import httpx
import openhands.agenthub  # noqa: F401 - it registers the agents
from openhands.core.config import AgentConfig, LLMConfig
from openhands.core.config.mcp_config import MCPStdioServerConfig
from openhands.core.exceptions import AgentRuntimeUnavailableError
from openhands.core.main import run_controller
from openhands.core.schema import AgentState
from openhands.events.action import (
    ActionSecurityRisk,
    CmdRunAction,
    FileEditAction,
    FileReadAction,
    IPythonRunCellAction,
    MessageAction,
)
from openhands.events.event import FileEditSource
from openhands.events.observation import (
    CmdOutputObservation,
    ErrorObservation,
    FileEditObservation,
    UserRejectObservation,
)
from openhands.runtime import get_runtime_cls
from openhands_setting import (
    EXAMPLE,
    MCP_COMMAND,
    TOKEN,
    URL,
    WORK,
    Client,
    check,
    configuration,
    refused,
    runtime,
)


@check
def the_example_plugs_in_by_its_import_path() -> None:
    home = Path.home()
    (home / ".bashrc").write_text("# mine\n")
    client = runtime(Client, sid="beside")
    client.run_action(CmdRunAction("git config --global user.name me"))
    cls = get_runtime_cls(EXAMPLE)
    plugged = runtime(cls, sid="plugged", env_vars={"quoted": "$HOME 'x' `y`"})
    asyncio.run(plugged.connect())
    assert plugged.workspace_root == Path(client.run_action(CmdRunAction("pwd")).content)
    assert plugged.run_action(CmdRunAction('echo "$QUOTED"')).content == "$HOME 'x' `y`"
    cell = IPythonRunCellAction("import os; print(os.environ['QUOTED'])")
    assert plugged.run_action(cell).content.startswith("$HOME 'x' `y`")
    assert (home / ".bashrc").read_text() == "# mine\n"
    assert client.run_action(CmdRunAction("git config --global user.name")).content == "me"
    assert plugged.vscode_url is None
    answer = plugged.run_action(FileReadAction(str(WORK / "a.txt"), view_range=["x"]))
    assert type(answer) is ErrorObservation
    assert "view_range" in answer.content
    plugged.close()
    assert client.run_action(CmdRunAction("echo still there")).content == "still there"


@check
def the_example_says_what_is_wrong() -> None:
    cls = get_runtime_cls(EXAMPLE)

    def failure(url: str, token: str = TOKEN) -> str:
        before = dict(os.environ)
        os.environ.update(OH_URL=url, OH_TOKEN=token)
        try:
            return refused(
                lambda: asyncio.run(runtime(cls, sid="wrong").connect()),
                AgentRuntimeUnavailableError,
            )
        finally:
            os.environ.update(before)

    assert "OH_URL is not set" in failure("")
    assert "is the Jupyter server running?" in failure("http://127.0.0.1:1/oh_jupyter")
    assert "OH_TOKEN is not the token" in failure(URL, "wrong")
    assert "that kernel is gone" in failure(f"{URL}/kernels/no-such-kernel")
    assert "oh_jupyter is not installed" in failure(URL.replace("oh_jupyter", "nothing"))


def tool_call(name: str, **arguments: Any) -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps({"security_risk": "LOW", **arguments})}
    calls = [{"id": f"call_{time.time_ns()}", "type": "function", "function": function}]
    return {"role": "assistant", "content": "", "tool_calls": calls}


class Model(BaseHTTPRequestHandler):
    """A language model that has learned its lines, behind the API of OpenAI."""

    lines: ClassVar[list[dict[str, Any]]] = []
    asked: ClassVar[list[Any]] = []

    def do_POST(self) -> None:
        self.asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        choice = {"index": 0, "message": self.lines.pop(0), "finish_reason": "tool_calls"}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        answer = {
            "id": "1", "object": "chat.completion", "created": 1, "model": "scripted",
            "choices": [choice], "usage": usage,
        }  # fmt: skip
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: Any) -> None:
        pass


def model() -> ThreadingHTTPServer:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def llm(server: ThreadingHTTPServer) -> LLMConfig:
    return LLMConfig(
        model="openai/scripted",
        base_url=f"http://127.0.0.1:{server.server_port}/v1",
        api_key="none",
        native_tool_calling=True,
        num_retries=0,
    )


@check
def drafts_are_merged_by_its_editor() -> None:
    path = WORK / "draft.txt"
    path.write_text("one\ntwo\nthree\n")
    merged = "<updated_code>\none\n2\nthree\n</updated_code>"
    Model.lines = [{"role": "assistant", "content": merged}]
    server = model()
    config = configuration()
    config.set_llm_config(llm(server), "draft_editor")
    config.set_agent_config(AgentConfig(enable_llm_editor=True))
    client = runtime(Client, sid="draft", config=config)
    action = FileEditAction(str(path), content="# ... existing ...\n2\n# ... existing ...",
                            impl_source=FileEditSource.LLM_BASED_EDIT)  # fmt: skip
    observation = client.run_action(action)
    server.shutdown()
    assert type(observation) is FileEditObservation, observation
    assert "-two\n+2" in observation.content
    assert path.read_text().split() == ["one", "2", "three"]


def jupyter(method: str, path: str, body: Any = None) -> Any:
    """Ask the Jupyter server, as a person's JupyterLab does."""
    url = f"{URL.removesuffix('/oh_jupyter')}/{path}"
    answer = httpx.request(
        method, url, json=body, headers={"Authorization": f"token {TOKEN}"}, timeout=60
    )
    answer.raise_for_status()
    return answer.json() if answer.content else None


def open_notebook(name: str) -> str:
    """Open a notebook with a kernel, and point the example to it; the kernel's id."""
    session = {"path": name, "name": name, "type": "notebook", "kernel": {"name": "python3"}}
    kernel = str(jupyter("POST", "api/sessions", session)["kernel"]["id"])
    os.environ["OH_URL"] = f"{URL}/kernels/{kernel}"
    return kernel


@check
def an_agent_works_in_a_notebooks_kernel() -> None:
    kernel = open_notebook("agent.ipynb")
    path, page = WORK / "by_agent.txt", WORK / "for_agent.html"
    page.write_text("<h1>Hello</h1>")
    command, *words = json.loads(MCP_COMMAND)
    Model.lines = [
        tool_call("execute_bash", command=f"cd {WORK} && echo from the agent"),
        tool_call("execute_ipython_cell", code="by_agent = 6 * 7\nby_agent"),
        tool_call("str_replace_editor", command="create", path=str(path), file_text="one\n"),
        tool_call("str_replace_editor", command="str_replace", path=str(path), old_str="one",
                  new_str="two"),
        tool_call("str_replace_editor", command="view", path=str(path)),
        tool_call("browser", code=f"goto('{page.as_uri()}')"),
        tool_call("fetched_echo", text="from a tool"),
        tool_call("think", thought="that was all"),
        tool_call("finish", message="done"),
    ]  # fmt: skip
    server = model()
    config = configuration()
    config.runtime = EXAMPLE
    config.max_iterations = 20
    config.mcp.stdio_servers = [
        MCPStdioServerConfig(name="fetched", command=command, args=words),
        MCPStdioServerConfig(name="unused", command=command, args=words),
    ]
    config.set_llm_config(llm(server))
    task = MessageAction("Do as you have learned")
    state = asyncio.run(run_controller(config, task, sid="agent", exit_on_message=True))
    server.shutdown()
    assert state.agent_state == AgentState.FINISHED, state.last_error
    assert not Model.lines
    messages = [m for m in Model.asked[-1]["messages"] if m["role"] == "tool"]
    seen = ("from the agent", "42", "File created", "has been edited", "two", "Hello")
    for message, expected in zip(messages, (*seen, "from a tool", "thought"), strict=True):
        assert expected in json.dumps(message["content"]), (expected, message)
    assert path.read_text() == "two\n"
    beside = runtime(Client, sid="after")
    beside.url = f"{URL}/kernels/{kernel}"
    assert beside.run_action(IPythonRunCellAction("by_agent")).content.startswith("42")
    recorded = jupyter("GET", f"oh_jupyter/kernels/{kernel}/events")["events"]
    by_agent = {event["action"] for event in recorded if event.get("source") == "agent"
                and "action" in event}  # fmt: skip
    assert by_agent >= {"run", "run_ipython", "edit", "read", "browse_interactive"}, by_agent


@check
def the_person_at_the_notebook_decides() -> None:
    kernel = open_notebook("decided.ipynb")
    plugged = runtime(get_runtime_cls(EXAMPLE), sid="decided")
    asyncio.run(plugged.connect())
    waiting = f"oh_jupyter/kernels/{kernel}/confirmations"

    def ask(timeout: float) -> Any:
        action = CmdRunAction("echo done", security_risk=ActionSecurityRisk.HIGH)
        action.set_hard_timeout(timeout)
        return plugged.run_action(action)

    for approve, expected in ((True, CmdOutputObservation), (False, UserRejectObservation)):
        with ThreadPoolExecutor() as pool:
            asked = pool.submit(ask, 60)
            while not (pending := jupyter("GET", waiting)):
                assert not asked.done(), asked.result()
            jupyter("POST", f"{waiting}/{pending[0]['id']}", {"approve": approve})
            assert type(asked.result()) is expected, asked.result()
    late = ask(1)
    assert type(late) is ErrorObservation
    assert "may have waited for approval" in late.content
    assert plugged.run_action(CmdRunAction("echo on")).content == "on"
    plugged.close()


@check
def a_dying_kernel_is_reported() -> None:
    open_notebook("dies.ipynb")
    plugged = runtime(get_runtime_cls(EXAMPLE), sid="dies")
    asyncio.run(plugged.connect())
    observation = plugged.run_action(IPythonRunCellAction("import os; os._exit(1)"))
    assert type(observation) is ErrorObservation
    assert "the state of its runtime is lost" in observation.content, observation.content
    again = plugged.run_action(CmdRunAction("echo again")).content
    assert again.startswith("[The kernel was restarted since the last action"), again
    assert again.endswith("]\nagain"), again
    assert plugged.run_action(CmdRunAction("echo again")).content == "again"
    plugged.close()


@check
def a_restart_between_two_actions_is_reported() -> None:
    kernel = open_notebook("restarts.ipynb")
    plugged = runtime(get_runtime_cls(EXAMPLE), sid="restarts", env_vars={"MINE": "kept"})
    asyncio.run(plugged.connect())
    assert plugged.run_action(CmdRunAction("echo $MINE")).content == "kept"
    jupyter("POST", f"api/kernels/{kernel}/restart")
    content = plugged.run_action(IPythonRunCellAction("1 + 1")).content
    assert content.startswith("[The kernel was restarted since the last action"), content
    assert "2" in content.partition("]")[2]
    assert plugged.run_action(CmdRunAction("echo $MINE")).content == "kept"
    plugged.close()
