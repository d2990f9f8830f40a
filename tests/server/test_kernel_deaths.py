"""A kernel that is killed at any moment: whoever waits is told soon, and work goes on.

It dies four times; ``STRESS_KILLS=50`` is what a release should stand.
"""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

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

    async def act(self, kind: str, **args: Any) -> httpx.Response:
        body = {"action": {"action": kind, "args": args}}
        return await self.http.post(f"{self.below}/execute_action", json=body)

    async def lasting_command(self) -> httpx.Response:
        return await self.act("run", command="sleep 600", blocking=True)

    async def lasting_static_command(self) -> httpx.Response:
        return await self.act("run", command="sleep 600", blocking=True, is_static=True)

    async def lasting_cell(self) -> httpx.Response:
        return await self.act("run_ipython", code="import time; time.sleep(600)")

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
        headers = {"Accept": "text/event-stream"}
        return await self.http.get(f"{self.below}/events", headers=headers)

    def all(self) -> list[Any]:
        return [
            *(self.lasting_command, self.lasting_static_command, self.lasting_cell),
            *(self.queued_cell, self.command, self.file, self.listing, self.skills),
            *(self.upload, self.store, self.download, self.stream),
        ]


def outcome(name: str, answer: httpx.Response | BaseException) -> str:
    """How a request ended; anything that no client could make sense of is an error."""
    if isinstance(answer, BaseException):
        # A head that said 200 cannot be taken back: the answer breaks off.
        assert name == "download", f"{name}: {answer!r}"
        assert isinstance(answer, httpx.RemoteProtocolError | httpx.ReadError), repr(answer)
        return "broke off"
    if name == "stream" and answer.is_success:
        assert answer.text.startswith("event: generation\n")
        assert "event: gone\n" in answer.text
        return "ended"
    if answer.is_success:
        return "done"
    found = answer.json()
    assert answer.status_code == 503, (name, found)
    assert found["error"] == "KernelDiedError"
    assert "state of its runtime is lost" in found["detail"]
    return "told"


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
        chosen = requests.all()
        chance.shuffle(chosen)
        waiting = [asyncio.ensure_future(ask()) for ask in chosen]
        await asyncio.sleep(moment)  # the moment is what is tested
        kernel.kill()
        killed = time.monotonic()
        async with asyncio.timeout(SOON):
            answers = await asyncio.gather(*waiting, return_exceptions=True)
            took = time.monotonic() - killed
        for ask, answer in zip(chosen, answers, strict=True):
            ends[f"{ask.__name__} {outcome(ask.__name__, answer)}"] += 1
        async with asyncio.timeout(SOON):
            answer = await requests.act("run", command="echo alive again")
        assert answer.status_code == 200, answer.text
        assert answer.json()["content"] == "alive again"
        return took

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
    assert ends["lasting_command told"] > 0
