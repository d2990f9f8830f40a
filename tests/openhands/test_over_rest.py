"""Agents of the SDK outside of the kernel: over REST, and as a guest by ``%oh_agent openhands``."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
from jupyter_client.blocking.client import BlockingKernelClient
from scripted_chat import ScriptedChat

from oh_jupyter.client import RuntimeClient
from oh_jupyter.testing import run_server
from oh_jupyter.testing.kernel import connect_to_kernel, text_at_end

pytestmark = [pytest.mark.timeout(600), pytest.mark.filterwarnings("default")]


class Notebook:
    """A kernel that a Jupyter server has, and the agent's model."""

    def __init__(self, server: Any, chat: ScriptedChat) -> None:
        self.server, self.chat = server, chat
        answer = requests.post(
            f"{server.url}/api/kernels", json={"path": "/"}, headers=server.headers, timeout=60
        )
        self.kernel_id = answer.json()["id"]
        self.url = f"{server.url}/oh_jupyter/kernels/{self.kernel_id}"
        file = server.directory / "run" / f"kernel-{self.kernel_id}.json"
        self.client = connect_to_kernel(file)
        self.execute("%load_ext oh_jupyter")
        self.folder = Path(self.execute("print(oh.cwd, end='')"))

    def execute(self, code: str) -> str:
        """Run a cell; all that it shows at its end."""
        return text_at_end(self.client, code)

    def when_it_waits(self, approve: bool) -> threading.Thread:
        """Decide on the first command that waits, as a person does."""

        def decide(runtime: RuntimeClient) -> None:
            for event in runtime.events():
                if getattr(event, "kind", "") == "run" and event.cause is None:
                    self._control("confirm", id=event.id, approve=approve)
                    return

        return self._beside(decide)

    def interrupt_when_running(self, command: str) -> threading.Thread:
        """Interrupt the cell as soon as a command runs."""

        def interrupt(runtime: RuntimeClient) -> None:
            for event in runtime.events():
                if getattr(event, "command", "") == command:
                    address = f"{self.server.url}/api/kernels/{self.kernel_id}/interrupt"
                    requests.post(address, headers=self.server.headers, timeout=30)
                    return

        return self._beside(interrupt)

    def _beside(self, work: Any) -> threading.Thread:
        def run() -> None:
            with RuntimeClient(self.url, self.server.token) as runtime:
                start = len(runtime.history())
                ready.set()
                work(_From(runtime, start))

        ready = threading.Event()
        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        assert ready.wait(60)
        return thread

    def _control(self, operation: str, **fields: Any) -> None:
        client = BlockingKernelClient(connection_file=self.client.connection_file)
        client.load_connection_file()
        client.start_channels(shell=False, iopub=False, stdin=False, hb=False)
        message = client.session.msg("oh_jupyter_request", {"op": operation, **fields})
        client.session.send(client.control_channel.socket, message)
        client.session.recv(client.control_channel.socket, mode=0)
        client.stop_channels()

    def close(self) -> None:
        self.client.stop_channels()


class _From:
    """The events of a runtime from an id on."""

    def __init__(self, runtime: RuntimeClient, start: int) -> None:
        self._runtime, self._start = runtime, start

    def events(self) -> Iterator[Any]:
        return self._runtime.events(self._start)


@pytest.fixture(scope="module")
def notebook(needs_sdk: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Notebook]:
    chat = ScriptedChat()
    environment = {
        "LLM_MODEL": "openai/scripted",
        "LLM_BASE_URL": chat.url,
        "LLM_API_KEY": "dummy",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "OPENHANDS_SUPPRESS_BANNER": "1",
        "OH_JUPYTER_CONFIRMATION": "risky",
        "OH_JUPYTER_AGENT_START_TIMEOUT": "120",
    }
    with run_server(tmp_path_factory.mktemp("server"), environment=environment) as server:
        made = Notebook(server, chat)
        yield made
        made.close()
    chat.close()


