"""The protocol's contract: the order of decisions, and every state of a reply."""

from __future__ import annotations

import asyncio
import getpass
import os
import platform
import tempfile
import threading
from pathlib import Path

import psutil
import pytest

from oh_jupyter.control_messages import RUNNING_HINT as HINT
from oh_jupyter.errors import ConfigError, ShellError
from oh_jupyter.events import CmdRunAction, ErrorObservation
from oh_jupyter.shell import BashSession
from oh_jupyter.shell.bash.terminal import Terminal
from oh_jupyter.shell.replies import DROPPED_INPUT
from oh_jupyter.testing import wait_until

PREFIX = "[Below is the output of the previous command.]\n"


def test_completed(run, session):
    observation = run("echo hi; (exit 3)")
    metadata = observation.metadata
    assert observation.content == "hi"
    assert observation.command == "echo hi; (exit 3)"
    assert not observation.success
    assert metadata.exit_code == 3
    assert metadata.pid == -1
    assert metadata.username == getpass.getuser()
    assert metadata.hostname == platform.node()
    assert metadata.working_dir == session.work_dir == session.cwd
    assert os.path.basename(metadata.py_interpreter_path or "python").startswith("python")
    assert metadata.prefix == ""
    assert metadata.suffix == "\n[The command completed with exit code 3.]"


def test_interpreter_is_the_one_on_the_path_of_the_shell(run, session, tmp_path):
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\n")
    python.chmod(0o755)
    run(f"mkdir relative; cp {python} relative")
    assert run(f"PATH={tmp_path}:$PATH").metadata.py_interpreter_path == str(python)
    assert run("PATH=/nowhere").metadata.py_interpreter_path == ""
    relative = run("PATH=/nowhere:relative").metadata.py_interpreter_path
    assert relative == f"{session.work_dir}/relative/python"


def test_state_is_kept(run, session):
    run('x=5; f() { echo "f$1"; }; declare -A m=([k]=v); mkdir sub')
    assert run("cd sub").metadata.working_dir == session.cwd == f"{session.work_dir}/sub"
    assert run('echo "$x ${m[k]}"; f 1').content == "5 v\nf1"
    run("false")
    assert run("echo $?").content == "1"
    run("mkdir other")
    assert run("cd $_ && basename $PWD").content == "other"


def test_nothing_is_running(run):
    for command, is_input, content in (
        ("", False, "ERROR: No previous running command to retrieve logs from."),
        ("  \n", True, "ERROR: No previous running command to retrieve logs from."),
        ("x", True, "ERROR: No previous running command to interact with."),
        ("C-c", True, "ERROR: No previous running command to interact with."),
    ):
        observation = run(command, is_input=is_input)
        assert (observation.content, observation.command) == (content, "")
        assert observation.exit_code == -1


def read_on(run, observation):
    """Return a command's output; on a slow machine, wait until there is some."""
    content = observation.content
    while not content:
        content = run("", timeout=0.1, blocking=True).content
    return content


def test_no_change(run, session):
    session.NO_CHANGE_TIMEOUT_SECONDS = 0.5
    observation = run("printf 'a'; sleep 100")
    assert read_on(run, observation) == "a"
    assert observation.metadata.exit_code == observation.metadata.pid == -1
    assert observation.metadata.working_dir is None
    assert observation.metadata.prefix == ""
    assert observation.metadata.suffix == (
        f"\n[The command has no new output after 0.5 seconds. {HINT}]"
    )
    again = run("")
    assert (again.content, again.command, again.metadata.prefix) == ("", "", PREFIX)


@pytest.mark.thorough
def test_output_keeps_a_command_from_no_change(run, session):
    session.NO_CHANGE_TIMEOUT_SECONDS = 2
    observation = run("end=$((SECONDS + 4)); until ((SECONDS == end)); do echo; sleep 0.01; done")
    assert observation.exit_code == 0


def test_blocking_switches_no_change_off(run, session):
    session.NO_CHANGE_TIMEOUT_SECONDS = 0.2
    assert run("sleep 0.6; echo end", blocking=True).content == "end"


