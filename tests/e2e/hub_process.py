"""A real JupyterHub with its proxy, for the tests of several modules."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest
import requests

from oh_jupyter.testing import descendants, wait_until

PROXY = os.environ.get("CONFIGURABLE_HTTP_PROXY") or shutil.which("configurable-http-proxy")
ADMIN = "token-of-the-service-that-administers"

CONFIG = """
import json, sys
values = json.loads({values!r})
c.JupyterHub.bind_url = values["url"]
c.JupyterHub.hub_bind_url = values["hub"]
c.ConfigurableHTTPProxy.api_url = values["api"]
c.ConfigurableHTTPProxy.command = [values["proxy"], *values["proxy_options"]]
c.JupyterHub.spawner_class = "simple"
c.SimpleLocalProcessSpawner.home_dir_template = values["home"] + "/{{username}}"
c.JupyterHub.authenticator_class = "dummy"
c.Authenticator.allow_all = True
c.JupyterHub.allow_named_servers = True
c.Spawner.cmd = [sys.executable, "-m", "jupyterhub.singleuser"]
c.Spawner.args = [
    "--allow-root",
    "--ServerApp.jpserver_extensions={{'oh_jupyter': True}}",
    "--ServerApp.websocket_ping_interval=5",
]
c.Spawner.environment = values["environment"]
c.Spawner.start_timeout = c.Spawner.http_timeout = 300
"""


@dataclass(frozen=True)
class Hub:
    url: str
    log: list[str] = field(repr=False)

    def api(self, method: str, path: str, **options: Any) -> Any:
        headers = {"Authorization": f"token {ADMIN}"}
        answer = requests.request(
            method, f"{self.url}/hub/api/{path}", headers=headers, timeout=300, **options
        )
        answer.raise_for_status()
        return answer

    def begin(self, user: str, server: str = "") -> str:
        """Start a server of a user, who is new or not, and return a token of theirs."""
        with suppress(requests.HTTPError):  # the user exists
            self.api("POST", f"users/{user}")
        self.api("POST", f"users/{user}/servers/{server}" if server else f"users/{user}/server")
        wait_until(
            lambda: self.api("GET", f"users/{user}").json()["servers"][server]["ready"],
            timeout_seconds=300,
        )
        return self.token(user)

    def token(self, user: str) -> str:
        return str(self.api("POST", f"users/{user}/tokens", json={}).json()["token"])

    def server(self, user: str) -> str:
        return f"{self.url}/user/{user}"


def free_address() -> str:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{listener.getsockname()[1]}"


@contextmanager
def running_hub(
    place: Path,
    config: str,
    *,
    path: str = "",
    proxy_options: list[str] | None = None,
    environment: dict[str, str] | None = None,
) -> Iterator[Hub]:
    """Run a hub below a path with the lines of ``config`` after the common ones."""
    url = f"{free_address()}{path}"
    values = {
        "url": url,
        "hub": free_address(),
        "api": free_address(),
        "proxy": PROXY,
        "proxy_options": proxy_options or [],
        "home": str(place),
        "environment": {"OH_JUPYTER_CONFIRMATION": "never", **(environment or {})},
    }
    lines = CONFIG.format(values=json.dumps(values)) + config
    (place / "jupyterhub_config.py").write_text(lines)
    process = subprocess.Popen(
        [sys.executable, "-m", "jupyterhub"],
        cwd=place,
        env={**os.environ, "JUPYTERHUB_CRYPT_KEY": "0" * 64},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    log: list[str] = []
    for line in process.stdout:
        log.append(line)
        if "JupyterHub is now running" in line:
            break
    else:
        pytest.fail("".join(log))
    drain = threading.Thread(target=lambda: log.extend(process.stdout or ()))
    drain.start()
    try:
        yield Hub(url, log)
    finally:
        below = descendants(lambda process: True, of=process.pid)
        process.terminate()
        process.wait(120)
        # Where node is started by another program, the hub ends that one only.
        for left in below:
            with suppress(psutil.NoSuchProcess):
                left.kill()
        drain.join()
        process.stdout.close()
        print("".join(log))
