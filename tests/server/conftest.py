"""A real Jupyter server with the extension, and requests to it."""

from __future__ import annotations

import json
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import nbformat
import pytest
import requests
from nbformat.v4 import new_code_cell, new_notebook
from pytest_jupyter.jupyter_core import jp_asyncio_loop
from pytest_jupyter.jupyter_server import jp_auth_header as own_auth_header
from pytest_jupyter.jupyter_server import jp_fetch as own_fetch
from pytest_jupyter.jupyter_server import jp_server_cleanup
from tornado.httpclient import AsyncHTTPClient, HTTPClientError, HTTPResponse
from traitlets.config import Config

from oh_jupyter.server.state import state_of
from oh_jupyter.testing import LiveServer, run_server

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

# The first two override the root's, which disable them for all other directories; the
# others serve the tests that have a server of their own.
__all__ = ["jp_asyncio_loop", "jp_server_cleanup", "own_auth_header", "own_fetch"]


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "shared_server: the test may use the server and default kernel of its module"
    )
    config.addinivalue_line(
        "markers", "server_config(SECTION={...}): configuration of the test's own server"
    )


Ask = Callable[..., Awaitable[tuple[int, Any]]]


@pytest.fixture
def jp_server_config(
    jp_server_config: dict[str, Any], jp_data_dir: Path, request: pytest.FixtureRequest
) -> dict[str, Any]:
    config = Config(jp_server_config)
    config.merge(
        Config(
            {
                "ServerApp": {
                    "jpserver_extensions": {"oh_jupyter": True},
                    "allow_unauthenticated_access": False,
                },
                # How often a server looks whether its kernels live; three seconds by default.
                "KernelRestarter": {"time_to_dead": 0.5},
                # Chosen at import, its folder may be missing; shared documents need it.
                "BaseFileIdManager": {"db_path": str(jp_data_dir / "file_ids.db")},
            }
        )
    )
    for marker in reversed(list(request.node.iter_markers("server_config"))):
        config.merge(Config(marker.kwargs))
    return config


@pytest.fixture(autouse=True)
def close_databases(request: pytest.FixtureRequest) -> Iterator[None]:
    """Close Jupyter's databases, which it leaves to its process's end; Python 3.13 warns of it."""
    app = (
        request.getfixturevalue("jp_serverapp") if "jp_serverapp" in request.fixturenames else None
    )
    yield
    if app is not None:
        app.session_manager.close()
        app.session_manager.connection.close()
        app.contents_manager.notary.store.close()


def is_shared(request: pytest.FixtureRequest) -> bool:
    """Whether a test uses the server of its module, in a process of its own.

    It does if it is marked so and wants nothing of its server but answers.
    """
    own = {"jp_serverapp", "jp_root_dir", "jp_base_url", "http_server_client", "monkeypatch"}
    return (
        request.node.get_closest_marker("shared_server") is not None
        and not own & set(request.fixturenames)
        and request.node.get_closest_marker("server_config") is None
        and not hasattr(request.cls, "jp_server_config")
    )


@pytest.fixture
def jp_auth_header(request: pytest.FixtureRequest) -> dict[str, str]:
    if is_shared(request):
        return dict(request.getfixturevalue("shared_server").headers)
    return dict(request.getfixturevalue("own_auth_header"))


@pytest.fixture
def jp_fetch(request: pytest.FixtureRequest) -> Callable[..., Awaitable[HTTPResponse]]:
    """Send a request to the test's own server or to that of its module."""
    if not is_shared(request):
        return request.getfixturevalue("own_fetch")
    server = request.getfixturevalue("shared_server")

    async def fetch(*parts: str, headers: Any = None, params: Any = None, **options: Any) -> Any:
        path = "/".join(quote(part, safe="") for part in parts)
        query = f"?{urlencode(params)}" if params else ""
        all_headers = {**server.headers, **(headers or {})}
        client = AsyncHTTPClient(force_instance=True)
        try:
            return await client.fetch(f"{server.url}/{path}{query}", headers=all_headers, **options)
        finally:
            client.close()

    return fetch


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
        except HTTPClientError as error:
            if error.response is None:  # it was cancelled, or took too long
                raise
            response = error.response
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
def plain_kernel(request: pytest.FixtureRequest) -> Iterator[str]:
    """A kernel as a notebook starts it, without oh_jupyter; its id."""
    if not is_shared(request):
        server, loop = map(request.getfixturevalue, ("jp_serverapp", "jp_asyncio_loop"))
        # Without a path, its workspace would be the whole repository of the tests.
        yield str(loop.run_until_complete(server.kernel_manager.start_kernel(path="")))
        return
    server = request.getfixturevalue("shared_server")
    kernels = f"{server.url}/api/kernels"
    body = {"path": ""}
    kernel = requests.post(kernels, json=body, headers=server.headers, timeout=60).json()["id"]
    yield str(kernel)
    requests.delete(f"{kernels}/{kernel}", headers=server.headers, timeout=60)


@pytest.fixture
def mcp_url(request: pytest.FixtureRequest) -> str:
    """Address of the extension, as an MCP client needs it."""
    if is_shared(request):
        return f"{request.getfixturevalue('shared_server').url}/oh_jupyter"
    request.getfixturevalue("http_server")
    port, base = map(request.getfixturevalue, ("jp_http_port", "jp_base_url"))
    return f"http://127.0.0.1:{port}{base}oh_jupyter"


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
        elicited: Any = None,
        name: str = "mcp",
    ) -> Any:
        url = f"{mcp_url}/mcp" if kernel is None else f"{mcp_url}/kernels/{kernel}/mcp"
        all_headers = jp_auth_header if headers is None else headers
        return connected(
            url,
            transport=transport,
            headers=all_headers,
            heard=heard,
            query=query,
            elicited=elicited,
            name=name,
        )

    return connect


@pytest.fixture(scope="module")
def live_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    options = (
        "--OhJupyter.enable_browser=False",
        # A kernel that dies more often in so short a time is otherwise given up.
        "--KernelRestarter.restart_limit=1000",
        "--KernelRestarter.time_to_dead=0.5",
    )
    with run_server(tmp_path_factory.mktemp("live"), *options, base="/base") as server:
        yield server


@pytest.fixture(scope="module")
def shared_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """The server of the tests that are marked so, with one default kernel for all."""
    with run_server(tmp_path_factory.mktemp("shared"), base="/base") as server:
        yield server


@pytest.fixture
def book(jp_serverapp: Any, jp_root_dir: Path) -> Callable[..., Awaitable[str]]:
    """Open a notebook with these cells, and return its kernel's id."""

    async def book(*cells: Any, name: str = "book.ipynb") -> str:
        nodes = [new_code_cell(cell) if isinstance(cell, str) else cell for cell in cells]
        nbformat.write(new_notebook(cells=nodes), jp_root_dir / name)
        session = await jp_serverapp.session_manager.create_session(
            path=name, name=name, type="notebook", kernel_name="python3"
        )
        return str(session["kernel"]["id"])

    return book


@pytest.fixture
def unsaved(jp_serverapp: Any) -> Any:
    return state_of(jp_serverapp.web_app.settings).unsaved