def test_hard_timeout(run):
    observation = run("echo one; sleep 100", timeout=0.3, blocking=True)
    assert read_on(run, observation) == "one"
    assert observation.metadata.suffix == f"\n[The command timed out after 0.3 seconds. {HINT}]"
    observation = run("", timeout=0.1, blocking=True)
    assert observation.metadata.suffix.startswith("\n[The command timed out after 0.1 seconds. ")
    assert observation.metadata.prefix == PREFIX


def test_refusal_while_running(run, start, gate):
    assert start(f"echo a; read x <{gate}; echo b; sleep 100", shown="a").content == "a"
    gate.open()
    assert start("", shown="b").content == "b"
    refused = run("echo no")
    assert (refused.content, refused.command, refused.exit_code) == ("", "echo no", -1)
    assert refused.metadata.prefix == PREFIX
    assert refused.metadata.suffix == (
        '\n[Your command "echo no" is NOT executed. The previous command is still running - You '
        "CANNOT send new commands until the previous command is completed. By setting `is_input` "
        f"to `true`, you can interact with the current process: {HINT}]"
    )
    ended = run("C-c", is_input=True)
    assert ended.exit_code == 130
    assert ended.metadata.suffix == (
        "\n[The command completed with exit code 130. CTRL+C was sent.]"
    )
    assert run("echo yes").content == "yes"


def test_output_in_slices(run, start, gate):
    command = f"for i in 1 2; do echo $i; read x <{gate}; done; echo end"
    assert start(command, shown="1").content == "1"
    gate.open()
    second = start("", shown="2")
    assert (second.content, second.metadata.prefix) == ("2", PREFIX)
    gate.open()
    last = run("")
    assert (last.content, last.metadata.prefix, last.exit_code) == ("end", "", 0)


def test_input(run, start):
    assert start("read -p 'name? ' a; read b; echo \"<$a|$b>\"", shown="?").content == "name?"
    second = start("Ada Lovelace", is_input=True)
    assert (second.content, second.command, second.metadata.prefix) == ("", "Ada Lovelace", PREFIX)
    third = run("é$x", is_input=True)
    assert (third.content, third.exit_code) == ("<Ada Lovelace|é$x>", 0)


def test_keys(run, start):
    assert run("C-c").exit_code == 130
    assert run("C-z").metadata.suffix.endswith("CTRL+Z was sent.]")
    start("cat")
    ended = run("C-d", is_input=True)
    assert (ended.exit_code, ended.content) == (0, "")
    start("sleep 100")
    stopped = run("C-z", is_input=True)
    assert stopped.exit_code == 148
    assert "Stopped" in stopped.content
    assert stopped.metadata.suffix.endswith("148. CTRL+Z was sent.]")
    run("kill -9 %1; wait %1")
    # bash may say only now that the job is gone, before or after.
    assert "C-" in run("echo C-").content.splitlines()


def test_program_that_handles_the_interrupt(run, start):
    start(
        "bash -c 'trap \"echo bye; exit 0\" INT; echo up; while :; do sleep 0.05; done'", shown="up"
    )
    ended = run("C-c", is_input=True)
    assert (ended.content, ended.exit_code) == ("bye", 0)


def test_interrupt_while_programs_start(run):
    for loop in (
        "while :; do /bin/true; done",
        "while :; do /bin/true; sleep 0.01; done",
        "while :; do /bin/true | cat; done",
        "/bin/true; while :; do :; done",
    ):
        for moment in range(1, 16):
            assert run(loop, timeout=0.03 + moment / 1000, blocking=True).exit_code == -1
            # bash may report /bin/true as a job that is done.
            assert run("C-c", is_input=True, timeout=5, blocking=True).exit_code == 130


def test_interrupt_reaches_only_the_program_that_handles_it(run, start):
    start(
        "bash -c 'trap \"echo bye; exit 0\" INT; echo up; while :; do read -t 0.01; done'"
        "; sleep 0.3; echo rest",
        shown="up",
    )
    ended = run("C-c", is_input=True, timeout=20, blocking=True)
    assert (ended.content, ended.exit_code) == ("bye\nrest", 0)


