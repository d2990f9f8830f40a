"""An unreachable store: the log continues in the ledger and is delivered later."""

import contextlib
import logging
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from oh_jupyter.config import Settings, state_home
from oh_jupyter.errors import StorageError, StoreAccessError
from oh_jupyter.events import MessageAction
from oh_jupyter.events.stream import EventStream
from oh_jupyter.runtime import Runtime
from oh_jupyter.state.ledger import Ledger
from oh_jupyter.state.shared import open_ledger
from oh_jupyter.storage import FileStore, InMemoryFileStore, LocalFileStore, S3FileStore, spool
from oh_jupyter.storage.pending_files import PendingFiles
from oh_jupyter.storage.spool import SpoolingFileStore, spool_while_unreachable
from oh_jupyter.testing import FileStoreContract, wait_until


class Absent(InMemoryFileStore):
    """A store that can be switched off."""

    away = True
    hanging = None

    def __repr__(self):
        return f"Absent({id(self)})"

    def _reach(self):
        if self.hanging is not None:
            self.hanging.wait(30)
        if self.away:
            raise StoreAccessError("The server cannot be reached.")

    def create(self, path, contents):
        self._reach()
        super().create(path, contents)

    def write(self, path, contents):
        self._reach()
        super().write(path, contents)

    def list(self, path):
        self._reach()
        return super().list(path)

    def info(self, path):
        self._reach()
        return super().info(path)

    def read_bytes(self, path):
        self._reach()
        return super().read_bytes(path)


@pytest.fixture(autouse=True)
def _soon(monkeypatch, tmp_path):
    monkeypatch.setattr(spool, "_FIRST_PAUSE_SECONDS", 0.02)
    monkeypatch.setattr(spool, "_MAX_PAUSE_SECONDS", 0.1)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def test_without_threads_pending_files_wait_for_the_next_start(monkeypatch):
    def refuse(*args):
        raise RuntimeError("can't create new thread at interpreter shutdown")

    server = Absent()
    with monkeypatch.context() as at_exit:
        at_exit.setattr("oh_jupyter.background.start_thread", refuse)
        store = SpoolingFileStore(server, "spool")
        assert store.list("") == []
        store.write("f", "x")
        assert store.read("f") == "x"
    server.away = False
    following = SpoolingFileStore(server, "spool")
    wait_until(lambda: not following.pending())
    assert server.read("f") == "x"


def test_a_log_written_during_an_outage_is_delivered(caplog):
    server = Absent()
    store = SpoolingFileStore(server, "spool")
    events = EventStream(store, "s")
    for n in range(12):
        events.add_event(MessageAction(f"{n}"), "user")
    events.flush()
    assert len(events.search()) == 12
    assert server.files == {}
    assert caplog.text.count("are kept in") == 1
    server.away = False
    wait_until(lambda: not store.pending())
    assert len([path for path in server.files if path.startswith("sessions/s/events/")]) == 12
    assert len(events.search()) == 12
    events.add_event(MessageAction("12"), "user")
    events.flush()
    assert "sessions/s/events/12.json" in server.files
    assert "is back, and has" in caplog.text
    events.close()


def test_delivered_files_are_listed_during_delivery():
    listed = []

    class Observed(Absent):
        def create(self, path, contents):
            super().create(path, contents)
            listed.append(store.list("d"))

    server = Observed()
    store = SpoolingFileStore(server, "spool")
    paths = ["d/0", "d/1", "d/2"]
    for path in paths:
        store.create(path, "x")
    server.away = False
    wait_until(lambda: not store.pending())
    assert listed == [paths] * 3
    assert store.list("d") == paths


def test_a_store_is_not_back_before_it_answers(caplog):
    server = Absent()
    store = SpoolingFileStore(server, "spool")
    assert store.list("d") == []
    assert not store.pending()
    assert not store.deliver()
    is_back = f"{server!r} is back, and has"  # not the store of another test, whose thread ends
    assert is_back not in caplog.text
    server.away = False
    wait_until(lambda: is_back in caplog.text)


