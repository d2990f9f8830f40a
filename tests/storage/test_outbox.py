"""Pending changes survive the end of the process."""

import base64
import hashlib
import hmac
import itertools
import json
import os
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import psutil
import pytest

from oh_jupyter.errors import StorageError, StoreConfigError
from oh_jupyter.storage import (
    BatchedWebHookFileStore,
    DeliveryReport,
    FailedDelivery,
    InMemoryFileStore,
    LocalFileStore,
    WebHookFileStore,
    get_file_store,
)
from oh_jupyter.storage.webhook import dispatcher
from oh_jupyter.storage.webhook.changes import Change
from oh_jupyter.storage.webhook.outbox import Outbox
from oh_jupyter.storage.webhook.scheduler import PathBarrier, RetryPolicy
from oh_jupyter.testing import wait_until


@pytest.fixture
def outbox(tmp_path):
    return str(tmp_path / "outbox")


def contents(receiver):
    """Return the receiver's final state of each path."""
    known = {}
    for request in receiver.requests:
        if request.path == "/hook/" and request.method == "POST":
            changes = [(c["method"], c["path"], c.get("content")) for c in json.loads(request.body)]
        else:
            path = request.path.removeprefix("/hook/")
            changes = [(request.method, path, request.body.decode())]
        for method, path, text in changes:
            if method == "POST":
                known[path] = text
            else:
                for name in list(known):
                    if name == path or name.startswith(path + "/"):
                        del known[name]
    return known


PROGRAM = """
import os, signal, sys
from oh_jupyter.storage import *
kind, url, outbox, root, end = sys.argv[1:]
from oh_jupyter.storage.webhook import dispatcher
dispatcher.DURABLE_SECONDS = 0.5
if end == "handled term":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
store = globals()[kind](LocalFileStore(root), url, outbox=outbox or None)
for n in range(20):
    store.write(f"d{n % 4}/f", f"{end} {n}")
print("written", flush=True)
if end == "kill":
    os.kill(os.getpid(), signal.SIGKILL)
if end.endswith("term"):
    os.kill(os.getpid(), signal.SIGTERM)
    signal.pause()
if end == "exception":
    raise RuntimeError
if end == "loop":
    n = 0
    while True:
        store.write(f"loop/{n % 3}", str(n))
        n += 1
"""


def run(kind, url, outbox, root, end):
    command = [sys.executable, "-c", PROGRAM, kind.__name__, url, outbox, str(root), end]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize("end", ["kill", "term", "exception", "normal"])
def test_the_next_start_delivers_changes_of_a_dead_process(
    receiver, kind, outbox, tmp_path, make, end
):
    receiver.gate.clear()  # it takes requests, and never answers
    process = run(kind, receiver.url, outbox, tmp_path / "root", end)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == {"kill": -9, "term": -15, "exception": 1, "normal": 0}[end], errors
    receiver.gate.set()
    receiver.requests.clear()
    again = make(kind, store=LocalFileStore(str(tmp_path / "root")), outbox=outbox)
    assert again.flush().failed == ()
    assert contents(receiver) == {f"d{n % 4}/f": f"{end} {n}" for n in range(16, 20)}
    assert again.flush().pending == 0


def test_changes_of_a_process_killed_at_any_time_are_reported(
    receiver, kind, outbox, tmp_path, make
):
    root = tmp_path / "root"
    store = LocalFileStore(str(root))
    for enough in (3, 40, 111):
        process = run(kind, receiver.url, outbox, root, "loop")
        assert process.stdout.readline()
        wait_until(
            lambda enough=enough: store.exists("loop/0") and int(store.read("loop/0")) > enough
        )
        process.kill()
        process.communicate()
        again = make(kind, store=store, outbox=outbox)
        assert again.flush().failed == ()
        known = contents(receiver)
        for path in store.list("loop"):
            # One change may have been recorded, and not have come to the store.
            assert int(known[path]) - int(store.read(path)) in (0, 3)
        again.close()
        store.delete("loop")


@pytest.mark.parametrize("end", ["handled term", "exception", "normal"])
def test_without_an_outbox_a_process_sends_before_it_ends(receiver, kind, tmp_path, end):
    process = run(kind, receiver.url, "", tmp_path, end)
    process.communicate(timeout=60)
    assert process.returncode == {"handled term": 143, "exception": 1, "normal": 0}[end]
    assert contents(receiver) == {f"d{n % 4}/f": f"{end} {n}" for n in range(16, 20)}