def test_interrupt_spares_a_program_that_handles_it_in_a_pipeline(run, start):
    handler = 'trap "echo bye; exit 0" INT; echo up; while :; do read -t 0.01 x; done'
    start(f"/bin/true | bash -c '{handler}'; sleep 0.3; echo rest", shown="up")
    ended = run("C-c", is_input=True, timeout=20, blocking=True)
    assert (ended.content, ended.exit_code) == ("bye\nrest", 0)


def wait_for_end(session):
    while session.running:
        threading.Event().wait(0.005)


def test_input_for_a_command_that_has_ended_meanwhile_is_not_run(run, session, gate):
    run(f"read x <{gate}; (exit 7)", timeout=0.05)
    gate.open()
    wait_for_end(session)
    assert run("touch oops", is_input=True).exit_code == 7
    assert run("ls").content == ""


def test_leftover_output_is_in_the_next_observation(run, session, gate):
    run(f"read x <{gate}; echo late; (exit 4)", timeout=0.05)
    gate.open()
    wait_for_end(session)
    observation = run("echo new")
    assert observation.content == "new"
    assert "completed with exit code 4. Its remaining output:]\nlate\n" in (
        observation.metadata.prefix
    )


def test_several_commands_are_refused(session):
    observation = session.execute(CmdRunAction("ls\n# note\nx=$((1+2))\ncase a in a) ;; esac"))
    assert isinstance(observation, ErrorObservation)
    assert observation.content == (
        "ERROR: Cannot execute multiple commands at once.\n"
        "Please run each command separately OR chain them into a single command via && or ;\n"
        "Provided commands:\n(1) ls\n# note\n(2) x=$((1+2))\n(3) case a in a) ;; esac"
    )


@pytest.mark.parametrize(
    ("command", "content"),
    [
        ("# leading\necho 1", "1"),
        ("# alone", ""),
        ("echo 1 # trailing", "1"),
        ("for i in 1 2\ndo\n\techo $i\ndone", "1\n2"),
        ("cat <<'EOF'\n$x\n  `y`\nEOF", "$x\n  `y`"),
        ("echo a \\\n  b", "a b"),
        ('echo "a\n\n  b"', "a\n\n  b"),
        ("echo a\\;b", "a;b"),
        ("echo a \\| b", "a | b"),
        ("echo 'x!y' \"!z\" !!", "x!y !z !!"),
        ("printf '%s' $'\\x03\\x1a\\x04'", ""),
        ("echo trailing \\", "trailing \\"),
        ("echo 日本語 😀 ñ", "日本語 😀 ñ"),
        ("echo a; : & wait", "a\n[1] "),
    ],
)
def test_commands_run_as_written(run, command, content):
    observation = run(command)
    assert observation.content.startswith(content)
    assert observation.exit_code == 0
    if not content.endswith(" "):
        assert observation.content == content


