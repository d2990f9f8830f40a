"""Claude Code and Codex at work in a notebook's kernel, with a scripted model on loopback.

Where their programs are on the PATH; ``npm install -g @agentclientprotocol/claude-agent-acp
@zed-industries/codex-acp``.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import acp
import pytest
import requests
from acp.schema import AllowedOutcome, RequestPermissionResponse
from scripted_model import ScriptedModel

from oh_jupyter.agents.transport import ChildTransport, connect
from oh_jupyter.process import PIPE, spawn
from oh_jupyter.testing import run_server, wait_until
from oh_jupyter.testing.kernel import connect_to_kernel, text_at_end

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

PROGRAMS = {"claude": "claude-agent-acp", "codex": "codex-acp"}
LATE_SECONDS = float(os.environ.get("OH_JUPYTER_TEST_LATE_SECONDS", "70"))
"""How late a person approves: later than the 60 s that clients often wait by default."""

TOOLS = {"claude": "mcp__oh-jupyter__", "codex": "mcp__oh_jupyter__"}
"""How the tools of the server that ``oh-jupyter connect`` writes down are called."""


class Notebook:
    """A kernel that a Jupyter server has, as the person sees it, and the agent's model."""

    def __init__(self, folder: Path, model: ScriptedModel) -> None:
        self.folder, self.model = folder, model
        home = folder / "home"
        (home / ".codex").mkdir(parents=True)
        (home / ".codex" / "config.toml").write_text(
            f'model = "gpt-5.4"\nmodel_provider = "scripted"\n'
            f'[model_providers.scripted]\nname = "scripted"\nbase_url = "{model.url}/v1"\n'
            'wire_api = "responses"\nenv_key = "OPENAI_API_KEY"\n'
            "requires_openai_auth = false\nsupports_websockets = false\n"
            "[features]\nenable_request_compression = false\n"
        )
        self.environment = {
            # As root Claude Code refuses an option that its ACP agent gives it in a sandbox.
            "IS_SANDBOX": None,
            "HOME": str(home),
            "OH_JUPYTER_CONFIRMATION": "risky",
            "OH_JUPYTER_CONFIRMATION_TIMEOUT": "7200",
            "ANTHROPIC_BASE_URL": model.url,
            "ANTHROPIC_API_KEY": "dummy",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "OPENAI_API_KEY": "dummy",
            "CODEX_HOME": str(home / ".codex"),
        }
        self._running = run_server(folder, environment=self.environment)
        self.server = self._running.__enter__()
        self.work = folder / "root"
        self.http = requests.Session()
        self.http.headers.update(self.server.headers)
        started = self.http.post(f"{self.server.url}/api/kernels", json={}, timeout=120).json()
        self.kernel_id = started["id"]
        connection = folder / "run" / f"kernel-{self.kernel_id}.json"
        self.client = connect_to_kernel(connection)
        self.panel = connect_to_kernel(connection)
        self.execute("%load_ext oh_jupyter")

    def execute(self, code: str, **options: Any) -> str:
        """Run a cell; all that it shows, as text."""
        return text_at_end(self.client, code, **options)

    def _ask(self, operation: str, **fields: Any) -> Any:
        """A request on the control channel, as the panel sends it, and the JSON of the reply."""
        session, channel = self.panel.session, self.panel.control_channel
        message = session.msg("oh_jupyter_request", {"op": operation, **fields})
        session.send(channel.socket, message)
        while True:
            # Not by the client, which would leave a loop behind in each thread.
            _, reply = session.recv(channel.socket, mode=0)
            if reply["parent_header"].get("msg_id") == message["header"]["msg_id"]:
                return json.loads(bytes(reply["buffers"][0])) if reply["buffers"] else None

    def decide(self, *answers: bool, late_seconds: float = 0) -> threading.Thread:
        """Answer questions, one after the other, as a person does in the panel, perhaps late."""

        def look() -> None:
            for approve in answers:
                waiting = wait_until(lambda: self._ask("confirmations"), timeout_seconds=200)
                time.sleep(late_seconds)
                self._ask("confirm", id=waiting[0]["id"], approve=approve)

        thread = threading.Thread(target=look, daemon=True)
        thread.start()
        return thread

    def answer(self, values: dict[str, str]) -> threading.Thread:
        """Answer an agent's question as a person does in the panel."""

        def look() -> None:
            (waiting,) = wait_until(lambda: self._ask("confirmations"), timeout_seconds=200)
            assert waiting["is_question"]
            self._ask("confirm", id=waiting["id"], approve=True, values=values)

        thread = threading.Thread(target=look, daemon=True)
        thread.start()
        return thread

    def interrupt_when(self, started: Path) -> threading.Thread:
        """Interrupt the cell as soon as there is a file."""

        def look() -> None:
            wait_until(started.exists, timeout_seconds=200)
            kernel = f"{self.server.url}/api/kernels/{self.kernel_id}"
            self.http.post(f"{kernel}/interrupt", timeout=60).raise_for_status()

        thread = threading.Thread(target=look, daemon=True)
        thread.start()
        return thread

    def received_text(self) -> str:
        """Return all that the model received."""
        return json.dumps(self.model.requests)

    def close(self) -> None:
        self.client.stop_channels()
        self.panel.stop_channels()
        self.http.close()
        self._running.__exit__(None, None, None)


