"""A kernel that was started without oh_jupyter, as a notebook starts it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import zmq
from jupyter_client.ioloop import AsyncIOLoopKernelManager

from oh_jupyter.errors import ExtensionMissingError
from oh_jupyter.operations.runtime import Status
from oh_jupyter.server.links import ZmqLink, pending


@asynccontextmanager
async def running_kernel() -> AsyncIterator[Any]:
    manager = AsyncIOLoopKernelManager(kernel_name="python3")
    await manager.start_kernel()
    try:
        yield manager
    finally:
        await manager.shutdown_kernel(now=True)


async def test_it_is_asked_before_and_after_a_runtime_is_in_it(tmp_path: Path) -> None:
    manager = AsyncIOLoopKernelManager(kernel_name="python3")
    log = tmp_path / "log"
    with log.open("wb") as written:
        await manager.start_kernel(stderr=written)
    link = ZmqLink("plain", manager)
    try:
        with pytest.raises(ExtensionMissingError, match="not loaded in kernel plain"):
            await link.request(Status(), load=False)
        assert (await link.request(Status())).fields["status"] == "ok"
        cell = {"code": "%unload_ext oh_jupyter", "silent": True}
        await link.ask("execute_request", cell, channel="shell")
        async with asyncio.timeout(30):  # it is unloaded when the cell has its reply
            while await _is_loaded(link):
                pass
        with pytest.raises(ExtensionMissingError, match="not loaded in kernel plain"):
            await link.request(Status(), load=False)
        assert (await link.request(Status())).fields["status"] == "ok"
    finally:
        link.close()
        await manager.shutdown_kernel(now=True)
    assert "ERROR" not in log.read_text()


async def _is_loaded(link: ZmqLink) -> bool:
    try:
        await link.request(Status(), load=False)
    except ExtensionMissingError:
        return False
    return True


FAIL_ONCE = """
handlers = get_ipython().kernel.control_handlers
make = handlers["create_subshell_request"]
def fail_once(*request):
    handlers["create_subshell_request"] = make
    assert False, "not yet"
handlers["create_subshell_request"] = fail_once
"""


@pytest.mark.thorough
async def test_a_subshell_that_the_kernel_fails_to_make_is_asked_for_again() -> None:
    """As ipykernel does for a moment while it starts, and then leaves the request unanswered."""

    async def run(code: str) -> None:
        content = {"code": code, "silent": True, "store_history": False}
        await link.ask("execute_request", content, channel="shell")

    async with running_kernel() as manager:
        link = ZmqLink("plain", manager)
        await run(FAIL_ONCE)
        busy = asyncio.ensure_future(run("import time\nwhile True: time.sleep(0.01)"))
        assert (await link.request(Status())).fields["status"] == "ok"
        assert not busy.done()
        link.close()
        await asyncio.gather(busy, return_exceptions=True)


async def test_a_connection_missed_by_a_starting_kernel_is_made_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pending, "PING_INTERVAL_SECONDS", 0.5)
    deaf = zmq.Context.instance().socket(zmq.ROUTER)
    elsewhere = f"tcp://127.0.0.1:{deaf.bind_to_random_port('tcp://127.0.0.1')}"
    async with running_kernel() as manager:
        connect = manager.connect_control
        made: list[bytes] = []

        def connect_first_elsewhere(identity: bytes) -> Any:
            stream = connect(identity=identity)
            if not made:
                stream.socket.disconnect(stream.socket.LAST_ENDPOINT)
                stream.socket.connect(elsewhere)
            made.append(identity)
            return stream

        manager.connect_control = connect_first_elsewhere
        link = ZmqLink("plain", manager)
        assert (await link.request(Status())).fields["status"] == "ok"
        assert len(set(made)) == len(made) > 1
        link.close()
    deaf.close(linger=0)
