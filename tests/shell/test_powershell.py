"""PowerShellSession, against a stand-in: a real PowerShell is tested in test_pwsh.py."""

from __future__ import annotations

import asyncio
import getpass
import os
import platform
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from oh_jupyter.control_messages import RUNNING_HINT as HINT
from oh_jupyter.errors import ShellError
from oh_jupyter.events import CmdOutputObservation, CmdRunAction, ErrorObservation
from oh_jupyter.shell import PowerShellSession, ShellSession
from oh_jupyter.shell import supervisor as supervisor

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the stand-in is a POSIX program")

Run = Callable[..., CmdOutputObservation]
STANDIN = Path(__file__).with_name("powershell_standin.py")
NOTICE = "\n[The shell itself has ended. A new shell was started in "


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """An environment in which ``pwsh`` is the stand-in."""
    programs = tmp_path / "programs"
    programs.mkdir()
    program = programs / "pwsh"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I "{STANDIN}" "$@"\n')
    program.chmod(0o755)
    return {**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}


@pytest.fixture
def session(tmp_path: Path, env: dict[str, str]) -> Iterator[ShellSession]:
    work_dir = tmp_path / "work"
    work_dir.mkdir()
    with PowerShellSession(work_dir, no_change_timeout_seconds=60, env=env) as running:
        yield running


def test_completed(run, session):
    observation = run("print('hi'); code = 3")
    metadata = observation.metadata
    assert observation.content == "hi"
    assert observation.command == "print('hi'); code = 3"
    assert (metadata.exit_code, metadata.pid) == (3, -1)
    assert metadata.username == getpass.getuser()
    assert metadata.hostname == platform.node()
    assert metadata.working_dir == session.work_dir == session.cwd
    assert (metadata.prefix, metadata.suffix) == (
        "",
        "\n[The command completed with exit code 3.]",
    )


def test_state_is_kept(run, session):
    assert run("import os; x = 5; os.makedirs('sub'); os.chdir('sub')").success
    assert session.cwd == f"{session.work_dir}/sub"
    assert run("print(x)").content == "5"


def test_any_text_arrives_as_it_is(run):
    text = "é'\"`$x\\ 日本 \N{GRINNING FACE}\t" + "x" * 100_000
    observation = run(f"print({text!r})", timeout=60, blocking=True, hidden=True)
    assert observation.content == text.expandtabs(8)
    assert run('print("""a\n\n  b""")').content == "a\n\n  b"


def test_echo_and_prompts_are_not_in_the_output(run):
    for number in range(3):
        assert run(f"print({number})").content == str(number)
    assert run("# nothing").content == ""


def test_several_commands_are_refused_by_the_shells_own_parser(run, session):
    run("x = 1")
    observation = session.execute(CmdRunAction("x = 2\n# note\nif x:\n    x = 3"))
    assert isinstance(observation, ErrorObservation)
    assert observation.content == (
        "ERROR: Cannot execute multiple commands at once.\n"
        "Please run each command separately OR chain them into a single command via && or ;\n"
        "Provided commands:\n(1) x = 2\n# note\n(2) if x:\n    x = 3"
    )
    assert run("print(x)").content == "1"
    assert run("").content == "ERROR: No previous running command to retrieve logs from."


def test_refusal_keeps_output_of_an_earlier_command(run, session, tmp_path):
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    run(f"open({str(gate)!r}).read(); print('late')", timeout=0.1)
    gate.write_text("")
    while session.running:
        threading.Event().wait(0.005)
    assert isinstance(session.execute(CmdRunAction("1\n2")), ErrorObservation)
    observation = run("print('new')")
    assert observation.content == "new"
    assert "completed with exit code 0. Its remaining output:]\nlate\n" in (
        observation.metadata.prefix
    )


def test_syntax_error(run):
    observation = run("print('open")
    assert observation.exit_code == 1
    assert "SyntaxError" in observation.content
    assert run("print('fine')").content == "fine"


def test_no_change_slices_refusal_and_interrupt(run, start):
    first = start("import time; print('a', flush=True); time.sleep(100)", shown="a")
    assert first.content == "a"
    assert first.metadata.suffix == f"\n[The command has no new output after 0.2 seconds. {HINT}]"
    refused = run("print('no')")
    assert "[Your command \"print('no')\" is NOT executed." in refused.metadata.suffix
    ended = run("C-c", is_input=True)
    assert ended.exit_code == 130
    assert ended.metadata.suffix.endswith("exit code 130. CTRL+C was sent.]")
    assert run("print('yes')").content == "yes"


def test_hard_timeout(run):
    observation = run("import time; time.sleep(100)", timeout=0.2, blocking=True)
    assert observation.metadata.suffix == f"\n[The command timed out after 0.2 seconds. {HINT}]"
    assert run("C-c", is_input=True, blocking=True).exit_code == 130


def test_interrupt_of_a_program(run, start):
    program = f"import subprocess; code = subprocess.run([{sys.executable!r}, '-c', "
    program += "'import time; print(1, flush=True); time.sleep(100)']).returncode"
    assert start(program, shown="1").content == "1"
    assert run("C-c", is_input=True, blocking=True).exit_code == 130


def test_program_that_handles_the_interrupt(run, start):
    program = (
        "import time\n"
        "try:\n    print('up', flush=True); time.sleep(100)\n"
        "except KeyboardInterrupt:\n    print('bye'); code = 7"
    )
    run("import time")
    assert start(program.partition("\n")[2], shown="up").content == "up"
    ended = run("C-c", is_input=True, blocking=True)
    assert (ended.content, ended.exit_code) == ("bye", 7)


