import asyncio
import contextlib
import os
import socket
import threading
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from oh_jupyter.errors import StorageError, StoreAccessError, StoreConfigError
from oh_jupyter.evaluation import Outcome, run_trials
from oh_jupyter.storage import S3FileStore, get_file_store
from oh_jupyter.storage.remote import fsspec_store, s3
from oh_jupyter.testing import FileStoreContract

pytest.importorskip("s3fs", reason="s3fs is not installed; pip install s3fs")


pytestmark = pytest.mark.usefixtures("s3_environment")


@pytest.fixture
def store(s3_store):
    yield s3_store
    s3_store.delete("")


class TestS3(FileStoreContract):
    creates_in_one_step = False  # rclone ignores the condition that S3 knows

    def read_while_written(self, store, path):
        # rclone can send the checksum of one version with the bytes of the next; that the
        # read is refused then, and not believed, is what matters.
        try:
            return store.read_bytes(path)
        except StorageError as error:
            if "checksum" not in str(error):
                raise
            return None


@pytest.mark.thorough
def test_listing_and_deleting_more_than_a_page(store):
    store = S3FileStore(f"{store.url}/pages")  # of its own, since it looks at the root
    store.write_many({f"d/{n:04}": str(n) for n in range(1010)})
    store.write_many({f"deep/{n:04}/f": str(n) for n in range(1005)})
    store.write("dd", "stays")
    assert store.list("d") == [f"d/{n:04}" for n in range(1010)]
    assert len(store.list("deep")) == 1005
    contents = store.read_many(store.list("d"))
    assert contents["d/1009"] == b"1009"
    assert len(contents) == 1010
    store.delete("d")
    assert store.list("d") == []
    store.delete("deep")
    assert store.list("") == ["dd"]


def test_a_directory_behind_many_namesakes_is_deleted_and_they_stay(store):
    # rclone may keep a directory that was emptied at its root by many at once.
    store = S3FileStore(f"{store.url}/namesakes")
    namesakes = [f"e-{n:02}" for n in range(s3._FEW_KEYS + 2)]
    store.write_many(dict.fromkeys([*namesakes, "e/f", "e/g/h"], "1"))
    store.delete("e")
    assert store.list("") == namesakes
    store.delete("e-0")  # of which there are only namesakes
    assert store.list("") == namesakes


def test_another_writer_is_seen_at_once(store):
    other = S3FileStore(store.url)
    assert store.list("d") == []
    other.write("d/f", "1")
    assert store.list("d") == ["d/f"]
    assert store.read("d/f") == "1"
    other.write("d/f", "22")
    assert store.read("d/f") == "22"
    assert store.info("d/f")["size"] == 2
    assert store.info("d/f")["modified"].tzinfo
    other.delete("d/f")
    assert not store.exists("d/f")


def test_the_bucket_comes_from_the_environment(monkeypatch):
    with pytest.raises(KeyError, match="AWS_S3_BUCKET"):
        S3FileStore(None)
    monkeypatch.setenv("AWS_S3_BUCKET", "bucket")
    store = get_file_store("s3")
    assert store.bucket == "bucket"
    assert get_file_store("s3", "other/prefix").bucket == "other"
    assert get_file_store("s3://other/prefix").bucket == "other"


@pytest.mark.thorough
def test_a_missing_bucket():
    for use in (
        lambda: S3FileStore("nosuch").read("f"),
        lambda: S3FileStore("nosuch").write("f", "x"),
        lambda: S3FileStore("nosuch").list(""),
        lambda: S3FileStore("nosuch").delete("f"),
        lambda: S3FileStore("nosuch").info("f"),
        lambda: S3FileStore("nosuch").read_many(["f"]),
        lambda: S3FileStore("nosuch").write_many({"f": "x"}),
        lambda: S3FileStore("nosuch").open("f", "rb"),
    ):
        with pytest.raises(StoreAccessError, match=r"nosuch.*bucket does not exist"):
            use()


def test_wrong_credentials(monkeypatch):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    store = S3FileStore("bucket")
    for use in (
        lambda: store.read("f"),
        lambda: store.write("f", "x"),
        lambda: store.list(""),
        lambda: store.delete("f"),
        lambda: store.exists("f"),
        lambda: store.read_many(["f"]),
        lambda: store.open("f", "rb"),
    ):
        with pytest.raises(StoreAccessError, match="AWS_SECRET_ACCESS_KEY"):
            use()


def test_no_credentials(monkeypatch, tmp_path):
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    with pytest.raises(StoreAccessError, match="credentials"):
        S3FileStore("bucket").write("f", "x")


