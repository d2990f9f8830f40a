"""An unreachable store: the log continues on disk and is delivered later."""

import contextlib
import logging
import socket
import threading

import pytest

from oh_jupyter.config import Settings
from oh_jupyter.errors import StoreAccessError
from oh_jupyter.events import MessageAction
from oh_jupyter.events.stream import EventStream
from oh_jupyter.runtime import Runtime
from oh_jupyter.storage import InMemoryFileStore, LocalFileStore, S3FileStore, spool
from oh_jupyter.storage.spool import SpoolingFileStore, spool_while_unreachable
from oh_jupyter.testing import wait_until


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


def test_without_threads_pending_files_wait_for_the_next_start(tmp_path, monkeypatch):
    def refuse(*args):
        raise RuntimeError("can't create new thread at interpreter shutdown")

    server = Absent()
    with monkeypatch.context() as at_exit:
        at_exit.setattr("oh_jupyter.background.start_thread", refuse)
        store = SpoolingFileStore(server, str(tmp_path / "spool"))
        assert store.list("") == []
        store.write("f", "x")
        assert store.read("f") == "x"
    server.away = False
    following = SpoolingFileStore(server, str(tmp_path / "spool"))
    wait_until(lambda: not following.pending())
    assert server.read("f") == "x"


def test_a_log_written_during_an_outage_is_delivered(tmp_path, caplog):
    server = Absent()
    store = SpoolingFileStore(server, str(tmp_path / "spool"))
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


def test_delivered_files_are_listed_during_delivery(tmp_path):
    listed = []

    class Observed(Absent):
        def create(self, path, contents):
            super().create(path, contents)
            listed.append(store.list("d"))

    server = Observed()
    store = SpoolingFileStore(server, str(tmp_path / "spool"))
    paths = ["d/0", "d/1", "d/2"]
    for path in paths:
        store.create(path, "x")
    server.away = False
    wait_until(lambda: not store.pending())
    assert listed == [paths] * 3
    assert store.list("d") == paths


def test_a_store_is_not_back_before_it_answers(tmp_path, caplog):
    server = Absent()
    store = SpoolingFileStore(server, str(tmp_path / "spool"))
    assert store.list("d") == []
    assert not store.pending()
    assert not store.deliver()
    is_back = f"{server!r} is back, and has"  # not the store of another test, whose thread ends
    assert is_back not in caplog.text
    server.away = False
    wait_until(lambda: is_back in caplog.text)


def test_the_next_process_delivers_pending_files(tmp_path):
    server = Absent()
    store = SpoolingFileStore(server, str(tmp_path / "spool"))
    store.create("sessions/s/0.json", "x")
    assert store.list("sessions/s") == ["sessions/s/0.json"]
    assert store.read("sessions/s/0.json") == "x"
    server = Absent()
    server.away = False
    again = SpoolingFileStore(server, str(tmp_path / "spool"))
    wait_until(lambda: server.files == {"sessions/s/0.json": "x"})
    wait_until(lambda: not again.pending())


def test_a_file_that_the_store_has_meanwhile_is_not_replaced(tmp_path, caplog):
    server = Absent()
    store = SpoolingFileStore(server, str(tmp_path / "spool"))
    store.create("a", "ours")
    store.create("b", "ours")
    server.files["a"] = "theirs"
    server.away = False
    wait_until(lambda: server.files == {"a": "theirs", "b": "ours"})
    wait_until(lambda: "another file" in caplog.text)
    assert (tmp_path / "spool/files/a").read_text() == "ours"


def test_a_store_that_hangs_is_not_waited_for(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(spool, "_RESPONSE_SECONDS", 0.1)
    server = Absent()
    server.hanging = hanging = threading.Event()
    store = SpoolingFileStore(server, str(tmp_path / "spool"))
    assert store.list("d") == []
    store.create("d/f", "x")
    assert store.exists("d/f")
    assert not store.exists("d/g")
    assert not hanging.is_set()
    assert "did not answer" in caplog.text
    hanging.set()


def test_a_failed_delivery_is_retried(tmp_path, monkeypatch, caplog):
    server = Absent()
    store = SpoolingFileStore(server, str(tmp_path / "spool"))
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


def test_an_unused_store_is_not_asked(tmp_path, monkeypatch):
    # pytest keeps what is logged: an error, in whose traceback the store is.
    monkeypatch.setattr(logging.getLogger(spool.__name__), "disabled", True)
    monkeypatch.setattr(spool, "_FIRST_PAUSE_SECONDS", 600)
    store = SpoolingFileStore(Absent(), str(tmp_path / "spool"))
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