@pytest.mark.thorough
def test_long_commands_take_time_in_proportion(run, session):
    bash = psutil.Process(session.pid)

    def cpu_seconds(size: int) -> float:
        before = bash.cpu_times()
        text = "'" + "a$b " * (size // 4) + "'"
        assert run(f"x={text}; echo ${{#x}}", blocking=True).content == str(size)
        after = bash.cpu_times()
        return after.user + after.system - before.user - before.system

    short: list[float] = []
    long: list[float] = []

    def is_in_proportion() -> bool:
        short.append(cpu_seconds(1_000_000))
        long.append(cpu_seconds(6_000_000))
        return min(long) < 3 * 6 * (min(short) + 0.01)

    # 36 times as long if it is in proportion to the square; a busy machine only adds to a round.
    wait_until(is_in_proportion)
    assert run("echo next").content == "next"


@pytest.fixture
def shared_files(enclosure, tmp_path, monkeypatch):
    """Name the files that the session shares with its shell."""
    folder = tmp_path if enclosure is None else Path(enclosure.temporary_dir)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return lambda: [path.name for path in folder.glob("oh_shell_*")]


def test_a_long_command_is_read_from_a_file(run, session, shared_files):
    run("set -eu; false || true; trap 'echo trapped' ERR; v=1")
    value = "\u00fc\t\\n'\"$v`\udcff " * 20_000
    quoted = value.replace("'", "'\\''")
    observation = run(f'x=\'{quoted}\'; echo "$? ${{#x}}"; printf %s "$x" >x')
    assert observation.content == f"0 {len(value)}"
    assert Path(session.work_dir, "x").read_bytes() == value.encode("utf-8", "surrogateescape")
    assert "u" in run("echo $-").content
    assert shared_files() == []


def test_a_long_command_that_is_unfinished_is_an_error(run, session, shared_files):
    observation = run("echo 'open" + "x" * 100_000)
    assert observation.exit_code > 0
    assert "unexpected" in observation.content
    assert run("echo fine").content == "fine"
    assert shared_files() == []


def test_a_long_command_without_a_file_is_typed(run, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", "/nowhere")
    assert run(f"x={'x' * 100_000}; echo ${{#x}}").content == "100000"


@pytest.mark.parametrize("command", ["echo 'open", 'echo "open', "echo $(open", "if true", "a |"])
def test_unfinished_command_is_an_error_at_once(run, command):
    observation = run(command)
    assert observation.exit_code > 0
    assert "unexpected" in observation.content
    assert run("echo fine").content == "fine"


@pytest.mark.parametrize(
    "command", ["cat <<EOF\nline", "touch a; cat <<-'EOF' | cat\n\tline\nEOF ;", "cat <<A <<EOF\nA"]
)
def test_here_document_without_end_is_not_run(run, session, command):
    observation = session.execute(CmdRunAction(command))
    assert isinstance(observation, ErrorObservation)
    assert "no line is just EOF" in observation.content
    assert run("ls").content == ""


def test_input_that_the_command_did_not_read_is_dropped(run, start, gate):
    start(f"read x <'{gate}'")
    start("touch stolen", is_input=True)
    start("TAB", is_input=True)
    gate.open()
    ended = run("")
    assert (ended.exit_code, ended.content) == (0, "")
    assert ended.metadata.suffix == f"\n[The command completed with exit code 0.]{DROPPED_INPUT}"
    following = run("ls; cat", is_input=False, timeout=0.2)
    assert following.content == ""
    assert run("typed", is_input=True, timeout=0.2).content == "typed"
    ended = run("C-d", is_input=True)
    assert ended.metadata.suffix == "\n[The command completed with exit code 0. CTRL+D was sent.]"


def test_input_for_a_command_that_has_ended_is_not_run(run, start, session, gate):
    start(f"read x <'{gate}'")
    gate.open()
    wait_until(lambda: not session.running)
    ended = run("touch stolen", is_input=True)
    assert ended.metadata.suffix.endswith(DROPPED_INPUT)
    assert run("ls").content == ""


@pytest.mark.thorough
def test_input_in_a_rush_is_never_run_as_a_command(run, start, session):
    """It is typed in the very moment in which the command ends."""
    for number in range(30):
        start("read first")
        session.execute(CmdRunAction("a", is_input=True))
        session.execute(CmdRunAction(f"touch stolen{number}", is_input=True))
    assert run("ls").content == ""


def test_input_keeps_its_indentation_and_lines(run, start):
    start("od -An -c -w40", is_input=False)
    start("  a\n\n\tb \n", is_input=True)
    shown = run("C-d", is_input=True).content.split()
    assert shown == ["a", "\\n", "\\n", "\\t", "b", "\\n", "\\n"]


@pytest.mark.parametrize(
    "lines",
    [["for i in range(2):\n    print(40 + i)\n"], ["for i in range(2):", "    print(40 + i)\n"]],
)
def test_a_block_in_a_prompt(run, start, lines):
    start("python3 -i -q -c 'import sys; sys.ps1 = \"ready \"'", "ready")
    for line in lines[:-1]:
        start(line, is_input=True)
    start(lines[-1], "40\n41", is_input=True)
    run("C-d", is_input=True)


PASTES = """
import os, tty
tty.setraw(0)
print("\\x1b[?2004h", end="ready", flush=True)
data = b""
while not data.endswith(b"end\\x1b[201~\\r"):
    data += os.read(0, 99)
print(data)
"""


def test_lines_for_a_program_that_takes_pastes_are_marked(run, start, session):
    (Path(session.work_dir) / "pastes.py").write_text(PASTES)
    start("python3 -u pastes.py", "ready")
    assert run("  a\nend", is_input=True).content == repr(b"\x1b[200~  a\rend\x1b[201~\r")


KEYS = "import os, tty; tty.setraw(0); print('ready', flush=True); print(os.read(0, 9))"


@pytest.mark.parametrize(
    ("name", "sent"),
    [
        ("UP", b"\x1b[A"),
        ("DOWN", b"\x1b[B"),
        ("RIGHT", b"\x1b[C"),
        ("LEFT", b"\x1b[D"),
        ("HOME", b"\x1b[H"),
        ("END", b"\x1b[F"),
        ("PGUP", b"\x1b[5~"),
        ("PGDN", b"\x1b[6~"),
        ("ENTER", b"\r"),
        ("TAB", b"\t"),
        ("BS", b"\x7f"),
        ("ESC", b"\x1b"),
        ("C-c", b"\x03"),
        ("CTRL+C", b"\x03"),
        ("ctrl-l", b"\x0c"),
        ("up", b"up\r"),
    ],
)
def test_keys_by_their_names(run, start, name, sent):
    start(f'python3 -u -c "{KEYS}"', "ready")
    assert run(name, is_input=True).content.splitlines()[-1] == repr(sent)


def test_displayed_command_has_the_protocols_backslashes(run):
    assert run("find . -name x -exec echo {} \\;").command == "find . -name x -exec echo {} \\\\;"
    assert run("echo '\\;' \"\\|\" \\>").command == "echo '\\;' \"\\|\" \\\\>"


def test_background_job(run):
    assert run("true").metadata.pid == -1
    started = run("sleep 100 &")
    assert started.content == f"[1] {started.metadata.pid}"
    assert started.exit_code == 0
    assert run("echo $!").content == str(started.metadata.pid)
    assert run("kill %1; wait %1").exit_code == 143
    assert run("true").metadata.pid == started.metadata.pid


@pytest.mark.parametrize(
    "job",
    [
        "( cd /; sleep 100 )",
        "while true; do sleep 100; done",
        "if true; then sleep 100; else echo no; fi",
        'for i in 1 2; do cat <<<"[1]+ $i"; sleep 100; done >/dev/null',
        "case a in a) sleep 100;; esac",
    ],
)
def test_background_job_of_several_lines(run, job):
    started = run(f"{job} &")
    assert started.content == f"[1] {started.metadata.pid}"
    assert run(f"{job} & sleep 0.01 & wait $!").content.splitlines()[-1].split()[1] == "Done"
    assert run("echo next").content == "next"


def test_finished_job_is_shown_as_a_terminal_does(run):
    content = run("sleep 0.01 & wait").content
    assert content.splitlines()[1].split() == ["[1]+", "Done", "sleep", "0.01"]


def test_background_output_between_commands_is_not_lost(run, tmp_path):
    pipe = tmp_path / "pipe"
    run(f"mkfifo {pipe}; {{ read x <{pipe}; echo got $x; echo >{pipe}; }} &")
    pipe.write_text("it\n")
    pipe.read_text()
    assert "got it" in run("echo next").content


def test_truncation_and_hidden(run):
    long = run("printf 'x%.0s' {1..40000}")
    assert len(long.content) == 30_047
    assert "\n[... Observation truncated due to length ...]\n" in long.content
    hidden = run("printf 'x%.0s' {1..40000}", hidden=True)
    assert hidden.content == "x" * 40_000
    assert hidden.hidden


def test_history_overflow(run):
    assert run("seq 5000", hidden=True).content.split() == [str(n) for n in range(1, 5001)]
    observation = run('for i in $(seq 50000); do echo "Line $i"; done')
    assert observation.metadata.prefix == (
        "[Previous command outputs are truncated. "
        "Showing the last 11000 lines of the output below.]\n"
    )
    assert "Line 40000\n" in observation.content
    assert observation.content.endswith("Line 50000")
    assert observation.head.startswith("Line 1\nLine 2\n")
    assert len(observation.head) <= 2000
    assert run("seq 12").head == ""


def test_static_command(run, session):
    run("x=1; cd /")
    observation = run('pwd; echo "<$x>"; cd /tmp', is_static=True)
    assert observation.content == f"{session.work_dir}\n<>"
    assert run("pwd", is_static=True, cwd="/usr").content == "/usr"
    assert session.cwd == "/"
    assert run("echo $x").content == "1"
    missing = session.execute(CmdRunAction("pwd", is_static=True, cwd="/nowhere"))
    assert isinstance(missing, ErrorObservation)


def test_static_command_while_another_runs(run, start):
    start("sleep 100")
    assert run("echo static", is_static=True).content == "static"
    assert run("C-c", is_input=True).exit_code == 130


def test_nul_is_refused(session):
    assert isinstance(session.execute(CmdRunAction("echo a\0b")), ErrorObservation)


def test_interrupt_from_another_thread(run, session, tmp_path):
    started = tmp_path / "started"
    os.mkfifo(started)

    def press() -> None:
        started.read_text()
        session.interrupt()

    thread = threading.Thread(target=press)
    thread.start()
    # Bash itself forgets an interrupt that comes while it starts a program.
    command = f"bash -c 'echo >{started}; exec sleep 100'"
    assert run(command, blocking=True).exit_code == 130
    thread.join()


def test_asyncio_face_needs_no_thread(tmp_path: Path):
    async def main() -> None:
        before = set(threading.enumerate())
        session = BashSession(tmp_path, loop=asyncio.get_running_loop())
        await session.initialize_async()
        observation = await session.execute_async(CmdRunAction("echo $PWD"))
        assert observation.content == str(tmp_path)
        assert set(threading.enumerate()) <= before  # others' may end meanwhile
        with pytest.raises(ShellError, match="_async"):
            session.execute(CmdRunAction("true"))
        task = asyncio.create_task(session.execute_async(CmdRunAction("read x", blocking=True)))
        while not session.running:
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        observation = await session.execute_async(CmdRunAction("echo free"))
        assert observation.content == "free"
        await session.close_async()
        await session.close_async()
        with pytest.raises(ShellError, match="initialize"):
            await session.execute_async(CmdRunAction("true"))

    asyncio.run(main())


@pytest.mark.thorough
def test_only_the_command_of_a_cancelled_caller_is_interrupted(tmp_path: Path):
    async def main() -> None:
        session = BashSession(tmp_path, loop=asyncio.get_running_loop())
        await session.initialize_async()
        first = asyncio.create_task(
            session.execute_async(CmdRunAction("read x; echo got $x", blocking=True))
        )
        while not session.running:
            await asyncio.sleep(0)
        behind = asyncio.create_task(session.execute_async(CmdRunAction("echo behind")))
        await asyncio.sleep(0)
        behind.cancel()
        await asyncio.wait({behind})
        await session.execute_async(CmdRunAction("word", is_input=True))
        assert (await first).content.endswith("got word")
        stubborn = "bash -c \"trap '' INT; touch started; until [ -e end ]; do sleep 0.05; done\""
        task = asyncio.create_task(session.execute_async(CmdRunAction(stubborn, blocking=True)))
        while not (tmp_path / "started").exists():
            await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.wait({task})
        refused = await session.execute_async(CmdRunAction("echo later"))
        assert "NOT executed" in refused.metadata.suffix
        (tmp_path / "end").touch()
        await session.execute_async(CmdRunAction("", blocking=True))
        assert (await session.execute_async(CmdRunAction("echo on"))).content == "on"
        await session.close_async()

    asyncio.run(main())


def test_threads_take_turns(session):
    contents = []

    def work(number: int) -> None:
        for turn in range(10):
            text = f"{number}-{turn}"
            observation = session.execute(CmdRunAction(f"echo {text}", blocking=True))
            contents.append(observation.content == text)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert contents == [True] * 40


def test_bad_sessions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(ShellError, match="no directory"):
        BashSession(tmp_path / "missing").initialize()
    with pytest.raises(ShellError, match="no user"):
        BashSession(tmp_path, username="nobody-of-that-name").initialize()
    with pytest.raises(ShellError, match="initialize"):
        BashSession(tmp_path).execute(CmdRunAction("true"))
    monkeypatch.setenv("NO_CHANGE_TIMEOUT_SECONDS", "3")
    assert BashSession(tmp_path).NO_CHANGE_TIMEOUT_SECONDS == 3
    monkeypatch.setenv("NO_CHANGE_TIMEOUT_SECONDS", "soon")
    with pytest.raises(ConfigError, match="soon"):
        BashSession(tmp_path)


def test_a_snapshot_leaves_no_trace_and_can_be_restored(run, session):
    run("mkdir 'a b' && cd 'a b' && export KEPT=$'two\\nlines \\e[1m' GONE='x y' && (exit 3)")
    before = session.snapshot()
    assert run("echo $?").content == "3"
    assert before.cwd == f"{session.work_dir}/a b" == session.cwd
    assert before.variables["KEPT"] == "two\nlines \x1b[1m"
    assert "x y" not in repr(before)
    run("cd / && export KEPT=other NEW=1 && unset GONE && own=stays")
    session.set_env({"LATER": "set"})
    session.restore(before)
    assert session.cwd == before.cwd
    assert run('echo "$PWD|$GONE|$own|${NEW-}|${LATER-}|${#KEPT}"').content == (
        f"{before.cwd}|x y|stays|||{len(before.variables['KEPT'])}"
    )
    assert session.snapshot() == before
    assert run("exit 0").metadata.exit_code == 0
    assert run("echo ${LATER-gone}").content == "gone"


@pytest.mark.parametrize("enclosure", ["plain"], indirect=True)
def test_a_full_disk_gives_no_part_of_a_snapshot(run, session, mount_disk, monkeypatch):
    disk = mount_disk(1)
    monkeypatch.setattr("tempfile.tempdir", str(disk))
    run("export BIG=$(printf '%050000d' 1)")
    before = session.snapshot()
    (disk / "ballast").write_bytes(bytes(1_000_000))
    with pytest.raises(ShellError, match=str(disk)):
        session.snapshot()
    with pytest.raises(ShellError, match=str(disk)):
        session.restore(before)
    assert os.listdir(disk) == ["ballast"]
    (disk / "ballast").unlink()
    assert session.snapshot() == before


def test_changes_that_cannot_be_restored_are_reported(run, session, start, gate):
    run("mkdir gone && cd gone && export FIXED=1")
    before = session.snapshot()
    run("export FIXED=2 && readonly FIXED")
    with pytest.raises(ShellError, match="could not be restored: FIXED"):
        session.restore(before)
    run("cd .. && rmdir gone")
    with pytest.raises(ShellError, match="cannot go back to"):
        session.restore(before)
    start(f"read x <'{gate}'")
    with pytest.raises(ShellError, match="A command is running"):
        session.snapshot()


async def test_an_interrupt_keeps_unread_output():
    terminal = Terminal(asyncio.get_running_loop(), raw=False, user=None)
    received = []
    output = b"x" * 10_000  # more than the driver of our side takes in
    os.write(terminal.slave, output)
    terminal.write(b"\x03")
    terminal.start_reading(received.append, lambda: None)
    terminal.read_now()
    terminal.close()
    assert b"".join(received) == output


def test_programs_of_an_exact_command_have_no_terminal(run):
    shown = run("[ -t 0 ] || [ -t 1 ] || [ -t 2 ]; echo $? $TERM", is_static=True, exact=True)
    assert (shown.content, shown.exit_code) == ("1 dumb\n", 0)
    ended = run("printf 'a\\nb' >&2; read x; exit 3", is_static=True, exact=True)
    assert (ended.content, ended.exit_code, ended.command) == (
        *("a\nb", 3),
        "printf 'a\\nb' >&2; read x; exit 3",
    )
    lines = run("cat <<END\nfirst\nEND\nseq 9000", is_static=True, exact=True).content
    assert lines == "first\n" + "".join(f"{n}\n" for n in range(1, 9001))
    assert run("sleep 1000 & echo left", is_static=True, exact=True).content == "left\n"
