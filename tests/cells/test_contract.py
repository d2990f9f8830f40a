"""Both ways into another kernel keep what every runner of cells promises."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import zmq.asyncio
from jupyter_client.session import Session

from oh_jupyter.cells import CellOutput
from oh_jupyter.cells.remote import RemoteKernel
from oh_jupyter.cells.request import CellRequest
from oh_jupyter.cells.subprocess_kernel import SubprocessKernel
from oh_jupyter.cells.zmq import KernelClient
from oh_jupyter.testing import CellRunnerContract, LiveServer

RunCell = Callable[..., CellOutput]


@pytest.fixture(scope="module")
def run_in_subprocess() -> Iterator[RunCell]:
    with asyncio.Runner() as loop:
        kernel = SubprocessKernel()
        yield lambda code, **options: loop.run(kernel.run_cell(code, **options))
        loop.run(kernel.close())


@pytest.fixture(scope="module")
def run_remotely(plain_server: LiveServer) -> Iterator[RunCell]:
    with asyncio.Runner() as loop:
        kernel = RemoteKernel(plain_server.url, plain_server.token)
        yield lambda code, **options: loop.run(kernel.run_cell(code, **options))
        loop.run(kernel.close())


class TestSubprocessKernel(CellRunnerContract):
    @pytest.fixture
    def run_cell(self, run_in_subprocess: RunCell) -> RunCell:
        return run_in_subprocess


class TestRemoteKernel(CellRunnerContract):
    @pytest.fixture
    def run_cell(self, run_remotely: RunCell) -> RunCell:
        return run_remotely


@pytest.mark.parametrize("silent", [False, True])
def test_a_cell_has_started_when_it_can_be_interrupted(silent: bool) -> None:
    """Before it tells its input, a kernel ignores interrupts; silent cells tell none."""
    request = CellRequest("id", silent)
    request.handle("status", {"execution_state": "busy"})
    assert request.started.is_set() is silent
    request.handle("execute_input", {"code": "1", "execution_count": 1})
    assert request.started.is_set()


async def test_messages_signed_by_others_are_ignored() -> None:
    client = KernelClient({"ip": "127.0.0.1", "key": "ours"})
    with zmq.asyncio.Context() as context:
        kernel, reader = context.socket(zmq.PAIR), context.socket(zmq.PAIR)
        kernel.bind("inproc://kernel")
        reader.connect("inproc://kernel")
        request = client._pending["id"] = CellRequest("id")
        client._readers = [asyncio.create_task(client._read(reader))]
        replies = {"execute_reply": {"status": "ok"}, "status": {"execution_state": "idle"}}
        for key, text in ((b"another's", "forged"), (b"ours", "genuine")):
            session = Session(key=key)
            contents = {"stream": {"text": text}, **(replies if text == "genuine" else {})}
            for msg_type, content in contents.items():
                message = session.msg(msg_type, content, parent={"msg_id": "id"})
                await kernel.send_multipart(session.serialize(message))
        async with asyncio.timeout(60):
            await request.done.wait()
        await client.close()
        kernel.close()
        reader.close()
    assert request.outputs.result().text == "genuine"


@pytest.mark.thorough
@pytest.mark.parametrize("remotely", [False, True])
def test_the_time_of_a_waiting_cell_ends_no_other(
    remotely: bool, plain_server: LiveServer, tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "gate")
    asyncio.run(run_beside(remotely, plain_server, str(tmp_path / "gate")))


async def run_beside(remotely: bool, server: LiveServer, gate: str) -> None:
    kernel = RemoteKernel(server.url, server.token) if remotely else SubprocessKernel()
    try:
        first = asyncio.create_task(kernel.run_cell(f"open({gate!r}).read()"))
        writer = await asyncio.to_thread(open, gate, "w")  # the cell has opened it, too
        late = await kernel.run_cell("import time; time.sleep(600)", timeout=0.1)
        assert late.timed_out
        writer.close()
        assert (await first).text == "''"
        async with asyncio.timeout(60):
            assert (await kernel.run_cell("'on'")).text == "'on'"
    finally:
        await kernel.close()
