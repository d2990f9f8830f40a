"""The log of processes that start and end."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from collections.abc import Iterator

import pytest

from oh_jupyter.checkpoints import process_log as module
from oh_jupyter.checkpoints.process_log import ProcessLog
from oh_jupyter.checkpoints.writers import descendants, lineage


@pytest.fixture
def log() -> Iterator[ProcessLog]:
    try:
        made = ProcessLog()
    except OSError as error:
        pytest.skip(f"no log of processes here: {error}")
    made.switch(True)
    yield made
    made.close()


def run(script: str) -> list[int]:
    """Run a shell, which prints the ids of its processes."""
    return [int(line) for line in subprocess.check_output(["sh", "-c", script]).split()]


def test_a_process_that_has_ended_has_its_ancestors(log: ProcessLog) -> None:
    outer, inner = run("echo $$; sh -c 'echo $$'; true")
    log.read()
    assert lineage(inner, log) >= {inner, outer, os.getpid()}
    assert log.running().isdisjoint({inner, outer})


def test_a_process_from_before_the_log_is_by_itself(log: ProcessLog) -> None:
    log.switch(False)
    (before,) = run("echo $$")
    log.switch(True)
    assert lineage(before, log) == {before}
    log.switch(False)
    assert lineage(before, log) == frozenset()


def test_a_process_whose_parent_has_ended_is_still_a_descendant(log: ProcessLog) -> None:
    (daemon,) = run("(setsid sleep 600 > /dev/null & echo $!)")
    try:
        log.read()
        assert daemon in descendants(os.getpid(), (), log)
        assert daemon not in descendants(os.getpid(), [daemon], log)
    finally:
        os.kill(daemon, 9)


def test_losses_are_reported(log: ProcessLog) -> None:
    """More than the buffers hold, read too late."""
    records = module._BUFFER_BYTES // module._RECORD_BYTES * len(log.fds)
    script = f"i=0; while [ $i -lt {records} ]; do (:); i=$((i + 1)); done; echo $$"
    (shell,) = run(script)
    log.read()
    assert not log.is_complete
    (later,) = run("echo $$")
    log.read()
    assert lineage(later, log) >= {later, os.getpid()}
    assert shell > 0


def test_it_wakes_its_reader_before_the_buffers_are_full(log: ProcessLog) -> None:
    waiting = select.epoll()
    for fd in log.fds:
        waiting.register(fd, select.EPOLLIN)
    assert not waiting.poll(0)
    records = module._WAKE_BYTES // module._RECORD_BYTES * len(log.fds)
    run(f"i=0; while [ $i -lt {records} ]; do (:); i=$((i + 1)); done")
    assert waiting.poll(10)
    log.read()
    assert log.is_complete
    waiting.close()


def test_processes_that_have_ended_are_forgotten_and_their_descendants_are_not(
    log: ProcessLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_PROCESSES", 20)
    (daemon,) = run("(setsid sleep 600 > /dev/null & echo $!)")
    try:
        for _ in range(5):
            run("i=0; while [ $i -lt 50 ]; do (:); i=$((i + 1)); done")
            log.read()
            log.forget_ended()
        assert len(log._parents) < 150
        assert os.getpid() in lineage(daemon, log)
    finally:
        os.kill(daemon, 9)


def test_a_fork_of_its_process_does_not_touch_it(log: ProcessLog) -> None:
    child = os.fork()
    if not child:
        status = 1
        try:
            log.read()
            log.close()
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    (shell,) = run("echo $$")
    log.read()
    assert lineage(shell, log) >= {shell, os.getpid()}


def test_it_ends_with_the_process_that_forgot_it() -> None:
    script = (
        "from oh_jupyter.checkpoints.process_log import ProcessLog\n"
        "try:\n    log = ProcessLog()\nexcept OSError:\n    log = None\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_a_closed_log_reads_nothing(log: ProcessLog) -> None:
    log.close()
    log.close()
    log.read()
    assert log.fds == []