def test_the_next_process_delivers_pending_files():
    server = Absent()
    store = SpoolingFileStore(server, "spool")
    store.create("sessions/s/0.json", "x")
    assert store.list("sessions/s") == ["sessions/s/0.json"]
    assert store.read("sessions/s/0.json") == "x"
    server = Absent()
    server.away = False
    again = SpoolingFileStore(server, "spool")
    wait_until(lambda: server.files == {"sessions/s/0.json": "x"})
    wait_until(lambda: not again.pending())


def test_a_file_that_the_store_has_meanwhile_is_not_replaced(caplog):
    server = Absent()
    store = SpoolingFileStore(server, "spool")
    store.create("a", "ours")
    store.create("b", "ours")
    server.files["a"] = "theirs"
    server.away = False
    wait_until(lambda: server.files == {"a": "theirs", "b": "ours"})
    wait_until(lambda: "another file" in caplog.text)
    assert (store.pending(), store.read("a")) == (["a"], "ours")


def test_a_file_that_is_rewritten_while_it_is_sent_is_sent_again():
    class Observed(Absent):
        def create(self, path, contents):
            super().create(path, contents)
            store.write(path, "newer")

    server = Observed()
    store = SpoolingFileStore(server, "spool")
    store.create("a", "older")
    server.away = False
    wait_until(lambda: server.files == {"a": "newer"})
    wait_until(lambda: not store.pending())
    assert store.read("a") == "newer"


def test_a_version_that_arrived_although_its_sending_failed_is_replaced():
    class Unanswering(Absent):
        is_silent = True

        def create(self, path, contents):
            super().create(path, contents)
            if self.is_silent:
                raise StoreAccessError("The answer is lost.")

    server = Unanswering()
    store = SpoolingFileStore(server, "spool")
    store.create("a", "older")
    server.away = False
    wait_until(lambda: server.files == {"a": "older"})
    server.is_silent = False
    store.write("a", "newer")
    wait_until(lambda: server.files == {"a": "newer"})
    wait_until(lambda: not store.pending())


def test_the_last_of_several_writes_is_delivered_and_the_order_is_theirs():
    server = Absent()
    store = SpoolingFileStore(server, "spool")
    for path, contents in (("a", "1"), ("b", "1"), ("a", "2")):
        store.write(path, contents)
    assert store.pending() == ["b", "a"]
    with pytest.raises(FileExistsError):
        store.create("a", "3")
    server.away = False
    wait_until(lambda: not store.pending())
    assert list(server.files.items()) == [("b", "1"), ("a", "2")]


def test_a_deleted_file_is_not_delivered():
    server = Absent()
    store = SpoolingFileStore(server, "spool")
    store.write("d/a", "x")
    store.write("d/b", "x" * 100_000)
    store.write("e", "x")
    server.away = False
    store.delete("d")
    wait_until(lambda: not store.pending())
    assert server.files == {"e": "x"}
    assert not [*Path(state_home(), "ledger.db-contents").iterdir()]


def test_large_contents_are_files_until_they_are_delivered(caplog):
    server = Absent()
    store = SpoolingFileStore(server, "spool")
    large = {"a": "x" * 100_000, "b": "y" * 100_000}
    for path, contents in large.items():
        store.write(path, "z" * 200_000)
        store.write(path, contents)
    files = [*Path(state_home(), "ledger.db-contents").iterdir()]
    assert [file.stat().st_size for file in files] == [100_000, 100_000]
    assert store.read_many(["a", "b"]) == {path: large[path].encode() for path in large}
    server.away = False
    wait_until(lambda: server.files == large)
    wait_until(lambda: not [*Path(state_home(), "ledger.db-contents").iterdir()])


def test_lost_contents_hold_up_no_other_file(caplog):
    server = Absent()
    store = SpoolingFileStore(server, "spool")
    store.write("a", "x" * 100_000)
    store.write("b", "x")
    (large,) = Path(state_home(), "ledger.db-contents").iterdir()
    large.unlink()
    server.away = False
    wait_until(lambda: server.files == {"b": "x"})
    wait_until(lambda: "has lost the contents" in caplog.text)
    assert store.pending() == ["a"]
    with pytest.raises(FileNotFoundError):
        store.read("a")
    store.delete("a")
    assert not store.pending()


