"""The OpenAI Agents SDK on a kernel: its tools in real turns with a scripted model."""

from __future__ import annotations

import asyncio
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from oh_jupyter.client import RuntimeClient
from oh_jupyter.testing import LiveServer, wait_until

pytest.importorskip("agents", reason="needs openai-agents; make test-all installs it")

from agents import Agent, RunConfig, Runner, ToolOutputImage, ToolOutputText
from agents.editor import ApplyPatchOperation
from agents.run_context import RunContextWrapper
from agents.testing import ScriptedModel, assistant_message, function_call
from agents.tool import ShellActionRequest, ShellCallData, ShellCommandRequest, ShellResult

from oh_jupyter.adapters.openai_agents import OhWorkspace

pytestmark = pytest.mark.filterwarnings("default")

PLOT = "import matplotlib.pyplot as plt\n_ = plt.plot([1, 2])"


@pytest.fixture(scope="module")
def workspace(server: LiveServer) -> Iterator[OhWorkspace]:
    with OhWorkspace(server.url, server.token) as workspace:
        yield workspace


async def run(workspace: OhWorkspace, *commands: str, timeout_ms: int | None = None) -> ShellResult:
    action = ShellActionRequest(list(commands), timeout_ms)
    data = ShellCallData("1", action)
    return await workspace.run_commands(ShellCommandRequest(RunContextWrapper(None), data))


def cells(workspace: OhWorkspace, *codes: str) -> list[Any]:
    """Run cells in turns of an agent; return the tool's outputs."""
    calls = [function_call("run_python", {"code": code}, call_id=code) for code in codes]
    model = ScriptedModel([*([call] for call in calls), [assistant_message("done")]])
    agent = Agent(name="a", model=model, tools=[workspace.code_interpreter()])
    options = RunConfig(tracing_disabled=True)
    result = asyncio.run(Runner.run(agent, "go", run_config=options))
    assert result.final_output == "done"
    return [item.output for item in result.new_items if hasattr(item, "output")]


def test_patches_can_be_undone(
    workspace: OhWorkspace, client: RuntimeClient, tmp_path: Path
) -> None:
    path, moved = tmp_path / "a.txt", tmp_path / "b.txt"

    def apply(method: Any, diff: str | None, move_to: Path | None = None) -> Any:
        target = None if move_to is None else str(move_to)
        operation = ApplyPatchOperation("update_file", str(path), diff, move_to=target)
        result = asyncio.run(method(operation))
        assert result.status == "completed", result
        return result

    apply(workspace.create_file, "+one\n+two")
    assert path.read_bytes() == b"one\ntwo"
    apply(workspace.update_file, "@@\n one\n-two\n+2\n")
    assert path.read_bytes() == b"one\n2"
    client.edit("undo_edit", str(path))
    assert path.read_bytes() == b"one\ntwo"
    path.write_bytes(b"one\r\ntwo\r\n")
    apply(workspace.update_file, "@@\n one\n-two\n+2\n", moved)
    assert (path.exists(), moved.read_bytes()) == (False, b"one\r\n2\r\n")
    client.edit("undo_edit", str(path))
    assert path.read_bytes() == b"one\r\ntwo\r\n"
    apply(workspace.delete_file, None)
    assert not path.exists()
    client.edit("undo_edit", str(path))
    assert path.read_bytes() == b"one\r\ntwo\r\n"


