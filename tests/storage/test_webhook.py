import base64
import logging
import os
import re
import select
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import httpx
import pytest
import requests
from jupyter_client.manager import start_new_kernel

from oh_jupyter.errors import StoreContentError, StorePathError
from oh_jupyter.storage import (
    BatchedWebHookFileStore,
    FailedDelivery,
    InMemoryFileStore,
    LocalFileStore,
    WebHookFileStore,
)
from oh_jupyter.storage.webhook import dispatcher
from oh_jupyter.testing import FileStoreContract, wait_until


class TestWebHookStores(FileStoreContract):
    @pytest.fixture
    def store(self, make, kind):
        return make(kind)


def test_each_change_is_a_request(make, receiver):
    store = make(WebHookFileStore)
    store.write("a/b.txt", "grüße")
    store.write("raw", b"\xff\x00")
    store.read_bytes("raw")
    store.list("")
    store.delete("a")
    store.write("empty", "")
    assert store.flush().delivered == 4
    below_a = [("POST", "/a/b.txt", "grüße".encode()), ("DELETE", "/a", b"")]
    others = [("POST", "/raw", b"\xff\x00"), ("POST", "/empty", b"")]
    assert sorted(receiver.seen()) == sorted(below_a + others)
    assert [each for each in receiver.seen() if each in below_a] == below_a


def test_no_slash_is_added(make, receiver):
    store = make(WebHookFileStore, url=receiver.url.rstrip("/"))
    store.write("/x", "1")
    store.write("y", "2")
    store.flush()
    assert sorted(path for _, path, _ in receiver.seen()) == ["/x", "y"]


@pytest.mark.parametrize(
    ("path", "encoded"),
    [
        ("a b#c?d=e&f", "/a%20b%23c%3Fd%3De%26f"),
        ("100%2F/x", "/100%252F/x"),
        ("grüße/日", "/gr%C3%BC%C3%9Fe/%E6%97%A5"),
        ("line\nbreak\r\nX: y", "/line%0Abreak%0D%0AX%3A%20y"),
        ("./a/../b", "/b"),
    ],
)
@pytest.mark.parametrize("client", [requests.Session, httpx.Client])
def test_paths_are_percent_encoded(make, receiver, client, path, encoded):
    with client() as session:
        store = make(WebHookFileStore, session)
        store.write(path, "x")
        store.delete(path)
        assert store.flush().failed == ()
    assert receiver.seen() == [("POST", encoded, b"x"), ("DELETE", encoded, b"")]


def test_a_batch_is_one_request(make, receiver):
    store = make(BatchedWebHookFileStore, batch_timeout_seconds=60)
    store.write("/text", "grüße")
    store.write("raw", b"\xff")
    store.write("utf8", b"bytes that are text")
    store.write("empty", "")
    store.write("gone", "x")
    store.delete("gone")
    assert store.flush().delivered == 5
    assert [(r.method, r.path) for r in receiver.requests] == [("POST", "/hook/")]
    assert receiver.requests[0].headers["Content-Type"] == "application/json"
    assert receiver.items() == [
        [
            {"method": "POST", "path": "/text", "content": "grüße"},
            {
                "method": "POST",
                "path": "raw",
                "content": base64.b64encode(b"\xff").decode(),
                "encoding": "base64",
            },
            {"method": "POST", "path": "utf8", "content": "bytes that are text"},
            {"method": "POST", "path": "empty", "content": ""},
            {"method": "DELETE", "path": "gone"},
        ]
    ]
    store.flush()
    assert len(receiver.requests) == 1


def test_a_batch_keeps_the_order_of_last_changes(make, receiver):
    store = make(BatchedWebHookFileStore, batch_timeout_seconds=60)
    store.write("d/x", "1")
    store.delete("d")
    store.write("./d/x", "2")
    store.flush()
    assert receiver.items() == [
        [{"method": "DELETE", "path": "d"}, {"method": "POST", "path": "./d/x", "content": "2"}]
    ]


