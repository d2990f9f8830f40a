"""Programs in a box whose only network is the proxy."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import psutil
import pytest

from oh_jupyter.errors import SandboxError
from oh_jupyter.events import CmdOutputObservation, CmdRunAction
from oh_jupyter.sandbox import Box, allowed_environment, find_engine, make_profile
from oh_jupyter.sandbox._relay import PORT
from oh_jupyter.shell import BashSession
from oh_jupyter.testing import wait_until
from tests.sandbox.layout import Layout, kill_owner, make_layout
from tests.sandbox.proxied import RunningProxy, listening, read_all, website

pytestmark = pytest.mark.skipif(
    find_engine().program is None or sys.platform != "linux",
    reason="needs bubblewrap, and user namespaces",
)

NOT_LISTED = "it is not listed. If it is needed, ask the user to add it to sandbox_hosts."


class Boxed(NamedTuple):
    """A box with a proxy, and a website that is listed as site.example."""

    session: BashSession
    running: RunningProxy
    requests: list[tuple[str, str, dict[str, str], bytes]]
    folder: Path
    layout: Layout
    url: str

    def run(self, command: str) -> str:
        observation = self.session.execute(CmdRunAction(command, blocking=True))
        assert isinstance(observation, CmdOutputObservation), observation
        return observation.content


@contextlib.contextmanager
def box_with_proxy(folder: Path) -> Iterator[Boxed]:
    (folder / "site").mkdir()
    with make_layout() as layout, website(folder / "site") as (port, handler):
        profile = make_profile(str(layout.workspace), homes=[str(layout.home)], network="proxy")
        box = Box(profile, find_engine())
        running = RunningProxy(box.proxy_socket, f"site.example:{port}")
        running.access.entries += (f"127.0.0.1:{port}",)
        running.names.answers["site.example"] = [["127.0.0.1"]]
        env = allowed_environment(layout.env())
        try:
            with BashSession(layout.workspace, None, 60, env=env, enclosure=box) as session:
                url = f"http://site.example:{port}"
                yield Boxed(session, running, handler.requests, folder / "site", layout, url)
        finally:
            running.close()
            box.close()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Boxed]:
    with box_with_proxy(tmp_path_factory.mktemp("site")) as made:
        yield made


@pytest.fixture
def boxed(shared: Boxed) -> Boxed:
    shared.requests.clear()
    return shared


def test_curl(boxed: Boxed) -> None:
    assert boxed.run(f"curl -sS {boxed.url}/hello") == "hello"
    assert boxed.run(f"curl -sSp {boxed.url}/hello") == "hello"
    assert boxed.run(f"curl -sS -d some=data {boxed.url}/") == "some=data"
    chunked = "-H 'Transfer-Encoding: chunked' --data-binary @-"
    assert boxed.run(f"seq 99999 | curl -sS {chunked} {boxed.url}/ | md5sum") == boxed.run(
        "seq 99999 | md5sum"
    )


def test_a_refusal_reads_well(boxed: Boxed) -> None:
    assert boxed.run("curl -sS http://other.example/") == (
        f"other.example:80 is refused: {NOT_LISTED}"
    )
    code = (
        "from urllib.request import urlopen\n"
        "try: urlopen('https://other.example/')\nexcept OSError as error: print(error)"
    )
    assert "403 other.example:443 is refused: it is not listed." in boxed.run(
        f'{sys.executable} -c "{code}"'
    )


def test_urllib(boxed: Boxed) -> None:
    code = f"from urllib.request import urlopen; print(urlopen('{boxed.url}/hello').read())"
    assert boxed.run(f'{sys.executable} -c "{code}"') == "b'hello\\n'"


def test_git(boxed: Boxed) -> None:
    repository = boxed.folder / "repository.git"
    clone = boxed.folder / "clone"
    identity = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
    subprocess.run(["git", "init", "-q", clone], check=True)
    subprocess.run(
        ["git", "-C", clone, *identity, "commit", "-q", "--allow-empty", "-m", "one"], check=True
    )
    subprocess.run(["git", "clone", "-q", "--bare", clone, repository], check=True)
    subprocess.run(["git", "-C", repository, "update-server-info"], check=True)
    address = f"{boxed.url}/repository.git"
    assert boxed.run(f"git clone -q {address} /tmp/c && git -C /tmp/c log --format=%s") == "one"
    assert "403" in boxed.run("git ls-remote https://other.example/x.git")


@pytest.mark.thorough
def test_pip(boxed: Boxed) -> None:
    wheel = boxed.folder / "simple" / "tiny" / "tiny-1.0-py3-none-any.whl"
    wheel.parent.mkdir(parents=True)
    make_wheel = (
        "import sys, zipfile\n"
        "with zipfile.ZipFile(sys.argv[1], 'w') as file:\n"
        "    file.writestr('tiny.py', '')\n"
        "    file.writestr('tiny-1.0.dist-info/METADATA', "
        "'Metadata-Version: 2.1\\nName: tiny\\nVersion: 1.0\\n')\n"
        "    file.writestr('tiny-1.0.dist-info/WHEEL', "
        "'Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')\n"
        "    file.writestr('tiny-1.0.dist-info/RECORD', '')\n"
    )
    subprocess.run([sys.executable, "-c", make_wheel, wheel], check=True)
    options = (
        f"--isolated --no-cache-dir --no-deps --trusted-host site.example -i {boxed.url}/simple"
    )
    command = f"{sys.executable} -m pip download -q {options} -d /tmp/d tiny; ls /tmp/d"
    assert boxed.run(command).endswith("tiny-1.0-py3-none-any.whl")
    refused = f"{sys.executable} -m pip download --isolated --retries 1 -i https://other.example x"
    assert "403 other.example:443 is refused: it is not listed." in boxed.run(refused)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl, for a certificate")
def test_tls_passes_unopened(boxed: Boxed, tmp_path: Path) -> None:
    import ssl

    key, certificate = tmp_path / "key", boxed.layout.workspace / "certificate"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"),
            *(
                "-nodes",
                "-subj",
                "/CN=secure.example",
                "-addext",
                "subjectAltName=DNS:secure.example",
            ),
            *("-keyout", str(key), "-out", str(certificate)),
        ],
        check=True,
        capture_output=True,
    )
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    from oh_jupyter.background import start_thread

    with listening() as server:
        port = server.getsockname()[1]
        boxed.running.access.entries += (f"secure.example:{port}", f"127.0.0.1:{port}")
        boxed.running.names.answers["secure.example"] = [["127.0.0.1"]]

        def answer() -> None:
            with context.wrap_socket(server.accept()[0], server_side=True) as connection:
                connection.recv(1000)
                connection.sendall(b"HTTP/1.0 200 OK\r\n\r\nsecret page")

        start_thread(answer, "tls")
        page = boxed.run(f"curl -sS --cacert certificate https://secure.example:{port}/")
        assert page == "secret page"


def test_redirects_are_new_requests(boxed: Boxed) -> None:
    assert boxed.run(f"curl -sSL {boxed.url}/to?/hello") == "hello"
    for target in (
        *("http://169.254.169.254/latest/meta-data/", "http://127.0.0.1:1/", "http://[::1]:1/"),
        *("http://2130706433/", "http://0x7f.1/", "http://other.example/"),
    ):
        output = boxed.run(f"curl -sSgL --noproxy '' '{boxed.url}/to?{target}'")
        assert " is refused: it is not listed." in output or "not an address" in output


DIRECT = (
    "import socket; socket.create_connection((%r, %d), 2); print('ESCAPED')",
    "import socket; socket.getaddrinfo('site.example', 80); print('ESCAPED')",
    "import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); "
    "s.sendto(b'x', ('10.255.255.53', 53)); print('ESCAPED')",
)


def test_without_the_proxy_there_is_no_network(boxed: Boxed) -> None:
    port = int(boxed.url.rpartition(":")[2])
    for command in (
        f"curl -sS --noproxy '*' {boxed.url}/hello",
        f"curl -sS --noproxy '*' --resolve site.example:{port}:127.0.0.1 {boxed.url}/hello",
        f"env -u http_proxy -u HTTP_PROXY curl -sS {boxed.url}/hello",
        f"curl -sS http://127.0.0.1:{port}/hello",
        *(f'{sys.executable} -c "{code}"' for code in (DIRECT[0] % ("127.0.0.1", port), DIRECT[1])),
        f'{sys.executable} -c "{DIRECT[2]}"',
        f'{sys.executable} -c "{DIRECT[0] % ("::1", port)}"',
    ):
        output = boxed.run(command)
        assert "hello" not in output.replace("/hello", ""), command
        assert "ESCAPED" not in output, command
    assert boxed.requests == []


def test_bypassing_the_proxy_variables_is_refused(boxed: Boxed) -> None:
    proxy = f"http://127.0.0.1:{PORT}"
    for command, words in (
        (f"curl -sS -x {proxy} -H 'Host: site.example' http://other.example/", "not listed"),
        (f"curl -sSp -x {proxy} http://169.254.169.254/ -v 2>&1", "is refused"),
        (f"curl -sS --noproxy '' -x {proxy} http://localhost:1/", "127.0.0.1:1 is refused"),
        (f"curl -sSg -x {proxy} 'http://[::ffff:169.254.169.254]/'", "not a plain IPv6 address"),
        (
            f"exec 3<>/dev/tcp/127.0.0.1/{PORT}; "
            r"printf 'CONNECT site.example\0.other.example:443 HTTP/1.1\r\n\r\n' >&3; cat <&3",
            "not a request",
        ),
        (
            f"exec 3<>/dev/tcp/127.0.0.1/{PORT}; "
            r"printf 'CONNECT /var/run/docker.sock HTTP/1.1\r\n\r\n' >&3; cat <&3",
            "not HOST:PORT",
        ),
    ):
        assert words in boxed.run(command), command


def test_servers_in_the_box_need_no_proxy(boxed: Boxed) -> None:
    command = (
        f"(cd /tmp && echo inner >x && exec {sys.executable} -m http.server -b 127.0.0.1 8000 "
        "& ) >/dev/null 2>&1; curl -sS --retry 50 --retry-connrefused --retry-delay 0 "
        "--retry-max-time 20 http://localhost:8000/x; pkill -f http.server"
    )
    assert boxed.run(command).splitlines()[-1] == "inner"


def test_the_proxys_folder_is_read_only(boxed: Boxed) -> None:
    for command in ("rm /run/oh_proxy/socket", "touch /run/oh_proxy/x", "ls /run/other"):
        assert boxed.run(f"{command} && echo ESCAPED").count("ESCAPED") == 0
    assert boxed.run(f"curl -sS {boxed.url}/hello") == "hello"


def test_static_commands_have_the_proxy(boxed: Boxed) -> None:
    action = CmdRunAction(f"curl -sS {boxed.url}/hello", is_static=True, blocking=True)
    assert boxed.session.execute(action).content == "hello"


def test_many_programs_at_once(boxed: Boxed) -> None:
    (boxed.folder / "file").write_bytes(os.urandom(200_000))
    expected = boxed.run(f"curl -sS {boxed.url}/file | md5sum")
    loop = f"for i in {{1..40}}; do curl -sS {boxed.url}/file | md5sum & done; wait"
    assert boxed.run(f"({loop}) 2>/dev/null | sort -u") == expected
    wait_until(lambda: boxed.running.open_connections == 0)


def test_a_program_that_is_killed_leaves_no_connection(boxed: Boxed) -> None:
    with listening() as server:
        port = server.getsockname()[1]
        boxed.running.access.entries += (f"127.0.0.1:{port}",)
        boxed.run(f"curl -sSp --noproxy x http://127.0.0.1:{port}/ & sleep 0; true")
        with server.accept()[0] as connection:
            boxed.run("kill -9 %1")
            read_all(connection)
    wait_until(lambda: boxed.running.open_connections == 0)


def test_the_relay_belongs_to_the_boxs_init(boxed: Boxed) -> None:
    shown = boxed.run("ps -eo ppid=,tty=,args= | grep '[_]relay.py.*socket /'")
    assert shown.splitlines()[-1].split()[:2] == ["1", "?"]
    assert "_relay" not in boxed.run("jobs; ps -T")


def test_the_end_of_a_box_ends_its_relay(tmp_path: Path) -> None:
    with box_with_proxy(tmp_path) as made:
        assert made.run(f"curl -sS {made.url}/hello") == "hello"
        pid = made.session.pid
        assert pid is not None
        init = psutil.Process(pid).parent()
        assert init is not None
        processes = [init, *init.children(recursive=True)]
        assert any("_relay.py" in " ".join(each.cmdline()) for each in processes)
        folder = Path(made.running.path).parent
    wait_until(lambda: not any(each.is_running() for each in processes))
    assert not folder.exists()


KILLED = """
import asyncio, sys
from oh_jupyter.events import CmdRunAction
from oh_jupyter.sandbox import Box, Profile, find_engine
from oh_jupyter.shell import BashSession
from oh_jupyter.background import LoopThread
from oh_jupyter.sandbox.proxy import Proxy
profile = Profile((sys.argv[1],), visible=(sys.prefix, sys.base_prefix), network="proxy")
box = Box(profile, find_engine())
LoopThread("proxy").submit(Proxy(None).listen(box.proxy_socket)).result()
session = BashSession(sys.argv[1], enclosure=box)
session.initialize()
session.execute(CmdRunAction("setsid sleep 1000 &"))
print(box.folder, session.pid, flush=True)
sys.stdin.read()
"""


@pytest.mark.thorough
def test_a_kill_of_the_owner_leaves_nothing() -> None:
    with make_layout() as layout:
        kill_owner(KILLED, layout.workspace, "_relay.py")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root changes users")
def test_another_user_in_a_box_with_a_proxy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = shutil.which("python3", path="/usr/bin:/usr/local/bin")
    version = "import sys; sys.exit(sys.version_info < (3, 11))"
    if python is None or subprocess.run([python, "-c", version], check=False).returncode:
        pytest.skip("needs a Python that every user can run")
    engine = find_engine("nobody")
    assert engine.program is not None, engine.sentence
    work = tmp_path / "work"
    work.mkdir()
    for parent in (work, *work.parents):
        if "pytest" in str(parent):
            parent.chmod(0o755)
    monkeypatch.setattr(sys, "executable", python)
    box = Box(make_profile(str(work), homes=["/root"], network="proxy"), engine, "nobody")
    running = RunningProxy(box.proxy_socket, owner="nobody")
    try:
        with BashSession(work, "nobody", 60, enclosure=box) as session:
            observation = session.execute(CmdRunAction("id -un; curl -sS http://a.example/"))
            assert observation.content == f"nobody\na.example:80 is refused: {NOT_LISTED}"
    finally:
        running.close()
        box.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root changes users")
def test_another_user_without_access_to_the_relay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    private = tmp_path / "private"
    private.mkdir(mode=0o700)
    monkeypatch.setattr(sys, "executable", str(private / "python"))
    profile = make_profile(str(tmp_path), homes=[], network="proxy")
    with pytest.raises(
        SandboxError, match=r"nobody cannot run the kernel's Python, .*/python\. Set"
    ):
        Box(profile, find_engine("nobody"), "nobody")
