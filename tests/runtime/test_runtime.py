"""The runtime from a plain script: no Jupyter anywhere."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import CancelledError
from dataclasses import replace
from pathlib import Path

import pytest

from oh_jupyter.config import Settings
from oh_jupyter.errors import (
    ConfigError,
    NotRunnableError,
    RuntimeClosedError,
    ShellError,
    WireError,
)
from oh_jupyter.events import (
    Actor,
    AgentFinishAction,
    AgentThinkAction,
    CmdOutputObservation,
    CmdRunAction,
    ErrorObservation,
    FileReadAction,
    FileWriteAction,
    IPythonRunCellAction,
    MessageAction,
    NullAction,
    NullObservation,
)
from oh_jupyter.runtime import Runtime, list_directory
from oh_jupyter.testing import wait_until


@pytest.fixture
def runtime(tmp_path: Path) -> Iterator[Runtime]:
    settings = Settings(workspace_dir=str(tmp_path / "made" / "on demand"), file_store="memory")
    made = Runtime(settings)
    yield made
    made.close()


def test_an_interrupted_guest_runs_nothing_until_its_next_prompt(runtime: Runtime) -> None:
    executor = runtime.executor

    def submit(command: str, guest: str):
        action = CmdRunAction(command)
        action.actor = Actor(guest=guest)
        return runtime.submit_action(action)

    def call(function, *arguments) -> None:
        async def on_the_loop() -> None:
            function(*arguments)

        runtime.submit(on_the_loop()).result(60)

    running = submit("sleep 1000", "claude-1")
    wait_until(lambda: executor.running)
    call(executor.interrupt_guest, "claude-2")
    assert not running.done()
    call(executor.interrupt_guest, "claude-1")
    with pytest.raises(CancelledError):
        running.result(60)
    late = submit("echo late", "claude-1").result(60)
    assert isinstance(late, ErrorObservation)
    assert "interrupted claude-1" in late.content
    assert submit("echo other", "codex-1").result(60).content == "other"
    call(executor.interrupted_guests.discard, "claude-1")
    assert submit("echo again", "claude-1").result(60).content == "again"


def test_events_refer_to_texts_above_the_length_that_is_set(tmp_path: Path) -> None:
    runtime = Runtime(Settings(str(tmp_path), file_store="memory", max_inline_chars=1000))
    runtime.submit_action(FileWriteAction("long.txt", "x" * 1001)).result(60)
    runtime.events.flush()
    stored = runtime.file_store.read(f"sessions/{runtime.generation}/events/0.json")
    assert "/args/content" in json.loads(stored)["oh_jupyter"]["blobs"]
    assert runtime.events.search()[0].content == "x" * 1001
    runtime.close()


def test_actions_become_observations_and_events(runtime: Runtime) -> None:
    done = runtime.submit_action(CmdRunAction("pwd"), "user").result(60)
    assert isinstance(done, CmdOutputObservation)
    assert done.content == runtime.executor.workspace_dir
    runtime.events.flush()
    action, observation = runtime.events.search()
    assert (action.id, action.source, observation.cause) == (0, "user", 0)


def test_nothing_is_started_before_it_is_needed(runtime: Runtime) -> None:
    runtime.submit_action(FileWriteAction("a.txt", "x")).result(60)
    assert runtime.submit_action(FileReadAction("a.txt")).result(60).content == "x\n"
    assert runtime.status()["shell"] is None
    assert runtime.status()["browser"] is False


def test_relative_paths_follow_the_shell(runtime: Runtime) -> None:
    runtime.submit_action(CmdRunAction("mkdir inner && cd inner")).result(60)
    written = runtime.submit_action(FileWriteAction("b.txt", "y")).result(60)
    assert written.path == str(Path(runtime.executor.workspace_dir, "inner", "b.txt"))


def test_a_failure_is_an_observation_and_the_runtime_continues(runtime: Runtime) -> None:
    missing = runtime.submit_action(FileReadAction("no-such-file")).result(60)
    assert isinstance(missing, ErrorObservation)
    assert missing.content.startswith("File not found: ")
    assert runtime.submit_action(CmdRunAction("echo on")).result(60).content == "on"


@pytest.mark.parametrize(
    ("action", "error", "word"),
    [
        (MessageAction("hello"), NotRunnableError, "'message' cannot be executed"),
        (AgentThinkAction("hm"), NotRunnableError, "'think' cannot be executed"),
        (AgentFinishAction(), NotRunnableError, "'finish' cannot be executed"),
        (NullAction(), NotRunnableError, "'null' cannot be executed"),
        (CmdRunAction(5), WireError, "args.command"),
        (CmdRunAction("ls", confirmation_state="perhaps"), WireError, "confirmation_state"),
        (FileReadAction("x", view_range=["1"]), WireError, "args.view_range"),
    ],
)
def test_an_invalid_action_is_refused_and_not_recorded(
    runtime: Runtime, action, error, word: str
) -> None:
    with pytest.raises(error, match=word):
        runtime.submit_action(action).result(60)
    assert runtime.events.latest_id == -1


@pytest.mark.thorough
def test_cells_run_in_a_kernel_of_its_own(runtime: Runtime) -> None:
    runtime.executor.confirmations.policy = "never"  # to end the kernel waits for a person
    first = runtime.submit_action(IPythonRunCellAction("x = 20\ncallable(open_file)")).result(60)
    assert first.content.startswith("True\n[Jupyter current working directory: ")
    second = runtime.submit_action(IPythonRunCellAction("x + 1", include_extra=False)).result(60)
    assert second.content == "21"
    late = IPythonRunCellAction("print('started')\nimport time; time.sleep(600)")
    late.timeout = 1
    assert "[Execution timed out (1.0 seconds).]" in runtime.submit_action(late).result(60).content
    gone = runtime.submit_action(IPythonRunCellAction("import os; os._exit(3)")).result(60)
    assert isinstance(gone, ErrorObservation)
    assert "The kernel died" in gone.content
    again = runtime.submit_action(IPythonRunCellAction("'x' in globals(), callable(open_file)"))
    assert again.result(60).content.startswith("(False, True)")


def test_an_internal_defect_is_reported_and_the_runtime_continues(
    runtime, monkeypatch, caplog
) -> None:
    def broken(*args, **kwargs):
        raise ZeroDivisionError("inside")

    monkeypatch.setattr("oh_jupyter.editor.file_actions.read_file", broken)
    observation = runtime.submit_action(FileReadAction("x")).result(60)
    assert isinstance(observation, ErrorObservation)
    assert "ZeroDivisionError" in observation.content
    assert "Traceback" in caplog.text
    assert runtime.submit_action(CmdRunAction("echo on")).result(60).content == "on"


def test_a_cancelled_action_is_recorded_as_such(runtime: Runtime) -> None:
    seen = threading.Event()
    runtime.events.subscribe(lambda event: seen.set())
    future = runtime.submit_action(CmdRunAction("sleep 600", blocking=True))
    assert seen.wait(60)
    future.cancel()
    assert runtime.submit_action(CmdRunAction("echo on")).result(60).content == "on"
    runtime.events.flush()
    assert any(event.message == "The action was cancelled." for event in runtime.events.search())
    assert runtime.submit_action(CmdRunAction("echo on")).result(60).content == "on"


def test_actions_executed_by_others_use_the_same_pipeline(runtime: Runtime) -> None:
    async def elsewhere() -> NullObservation:
        return NullObservation("done elsewhere")

    asked = runtime.executor.run_action(CmdRunAction("exit 1"), "agent", execute=elsewhere)
    assert runtime.submit(asked).result(60).content == "done elsewhere"
    runtime.events.flush()
    action, observation = runtime.events.search()
    assert (action.command, observation.cause) == ("exit 1", action.id)


def test_a_running_action_is_cancelled_by_its_id(runtime: Runtime) -> None:
    async def endless() -> NullObservation:
        started.set()
        await asyncio.Event().wait()
        return NullObservation("")

    async def cancel(id: int) -> bool:
        return runtime.executor.running[id].task.cancel()

    started = threading.Event()
    future = runtime.submit(runtime.executor.run_action(CmdRunAction("x"), execute=endless))
    assert started.wait(60)
    assert runtime.submit(cancel(0)).result(60)
    with pytest.raises(CancelledError):
        future.result(60)
    assert 0 not in runtime.executor.running
    runtime.events.flush()
    assert runtime.events.get_event(1).content == "The action was cancelled."


def test_an_action_that_is_cancelled_while_it_waits_never_began(tmp_path: Path) -> None:
    settings = Settings(
        workspace_dir=str(tmp_path), file_store="memory", plugins=(), confirmation="always"
    )
    runtime = Runtime(settings)
    asked = runtime.submit(runtime.executor.run_action(CmdRunAction("true")))
    wait_until(lambda: bool(runtime.executor.confirmations.waiting), what="the question")
    runtime.close()
    with pytest.raises(CancelledError):
        asked.result(60)
    handling = runtime.events.get_event(1).handling
    assert handling is not None
    assert handling["never_began"] is True


def test_an_action_that_is_cancelled_during_its_checkpoint_never_began(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = Runtime(Settings(workspace_dir=str(tmp_path), file_store="memory", plugins=()))
    reached = threading.Event()

    async def never_done(*_: object) -> None:
        reached.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(runtime.executor.turns, "before", never_done)
    asked = runtime.submit(runtime.executor.run_action(CmdRunAction("true")))
    assert reached.wait(60)
    runtime.close()
    with pytest.raises(CancelledError):
        asked.result(60)
    assert runtime.events.get_event(1).handling == {"never_began": True}


def test_closing_ends_and_reports_everything(tmp_path: Path) -> None:
    runtime = Runtime(Settings(workspace_dir=str(tmp_path), file_store="memory"))
    observation = runtime.submit_action(CmdRunAction("echo $$")).result(60)
    runtime.close()
    runtime.close()
    with pytest.raises(RuntimeClosedError, match="reload_ext"):
        runtime.submit_action(CmdRunAction("ls"))
    shell = Path(f"/proc/{observation.content}")
    wait_until(lambda: not shell.exists(), what="the end of the shell")


@pytest.mark.thorough
def test_a_script_that_forgets_to_close_ends_cleanly(tmp_path: Path) -> None:
    script = (
        "from oh_jupyter.config import Settings\n"
        "from oh_jupyter.events import CmdRunAction\n"
        "from oh_jupyter.runtime import Runtime\n"
        f"runtime = Runtime(Settings(file_store={str(tmp_path.as_uri())!r}))\n"
        "print(runtime.submit_action(CmdRunAction('echo $$')).result(60).content)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stderr == ""
    assert len(list(tmp_path.glob("sessions/*/events/*.json"))) == 2


def test_a_store_in_a_place_that_cannot_be_is_an_error_unless_it_is_the_default(
    tmp_path: Path, monkeypatch, caplog
) -> None:
    blocked = tmp_path / "file"
    blocked.touch()
    with pytest.raises(OSError, match="file"):
        Runtime(Settings(workspace_dir=str(tmp_path), file_store_path=str(blocked))).close()
    monkeypatch.setenv("HOME", str(blocked))
    runtime = Runtime(Settings(workspace_dir=str(tmp_path)))
    assert "in memory only" in caplog.text
    assert runtime.submit_action(CmdRunAction("echo on")).result(60).content == "on"
    runtime.close()


def test_directories_first_then_files_and_no_dangling_links(tmp_path: Path) -> None:
    for name in ("b", "A", ".c"):
        (tmp_path / name).touch()
    (tmp_path / "Z").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "Z")
    (tmp_path / "dangling").symlink_to("nowhere")
    assert list_directory(None, str(tmp_path)) == ["link/", "Z/", ".c", "A", "b"]
    assert list_directory("Z", str(tmp_path)) == []
    assert list_directory("\0", str(tmp_path)) == []


@pytest.mark.thorough
def test_environment_variables_reach_shell_and_cells_and_stay_out_of_the_log(
    runtime: Runtime, monkeypatch
) -> None:
    value = "$HOME `id` !! 'q' \"d\"\nline ünï"
    monkeypatch.delenv("OH_TEST_SECRET", raising=False)
    runtime.submit(runtime.executor.set_env({"OH_TEST_SECRET": value})).result(60)
    shell = runtime.submit_action(CmdRunAction('printf "%s" "$OH_TEST_SECRET"')).result(60)
    assert shell.content == value
    cell = IPythonRunCellAction("import os; print(os.environ['OH_TEST_SECRET'])")
    assert runtime.submit_action(cell).result(60).content.startswith(value)
    runtime.events.flush()
    recorded = [event for event in runtime.events.search() if event.cause is not None]
    assert all(value not in event.content for event in recorded)
    assert "<secret_hidden>" in recorded[0].content
    for wrong in ({"not a name": "x"}, {"NUMBER": 5}, "NAME", None):
        with pytest.raises(ShellError, match="cannot be set"):
            runtime.submit(runtime.executor.set_env(wrong)).result(60)


@pytest.mark.thorough
def test_the_shell_does_not_get_the_operators_secrets(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("SESSION_API_KEY", "session-key-1")
    monkeypatch.setenv("FILE_STORE_WEB_HOOK_SECRET", "whsec_c2VjcmV0")
    monkeypatch.setenv("OH_TEST_PLAIN", "plain")
    runtime = Runtime(Settings(workspace_dir=str(tmp_path), file_store="memory"))
    try:
        for action in (CmdRunAction("env"), CmdRunAction("env", is_static=True)):
            lines = runtime.submit_action(action).result(60).content.splitlines()
            assert "OH_TEST_PLAIN=plain" in lines
            names = {line.partition("=")[0] for line in lines}
            assert not names & {"SESSION_API_KEY", "FILE_STORE_WEB_HOOK_SECRET"}
    finally:
        runtime.close()


def test_memory_is_shown_and_limited(tmp_path: Path) -> None:
    settings = Settings(workspace_dir=str(tmp_path), file_store="memory", max_memory_gb=0.1)
    runtime = Runtime(settings)
    try:
        greedy = f"{sys.executable} -c 'b = bytearray(400_000_000); import time; time.sleep(60)'"
        killed = runtime.submit_action(CmdRunAction(greedy, blocking=True)).result(60)
        assert "memory" in (killed.content + killed.metadata.suffix).lower()
        assert runtime.submit_action(CmdRunAction("echo on")).result(60).content == "on"
        figures = runtime.status()["memory"]
        assert figures["kernel"] > figures["shell"] > 0
    finally:
        runtime.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may change users")
def test_the_shell_works_for_another_user() -> None:
    # Another run of pytest would close the parents of tmp_path again.
    directory = tempfile.mkdtemp()
    os.chmod(directory, 0o755)
    settings = Settings(workspace_dir=f"{directory}/theirs", file_store="memory", username="nobody")
    runtime = Runtime(settings)
    try:
        done = runtime.submit_action(CmdRunAction("id -un; touch made; stat -c %U made")).result(60)
        assert done.content == "nobody\nnobody"
        assert done.metadata.username == "nobody"
    finally:
        runtime.close()
        shutil.rmtree(directory)


def test_an_unknown_user_is_refused_with_the_reason(tmp_path: Path) -> None:
    settings = Settings(workspace_dir=str(tmp_path), file_store="memory", username="no-such-user")
    with pytest.raises(ConfigError, match="no user 'no-such-user'"):
        Runtime(settings)
    Runtime(replace(settings, su_to_user=False)).close()


@pytest.mark.parametrize(("url", "warned"), [("http://h/hook", "h/hooka.txt"), ("http://h/", None)])
def test_a_report_address_without_a_final_slash_is_reported(
    tmp_path: Path, caplog, url: str, warned: str | None
) -> None:
    settings = Settings(
        workspace_dir=str(tmp_path),
        file_store="memory",
        file_store_web_hook_url=url,
        file_store_web_hook_outbox="",
    )
    Runtime(settings).close()
    assert ("does not end in a slash" in caplog.text) == (warned is not None)
    assert warned is None or warned in caplog.text


def test_a_thread_whose_executor_was_used_closes_at_exit():
    """From Python 3.12 on asyncio cannot start the thread that ends an executor then."""
    program = (
        "import asyncio, atexit, time\n"
        "from oh_jupyter.runtime import runtime\n"
        "runtime.CLOSE_TIMEOUT_SECONDS = 600\n"
        "thread = runtime.RuntimeThread()\n"
        "thread.submit(asyncio.to_thread(time.time)).result()\n"
        "atexit.register(thread.close)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], stderr=subprocess.PIPE, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")