def run_outside(notebook: Notebook, prompt: str) -> str:
    """Run the agent in a process of its own; what it printed."""
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("outside_agent.py")), prompt],
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
        cwd=notebook.folder,
        env={
            **os.environ,
            "OH_URL": notebook.url,
            "OH_TOKEN": notebook.server.token,
            "CHAT_URL": notebook.chat.url,
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
            "OPENHANDS_SUPPRESS_BANNER": "1",
        },
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_the_story_from_outside(notebook: Notebook) -> None:
    notebook.execute("secret_number = 4711")
    file, page = notebook.folder / "outside.txt", notebook.folder / "page.html"
    page.write_text("<h1>Title of the page</h1>")
    notebook.chat.requests.clear()
    notebook.chat.steps[:] = [
        ("ipython", {"code": "print(secret_number + 1)\nfrom_outside = secret_number * 2"}),
        ("file_editor", {"command": "create", "path": str(file), "file_text": "from the agent\n"}),
        ("terminal", {"command": "cat outside.txt"}),
        ("browser_navigate", {"url": page.as_uri()}),
        ("browser_get_content", {}),
        ("finish", {"message": "All is done."}),
    ]
    assert "finished" in run_outside(notebook, "use the variable")
    assert "4712" in notebook.chat.told()
    assert "Title of the page" in notebook.chat.told()
    assert "9422" in notebook.execute("print(from_outside)")
    assert file.read_text() == "from the agent\n"
    notebook.execute(f"oh.edit('undo_edit', {str(file)!r})")
    assert not file.exists()


def test_the_story_as_a_guest(notebook: Notebook) -> None:
    notebook.execute("given = 20")
    file = notebook.folder / "guest.txt"
    notebook.chat.requests.clear()
    notebook.chat.steps[:] = [
        ("ipython", {"code": "print(given + 1)\nby_the_guest = given * 2"}),
        ("file_editor", {"command": "create", "path": str(file), "file_text": "of the guest\n"}),
        ("finish", {"message": "The guest is done."}),
    ]
    shown = notebook.execute('turn = %oh_agent openhands "use what is given"')
    assert "The guest is done." in shown, shown
    assert "21" in notebook.chat.told()
    assert "40" in notebook.execute("print(by_the_guest)")
    assert "2 True" in notebook.execute("print(len(turn.steps), '+of the guest' in turn.diff)")
    notebook.execute("oh.rewind(turn)")
    assert not file.exists()


@pytest.mark.parametrize("approve", [True, False])
def test_a_question_is_asked_once(notebook: Notebook, approve: bool) -> None:
    file = notebook.folder / f"{approve}.txt"
    file.touch(mode=0o600)
    notebook.chat.requests.clear()
    notebook.chat.steps[:] = [("terminal", {"command": f"chmod 777 {file}"}), "It was asked."]
    deciding = notebook.when_it_waits(approve)
    assert "It was asked." in notebook.execute("%oh_agent openhands open it")
    deciding.join(60)
    assert file.stat().st_mode & 0o777 == (0o777 if approve else 0o600)
    assert ("rejected by the user" in notebook.chat.told()) is not approve


def test_an_interrupt_ends_the_running_tool(notebook: Notebook) -> None:
    notebook.chat.steps[:] = [("terminal", {"command": "sleep 1000"}), "never"]
    interrupting = notebook.interrupt_when_running("sleep 1000")
    assert "KeyboardInterrupt" in notebook.execute("%oh_agent openhands wait")
    interrupting.join(60)
    notebook.chat.steps[:] = ["Here I am again."]
    assert "Here I am again." in notebook.execute("%oh_agent openhands continue")
    assert notebook.execute("print(oh.status()['running'])") == "[]\n"


def test_a_missing_model_is_reported(notebook: Notebook) -> None:
    notebook.execute("import os; model = os.environ.pop('LLM_MODEL')")
    shown = notebook.execute("%oh_agent --new openhands hello")
    notebook.execute("os.environ['LLM_MODEL'] = model")
    assert "No model is named: set LLM_MODEL" in shown
    assert json.dumps(notebook.chat.steps) == "[]"


def test_the_sdks_own_agent_server_has_the_tools(notebook: Notebook) -> None:
    if importlib.util.find_spec("openhands.agent_server") is None:
        pytest.skip("openhands-agent-server is not installed")
    notebook.execute("for_the_server = 30")
    notebook.chat.requests.clear()
    notebook.chat.steps[:] = [
        ("ipython", {"code": "print(for_the_server + 1)\nby_the_server = for_the_server * 2"}),
        ("finish", {"message": "The server is done."}),
    ]
    done = subprocess.run(
        [
            sys.executable,
            str(Path(__file__).parents[2] / "examples" / "openhands_agent_server.py"),
            "use it",
        ],
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
        cwd=notebook.folder,
        env={
            **os.environ,
            "HOME": str(notebook.server.directory),
            "OH_URL": notebook.url,
            "OH_TOKEN": notebook.server.token,
            "LLM_MODEL": "openai/scripted",
            "LLM_BASE_URL": notebook.chat.url,
            "LLM_API_KEY": "dummy",
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        },
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    assert "31" in notebook.chat.told()
    assert notebook.execute("print(by_the_server)") == "60\n"