@pytest.fixture(scope="module")
def notebook(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Notebook]:
    model = ScriptedModel()
    made = Notebook(tmp_path_factory.mktemp("real"), model)
    yield made
    made.close()
    model.close()


@pytest.fixture(params=sorted(PROGRAMS))
def agent(request: pytest.FixtureRequest, notebook: Notebook) -> Iterator[str]:
    if shutil.which(PROGRAMS[request.param]) is None:
        pytest.skip(f"{PROGRAMS[request.param]} is not installed")
    notebook.model.requests.clear()
    notebook.model.steps.clear()
    yield request.param
    notebook.execute("%oh_agent stop")


def test_the_story(notebook: Notebook, agent: str) -> None:
    notebook.execute("secret_number = 4711")
    path = f"{notebook.work}/{agent}.txt"
    notebook.model.steps += [
        ("mcp__oh__run_ipython", {"code": "print(secret_number + 1)"}),
        ("mcp__oh__edit", {"command": "create", "path": path, "file_text": "from the agent\n"}),
        ("mcp__oh__run_ipython", {"code": "from_the_agent = secret_number * 2"}),
        "All is done.",
    ]
    shown = notebook.execute(f'turn = %oh_agent {agent} "use the variable"')
    assert "All is done." in shown, shown
    assert "4712" in notebook.received_text()
    assert "secret_number" in json.dumps(notebook.model.requests[0])
    assert "9422" in notebook.execute("print(from_the_agent)")
    assert Path(path).read_text() == "from the agent\n"
    assert "3 True" in notebook.execute("print(len(turn.steps), '+from the agent' in turn.diff)")
    notebook.execute("oh.rewind(turn)")
    assert not Path(path).exists()


def test_a_question_of_claude_is_answered_by_the_person(notebook: Notebook) -> None:
    if shutil.which(PROGRAMS["claude"]) is None:
        pytest.skip("claude-agent-acp is not installed")
    options = [{"label": name, "description": f"The {name} one"} for name in ("red", "blue")]
    asked = {"question": "Which colour?", "header": "Colour", "options": options}
    questions = {"questions": [{**asked, "multiSelect": False}]}
    notebook.model.requests.clear()
    notebook.model.steps[:] = [("AskUserQuestion", questions), "All is done."]
    answering = notebook.answer({"question_0": "blue"})
    shown = notebook.execute('turn = %oh_agent --new claude "ask me"')
    answering.join(60)
    assert "All is done." in shown, shown
    assert "blue" in json.dumps(notebook.model.requests[-1]["messages"][-1])
    notebook.execute("%oh_agent stop")


