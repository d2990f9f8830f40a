"""Users' changes of their shell; completion is still reported exactly."""

from __future__ import annotations

import os

import pytest

from oh_jupyter.shell import BashSession
from oh_jupyter.shell.bash.bash_integration import read_reports
from oh_jupyter.shell.driver import Report


@pytest.mark.parametrize(
    "change",
    [
        "PS1='$ ' PS2='> '",
        "PROMPT_COMMAND='PS1=\"(venv) $ \"'",
        "PROMPT_COMMAND=",
        "unset PROMPT_COMMAND PS1 PS2",
        "PROMPT_COMMAND=(true false)",
        "PROMPT_COMMAND+=('PS1=late')",
        'printf() { echo bad; }; echo() { command echo "$@"; }; eval() { :; }',
        "read() { :; }; jobs() { :; }; local() { :; }; exec() { :; }; set() { :; }; test() { :; }",
        "alias eval=false printf=false echo='echo'",
        "set -u",
        "set -f; IFS=0123456789",
        "set -a",
        "set -o noclobber",
        "set -o posix",
        "set -o vi",
        "set -k",
        "set -T; set -E",
        "shopt -s extdebug",
        "trap '' INT TERM HUP",
        "trap 'true' DEBUG; trap 'true' ERR; trap 'true' RETURN; trap 'true' CHLD",
        "exec 2>/dev/null",
        "exec 3>&1 4>&2 5</dev/null",
        "stty raw echo -isig",
        "stty sane",
        "printf '\\e]oh_0123456789abcdef;e;1\\e\\\\\\e]0;title\\a'",
        "ulimit -n 12",
        "cd / && PATH=",
        "LC_ALL=C; LANG=C",
        "export TERM=dumb",
        "set -b",
        "umask 777",
        "readonly PROMPT_COMMAND",
        "readonly PS1",
        "PS1='mine> ' PS2='> '; readonly PS1 PS2",
        "set -u; unset PS1 PS2; readonly PS1",
        "readonly LINENO PS4 IFS",
        "builtin() { echo bad; }",
        "command() { echo bad; }; return() { :; }; unset() { :; }; enable() { :; }",
        "set -o posix; builtin() { echo bad; }",
        "builtin() { :; }; printf() { :; }; unset() { :; }; readonly -f printf",
        "enable -n builtin eval printf jobs",
        "suspend -f",
        "kill -STOP $$",
    ],
)
def test_changed_shell(run, session, enclosure, change):
    if enclosure is not None and change in ("suspend -f", "kill -STOP $$"):
        session.NO_CHANGE_TIMEOUT_SECONDS = 1  # a stop is noticed when the command is quiet
    first = run(change)
    session.NO_CHANGE_TIMEOUT_SECONDS = 60
    assert (first.content, first.exit_code) == ("", 0)
    for _ in range(2):
        observation = run("echo one; (exit 5)")
        assert (observation.content, observation.exit_code) == ("one", 5)
    assert run('echo "$?"').content == "5"
    assert run("C-c").exit_code == 130
    observation = run('echo "' + "x" * 3000 + '"')
    assert (observation.content, observation.exit_code) == ("x" * 3000, 0)


def test_options_are_restored_after_builtin_was_unset(run):
    before = run("shopt; set -o").content
    run("builtin() { echo bad; }")
    assert run("shopt; set -o").content == before
    assert run("builtin echo good").content == "good"


def test_read_only_prompts_are_the_users_and_stay_out_of_the_output(run, tmp_path):
    run("PS1='mine> ' PS2='more> '; readonly PS1 PS2")
    for _ in range(2):
        assert run('echo "$PS1$PS2"').content == "mine> more>"
    pipe = tmp_path / "pipe"
    run(f"mkfifo {pipe}; {{ read x <{pipe}; echo got $x; echo >{pipe}; }} &")
    pipe.write_text("it\n")
    pipe.read_text()
    content = run('echo "' + "x" * 1000 + '"').content
    assert content.splitlines()[0] == "got it"
    assert "mine>" not in content
    assert "more>" not in content


