"""Agents' commands in sandboxes, as the settings say."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from oh_jupyter.config import Settings
from oh_jupyter.documents import process
from oh_jupyter.errors import ConfigError
from oh_jupyter.events import (
    Actor,
    CmdOutputObservation,
    CmdRunAction,
    ErrorObservation,
    FileEditAction,
    FileReadAction,
    FileWriteAction,
    Observation,
)
from oh_jupyter.events.wire import to_wire
from oh_jupyter.runtime import Runtime
from oh_jupyter.runtime import boxed_shells as module
from oh_jupyter.runtime.confirmation import Decision
from oh_jupyter.runtime.replay import Replayer
from oh_jupyter.sandbox import Engine, find_engine
from oh_jupyter.testing import wait_until
from tests.editor.test_documents import pdf

needs_engine = pytest.mark.skipif(
    find_engine().program is None or sys.platform != "linux",
    reason="needs bubblewrap, and user namespaces",
)
MISSING = Engine(None, problem="bubblewrap is not installed", mend="apt-get install bubblewrap")


@pytest.fixture
def make(tmp_path: Path) -> Iterator[object]:
    runtimes: list[Runtime] = []

    def make(**settings: object) -> Runtime:
        work = tmp_path / "work"
        work.mkdir(exist_ok=True)
        defaults = {"file_store": "memory", "checkpoints": "off", "no_change_timeout_seconds": 60.0}
        runtimes.append(Runtime(Settings(workspace_dir=str(work), **{**defaults, **settings})))  # type: ignore[arg-type]
        return runtimes[-1]

    yield make
    for runtime in runtimes:
        runtime.close()


def run(runtime: Runtime, command: str, source: str = "agent", **fields: object) -> Observation:
    action = CmdRunAction(command, **fields)  # type: ignore[arg-type]
    return runtime.submit_action(action, source).result(60)  # type: ignore[arg-type]


def is_boxed(observation: Observation) -> object:
    return (observation.handling or {}).get("sandboxed")


@needs_engine
def test_an_agents_shell_is_apart_from_the_persons(make) -> None:
    runtime = make(sandbox="required")
    run(runtime, "export A=agent; cd /tmp")
    run(runtime, "export A=person", "user")
    agents, persons = run(runtime, "echo $A; pwd"), run(runtime, "echo $A", "user")
    assert (agents.content, persons.content) == ("agent\n/tmp", "person")
    assert (is_boxed(agents), is_boxed(persons)) == (True, None)
    assert "Read-only file system" in run(runtime, "touch /etc/x").content
    assert runtime.status()["sandbox"] == "sandboxed (required, no network), 1 box open"
    assert "namespaces" in runtime.status()["sandbox_enforced_by"]


@needs_engine
def test_each_agent_has_a_box(make) -> None:
    runtime = make(sandbox="auto")
    for name in ("claude", "codex"):
        action = CmdRunAction(f"export WHO={name}; echo x >/tmp/{name}")
        action.actor = Actor(guest=name)
        runtime.submit_action(action).result(60)
    action = CmdRunAction("echo $WHO; ls /tmp/*")
    action.actor = Actor(guest="claude")
    content = runtime.submit_action(action).result(60).content
    assert content.startswith("claude\n")
    assert "codex" not in content


@needs_engine
def test_a_box_does_not_change_the_settings_that_the_operator_names(
    make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = tmp_path / "work" / "conf" / "named.toml"
    settings.parent.mkdir(parents=True)
    settings.write_text('[core]\nsandbox = "required"\n')
    monkeypatch.setenv("OH_JUPYTER_CONFIG_FILE", str(settings))
    runtime = make(sandbox="required")
    for change in ("echo > {}", "rm {}", "mv {}/.. elsewhere", "ln -f /dev/null {}"):
        run(runtime, change.format(settings))
    assert settings.read_text() == '[core]\nsandbox = "required"\n'


@needs_engine
def test_actions_inside_the_sandbox_need_no_approval(make) -> None:
    runtime = make(sandbox="auto", confirmation="risky", confirmation_timeout=0.2)
    assert is_boxed(run(runtime, "sudo -n true; chmod 777 .")) is True
    outside = make(
        sandbox="auto", confirmation="risky", confirmation_timeout=0.2, sandbox_network="host"
    )
    assert run(outside, "sudo -n true").kind == "user_rejected"
    every = make(sandbox="auto", confirmation="always", confirmation_timeout=0.2)
    assert run(every, "true").kind == "user_rejected"


@needs_engine
def test_a_question_tells_sandboxed_actions_apart(make) -> None:
    runtime = make(sandbox="auto", confirmation="always")
    confirmations = runtime.executor.confirmations
    for action, sandboxed in ((CmdRunAction("true"), True), (FileWriteAction("a", "x"), False)):
        running = runtime.submit_action(action)
        wait_until(lambda: confirmations.waiting, what="the question")
        [(id, entry)] = confirmations.waiting.items()
        assert entry.sandboxed is sandboxed
        assert entry.terms.startswith("sandboxed; " if sandboxed else "not sandboxed; ")

        async def approve(id: int = id) -> None:
            await confirmations.resolve(id, Decision(True))

        runtime.submit(approve()).result(10)
        running.result(60)


@needs_engine
def test_the_editor_asks_about_paths_that_a_box_forbids(make, tmp_path: Path) -> None:
    runtime = make(sandbox="auto", confirmation="risky", confirmation_timeout=0.2)
    secret = tmp_path / "work" / "token"
    secret.write_text("secret")
    hiding = make(
        sandbox="auto", confirmation="risky", confirmation_timeout=0.2, sandbox_hidden=("token",)
    )
    for action in (
        FileWriteAction(".git/hooks/pre-commit", "x"),
        FileEditAction(".vscode/tasks.json", command="create", file_text="x"),
        FileWriteAction(".mcp.json", "x"),
    ):
        observation = runtime.submit_action(action).result(60)
        assert "your programs run code from this file" in observation.content
    assert runtime.submit_action(FileReadAction("token")).result(60).content == "secret"
    assert (
        "which sandboxes hide" in hiding.submit_action(FileReadAction("token")).result(60).content
    )
    assert runtime.submit_action(FileWriteAction("plain", "x")).result(60).kind == "write"


@needs_engine
def test_placeholders_are_no_changes_of_a_turn(make, tmp_path: Path) -> None:
    runtime = make(sandbox="auto", checkpoints="auto")
    run(runtime, "echo x >made")
    assert (tmp_path / "work" / ".mcp.json").exists()
    turns = runtime.executor.turns
    runtime.submit(turns.settle()).result(60)
    id = runtime.submit(turns.checkpoint_id(None)).result(60)
    plan = turns.checkpoints.preview(id)
    assert [change.path for change in plan.changes] == ["made"]


@needs_engine
def test_variables_stay_outside(make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "secret-in-the-environment")
    runtime = make(sandbox="auto")
    executor = runtime.executor
    runtime.submit(executor.set_env({"INSIDE": "value-1"}, cells=False)).result(60)
    runtime.submit(executor.set_env({"OUTSIDE": "value-2"}, cells=False, sandbox=False)).result(60)
    assert run(runtime, "echo $INSIDE-$OUTSIDE-$SOME_API_KEY").content.endswith("--")
    runtime.submit(executor.set_env({"LATER": "x"}, cells=False)).result(60)
    assert run(runtime, "echo $LATER").content == "x"
    assert run(runtime, "echo ${#OUTSIDE}", "user").content == "7"


@needs_engine
def test_failures_have_a_hint(make) -> None:
    runtime = make(sandbox="auto")
    for command, words in (
        ("touch /etc/x", "sandbox_writable"),
        ("python3 -c 'import socket; socket.getaddrinfo(\"example.org\", 80)'", "without network"),
    ):
        observation = run(runtime, command)
        assert isinstance(observation, CmdOutputObservation)
        assert words in observation.metadata.suffix, observation
    suffix = run(runtime, "false").metadata.suffix  # type: ignore[attr-defined]
    assert "sandbox" not in suffix


@needs_engine
def test_a_persons_command_in_a_box(make) -> None:
    runtime = make(sandbox="off")
    boxed = run(runtime, "touch /etc/x", "user", sandbox=True)
    assert is_boxed(boxed) is True
    assert "Read-only file system" in boxed.content
    plain = run(runtime, "true")
    assert plain.handling is None
    assert runtime.status()["sandbox"] == "not sandboxed: sandbox is off"
    assert runtime.executor.boxes.facts() == {"place": "none", "network": ""}


@needs_engine
def test_the_mark_is_an_extension_on_the_wire(make) -> None:
    wire = to_wire(run(make(sandbox="auto"), "true"))
    assert wire["oh_jupyter"]["handling"]["sandboxed"] is True
    assert "sandboxed" not in str(wire["extras"])


@needs_engine
def test_an_interrupt_reaches_a_box(make) -> None:
    runtime = make(sandbox="auto", no_change_timeout_seconds=0.3)
    assert run(runtime, "echo started; sleep 1000").exit_code == -1  # type: ignore[attr-defined]
    runtime.submit(asyncio.to_thread(runtime.executor.interrupt_shells)).result(60)
    assert run(runtime, "", blocking=True).exit_code == 130  # type: ignore[attr-defined]


@needs_engine
def test_an_ended_shell_takes_its_box_with_it(make) -> None:
    runtime = make(sandbox="auto")
    run(runtime, "export A=1")
    runtime.submit(runtime.executor.end_shell()).result(60)
    assert run(runtime, 'echo "<$A>"').content == "<>"


def test_required_fails_closed(make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(module, "find_engine", lambda user: MISSING)
    runtime = make(sandbox="required", confirmation="always", confirmation_timeout=0.2)
    observation = run(runtime, "echo x >ran")
    assert isinstance(observation, ErrorObservation)
    assert observation.content == (
        "Nothing was run, because no sandbox can be made: bubblewrap is not installed: "
        "apt-get install bubblewrap"
    )
    assert not (tmp_path / "work" / "ran").exists()
    assert is_boxed(observation) is False
    assert runtime.status()["sandbox"].startswith("nothing runs: bubblewrap is not installed")
    assert runtime.executor.boxes.facts()["place"] == "refused"
    assert run(runtime, "echo mine", "user").content == "mine"


def test_auto_falls_back_with_a_mark_and_the_questions(
    make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "find_engine", lambda user: MISSING)
    runtime = make(sandbox="auto", confirmation="risky", confirmation_timeout=0.2)
    observation = run(runtime, "echo x")
    assert (observation.content, is_boxed(observation)) == ("x", False)
    assert run(runtime, "sudo true").kind == "user_rejected"
    assert runtime.status()["sandbox"].startswith("not sandboxed: bubblewrap is not installed")
    refused = run(runtime, "true", "user", sandbox=True)
    assert "no sandbox can be made" in refused.content


def test_unknown_choices(make) -> None:
    for name in ("sandbox", "sandbox_network"):
        with pytest.raises(ConfigError, match=name):
            make(**{name: "perhaps"})


@needs_engine
def test_an_agents_document_is_read_in_a_box(make, tmp_path, monkeypatch) -> None:
    """A reader that a document has taken over writes nothing, and sees no secrets."""
    runtime = make(sandbox="required")
    marker = tmp_path / "work" / "written"
    code = f"import os; os.environ.pop('HOME'); open({str(marker)!r}, 'w')"
    monkeypatch.setattr(
        process, "python_command", lambda *arguments: [sys.executable, "-I", "-c", code]
    )
    document = tmp_path / "work" / "a.pdf"
    document.write_bytes(b"%PDF-1.4")
    action = FileEditAction(path=str(document), command="view", impl_source="oh_aci")
    boxed = runtime.submit_action(action, "agent").result(60)
    assert "Error in converting file to Markdown: " in boxed.content
    assert "written" in boxed.content
    assert not marker.exists()
    runtime.submit_action(action, "user").result(60)
    assert marker.exists()


@needs_engine
def test_a_document_in_a_box_is_converted(make, tmp_path) -> None:
    document = tmp_path / "work" / "a.pdf"
    runtime = make(sandbox="required")
    pdf(document)
    action = FileEditAction(path=str(document), command="view", impl_source="oh_aci")
    assert "Hello PDF" in runtime.submit_action(action, "agent").result(60).content


@needs_engine
def test_a_replaced_file_that_the_box_protected(
    make: Callable[..., Runtime], tmp_path: Path
) -> None:
    """A person's git replaces the configuration, and the mount on it is gone."""
    runtime = make(sandbox="required")
    work = tmp_path / "work"
    subprocess.run(["git", "init", "-q", work], check=True)
    run(runtime, "state=kept; cd .git")
    assert "kept" in run(runtime, "echo $state").content
    subprocess.run(["git", "-C", work, "config", "user.name", "a"], check=True)
    done = run(runtime, "echo '[core]' >>.git/config; echo state=$state")
    assert "Read-only file system" in done.content
    assert "state=kept" not in done.content
    assert f"{work}/.git/config was replaced outside of the last one" in str(done)
    assert "was replaced outside" not in str(run(runtime, "true"))
    assert "core" not in (work / ".git" / "config").read_text().partition("[user]")[2]


@needs_engine
def test_a_replay_of_a_sandboxed_session_is_sandboxed(
    make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also of actions whose source is a person, since an agent's client may claim that."""
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    runtime = make(sandbox="required", confirmation="risky")
    outside = tmp_path / "outside"
    outside.mkdir()
    for source in ("agent", "user"):
        action = CmdRunAction(f"echo x >{outside}/{source}; echo done")
        runtime.submit(runtime.executor.run_action(action, source, principal="agent")).result(60)
    outside.joinpath("new").touch()
    runtime.submit_action(FileWriteAction(f"{outside}/new", "x"), "user").result(60)
    outside.joinpath("new").write_text("")
    steps = Replayer(runtime.settings, runtime.executor.workspace_dir).run(runtime.events)
    assert [step.result for step in steps] == ["same", "same", "skipped"]
    assert steps[-1].before == "it would need a person's approval again"
    assert [(path.name, path.read_text()) for path in outside.iterdir()] == [("new", "")]
