"""A kernel that is killed at any moment: waiting clients are notified soon, and work continues.

It dies four times; ``STRESS_KILLS=50`` is what a release should stand.
"""

from __future__ import annotations

import asyncio
import os
import random
import time
import uuid
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

pytestmark = pytest.mark.thorough

KILLS = int(os.environ.get("STRESS_KILLS", "4"))

SOON = 60.0
"""Seconds in which everybody must have an answer; it takes four, on a machine of one's own."""


class Requests:
    """Requests of all sorts that a kernel may leave unanswered when it dies."""

    def __init__(self, http: httpx.AsyncClient, below: str, place: Path) -> None:
        self.http, self.below, self.place = http, below, place
        place.mkdir()
        self.large = place / "large"
        self.large.mkdir()
        for number in range(20):
            (self.large / str(number)).write_bytes(os.urandom(1_000_000))
        self.sign_of_life = ""
        self.lasting = place / "lasting"
        """Long actions run as long as it exists; on a busy machine one may arrive too late."""

    async def act(self, kind: str, **args: Any) -> httpx.Response:
        body = {"action": {"action": kind, "args": args}}
        return await self.http.post(f"{self.below}/execute_action", json=body)

    @property
    def wait(self) -> str:
        return f"while [ -e '{self.lasting}' ]; do sleep 0.05; done"

    async def lasting_command(self) -> httpx.Response:
        return await self.act("run", command=self.wait, blocking=True)

    async def lasting_static_command(self) -> httpx.Response:
        return await self.act("run", command=self.wait, blocking=True, is_static=True)

    async def lasting_cell(self) -> httpx.Response:
        code = f"import os, time\nwhile os.path.exists({str(self.lasting)!r}): time.sleep(0.05)"
        return await self.act("run_ipython", code=code)

    async def queued_cell(self) -> httpx.Response:
        return await self.act("run_ipython", code="'after the others'")

    async def command(self) -> httpx.Response:
        return await self.act("run", command="echo short", is_static=True)

    async def file(self) -> httpx.Response:
        return await self.act("write", path=str(self.place / "written"), content="x" * 500_000)

    async def listing(self) -> httpx.Response:
        return await self.http.post(f"{self.below}/list_files", json={"path": str(self.large)})

    async def skills(self) -> httpx.Response:
        return await self.http.get(f"{self.below}/skills")

    async def upload(self) -> httpx.Response:
        parts = {"file": ("uploaded", os.urandom(5_000_000))}
        query = {"destination": str(self.place)}
        return await self.http.post(f"{self.below}/upload_file", params=query, files=parts)

    async def store(self) -> httpx.Response:
        return await self.http.put(f"{self.below}/store/deaths", content=os.urandom(3_000_000))

    async def download(self) -> httpx.Response:
        query = {"path": str(self.large)}
        return await self.http.get(f"{self.below}/download_files", params=query)

    async def stream(self) -> httpx.Response:
        """Read until the kernel is gone, or until an event after its death arrives."""
        where, headers = f"{self.below}/events", {"Accept": "text/event-stream"}
        text = ""
        async with self.http.stream("GET", where, headers=headers) as answer:
            async for piece in answer.aiter_text():
                text += piece
                if self.sign_of_life in text:
                    break
        return httpx.Response(answer.status_code, text=text)

    def all(self) -> list[Any]:
        return [
            *(self.lasting_command, self.lasting_static_command, self.lasting_cell),
            *(self.queued_cell, self.command, self.file, self.listing, self.skills),
            *(self.upload, self.store, self.download, self.stream),
        ]


def outcome(name: str, answer: httpx.Response | BaseException) -> str:
    """Return a request's outcome; fail on an answer that no client would understand."""
    if isinstance(answer, BaseException):
        # A status of 200 is already sent: the answer breaks off.
        assert name == "download", f"{name}: {answer!r}"
        assert isinstance(answer, httpx.RemoteProtocolError | httpx.ReadError), repr(answer)
        return "broke off"
    if name == "stream" and answer.is_success:
        assert answer.text.startswith("event: generation\n")
        return "ended" if "event: gone\n" in answer.text else "came too late"
    if name == "stream" and answer.status_code == 424:
        return "came before anything was loaded into the fresh kernel"
    if answer.is_success:
        return "done"
    body = answer.json()
    assert answer.status_code == 503, (name, body)
    assert body["error"] == "KernelDiedError"
    assert "state of its runtime is lost" in body["detail"]
    return "reported"


@pytest.mark.timeout(60 + SOON * KILLS)
def test_everybody_is_answered_when_the_kernel_dies(live_server: Any, tmp_path: Path) -> None:
    chance = random.Random(7)
    ends: Counter[str] = Counter()
    longest = 0.0

    async def die(requests: Requests, moment: float) -> float:
        cell = await requests.act("run_ipython", code="import os; os.getpid()")
        assert cell.status_code == 200, cell.text
        kernel = psutil.Process(int(cell.json()["content"].partition("\n")[0]))
        assert "ipykernel_launcher" in " ".join(kernel.cmdline())
        requests.sign_of_life = f"alive after {uuid.uuid4().hex}"
        requests.lasting.touch()
        chosen = requests.all()
        chance.shuffle(chosen)
        waiting = {ask.__name__: asyncio.ensure_future(ask()) for ask in chosen}
        await asyncio.sleep(moment)  # the moment is what is tested
        kernel.kill()
        requests.lasting.unlink()
        killed = time.monotonic()
        stream = waiting.pop("stream")
        await answered(waiting)
        took = time.monotonic() - killed
        sign = asyncio.ensure_future(requests.act("run", command=f"echo {requests.sign_of_life}"))
        await answered({"stream": stream, "sign": sign})
        assert sign.result().status_code == 200, sign.result().text
        assert sign.result().json()["content"] == requests.sign_of_life
        return took

    async def answered(waiting: dict[str, asyncio.Future[httpx.Response]]) -> None:
        await asyncio.wait(waiting.values(), timeout=SOON)
        assert not [name for name, answer in waiting.items() if not answer.done()]
        for name, answer in waiting.items():
            ends[f"{name} {outcome(name, answer.exception() or answer.result())}"] += 1

    async def run() -> None:
        nonlocal longest
        limits = httpx.Limits(max_connections=None)
        async with httpx.AsyncClient(
            headers=live_server.headers, timeout=2 * SOON, limits=limits
        ) as http:
            root = f"{live_server.url}/oh_jupyter"
            kernel = (await http.post(f"{live_server.url}/api/kernels")).json()["id"]
            both = [
                Requests(http, root, tmp_path / "default"),
                Requests(http, f"{root}/kernels/{kernel}", tmp_path / "open"),
            ]
            for number in range(KILLS):
                # Most moments are early, when much is under way.
                moment = 2 * chance.random() ** 3
                longest = max(longest, await die(both[number % 2], moment))

    asyncio.run(run())
    print(f"{KILLS} deaths, {longest:.1f} s until the last answer at most: {dict(ends)}")
    assert ends["lasting_command reported"] > 0
