"""A Jupyter server with the extension in a process of its own, as people start it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import requests
from urllib3 import Retry

__all__ = ["TOKEN", "LiveServer", "live_server"]

TOKEN = "live-token"
_ADDRESS = re.compile(r"(http://127\.0\.0\.1:\d+(?:/base)?)/(?:\?|$|\s)")


@dataclass(frozen=True)
class LiveServer:
    """A server that answers; ``log`` grows with what it says."""

    url: str
    token: str
    directory: Path
    pid: int
    log: list[str] = field(repr=False)

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"token {self.token}"}


@contextmanager
def live_server(
    directory: Path,
    *options: str,
    environment: Mapping[str, str | None] | None = None,
    base: str = "/",
) -> Iterator[LiveServer]:
    """Start a server whose files are below a directory, and stop it at the end.

    Variables that are None are not there.
    """
    (directory / "root").mkdir(exist_ok=True)
    variables: dict[str, str | None] = {
        **os.environ,
        # The start-up files of whoever runs the tests take their time.
        "HOME": str(directory),
        "FILE_STORE_PATH": str(directory / "store"),
        "JUPYTER_CONFIG_DIR": str(directory / "config"),
        "JUPYTER_RUNTIME_DIR": str(directory / "run"),
        # Nobody is there to confirm anything.
        "OH_JUPYTER_CONFIRMATION": "never",
        **(environment or {}),
    }
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "jupyter_server", "--no-browser", "--allow-root"),
            *("--ServerApp.port=0", "--ServerApp.ip=127.0.0.1", f"--ServerApp.base_url={base}"),
            *(f"--IdentityProvider.token={TOKEN}", f"--ServerApp.root_dir={directory / 'root'}"),
            *("--ServerApp.jpserver_extensions={'oh_jupyter': True}", *options),
        ],
        stderr=subprocess.PIPE,
        text=True,
        env={name: value for name, value in variables.items() if value is not None},
    )
    assert process.stderr is not None
    log: list[str] = []
    found = None
    for line in process.stderr:
        log.append(line)
        if found := _ADDRESS.search(line):
            break
    if found is None:
        pytest.fail("the server did not start:\n" + "".join(log))
    drain = threading.Thread(target=lambda: log.extend(process.stderr or ()), daemon=True)
    drain.start()
    server = LiveServer(found[1], TOKEN, directory, process.pid, log)
    with requests.Session() as session:  # its address is in the log before it listens there
        retries = Retry(connect=20, backoff_factor=0.05)
        session.mount("http://", requests.adapters.HTTPAdapter(max_retries=retries))
        answer = session.get(f"{server.url}/oh_jupyter/alive", headers=server.headers, timeout=60)
        answer.raise_for_status()
    try:
        yield server
    finally:
        process.terminate()
        process.wait(60)
        drain.join()
        process.stderr.close()
        print("".join(log))  # shown if a test has failed