def test_a_store_installs_no_signal_handler(make):
    handlers = {number: signal.getsignal(number) for number in signal.valid_signals()}
    store = make(WebHookFileStore)
    store.write("f", "x")
    assert store.flush().delivered == 1
    assert {number: signal.getsignal(number) for number in signal.valid_signals()} == handlers


def test_a_receiver_that_comes_back(make, receiver, quick, kind, outbox, caplog):
    receiver.refused = {"/hook/f": 503, "/hook/": 503}
    store = make(kind, outbox=outbox)
    store.write("f", "1")
    report = store.flush()
    assert (report.delivered, report.failed, report.pending) == (0, (), 1)
    (letter,) = store.deliveries()
    assert (letter.path, letter.state, letter.reason) == ("f", "waiting", "HTTP status 503")
    assert letter.attempts >= 3
    receiver.refused = {}
    wait_until(lambda: not store.deliveries())
    assert len(receiver.requests) > 3
    assert store.flush().delivered == 1
    assert len({request.headers["webhook-id"] for request in receiver.requests}) == 1
    assert "kept for later" in caplog.text


def test_the_pauses_grow_and_are_not_all_the_same():
    retry_policy = RetryPolicy(durable=True)
    pauses = [retry_policy.backoff(rounds) for rounds in range(1, 12)]
    assert 4 <= pauses[0] <= 6
    assert all(later > 1.5 * sooner for sooner, later in itertools.pairwise(pauses[:3]))
    assert max(pauses) <= 120
    assert retry_policy.backoff(3) != retry_policy.backoff(3)


@pytest.mark.thorough
def test_a_receiver_that_asks_for_time_gets_it(make, receiver, outbox):
    receiver.answers = [(429, {"Retry-After": "2"})]
    store = make(WebHookFileStore, outbox=outbox)
    store.write("a", "1")
    wait_until(lambda: store.deliveries()[0].attempts == 1)
    store.write("b", "2")  # another path, the same receiver
    store.flush()
    wait_until(lambda: len(receiver.requests) == 3)
    first, second, _ = (request.time for request in receiver.requests)
    assert second - first >= 1.9


def test_a_path_that_is_refused_for_now_does_not_hold_up_others(make, receiver, quick, outbox):
    receiver.refused = {"/hook/bad/f": 500}
    store = make(WebHookFileStore, outbox=outbox)
    store.write("bad/f", "1")
    store.write("good", "1")
    store.delete("bad")
    store.write("bad/g", "2")
    store.write("badly", "1")
    report = store.flush()
    assert report.pending >= 3
    paths = [path for _, path, _ in receiver.seen()]
    assert {"/good", "/badly"} <= set(paths)
    assert not {"/bad", "/bad/g"} & set(paths)
    receiver.refused = {}
    store.flush()
    assert store.flush().pending == 0
    assert contents(receiver) == {"good": "1", "bad/g": "2", "badly": "1"}


def test_of_a_path_that_is_put_off_only_the_last_state_is_sent(make, receiver, quick, outbox):
    receiver.refused = {"/hook/f": 503}
    store = make(WebHookFileStore, outbox=outbox)
    for n in range(5):
        store.write("f", str(n))
        store.write("f", f"{n} and a half")
        assert store.flush().pending == 1
    store.write("f", "4")
    receiver.refused = {}
    receiver.requests.clear()
    store.flush()
    assert receiver.seen()[-1] == ("POST", "/f", b"4")
    assert len(receiver.requests) <= 2
    assert store.flush().pending == 0


def test_dead_letters_can_be_sent_again_or_forgotten(make, receiver, quick, kind, outbox):
    receiver.answers = [(400, {}), (410, {})]
    store = make(kind, outbox=outbox)
    store.write("a", "1")
    assert store.flush().failed == (FailedDelivery("POST", "a", "HTTP status 400"),)
    store.write("b", "2")
    assert store.flush().failed[0].path == "b"
    first, second = store.deliveries()
    assert (first.state, first.path, first.size, first.attempts) == ("dead", "a", 1, 1)
    store.close()
    again = make(kind, outbox=outbox)
    assert [letter.id for letter in again.deliveries()] == [first.id, second.id]
    assert again.replay(first.id) == 1
    assert again.flush().delivered == 1
    assert contents(receiver)["a"] == "1"
    assert again.replay("nonsense") == 0
    assert again.discard() == 1
    assert again.deliveries() == []