def test_a_batch_is_sent_after_a_quiet_time(make, receiver):
    store = make(BatchedWebHookFileStore, batch_timeout_seconds=0.3)
    started = time.monotonic()
    for n in range(4):
        store.write("f", str(n))
    last = [{"method": "POST", "path": "f", "content": "3"}]
    wait_until(lambda: last in receiver.items())
    assert receiver.requests[0].time - started >= 0.3


def test_a_steady_writer_is_heard_within_a_few_of_its_periods(make, receiver):
    store = make(BatchedWebHookFileStore, batch_timeout_seconds=0.3)
    store.write("f", "first")
    store.flush()
    receiver.requests.clear()

    def write_until_it_is_sent():
        store.write("f", "again")  # never 0.3 s of silence
        return receiver.requests

    wait_until(write_until_it_is_sent)


def test_a_full_batch_is_sent_at_once(make, receiver):
    store = make(BatchedWebHookFileStore, None, 60, 10)
    store.write("a", "12345")
    store.write("a", "123456789")
    assert receiver.requests == []
    store.write("b", "ü")
    wait_until(lambda: receiver.requests)
    assert [len(batch) for batch in receiver.items()] == [2]


def test_settings_are_readable(make):
    client = requests.Session()
    store = make(BatchedWebHookFileStore, client)
    assert (store.batch_timeout_seconds, store.batch_size_limit_bytes) == (5.0, 1_048_576)
    assert store.client is client
    assert isinstance(store.file_store, InMemoryFileStore)
    assert store.base_url.endswith("/hook/")
    client.close()


class Recorder:
    """A client of the user's own, as small as it can be."""

    def __init__(self):
        self.calls = []

    def post(self, url, *, data=None, json=None):
        self.calls.append(("POST", url, data, json))
        return SimpleNamespace(status_code=204)

    def delete(self, url):
        self.calls.append(("DELETE", url))
        return SimpleNamespace(status_code=204)


def test_any_client_will_do(make):
    client = Recorder()
    plain = make(WebHookFileStore, client, url="http://h/")
    plain.write("f", "x")
    plain.delete("f")
    plain.flush()
    batched = make(BatchedWebHookFileStore, client, url="http://h/")
    batched.write("f", "x")
    batched.flush()
    assert client.calls == [
        ("POST", "http://h/f", b"x", None),
        ("DELETE", "http://h/f"),
        ("POST", "http://h/", None, [{"method": "POST", "path": "f", "content": "x"}]),
    ]


def test_three_tries_in_order(make, receiver, quick, kind, caplog):
    receiver.answers = [(500, {}), ("reset", {}), (200, {}), (503, {}), (503, {}), (503, {})]
    store = make(kind)
    store.write("f", "1")
    assert store.flush().failed == ()
    store.write("f", "2")
    report = store.flush()
    assert report.failed == (FailedDelivery("POST", "f", "HTTP status 503"),)
    assert report.delivered == 0
    store.write("f", "3")
    assert store.flush().failed == ()
    assert len(receiver.requests) == 7
    bodies = [request.body for request in receiver.requests]
    assert bodies[0] == bodies[1] == bodies[2] != bodies[3] == bodies[4] == bodies[5] != bodies[6]
    assert "given up: POST f: HTTP status 503" in caplog.text


@pytest.mark.thorough
def test_tries_are_a_second_apart(make, receiver):
    receiver.answers = [(500, {}), (429, {"Retry-After": "1.2"})]
    store = make(WebHookFileStore)
    store.write("f", "1")
    assert store.flush().delivered == 1
    first, second, third = (request.time for request in receiver.requests)
    assert second - first > 0.9
    assert third - second >= 1.2


def test_a_permanent_refusal_is_not_retried(make, receiver, quick, kind):
    receiver.answers = [(400, {})]
    store = make(kind)
    store.write("f", "1")
    assert store.flush().failed == (FailedDelivery("POST", "f", "HTTP status 400"),)
    assert len(receiver.requests) == 1


@pytest.mark.parametrize("client", [None, requests.Session, httpx.Client])
def test_redirects_are_not_followed(make, receiver, quick, client):
    receiver.answers = [(307, {"Location": receiver.url + "elsewhere"})]
    session = client and client()
    store = make(WebHookFileStore, session)
    store.write("f", "1")
    reason = store.flush().failed[0].reason
    assert reason.startswith("HTTP status 307, a redirect to http://127.0.0.1:"), reason
    assert len(receiver.requests) == 1
    if session:
        session.close()