def test_orphans_are_discarded_when_the_store_is_back():
    server = Absent()
    orphan = Path(state_home(), "ledger.db-contents", "0" * 32)
    orphan.parent.mkdir(parents=True)
    orphan.write_text("x")
    os.utime(orphan, (0, 0))
    store = SpoolingFileStore(server, "spool")
    assert store.list("") == []
    server.away = False
    wait_until(lambda: not orphan.exists())


def test_stores_with_other_names_have_their_own_files():
    server = Absent()
    store = SpoolingFileStore(server, "spool")
    store.write("a", "x")
    other = SpoolingFileStore(Absent(), "other")
    assert other.pending() == []
    other.write("a", "y")
    other.delete("")
    assert (other.pending(), store.pending()) == ([], ["a"])


SENDER = """
import signal, sys, time
from oh_jupyter.storage import InMemoryFileStore
from oh_jupyter.storage.spool import SpoolingFileStore

class Server(InMemoryFileStore):
    def create(self, path, contents):
        print("sends", path, flush=True)
        time.sleep(600)

SpoolingFileStore(Server(), "spool").deliver()
"""


def test_one_process_sends_until_it_is_killed(monkeypatch):
    server = Absent()
    with monkeypatch.context() as paused:
        paused.setattr(spool, "_FIRST_PAUSE_SECONDS", 600)
        store = SpoolingFileStore(server, "spool")
        store.write("a", "x")
        store.write("b", "x")
        server.away = False
        command = [sys.executable, "-c", SENDER]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as sender:
            assert sender.stdout is not None
            assert sender.stdout.readline() == "sends a\n"
            assert not store.deliver()
            assert server.files == {}
            store.write("a", "y")
            assert not store.deliver(), "the version that replaces it is reserved as well"
            assert server.files == {}
            sender.kill()
        assert store.pending() == ["b", "a"]
        assert store.deliver()
    assert server.files == {"b": "x", "a": "y"}


WRITER = """
import sys
from oh_jupyter.errors import StoreAccessError
from oh_jupyter.storage import InMemoryFileStore
from oh_jupyter.storage.spool import SpoolingFileStore

class Server(InMemoryFileStore):
    def create(self, path, contents):
        raise StoreAccessError("The server cannot be reached.")

store = SpoolingFileStore(Server(), "spool")
for n in range(1_000_000):
    store.create(f"{sys.argv[1]}/{n}", f"{n} " * (30_000 if n % 5 == 4 else 3))
    print(n, flush=True)
"""


def test_what_killed_processes_have_written_is_delivered():
    command = [sys.executable, "-c", WRITER]
    writers = [
        subprocess.Popen([*command, name], stdout=subprocess.PIPE, text=True) for name in "ab"
    ]
    for writer in writers:
        assert writer.stdout is not None
        while int(writer.stdout.readline()) < 12:
            pass
        writer.kill()
    written = [len(writer.communicate()[0].splitlines()) + 13 for writer in writers]
    server = Absent()
    server.away = False
    store = SpoolingFileStore(server, "spool")
    wait_until(lambda: not store.pending())
    for name, count in zip("ab", written, strict=True):
        numbers = [int(path[2:]) for path in server.files if path.startswith(name)]
        assert numbers == [*range(len(numbers))]
        assert len(numbers) >= count
    assert all(
        contents == f"{n} " * (30_000 if n % 5 == 4 else 3)
        for path, contents in server.files.items()
        for n in [int(path[2:])]
    )


def test_an_unusable_ledger_is_an_error_in_one_line():
    path = open_ledger().path
    path.mkdir(parents=True)
    remote = FileStore()
    assert spool_while_unreachable(remote) is remote
    path.rmdir()
    store = SpoolingFileStore(Absent(), "spool")
    path.mkdir()
    with pytest.raises(StorageError, match="wait for their store cannot be") as caught:
        store.write("a", "x")
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)


