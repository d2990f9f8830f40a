"""A real Jupyter server with the extension, and requests to it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import requests
from pytest_jupyter.jupyter_core import jp_asyncio_loop
from pytest_jupyter.jupyter_server import jp_server_cleanup
from tornado.httpclient import HTTPClientError
from urllib3 import Retry

sys.path.insert(0, str(Path(__file__).parent))

# Taken back from the root, which switches them off for everybody else.
__all__ = ["jp_asyncio_loop", "jp_server_cleanup"]

Ask = Callable[..., Awaitable[tuple[int, Any]]]


@pytest.fixture
def jp_server_config(jp_server_config: dict[str, Any]) -> dict[str, Any]:
    return {
        **jp_server_config,
        "ServerApp": {
            **jp_server_config.get("ServerApp", {}),
            "jpserver_extensions": {"oh_jupyter": True},
            "allow_unauthenticated_access": False,
        },
    }


@pytest.fixture
def ask(jp_fetch: Any) -> Ask:
    """Send a request below the extension's address: status and JSON of the answer."""

    async def ask(*path: str, body: Any = None, method: str | None = None, **options: Any) -> Any:
        method = method or ("GET" if body is None else "POST")
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        try:
            response = await jp_fetch(
                "oh_jupyter", *path, method=method, body=body, request_timeout=60, **options
            )
        except HTTPClientError as problem:
            if problem.response is None:  # it was cancelled, or took too long
                raise
            response = problem.response
        return response.code, json.loads(response.body)

    return ask


@pytest.fixture
def act(ask: Ask) -> Ask:
    """Have an Action carried out, on the default kernel unless one is named."""

    async def act(kind: str, kernel: str | None = None, **args: Any) -> Any:
        where = ["execute_action"] if kernel is None else ["kernels", kernel, "execute_action"]
        return await ask(*where, body={"action": {"action": kind, "args": args}})

    return act


@pytest.fixture
def plain_kernel(jp_serverapp: Any, jp_asyncio_loop: Any) -> str:
    """A kernel as a notebook starts it, without oh_jupyter; its id."""
    started = jp_serverapp.kernel_manager.start_kernel()
    return str(jp_asyncio_loop.run_until_complete(started))


@pytest.fixture
def mcp_url(jp_http_port: int, jp_base_url: str, jp_serverapp: Any, http_server: Any) -> str:
    """Address of the extension, as an MCP client needs it."""
    return f"http://127.0.0.1:{jp_http_port}{jp_base_url}oh_jupyter"


@pytest.fixture
def mcp_connect(mcp_url: str, jp_auth_header: dict[str, str]) -> Callable[..., Any]:
    """Sessions of the official client, by streamable HTTP or SSE, with any kernel."""
    from mcp_client import connected

    def connect(
        kernel: str | None = None,
        *,
        transport: str = "http",
        headers: dict[str, str] | None = None,
        heard: Callable[[Any], Awaitable[None]] | None = None,
        query: str = "",
    ) -> Any:
        url = f"{mcp_url}/mcp" if kernel is None else f"{mcp_url}/kernels/{kernel}/mcp"
        given = jp_auth_header if headers is None else headers
        return connected(url, transport=transport, headers=given, heard=heard, query=query)

    return connect


class LiveServer(NamedTuple):
    """A server in a process of its own, as people start it."""

    url: str
    token: str
    directory: Path

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"token {self.token}"}


@pytest.fixture(scope="module")
def live_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    directory = tmp_path_factory.mktemp("live")
    environment = {
        **os.environ,
        # The start-up files of whoever runs the tests take their time.
        "HOME": str(directory),
        "FILE_STORE_PATH": str(directory / "store"),
        "JUPYTER_CONFIG_DIR": str(directory / "config"),
        "JUPYTER_RUNTIME_DIR": str(directory / "run"),
        # Nobody is there to confirm anything.
        "OH_JUPYTER_CONFIRMATION": "never",
    }
    (directory / "root").mkdir()
    token = "live-token"
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "jupyter_server", "--no-browser", "--allow-root"),
            *("--ServerApp.port=0", "--ServerApp.ip=127.0.0.1", "--ServerApp.base_url=/base"),
            *(f"--IdentityProvider.token={token}", f"--ServerApp.root_dir={directory / 'root'}"),
            "--ServerApp.jpserver_extensions={'oh_jupyter': True}",
            "--OhJupyter.enable_browser=False",
            # A kernel that dies more often in so short a time is otherwise given up.
            "--KernelRestarter.restart_limit=1000",
        ],
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )
    assert process.stderr is not None
    for line in process.stderr:
        if found := re.search(r"(http://127\.0\.0\.1:\d+/base)/", line):
            break
    else:
        pytest.fail("the server did not start")
    log: list[str] = []
    drain = threading.Thread(target=lambda: log.extend(process.stderr), daemon=True)
    drain.start()
    server = LiveServer(found[1], token, directory)
    with requests.Session() as session:  # its address is in the log before it listens there
        retries = Retry(connect=20, backoff_factor=0.05)
        session.mount("http://", requests.adapters.HTTPAdapter(max_retries=retries))
        answer = session.get(f"{server.url}/oh_jupyter/alive", headers=server.headers, timeout=60)
        answer.raise_for_status()
    yield server
    process.terminate()
    process.wait(60)
    drain.join()
    process.stderr.close()
    print("".join(log))  # shown if a test has failed