def test_order_of_a_path_through_retries_and_threads(make, receiver, quick):
    receiver.answers = [(500, {}) if n % 3 else (200, {}) for n in range(60)]
    store = make(WebHookFileStore)

    def write(worker):
        for n in range(15):
            store.write(f"{n % 3}", f"{worker}-{n}")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(4)))
    store.flush()
    last = {}
    for _, path, body in receiver.seen():
        last[path] = body
    for n in range(3):
        assert last[f"/{n}"] == store.read_bytes(f"{n}")


def test_a_writer_never_waits(make, receiver, kind):
    receiver.gate.clear()
    store = make(kind)
    store.write("f", "warm up")
    for n in range(200):
        store.write(f"f{n}", "x")
    # The receiver has answered nothing in all that time.
    assert not receiver.gate.is_set()
    assert store.flush(timeout=0.05).pending == 201
    receiver.gate.set()
    assert store.flush().pending == 0


def pending_bytes(store):
    return sum(each.size for each in store.deliveries() if each.state == "waiting")


@pytest.mark.thorough
def test_memory_is_bounded(make, receiver, kind, monkeypatch, caplog):
    receiver.gate.clear()
    monkeypatch.setattr(dispatcher, "MAX_TEMPORARY_BYTES", 1_000_000)
    store = make(kind)
    for n in range(300):
        store.write(f"{n % 100}", b"x" * 100_000)
    wait_until(lambda: pending_bytes(store) <= 1_100_000)
    receiver.gate.set()
    report = store.flush()
    assert {failed.reason for failed in report.failed} == {"dropped: too much was waiting"}
    assert receiver.requests
    assert "oldest changes are dropped" in caplog.text
    assert caplog.text.count("oldest changes are dropped") < 50


def test_flush_reports_each_outcome(make, receiver, quick):
    receiver.refused = {"/hook/b": 400}
    store = make(WebHookFileStore)
    for name in ("a", "b", "c"):
        store.write(name, "x")
    report = store.flush()
    assert report.delivered == 2
    assert [failed.path for failed in report.failed] == ["b"]
    assert store.flush() == type(report)(0, (), 0)


def test_the_store_comes_first(make, receiver):
    store = make(WebHookFileStore)
    for path, contents, error in (("../x", "x", StorePathError), ("f", 5, StoreContentError)):
        with pytest.raises(error):
            store.write(path, contents)
    with pytest.raises(StorePathError):
        store.delete("../x")
    store.flush()
    assert receiver.requests == []


def test_many_and_streams_are_reported(make, receiver):
    store = make(WebHookFileStore)
    store.write_many({"a": "1", "b": b"2"})
    with store.open("c", "w") as file:
        file.write("3")
    with pytest.raises(ZeroDivisionError), store.open("d", "w") as file:  # noqa: PT012
        file.write("never")
        raise ZeroDivisionError
    store.delete_many(["a", "b"])
    store.flush()
    # Only the order of each path is fixed.
    assert sorted(receiver.seen(), key=lambda request: request[1]) == [
        ("POST", "/a", b"1"),
        ("DELETE", "/a", b""),
        ("POST", "/b", b"2"),
        ("DELETE", "/b", b""),
        ("POST", "/c", b"3"),
    ]


def test_secrets_are_not_logged(make, receiver, quick, caplog):
    receiver.server.server_close()
    url = receiver.url.replace("http://", "http://user:hunter2@")
    with caplog.at_level(logging.WARNING):
        store = make(WebHookFileStore, url=url, headers={"Authorization": "Bearer hunter2"})
        store.write("f", "x")
        report = store.flush(20)
    assert report.failed or report.pending == 0
    assert "hunter2" not in caplog.text + repr(store) + repr(report)


def test_own_headers_are_sent(make, receiver):
    store = make(WebHookFileStore, headers={"X-Session-API-Key": "k"})
    store.write("f", "x")
    store.flush()
    assert receiver.requests[0].headers["X-Session-API-Key"] == "k"


