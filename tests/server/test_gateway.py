"""Kernels that a gateway runs for the Jupyter server, with real servers and gateways.

Each test runs with three gateways: a Jupyter server that speaks the websocket subprotocol, one
that speaks JSON only, and Enterprise Gateway where it is installed. It needs older packages
than we do; OH_JUPYTER_TEST_GATEWAY can name its command in an environment of its own, which
scripts/check makes.
"""

from __future__ import annotations

import asyncio
import io
import json
import os
import shutil
import signal
import socket
import sys
import threading
import zipfile
from collections import deque
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx2
import psutil
import pytest
import requests
from leaving_client import asked
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client

from oh_jupyter.cells.remote import RemoteKernel
from oh_jupyter.client import Fleet, RuntimeClient
from oh_jupyter.testing import LiveServer, run_server, suspended, wait_until
from oh_jupyter.testing.server import TOKEN, run_command

pytestmark = pytest.mark.thorough

ENTERPRISE = shutil.which(
    os.environ.get("OH_JUPYTER_TEST_GATEWAY", "jupyter-enterprisegateway")
) or shutil.which("jupyter-enterprisegateway")
OLD_WAY = "enterprise" if ENTERPRISE else "json"
"""What Jupyter servers spoke on a websocket before there was a subprotocol, as Enterprise Gateway
does. It is the real one where there is one, on the PATH or in OH_JUPYTER_TEST_GATEWAY."""

BOTH_KINDS = pytest.mark.parametrize("gateway", ["subprotocol", OLD_WAY], indirect=True)
"""For what depends on how messages are written. The rest takes the same way through any gateway."""

KERNEL_COMMAND = (sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}")
MEGABYTE = ("x" * 79 + "\n") * 13107


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass(frozen=True)
class Server:
    """A server, and requests to it."""

    live: LiveServer

    @property
    def url(self) -> str:
        return self.live.url

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def ask(
        self, method: str, path: str, headers: dict[str, str] | None = None, **options: Any
    ) -> requests.Response:
        all_headers = {**self.live.headers, **(headers or {})}
        return requests.request(
            method, f"{self.url}/{path}", headers=all_headers, timeout=90, **options
        )


class Ours(Server):
    """A Jupyter server with the extension, which uses a gateway."""

    def act(self, kind: str, kernel: str | None = None, **args: Any) -> tuple[int, Any]:
        where = "oh_jupyter" if kernel is None else f"oh_jupyter/kernels/{kernel}"
        body = {"action": {"action": kind, "args": args}}
        answer = self.ask("POST", f"{where}/execute_action", json=body)
        return answer.status_code, answer.json()

    def cell(self, code: str, kernel: str | None = None) -> str:
        status, observation = self.act("run_ipython", kernel, code=code, include_extra=False)
        assert status == 200, observation
        return str(observation["content"])

    def default_kernel(self) -> str:
        return str(self.ask("GET", "oh_jupyter/server_info").json()["default_kernel"])


@contextmanager
def run_ours(
    gateway: str, folder: Path, *options: str, token: str = TOKEN, **variables: str | None
) -> Iterator[Ours]:
    folder.mkdir(exist_ok=True)
    there = (f"--gateway-url={gateway}", f"--GatewayClient.auth_token={token}")
    # Enterprise Gateway starts no kernels for root.
    variables |= {"KERNEL_USERNAME": "someone", "OH_JUPYTER_CONFIRMATION": None}
    with run_server(folder, *there, *options, environment=variables) as server:
        yield Ours(server)


