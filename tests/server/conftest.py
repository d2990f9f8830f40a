"""A real Jupyter server with the extension, and requests to it."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from pytest_jupyter.jupyter_core import jp_asyncio_loop
from pytest_jupyter.jupyter_server import jp_server_cleanup
from tornado.httpclient import HTTPClientError

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