@pytest.mark.thorough
def test_an_unreachable_server(monkeypatch):
    monkeypatch.setenv("AWS_S3_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(StoreAccessError, match="cannot be reached"):
        S3FileStore("bucket").read("f")


def test_a_server_that_does_not_speak_http(monkeypatch):
    def answer(server):
        with contextlib.suppress(OSError):
            while True:
                connection, _ = server.accept()
                with connection:
                    connection.recv(1)
                    connection.sendall(b"\xff\x00\x00\x00\x00\x00\x00\x00\x01\x7f")

    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setenv("AWS_S3_ENDPOINT", f"127.0.0.1:{server.getsockname()[1]}")
        threading.Thread(target=answer, args=(server,), daemon=True).start()
        with pytest.raises(StoreAccessError, match=r"cannot be reached .*; check the endpoint"):
            S3FileStore("bucket").exists("f")
        server.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def hung_server(monkeypatch):
    """It takes connections, which are listed, reads nothing and says nothing."""
    connections = []

    def accept():
        with contextlib.suppress(OSError):
            while True:
                connections.append(server.accept()[0])

    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        monkeypatch.setenv("AWS_S3_ENDPOINT", f"127.0.0.1:{server.getsockname()[1]}")
        thread = threading.Thread(target=accept)
        thread.start()
        yield connections
        server.shutdown(socket.SHUT_RDWR)
        thread.join()
        for connection in connections:
            connection.close()


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("use", "at_once"),
    [
        (lambda store: store.read("f"), 1),
        (lambda store: store.write("f", "x"), 1),
        (lambda store: store.create("f", "x"), 1),
        (lambda store: store.list("d"), 1),
        (lambda store: store.delete("f"), 1),
        (lambda store: store.info("f"), 1),
        (
            lambda store: store.read_many([f"f{n}" for n in range(100)]),
            fsspec_store.MAX_CONNECTIONS,
        ),
        (lambda store: store.write_many({"f": "x", "g": "y"}), 2),
        (lambda store: store.open("f", "rb"), 1),
    ],
    ids=["read", "write", "create", "list", "delete", "info", "read_many", "write_many", "open"],
)
def test_a_hanging_server_times_out(hung_server, monkeypatch, use, at_once):
    """Each attempt takes a connection of its own, and waits for `_READ_SECONDS`."""
    assert s3._MAX_ATTEMPTS * max(s3._READ_SECONDS, s3._CONNECT_SECONDS) <= 20
    monkeypatch.setattr(s3, "_READ_SECONDS", 0.1)
    with pytest.raises(StoreAccessError, match=r"cannot be reached .*[Tt]imeout"):
        use(S3FileStore("bucket"))
    assert 1 <= len(hung_server) <= s3._MAX_ATTEMPTS * at_once


def test_the_time_of_a_request_is_limited_and_named(hung_server, monkeypatch):
    monkeypatch.setattr(fsspec_store, "TIMEOUT_SECONDS", 1)
    with pytest.raises(StoreAccessError, match=r"cannot be reached .* no response within 1 s"):
        S3FileStore("bucket").read("f")


@pytest.mark.thorough
def test_a_server_that_stops_reading_times_out(hung_server, monkeypatch):
    monkeypatch.setattr(fsspec_store, "TIMEOUT_SECONDS", 0.5)
    monkeypatch.setattr(fsspec_store, "_MIN_BYTES_PER_SECOND", 1 << 30)
    for use in (
        lambda: S3FileStore("bucket").write("f", b"x" * 20_000_000),
        lambda: S3FileStore("bucket").write_many({"f": b"x" * 20_000_000}),
    ):
        with pytest.raises(StoreAccessError, match="cannot be reached"):
            use()


def test_contents_that_break_off_are_asked_for_again(monkeypatch):
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            self.send_response(200)
            self.send_header("Content-Length", "4")
            self.end_headers()
            self.wfile.write(b"text" if len(asked) == 2 else b"te")

        def log_message(self, *args):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        monkeypatch.setenv("AWS_S3_ENDPOINT", f"127.0.0.1:{server.server_port}")
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        assert S3FileStore("bucket").read("f") == "text"
        with pytest.raises(StorageError, match="not completed"):
            S3FileStore("bucket").read("f")
        server.shutdown()
    assert len(asked) == 2 + 6  # the second read is tried as often as allowed