def test_a_store_is_read_while_another_process_holds_the_ledger():
    server = Absent()
    store = SpoolingFileStore(server, "spool")
    store.write("a", "x")
    is_held, is_read = threading.Event(), threading.Event()

    def hold():
        with Ledger(open_ledger().path).transaction():
            is_held.set()
            is_read.wait(30)

    holder = threading.Thread(target=hold)
    holder.start()
    writer = threading.Thread(target=store.write, args=("b", "x"))
    try:
        assert is_held.wait(30)
        writer.start()
        again = SpoolingFileStore(server, "spool")
        assert (store.read("a"), store.list(""), store.exists("b")) == ("x", ["a"], False)
        assert (again.read("a"), again.list(""), again.pending()) == ("x", ["a"], ["a"])
        assert writer.is_alive()
    finally:
        is_read.set()
        holder.join()
        writer.join()
    assert store.read("b") == "x"


class TestPendingFiles(FileStoreContract):
    @pytest.fixture
    def store(self):
        return PendingFiles("spool")


def test_a_store_that_hangs_is_not_waited_for(monkeypatch, caplog):
    monkeypatch.setattr(spool, "_RESPONSE_SECONDS", 0.1)
    server = Absent()
    server.hanging = hanging = threading.Event()
    store = SpoolingFileStore(server, "spool")
    assert store.list("d") == []
    store.create("d/f", "x")
    assert store.exists("d/f")
    assert not store.exists("d/g")
    assert not hanging.is_set()
    assert "did not answer" in caplog.text
    hanging.set()


def test_a_failed_delivery_is_retried(monkeypatch, caplog):
    server = Absent()
    store = SpoolingFileStore(server, "spool")
    failing = [OSError("no space left"), ValueError("a fault of a backend")]

    def create(path, contents):
        if failing:
            raise failing.pop()
        create_here(path, contents)

    store.create("a", "x")
    create_here = server.create
    monkeypatch.setattr(server, "create", create)
    server.away = False
    wait_until(lambda: server.files == {"a": "x"})
    assert "is tried again" in caplog.text
    assert "no space left" in caplog.text


def test_an_unused_store_is_not_asked(monkeypatch):
    # pytest keeps what is logged: an error, in whose traceback the store is.
    monkeypatch.setattr(logging.getLogger(spool.__name__), "disabled", True)
    monkeypatch.setattr(spool, "_FIRST_PAUSE_SECONDS", 600)
    store = SpoolingFileStore(Absent(), "spool")
    store.create("a", "x")
    thread = store._thread
    assert thread is not None
    del store
    wait_until(lambda: not thread.is_alive())


def test_stores_of_this_machine_need_none(tmp_path):
    for store in (LocalFileStore(str(tmp_path)), InMemoryFileStore()):
        assert spool_while_unreachable(store) is store


@pytest.mark.thorough
def test_the_runtime_starts_while_s3_is_down(
    tmp_path, s3_server, s3_environment, monkeypatch, caplog
):
    with socket.create_server(("127.0.0.1", 0)) as unused:
        address = f"127.0.0.1:{unused.getsockname()[1]}"
    monkeypatch.setenv("AWS_S3_ENDPOINT", address)
    runtime = Runtime(Settings(file_store="s3", file_store_path=f"bucket/{tmp_path.name}"))
    with contextlib.closing(runtime):
        runtime.events.add_event(MessageAction("hello"), "user")
        runtime.events.flush()
        assert caplog.text.count("are kept in") == 1
    monkeypatch.setenv("AWS_S3_ENDPOINT", s3_server)
    server = S3FileStore(f"bucket/{tmp_path.name}")
    pending_store = spool_while_unreachable(server)
    wait_until(lambda: server.exists("sessions"))
    wait_until(lambda: not pending_store.pending())
    (session,) = server.list("sessions")
    assert server.exists(f"{session}events/0.json")
    server.delete("")