def test_input(run, start):
    command = "print('<' + input('name? ') + '>', input(), flush=True)"
    assert start(command, shown="?").content == "name?"
    assert start("Ada Lovelace", is_input=True).content == ""
    last = run("é$x", is_input=True)
    assert (last.content, last.exit_code) == ("<Ada Lovelace> é$x", 0)


def test_end_of_input_reaches_the_program_and_then_the_shell(run, start):
    start("import sys; print(sys.stdin.read(), 'end')")
    assert run("C-d", is_input=True, blocking=True).content == "end"
    observation = run("print('here')", blocking=True)
    assert observation.content == "here"


def test_keys_at_the_prompt(run):
    assert run("C-c").exit_code == 130
    assert run("C-z").exit_code == 0
    observation = run("C-d")
    assert observation.exit_code == 0
    assert NOTICE in observation.metadata.suffix


@pytest.mark.parametrize(
    ("command", "exit_code", "content"),
    [
        ("print('last words', flush=True); raise SystemExit(3)", 3, "last words"),
        ("import os; os.kill(os.getpid(), 9)", 137, ""),
        ("import os, subprocess; subprocess.Popen(['sleep', '100']); os._exit(5)", 5, ""),
    ],
)
def test_shell_comes_back(run, session, command, exit_code, content):
    run("import os; os.makedirs('sub'); os.chdir('sub'); x = 1")
    pid = session.pid
    observation = run(command)
    assert (observation.exit_code, observation.content) == (exit_code, content)
    assert observation.metadata.suffix.startswith(
        f"\n[The command completed with exit code {exit_code}.]{NOTICE}{session.work_dir}/sub;"
    )
    assert session.pid != pid
    assert run("print('x' in globals())").content == "False"


def test_shell_that_ended_between_commands(run, session):
    for _ in range(3):
        os.kill(session.pid, 9)
        observation = run("print('here')", blocking=True)
        assert observation.content == "here"
        assert NOTICE in observation.metadata.suffix


def test_nothing_outlives_the_session(tmp_path, env):
    with PowerShellSession(tmp_path, env=env) as session:
        session.execute(
            CmdRunAction("import subprocess; p = subprocess.Popen(['setsid', 'sleep', '984'])")
        )
        child = psutil.Process(int(session.execute(CmdRunAction("print(p.pid)")).content))
        family = [child, psutil.Process(session.pid)]
    _, alive = psutil.wait_procs(family, timeout=60)
    assert not alive


def test_environment(session, run):
    values = {"A": "$x `y` 'q' \"d\" \\n\nsecond é 日本", "B": "", "C_1": "  spaces = "}
    session.set_env(values)
    assert run("import os; print([os.environ[n] for n in ('A', 'B', 'C_1')])").content == str(
        list(values.values())
    )
    assert run("raise SystemExit", blocking=True).success
    assert run("import os; print(os.environ['C_1'].strip())").content == "spaces ="
    assert run("print(os.environ['NO_COLOR'])").content == "1"


def test_static_command(run, session):
    run("import os; x = 1; os.chdir('/')")
    observation = run("import os; print(os.getcwd(), 'x' in globals())", is_static=True)
    assert observation.content == f"{session.work_dir} False"
    assert session.cwd == "/"


def test_memory_limit(tmp_path, env):
    eat = f"import subprocess; code = -subprocess.run([{sys.executable!r}, '-c', "
    eat += "'x = bytearray(300 * 1024**2); input()']).returncode"
    with PowerShellSession(tmp_path, max_memory_mb=150, env=env) as session:
        observation = session.execute(CmdRunAction(eat, blocking=True))
        assert observation.exit_code == 9
        assert "more than the limit of 150 MiB.]" in observation.metadata.suffix
        assert session.execute(CmdRunAction("print('fine')")).content == "fine"


def test_marks_may_arrive_in_any_pieces(tmp_path, env):
    with PowerShellSession(tmp_path, env={**env, "SLOWLY": "1"}) as session:
        for number in range(5):
            assert session.execute(CmdRunAction(f"print({number})")).content == str(number)


def test_imitated_marks_are_output(run):
    observation = run(r"print('\x1b]oh_0123456789abcdef;e;1;\x1b\\after'); code = 4")
    assert (observation.content, observation.exit_code) == ("after", 4)


def test_much_output_in_bounded_memory(run):
    before = psutil.Process().memory_info().rss
    observation = run("for _ in range(100): print('line of output\\n' * 60_000)")
    assert observation.exit_code == 0
    assert observation.metadata.prefix.startswith("[Previous command outputs are truncated.")
    assert psutil.Process().memory_info().rss - before < 64 * 1024**2


def test_profile_that_does_not_let_it_come_up(tmp_path, env, monkeypatch):
    monkeypatch.setattr(supervisor, "START_TIMEOUT_SECONDS", 1.0)
    monkeypatch.setattr(supervisor, "LAST_START_TIMEOUT_SECONDS", 1.0)
    with PowerShellSession(tmp_path, env={**env, "BAD_PROFILE": "1"}) as session:
        assert session.execute(CmdRunAction("print('up')")).content == "up"


def test_asyncio_face(tmp_path, env):
    async def main() -> None:
        session = PowerShellSession(tmp_path, env=env, loop=asyncio.get_running_loop())
        await session.initialize_async()
        observation = await session.execute_async(CmdRunAction("print(1)"))
        assert observation.content == "1"
        await session.close_async()

    asyncio.run(main())


def test_no_powershell(tmp_path):
    with pytest.raises(ShellError, match="no PowerShell on the PATH"):
        PowerShellSession(tmp_path, env={"PATH": str(tmp_path)}).initialize()