def test_an_old_letter_does_not_put_the_receiver_back(make, receiver, quick, outbox):
    receiver.answers = [(400, {})]
    store = make(WebHookFileStore, outbox=outbox)
    store.write("d/f", "old")
    store.flush()
    assert not store.deliveries()[0].superseded
    store.delete("d")
    store.flush()
    assert store.deliveries()[0].superseded
    assert store.replay() == 0
    assert store.replay(force=True) == 1
    store.flush()
    assert contents(receiver) == {"d/f": "old"}


def test_a_repeated_batch_is_the_same_request(make, receiver, quick, outbox):
    receiver.answers = [(500, {}), (500, {})]
    store = make(BatchedWebHookFileStore, outbox=outbox)
    store.write("a", "1")
    store.write("b", "1")
    receiver.gate.clear()
    flush = threading.Thread(target=store.flush)
    flush.start()
    wait_until(lambda: receiver.requests)
    store.write("a", "2")
    store.write("c", "2")
    receiver.gate.set()
    flush.join()
    store.flush()
    bodies = {}
    for request in receiver.requests:
        bodies.setdefault(request.headers["webhook-id"], []).append(request.body)
    assert all(len(set(sent)) == 1 for sent in bodies.values())
    first = bodies[receiver.requests[0].headers["webhook-id"]]
    assert len(first) > 1
    assert [change["content"] for change in json.loads(first[0])] == ["1", "1"]
    assert contents(receiver) == {"a": "2", "b": "1", "c": "2"}


def test_ids_are_not_used_twice(make, receiver, outbox):
    ids = []
    for _ in range(3):
        store = make(WebHookFileStore, outbox=outbox)
        store.write("f", "x")
        store.flush()
        store.close()
    ids = [request.headers["webhook-id"] for request in receiver.requests]
    assert len(set(ids)) == 3
    assert all(
        abs(int(r.headers["webhook-timestamp"]) - time.time()) < 60 for r in receiver.requests
    )


def test_signatures(make, receiver, kind):
    secrets = [base64.b64encode(os.urandom(24)).decode() for _ in range(2)]
    store = make(kind, secret=["whsec_" + secrets[0], secrets[1]])
    store.write("f", "grüße")
    store.delete("f")
    store.flush()
    for request in receiver.requests:
        id, stamp = request.headers["webhook-id"], request.headers["webhook-timestamp"]
        signed = f"{id}.{stamp}.".encode() + request.body
        expected = [
            "v1,"
            + base64.b64encode(hmac.digest(base64.b64decode(s), signed, hashlib.sha256)).decode()
            for s in secrets
        ]
        assert request.headers["webhook-signature"].split() == expected


def test_a_bad_secret_is_not_shown():
    with pytest.raises(StoreConfigError, match="whsec_") as caught:
        WebHookFileStore(InMemoryFileStore(), "http://h/", secret="hunter2!")
    assert "hunter2" not in str(caught.value) + repr(caught.value.__context__)


WORKER = """
import sys
from oh_jupyter.storage import *
kind, url, outbox, name = sys.argv[1:]
store = globals()[kind](InMemoryFileStore(), url, outbox=outbox)
for n in range(60):
    store.write(f"{name}/{n % 5}", str(n))
    if n % 20 == 0:
        store.flush(1)
print(store.flush(60).pending)
"""


def test_two_kernels_on_one_outbox(receiver, kind, outbox):
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", WORKER, kind.__name__, receiver.url, outbox, name],
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in "ab"
    ]
    for worker in workers:
        worker.communicate(timeout=100)
        assert worker.returncode == 0
    assert contents(receiver) == {f"{w}/{n % 5}": str(n) for w in "ab" for n in range(55, 60)}
    seen = {}
    for request in receiver.requests if kind is WebHookFileStore else ():
        before = seen.setdefault(request.path, -1)
        assert int(request.body) > before
        seen[request.path] = int(request.body)


