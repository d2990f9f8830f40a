"""Inspect AI on a kernel: its own check of sandboxes, and what is ours."""

from __future__ import annotations

import asyncio
import os
import runpy
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import httpx
import pytest

from oh_jupyter.client import AsyncRuntimeClient, RuntimeClient
from oh_jupyter.testing import LiveServer

pytest.importorskip("inspect_ai", reason="needs inspect-ai; make test-all installs it")

from inspect_ai._util.error import PrerequisiteError
from inspect_ai.util import (
    ExecRemoteStreamingOptions,
    OutputLimitExceededError,
    SandboxUnavailableError,
    SandboxUserUnsupportedError,
)
from inspect_ai.util._sandbox.events import SandboxEnvironmentProxy
from inspect_ai.util._sandbox.limits import override_max_exec_output_size
from inspect_ai.util._sandbox.registry import registry_find_sandboxenv
from inspect_ai.util._sandbox.self_check import *  # noqa: F403

from oh_jupyter.adapters.connection import connect
from oh_jupyter.adapters.inspect_ai import OhSandboxConfig, OhSandboxEnvironment

pytestmark = [
    pytest.mark.filterwarnings("default"),
    pytest.mark.usefixtures("server_in_environment"),
]


def may_write_everything() -> bool:
    with tempfile.NamedTemporaryFile() as file:
        os.chmod(file.name, 0o400)
        return os.access(file.name, os.W_OK)


OTHER_USER = "commands run as the kernel's user"
ROOT = "root may read and write every file"
CONTRADICTS = {"test_exec_as_user": OTHER_USER}
if may_write_everything():
    CONTRADICTS |= {
        "test_read_file_not_allowed": ROOT,
        "test_write_text_file_without_permissions": ROOT,
        "test_write_binary_file_without_permissions": ROOT,
    }
"""Checks of Inspect that its own local sandbox does not pass either."""


@pytest.fixture
async def sandbox_env(
    server_in_environment: None, request: Any
) -> AsyncIterator[OhSandboxEnvironment]:
    if reason := CONTRADICTS.get(request.node.originalname):
        request.applymarker(pytest.mark.xfail(reason=reason, strict=True))
    environments = await OhSandboxEnvironment.sample_init("task", None, {})
    yield environments["default"].as_type(OhSandboxEnvironment)
    await OhSandboxEnvironment.sample_cleanup("task", None, environments, False)


Sandbox = OhSandboxEnvironment


