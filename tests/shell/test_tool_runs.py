"""Commands as agents' tools run them: scripts, endless output, long output, full screens."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from oh_jupyter.events import CmdOutputObservation, CmdRunAction, ErrorObservation
from oh_jupyter.shell import BashSession

REPORT_SECONDS = 1.0


class ToolShell:
    """A shell, its runs with the options of a tool, and the files of its long outputs."""

    def __init__(self, directory: Path, home: Path) -> None:
        self.files: list[str] = []
        self.session = BashSession(
            directory,
            env={**os.environ, "HOME": str(home)},
            keep_output=self._keep,
        )

    def _keep(self, text: str) -> str:
        self.files.append(text)
        return f"/kept/{len(self.files) - 1}"

    def run(self, command: str, **options: Any) -> CmdOutputObservation:
        report_after = options.pop("report_after", REPORT_SECONDS)
        action = CmdRunAction(
            command, script=True, report_after=report_after, keep_output=True, **options
        )
        reply = self.session.execute(action)
        assert isinstance(reply, CmdOutputObservation), reply
        return reply


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


@pytest.fixture
def shell(tmp_path: Path, home: Path) -> Iterator[ToolShell]:
    shell = ToolShell(tmp_path, home)
    with shell.session:
        yield shell


SCRIPTS = {
    "two lines": ("a=1\necho $a", "1"),
    "comment first": ("# begin\ncd /\npwd", "/"),
    "here-document": ("cat > x.py <<'END'\nprint(6 * 7)\nEND\npython3 x.py", "42"),
    "function": ('f() {\n  echo "in $1"\n}\nf here\nf there', "in here\nin there"),
    "loop and empty lines": ("\nfor i in 1 2\ndo echo $i\ndone\n\n\necho end\n", "1\n2\nend"),
    "continued line": ("echo one \\\n  two\necho three", "one two\nthree"),
    "quoted lines": ("echo 'a\nb'\necho c", "a\nb\nc"),
    "background": ("true &\nwait\necho done", "done"),
}


@pytest.mark.parametrize("name", SCRIPTS)
@pytest.mark.parametrize("is_static", [False, True])
def test_lines_run_as_one_script(shell: ToolShell, name: str, is_static: bool) -> None:
    script, shown = SCRIPTS[name]
    reply = shell.run(script, is_static=is_static, report_after=60.0)
    assert reply.content.endswith(shown)
    assert reply.exit_code == 0


def test_a_script_changes_the_shell_and_has_the_status_of_its_last_line(shell: ToolShell) -> None:
    assert shell.run("cd /\nexport KEPT=1\nfalse").exit_code == 1
    assert shell.run("pwd\necho $KEPT").content == "/\n1"
    assert shell.run("true\n)").exit_code == 2  # a syntax error
    assert shell.run("echo still\necho here").content == "still\nhere"
    rejected = shell.session.execute(CmdRunAction("cd /tmp\npwd"))
    assert isinstance(rejected, ErrorObservation)  # in the protocol
    assert "Cannot execute multiple commands at once" in rejected.content


def test_a_script_is_interrupted_as_a_whole(shell: ToolShell) -> None:
    started = shell.run("echo started\nsleep 1000\necho never")
    assert (started.exit_code, started.content) == (-1, "started")
    ended = shell.run("C-c", is_input=True, report_after=60.0)
    assert ended.exit_code == 130
    assert "never" not in ended.content


ENDLESS = "while true; do echo tick; sleep 0.02; done"


def test_a_command_that_prints_without_end_is_reported(shell: ToolShell) -> None:
    begin = time.monotonic()
    reply = shell.run(ENDLESS)
    assert time.monotonic() - begin < 9  # before the limit without output
    assert reply.exit_code == -1
    assert "tick" in reply.content
    assert f'The command "{ENDLESS}" is still running after 1 seconds' in reply.metadata.suffix
    more = shell.run("")
    assert "tick" in more.content
    assert "is still running after 1 seconds" in more.metadata.suffix
    assert shell.run("C-c", is_input=True, report_after=60.0).exit_code == 130
    named = shell.run("python3 -uc '''import time\nwhile True:\n print(1); time.sleep(.01)'''")
    assert " -uc import time while True: print(1)" in named.metadata.suffix
    assert shell.run("C-c", is_input=True, report_after=60.0).exit_code != -1


def test_a_limit_of_the_caller_holds_instead(shell: ToolShell) -> None:
    timed_out = shell.run(ENDLESS, timeout=1.5)
    assert "The command timed out after 1.5 seconds" in timed_out.metadata.suffix
    assert shell.run("C-c", is_input=True, report_after=60.0).exit_code == 130
    waited = shell.run("for i in $(seq 100); do echo $i; sleep 0.02; done", blocking=True)
    assert waited.exit_code == 0


def test_a_static_command_reports_that_it_was_stopped(shell: ToolShell) -> None:
    reply = shell.run(ENDLESS, is_static=True)
    assert "was stopped after 1 seconds: a static command ends with its call" in (
        reply.metadata.suffix
    )


@pytest.mark.parametrize(("count", "width"), [(9000, 1), (30_000, 1), (300, 1000), (1, 70_000)])
def test_the_note_on_a_long_output_is_true(shell: ToolShell, count: int, width: int) -> None:
    command = f"python3 -c 'for i in range({count}): print(str(i).rjust({width}, chr(46)))'"
    reply = shell.run(command, report_after=60.0)
    (whole,) = shell.files
    assert whole == "\n".join(str(i).rjust(width, ".") for i in range(count)).strip()
    assert "truncated" not in f"{reply.metadata.prefix}{reply.content}"
    assert len(reply.content) <= 28_000
    before, _, rest = reply.content.partition("[... ")
    note, _, end = rest.partition(" ...]\n")
    start = before if whole.startswith(before) else before.removesuffix("\n")
    assert whole.startswith(start)
    assert whole.endswith(end)
    assert f"{len(whole) - len(start) - len(end)} of {len(whole)} characters, are" in note
    assert "The whole output is in /kept/0: open parts of it with read." in note
    if count > 1:
        omitted = whole[: len(whole) - len(end)].removesuffix("\n")
        first, last = start.count("\n") + 1, omitted.count("\n") + 1
        assert f"lines {first} to {last} of {count}, " in note


def test_an_output_of_the_protocol_keeps_its_form(shell: ToolShell) -> None:
    reply = shell.session.execute(CmdRunAction("seq 9000"))
    assert "\n[... Observation truncated due to length ...]\n" in reply.content
    assert shell.files == []
    shell.run("seq 20000; read x")
    reply = shell.session.execute(CmdRunAction("y", is_input=True))
    assert shell.run("echo next").content == "next"


def test_more_than_is_kept_is_counted(shell: ToolShell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("oh_jupyter.shell.output.MAX_KEPT_BYTES", 100_000)
    shell.run("seq 200000", report_after=60.0)
    (whole,) = shell.files
    assert whole.startswith("1\n2\n")
    assert whole.endswith("\n200000")
    assert "bytes were not kept" in whole


def test_a_full_screen_program_is_named(shell: ToolShell, tmp_path: Path) -> None:
    program = tmp_path / "screen_editor"
    program.write_text("#!/bin/bash\nprintf '\\033[?1049h\\033[2Jan editor'\nread -rsn1\n")
    program.chmod(0o755)
    reply = shell.run("./screen_editor")
    assert "screen_editor holds the terminal as a full-screen program" in reply.metadata.suffix
    pid = reply.metadata.suffix.partition("the static command: kill ")[2].partition(".")[0]
    assert shell.run(f"kill {pid}", is_static=True, report_after=60.0).exit_code == 0
    assert shell.run("", report_after=60.0).exit_code == 143
    silent = shell.run("printf '\\033[?1049hx\\033[?1049l'; sleep 1000")
    assert "full-screen" not in silent.metadata.suffix


def test_no_editor_waits_for_keys(shell: ToolShell) -> None:
    assert shell.run("echo $GIT_EDITOR $EDITOR $VISUAL").content == "true true true"
    made = shell.run(
        "git init -q repo && cd repo\ngit config user.email a@b.c\ngit config user.name a\n"
        "git config core.editor vi\ntouch x\ngit add x\ngit commit",
        report_after=60.0,
    )
    assert made.exit_code == 1
    assert "Aborting commit due to empty commit message" in made.content


RELAY = """\
import pty, termios, tty
if not {loses_keys}:  # typed before it began
    pty.setraw = lambda file: tty.setraw(file, termios.TCSANOW)
pty.spawn(["bash", "-i"])
"""


@pytest.mark.parametrize("loses_keys", [False, True])
def test_startup_files_that_end_in_another_program_are_skipped(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch, loses_keys: bool
) -> None:
    monkeypatch.setattr("oh_jupyter.shell.supervisor.START_TIMEOUT_SECONDS", 5.0)
    relay = home / "relay.py"
    relay.write_text(RELAY.format(loses_keys=loses_keys))
    (home / ".bashrc").write_text(
        f'export FROM_STARTUP=1\n[ -n "$RELAYED" ] || RELAYED=1 exec {sys.executable} {relay}\n'
    )
    fault = "took more than 5 s" if loses_keys else "start python, through which output would"
    shell = ToolShell(tmp_path, home)
    with shell.session:
        first = shell.run("seq 300; echo $FROM_STARTUP", report_after=60.0)
        assert first.content.splitlines() == [str(i) for i in range(1, 301)]
        assert f"The shell's start-up files {fault}" in first.metadata.suffix
        assert "start-up files" not in shell.run("true", report_after=60.0).metadata.suffix