@contextmanager
def run_gateway(
    kind: str, folder: Path, port: int | None = None, command: tuple[str, ...] = KERNEL_COMMAND
) -> Iterator[Server]:
    spec = folder / "share" / "kernels" / "there" / "kernel.json"
    spec.parent.mkdir(parents=True, exist_ok=True)
    spec.write_text(json.dumps({"argv": command, "display_name": "there", "language": "python"}))
    kernels = "--MultiKernelManager.default_kernel_name=there"
    variables = {"JUPYTER_PATH": str(folder / "share")}
    if kind == "enterprise":
        start = [
            str(ENTERPRISE), "--ip=127.0.0.1", kernels,
            f"--port={port or free_port()}",  # it cannot tell which one it got
            "--EnterpriseGatewayApp.list_kernels=True",
        ]  # fmt: skip
        runtime = {"JUPYTER_RUNTIME_DIR": str(folder / "run"), "JUPYTER_NO_CONFIG": "1"}
        environment = {**os.environ, **runtime, **variables, "EG_AUTH_TOKEN": TOKEN}
        running = run_command(start, folder, environment)
    else:
        old_way = ["--ZMQChannelsWebsocketConnection.kernel_ws_protocol="]
        options = [kernels, *(old_way if kind == "json" else ())]
        asking = {**variables, "OH_JUPYTER_CONFIRMATION": None}  # its kernels have its environment
        running = run_server(
            folder, *options, environment=asking, port=port or 0, with_extension=False
        )
    with running as server:
        yield Server(server)


@pytest.fixture(scope="module", params=[OLD_WAY])
def gateway(request, tmp_path_factory, own_places):
    with run_gateway(request.param, tmp_path_factory.mktemp("gateway")) as gateway:
        yield gateway