async def test_only_the_end_of_a_large_output_is_returned_in_the_error(
    sandbox_env: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    seq = await sandbox_env.exec(["seq", "200000"])  # 1.3 MB, fetched as a file
    assert seq.stdout.startswith("1\n2\n")
    assert seq.stdout.endswith("\n200000\n")
    with override_max_exec_output_size(100_000), pytest.raises(OutputLimitExceededError) as caught:
        await sandbox_env.exec(["sh", "-c", "seq 200000; echo end >&2"])
    output = str(caught.value.truncated_output)
    assert "limit of 100000 bytes was exceeded" in str(caught.value)
    assert output.endswith("\n200000\nend\n")
    assert len(output) == 100_000 + len("end\n")
    left = await sandbox_env.exec(["sh", "-c", "ls .. | wc -w"])
    assert left.stdout.strip() == "5"  # ready, tools, work, and the outputs of this command


async def test_programs_get_the_requested_environment(sandbox_env: Sandbox) -> None:
    values = {"A": "it's $HOME\n`x`", "PATH": "/nowhere"}
    shown = await sandbox_env.exec(["/usr/bin/env", "-0"], env=values)
    assert {f"{name}={value}" for name, value in values.items()} <= set(shown.stdout.split("\0"))
    assert (await sandbox_env.exec(["echo"], input="unread" * 9999)).stdout == "\n"
    assert (await sandbox_env.exec(["cat"])).stdout == ""
    missing = await sandbox_env.exec(["no-such-program"])
    assert (missing.success, missing.returncode) == (False, 127)
    assert "not found" in missing.stderr
    nowhere = await sandbox_env.exec(["ls"], cwd="no/such/directory")
    assert not nowhere.success
    assert "No such file or directory" in nowhere.stderr
    assert (await sandbox_env.exec(["cd", "/"])).returncode == 127  # programs, not shell words
    assert (await sandbox_env.exec(["id", "-u"], user=str(os.geteuid()))).success


async def test_log_and_turns_name_framework_and_command(
    sandbox_env: Sandbox, logged: Any, client: RuntimeClient
) -> None:
    await sandbox_env.exec(["python3", "-c", "print(1)"])
    assert logged() == [("Inspect AI", "python3 -c 'print(1)'")]
    shown = await asyncio.to_thread(client.run_ipython, "%oh_log")
    lines = [line for line in shown.content.splitlines() if "print(1)" in line]
    assert all("python3 -c 'print(1)'" in line for line in lines)
    assert lines
    assert " {" not in shown.content
    turns = await asyncio.to_thread(client.run_ipython, "%oh_rewind")
    assert "Inspect AI" in turns.content, turns.content
    assert " {" not in turns.content


async def test_bad_input_is_refused(sandbox_env: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    for cmd in ([], [""], ["echo", "a\0b"]):
        with pytest.raises(ValueError, match="cmd"):
            await sandbox_env.exec(cmd)
    with pytest.raises(ValueError, match="environment variable"):
        await sandbox_env.exec(["true"], env={"A-B": "c"})
    with pytest.raises(SandboxUserUnsupportedError, match="nobody-here"):
        await sandbox_env.exec(["true"], user="nobody-here")
    await sandbox_env.write_file("latin", b"\xe9")
    with pytest.raises(UnicodeDecodeError):
        await sandbox_env.read_file("latin")
    with pytest.raises(IsADirectoryError):
        await sandbox_env.write_file("/etc", "text")
    for config in ("relative", OhSandboxConfig(url="http://127.0.0.1:1")):
        with pytest.raises(PrerequisiteError):
            await Sandbox.task_init("task", config)
    monkeypatch.delenv("OH_URL")
    with pytest.raises(PrerequisiteError, match="oh-jupyter env"):
        await Sandbox.task_init("task", None)


async def test_a_lost_server_makes_the_sandbox_unavailable(sandbox_env: Sandbox) -> None:
    lost = Sandbox(connect("Inspect AI", "http://127.0.0.1:1"), "/tmp", "/tmp", frozenset())
    with pytest.raises(SandboxUnavailableError, match="cannot be reached"):
        await lost.exec(["true"])


async def test_a_rejection_is_a_missing_permission(server: LiveServer) -> None:
    """The kernel has a person's setting; nobody is there to approve."""
    async with httpx.AsyncClient(headers=server.headers, timeout=60) as http:
        kernel = (await http.post(f"{server.url}/api/kernels")).json()["id"]
        async with AsyncRuntimeClient(server.url, server.token, kernel) as client:
            await client.run_cell("%load_ext oh_jupyter")
            environments = await Sandbox.sample_init("task", OhSandboxConfig(kernel_id=kernel), {})
            sandbox = environments["default"]
            await client.run_cell(
                "%config OhJupyter.confirmation_timeout = 0.5\n"
                "%config OhJupyter.confirmation = 'always'"
            )
            with pytest.raises(PermissionError, match="Nobody looked at it"):
                await sandbox.exec(["touch", "file"])
            with pytest.raises(PermissionError):
                await Sandbox.sample_cleanup("task", None, environments, False)
            shutil.rmtree(sandbox.as_type(Sandbox)._scratch)
        await http.delete(f"{server.url}/api/kernels/{kernel}")


async def test_a_sample_needs_no_approval_for_its_own_folder(server: LiveServer) -> None:
    async with httpx.AsyncClient(headers=server.headers, timeout=60) as http:
        kernel = (await http.post(f"{server.url}/api/kernels")).json()["id"]
        async with AsyncRuntimeClient(server.url, server.token, kernel) as client:
            await client.run_cell(
                "%load_ext oh_jupyter\n"
                "%config OhJupyter.confirmation_timeout = 0.5\n"
                "%config OhJupyter.confirmation = 'risky'"
            )
            environments = await Sandbox.sample_init("task", OhSandboxConfig(kernel_id=kernel), {})
            sandbox = environments["default"]
            assert (await sandbox.exec(["touch", "file"])).success
            await Sandbox.sample_cleanup("task", None, environments, False)
            assert not Path(sandbox.as_type(Sandbox)._scratch).exists()
        await http.delete(f"{server.url}/api/kernels/{kernel}")


async def test_nothing_runs_after_a_cancellation_or_a_time_limit(sandbox_env: Sandbox) -> None:
    async def running() -> str:
        return (await sandbox_env.exec(["pgrep", "-fx", "sleep 10[12]1"])).stdout

    script = "echo started; setsid sleep 1021 & exec sleep 1011"
    with pytest.raises(TimeoutError) as caught:
        await sandbox_env.exec(["sh", "-c", script], timeout=1)
    assert caught.value.truncated_output == "started\n"  # type: ignore[attr-defined]
    assert await running() == ""
    command = asyncio.create_task(sandbox_env.exec(["sh", "-c", script]))
    while not await running():
        assert not command.done()
    command.cancel()
    with pytest.raises(asyncio.CancelledError):
        await command
    assert await running() == ""


async def test_programs_run_at_the_same_time(sandbox_env: Sandbox) -> None:
    """Each waits for the other."""
    await sandbox_env.exec(["mkfifo", "left", "right"])
    meet = "echo >{} & read _ <{}"
    results = await asyncio.gather(
        *(
            sandbox_env.exec(["sh", "-c", meet.format(*names)])
            for names in (("left", "right"), ("right", "left"))
        )
    )
    assert [each.returncode for each in results] == [0, 0]


async def test_a_sample_leaves_nothing_behind_but_its_own_directory(tmp_path: Path) -> None:
    config = OhSandboxConfig(directory=str(tmp_path))
    environments = await Sandbox.sample_init("task", config, {})
    sandbox = environments["default"].as_type(Sandbox)
    await sandbox.write_file("a/b.txt", "text\r\n")
    assert await sandbox.read_file("a/b.txt") == "text\r\n"
    scratch = Path(sandbox._scratch)
    assert scratch.is_dir()
    await Sandbox.sample_cleanup("task", config, environments, True)
    assert not scratch.exists()
    assert (tmp_path / "a" / "b.txt").read_bytes() == b"text\r\n"


@pytest.mark.thorough
async def test_inspects_own_tools_keep_their_state(sandbox_env: Sandbox) -> None:
    """They have a server in the sandbox, which lasts longer than the command that needs it."""
    box = SandboxEnvironmentProxy(sandbox_env)
    done = await box.exec_remote(["sh", "-c", "echo out; exit 3"], stream=False)
    assert (done.returncode, done.stdout) == (3, "out\n")
    process = await box.exec_remote(["cat"], ExecRemoteStreamingOptions(stdin_open=True))
    await process.write_stdin("several commands\n")
    await process.close_stdin()
    events = [event async for event in process]
    assert any(getattr(event, "data", "") == "several commands\n" for event in events)


def test_solvers_and_scorers_use_the_sandbox(tmp_path: Path) -> None:
    from inspect_ai import Task, eval
    from inspect_ai.dataset import Sample
    from inspect_ai.scorer import Score, accuracy, scorer
    from inspect_ai.solver import solver
    from inspect_ai.util import sandbox

    @solver
    def work() -> Any:
        async def solve(state: Any, generate: Any) -> Any:
            await sandbox().write_file("deep/data.bin", bytes(range(256)))
            done = await sandbox().exec(
                ["sh", "-c", "cat; echo $NAME >&2; wc -c < data.bin"],
                input="given\n",
                cwd="deep",
                env={"NAME": "a b"},
            )
            state.output.completion = repr((done.stdout, done.stderr, done.returncode))
            return state

        return solve

    @scorer(metrics=[accuracy()])
    def right() -> Any:
        async def score(state: Any, target: Any) -> Score:
            data = await sandbox().read_file("deep/data.bin", text=False)
            right = data == bytes(range(256)) and state.output.completion == target.text
            return Score(value=1 if right else 0, answer=state.output.completion)

        return score

    sample = Sample(input="count", target=repr(("given\n256\n", "a b\n", 0)))
    task = Task(dataset=[sample], solver=work(), scorer=right(), sandbox="oh_jupyter")
    (log,) = eval(task, model="mockllm/model", log_dir=str(tmp_path), display="none")
    assert log.status == "success", log.error
    assert log.results is not None
    (sample,) = log.samples or []
    assert sample.scores["right"].value == 1, sample.scores


def test_an_evaluation_runs(tmp_path: Path) -> None:
    example = Path(__file__).parents[2] / "examples" / "inspect_ai_sandbox.py"
    printed = runpy.run_path(str(example))["main"](str(tmp_path))
    assert "tool: hello.txt" in printed
    assert "score: C" in printed  # correct


def test_inspect_finds_the_sandbox_by_its_entry_point() -> None:
    (entry,) = entry_points(group="inspect_ai", name="oh_jupyter")
    assert entry.load() is sys.modules["oh_jupyter.adapters.inspect_ai"]
    assert registry_find_sandboxenv("oh_jupyter") is Sandbox
