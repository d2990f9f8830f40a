"""A kernel that stops answering: nothing that a client may ask again is done twice."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
from waiting import until

import oh_jupyter
from oh_jupyter.errors import KernelError
from oh_jupyter.server.links import KernelLink, kernel_link, pending
from oh_jupyter.server.state import state_of
from oh_jupyter.testing import suspended

HOLD_THE_GIL = "import ctypes; open({started!r}, 'w').close(); ctypes.PyDLL(None).open({gate!r}, 0)"
"""Code during which no other thread of the kernel runs, until somebody writes to a FIFO."""


@pytest.fixture(autouse=True)
def frequent_pings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pending, "PING_INTERVAL_SECONDS", 0.5)


@contextmanager
def impatience() -> Iterator[None]:
    """Little time for answers, while a kernel is known to be silent; a busy one needs more."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel_link, "PING_GRACE_SECONDS", 1.5)
        patch.setattr(pending, "RECEIVED_GRACE_SECONDS", 3.0)
        yield


async def kernel_pid(act: Any, kernel: str) -> int:
    _, cell = await act("run_ipython", kernel, code="import os; os.getpid()")
    return int(cell["content"].partition("\n")[0])


@asynccontextmanager
async def stopped(pid: int) -> AsyncIterator[None]:
    with suspended(psutil.Process(pid)), impatience():
        yield


def appending(file: Path, text: str) -> dict[str, Any]:
    return {"command": f"echo {text} >> {file}"}


@pytest.mark.thorough
async def test_requests_not_received_by_a_stopped_kernel_are_withdrawn(
    act, plain_kernel, tmp_path: Path
) -> None:
    file = tmp_path / "file"
    pid = await kernel_pid(act, plain_kernel)
    async with stopped(pid):
        status, answer = await act("run", plain_kernel, **appending(file, "once"))
    assert (status, answer["withdrawn"]) == (504, True)
    assert "has not answered" in answer["detail"]
    assert "Nothing was executed" in answer["detail"]
    status, _ = await act("run", plain_kernel, **appending(file, "again"))
    assert status == 200
    assert file.read_text() == "again\n"


@pytest.mark.thorough
async def test_a_cell_that_holds_the_gil_makes_nothing_happen_twice(
    act, plain_kernel, tmp_path: Path
) -> None:
    file = tmp_path / "file"
    await kernel_pid(act, plain_kernel)
    started, gate = tmp_path / "started", tmp_path / "gate"
    os.mkfifo(gate)
    cell = HOLD_THE_GIL.format(started=str(started), gate=bytes(gate))
    holding = asyncio.ensure_future(act("run_ipython", plain_kernel, code=cell))
    await until(lambda: started.exists() or holding.done())
    assert not holding.done()
    withdrawn = asyncio.Event()

    async def insist(number: int) -> int:
        retries = 0
        while True:
            status, answer = await act("run", plain_kernel, **appending(file, str(number)))
            if status == 200:
                return retries
            assert (status, answer["withdrawn"]) == (504, True), answer
            retries += 1
            withdrawn.set()

    with impatience():
        insisting = asyncio.gather(*map(insist, range(10)))
        async with asyncio.timeout(60):
            await withdrawn.wait()
    os.close(os.open(gate, os.O_WRONLY))
    retries = await insisting
    await holding
    assert any(retries)
    assert sorted(file.read_text().split()) == sorted(map(str, range(10)))


@pytest.mark.thorough
async def test_a_request_with_an_id_is_carried_out_when_it_is_sent_again(
    ask, act, plain_kernel, tmp_path: Path
) -> None:
    file = tmp_path / "file"
    pid = await kernel_pid(act, plain_kernel)
    body = {"action": {"action": "run", "args": appending(file, "once")}}
    where = ("kernels", plain_kernel, "execute_action")
    named = {"X-Request-ID": "the-same"}
    async with stopped(pid):
        status, answer = await ask(*where, body=body, headers=named)
        assert (status, answer["withdrawn"]) == (504, True)
    for _ in range(2):
        status, answer = await ask(*where, body=body, headers=named)
        assert (status, answer["observation"]) == (200, "run")
    assert file.read_text() == "once\n"


