"""``oh-jupyter status|log|confirm|open`` against a Jupyter server."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import nbformat
import pytest
import requests
from jupyter_client.blocking.client import BlockingKernelClient

from oh_jupyter.cli import main
from oh_jupyter.client import RuntimeClient
from oh_jupyter.events import CmdRunAction
from oh_jupyter.testing import LiveServer, run_server, wait_until

COMMAND = [sys.executable, "-m", "oh_jupyter.cli"]
SCRIPTED = Path(__file__).parents[1] / "examples" / "scripted_agent.py"
RISKY = CmdRunAction("rm -rf /tmp/nothing_is_there")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    directory = tmp_path_factory.mktemp("cli")
    (directory / "root").mkdir()
    nbformat.write(nbformat.v4.new_notebook(), directory / "root" / "closed one.ipynb")
    with (
        run_server(
            directory,
            "--OhJupyter.confirmation_over_rest=True",
            environment={
                "OH_JUPYTER_CONFIRMATION": "risky",
                "OH_JUPYTER_AGENTS": json.dumps({"scripted": f"{sys.executable} {SCRIPTED}"}),
            },
        ) as server,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("JUPYTER_RUNTIME_DIR", str(directory / "run"))
        patch.delenv("OH_URL", raising=False)
        patch.delenv("OH_TOKEN", raising=False)
        yield server


@pytest.fixture
def client(server: LiveServer) -> Iterator[RuntimeClient]:
    with RuntimeClient(server.url, server.token) as client:
        yield client


@pytest.fixture
def shown(server: LiveServer, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    def run(*arguments: str) -> str:
        status = main(arguments)
        out, err = capsys.readouterr()
        assert (status, err) == (0, "")
        return out

    return run


@pytest.fixture
def refused(server: LiveServer, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """The last line of a refusal: the only one, but where the usage stands above it."""

    def run(*arguments: str) -> str:
        try:
            status = main(arguments)
        except SystemExit as ended:
            status = ended.code
        out, err = capsys.readouterr()
        *before, last = err.splitlines()
        assert (status, out) == ((2, "") if before else (1, ""))
        assert not before or before[0].startswith("usage: ")
        return last

    return run


def test_before_anything_was_done(shown: Callable[..., str]) -> None:
    assert shown("confirm") == "Nothing waits.\n"
    assert shown("log") == ""


def test_status_and_log(client: RuntimeClient, shown: Callable[..., str]) -> None:
    client.run("echo one &&\necho two")
    client.run("cd /")
    status = dict(line.split(None, 1) for line in shown("status").splitlines())
    assert status["cwd"] == "/"
    assert status["kernel"] == client.server_info()["default_kernel"]
    assert float(status["idle_time"]) >= 0
    log = shown("log").splitlines()
    assert [line.split()[:3] for line in log[:2]] == [["0", "agent", "run"], ["1", "agent", "run"]]
    assert log[0].endswith("  echo one && …")
    assert shown("log", "--last", "1").splitlines() == log[-1:]
    assert shown("log", "-n", "0") == ""


def test_deciding(client: RuntimeClient, shown: Callable[..., str]) -> None:
    for option, message, kind in (
        ([], "Approved.\n", "run"),
        (["--reject"], "Rejected.\n", "user_rejected"),
        (["--session"], "Approved.\n", "run"),
    ):
        with ThreadPoolExecutor(1) as thread:
            asked = thread.submit(client.execute, RISKY)
            (entry,) = wait_until(client.waiting, what="the question")
            terms = r"; rejected in \d:\d\d unless you decide\)\n"
            line = re.escape(f"{entry['message']}  ({entry['reason']}") + terms
            assert re.fullmatch(f"{entry['id']:5}  {line}", shown("confirm"))
            assert re.search(f"waits: {entry['id']}  {line}$", shown("status"))
            assert shown("confirm", str(entry["id"]), *option) == message
            assert asked.result().kind == kind
    assert client.execute(RISKY).kind == "run"
    assert client.waiting() == []


def test_a_question_cannot_look_like_another_one(
    client: RuntimeClient, shown: Callable[..., str]
) -> None:
    """Neither by moving the cursor, nor by a line of its own."""
    hidden = "sudo rm -rf /x #\x1b[2K\x1b[1G    0  Running command: true"
    command = f"{hidden}\n    0  Running command: true\u202e"
    with ThreadPoolExecutor(1) as thread:
        asked = thread.submit(client.execute, CmdRunAction(command))
        (entry,) = wait_until(client.waiting, what="the question")
        lines = shown("confirm").splitlines()
        client.confirm(entry["id"], approve=False)
        asked.result()
    assert lines[0].endswith(r"sudo rm -rf /x #\x1b[2K\x1b[1G    0  Running command: true")
    assert lines[1].startswith(r"       |     0  Running command: true\u202e  (")
    assert r"\x1b[2K" in shown("log")


@contextmanager
def waiting_guest(server: LiveServer, address: str, model: dict[str, Any]) -> Iterator[str]:
    """A kernel whose own agent waits for a person, and to which nothing else was sent."""
    api = requests.Session()
    api.headers.update(server.headers)
    started = api.post(f"{server.url}/api/{address}", json=model, timeout=60).json()
    kernel = started.get("kernel", started)["id"]
    client = BlockingKernelClient(
        connection_file=str(server.directory / "run" / f"kernel-{kernel}.json")
    )
    client.load_connection_file()
    client.start_channels()
    try:
        client.execute("%load_ext oh_jupyter")
        prompt = f"tool run {json.dumps({'command': RISKY.command})}"
        client.execute(f"%%oh_agent scripted\n{prompt}")
        yield str(kernel)
    finally:
        client.stop_channels()
        api.delete(f"{server.url}/api/kernels/{kernel}", timeout=60)


def test_actions_of_guests_in_other_kernels(
    server: LiveServer, client: RuntimeClient, shown: Callable[..., str], refused: Any
) -> None:
    client.run("true")  # the default kernel, where nothing waits
    name = "closed one.ipynb"
    notebook = {"path": name, "name": name, "type": "notebook", "kernel": {"name": "python3"}}
    with (
        waiting_guest(server, "sessions", notebook) as kernel,
        waiting_guest(server, "kernels", {}) as other,
    ):
        below = f"{server.url}/oh_jupyter/kernels"

        def listed(id: str) -> Any:
            address = f"{below}/{id}/confirmations"
            return requests.get(address, headers=server.headers, timeout=60).json()

        for id in (kernel, other):
            wait_until(lambda id=id: listed(id), what="the question", timeout_seconds=120)
        (entry,) = listed(kernel)
        options = f"--notebook {shlex.quote(name)}", f"--url {below}/{other}"
        text = shown("confirm")
        assert f"In {name}; decide with: oh-jupyter confirm {options[0]} ID\n" in text
        assert f"In kernel {other}; decide with: oh-jupyter confirm {options[1]} ID\n" in text
        assert text.count(entry["message"]) == 2
        status = shown("status")
        assert f"waits in {name}: {entry['id']}  " in status
        assert f"waits in kernel {other}: " in status
        # The id is that of an action in several kernels: a decision needs the kernel.
        hint = refused("confirm", str(entry["id"]))
        assert f"oh-jupyter confirm {options[0]} {entry['id']}" in hint
        for option in options:
            token = ["--token", server.token] if "--url" in option else []
            decided = shown("confirm", *shlex.split(option), *token, str(entry["id"]), "--reject")
            assert decided == "Rejected.\n"
        assert shown("confirm") == "Nothing waits.\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("confirm 4711", "oh-jupyter: No action 4711 waits. Waiting: none"),
        (f"confirm {'9' * 30}", f"oh-jupyter: No action {'9' * 30} waits. Waiting: none"),
        ("confirm x", "oh-jupyter confirm: error: argument id: invalid number value: 'x'"),
        ("confirm -- -1", "oh-jupyter confirm: error: argument id: invalid number value: '-1'"),
        ("log -n=-1", "oh-jupyter log: error: argument -n/--last: invalid number value: '-1'"),
        ("status more", "oh-jupyter: error: unrecognized arguments: more"),
        ("log --notebook no.ipynb", "oh-jupyter: no.ipynb is not open in {url}. Open notebooks: "),
        (
            "open --notebook no.ipynb",
            "oh-jupyter: There is no no.ipynb below the root of {url}. Name it as",
        ),
        (
            "status --url localhost",
            "oh-jupyter: 'localhost' is not the address of a Jupyter server",
        ),
        ("status --url {url} --token x", "oh-jupyter: The server's token is missing or wrong"),
        ("open --url {url} --token x", "oh-jupyter: {url}/api/contents/?content=0 answers 403"),
        ("log --url http://127.0.0.1:9", "oh-jupyter: http://127.0.0.1:9/oh_jupyter cannot be"),
        (
            "open --url http://127.0.0.1:9",
            "oh-jupyter: http://127.0.0.1:9/api/contents/?content=0 ",
        ),
    ],
)
def test_wrong_inputs(
    server: LiveServer, refused: Callable[..., str], arguments: str, message: str
) -> None:
    words = arguments.format(url=server.url).split()
    assert refused(*words).startswith(message.format(url=server.url))


def test_no_server(
    refused: Callable[..., str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path))
    for command in ("status", "log", "confirm", "open"):
        assert refused(command).startswith("oh-jupyter: No Jupyter server is running here.")


@pytest.mark.thorough
def test_opening(server: LiveServer, tmp_path: Path) -> None:
    browser, visited = tmp_path / "browser", tmp_path / "visited"
    browser.write_text(f'#!/bin/sh\nprintf %s "$1" > {visited}\n')
    browser.chmod(0o755)
    address = f"{server.url}/lab/tree/closed%20one.ipynb"
    open_it = [*COMMAND, "open", "--notebook", "closed one.ipynb"]
    bare = {name: value for name, value in os.environ.items() if "DISPLAY" not in name}
    done = subprocess.run(
        open_it, env=bare | {"BROWSER": str(browser)}, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, f"Opened {address}\n", "")
    assert visited.read_text() == f"{address}?token={server.token}"
    done = subprocess.run(
        open_it, env=bare | {"PATH": str(tmp_path)}, capture_output=True, text=True
    )
    message = f"No browser can be started here. Open {address}?token={server.token}\n"
    assert (done.returncode, done.stdout, done.stderr) == (0, message, "")


def test_following_until_interrupted(client: RuntimeClient) -> None:
    client.run("echo before")
    with subprocess.Popen(
        [*COMMAND, "log", "--follow", "-n", "1"], stdout=subprocess.PIPE, text=True
    ) as following:
        assert following.stdout is not None
        assert "echo before" in following.stdout.readline()
        client.run("echo meanwhile")
        assert following.stdout.readline().endswith("  echo meanwhile\n")
        following.send_signal(signal.SIGINT)
        following.stdout.read()
        assert following.wait() == 0


@pytest.mark.thorough
def test_a_reader_that_has_seen_enough(client: RuntimeClient) -> None:
    client.run("true")
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run([*COMMAND, "status"], stdout=writing, stderr=subprocess.PIPE, text=True)
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.fixture
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


def test_tokens_are_made_listed_and_revoked(own_state: None, shown: Callable[..., str]) -> None:
    assert shown("token") == "There are no tokens.\n"
    made = ("--read", "--browse", "--notebook", "a.ipynb", "--expires", "8h", "--label", "Gemini")
    assert shown("token", *made).startswith("ohj_")
    line = shown("token")
    id = line.partition(" ")[0]
    assert line.startswith(f"{id}  read, browse in a.ipynb, until 20")
    assert line.endswith(" (Gemini)\n")
    assert shown("token", "--revoke", id) == f"Revoked {id}.\n"
    assert shown("token") == "There are no tokens.\n"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--notebook", "a.ipynb"), "oh-jupyter: name what the token allows"),
        (("--revoke", "0"), "oh-jupyter: there is no token '0'. Tokens: none"),
        (("--read", "--expires", "8"), "oh-jupyter token: error: argument --expires: invalid time"),
        (
            ("--read", "--expires", "0h"),
            "oh-jupyter token: error: argument --expires: invalid time",
        ),
    ],
)
def test_tokens_that_are_refused(
    own_state: None, refused: Callable[..., str], options: tuple[str, ...], message: str
) -> None:
    assert refused("token", *options).startswith(message)


def test_the_environment_of_no_server_fails_where_it_is_evaluated() -> None:
    shell = 'eval "$("$@" env --notebook nope.ipynb)"; echo "$? ${OH_URL-unset} ${OH_TOKEN-unset}"'
    done = subprocess.run(
        ["bash", "-c", shell, "bash", *COMMAND],
        env={**os.environ, "OH_URL": "http://old.example.org", "OH_TOKEN": "old"},
        capture_output=True,
        text=True,
    )
    assert done.stdout == "1 unset unset\n"
    assert "nope.ipynb" in done.stderr or "No Jupyter server" in done.stderr
