"""PowerShellSession over a real PowerShell, where there is one."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from oh_jupyter.events import Actor, CmdOutputObservation, CmdRunAction, ErrorObservation
from oh_jupyter.shell import PowerShellSession

pytestmark = pytest.mark.skipif(
    not (shutil.which("pwsh") or shutil.which("powershell")),
    reason="no PowerShell on the PATH",
)

Run = Callable[..., CmdOutputObservation]


@pytest.fixture
def session(tmp_path: Path) -> Iterator[PowerShellSession]:
    with PowerShellSession(tmp_path, no_change_timeout_seconds=5) as running:
        yield running


@pytest.fixture
def run(session: PowerShellSession) -> Run:
    def run(command: str, **arguments: object) -> object:
        observation = session.execute(CmdRunAction(command, **arguments))  # type: ignore[arg-type]
        assert isinstance(observation, CmdOutputObservation), observation
        return observation

    return run  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("command", "content", "exit_code"),
    [
        ("'é 日本'", "é 日本", 0),
        ("Write-Host one; Write-Output two", "one\ntwo", 0),
        ("return 5", "5", 0),
        ("if ($true) {\n  'a'\n}\nelse {\n  'b'\n}", "a", 0),
        ("@'\n$x\n  `y`\n'@", "$x\n  `y`", 0),
        ("# alone", "", 0),
        ("'trailing' # note", "trailing", 0),
        ("Get-Item missing -ErrorAction SilentlyContinue", "", 1),
        ("[Console]::Error.WriteLine('err'); 'out'", "err\nout", 0),
    ],
)
def test_commands(run, command, content, exit_code):
    observation = run(command, blocking=True)
    assert (observation.content, observation.exit_code) == (content, exit_code)


def test_the_trace_context_is_there_for_its_command_only(run, session):
    traced = CmdRunAction("$env:TRACEPARENT; $env:BAGGAGE")
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    traced.actor = Actor(traceparent=parent, baggage="user=ann")
    run("$env:BAGGAGE = 'mine'")
    assert session.execute(traced).content == f"{parent}\nuser=ann"
    assert run('"$env:TRACEPARENT|$env:BAGGAGE"').content == "|mine"


def test_state_and_directory(run, session):
    run("$x = 5; function f { 'f' + $args[0] }; [void](mkdir sub); cd sub; $env:A = 'b'")
    assert session.cwd == os.path.join(session.work_dir, "sub")
    assert run('"$x $(f 1) $env:A"').content == "5 f1 b"


@pytest.mark.parametrize(
    "command", ["Get-Item missing", "throw 'x'", "1 / 0", "'open", "[int]'x'", "nonsense-command"]
)
def test_errors(run, command):
    observation = run(command)
    assert observation.exit_code == 1
    assert observation.content
    assert run("'fine'").content == "fine"


def test_statement_after_an_error_runs(run):
    observation = run("1 / 0; 'next'")
    assert observation.content.endswith("next")
    assert observation.exit_code == 0


def test_exit_code_of_programs(run):
    program = "cmd /c exit 3" if os.name == "nt" else "sh -c 'exit 3'"
    assert run(program).exit_code == 3
    assert run("$LASTEXITCODE").content == "3"
    assert run("Get-Item missing").exit_code == 1
    assert run(f"{program}; 'after'").exit_code == 0


def test_several_commands_are_refused(session):
    observation = session.execute(CmdRunAction("1\n# note\nif (1) {\n  2\n}"))
    assert isinstance(observation, ErrorObservation)
    assert observation.content.endswith("(1) 1\n# note\n(2) if (1) {\n  2\n}")


def test_input(run):
    assert run("$a = Read-Host 'name'; \"<$a>\"").exit_code == -1
    observation = run("Ada", is_input=True, blocking=True)
    assert observation.content.endswith("<Ada>")


def test_interrupt(run):
    assert run("'up'; Start-Sleep 100").exit_code == -1
    assert run("C-c", is_input=True, blocking=True).exit_code == 130
    assert run("'fine'").content == "fine"


@pytest.mark.parametrize(
    "change",
    [
        "function prompt { 'mine> ' }",
        "Set-StrictMode -Version Latest",
        "$ErrorActionPreference = 'Stop'",
        "function Get-Job { 'bad' }; function foreach-object { 'bad' }",
    ],
)
def test_changed_shell(run, change):
    assert run(change).exit_code == 0
    for _ in range(2):
        observation = run("'one'")
        assert (observation.content, observation.exit_code) == ("one", 0)


def test_exit_and_environment(run, session):
    session.set_env({"A": "$x `y` 'q' \"d\" \nsecond é"})
    assert run("$env:A").content == "$x `y` 'q' \"d\"\nsecond é"
    observation = run("exit 4")
    assert observation.exit_code == 4
    assert "A new shell was started" in observation.metadata.suffix
    assert run("$env:A").content.endswith("second é")