def test_a_patch_that_does_not_fit_is_a_failure(workspace: OhWorkspace, tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("one\n")
    (tmp_path / "binary").write_bytes(b"\xff\0")

    def reason(method: Any, name: str, diff: str | None) -> str:
        result = asyncio.run(method(ApplyPatchOperation("update_file", str(tmp_path / name), diff)))
        assert result.status == "failed"
        return str(result.output)

    assert "was not changed" in reason(workspace.update_file, "a.txt", "@@\n-three\n+3\n")
    assert "does not exist" in reason(workspace.update_file, "no.txt", "@@\n-a\n+b\n")
    assert "not text" in reason(workspace.update_file, "binary", "@@\n-a\n+b\n")
    assert "directory" in reason(workspace.update_file, "", "@@\n-a\n+b\n")
    assert "no.txt" in reason(workspace.delete_file, "no.txt", None)
    assert reason(workspace.create_file, "new.txt", "no plus sign")
    assert path.read_text() == "one\n"


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A directory beside the one of a workspace, with links that lead to it."""
    for name in ("cwd/deep/er", "outside"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "outside" / "a.txt").write_text("one\n")
    (tmp_path / "cwd" / "a.txt").write_text("one\n")
    (tmp_path / "cwd" / "directory").symlink_to(tmp_path / "outside")
    (tmp_path / "cwd" / "link.txt").symlink_to(tmp_path / "outside" / "a.txt")
    (tmp_path / "cwd" / "down").symlink_to("deep/er")
    return tmp_path / "outside"


@pytest.mark.parametrize(
    "name",
    ["../outside/a.txt", "{outside}/a.txt", "directory/a.txt", "link.txt", "down/../../../a.txt"],
)
def test_no_patch_leaves_the_directory(server: LiveServer, outside: Path, name: str) -> None:
    """Like the SDK's own editors, which resolve links before they compare."""
    cwd = outside.parent / "cwd"
    path = name.format(outside=outside)
    change = ApplyPatchOperation("update_file", path, "@@\n-one\n+1\n")
    moves = ApplyPatchOperation("update_file", "a.txt", "@@\n-one\n+1\n", move_to=f"{path}.new")
    if name == "link.txt":
        moves.move_to = name
    create = ApplyPatchOperation("create_file", path, "+new")
    delete = ApplyPatchOperation("delete_file", path)
    away = ApplyPatchOperation("update_file", path, "@@\n-one\n+1\n", move_to="b.txt")
    before = {each: each.read_bytes() for each in outside.parent.rglob("*") if each.is_file()}
    with OhWorkspace(server.url, server.token, cwd=str(cwd)) as workspace:
        tries = (
            *((workspace.update_file, each) for each in (change, moves, away)),
            *((workspace.create_file, create), (workspace.delete_file, delete)),
        )
        for method, operation in tries:
            result = asyncio.run(method(operation))
            assert result.status == "failed", operation
    after = {each: each.read_bytes() for each in outside.parent.rglob("*") if each.is_file()}
    assert after == before


def test_patches_reach_files_by_links_within_the_directory(
    server: LiveServer, outside: Path
) -> None:
    cwd = outside.parent / "cwd"
    (outside.parent / "other").symlink_to(cwd)
    with OhWorkspace(server.url, server.token, cwd=str(outside.parent / "other")) as workspace:
        for name in ("down/new.txt", f"{cwd}/deep/b.txt", "deep/../c.txt"):
            result = asyncio.run(
                workspace.create_file(ApplyPatchOperation("create_file", name, "+new"))
            )
            assert result.status == "completed", result.output
    assert (cwd / "deep" / "er" / "new.txt").read_text() == "new"
    assert (cwd / "c.txt").exists()


def test_relative_patches_stay_in_the_workspace(workspace: OhWorkspace, server: LiveServer) -> None:
    create = ApplyPatchOperation("create_file", "../x.txt", "+new")
    result = asyncio.run(workspace.create_file(create))
    assert (result.status, "outside of" in str(result.output)) == ("failed", True)
    assert not (server.directory / "x.txt").exists()


async def test_commands_report_outputs_and_outcomes(workspace: OhWorkspace) -> None:
    result = await run(workspace, "echo out; echo err >&2; exit 7", "cat")
    assert [(each.stdout, each.exit_code) for each in result.output] == [
        ("out\nerr\n", 7),
        ("", 0),
    ]
    late = await run(workspace, "echo started; sleep 1000", "echo never", timeout_ms=500)
    assert [(each.stdout, each.status) for each in late.output] == [("started\n", "timeout")]
    with pytest.raises(ValueError, match="timeout_ms"):
        await run(workspace, "true", timeout_ms=0)
    with pytest.raises(ValueError, match="positive"):
        OhWorkspace("http://127.0.0.1:1", timeout=0)


def test_the_log_names_framework_and_command(workspace: OhWorkspace, logged: Any) -> None:
    asyncio.run(run(workspace, "{ echo hi; }"))
    cells(workspace, "1 + 1")
    name = "OpenAI Agents SDK"
    cell = "Running Python code interactively: 1 + 1"
    assert logged() == [(name, "{ echo hi; }"), (name, cell)]


async def test_cancelling_ends_the_command(workspace: OhWorkspace, tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    command = asyncio.create_task(run(workspace, f"echo $BASHPID >{pid}; exec sleep 1000"))
    await asyncio.to_thread(wait_until, lambda: pid.exists() and pid.read_text().strip())
    command.cancel()
    with pytest.raises(asyncio.CancelledError):
        await command
    process = Path("/proc", pid.read_text().strip())
    await asyncio.to_thread(wait_until, lambda: not process.exists(), what="its end")


async def test_calls_run_at_the_same_time(workspace: OhWorkspace, tmp_path: Path) -> None:
    """Each waits for the other."""
    await run(workspace, f"cd {tmp_path} && mkfifo left right")
    meet = "cd {}; echo >{} & read _ <{}"
    results = await asyncio.gather(
        run(workspace, meet.format(tmp_path, "left", "right")),
        run(workspace, meet.format(tmp_path, "right", "left")),
    )
    assert [each.output[0].exit_code for each in results] == [0, 0]


def test_cells_share_variables_and_return_texts_and_images(workspace: OhWorkspace) -> None:
    texts = cells(workspace, "x = 6\nprint('hi')", "x * 7", "1 / 0")
    assert texts[0] == [ToolOutputText(text="hi\n")]
    assert texts[1] == [ToolOutputText(text="42\n")]
    assert "ZeroDivisionError" in texts[2][0].text
    (picture,) = cells(workspace, PLOT)
    assert isinstance(picture[-1], ToolOutputImage)
    assert str(picture[-1].image_url).startswith("data:image/png;base64,")


def test_a_cell_that_takes_too_long_is_reported(server: LiveServer) -> None:
    with OhWorkspace(server.url, server.token, cell_timeout=1) as workspace:
        (output,) = cells(workspace, "import time; time.sleep(1000)")
    assert "interrupted after 1 seconds" in output[0].text


def test_a_rejection_is_a_failed_command(server: LiveServer) -> None:
    """The kernel has a person's setting; nobody is there to approve."""
    with httpx.Client(headers=server.headers, timeout=60) as http:
        kernel = http.post(f"{server.url}/api/kernels").json()["id"]
        with OhWorkspace(server.url, server.token, kernel) as workspace:
            cells(
                workspace,
                "%load_ext oh_jupyter\n%config OhJupyter.confirmation_timeout = 0.5\n"
                "%config OhJupyter.confirmation = 'always'",
            )
            (output,) = asyncio.run(run(workspace, "touch file")).output
            assert output.exit_code == 1
            assert "Nobody looked at it" in output.stderr
        http.delete(f"{server.url}/api/kernels/{kernel}")


def test_the_example_runs(server: LiveServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OH_URL", server.url)
    monkeypatch.setenv("OH_TOKEN", server.token)
    example = Path(__file__).parents[2] / "examples" / "openai_agents_workspace.py"
    printed = runpy.run_path(str(example))["main"]()
    assert "$ python3 greet.py\nhello, you" in printed
    assert "text='19\\n'" in printed
    assert printed.endswith("It greets you.")