def test_redirected_output(run, tmp_path):
    out = tmp_path / "out"
    assert run(f"exec >{out}").exit_code == 0
    assert run("echo to the file").content == ""
    assert run("exec >/dev/tty; cat " + str(out)).content == "to the file"


def test_exec_without_output(run):
    run("exec >/dev/null 2>&1")
    assert run("echo a; (exit 9)").exit_code == 9


def test_errexit_and_traps(run):
    run("trap 'echo E' ERR")
    assert run("false").content == "E"
    assert run("true").content == ""
    run("trap - ERR; trap 'echo caught' USR1")
    assert run("kill -USR1 $$").content == "caught"


def test_xtrace_and_verbose_show_nothing_of_ours(run):
    run("set -x")
    assert run("echo one").content == "++ echo one\none"
    run("set +x; set -v")
    assert run("echo two").content == "echo two\ntwo"


def test_prompt_is_the_users_while_a_command_runs(run):
    run("PS1='mine> ' PS2='more> '")
    assert run('echo "$PS1$PS2"').content == "mine> more>"


def test_interrupted_change_of_the_prompt(run, start):
    start("PROMPT_COMMAND=(true) PS1='$ '; sleep 100")
    ended = run("C-c", is_input=True)
    assert ended.exit_code == 130
    assert run("echo next").content == "next"


def test_exec_bash_stays_the_same_session(run):
    run("x=1")
    for _ in range(2):
        observation = run("echo before; exec bash")
        assert (observation.content, observation.exit_code) == ("before", 0)
        assert run('echo "<$x>$?"').content == "<>0"
    assert run("exec bash --norc").exit_code == 0
    assert run("(exit 3)").exit_code == 3


def test_sub_shells_are_commands_that_run(run, start, enclosure):
    for shell in ("bash --norc", "su nobody -s /bin/bash"):
        if shell.startswith("su") and (os.geteuid() != 0 or enclosure is not None):
            continue  # nobody changes users in a sandbox
        start(shell)
        assert "<42>" in start('echo "<$((40+2))>"', shown="<42>", is_input=True).content
        ended = run("exit 6", is_input=True)
        assert ended.exit_code == 6
        assert run("echo out").content == "out"


@pytest.mark.thorough
def test_full_screen_programs(run, start):
    for program, quit_keys in (("less /etc/services", "q"), ("vim", ":q!"), ("top", "q")):
        if run(f"command -v {program.split()[0]}").exit_code:
            continue
        start(program, shown=lambda content: len(content.splitlines()) > 10)
        assert run(quit_keys, is_input=True, blocking=True).exit_code == 0
        assert run("echo after").content == "after"


def test_nothing_leaks_into_programs(run):
    assert run("env | grep -c '^[^=]*oh_[^=]*='", blocking=True).content == "0"
    open_files = run("ls -l /proc/self/fd | grep -o '/.*'").content.split()
    assert not [name for name in open_files if "socket" in name or "pipe:" in name][1:]


def test_environment(session, run, gate):
    values = {
        "A": "$x `y` !z 'q' \"d\" \\n\nsecond é 日本",
        "B": "",
        "C_1": "  spaces  ",
    }
    session.set_env(values)
    assert run('printf "[%s][%s][%s]" "$A" "$B" "$C_1"').content == "".join(
        f"[{value}]" for value in values.values()
    )
    assert run("printenv A").content == values["A"]
    run(f"read x <{gate}", timeout=0.05)
    session.set_env({"A": "set while a command runs"})
    gate.open()
    assert run("", blocking=True).exit_code == 0
    assert run("echo $A").content == "set while a command runs"
    assert run("exit").exit_code == 0
    assert run("echo $A").content == "set while a command runs"
    assert run("echo $PAGER $GIT_PAGER").content == "cat cat"
    before = run("env | sort").content
    session.set_env({})
    assert run("env | sort").content == before


