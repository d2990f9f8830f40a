"""Cells abandoned before they start: only these end."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import requests

from oh_jupyter.cells import CellOutput
from oh_jupyter.cells.queue import CellQueue
from oh_jupyter.cells.remote import RemoteKernel
from oh_jupyter.cells.request import CellRequest
from oh_jupyter.errors import PluginError
from oh_jupyter.testing import LiveServer

SLEEP = "import time; time.sleep(600)"
ROUNDS = 3


@asynccontextmanager
async def two_clients_of_one_kernel(
    server: LiveServer,
) -> AsyncIterator[tuple[RemoteKernel, RemoteKernel]]:
    kernels = f"{server.url}/api/kernels"
    made = requests.post(kernels, json={}, headers=server.headers, timeout=60).json()["id"]
    clients = [RemoteKernel(server.url, server.token, kernel_id=made) for _ in range(2)]
    for client in clients:
        await client.start()
    try:
        yield clients[0], clients[1]
    finally:
        for client in clients:
            await client.close()
        requests.delete(f"{kernels}/{made}", headers=server.headers, timeout=60)


@pytest.mark.thorough
async def test_a_cell_that_waited_for_a_persons_is_ended_when_it_begins(
    plain_server: LiveServer, tmp_path: Path
) -> None:
    async with two_clients_of_one_kernel(plain_server) as (person, agent):
        for number in range(ROUNDS):
            os.mkfifo(gate := tmp_path / f"gate{number}")
            first = asyncio.create_task(person.run_cell(f"open({str(gate)!r}).read()"))
            writer = await asyncio.to_thread(gate.open, "w")  # the cell has opened it, too
            assert (await agent.run_cell(SLEEP, timeout=0.1)).timed_out
            writer.close()
            assert (await first).text == "''"
            async with asyncio.timeout(60):
                assert (await agent.run_cell("'on'")).text == "'on'"


class DeafKernel:
    """Answers what the test says: a real kernel loses an interrupt only now and then."""

    def __init__(self) -> None:
        self.sent: asyncio.Queue[None] = asyncio.Queue()
        self.requests: list[CellRequest] = []
        self.interrupts: asyncio.Queue[None] = asyncio.Queue()
        self.queue = CellQueue(lambda: self.interrupts.put(None))

    async def send(self) -> CellRequest:
        self.requests.append(CellRequest(str(len(self.requests))))
        self.sent.put_nowait(None)
        return self.requests[-1]

    def run(self, timeout: float | None = None) -> asyncio.Task[CellOutput]:
        return asyncio.create_task(self.queue.run(self.send, timeout))

    def begin(self) -> None:
        self.requests[-1].handle("status", {"execution_state": "busy"})
        self.requests[-1].handle("execute_input", {"code": "1", "execution_count": 1})

    def end(self, *, reply: bool = True) -> None:
        if reply:
            self.requests[-1].handle("execute_reply", {"status": "ok"})
        self.requests[-1].handle("status", {"execution_state": "idle"})


@pytest.mark.thorough
async def test_an_interrupt_that_is_lost_is_sent_again() -> None:
    kernel = DeafKernel()
    given_up = kernel.run(timeout=0)
    assert (await given_up).timed_out
    await kernel.sent.get()
    follower = kernel.run()
    await asyncio.sleep(0)
    assert kernel.interrupts.empty()
    kernel.begin()
    async with asyncio.timeout(60):
        await kernel.interrupts.get()
        await kernel.interrupts.get()
    assert len(kernel.requests) == 1
    # The kernel was interrupted before the code of the cell: it does not reply.
    kernel.end(reply=False)
    async with asyncio.timeout(60):
        await kernel.sent.get()
        kernel.begin()
        kernel.end()
        await follower
    assert kernel.interrupts.empty()


async def test_an_interrupt_that_is_on_its_way_meets_no_other_cell() -> None:
    kernel, arrives = DeafKernel(), asyncio.Event()

    async def interrupt() -> None:
        await kernel.interrupts.put(None)
        await arrives.wait()

    kernel.queue = CellQueue(interrupt)
    given_up, follower = kernel.run(timeout=0.05), kernel.run()
    await kernel.sent.get()
    kernel.begin()
    async with asyncio.timeout(60):
        await kernel.interrupts.get()
        kernel.end()
        for _ in range(20):  # of the loop, in which it would be sent
            await asyncio.sleep(0)
        assert kernel.sent.empty()
        arrives.set()
        assert (await given_up).timed_out
        await kernel.sent.get()
        kernel.begin()
        kernel.end()
        assert not (await follower).timed_out


@pytest.mark.thorough
async def test_waiters_are_notified_when_the_connection_ends(
    plain_server: LiveServer,
) -> None:
    async with two_clients_of_one_kernel(plain_server) as (person, _):
        cells = [asyncio.create_task(person.run_cell(SLEEP)) for _ in range(2)]
        await asyncio.sleep(0)
        await person.close()
        async with asyncio.timeout(60):
            results = await asyncio.gather(*cells, return_exceptions=True)
    assert [type(each) for each in results] == [PluginError] * 2
    assert "was lost" in str(results[1])
