"""JupyterHub: who gets to a runtime through its proxy, and what comes through.

It needs ``pip install jupyterhub`` and ``npm install configurable-http-proxy``; the command of the
latter is found in PATH, or named by ``CONFIGURABLE_HTTP_PROXY``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
import requests
from hub_process import ADMIN, PROXY, Hub, running_hub
from tornado.httpclient import HTTPRequest
from tornado.websocket import websocket_connect

from oh_jupyter.client import Fleet, RuntimeClient
from oh_jupyter.errors import ServerError

ROBOT = "token-of-a-service-that-may-use-adas-server"
READER = "token-of-a-service-that-may-only-read"
SESSION_KEY = "the-session-key-of-openhands"
IDLE_TIMEOUT_MS = 20_000
"""A connection on which nothing comes for so long is cut; the stream of events has heartbeats."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(PROXY is None, reason="configurable-http-proxy is not installed"),
]
pytest.importorskip("jupyterhub")

CONFIG = f"""
c.JupyterHub.services = [
    {{"name": name, "api_token": token}}
    for name, token in {{"admin": "{ADMIN}", "robot": "{ROBOT}", "reader": "{READER}"}}.items()
]
c.JupyterHub.load_roles = [
    {{"name": "administers", "services": ["admin"],
      "scopes": ["admin:users", "admin:servers", "tokens"]}},
    {{"name": "uses", "services": ["robot"], "scopes": ["access:servers!user=ada"]}},
    {{"name": "reads", "services": ["reader"], "scopes": ["read:users"]}},
]
"""


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    with running_hub(
        tmp_path_factory.mktemp("hub"),
        CONFIG,
        path="/of/the/house",
        proxy_options=[f"--timeout={IDLE_TIMEOUT_MS}", f"--proxy-timeout={IDLE_TIMEOUT_MS}"],
        environment={"SESSION_API_KEY": SESSION_KEY},
    ) as hub:
        yield hub


@pytest.fixture(scope="module")
def token(hub: Hub) -> str:
    """Of ada, whose server runs."""
    return hub.begin("ada")


def test_allowed_and_refused_tokens(hub: Hub, token: str) -> None:
    """The person, a service that may use the server, and OpenHands by its key; nobody else."""
    other = hub.begin("bob")
    server = hub.server("ada")
    for allowed in (token, ROBOT):
        with RuntimeClient(server, allowed) as runtime:
            assert runtime.run("echo let in").content == "let in"
    with RuntimeClient(server, session_api_key=SESSION_KEY) as runtime:
        assert runtime.run("echo let in").content == "let in"
    with RuntimeClient(hub.server("bob"), other) as runtime:
        assert runtime.run("pwd").content != RuntimeClient(server, token).run("pwd").content
    for refused in (other, READER, ADMIN, "made-up", ""):
        with RuntimeClient(server, refused) as runtime:
            with pytest.raises(ServerError) as error:
                runtime.run("echo let in")
            assert error.value.status == 403, refused
    with (
        RuntimeClient(server, session_api_key="another") as runtime,
        pytest.raises(ServerError, match="Invalid API Key"),
    ):
        runtime.run("echo let in")


def test_a_fleet_in_ones_own_server(hub: Hub, token: str) -> None:
    def work(runtime: RuntimeClient, item: int) -> str:
        return runtime.run_ipython(f"{item} + 1").content.split("\n")[0]

    with Fleet(hub.server("ada"), token, 2) as kernels:
        assert [result.value for result in kernels.map(work, range(4))] == ["1", "2", "3", "4"]


def test_streams_and_long_actions_outlast_the_proxys_patience(hub: Hub, token: str) -> None:
    """An action that lasts longer, the stream of events and a kernel's websocket meanwhile."""
    server, headers = hub.server("ada"), {"Authorization": f"token {token}"}
    kernels = f"{server}/api/kernels"
    kernel = requests.post(kernels, headers=headers, json={}, timeout=300).json()["id"]
    below = f"{server}/oh_jupyter/kernels/{kernel}"
    seconds = IDLE_TIMEOUT_MS / 1000

    async def scenario() -> None:
        address = f"ws{kernels.removeprefix('http')}/{kernel}/channels"
        connection = await websocket_connect(HTTPRequest(address, headers=headers))
        with RuntimeClient(server, token, kernel) as runtime:
            runtime.run("echo started")
            lasting = asyncio.create_task(
                asyncio.to_thread(runtime.run, f"sleep {1.5 * seconds}; echo over", blocking=True)
            )
            await asyncio.to_thread(read_two_heartbeats)
            assert (await lasting).content == "over"
        while message := await connection.read_message():
            if isinstance(message, str) and "oh_jupyter_event" in message and "over" in message:
                break
        else:
            pytest.fail("the websocket was cut")
        connection.close()

    def read_two_heartbeats() -> None:
        accept = {**headers, "Accept": "text/event-stream"}
        with requests.get(f"{below}/events", headers=accept, stream=True, timeout=300) as answer:
            lines = answer.iter_lines(chunk_size=1, decode_unicode=True)
            assert next(lines) == "event: generation"
            for _ in range(2):
                while not next(lines).startswith(": still here"):
                    pass

    asyncio.run(scenario())