@pytest.mark.thorough
def test_an_error_of_the_server_is_not_the_last_word(monkeypatch):
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def do_PUT(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            asked.append(self.path)
            error = b"<Error><Code>InternalError</Code><Message>x</Message></Error>"
            body = error if len(asked) < 5 else b""
            self.send_response(500 if body else 200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever).start()
        monkeypatch.setenv("AWS_S3_ENDPOINT", f"127.0.0.1:{server.server_port}")
        try:
            S3FileStore("bucket").write("f", "x")
            assert len(asked) == 5
        finally:
            server.shutdown()


@pytest.mark.thorough
def test_no_request_waits_for_a_connection_while_its_time_runs(monkeypatch):
    together = threading.Barrier(fsspec_store.MAX_CONNECTIONS)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_PUT(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            together.wait(60)  # for all that go side by side
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *args):
            pass

    monkeypatch.setattr(s3, "_READ_SECONDS", 60)
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("AWS_S3_ENDPOINT", f"127.0.0.1:{server.server_port}")
        server.daemon_threads = True
        S3FileStore("bucket").write_many({f"{n}": "x" for n in range(2 * together.parties)})
        server.shutdown()
    assert not together.broken


def test_a_host_name_as_endpoint(monkeypatch, s3_server):
    monkeypatch.setenv("AWS_S3_ENDPOINT", s3_server.replace("127.0.0.1", "localhost"))
    store = S3FileStore(f"bucket/{uuid.uuid4().hex}")
    store.write("f", "x")
    assert store.read("f") == "x"
    store.delete("")


def test_in_a_running_loop(store):
    async def use():
        store.write("f", "x")
        return store.read("f")

    assert asyncio.run(use()) == "x"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform has no fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_after_fork(store):
    store.write("parent", "x")
    child = os.fork()
    if not child:
        store.write("child", store.read("parent"))
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert store.read("child") == "x"


def test_no_bucket_at_all():
    with pytest.raises(StoreConfigError):
        S3FileStore("")


class Toss:
    """A task of an evaluation that needs no browser."""

    name = "toss/coin"

    def play(self, agent, *, seed, steps, log):
        log.path("coin.txt").write_text(str(seed))
        return Outcome(agent({"seed": seed}), 1)


def test_results_of_an_evaluation(store):
    out = f"{store.url}/runs/first.jsonl"
    assert len(list(run_trials([Toss()], lambda seen: seen["seed"], seeds=2, out=out))) == 2
    again = list(run_trials([Toss()], lambda seen: 5, seeds=3, out=out))
    assert [trial.reward for trial in again] == [0, 1, 5]
    assert len(store.read("runs/first.jsonl").splitlines()) == 3
    assert store.read("runs/first/episodes/toss%2Fcoin/2/coin.txt") == "2"


@contextlib.contextmanager
def old_server():
    """A server that rejects newer checksums, with two objects below ``d``."""
    requests = []

    class Handler(BaseHTTPRequestHandler):
        def respond(self):
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            requests.append(f"{self.command} {self.path.partition('&')[0]}")
            has_checksum = any("checksum" in name.lower() for name in self.headers)
            status, body = 200, b""
            if has_checksum:
                status, body = 501, b"<Error><Code>NotImplemented</Code></Error>"
            elif self.command == "GET":
                keys = (f"<Contents><Key>d/{n}</Key><Size>1</Size></Contents>" for n in range(2))
                body = f"<ListBucketResult>{''.join(keys)}</ListBucketResult>".encode()
            elif self.path.endswith("?delete"):
                status = 200 if self.headers.get("Content-MD5") else 400
                body = b"<DeleteResult/>"
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_PUT = do_POST = do_DELETE = respond

        def log_message(self, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", requests
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("setting", [None, "when_required"])
def test_a_server_that_rejects_newer_checksums(monkeypatch, setting):
    if setting:
        monkeypatch.setenv("AWS_REQUEST_CHECKSUM_CALCULATION", setting)
    with old_server() as (address, requests):
        monkeypatch.setenv("AWS_S3_ENDPOINT", address)
        store = S3FileStore("bucket")
        store.write("a", "1")
        store.write_many({"b": "2"})
        store.delete("d")
    assert requests == [
        *("PUT /bucket/a", "PUT /bucket/b", "GET /bucket?list-type=2", "POST /bucket?delete"),
    ]


def test_checksums_that_a_server_rejects_are_named(monkeypatch):
    monkeypatch.setenv("AWS_REQUEST_CHECKSUM_CALCULATION", "when_supported")
    with old_server() as (address, _):
        monkeypatch.setenv("AWS_S3_ENDPOINT", address)
        with pytest.raises(StorageError, match="AWS_REQUEST_CHECKSUM_CALCULATION"):
            S3FileStore("bucket").write("a", "1")


@pytest.mark.parametrize(
    ("endpoint", "secure", "address"),
    [
        ("http://host:1", None, "http://host:1"),
        ("https://host:1", None, "https://host:1"),
        ("host:1", None, "https://host:1"),
        ("host:1", "false", "http://host:1"),
        ("https://host:1", "false", "http://host:1"),
        ("http://host:1", "true", "https://host:1"),
        ("http://host:1", "", "http://host:1"),
    ],
)
def test_the_scheme_of_an_endpoint(monkeypatch, endpoint, secure, address):
    monkeypatch.setenv("AWS_S3_ENDPOINT", endpoint)
    monkeypatch.delenv("AWS_S3_SECURE")
    if secure is not None:
        monkeypatch.setenv("AWS_S3_SECURE", secure)
    assert s3._environment()["endpoint_url"] == address


def test_a_server_without_tls_cannot_be_reached_with_it(monkeypatch, s3_server):
    monkeypatch.setenv("AWS_S3_ENDPOINT", s3_server.replace("http:", "https:"))
    monkeypatch.setenv("AWS_S3_SECURE", "true")
    with pytest.raises(StoreAccessError, match=r"cannot be reached .*SSL"):
        S3FileStore("bucket").write("a", "1")


def test_a_server_on_this_machine_is_reached_without_the_proxy(monkeypatch, s3_server):
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    store = S3FileStore(f"bucket/{uuid.uuid4().hex}")
    store.write("a", "1")
    assert store.read("a") == "1"