def test_a_write_that_fails_is_not_reported(make, receiver, outbox):
    class Full(InMemoryFileStore):
        def write(self, path, contents):
            raise StorageError("the disk is full")

    store = make(WebHookFileStore, store=Full(), outbox=outbox)
    with pytest.raises(StorageError):
        store.write("f", "x")
    assert store.flush() == type(store.flush())(0, (), 0)
    assert receiver.requests == []


def test_an_outbox_that_is_full_keeps_the_newest(
    make, receiver, quick, outbox, caplog, monkeypatch
):
    receiver.gate.clear()
    monkeypatch.setattr(dispatcher, "MAX_OUTBOX_BYTES", 500_000)
    store = make(WebHookFileStore, outbox=outbox)
    for n in range(60):
        store.write(f"{n}", b"x" * 50_000)
    wait_until(lambda: sum(d.size for d in store.deliveries() if d.state == "waiting") <= 600_000)
    receiver.gate.set()
    failed = store.flush().failed
    assert {f.reason for f in failed} == {"dropped: too much was waiting"}
    assert "59" in contents(receiver)
    assert caplog.text.count("oldest changes are dropped") <= 2
    dead = [d for d in store.deliveries() if d.state == "dead"]
    assert len(dead) == len(failed)
    assert store.replay() == 0  # their contents were not kept


