"""Children: how they start, what they inherit, and that nothing outlives us."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest

from oh_jupyter.errors import ChildStartError, OhJupyterError
from oh_jupyter.process import PIPE, spawn
from oh_jupyter.testing import suspended

DETACHED = "setsid sleep 987 & (nohup setsid sleep 987 >/dev/null 2>&1 &) ; sleep 987 & "


def output(argv: list[str], **options: object) -> bytes:
    child = spawn(argv, stdout=PIPE, **options)  # type: ignore[arg-type]
    assert child.stdout is not None
    with child.stdout:
        text = child.stdout.read()
    assert child.wait(60) == 0
    child.terminate()
    return text


def wait_until_gone(processes: list[psutil.Process], seconds: float = 60.0) -> None:
    _, alive = psutil.wait_procs(processes, timeout=seconds)
    assert not alive, alive


def test_exit_status() -> None:
    child = spawn(["sh", "-c", "exit 7"])
    assert child.wait(60) == 7
    assert child.poll() == child.returncode == 7
    child.terminate()
    child.terminate()
    assert child.fileno() == -1


def test_end_by_signal() -> None:
    child = spawn(["sh", "-c", "kill -TERM $$"])
    assert child.wait(60) == -signal.SIGTERM
    child.terminate()


def test_environment_of_the_child(tmp_path: Path) -> None:
    env = {"NAME": "välue\n$x", "PATH": os.environ["PATH"]}
    assert output(["printenv", "NAME"], env=env) == "välue\n$x\n".encode()
    assert output(["pwd"], cwd=tmp_path).decode().strip() == str(tmp_path)
    assert output(["pwd"]).decode().strip() == os.getcwd()


def test_the_child_leads_a_session_of_its_own() -> None:
    ids = output([sys.executable, "-c", "import os; print(os.getpid(), os.getsid(0))"]).split()
    assert ids[0] == ids[1]


def test_signal_dispositions_are_the_default() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        status = output(["cat", "/proc/self/status"]).decode()
    finally:
        signal.signal(signal.SIGINT, before)
    fields = dict(line.split(":\t") for line in status.splitlines() if line.startswith("Sig"))
    # 32 and 33 are the C library's own; no program can set them.
    own = ~(1 << 31 | 1 << 32)
    assert int(fields["SigIgn"], 16) & own == int(fields["SigBlk"], 16) & own == 0


def test_no_descriptor_leaks_into_the_child() -> None:
    read_end, write_end = os.pipe()
    os.set_inheritable(write_end, True)
    listing = "import os; print(sorted(map(int, os.listdir('/proc/self/fd'))))"
    plain = eval(output([sys.executable, "-c", listing]))
    passed = eval(output([sys.executable, "-c", listing], pass_fds=[write_end]))
    os.close(read_end)
    os.close(write_end)
    assert plain == [0, 1, 2, 3]  # 3 is the directory that is being listed.
    assert passed == sorted({0, 1, 2, 3, write_end, *passed})
    assert write_end in passed


def test_pipes_end_with_the_child() -> None:
    child = spawn(["cat"], stdin=PIPE, stdout=PIPE)
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdin.write(b"through")
    child.stdin.close()
    assert child.stdout.read() == b"through"
    child.stdout.close()
    assert child.wait(60) == 0
    child.terminate()


def test_controlling_terminal() -> None:
    master, slave = os.openpty()
    child = spawn(
        ["sh", "-c", "exec 2>/dev/null; echo through >/dev/tty; read x </dev/tty; exit 5"],
        controlling_terminal=slave,
    )
    assert os.read(master, 100) == b"through\r\n"
    os.write(master, b"go\n")
    assert child.wait(60) == 5
    child.terminate()
    os.close(master)
    os.close(slave)


def test_terminate_ends_every_descendant() -> None:
    stubborn = "trap '' TERM HUP; echo; while :; do sleep 0.05; done"
    child = spawn(["bash", "-c", DETACHED + stubborn], stdout=PIPE)
    assert child.stdout is not None
    child.stdout.readline()
    below = psutil.Process(psutil.Process(child.pid).ppid()).children(recursive=True)
    assert len(below) >= 3
    assert child.memory_bytes() > 0
    child.terminate(grace=0.2)
    child.stdout.close()
    assert child.returncode == -signal.SIGKILL
    wait_until_gone(below, 0)
    assert child.memory_bytes() == 0


@pytest.mark.skipif(sys.platform == "win32", reason="guardians are for POSIX systems")
def test_two_requests_to_end_that_arrive_together_leave_nothing() -> None:
    child = spawn(["bash", "-c", DETACHED + "echo; sleep 1000"], stdout=PIPE)
    assert child.stdout is not None
    child.stdout.readline()
    guardian = psutil.Process(psutil.Process(child.pid).ppid())
    below = guardian.children(recursive=True)
    with suspended(guardian):
        child.begin_termination(0.2)
        child.begin_termination(0.2)
    child.terminate(0.2)
    child.stdout.close()
    wait_until_gone(below)


def test_a_child_may_end_before_its_grace() -> None:
    script = "trap 'echo bye; exit 0' TERM; echo; while :; do sleep 0.02; done"
    child = spawn(["bash", "-c", script], stdout=PIPE)
    assert child.stdout is not None
    child.stdout.readline()
    started = time.monotonic()
    child.terminate(grace=600)
    assert time.monotonic() - started < 60
    assert child.stdout.read() == b"bye\n"
    child.stdout.close()
    assert child.returncode == 0


@pytest.mark.parametrize(
    "end", ["kill", *(pytest.param(end, marks=pytest.mark.thorough) for end in ("clean", "crash"))]
)
def test_nothing_outlives_the_parent(end: str) -> None:
    """Also with a forked process that holds copies of our descriptors."""
    parent = subprocess.Popen(
        [
            sys.executable,
            "-c",
            f"""
