"""A Jupyter server in its own process, as people start it."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import requests
from requests.adapters import HTTPAdapter
from urllib3 import Retry

from oh_jupyter.installed import python_command

TOKEN = "live-token"
TOKEN_OPTION = "--IdentityProvider.token="
"""Token of these servers, and the option that sets it."""

_ANNOUNCEMENT = re.compile("is (running|available) at")
_ADDRESS = re.compile(r"(http://127\.0\.0\.1:\d+[^\s?]*?)/?(?:\?\S*)?\s")
_CONNECTION_ATTEMPTS = 200
_MAX_PAUSE_SECONDS = 0.2


@dataclass(frozen=True)
class LiveServer:
    """A running Jupyter server.

    Attributes:
        url: Its address with its base path, without a slash at the end.
        token: The server's token.
        directory: Directory of its files; notebooks are below ``root`` in it.
        pid: Its process id.
        log: Lines of its log; the list grows.
    """

    url: str
    token: str
    directory: Path
    pid: int
    log: list[str] = field(repr=False)

    @property
    def headers(self) -> dict[str, str]:
        """Headers of a request that the server accepts."""
        return {"Authorization": f"token {self.token}"}


@contextmanager
def run_server(
    directory: Path,
    *options: str,
    environment: Mapping[str, str | None] | None = None,
    base: str = "/",
    port: int = 0,
    with_extension: bool = True,
) -> Iterator[LiveServer]:
    """Run a Jupyter server until the block ends.

    Args:
        directory: Directory of all its files: home, configuration, runtime files and store.
        options: Further command-line options, such as ``"--OhJupyter.enable_browser=False"``.
        environment: Variables in addition to those of the test; None unsets one.
        base: Base path.
        port: TCP port; 0 for any free one.
        with_extension: Load oh_jupyter, whose Actions then need no confirmation. Other extensions
            of the environment are not loaded.

    Yields:
        The running server.
    """
    directory = directory.resolve()
    (directory / "root").mkdir(exist_ok=True)
    variables: dict[str, str | None] = {
        **os.environ,
        # The start-up files of the user who runs the tests are slow.
        "HOME": str(directory),
        "FILE_STORE_PATH": str(directory / "store"),
        "JUPYTER_CONFIG_DIR": str(directory / "config"),
        "JUPYTER_RUNTIME_DIR": str(directory / "run"),
        # JupyterLab and other installed extensions are slow to load.
        "JUPYTER_NO_CONFIG": "1",
        # Nobody can confirm anything.
        "OH_JUPYTER_CONFIRMATION": "never",
        **(environment or {}),
    }
    command = [
        *python_command("jupyter_server", "--no-browser", "--allow-root"),
        *(f"--ServerApp.port={port}", "--ServerApp.ip=127.0.0.1", f"--ServerApp.base_url={base}"),
        *([] if any(TOKEN_OPTION in option for option in options) else [TOKEN_OPTION + TOKEN]),
        f"--ServerApp.root_dir={directory / 'root'}",
        *(["--ServerApp.jpserver_extensions={'oh_jupyter': True}"] if with_extension else []),
        *options,
    ]
    environ = {name: value for name, value in variables.items() if value is not None}
    with run_command(command, directory, environ) as server:
        yield server


@contextmanager
def run_command(
    command: Sequence[str], directory: Path, environment: Mapping[str, str], token: str = TOKEN
) -> Iterator[LiveServer]:
    """Run a program that serves Jupyter's API until the block ends.

    Args:
        command: The program and its arguments; it logs its address to standard error.
        directory: Working directory, and directory of its files.
        environment: All of its variables.
        token: The server's token.

    Yields:
        The running server.
    """
    process = subprocess.Popen(
        command,
        cwd=directory,
        # So that SIGABRT writes the stacks of all threads.
        env={**environment, "PYTHONFAULTHANDLER": "1"},
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    log: list[str] = []
    drain = threading.Thread(target=lambda: log.extend(process.stderr or ()), daemon=True)
    try:
        server = LiveServer(_address(process, log), token, directory, process.pid, log)
        drain.start()
        _wait_for_answer(server)
        yield server
    finally:
        try:
            end_server(process)
        finally:
            if drain.ident is not None:
                drain.join()
            process.stderr.close()
            print("".join(log))  # shown if a test has failed


def end_server(process: subprocess.Popen[str]) -> None:
    """Stop a server.

    A signal during Jupyter's handling of another event can be lost, so it is repeated. A server
    that still runs then is killed, and an error is raised.
    """
    for _ in range(3):
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(30)
            return
    process.send_signal(getattr(signal, "SIGABRT", signal.SIGTERM))
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(10)
    process.kill()
    process.wait()
    raise RuntimeError(
        "The server did not stop within 90 s of the signal, and was killed. Its log ends with the "
        "stacks of its threads"
    )


def _address(process: subprocess.Popen[str], log: list[str]) -> str:
    """Read the log up to the address after the announcement; earlier ones are another server's."""
    is_announced = False
    for line in process.stderr or ():
        log.append(line)
        is_announced = is_announced or _ANNOUNCEMENT.search(line) is not None
        if is_announced and (match := _ADDRESS.search(line)):
            return match[1].removesuffix("/lab").removesuffix("/tree")
    pytest.fail("the server did not start:\n" + "".join(log))


def _wait_for_answer(server: LiveServer) -> None:
    """Retry until the server responds: it logs the address before it listens."""
    retries = Retry(
        connect=_CONNECTION_ATTEMPTS,
        total=_CONNECTION_ATTEMPTS,
        backoff_factor=0.05,
        backoff_max=_MAX_PAUSE_SECONDS,
    )
    with requests.Session() as session:
        session.mount("http://", HTTPAdapter(max_retries=retries))
        response = session.get(f"{server.url}/api", headers=server.headers, timeout=60)
        response.raise_for_status()


@pytest.fixture(scope="module")
def live_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """Provide one Jupyter server with oh_jupyter per test module.

    Yields:
        The server.
    """
    with run_server(tmp_path_factory.mktemp("live_server")) as server:
        yield server
