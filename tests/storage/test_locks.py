"""The one lock of files: between processes, between threads, and after whatever ends its holder."""

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from oh_jupyter.exclusion import exclusive
from oh_jupyter.liveness import LifeLock, excluding
from oh_jupyter.locks import file_lock, lock_path, read_record, thread_lock

HOLDER = """
import sys
from oh_jupyter.locks import file_lock
with file_lock(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def holder(tmp_path):
    path = tmp_path / "sub" / "lock"
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout.readline() == "held\n"
        yield process, path
        process.kill()


def test_another_process_holds_it_until_it_is_killed(holder):
    process, path = holder
    for timeout_seconds in (0, 0.05):
        with pytest.raises(TimeoutError, match="not free"), file_lock(path, timeout_seconds):
            pass
    threading.Timer(0.05, process.kill).start()
    with file_lock(path, 10):
        pass


def test_one_thread_at_a_time(tmp_path):
    inside = []

    def use(worker):
        with file_lock(tmp_path / "lock", None if worker % 2 else 60):
            inside.append(worker)
            assert inside == [worker]
            inside.remove(worker)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(use, range(80)))


def test_a_lock_file_removed_by_its_holder_is_recreated(tmp_path, monkeypatch):
    path = tmp_path / "d" / "lock"
    waits = threading.Event()
    entered = threading.Event()
    sleep = time.sleep

    def notice_and_sleep(seconds):
        waits.set()
        sleep(seconds)

    def wait():
        with file_lock(path, 60) as lock:
            assert not lock.is_lost
            entered.set()

    with file_lock(path) as lock:
        monkeypatch.setattr(time, "sleep", notice_and_sleep)
        waiter = threading.Thread(target=wait)
        waiter.start()
        assert waits.wait(60)
        path.unlink()
        path.parent.rmdir()
        assert lock.is_lost
    waiter.join()
    assert entered.is_set()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform has no fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_child_does_not_keep_it(tmp_path):
    path = tmp_path / "lock"
    refused, tells = os.pipe()
    with file_lock(path):
        child = os.fork()
        if not child:
            try:
                with file_lock(path, 0):
                    os._exit(1)
            except TimeoutError:
                os.write(tells, b"refused")
                signal.pause()
        os.close(tells)
        with open(refused, "rb", buffering=0) as pipe:
            assert pipe.read(7) == b"refused"
    try:
        with file_lock(path, 60):
            pass
    finally:
        os.kill(child, signal.SIGKILL)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -9


def test_a_resource_is_used_by_one_thread_at_a_time_and_no_file_stays(tmp_path):
    inside = []

    def use(worker):
        with exclusive(tmp_path / "d" / "resource", None if worker % 2 else 60):
            inside.append(worker)
            assert inside == [worker]
            inside.remove(worker)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(use, range(80)))
    assert not [*(tmp_path / "d").iterdir()]


def test_the_next_user_reads_what_one_leaves(tmp_path):
    resource = tmp_path / "resource"
    with exclusive(resource) as exclusion:
        assert exclusion.record == b""
        exclusion.write(b"a long record")
        exclusion.is_kept = True
    assert read_record(resource) == b"a long record"
    with pytest.raises(KeyboardInterrupt), exclusive(resource, 0):
        raise KeyboardInterrupt  # before the user decides
    with exclusive(resource, 0) as exclusion:
        assert exclusion.record == b"a long record"
        exclusion.write(b"short")
        assert read_record(resource) == b"short"
        exclusion.is_kept = False
    with pytest.raises(FileNotFoundError):
        read_record(resource)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform has no fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_child_does_not_end_the_use_of_its_parent(tmp_path):
    resource = tmp_path / "resource"
    parent = os.getpid()
    try:
        with exclusive(resource):
            child = os.fork()
            if child:
                assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
                with pytest.raises(TimeoutError), exclusive(resource, 0):
                    pass
    finally:
        if os.getpid() != parent:
            os._exit(0 if os.path.exists(lock_path(resource)) else 1)


def test_a_life_ends_with_its_lock(tmp_path):
    resource = tmp_path / "d" / "process"
    life = LifeLock(resource)
    with excluding(resource) as is_free:
        assert not is_free
    with pytest.raises(TimeoutError):
        LifeLock(resource, 0.01)
    os.unlink(lock_path(resource))
    assert life.file.is_lost
    other = LifeLock(resource)
    life.close()
    with excluding(resource) as is_free:
        assert not is_free
    other.close()
    with excluding(resource) as is_free:
        assert is_free
    assert os.listdir(resource.parent) == ["process.lock"]


def test_names(monkeypatch):
    with thread_lock("a"), thread_lock("b", 0):
        started = time.monotonic()
        with ThreadPoolExecutor(1) as pool:
            tried = pool.submit(lambda: thread_lock("a", 0.01).__enter__())
            assert isinstance(tried.exception(), TimeoutError)
        assert time.monotonic() - started >= 0.01
    with thread_lock("a", 0):
        pass


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform has no fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_child_leaves_the_lock_of_a_name():
    parent, exit_code = os.getpid(), 1
    try:
        with thread_lock("a"):
            child = os.fork()
        if not child:
            with thread_lock("a", 0):
                exit_code = 0
    finally:
        if os.getpid() != parent:
            os._exit(exit_code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    with thread_lock("a", 0):
        pass