def test_closing_may_be_followed_by_more(make, receiver):
    store = make(WebHookFileStore)
    for n in range(3):
        store.write("f", str(n))
        assert store.close().delivered == 1
    assert [body for _, _, body in receiver.seen()] == [b"0", b"1", b"2"]


EXIT = """
import atexit, sys
from oh_jupyter.storage import *
kind, url, end = sys.argv[1:]
store = globals()[kind](InMemoryFileStore(), url)
def write():
    for n in range(20):
        store.write(f"f{n}", str(n))
atexit.register(write) if end == "at exit" else write()
if end == "exception":
    raise RuntimeError
if end == "sys.exit":
    sys.exit(1)
if end == "lost":
    del store
"""


def number_sent(receiver, kind):
    if kind is BatchedWebHookFileStore:
        return sum(len(batch) for batch in receiver.items())
    return len(receiver.requests)


@pytest.mark.parametrize("end", ["normal", "exception", "sys.exit", "lost", "at exit"])
def test_pending_changes_are_delivered_at_exit(receiver, kind, end):
    """From Python 3.12 on no thread can be started then; existing threads continue."""
    done = subprocess.run(
        [sys.executable, "-c", EXIT, kind.__name__, receiver.url, end],
        stderr=subprocess.PIPE,
        text=True,
    )
    assert done.returncode == (end in ("exception", "sys.exit"))
    assert re.sub(r"Traceback.*\nRuntimeError\n", "", done.stderr, flags=re.DOTALL) == ""
    assert number_sent(receiver, kind) == 20
    assert len(receiver.requests) == (1 if kind is BatchedWebHookFileStore else 20)


@pytest.mark.thorough
def test_pending_changes_are_delivered_at_the_end_of_a_kernel(receiver, kind):
    manager, client = start_new_kernel()
    code = EXIT.replace("sys.argv[1:]", repr((kind.__name__, receiver.url, "normal")))
    try:
        assert client.execute_interactive(code, timeout=60)["content"]["status"] == "ok"
    finally:
        client.stop_channels()
        manager.shutdown_kernel()
    assert number_sent(receiver, kind) == 20


@pytest.mark.skipif(os.name == "nt", reason="the platform has no SIGTERM")
def test_the_outbox_of_a_terminated_kernel_is_delivered(receiver, kind, tmp_path, make):
    receiver.gate.clear()
    manager, client = start_new_kernel()
    outbox = str(tmp_path / "outbox")
    code = EXIT.replace("sys.argv[1:]", repr((kind.__name__, receiver.url, "normal"))).replace(
        ", url)", f", url, outbox={outbox!r})"
    )
    try:
        assert client.execute_interactive(code, timeout=60)["content"]["status"] == "ok"
        manager.signal_kernel(signal.SIGTERM)
        wait_until(lambda: not manager.is_alive())
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    receiver.gate.set()
    receiver.requests.clear()
    assert make(kind, outbox=outbox).flush().delivered == 20
    assert number_sent(receiver, kind) == 20


@pytest.mark.parametrize("durable", [False, True])
def test_where_no_thread_can_be_started_the_one_that_waits_sends(
    make, receiver, kind, durable, tmp_path, monkeypatch
):
    def refuse(*args):
        raise RuntimeError("can't create new thread at interpreter shutdown")

    store = make(kind, outbox=tmp_path / "outbox.db" if durable else None)
    monkeypatch.setattr("oh_jupyter.background.start_thread", refuse)
    for n in range(20):
        store.write(f"f{n}", str(n))
    report = store.flush(60)
    monkeypatch.undo()
    assert (report.delivered, report.pending) == (20, 0)
    assert number_sent(receiver, kind) == 20


