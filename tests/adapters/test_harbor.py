"""Harbor's trials on a kernel's machine: its oracle agent, a scripted one, and the environment."""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest

from oh_jupyter.testing import LiveServer

pytest.importorskip("harbor", reason="needs harbor and Python 3.12; make test-all installs it")
if shutil.which("bwrap") is None:
    pytest.skip("bubblewrap is not installed", allow_module_level=True)

from harbor.agents.base import BaseAgent
from harbor.agents.capabilities import AgentCapabilities
from harbor.models.task.config import EnvironmentConfig as TaskEnvironment
from harbor.models.trial.config import AgentConfig, EnvironmentConfig, TaskConfig, TrialConfig
from harbor.models.trial.paths import TrialPaths
from harbor.trial.trial import Trial

from oh_jupyter.adapters import harbor
from oh_jupyter.adapters.harbor import OhEnvironment, with_notebook
from oh_jupyter.errors import TransferError

pytestmark = [
    pytest.mark.filterwarnings("default"),
    pytest.mark.usefixtures("server_in_environment"),
]

TASK = Path(__file__).parents[2] / "examples" / "harbor_task"
HERE = "oh_jupyter.adapters.harbor:OhEnvironment"


class ScriptedAgent(BaseAgent):  # type: ignore[misc]
    """An agent that answers with a number from a script."""

    capabilities = AgentCapabilities(mcp_servers=True)

    def __init__(self, *args: Any, answer: int = 0, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._answer = answer

    @staticmethod
    def name() -> str:
        return "scripted"

    def version(self) -> str:
        return "1"

    async def setup(self, environment: OhEnvironment) -> None:
        assert (await environment.exec("ls")).stdout == ""

    async def run(self, instruction: str, environment: OhEnvironment, context: Any) -> None:
        assert "/app/sum.txt" in instruction
        await environment.exec(f"seq 100 >numbers.txt; echo {self._answer} >sum.txt")


CLIENT = """
import asyncio, sys
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

async def main():
    server = StdioServerParameters(command=sys.argv[1], args=sys.argv[2:])
    async with stdio_client(server) as streams, ClientSession(*streams[:2]) as session:
        await session.initialize()
        for code in ("n = sum(range(101))", "open('/app/numbers.txt', 'w').write(chr(10).join("
                     "map(str, range(101))) + chr(10)); print(n, file=open('/app/sum.txt', 'w'))"):
            await session.call_tool("run_ipython", {"code": code})

asyncio.run(main())
"""


@with_notebook
class NotebookAgent(ScriptedAgent):
    """An agent that calls tools of our MCP server, in the environment, from a script."""

    async def setup(self, environment: OhEnvironment) -> None:
        self._path = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
        environment._persistent_env.update(self._path)

    async def run(self, instruction: str, environment: OhEnvironment, context: Any) -> None:
        (server,) = self.mcp_servers
        call = shlex.join([sys.executable, "-c", CLIENT, server.command, *server.args])
        result = await environment.exec(call)
        assert result.return_code == 0, result.stdout
        left = await environment.exec("pgrep -f [j]upyter-server")
        assert left.stdout == ""


def new(tmp_path: Path, dockerfile: str = "FROM x\nWORKDIR /app/deep\n", **options: Any) -> Any:
    (tmp_path / "environment").mkdir()
    (tmp_path / "environment" / "Dockerfile").write_text(dockerfile)
    paths = TrialPaths(trial_dir=tmp_path / "trial")
    return OhEnvironment(
        environment_dir=tmp_path / "environment",
        environment_name="task",
        session_id=uuid4().hex,
        trial_paths=paths,
        task_env_config=TaskEnvironment(),
        **options,
    )


@pytest.fixture
async def environment(server_in_environment: None, tmp_path: Path) -> AsyncIterator[OhEnvironment]:
    environment = new(tmp_path)
    await environment.start(False)
    yield environment
    await environment.stop(True)
    assert not Path(environment._root).exists()


async def reward(agent: AgentConfig, trials: Path) -> Any:
    config = TrialConfig(
        task=TaskConfig(path=TASK),
        agent=agent,
        environment=EnvironmentConfig(import_path=HERE, type=None),
        trials_dir=trials,
    )
    result = await (await Trial.create(config)).run()
    assert result.exception_info is None, result.exception_info
    return result.verifier_result.rewards["reward"]


async def test_the_oracle_solves_the_example(tmp_path: Path) -> None:
    assert await reward(AgentConfig(name="oracle"), tmp_path) == 1


@pytest.mark.parametrize(("answer", "expected"), [(5050, 1), (5051, 0)])
async def test_a_scripted_agent_is_judged(tmp_path: Path, answer: int, expected: int) -> None:
    path = f"{__name__}:ScriptedAgent"
    agent = AgentConfig(name=None, import_path=path, kwargs={"answer": answer})
    assert await reward(agent, tmp_path) == expected


async def test_an_agent_gets_our_mcp_server(tmp_path: Path) -> None:
    path = f"{__name__}:NotebookAgent"
    assert await reward(AgentConfig(name=None, import_path=path), tmp_path) == 1


def test_agents_of_harbor_get_it_by_their_names(tmp_path: Path) -> None:
    agent = harbor.claude_code(logs_dir=tmp_path, model_name="anthropic/claude-opus-4-1")
    assert [each.name for each in agent.mcp_servers] == ["notebook"]
    assert agent.name() == "claude-code"
    with pytest.raises(AttributeError, match="no agent named 'no-such-agent'"):
        _ = harbor.no_such_agent


async def test_trials_do_not_share_their_directories(
    environment: OhEnvironment, tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    other = new(tmp_path / "other")
    await other.start(False)
    try:
        await asyncio.gather(
            environment.exec("echo one >/app/a; mkdir /tests/t"), other.exec("echo two >/app/a")
        )
        assert (await environment.exec("cat /app/a; ls /tests")).stdout == "one\nt\n"
        assert (await other.exec("cat /app/a; ls /tests")).stdout == "two\n"
        assert not Path("/app/a").exists()
    finally:
        await other.stop(True)


async def test_commands_report_results_as_harbor_expects(environment: OhEnvironment) -> None:
    result = await environment.exec("pwd; id -un; echo $A; exit 3", env={"A": "b c"})
    assert (result.stdout, result.return_code) == ("/app/deep\nroot\nb c\n", 3)
    assert (await environment.exec("pwd", cwd="/logs")).stdout == "/logs\n"
    with pytest.raises(RuntimeError, match="timed out after 1 seconds"):
        await environment.exec("sleep 1031", timeout_sec=1)
    with pytest.raises(RuntimeError, match="not as 'agent'"):
        await environment.exec("true", user="agent")
    command = asyncio.create_task(environment.exec("exec sleep 1031"))
    while not (await environment.exec("pgrep -fx 'sleep 1031'")).stdout:
        assert not command.done()
    command.cancel()
    with pytest.raises(asyncio.CancelledError):
        await command
    assert (await environment.exec("pgrep -fx 'sleep 1031'")).stdout == ""


async def test_the_log_names_framework_and_command(environment: OhEnvironment, logged: Any) -> None:
    await environment.exec("(echo 'hi')")
    await environment.empty_dirs(["/logs"])
    assert logged() == [("Harbor", "(echo 'hi')"), ("Harbor", "make directories /logs")]


async def test_files_there_and_back(environment: OhEnvironment, tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "deep").mkdir(parents=True)
    (source / "deep" / "run.sh").write_text("echo ran")
    (source / "deep" / "run.sh").chmod(0o755)
    (source / "data").write_bytes(bytes(range(256)))
    await environment.upload_dir(source, "/tests/new")
    await environment.upload_file(source / "deep" / "run.sh", "/app/run.sh")
    ran = await environment.exec("/app/run.sh; /tests/new/deep/run.sh")
    assert ran.stdout == "ran\nran\n"
    await environment.download_dir("/tests/new", tmp_path / "back")
    assert (tmp_path / "back" / "data").read_bytes() == bytes(range(256))
    await environment.download_file("/tests/new/data", tmp_path / "a" / "data")
    assert (tmp_path / "a" / "data").read_bytes() == bytes(range(256))
    with pytest.raises(TransferError):
        await environment.download_file("/tests/none", tmp_path / "none")
    with pytest.raises(RuntimeError, match="none"):
        await environment.download_dir("/tests/none", tmp_path / "none")


def test_a_task_that_builds_an_image_is_refused(tmp_path: Path) -> None:
    dockerfile = "FROM x\nRUN apt-get install gcc\n"
    with pytest.raises(ValueError, match="apt-get install gcc"):
        new(tmp_path, dockerfile)
    shutil.rmtree(tmp_path / "environment")
    with pytest.raises(ValueError, match="works in /usr/src"):
        new(tmp_path, "FROM x\nWORKDIR /usr/src\n")
    shutil.rmtree(tmp_path / "environment")
    assert new(tmp_path, dockerfile, ignore_build_steps=True)._workdir == "/app"


async def test_a_trial_needs_no_approval_for_its_own_folders(
    server: LiveServer, tmp_path: Path
) -> None:
    async with httpx.AsyncClient(headers=server.headers, timeout=60) as http:
        kernel = (await http.post(f"{server.url}/api/kernels")).json()["id"]
        environment = new(tmp_path, oh_kernel_id=kernel)
        await environment._client.run_cell(
            "%load_ext oh_jupyter\n%config OhJupyter.confirmation_timeout = 0.5\n"
            "%config OhJupyter.confirmation = 'risky'"
        )
        await environment.start(False)
        await environment.exec("mkdir -p /logs/a/b /tests/t; touch /logs/a/f")
        await environment.ensure_dirs(["/logs/c"])
        await environment.empty_dirs(["/logs/a"])
        await environment.reset_dirs(remove_dirs=["/tests"], create_dirs=["/tests/new"])
        assert (await environment.exec("find /logs/* /tests | sort")).stdout.split() == [
            *("/logs/a", "/logs/c", "/tests", "/tests/new"),
        ]
        await environment.stop(True)
        assert not Path(environment._root).exists()
        await http.delete(f"{server.url}/api/kernels/{kernel}")


async def test_a_rejection_is_an_error(server: LiveServer, tmp_path: Path) -> None:
    """The kernel has a person's setting; nobody is there to approve."""
    async with httpx.AsyncClient(headers=server.headers, timeout=60) as http:
        kernel = (await http.post(f"{server.url}/api/kernels")).json()["id"]
        environment = new(tmp_path, oh_kernel_id=kernel)
        await environment._client.run_cell(
            "%load_ext oh_jupyter\n%config OhJupyter.confirmation_timeout = 0.5\n"
            "%config OhJupyter.confirmation = 'always'"
        )
        with pytest.raises(RuntimeError, match="Nobody looked at it"):
            await environment.start(False)
        await environment.stop(True)
        await http.delete(f"{server.url}/api/kernels/{kernel}")
