"""Kernels in a sandbox: what their cells can do, and their life in Jupyter."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import nbformat
import pytest
from ipykernel.kernelapp import IPKernelApp
from jupyter_client.manager import AsyncKernelManager, KernelManager
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook

from oh_jupyter.boxed_kernel import KERNEL_NAME, install_kernelspec
from oh_jupyter.cli import main
from oh_jupyter.errors import ConfigError, SandboxError
from oh_jupyter.sandbox import Box
from oh_jupyter.testing.kernel import LiveKernel
from tests.kernel import test_breakpoint
from tests.sandbox.proxied import website
from tests.sandbox.test_box import needs_engine, needs_process_limit

pytestmark = needs_engine

SCRIPTED_AGENT = Path(__file__).parents[1] / "examples" / "scripted_agent.py"
STATUS_LISTED = "sandboxed: the whole kernel, listed hosts"
COMMAND = {"command": "echo hi"}
STATUS = "%load_ext oh_jupyter\nprint(oh.run('echo hi').handling, oh.status()['sandbox'])"


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home with a secret, a kernelspec, and a notebook's directory."""
    # Not below /tmp, which a box replaces as a whole.
    home = Path(tempfile.mkdtemp(prefix=".oh_test_", dir=Path("~").expanduser()))
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh" / "id_rsa").write_text("secret")
    (home / "work" / ".venv" / "lib").mkdir(parents=True)
    (home / "work" / ".venv" / "pyvenv.cfg").touch()
    profile = home / ".ipython" / "profile_default"
    profile.mkdir(parents=True)
    (profile / "ipython_config.py").write_text("get_config().InteractiveShell.banner2 = 'mine'")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("MY_TOKEN", "secret")
    monkeypatch.setenv("JUPYTER_PREFER_ENV_PATH", "0")
    for name in ("IPYTHONDIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    installed = install_kernelspec()
    assert installed.startswith(str(home))
    yield home
    shutil.rmtree(home)


class Notebook:
    """A kernel and its client, as a frontend uses them."""

    def __init__(self, manager: AsyncKernelManager) -> None:
        self.manager = manager
        self.client: Any = manager.client()
        self.client.start_channels()
        self.printed = asyncio.Event()

    async def run(self, code: str) -> str:
        """Run a cell; return its printed text, or the name of its exception."""
        texts: list[str] = []

        def collect(message: dict[str, Any]) -> None:
            texts.append(message["content"].get("text", ""))
            if message["msg_type"] == "stream":
                self.printed.set()

        reply = await self.client.execute_interactive(code, timeout=60, output_hook=collect)
        content = reply["content"]
        return str(content["ename"]) if content["status"] == "error" else "".join(texts).strip()


def run_as_agent(kernel: LiveKernel, code: str) -> str:
    """The output of an agent's cell."""
    body = {"action": {"action": "run_ipython", "args": {"code": code}}}
    fields, observation = kernel.ask("execute_action", body)
    assert fields["status"] == "ok"
    return str(observation["content"])


@asynccontextmanager
async def opened(home: Path) -> AsyncIterator[Notebook]:
    manager = AsyncKernelManager(kernel_name=KERNEL_NAME)
    await manager.start_kernel(cwd=str(home / "work"))
    notebook = Notebook(manager)
    try:
        await notebook.client.wait_for_ready(timeout=60)
        yield notebook
    finally:
        notebook.client.stop_channels()
        await manager.shutdown_kernel(now=True)


@pytest.mark.thorough
async def test_guests_reach_their_tools(home: Path) -> None:
    """The agent is in the box, too, where it reaches neither a server nor its token."""
    program = Path(__file__).parents[1] / "examples" / "scripted_agent.py"
    copied = shutil.copy(program, home / "work")
    agents = {"scripted": shlex.join([sys.executable, str(copied)])}
    async with opened(home) as notebook:
        await notebook.run(f"get_ipython().config.OhJupyter.agents = {agents!r}\n{STATUS}")
        call = json.dumps({"code": "number = 6 * 7"})
        await notebook.run(f"%%oh_agent scripted\ntool run_ipython {call}")
        assert await notebook.run("print(number)") == "42"


async def test_cells_stay_in_the_box(home: Path) -> None:
    async with opened(home) as notebook:
        run = notebook.run
        assert await run("open('made.txt', 'w').write('x'); print('ok')") == "ok"
        assert (home / "work" / "made.txt").read_text() == "x"
        for attempt in (
            f"open({str(home / 'outside.txt')!r}, 'w')",
            "open('.git/hooks/pre-commit', 'w')",
            "open('.mcp.json', 'w')",
            "open('.venv/lib/site.py', 'w')",
        ):
            assert await run(attempt) in ("OSError", "PermissionError", "FileNotFoundError")
        assert await run(f"open({str(home / '.ssh' / 'id_rsa')!r})") == "FileNotFoundError"
        assert await run("import os; print('MY_TOKEN' in os.environ)") == "False"
        connect = "import socket; socket.create_connection(('1.1.1.1', 80), 5)"
        assert await run(connect) == "OSError"
        runtime = os.path.dirname(notebook.manager.connection_file)
        files = f"print(*(name for name in os.listdir({runtime!r}) if name.endswith('.json')))"
        assert await run(files) == ""  # not even its own file, of which it has a copy
        assert await run("print(get_ipython().banner2)") == "mine"
    assert not (home / "outside.txt").exists()


@pytest.mark.thorough
async def test_a_path_may_vanish_while_it_starts(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Boxes show the programs of a home, which a person may remove at any time."""
    path = home / ".nvm"
    path.mkdir()
    enclose = Box.enclose

    def enclose_slowly(self: Box, *arguments: Any, **options: Any) -> Any:
        enclosed = enclose(self, *arguments, **options)
        assert (str(path) in enclosed[0]) is path.exists()
        shutil.rmtree(path, ignore_errors=True)
        return enclosed

    monkeypatch.setattr(Box, "enclose", enclose_slowly)
    async with opened(home) as notebook:
        assert await notebook.run("print(6 * 7)") == "42"
    assert not path.exists()


@pytest.mark.thorough
async def test_a_box_that_cannot_be_set_up_is_an_error(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ["false"], []
    monkeypatch.setattr(Box, "enclose", lambda *arguments, **options: command)
    with pytest.raises(SandboxError, match="sandbox could not be set up"):
        async with opened(home):
            pass


@pytest.mark.thorough
@needs_process_limit
async def test_the_number_of_its_processes_is_limited(home: Path, monkeypatch) -> None:
    monkeypatch.setenv("OH_JUPYTER_SANDBOX_MAX_PROCESSES", "60")
    async with opened(home) as notebook:
        output = await notebook.run(
            "import subprocess\nfor _ in range(80): subprocess.Popen(['sleep', '60'])"
        )
    assert output == "BlockingIOError"  # EAGAIN


@pytest.mark.thorough
async def test_the_runtime_works_in_it(home: Path) -> None:
    path = home / "work" / "a.py"
    async with opened(home) as notebook:
        output = await notebook.run(STATUS)
        assert output == "{'sandboxed': True} sandboxed: the whole kernel, no network"
        edit = f"oh.edit('create', path={str(path)!r}, file_text='x = 1\\n'); print(oh.cwd)"
        assert await notebook.run(edit) == str(home / "work")
    assert path.read_text() == "x = 1\n"


@pytest.mark.thorough
async def test_it_lives_like_any_kernel(home: Path) -> None:
    async with opened(home) as notebook:
        run, manager = notebook.run, notebook.manager
        loop = asyncio.ensure_future(run("print('started', flush=True)\nwhile True: pass"))
        await notebook.printed.wait()
        await manager.interrupt_kernel()
        assert await loop == "KeyboardInterrupt"
        await run("x = 1")
        await manager.restart_kernel()
        await notebook.client.wait_for_ready(timeout=60)
        assert await run("x") == "NameError"
        sockets = Path(manager.ip).parent
        assert sockets.exists()
        await manager.shutdown_kernel()
        assert not await manager.is_alive()
        assert not sockets.exists()


@pytest.mark.thorough
def test_a_notebook_runs_in_it(home: Path) -> None:
    book = new_notebook(cells=[new_code_cell("import os; print(os.getppid())")])
    resources = {"metadata": {"path": str(home / "work")}}
    NotebookClient(book, kernel_name=KERNEL_NAME, resources=resources, timeout=60).execute()
    nbformat.validate(book)
    assert book.cells[0].outputs[0].text == "1\n"


@pytest.mark.thorough
def test_the_debugger_works_in_it(home: Path) -> None:
    kernel = LiveKernel(home / "work", kernel_name=KERNEL_NAME)
    try:
        test_breakpoint.test_actions_are_answered_and_recorded_at_a_breakpoint(kernel)
    finally:
        kernel.close()


@pytest.mark.thorough
@pytest.mark.skipif(
    "curve_secretkey" not in IPKernelApp.class_traits()
    or "transport_encryption" not in KernelManager.class_traits(),
    reason="ipykernel or jupyter_client without CurveZMQ",
)
def test_its_connection_is_encrypted(home: Path) -> None:
    kernel = LiveKernel(home / "work", kernel_name=KERNEL_NAME, encrypted=True)
    try:
        original = Path(kernel.manager.connection_file)
        keys = original.read_text()
        assert json.loads(keys)["curve_publickey"]
        # The runtime connects to the kernel's own sockets for an agent's cell.
        assert "42" in run_as_agent(kernel, "print(6 * 7)")
        kernel.manager.restart_kernel(now=True)
        kernel.client.wait_for_ready(timeout=60)
        assert "43" in run_as_agent(kernel, "print(6 * 7 + 1)")
        assert original.read_text() == keys
    finally:
        kernel.close()


@pytest.mark.thorough
def test_a_policy_limits_its_network(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_kernelspec(network="host")
    monkeypatch.setenv("OH_JUPYTER_POLICY", '{"network": "off", "shell": "off"}')
    kernel = LiveKernel(home / "work", kernel_name=KERNEL_NAME)
    try:
        connect = "import socket; socket.create_connection(('1.1.1.1', 80), 5)"
        assert "unreachable" in run_as_agent(kernel, connect)
        _, refused = kernel.ask("execute_action", {"action": {"action": "run", "args": COMMAND}})
        assert "switched off shell" in refused["content"]
    finally:
        kernel.close()


@pytest.mark.thorough
async def test_listed_hosts_are_its_only_network(home: Path, tmp_path: Path) -> None:
    with website(tmp_path, "127.0.0.2") as (port, site):
        address = f"127.0.0.2:{port}"
        install_kernelspec(network="listed", hosts=[address])
        async with opened(home) as notebook:
            run = notebook.run
            assert STATUS_LISTED in await run(STATUS)
            get = "import urllib.request; print(urllib.request.urlopen({!r}).read())"
            assert await run(get.format(f"http://{address}/hello")) == "b'hello\\n'"
            assert await run(get.format("http://127.0.0.3:80/")) == "HTTPError"
            assert await run(f"print(oh.run('curl -sS http://{address}/hello').content)") == "hello"
            refused = await run("print(oh.run('curl -s http://example.org/').content)")
            assert "example.org:80 is refused: it is not listed" in refused
            connect = f"import socket; socket.create_connection(('127.0.0.2', {port}), 5)"
            assert await run(connect) == "ConnectionRefusedError"
            await notebook.manager.restart_kernel()
            await notebook.client.wait_for_ready(timeout=60)
            assert await run(get.format(f"http://{address}/hello")) == "b'hello\\n'"
    assert len(site.requests) == 3


@pytest.mark.thorough
@pytest.mark.browser
def test_its_browser_uses_the_proxy(home: Path) -> None:
    install_kernelspec(network="listed", hosts=["pypi"])
    source = "%load_ext oh_jupyter\noh.browse('http://example.org/').content"
    book = new_notebook(cells=[new_code_cell(source)])
    resources = {"metadata": {"path": str(home / "work")}}
    # Between its requests, nbclient's own loop stands still.
    NotebookClient(book, kernel_name=KERNEL_NAME, resources=resources, timeout=120).execute()
    assert "it is not listed" in book.cells[0].outputs[-1].data["text/plain"]


@pytest.mark.thorough
def test_a_guest_uses_its_tools_in_it(home: Path) -> None:
    pytest.importorskip("acp")
    shutil.copy(SCRIPTED_AGENT, home / "work" / "agent.py")
    sources = [
        "import sys\nget_ipython().config.OhJupyter.agents = {'scripted': f'{sys.executable} "
        "agent.py'}\n%load_ext oh_jupyter",
        '%%oh_agent scripted\ntool run_ipython {"code": "total = 40 + 2"}\n'
        'tool run {"command": "cat /proc/1/comm"}\nrun cat /proc/1/comm',
        "print(total, [step.output.strip() for step in oh.agents.turns[-1].steps][1:])",
    ]
    book = new_notebook(cells=[new_code_cell(source) for source in sources])
    resources = {"metadata": {"path": str(home / "work")}}
    NotebookClient(book, kernel_name=KERNEL_NAME, resources=resources, timeout=120).execute()
    text = book.cells[2].outputs[0].text
    assert text.startswith("42 ")
    assert text.count("bwrap") == 2


@pytest.mark.thorough
def test_invalid_hosts_are_refused(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ConfigError, match="no host, address or preset"):
        install_kernelspec(network="listed", hosts=["no such host"])
    assert main(["sandbox", "install", "--network", "none", "--host", "pypi"]) == 2
    assert "--host has no effect with --network none" in capsys.readouterr().out


@pytest.mark.thorough
def test_a_hidden_kernelspec_is_reported(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "share" / "jupyter"
    older = install_kernelspec(prefix=str(tmp_path))
    monkeypatch.setenv("JUPYTER_PATH", str(data))
    main(["sandbox", "install"])
    assert f"Jupyter uses the older kernelspec in {older}" in capsys.readouterr().out


@pytest.mark.thorough
async def test_nothing_starts_without_a_sandbox(home: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr("oh_jupyter.sandbox.availability.WORKING_ENGINES", {})
    monkeypatch.setenv("PATH", str(home))
    with pytest.raises(Exception, match="The kernel was not started: bubblewrap is not"):
        await AsyncKernelManager(kernel_name=KERNEL_NAME).start_kernel(cwd=str(home / "work"))
    assert [name for name in os.listdir(tmp_path) if name.startswith("oh_")] == []
