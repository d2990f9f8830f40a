"""A Jupyter server as people start it, in a process of its own, and what they do in it."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import requests
from urllib3 import Retry

from oh_jupyter.testing.server import end_server

TOKEN = "token-of-the-server"
ADDRESS = re.compile(r"http://[^/\s]+:(\d+)/b/")
HEADERS = {"Authorization": f"token {TOKEN}"}


@contextmanager
def jupyter(environment: dict[str, str], directory: str) -> Iterator[subprocess.Popen]:
    """A server in a directory, noted for other programs below JUPYTER_RUNTIME_DIR."""
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "jupyter_server", "--no-browser", "--allow-root"),
            *("--ServerApp.port=0", f"--IdentityProvider.token={TOKEN}", "--ServerApp.base_url=/b"),
            "--ServerApp.jpserver_extensions={'oh_jupyter': True}",
        ],
        cwd=directory,
        # JupyterLab and whatever else is installed would take longer to load than all of ours.
        env={**environment, "JUPYTER_NO_CONFIG": "1"},
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    said = []
    while not (found := ADDRESS.search("".join(said[-1:]))):
        said.append(process.stderr.readline())
        assert said[-1], "the server did not start:\n" + "".join(said)
    process.url = f"http://127.0.0.1:{found[1]}/b"
    # It says so before it listens; once it answers, it has also noted where it is.
    with requests.Session() as session:
        retries = Retry(connect=200, backoff_factor=0.05, backoff_max=0.2)
        session.mount("http://", requests.adapters.HTTPAdapter(max_retries=retries))
        session.get(f"{process.url}/api", timeout=60).raise_for_status()
    drain = threading.Thread(target=process.stderr.read)
    drain.start()
    try:
        yield process
    finally:
        end_server(process)
        drain.join()
        process.stderr.close()


def open_notebook(url: str, name: str) -> str:
    """As a person opens one: with a kernel, whose id comes back."""
    body = {"path": name, "name": name, "type": "notebook", "kernel": {"name": "python3"}}
    answer = requests.post(f"{url}/api/sessions", json=body, headers=HEADERS, timeout=60)
    answer.raise_for_status()
    return str(answer.json()["kernel"]["id"])


def shut_down(url: str, kernel: str) -> None:
    """As a person shuts a kernel down."""
    requests.delete(f"{url}/api/kernels/{kernel}", headers=HEADERS, timeout=60).raise_for_status()