@pytest.mark.thorough
@pytest.mark.browser
def test_each_tool_is_called(notebook: Notebook, agent: str) -> None:
    """One session with all tools: what each returns reaches the model."""
    book, file, page = f"of_{agent}.ipynb", f"of_{agent}.txt", f"{notebook.server.url}/login"
    notebook.execute("numbers = list(range(5)); oh.store.write('shelf/of_person.txt', 'text')")
    called: list[tuple[str, dict[str, Any], str]] = [
        ("run", {"command": "echo from the $((40 + 2))nd command"}, "from the 42nd command"),
        ("run_ipython", {"code": "print(sum(numbers) * 100)"}, "1000"),
        ("variables", {"expression": "numbers[-2:]"}, "[3, 4]"),
        ("write", {"path": file, "content": "first line"}, "It is new."),
        (
            "edit",
            {"command": "str_replace", "path": file, "old_str": "first", "new_str": "second"},
            "+second line",
        ),
        ("read", {"path": file}, "second line"),
        ("store", {"command": "list", "path": "shelf"}, "of_person.txt"),
        ("kernel", {"command": "start", "notebook": book}, f"Created {book} with the kernel"),
        ("list_notebooks", {}, "is_this_kernel"),
        ("insert_cell", {"notebook": book, "source": "6 * 7"}, "Inserted cell 0"),
        (
            "edit_cell",
            {"notebook": book, "cell": 0, "old_str": "7", "new_str": "70"},
            "+6 * 70",
        ),
        ("run_cell", {"notebook": book, "cell": 0}, "420"),
        ("read_cells", {"notebook": book}, "--- output ---"),
        ("changes", {}, "cells"),
        ("browse", {"url": page, "picture": "none"}, "Password or token"),
        ("browse_interactive", {"browser_actions": "noop(1)", "picture": "none"}, "RootWebArea"),
    ]
    notebook.model.steps += [(f"mcp__oh__{name}", arguments) for name, arguments, _ in called]
    notebook.model.steps.append("All tools were called.")
    shown = notebook.execute(f'turn = %oh_agent --new {agent} "use each tool"')
    assert "All tools were called." in shown, shown
    statuses = notebook.execute("print([step.status for step in turn.steps])")
    assert statuses.count("'completed'") == len(called) == 16, shown
    received = notebook.received_text()
    for name, _, expected in called:
        assert expected in received, name


def test_an_undone_turn_is_absent_from_the_models_input(notebook: Notebook, agent: str) -> None:
    """Claude Code returns to its fork of the conversation; Codex starts with what was said."""
    model, name = notebook.model, f"undone_by_{agent}"

    def received(prompt: str) -> str:
        model.requests.clear()
        model.replies[prompt] = f"I read: {prompt}"
        assert f"I read: {prompt}" in notebook.execute(f'%oh_agent {agent} "{prompt}"')
        return notebook.received_text()

    notebook.execute(f'%oh_agent --new {agent} "Remember the number 17."')
    model.steps += [("mcp__oh__run_ipython", {"code": f"{name} = 1 + 1"}), "Undone text."]
    notebook.execute(f'%oh_agent {agent} "Undone question?"')
    notebook.execute("%oh_rewind last --yes")
    prompt = received("Question after it?")
    assert "Remember the number 17." in prompt
    for undone in ("Undone question?", name, "Undone text."):
        assert undone not in prompt
    assert ("What was said before" in prompt) == (agent == "codex")
    listed = notebook.execute(
        "from oh_jupyter.kernel.extension import loaded\n"
        "print([e.id for e in loaded().runtime.executor.turns.checkpoints.entries()"
        " if e.kind == 'rewind'][-1])"
    )
    notebook.execute(f"%oh_rewind {listed.split()[-1]} --yes")
    prompt = received("And what now?")
    for restored in ("Remember the number 17.", "Undone question?", name, "Undone text."):
        assert restored in prompt
    assert "Question after it?" not in prompt
    assert "What was said before" not in prompt