def test_exit_is_not_held_up_by_a_receiver_that_hangs(receiver, kind):
    receiver.gate.clear()
    shorter = "import oh_jupyter.storage.webhook.dispatcher as e; e.EXIT_SECONDS = 0.5\n"
    subprocess.run(
        [sys.executable, "-c", shorter + EXIT, kind.__name__, receiver.url, "normal"],
        stderr=subprocess.PIPE,
        check=True,
        timeout=120,
    )
    assert not receiver.gate.is_set()  # it has answered nothing


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform has no fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_after_fork(receiver, kind, make, tmp_path):
    store = make(kind, store=LocalFileStore(str(tmp_path)))
    receiver.gate.clear()
    store.write("parent", "x")
    wait_until(lambda: receiver.requests or kind is BatchedWebHookFileStore)
    enough, end_it = os.pipe()
    child = os.fork()
    if not child:
        store.write("child", "y")
        receiver.gate.set()  # in the child only
        while not select.select([enough], [], [], 0)[0]:
            pending = store.flush(0.1).pending
        os._exit(pending)
    wait_until(lambda: any("child" in r.path or b"child" in r.body for r in receiver.requests))
    os.write(end_it, b"x")
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
    os.close(enough)
    os.close(end_it)
    receiver.gate.set()
    assert store.flush().delivered == 1


def test_a_store_that_is_gone_sends_the_rest_and_ends_its_thread(receiver):
    def sending_threads():
        return {each for each in threading.enumerate() if each.name == "oh-storage-webhook"}

    before = sending_threads()
    store = WebHookFileStore(InMemoryFileStore(), receiver.url)
    store.write("f", "x")
    store.flush()
    threads = sending_threads()
    (thread,) = threads - before
    store.client.close()
    receiver.gate.clear()
    store.write("g", "y")
    receiver.gate.set()
    del store
    thread.join(60)
    assert not thread.is_alive()
    assert [path for _, path, _ in receiver.seen()] == ["/f", "/g"]


def test_settings_of_our_session_hold_for_the_next_request(make, receiver):
    receiver.answers = [(200, {"Set-Cookie": "session=7"})]
    store = make(WebHookFileStore, headers={"X-One": "1"})
    seen = []
    store.client.hooks["response"].append(lambda response, **_: seen.append(response.status_code))
    for n, change in enumerate(
        (
            lambda session: session.hooks["response"].clear(),
            lambda session: session.headers.update({"X-Two": "2"}),
            lambda session: setattr(session, "auth", ("me", "secret")),
            lambda session: session.params.update({"a": "b"}),
        )
    ):
        store.write("f", str(n))
        assert store.flush().failed == ()
        change(store.client)
    store.write("f", "last")
    store.delete("f")
    assert store.flush().failed == ()
    first, second, third, fourth, *others = receiver.requests
    assert seen == [200]
    assert (first.headers["X-One"], first.headers["Cookie"]) == ("1", None)
    assert (second.headers["X-Two"], second.headers["Cookie"]) == (None, "session=7")
    assert (third.headers["X-Two"], third.headers["Authorization"]) == ("2", None)
    assert fourth.headers["Authorization"].startswith("Basic ")
    assert [request.path for request in others] == ["/hook/f?a=b"] * 2
    assert [request.body for request in receiver.requests] == [b"0", b"1", b"2", b"3", b"last", b""]


def test_many_requests_share_a_connection(make, receiver):
    store = make(WebHookFileStore)
    for n in range(20):
        store.write("f", str(n))
    assert store.flush().delivered == 20
    assert len({request.connection for request in receiver.requests}) == 1
    assert [body for _, _, body in receiver.seen()] == [str(n).encode() for n in range(20)]


@pytest.mark.parametrize("path", ["file", "other?x"])
def test_a_receiver_on_this_machine_is_reached_without_the_proxy(make, receiver, monkeypatch, path):
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    store = make(WebHookFileStore)
    store.write(path, "1")
    assert store.flush(10).delivered == 1


@pytest.mark.parametrize("client", [None, requests.Session, httpx.Client])
def test_a_redirect_names_its_target(make, receiver, client):
    location = "https://user:secret@new.example.org/hook/f?token=secret"
    receiver.answers = [(301, {"Location": location})]
    store = make(WebHookFileStore, client and client())
    store.write("f", "1")
    (failed,) = store.flush().failed
    assert failed.reason == (
        "HTTP status 301, a redirect to https://new.example.org/hook/f; set the webhook's address "
        "to it"
    )
    if client:
        store.client.close()
