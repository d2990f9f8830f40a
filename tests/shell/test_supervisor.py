"""A shell that ends is replaced, and says so; nothing outlives the session."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import psutil
import pytest

from oh_jupyter.events import CmdRunAction
from oh_jupyter.shell import BashSession

NOTICE = "\n[The shell itself has ended. A new shell was started in "


@pytest.mark.parametrize(
    ("command", "exit_code", "content"),
    [
        ("echo last words; exit 3", 3, "last words\nexit"),
        ("kill -9 $$", 137, ""),
        ("exec sh -c 'echo other; exit 4'", 4, "other"),
        ("set -e; echo a; false; echo b", 1, "a"),
        ("trap 'echo bye' EXIT; exit", 0, "exit\nbye"),
        ("sleep 100 & exit 5", 5, None),
    ],
)
def test_shell_comes_back(run, session, command, exit_code, content):
    run("mkdir -p sub; cd sub; x=1")
    pid = session.pid
    observation = run(command)
    assert observation.exit_code == exit_code
    assert content is None or observation.content == content
    assert observation.metadata.suffix.startswith(
        f"\n[The command completed with exit code {exit_code}.]{NOTICE}{session.work_dir}/sub;"
    )
    assert session.pid != pid
    after = run('echo "<$x>"; pwd')
    assert after.content == f"<>\n{session.work_dir}/sub"
    assert NOTICE not in after.metadata.suffix


def test_end_of_input(run):
    observation = run("C-d")
    assert (observation.exit_code, observation.content) == (0, "exit")
    assert NOTICE in observation.metadata.suffix
    run("IGNOREEOF=5")
    assert NOTICE not in run("C-d").metadata.suffix


def test_shell_that_ended_between_commands(run, session):
    for _ in range(5):
        # The command comes before, or after, the news of the end: it runs in any case, and once.
        os.kill(session.pid, signal.SIGKILL)
        observation = run("echo here | tee -a file; cat file; rm file")
        assert observation.content == "here\nhere"
        assert NOTICE in observation.metadata.suffix


def test_directory_that_is_gone(run, session):
    run("mkdir sub; cd sub; rmdir ../sub")
    assert run("exit").metadata.working_dir == session.work_dir


def test_background_jobs_survive_exit_but_not_the_session(tmp_path, home):
    sleep = f"sleep 986.{os.getpid()}"
    with BashSession(tmp_path, env={**os.environ, "HOME": str(home)}) as session:
        session.execute(CmdRunAction(f"setsid {sleep} & ({sleep} &)"))
        starts = (f"{sleep} &", f"nohup {sleep} >/dev/null 2>&1 &")
        pids = [session.execute(CmdRunAction(start)).metadata.pid for start in starts]
        jobs = [psutil.Process(pid) for pid in pids]
        session.execute(CmdRunAction("exit"))
        assert all(job.is_running() for job in jobs)
        shell = psutil.Process(session.pid)
    _, alive = psutil.wait_procs([*jobs, shell], timeout=60)
    assert not alive
    names = [process.info["cmdline"] for process in psutil.process_iter(["cmdline"])]
    assert sleep.split() not in names


def test_nothing_outlives_a_killed_process(tmp_path):
    program = f"""
import sys
from oh_jupyter.events import CmdRunAction
from oh_jupyter.shell import BashSession
session = BashSession({str(tmp_path)!r}, no_change_timeout_seconds=0.2)
session.initialize()
session.execute(CmdRunAction("setsid sleep 985 & sleep 985"))
print(session.pid, flush=True)
sys.stdin.read()
"""
    parent = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    shell = psutil.Process(int(parent.stdout.readline()))
    family = [shell, *shell.parent().children(recursive=True)]
    assert len(family) >= 3
    parent.kill()
    parent.communicate()
    _, alive = psutil.wait_procs(family, timeout=60)
    assert not alive


def test_memory_limit(tmp_path, home):
    eat = f"{sys.executable} -c 'x = bytearray(300 * 1024**2); input()'"
    with BashSession(tmp_path, max_memory_mb=150, env={**os.environ, "HOME": str(home)}) as session:
        observation = session.execute(CmdRunAction(eat, blocking=True))
        assert observation.exit_code == 137
        assert "more than the limit of 150 MiB.]" in observation.metadata.suffix
        assert session.execute(CmdRunAction("echo fine")).content == "fine"


@pytest.mark.thorough
def test_much_output_in_bounded_memory(run, session):
    process = psutil.Process()
    run("head -c 20000000 /dev/zero | tr '\\0' x")
    before = process.memory_info().rss
    observation = run("yes 'a line of output' | head -c 100000000; echo end")
    assert observation.content.endswith("end")
    assert "Showing the last 11000 lines" in observation.metadata.prefix
    assert process.memory_info().rss - before < 64 * 1024**2