@pytest.fixture(scope="module")
def workspace(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("workspace")


@pytest.fixture(scope="module")
def ours(gateway, tmp_path_factory, workspace):
    option = f"--OhJupyter.workspace_dir={workspace}"
    with run_ours(gateway.url, tmp_path_factory.mktemp("ours"), option) as ours:
        yield ours


@pytest.fixture
def pool():
    with ThreadPoolExecutor(8) as pool:
        yield pool


@pytest.mark.thorough
@BOTH_KINDS
def test_every_kind_of_action(ours, gateway, workspace, tmp_path) -> None:
    """With the settings of the server, on the gateway's default kernel."""
    assert ours.act("run", command="pwd")[1]["content"] == str(workspace)
    models = gateway.ask("GET", "api/kernels").json()
    assert {model["id"]: model["name"] for model in models}[ours.default_kernel()] == "there"
    file = str(tmp_path / "a.txt")
    assert ours.act("write", path=file, content="one\ntwo\n")[1]["observation"] == "write"
    assert ours.act("read", path=file)[1]["content"] == "one\ntwo\n"
    edited = ours.act("edit", path=file, command="str_replace", old_str="two", new_str="three")
    assert edited[1]["observation"] == "edit"
    assert Path(file).read_text() == "one\nthree\n"
    assert ours.cell("6 * 7") == "42"
    names = ours.ask("POST", "oh_jupyter/list_files", json={"path": str(tmp_path)})
    assert names.json() == ["a.txt"]
    kernel = ours.default_kernel()
    events = ours.ask("GET", f"oh_jupyter/kernels/{kernel}/events").json()["events"]
    assert [event["id"] for event in events] == list(range(len(events)))
    assert {"write", "read", "edit", "run_ipython"} <= {event.get("action") for event in events}
    assert ours.act("run", command=1)[0] == 422


@pytest.fixture
def page(tmp_path):
    """A page on loopback."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<title>T</title><h1>Here</h1><button>press</button>")

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


@pytest.mark.thorough
@pytest.mark.browser
def test_a_page_in_the_browser_of_the_kernel(ours, page) -> None:
    seen = ours.act("browse", url=page)[1]
    assert (seen["observation"], seen["extras"]["error"]) == ("browse", False), seen
    assert "# Here" in seen["content"]
    ours.act("browse_interactive", browser_actions=f"goto('{page}')", return_axtree=True)
    marks = ours.ask("GET", "oh_jupyter/browser/marks").json()
    assert marks["url"] == page
    assert marks["extra_element_properties"]
    for kind in ("screenshot", "set_of_marks"):
        picture = ours.ask("GET", f"oh_jupyter/browser/{kind}")
        assert picture.headers["Content-Type"] == "image/png"
        assert picture.content.startswith(b"\x89PNG")


def test_events_are_streamed_and_resumed(ours) -> None:
    def stream(until: str, **headers: str) -> list[str]:
        headers["Accept"] = "text/event-stream"
        ids = []
        with ours.ask("GET", "oh_jupyter/events", headers=headers, stream=True) as answer:
            for line in answer.iter_lines(chunk_size=1, decode_unicode=True):
                if line.startswith("id: "):
                    ids.append(line[4:])
                if until in line and '"observation": "run"' in line:
                    return ids
        raise AssertionError("it ended too early")

    with ThreadPoolExecutor(1) as pool:
        ours.act("run", command="echo one")
        watching = pool.submit(stream, "twice two")
        assert ours.act("run", command="echo twice two")[0] == 200
        ids = watching.result(60)
    assert stream("twice two", **{"Last-Event-ID": ids[-3]}) == ids[-2:]


@pytest.mark.slow
def test_the_store_the_skills_and_the_tools(ours) -> None:
    content = os.urandom(3_000_000)
    assert ours.ask("PUT", "oh_jupyter/store/a/b.bin", data=content).status_code == 204
    assert ours.ask("GET", "oh_jupyter/store/a/b.bin").content == content
    assert ours.ask("GET", "oh_jupyter/store/a/").json()["entries"] == ["a/b.bin"]
    assert ours.ask("GET", "oh_jupyter/skills").json()

    async def call() -> Any:
        async with (
            httpx2.AsyncClient(headers=ours.live.headers, timeout=60) as client,
            streamable_http_client(f"{ours.url}/oh_jupyter/mcp", http_client=client) as streams,
            ClientSession(*streams) as session,
        ):
            await session.initialize()
            return await session.call_tool("run", {"command": "echo by MCP"})

    assert "by MCP" in str(asyncio.run(call()).content)


def test_an_action_that_waits_for_a_person_can_be_rejected(ours, pool) -> None:
    kernel = ours.ask("POST", "api/kernels", json={"name": "there"}).json()["id"]
    where = f"oh_jupyter/kernels/{kernel}/confirmations"
    risky = pool.submit(ours.act, "run", kernel, command="true", security_risk=2)
    waiting: Any = None
    while not risky.done() and not waiting:
        response = ours.ask("GET", where)
        waiting = response.ok and response.json()
    assert ours.ask("POST", f"{where}/{waiting[0]['id']}", json={"approve": False}).ok
    assert risky.result(60)[1]["observation"] == "user_rejected"
    ours.ask("DELETE", f"api/kernels/{kernel}")


def sleeping(started: Path) -> str:
    """A cell that sleeps after it has made a file."""
    return f"import time; open({str(started)!r}, 'w').close(); time.sleep(600)"


def test_a_client_that_leaves_takes_its_cell_along(ours, tmp_path) -> None:
    action = {"action": "run_ipython", "args": {"code": sleeping(tmp_path / "started")}}
    leaving = asked(f"{ours.url}/oh_jupyter", ours.live.headers, action)
    wait_until((tmp_path / "started").exists)
    leaving.close()
    assert ours.cell("6 * 7") == "42"


@BOTH_KINDS
def test_a_megabyte_both_ways_and_more_than_a_gateway_takes(ours, tmp_path) -> None:
    file = str(tmp_path / "large.txt")
    assert ours.act("write", path=file, content=MEGABYTE)[1]["observation"] == "write"
    assert ours.act("read", path=file)[1]["content"] == MEGABYTE
    status, answer = ours.act("write", path=file, content=MEGABYTE * 11)
    assert status == 413
    assert "gateway accepts" in answer["detail"]
    assert Path(file).read_text() == MEGABYTE


def test_files_go_up_and_come_down(ours, tmp_path) -> None:
    content = os.urandom(30_000_000)
    there = tmp_path / "there"
    sent = ours.ask(
        "POST",
        "oh_jupyter/upload_file",
        params={"destination": str(there)},
        files={"file": ("a.bin", content)},
    )
    assert sent.status_code == 200, sent.text
    assert (there / "a.bin").read_bytes() == content
    got = ours.ask("GET", "oh_jupyter/download_files", params={"path": str(there)})
    with zipfile.ZipFile(io.BytesIO(got.content)) as archive:
        assert archive.read("a.bin") == content
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("folder/b.txt", "b")
        archive.writestr("folder/empty/", "")
    sent = ours.ask(
        "POST",
        "oh_jupyter/upload_file",
        params={"destination": str(there), "recursive": "true"},
        files={"file": ("folder.zip", packed.getvalue())},
    )
    assert sent.status_code == 200, sent.text
    assert (there / "folder" / "b.txt").read_text() == "b"
    assert (there / "folder" / "empty").is_dir()


@pytest.mark.slow
def test_twenty_requests_at_once(ours, pool) -> None:
    answers = pool.map(lambda number: ours.cell(f"print({number})"), range(20))
    assert list(answers) == [str(number) for number in range(20)]


def test_a_dying_kernel_ends_pending_requests(ours, pool, tmp_path) -> None:
    pid = int(ours.cell("import os; os.getpid()"))
    waiting = pool.submit(ours.act, "run_ipython", code=sleeping(tmp_path / "started"))
    wait_until((tmp_path / "started").exists)
    os.kill(pid, signal.SIGKILL)
    status, answer = waiting.result(60)
    assert status == 503
    assert "state of its runtime is lost" in answer["detail"]
    assert int(ours.cell("import os; os.getpid()")) != pid


@pytest.mark.slow
def test_a_restart_ends_pending_requests(ours, pool, tmp_path) -> None:
    ours.cell("here = 1")
    waiting = pool.submit(ours.act, "run_ipython", code=sleeping(tmp_path / "started"))
    wait_until((tmp_path / "started").exists)
    assert ours.ask("POST", f"api/kernels/{ours.default_kernel()}/restart").ok
    assert waiting.result(60)[0] == 503
    assert ours.cell("'here' in globals()") == "False"


@pytest.mark.slow
@BOTH_KINDS
def test_a_suspended_kernel_is_reported_and_found_again(ours) -> None:
    pid = int(ours.cell("import os; os.getpid()"))
    with suspended(psutil.Process(pid)):
        status, answer = ours.act("run", command="true")
    assert status == 504
    assert "has not answered" in answer["detail"]
    assert int(ours.cell("import os; os.getpid()")) == pid


@pytest.mark.slow
def test_a_kernel_that_the_gateway_has_culled_is_replaced(ours, gateway) -> None:
    ours.cell("here = 1")
    kernel = ours.default_kernel()
    assert gateway.ask("DELETE", f"api/kernels/{kernel}").ok
    status, answer = ours.act("run", kernel, command="true")
    assert status == 503
    assert "was shut down at its gateway" in answer["detail"]
    assert ours.cell("'here' in globals()") == "False"
    assert ours.default_kernel() != kernel


def test_it_is_loaded_into_an_open_kernel_that_is_busy(ours, tmp_path) -> None:
    kernel = ours.ask("POST", "api/kernels", json={"name": "there"}).json()["id"]
    assert ours.ask("GET", f"oh_jupyter/kernels/{kernel}/events").status_code == 424
    sign = tmp_path / "busy"

    async def work() -> Any:
        person = RemoteKernel(ours.url, TOKEN, kernel_id=kernel)
        cell = asyncio.ensure_future(person.run_cell(sleeping(sign)))
        try:
            async with asyncio.timeout(60):
                await asyncio.to_thread(wait_until, sign.exists)
                return await asyncio.to_thread(ours.act, "run", kernel, command="echo meanwhile")
        finally:
            cell.cancel()
            await asyncio.gather(cell, return_exceptions=True)
            await person.close()

    status, observation = asyncio.run(work())
    assert (status, observation["content"]) == (200, "meanwhile")
    ours.ask("DELETE", f"api/kernels/{kernel}")


@pytest.mark.slow
def test_a_fleet_whose_kernels_a_gateway_runs(ours, gateway, tmp_path) -> None:
    """One of them dies, and one is shut down at the gateway: both are replaced there."""
    died, culled = tmp_path / "died", tmp_path / "culled"

    def work(runtime: RuntimeClient, item: int | str) -> str:
        if item == "dies once" and not died.exists():
            died.touch()
            # An exit would wait for a person.
            runtime.run_ipython("import ctypes; ctypes.string_at(0)")
        if item == "is culled once" and not culled.exists():
            culled.touch()
            gateway.ask("DELETE", f"api/kernels/{runtime.kernel_id}")
        return runtime.run_ipython(f"{item!r} * 2").content.split("\n")[0]

    def there() -> set[str]:
        return {model["id"] for model in gateway.ask("GET", "api/kernels").json()}

    before = there()
    with Fleet(ours.url, TOKEN, 2, name="far", kernel="there") as kernels:
        first = set(kernels.kernel_ids)
        assert first == there() - before
        names = [session["name"] for session in ours.ask("GET", "api/sessions").json()]
        assert {"Fleet far 1", "Fleet far 2"} <= set(names)
        results = kernels.map(work, ["dies once", "is culled once", 3, 4])
        assert [(result.value, result.attempts) for result in results] == [
            ("'dies oncedies once'", 2),
            ("'is culled onceis culled once'", 2),
            ("6", 1),
            ("8", 1),
        ], results
        assert not first & set(kernels.kernel_ids)
    assert there() <= before


@pytest.mark.slow
def test_a_gateway_that_goes_and_comes_back(gateway, request, tmp_path, pool) -> None:
    kind = request.node.callspec.params["gateway"]
    # Ours tells the last gateway that its kernels are to end.
    with ExitStack() as gateways:
        second = gateways.enter_context(run_gateway(kind, tmp_path / "gateway"))
        with run_ours(second.url, tmp_path / "ours") as ours:
            ours.cell("here = 1")
            waiting = pool.submit(ours.act, "run_ipython", code=sleeping(tmp_path / "started"))
            wait_until((tmp_path / "started").exists)
            os.kill(second.live.pid, signal.SIGKILL)
            status, answer = waiting.result(60)
            assert status == 502
            assert "was lost" in answer["detail"]
            assert ours.act("run", command="true")[0] == 502
            gateways.enter_context(run_gateway(kind, tmp_path / "gateway", second.port))
            assert ours.cell("'here' in globals()") == "False"


class Wire:
    """A connection to a server that can be cut."""

    def __init__(self, target: str) -> None:
        self._target = int(target.rpartition(":")[2])
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._ends: deque[socket.socket] = deque()  # of which two threads take and add
        self._open = threading.Event()
        self._open.set()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                here, _ = self._listener.accept()
            except OSError:
                return
            if not self._open.is_set():
                here.close()
                continue
            try:
                there = socket.create_connection(("127.0.0.1", self._target))
            except OSError:  # the target has ended
                here.close()
                continue
            self._ends += [here, there]
            if not self._open.is_set():  # it was cut meanwhile
                self._shut(here)
                self._shut(there)
            for source, sink in ((here, there), (there, here)):
                threading.Thread(target=self._copy, args=(source, sink), daemon=True).start()

    def _copy(self, source: socket.socket, sink: socket.socket) -> None:
        try:
            while data := source.recv(65536):
                sink.sendall(data)
        except OSError:
            pass
        for end in (source, sink):
            self._shut(end)

    @staticmethod
    def _shut(end: socket.socket) -> None:
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)

    def cut(self) -> None:
        while self._ends:
            end = self._ends.popleft()
            self._shut(end)
            end.close()

    def hold(self) -> None:
        self._open.clear()
        self.cut()

    def resume(self) -> None:
        self._open.set()

    def close(self) -> None:
        self._shut(self._listener)
        self._listener.close()
        self.cut()


@pytest.fixture(scope="module")
def cut(gateway, tmp_path_factory):
    """A server of ours, and the connection between it and its gateway."""
    wire = Wire(gateway.url)
    with run_ours(wire.url, tmp_path_factory.mktemp("cut")) as ours:
        yield ours, wire
    wire.close()


@BOTH_KINDS
def test_a_cut_connection_loses_nothing_and_does_nothing_twice(cut, tmp_path, pool) -> None:
    ours, wire = cut
    done, go = tmp_path / "done", tmp_path / "go"
    ours.cell("here = 'still'")
    command = f"echo once >> {done}; until [ -e {go} ]; do sleep 0.1; done; echo finished"
    waiting = pool.submit(ours.act, "run", command=command, blocking=True)
    wait_until(done.exists)
    wire.cut()
    assert ours.cell("here") == "'still'"
    go.touch()
    status, observation = waiting.result(60)
    assert (status, observation["content"]) == (200, "finished")
    assert done.read_text() == "once\n"


@pytest.mark.slow
def test_work_continues_while_the_connection_breaks_repeatedly(cut, tmp_path, pool) -> None:
    ours, wire = cut
    ours.cell("done = []")
    content = os.urandom(8_000_000)
    sent = pool.submit(
        ours.ask, "POST", "oh_jupyter/upload_file", params={"destination": str(tmp_path)},
        files={"file": ("a.bin", content)},
    )  # fmt: skip
    cells = [pool.submit(ours.cell, f"done.append({n}); {n}") for n in range(30)]
    under_way: set[Future[Any]] = {sent, *cells}
    for _ in range(5):
        under_way = wait(under_way, return_when=FIRST_COMPLETED).not_done
        wire.cut()
    assert [cell.result(60) for cell in cells] == [str(n) for n in range(30)]
    assert sorted(json.loads(ours.cell("done"))) == list(range(30))
    assert sent.result(60).status_code == 200
    assert (tmp_path / "a.bin").read_bytes() == content


@pytest.mark.slow
@pytest.mark.parametrize("how", ["by somebody else", "behind a cut connection"])
def test_a_kernel_that_the_gateway_restarts(cut, gateway, tmp_path, pool, how: str) -> None:
    ours, wire = cut
    done = tmp_path / "done"
    code = f"open({str(done)!r}, 'a').write('x'); import time; time.sleep(600)"
    waiting = pool.submit(ours.act, "run_ipython", code=code)
    wait_until(done.exists)
    if how == "behind a cut connection":
        wire.hold()
    assert gateway.ask("POST", f"api/kernels/{ours.default_kernel()}/restart").ok
    wire.resume()
    status, answer = waiting.result(60)
    assert (status, answer["error"]) == (503, "KernelDiedError")
    assert "state of its runtime is lost" in answer["detail"]
    assert ours.cell("6 * 7") == "42"
    assert done.read_text() == "x"


@pytest.mark.thorough
def test_a_default_kernel_that_hangs_at_its_start_is_replaced(tmp_path) -> None:
    code = (
        f"import pathlib, runpy, time; path = pathlib.Path({str(tmp_path / 'first')!r})\n"
        "if not path.exists(): path.touch(); time.sleep(600)\n"
        "runpy.run_module('ipykernel_launcher', run_name='__main__')"
    )
    command = (sys.executable, "-c", code, "-f", "{connection_file}")
    folder = tmp_path / "gateway"
    with run_gateway("subprotocol", folder, command=command) as gateway:
        soon = "--GatewayClient.request_timeout=6"
        with run_ours(gateway.url, tmp_path / "ours", soon, KERNEL_LAUNCH_TIMEOUT="4") as ours:
            assert ours.cell("6 * 7") == "42"
            wait_until(lambda: len(gateway.ask("GET", "api/kernels").json()) == 1)


def test_a_wrong_token_is_reported(gateway, tmp_path) -> None:
    with run_ours(gateway.url, tmp_path, token="wrong-token") as ours:
        status, answer = ours.act("run", command="true")
        assert status in (500, 502)
        assert "403" in answer["detail"] or "401" in answer["detail"]
        assert "wrong-token" not in "".join(ours.live.log)


@pytest.mark.slow
def test_an_idle_link_lets_the_gateway_cull(gateway, monkeypatch) -> None:
    from jupyter_server.gateway.gateway_client import GatewayClient

    from oh_jupyter.server.links import GatewayLink
    from oh_jupyter.server.links import gateway as links_gateway

    kernel = gateway.ask("POST", "api/kernels", json={"name": "there"}).json()["id"]

    def connections() -> int:
        return int(gateway.ask("GET", f"api/kernels/{kernel}").json()["connections"])

    async def work() -> None:
        link = GatewayLink(kernel, None)
        assert (await link.ask("kernel_info_request", {}))["content"]["status"] == "ok"
        assert await asyncio.to_thread(connections) == 1
        monkeypatch.setattr(links_gateway, "IDLE_DISCONNECT_SECONDS", 0.1)
        await link.ask("kernel_info_request", {})
        await asyncio.to_thread(wait_until, lambda: not connections())
        link.close()

    GatewayClient.clear_instance()
    try:
        GatewayClient.instance(url=gateway.url, auth_token=TOKEN)
        asyncio.run(work())
    finally:
        GatewayClient.clear_instance()
        gateway.ask("DELETE", f"api/kernels/{kernel}")