import os, resource, signal, sys, threading
from oh_jupyter.process import PIPE, spawn
children = []
def start():
    children.append(spawn(["bash", "-c", {DETACHED!r} + "echo; wait"], stdout=PIPE))
thread = threading.Thread(target=start)  # ends long before its child
thread.start()
thread.join()
children[0].stdout.readline()
fork = os.fork()
if fork == 0:
    signal.pause()
print(children[0].pid, fork, flush=True)
sys.stdin.readline()
if {end!r} == "crash":
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.abort()
""",
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert parent.stdin is not None
    assert parent.stdout is not None
    pid, fork = map(int, parent.stdout.readline().split())
    guardian = psutil.Process(pid).parent()
    assert guardian is not None
    everything = [guardian, *guardian.children(recursive=True)]
    assert len(everything) >= 4
    if end == "kill":
        parent.kill()
    else:
        parent.stdin.write(b"\n")
        parent.stdin.flush()
    parent.wait(60)
    wait_until_gone(everything)
    os.kill(fork, signal.SIGKILL)
    parent.stdin.close()
    parent.stdout.close()


def test_a_stopped_child_is_resumed_on_request() -> None:
    child = spawn(["sh", "-c", "kill -STOP $$; exit 3"], resume=True)
    assert child.wait(60) == 3
    child.terminate()
    child = spawn(["sh", "-c", "kill -STOP $$; exit 3"])
    with pytest.raises(TimeoutError):
        child.wait(0.2)
    child.terminate()


def test_a_killed_guardian_takes_the_child_along() -> None:
    child = spawn(["sleep", "987"])
    process = psutil.Process(child.pid)
    guardian = process.parent()
    assert guardian is not None
    guardian.kill()
    assert child.wait(60) == -signal.SIGKILL
    wait_until_gone([process])
    child.terminate()


def test_descendants_live_on_after_the_child() -> None:
    child = spawn(["bash", "-c", "setsid sleep 987 & echo $!"], stdout=PIPE)
    assert child.stdout is not None
    pid = int(child.stdout.readline())
    assert child.wait(60) == 0
    detached = psutil.Process(pid)
    child.terminate(grace=1)
    child.stdout.close()
    wait_until_gone([detached], 0)


def test_waiting_in_several_threads() -> None:
    child = spawn(["cat"], stdin=PIPE)
    assert child.stdin is not None
    with pytest.raises(TimeoutError):
        child.wait(0.05)
    results: list[int] = []
    threads = [threading.Thread(target=lambda: results.append(child.wait(60))) for _ in range(4)]
    for thread in threads:
        thread.start()
    assert child.poll() is None
    child.stdin.close()
    for thread in threads:
        thread.join(60)
    assert results == [0] * 4
    child.terminate()


def test_news_for_an_event_loop() -> None:
    child = spawn(["cat"], stdin=PIPE)
    assert child.stdin is not None
    assert select.select([child], [], [], 0)[0] == []
    child.stdin.close()
    assert select.select([child], [], [], 10)[0] == [child]
    assert child.poll() == 0 or child.wait(60) == 0
    child.begin_termination()
    child.terminate()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"argv": ["no-such-program"]}, "no-such-program"),
        ({"argv": ["true"], "cwd": "/nowhere"}, "/nowhere"),
        ({"argv": ["/etc/passwd"]}, "Permission denied"),
        ({"argv": ["true"], "user": "nobody-of-that-name"}, "no user"),
        ({"argv": ["true"], "env": {"PATH": "/nowhere"}}, "No such file"),
    ],
)
def test_errors(options: dict[str, object], words: str) -> None:
    with pytest.raises(ChildStartError, match=words) as caught:
        spawn(**options)  # type: ignore[arg-type]
    assert isinstance(caught.value, OhJupyterError)


@pytest.mark.thorough
def test_other_user() -> None:
    if os.geteuid() != 0:
        pytest.skip("only root may switch users")
    assert output(["id", "-un"], user="nobody") == b"nobody\n"