def test_its_model_and_effort_are_chosen(notebook: Notebook, agent: str) -> None:
    model = {"claude": "sonnet", "codex": "gpt-5.2"}[agent]
    notebook.model.steps = ["first", "second", "third"]
    notebook.execute(f"%oh_agent --new --model {model} --effort high {agent} look")
    assert model in notebook.model.requests[-1]["model"]
    notebook.execute("%oh_agent look again")
    assert model in notebook.model.requests[-1]["model"]
    shown = notebook.execute("%oh_agent options")
    assert "medium, high" in shown
    if agent == "codex":
        assert notebook.model.requests[-1]["reasoning"]["effort"] == "high"
    assert "You are a guest" in notebook.execute("%oh_agent sessions")


def test_its_own_tools_are_off(notebook: Notebook, agent: str) -> None:
    notebook.model.steps += ["Hello."]
    notebook.execute(f"%oh_agent --new {agent} hello")
    tools = json.dumps(notebook.model.requests[-1]["tools"])
    for own in ('"Bash"', '"Write"', '"Edit"', '"Read"', '"exec_command"', '"shell"'):
        assert f'"name": {own}' not in tools, own
    assert "run_ipython" in tools


def test_one_question_approved_and_one_rejected(notebook: Notebook, agent: str) -> None:
    work = notebook.work
    for name in ("approved", "rejected"):
        (work / f"{agent}-{name}").touch(mode=0o600)
    notebook.model.steps += [
        ("mcp__oh__run", {"command": f"chmod 777 {work}/{agent}-approved"}),
        ("mcp__oh__run", {"command": f"chmod 777 {work}/{agent}-rejected"}),
        "Both were asked.",
    ]
    deciding = notebook.decide(True, False)
    assert "Both were asked." in notebook.execute(f"%oh_agent --new {agent} open them")
    deciding.join()
    assert (work / f"{agent}-approved").stat().st_mode & 0o777 == 0o777
    assert (work / f"{agent}-rejected").stat().st_mode & 0o777 == 0o600
    assert "rejected by the user" in notebook.received_text()


@pytest.mark.timeout(300 + LATE_SECONDS)
def test_a_late_approval_starts_the_action(notebook: Notebook, agent: str) -> None:
    """The agents' own timeouts are real: the progress of a call must keep them waiting."""
    opened = notebook.work / f"{agent}-late"
    opened.touch(mode=0o600)
    notebook.model.steps += [("mcp__oh__run", {"command": f"chmod 777 {opened}"}), "It is open."]
    deciding = notebook.decide(True, late_seconds=LATE_SECONDS)
    shown = notebook.execute(f"%oh_agent --new {agent} open it", timeout_seconds=250 + LATE_SECONDS)
    assert "It is open." in shown
    deciding.join()
    assert opened.stat().st_mode & 0o777 == 0o777
    assert "rejected by the user" not in notebook.received_text()


def test_an_interrupt_ends_the_running_tool(notebook: Notebook, agent: str) -> None:
    started = notebook.work / f"{agent}-runs"
    notebook.model.steps += [("mcp__oh__run", {"command": f"touch {started}; sleep 1000"}), "never"]
    interrupting = notebook.interrupt_when(started)
    assert "KeyboardInterrupt" in notebook.execute(f"%oh_agent --new {agent} wait")
    interrupting.join()
    notebook.model.steps.clear()
    notebook.model.replies["Are you there?"] = "Here I am again."
    assert "Here I am again." in notebook.execute(f"%oh_agent {agent} Are you there?")
    assert notebook._ask("status")["running"] == []


def test_an_interrupt_before_the_start_of_its_cell_ends_the_cell(
    notebook: Notebook, agent: str
) -> None:
    code = "import time; time.sleep(200)"
    notebook.model.steps += [("mcp__oh__run_ipython", {"code": code}), "never"]

    def interrupt() -> None:
        wait_until(lambda: notebook._ask("status")["running"], timeout_seconds=100)
        kernel = f"{notebook.server.url}/api/kernels/{notebook.kernel_id}"
        notebook.http.post(f"{kernel}/interrupt", timeout=60).raise_for_status()

    interrupting = threading.Thread(target=interrupt, daemon=True)
    interrupting.start()
    notebook.execute(f"%oh_agent --new {agent} wait")
    interrupting.join()
    wait_until(lambda: not notebook._ask("status")["running"], timeout_seconds=60)