def test_setting_the_environment_keeps_the_exit_code(session, run):
    run("(exit 4)")
    session.set_env({"A": "1"})
    assert run("echo $?").content == "4"


def test_start_up_files_are_read(tmp_path, home):
    from oh_jupyter.events import CmdRunAction

    (home / ".bashrc").write_text("echo noise; alias hi='echo hello'; PS1='fancy> '\n")
    env = {**os.environ, "HOME": str(home), "PROMPT_COMMAND": "foreign", "PS1": "foreign"}
    with BashSession(tmp_path, env=env) as session:
        assert session.execute(CmdRunAction("hi")).content == "hello"
    (home / ".bashrc").write_text("exit 3\n")
    with BashSession(tmp_path, env=env) as session:
        assert session.execute(CmdRunAction("echo up")).content == "up"


def test_a_directory_comes_first_on_the_path_whatever_start_up_files_do(tmp_path, home):
    from oh_jupyter.events import CmdRunAction

    first = home / "it's first"
    first.mkdir()
    (first / "python").write_text("#!/bin/sh\necho mine\n")
    (first / "python").chmod(0o755)
    (home / ".bashrc").write_text("set -u; PATH=/nowhere:$PATH\n")
    env = {**os.environ, "HOME": str(home)}
    with BashSession(tmp_path, env=env, path_directory=str(first)) as session:

        def run(command: str, **arguments: object) -> object:
            return session.execute(CmdRunAction(command, **arguments))

        observation = run("python; echo $PATH")
        assert observation.content.startswith(f"mine\n{first}:/nowhere:")
        assert observation.metadata.py_interpreter_path == f"{first}/python"
        assert run("python", is_static=True).content == "mine"
        for command in ("exec bash", "exit"):
            run(command)
            assert run("echo $PATH").content.startswith(f"{first}:/nowhere:")
        assert run("PATH=/bin; echo $PATH").content == "/bin"
        run("readonly PATH; exec bash")
        assert run("echo up").content == "up"
    with BashSession(tmp_path, env=env) as session:
        assert session.execute(CmdRunAction("echo $PATH")).content.startswith("/nowhere:")


def test_other_user(tmp_path):
    from oh_jupyter.events import CmdRunAction

    if os.geteuid() != 0:
        pytest.skip("only root may switch users")
    with BashSession("/tmp", username="nobody", env=os.environ) as session:
        observation = session.execute(CmdRunAction("id -un; echo $USER"))
    assert observation.content == "nobody\nnobody"
    assert observation.metadata.username == "nobody"


def test_reports_in_pieces():
    data = (
        b"oh_1\x00"
        + b"7\x00130\x0042\x00/bin\x00/tmp\x00\x00> \x00[1]+ Running x &\n[2]+  Done y\n\x00"
    )
    report = Report("7", 130, 42, "/bin", "/tmp", "[1]+ Running x &\n[2]+  Done y\n")
    rest = b""
    reports = []
    for byte in data * 2:
        new, rest = read_reports(rest + bytes([byte]), "oh_1")
        reports += new
    assert [replaced.exit_code for replaced in reports] == [130, 130]
    assert reports[0].command_id == report.command_id
    assert reports[0].prompts == ("> ",)
    assert reports[0].jobs == "[2]+  Done y\n"
    assert rest == b""


def test_a_report_that_an_interrupt_cuts_short_is_left_out():
    whole = b"oh_1\x007\x00130\x0042\x00/bin\x00/tmp\x00\x00\x00\x00"
    for cut in range(len(whole)):
        reports, rest = read_reports(whole[:cut] + whole + whole[:cut], "oh_1")
        assert [(report.exit_code, report.cwd) for report in reports] == [(130, "/tmp")]
        assert rest == whole[:cut]