@pytest.mark.skipif(os.name == "nt", reason="the platform has no limit of file sizes")
def test_an_outbox_that_cannot_grow_does_not_stop_a_write(make, receiver, outbox, caplog):
    resource = pytest.importorskip("resource")
    store = make(WebHookFileStore, outbox=outbox)
    store.write("f", "1")
    store.flush()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, limits[1]))
    try:
        store.write("big", b"x" * 60_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert store.read_bytes("big") == b"x" * 60_000
    assert "will not be reported" in caplog.text
    (letter,) = store.deliveries()
    assert (letter.path, letter.state, letter.size) == ("big", "dead", 60_000)
    (failed,) = store.flush().failed
    assert failed == FailedDelivery("POST", "big", letter.reason)
    store.write("big", b"y" * 60_000)
    assert store.flush().delivered == 1
    assert receiver.requests[-1].body == b"y" * 60_000


def test_an_outbox_that_is_gone_does_not_stop_a_write(make, receiver, outbox, tmp_path):
    store = make(WebHookFileStore, outbox=outbox)
    store.write("f", "1")
    assert store.close().pending == 0
    (tmp_path / "outbox").rename(tmp_path / "away")
    (tmp_path / "outbox").touch()
    store.write("g", "2")
    assert store.read("g") == "2"
    (tmp_path / "outbox").unlink()
    (tmp_path / "away").rename(tmp_path / "outbox")
    assert [letter.path for letter in store.deliveries()] == ["g"]
    assert [failed.path for failed in store.flush().failed] == ["g"]
    store.write("g", "3")
    assert store.flush().delivered == 1
    assert receiver.seen()[-1] == ("POST", "/g", b"3")


def test_large_contents_are_kept_beside_and_go_when_they_are_sent(
    make, receiver, quick, outbox, tmp_path
):
    receiver.refused = {"/hook/a": 503, "/hook/b": 413}
    store = make(WebHookFileStore, outbox=outbox)
    large = os.urandom(3_000_000)
    store.write("a", large)
    with store.open("b", "wb") as file:
        file.write(large[::-1])
    store.flush()
    assert [letter.state for letter in store.deliveries()] == ["waiting", "dead"]
    store.close()
    bodies = tmp_path / "outbox/outbox.sqlite3-contents"
    assert len(list(bodies.iterdir())) == 2
    orphan = bodies / "orphan"
    orphan.touch()
    os.utime(orphan, (0, 0))
    receiver.refused = {}
    again = make(WebHookFileStore, outbox=outbox)
    again.flush()
    again.replay()
    assert again.flush().pending == 0
    assert [r.body for r in receiver.requests if r.path == "/hook/a"][-1] == large
    assert [r.body for r in receiver.requests if r.path == "/hook/b"][-1] == large[::-1]
    assert list(bodies.iterdir()) == []


def test_places(tmp_path, make):
    (tmp_path / "dir").mkdir()
    for directory, file in (
        (tmp_path / "dir", "dir/outbox.sqlite3"),
        (tmp_path / "new/er", "new/er/outbox.sqlite3"),
        (tmp_path / "x/mine.db", "x/mine.db"),
    ):
        store = make(WebHookFileStore, outbox=directory)
        assert store.outbox == str(tmp_path / file)
        assert stat.S_IMODE(os.stat(store.outbox).st_mode) == 0o600
    (tmp_path / "text.db").write_text("no database, but somebody's " * 50)
    (tmp_path / "file").touch()
    for bad in (tmp_path / "text.db", tmp_path / "file/below"):
        with pytest.raises(StoreConfigError, match="outbox"):
            make(WebHookFileStore, outbox=bad)
    assert (tmp_path / "text.db").read_text().startswith("no database")


def test_a_configured_store_has_one(tmp_path, monkeypatch, receiver, caplog):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    store = get_file_store("local", str(tmp_path / "a"), receiver.url)
    other = get_file_store("local", str(tmp_path / "b"), receiver.url)
    none = get_file_store("memory", None, receiver.url, file_store_web_hook_outbox="")
    named = get_file_store("memory", None, receiver.url, file_store_web_hook_outbox=str(tmp_path))
    assert store.outbox.startswith(str(tmp_path / "state/oh_jupyter/outbox/"))
    assert store.outbox != other.outbox
    assert (none.outbox, named.outbox) == (None, str(tmp_path / "outbox.sqlite3"))
    (tmp_path / "state2").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state2"))
    without = get_file_store("memory", None, receiver.url)
    assert without.outbox is None
    assert "do not survive" in caplog.text
    for made in (store, other, none, named, without):
        made.close(0)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform has no fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_after_fork(receiver, make, outbox, kind):
    store = make(kind, outbox=outbox)
    store.write("parent", "x")
    store.flush()
    child = os.fork()
    if not child:
        store.write("child", "y")
        os._exit(store.flush(20).pending)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    store.write("parent", "z")
    assert store.flush().pending == 0
    assert contents(receiver) == {"parent": "z", "child": "y"}


def test_a_change_of_a_killed_process_counts_and_of_a_live_one_waits(outbox):
    box = Outbox(outbox)
    box.add(Change("POST", "f", "f", b"x"))
    assert [change.applied for change in box.pending()] == [False]
    box.close()
    with sqlite3.connect(box.path) as file:
        file.execute("UPDATE deliveries SET owner='1@5.0#gone'")
    file.close()
    assert [change.applied for change in box.pending()] == [True]
    box.close()


def test_which_paths_block_which():
    blocked = PathBarrier()
    blocked.add("a/b")
    assert [key in blocked for key in ("a/b", "a", "", "a/b/c", "a/bc", "ab", "b")] == [
        True,
        True,
        True,
        True,
        False,
        False,
        False,
    ]
    everything = PathBarrier()
    everything.add("")
    assert "any/thing" in everything


def test_independent_paths_go_out_side_by_side(make, receiver, outbox):
    receiver.gate.clear()
    store = make(WebHookFileStore, outbox=outbox)
    for n in range(40):
        store.write(f"f{n}", "x")
    wait_until(lambda: receiver.at_once == 8)
    receiver.gate.set()
    assert store.flush().delivered == 40
    assert receiver.most_at_once == 8


def test_a_closed_store_sends_no_more_requests(make, receiver, outbox):
    receiver.gate.clear()
    store = make(WebHookFileStore, outbox=outbox)
    for n in range(20):
        store.write(f"f{n}", "x")
    wait_until(lambda: receiver.at_once == 8)
    assert store.close(0).pending == 20
    receiver.gate.set()
    wait_until(lambda: len(store.deliveries()) == 12)
    assert len(receiver.requests) == 8
    assert store.flush().delivered == 20
    assert len(receiver.requests) == 20


def test_a_path_that_hangs_holds_up_only_itself(make, receiver, outbox):
    receiver.hanging = {"/hook/d/f"}
    store = make(WebHookFileStore, outbox=outbox)
    store.write("d/f", "1")
    wait_until(lambda: receiver.requests)
    store.write("d/f", "2")
    store.delete("d")
    store.write("other", "1")
    wait_until(lambda: ("POST", "/other", b"1") in receiver.seen())
    assert len(receiver.requests) == 2
    receiver.release()
    assert store.flush().pending == 0
    assert [method for method, path, _ in receiver.seen() if path == "/d/f"] == ["POST"] * 2
    assert receiver.seen()[-1] == ("DELETE", "/d", b"")


def put_off(box, seconds):
    """Pretend that what waits was tried for hours, and pauses for so long."""
    due = time.time() + seconds
    box.save([change._replace(rounds=9, attempts=27, due=due) for change in box.pending()])


def test_a_new_change_is_tried_soon_whatever_pause_those_before_are_in(
    make, receiver, quick, kind, outbox, monkeypatch
):
    monkeypatch.setattr("oh_jupyter.storage.webhook.scheduler.PROBE_SECONDS", 0.2)
    receiver.refused = {"/hook/f": 503, "/hook/": 503}
    store = make(kind, None, *([0.01] if kind is BatchedWebHookFileStore else []), outbox=outbox)
    store.write("f", "old")
    store.flush()
    store.close()
    box = Outbox(store.outbox)
    put_off(box, 3600)
    box.close()
    receiver.refused = {}
    receiver.requests.clear()
    store.write("f", "new")
    wait_until(lambda: contents(receiver) == {"f": "new"})
    wait_until(lambda: not store.deliveries())


def test_after_an_outage_a_new_change_soon_delivers_the_others(
    make, receiver, quick, kind, outbox, monkeypatch
):
    policy = RetryPolicy(durable=True, pause_seconds=0.01, backoff_seconds=100)
    monkeypatch.setattr(WebHookFileStore, "retry_policy", policy)
    monkeypatch.setattr("oh_jupyter.storage.webhook.scheduler.PROBE_SECONDS", 0.2)
    receiver.answers = [("reset", {})] * 8
    store = make(kind, None, *([0.01] if kind is BatchedWebHookFileStore else []), outbox=outbox)
    store.write("old", "1")
    wait_until(lambda: store.deliveries()[0].attempts >= 3)
    receiver.answers = []
    store.write("new", "1")
    wait_until(lambda: contents(receiver) == {"old": "1", "new": "1"})


STOPPED = """
import sys
from oh_jupyter.storage import *
store = globals()[sys.argv[1]](InMemoryFileStore(), sys.argv[2], outbox=sys.argv[3])
store.write("theirs", "x")
print("written", flush=True)
store.flush()
store.write("again", "x")
print(store.flush().failed, flush=True)
"""


def stop_between_transactions(process, outbox):
    """Nobody can free what SQLite locks for a process that is stopped while it writes."""
    database = sqlite3.connect(f"{outbox}/outbox.sqlite3", timeout=60, isolation_level=None)
    database.execute("BEGIN IMMEDIATE")
    process.send_signal(signal.SIGSTOP)
    wait_until(lambda: psutil.Process(process.pid).status() == psutil.STATUS_STOPPED)
    database.close()


@pytest.mark.skipif(os.name == "nt", reason="the platform has no SIGSTOP")
def test_a_resumed_process_sends_changes_of_others(make, receiver, kind, outbox):
    receiver.gate.clear()
    stopped = subprocess.Popen(
        [sys.executable, "-c", STOPPED, kind.__name__, receiver.url, outbox],
        stdout=subprocess.PIPE,
        text=True,
    )
    with stopped:
        try:
            wait_until(lambda: receiver.requests)  # it is sending, and holds the lock
            stop_between_transactions(stopped, outbox)
            receiver.gate.set()
            store = make(kind, outbox=outbox)
            store.write("ours", "x")
            assert store.flush(0.1).pending == 2
        finally:
            stopped.send_signal(signal.SIGCONT)
        assert stopped.communicate(timeout=60)[0].split() == ["written", "()"]
    assert store.flush().pending == 0
    assert contents(receiver) == {"ours": "x", "theirs": "x", "again": "x"}


@pytest.mark.skipif(os.name == "nt", reason="the platform has no SIGSTOP")
def test_another_process_takes_over_from_a_stopped_one(make, receiver, kind, outbox, caplog):
    receiver.gate.clear()
    stopped = subprocess.Popen(
        [sys.executable, "-c", STOPPED, kind.__name__, receiver.url, outbox],
        stdout=subprocess.PIPE,
        text=True,
    )
    with stopped:
        try:
            wait_until(lambda: receiver.requests)  # it is sending, and holds the lock
            stop_between_transactions(stopped, outbox)
            receiver.gate.set()
            store = make(kind, outbox=outbox)
            store.write("ours", "x")
            assert store.flush().pending == 0
            assert f"Process {stopped.pid}, which sends the webhooks of this store, is stopped" in (
                caplog.text
            )
        finally:
            stopped.send_signal(signal.SIGCONT)
        assert stopped.communicate(timeout=60)[0].split() == ["written", "()"]
    assert store.flush().pending == 0
    assert contents(receiver) == {"ours": "x", "theirs": "x", "again": "x"}


@pytest.mark.skipif(os.name == "nt", reason="the platform has no SIGSTOP")
def test_one_of_several_takes_over_from_a_stopped_one(receiver, outbox):
    receiver.gate.clear()
    stopped = subprocess.Popen(
        [sys.executable, "-c", STOPPED, "WebHookFileStore", receiver.url, outbox],
        stdout=subprocess.PIPE,
        text=True,
    )
    boxes = [Outbox(f"{outbox}/outbox.sqlite3") for _ in range(4)]
    with stopped, ThreadPoolExecutor(len(boxes)) as pool:
        wait_until(lambda: receiver.requests)  # it is sending, and holds the lock
        stop_between_transactions(stopped, outbox)
        results = [pool.submit(box.sender_lock.acquire, 8) for box in boxes]
        failed = [result for result in results if result.exception(60) is not None]
        assert len(failed) == len(boxes) - 1
        assert all(isinstance(result.exception(), TimeoutError) for result in failed)
        assert not any(box.sender_lock.is_lost for box in boxes)
        for box in boxes:
            box.sender_lock.release()
            box.close()
        receiver.gate.set()
        stopped.kill()


def test_a_receiver_that_answers_404_at_first(make, receiver, quick, kind, outbox):
    receiver.answers = [(404, {})] * 4
    store = make(kind, outbox=outbox)
    store.write("f", "1")
    assert store.flush().failed == ()
    wait_until(lambda: not store.deliveries())
    assert contents(receiver) == {"f": "1"}


def test_no_pause_is_longer_than_two_minutes(make, receiver, kind, outbox):
    receiver.answers = [(429, {"Retry-After": "86400"})]
    store = make(kind, outbox=outbox)
    store.write("f", "1")
    store.flush(1)
    (waiting,) = store.deliveries()
    assert 0 < (waiting.due - datetime.now(UTC)).total_seconds() <= 120


def test_another_process_sends_the_changes_of_a_killed_kernel(
    receiver, kind, tmp_path, monkeypatch
):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    settings = ["local", str(tmp_path / "store"), receiver.url, {}, kind is BatchedWebHookFileStore]
    program = (
        "import os\n"
        "from oh_jupyter.storage import get_file_store\n"
        f"store = get_file_store(*{settings!r})\n"
        "store.write('f', 'x')\n"
        "os.kill(os.getpid(), 9)\n"
    )
    receiver.gate.clear()
    assert subprocess.run([sys.executable, "-c", program]).returncode == -9
    receiver.gate.set()
    receiver.requests.clear()
    assert get_file_store(*settings).close().delivered == 1
    assert contents(receiver) == {"f": "x"}
    assert get_file_store(*settings).close() == DeliveryReport(0, (), 0)


def test_changes_delivered_by_flush_are_not_sent_again(receiver, kind, outbox, make):
    program = (
        "import os, sys\n"
        "from oh_jupyter.storage import *\n"
        "store = globals()[sys.argv[1]](InMemoryFileStore(), sys.argv[2], outbox=sys.argv[3])\n"
        "for n in range(30):\n"
        "    store.write(f'{n}', 'x')\n"
        "assert store.flush().pending == 0\n"
        "os._exit(0)\n"
    )
    subprocess.run([sys.executable, "-c", program, kind.__name__, receiver.url, outbox], check=True)
    receiver.requests.clear()
    assert make(kind, outbox=outbox).flush() == DeliveryReport(0, (), 0)
    assert receiver.requests == []
