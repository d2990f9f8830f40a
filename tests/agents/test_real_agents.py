"""Claude Code and Codex at work in a notebook's kernel, with a scripted model on loopback.

Where their programs are on the PATH; ``npm install -g @agentclientprotocol/claude-agent-acp
@zed-industries/codex-acp``.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
from jupyter_client.blocking.client import BlockingKernelClient
from scripted_model import ScriptedModel

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

PROGRAMS = {"claude": "claude-agent-acp", "codex": "codex-acp"}
TOKEN = "real-agents-token"


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
        # As root Claude Code refuses an option that its ACP agent gives it in a sandbox.
        known = {name: value for name, value in os.environ.items() if name != "IS_SANDBOX"}
        environment = known | {
            "HOME": str(home),
            "JUPYTER_RUNTIME_DIR": str(folder / "run"),
            "JUPYTER_CONFIG_DIR": str(folder / "config"),
            "OH_JUPYTER_CONFIRMATION": "risky",
            "ANTHROPIC_BASE_URL": model.url,
            "ANTHROPIC_API_KEY": "dummy",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "OPENAI_API_KEY": "dummy",
            "CODEX_HOME": str(home / ".codex"),
        }
        (folder / "results").mkdir()
        self._server = subprocess.Popen(
            [
                *(sys.executable, "-m", "jupyter_server", "--no-browser", "--allow-root"),
                *("--ServerApp.port=0", "--ServerApp.ip=127.0.0.1"),
                f"--IdentityProvider.token={TOKEN}",
                f"--ServerApp.root_dir={folder / 'results'}",
                "--ServerApp.jpserver_extensions={'oh_jupyter': True}",
            ],
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        assert self._server.stderr is not None
        for line in self._server.stderr:
            if found := re.search(r"(http://127\.0\.0\.1:\d+)/", line):
                break
        else:
            pytest.fail("the server did not start")
        self.url = found[1]
        self._log = threading.Thread(target=lambda: list(self._server.stderr), daemon=True)
        self._log.start()
        self.http = requests.Session()
        self.http.headers["Authorization"] = f"token {TOKEN}"
        adapter = requests.adapters.HTTPAdapter(
            max_retries=requests.adapters.Retry(connect=200, backoff_factor=0.05, backoff_max=0.2)
        )
        self.http.mount("http://", adapter)
        started = self.http.post(f"{self.url}/api/kernels", json={}, timeout=120).json()
        self.kernel_id = started["id"]
        connection = next((folder / "run").glob(f"kernel-{self.kernel_id}.json"))
        self.client = BlockingKernelClient(connection_file=str(connection))
        self.client.load_connection_file()
        self.client.start_channels(hb=False)  # a busy machine misses beats
        self.client.wait_for_ready(timeout=120)
        self.panel = BlockingKernelClient(connection_file=str(connection))
        self.panel.load_connection_file()
        self.panel.start_channels()
        self.execute("%load_ext oh_jupyter")

    def execute(self, code: str) -> str:
        """Run a cell; all that it shows, as text."""
        shown: dict[str, str] = {}

        def collect(message: dict[str, Any]) -> None:
            content, kind = message["content"], message["msg_type"]
            if kind == "stream":
                shown[kind] = shown.get(kind, "") + content["text"]
            elif kind in ("display_data", "update_display_data", "execute_result"):
                shown["display"] = content["data"].get("text/plain", "")
            elif kind == "error":
                shown[kind] = f"{content['ename']}: {content['evalue']}"

        self.client.execute_interactive(code, output_hook=collect, timeout=200, allow_stdin=False)
        return "\n".join(shown.values())

    def _ask(self, operation: str, **fields: Any) -> dict[str, Any]:
        """A request on the control channel, as the panel sends it."""
        session, channel = self.panel.session, self.panel.control_channel
        message = session.msg("oh_jupyter_request", {"op": operation, **fields})
        session.send(channel.socket, message)
        while True:
            # Not by the client, which would leave a loop behind in each thread.
            _, reply = session.recv(channel.socket, mode=0)
            if reply["parent_header"].get("msg_id") == message["header"]["msg_id"]:
                return dict(reply["content"])

    def decide(self, *answers: bool) -> threading.Thread:
        """Answer questions, one after the other, as a person does in the panel."""

        def look() -> None:
            for approve in answers:
                while not (waiting := self._ask("confirmations")["waiting"]):
                    pass
                self._ask("confirm", id=waiting[0]["id"], approve=approve)

        thread = threading.Thread(target=look, daemon=True)
        thread.start()
        return thread

    def interrupt_when_running(self) -> threading.Thread:
        """Interrupt the cell as soon as an Action runs."""

        def look() -> None:
            while not self._ask("status")["runtime"]["running"]:
                pass
            self.http.post(f"{self.url}/api/kernels/{self.kernel_id}/interrupt", timeout=30)

        thread = threading.Thread(target=look, daemon=True)
        thread.start()
        return thread

    def told(self) -> str:
        """All that the model was given."""
        return json.dumps(self.model.requests)

    def close(self) -> None:
        self.client.stop_channels()
        self.panel.stop_channels()
        self.http.close()
        self._server.terminate()
        self._server.wait(60)
        self._log.join(30)
        self._server.stderr.close()


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
    path = f"{notebook.folder}/results/{agent}.txt"
    notebook.model.steps += [
        ("mcp__oh__run_ipython", {"code": "print(secret_number + 1)"}),
        ("mcp__oh__edit", {"command": "create", "path": path, "file_text": "from the agent\n"}),
        ("mcp__oh__run_ipython", {"code": "from_the_agent = secret_number * 2"}),
        "All is done.",
    ]
    shown = notebook.execute(f'turn = %oh_agent {agent} "use the variable"')
    assert "All is done." in shown, shown
    assert "4712" in notebook.told()
    assert "secret_number" in json.dumps(notebook.model.requests[0])
    assert "9422" in notebook.execute("print(from_the_agent)")
    assert Path(path).read_text() == "from the agent\n"
    assert "3 True" in notebook.execute("print(len(turn.steps), '+from the agent' in turn.diff)")
    notebook.execute("oh.undo_turn(turn)")
    assert not Path(path).exists()


def test_its_own_tools_are_off(notebook: Notebook, agent: str) -> None:
    notebook.model.steps += ["Hello."]
    notebook.execute(f"%oh_agent --new {agent} hello")
    tools = json.dumps(notebook.model.requests[-1]["tools"])
    for own in ('"Bash"', '"Write"', '"Edit"', '"Read"', '"exec_command"', '"shell"'):
        assert f'"name": {own}' not in tools, own
    assert "run_ipython" in tools


def test_one_question_approved_and_one_rejected(notebook: Notebook, agent: str) -> None:
    work = notebook.folder / "results"
    for name in ("approved", "rejected"):
        (work / f"{agent}-{name}").touch(mode=0o600)
    notebook.model.steps += [
        ("mcp__oh__run", {"command": f"chmod 777 {work}/{agent}-approved"}),
        ("mcp__oh__run", {"command": f"chmod 777 {work}/{agent}-rejected"}),
        "Both were asked.",
    ]
    deciding = notebook.decide(True, False)
    assert "Both were asked." in notebook.execute(f"%oh_agent --new {agent} open them")
    deciding.join(30)
    assert (work / f"{agent}-approved").stat().st_mode & 0o777 == 0o777
    assert (work / f"{agent}-rejected").stat().st_mode & 0o777 == 0o600
    assert "rejected by the user" in notebook.told()


def test_an_interrupt_ends_what_it_runs(notebook: Notebook, agent: str) -> None:
    notebook.model.steps += [("mcp__oh__run", {"command": "sleep 1000"}), "never"]
    interrupting = notebook.interrupt_when_running()
    assert "KeyboardInterrupt" in notebook.execute(f"%oh_agent --new {agent} wait")
    interrupting.join(30)
    notebook.model.steps[:] = ["Here I am again."]
    assert "Here I am again." in notebook.execute(f"%oh_agent {agent} go on")
    assert notebook._ask("status")["runtime"]["running"] == []


def test_an_interrupt_of_its_cell_is_told_to_it(notebook: Notebook, agent: str) -> None:
    code = "import time; time.sleep(1000)"
    notebook.model.steps += [("mcp__oh__run_ipython", {"code": code}), "It was interrupted."]
    interrupting = notebook.interrupt_when_running()
    assert "It was interrupted." in notebook.execute(f"%oh_agent --new {agent} wait")
    interrupting.join(30)
    assert "KeyboardInterrupt" in notebook.told()