@pytest.mark.thorough
async def test_a_request_with_an_id_is_known_while_its_kernel_starts(
    ask, plain_kernel, jp_serverapp, monkeypatch, tmp_path: Path
) -> None:
    file, asked, started = tmp_path / "file", asyncio.Event(), asyncio.Event()
    router = state_of(jp_serverapp.web_app.settings).router
    link = router.link(plain_kernel)

    async def fail() -> KernelLink:
        raise KernelError("no kernel can be started")

    async def start() -> KernelLink:
        asked.set()
        await started.wait()
        return link

    body = {"action": {"action": "run", "args": appending(file, "once")}}
    named = {"X-Request-ID": "early"}
    monkeypatch.setattr(router, "default", fail)
    assert (await ask("execute_action", body=body, headers=named))[0] >= 500
    monkeypatch.setattr(router, "default", start)
    posted = asyncio.ensure_future(ask("execute_action", body=body, headers=named))
    await asked.wait()
    assert (await ask("requests", "early"))[0] == 202
    again = asyncio.ensure_future(ask("execute_action", body=body, headers=named))
    started.set()
    assert [status for status, _ in await asyncio.gather(posted, again)] == [200, 200]
    assert file.read_text() == "once\n"


@pytest.mark.thorough
async def test_an_answer_that_comes_late_can_be_fetched(
    ask, act, plain_kernel, tmp_path: Path
) -> None:
    started, ended = tmp_path / "started", tmp_path / "ended"
    pid = await kernel_pid(act, plain_kernel)
    command = f"mkfifo {ended}; echo > {started}; cat {ended}"
    body = {"action": {"action": "run", "args": {"command": command, "blocking": True}}}
    named = {"X-Request-ID": "late"}
    posted = asyncio.ensure_future(
        ask("kernels", plain_kernel, "execute_action", body=body, headers=named)
    )
    await until(lambda: started.exists() or posted.done())
    assert not posted.done()
    async with stopped(pid):
        status, answer = await posted
        assert (status, answer["withdrawn"]) == (504, False)
        assert "oh_jupyter/requests/late" in answer["detail"]
        assert (await ask("requests", "late"))[0] == 202
    ended.write_text("done")
    status, answer = await ask("requests", "late", params={"wait": "30"})
    assert (status, answer["content"]) == (200, "done")


@pytest.mark.thorough
async def test_a_received_and_abandoned_request_is_cancelled(
    act, ask, plain_kernel, tmp_path: Path
) -> None:
    started = tmp_path / "started"
    pid = await kernel_pid(act, plain_kernel)
    # Bash itself forgets an interrupt that comes while it starts a program.
    command = f"bash -c ': >{started}; exec sleep 600'"
    posted = asyncio.ensure_future(act("run", plain_kernel, command=command, blocking=True))
    await until(lambda: started.exists() or posted.done())
    assert not posted.done()
    async with stopped(pid):
        status, answer = await posted
    assert (status, answer["withdrawn"]) == (504, False)
    assert "check the event log" in answer["detail"]
    status, answer = await act("run", plain_kernel, command="echo free")
    assert (status, answer["content"]) == (200, "free")


@pytest.mark.thorough
async def test_an_idle_kernel_gets_no_requests(act, plain_kernel) -> None:
    """With no pending request, the server runs no task for its kernels."""
    ours = str(Path(oh_jupyter.__file__).parent) + os.sep

    def under_way() -> set[asyncio.Task[Any]]:
        return {
            task
            for task in asyncio.all_tasks()
            if task.get_coro().cr_code.co_filename.startswith(ours)
        }

    acting = asyncio.ensure_future(act("run", plain_kernel, command="true"))
    while not under_way():  # so that there is something to see
        await asyncio.sleep(0)
    status, _ = await acting
    assert status == 200
    while left := under_way():
        await asyncio.wait(left)