def test_an_interrupt_of_its_cell_is_reported_to_it(notebook: Notebook, agent: str) -> None:
    started = notebook.work / f"{agent}-cell"
    code = (
        f"import pathlib, time\npathlib.Path({str(started)!r}).touch()\nwhile True: time.sleep(0.1)"
    )
    notebook.model.steps += [("mcp__oh__run_ipython", {"code": code}), "It was interrupted."]
    interrupting = notebook.interrupt_when(started)
    assert "It was interrupted." in notebook.execute(f"%oh_agent --new {agent} wait")
    text = notebook.received_text()
    assert started.exists(), text[-3000:]
    assert "KeyboardInterrupt" in text, text[-3000:]
    interrupting.join()


class Person:
    """Stand-in for a client's user who approves every request."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def request_permission(self, options: Any, tool_call: Any, **kwargs: Any) -> Any:
        self.asked.append(str(tool_call.title))
        once = next(option for option in options if option.kind == "allow_once")
        return RequestPermissionResponse(
            outcome=AllowedOutcome(outcome="selected", option_id=once.option_id)
        )

    async def session_update(self, **kwargs: Any) -> None:
        pass


async def prompted(program: str, notebook: Notebook, environment: dict[str, str]) -> list[str]:
    """Return the client's questions to its user during a tool call of the model."""
    person = Person()
    child = spawn(
        [shutil.which(program)],
        cwd=notebook.work,
        env=environment,
        stdin=PIPE,
        stdout=PIPE,
        stderr=PIPE,
    )
    transport = ChildTransport(child)
    client = connect(person, transport)
    try:
        await client.initialize(protocol_version=acp.PROTOCOL_VERSION)
        session = await client.new_session(cwd=str(notebook.work), mcp_servers=[])
        steps, notebook.model.steps[:] = notebook.model.steps[:], []
        while True:  # until it has connected to our server
            notebook.model.requests.clear()
            await client.prompt(session_id=session.session_id, prompt=[acp.text_block("hello")])
            if "run_ipython" in json.dumps(notebook.model.requests[-1].get("tools")):
                break
        notebook.model.steps += steps
        await client.prompt(session_id=session.session_id, prompt=[acp.text_block("open it")])
    finally:
        await client.close()
        await transport.close()
        await asyncio.to_thread(child.terminate, 1)
    return person.asked


@pytest.mark.parametrize("trust", [[], ["--trust"]], ids=["asked", "trusted"])
def test_only_jupyterlab_asks_where_that_is_wanted(
    notebook: Notebook, agent: str, trust: list[str], tmp_path: Path
) -> None:
    """The agent as a client of its own, by the files that ``oh-jupyter connect`` writes."""
    home = shutil.copytree(notebook.folder / "home", tmp_path / "home")
    changed = {**notebook.environment, "HOME": str(home), "CODEX_HOME": str(home / ".codex")}
    environment = {
        name: value
        for name, value in {**os.environ, **changed}.items()
        if value is not None and name != "CLAUDE_CONFIG_DIR"
    }
    address = f"{notebook.server.url}/oh_jupyter/kernels/{notebook.kernel_id}"
    subprocess.run(
        [
            *(Path(sys.executable).with_name("oh-jupyter"), "connect", agent, "--user", *trust),
            *("--url", address, "--token", notebook.server.token),
        ],
        env=environment,
        check=True,
        timeout=60,
    )
    opened = notebook.work / f"{agent}-{len(trust)}"
    opened.touch(mode=0o600)
    command = {"command": f"chmod 777 {opened}"}
    notebook.model.steps += [(f"{TOOLS[agent]}run", command), "It was asked."]
    deciding = notebook.decide(True)
    asked = asyncio.run(prompted(PROGRAMS[agent], notebook, environment))
    deciding.join()
    assert opened.stat().st_mode & 0o777 == 0o777
    assert len(asked) == (0 if trust else 1), asked
