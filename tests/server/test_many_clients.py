"""Twenty clients at once on several kernels: each gets its own answers, and all of them.

It takes 4 seconds; ``STRESS_SECONDS=120`` is what a release should stand.
"""

from __future__ import annotations

import asyncio
import io
import os
import random
import re
import time
import uuid
import zipfile
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

SECONDS = float(os.environ.get("STRESS_SECONDS", "4"))
CLIENTS = 20
MARK = re.compile("[0-9a-f]{32}")

HOLD_SECONDS, HOLD_EVERY_SECONDS = (9.0, 10.0) if SECONDS >= 60 else (0.5, 2.0)
"""In the long form a kernel is silent for long enough to be given up; half a minute is 504."""


class MayBeDoneError(Exception):
    """The kernel was silent, and may have carried out what was asked."""


@dataclass
class Client:
    """One of them; every method is something that clients do, and checks the answer."""

    http: httpx.AsyncClient
    below: str
    place: Path
    marks: list[str] = field(default_factory=list)
    all_marks: list[str] = field(default_factory=list)
    done: Counter[str] = field(default_factory=Counter)

    def mark(self) -> str:
        """Return a mark that only this request and its answer contain."""
        self.all_marks.append(uuid.uuid4().hex)
        return self.all_marks[-1]

    async def ask(self, method: str, path: str, **options: Any) -> httpx.Response:
        """Ask until there is an answer; what may have been done is only asked again by its id."""
        while True:
            try:
                answer = await self.http.request(method, f"{self.below}/{path}", **options)
            except httpx.RemoteProtocolError:
                # The head had said 200 when the kernel fell silent: the rest breaks off.
                assert method == "GET"
                self.done["broke off"] += 1
                continue
            if answer.status_code != 504:
                assert answer.is_success, f"{answer.status_code} for {path}: {answer.text[:500]}"
                return answer
            named = "X-Request-ID" in (options.get("headers") or {})
            if not named and not answer.json()["withdrawn"]:
                raise MayBeDoneError
            self.done["asked again"] += 1

    async def act(self, kind: str, headers: dict[str, str] | None = None, **args: Any) -> Any:
        body = {"action": {"action": kind, "args": args}}
        answer = (await self.ask("POST", "execute_action", json=body, headers=headers)).json()
        assert answer["observation"] == kind, answer
        return answer

    async def command(self) -> None:
        mark = self.mark()
        answer = await self.act("run", command=f"echo {mark}")
        self.marks.append(mark)
        assert (answer["content"], answer["extras"]["command"]) == (mark, f"echo {mark}")
        event = (await self.ask("GET", f"events/{answer['id']}")).json()
        assert (event["content"], event["cause"]) == (mark, answer["cause"])

    async def static_command(self) -> None:
        mark = self.mark()
        answer = await self.act("run", command=f"echo {mark}", is_static=True)
        self.marks.append(mark)
        assert answer["content"] == mark

    async def cell(self) -> None:
        mark = self.mark()
        answer = await self.act("run_ipython", code=f"print('{mark}')", include_extra=False)
        self.marks.append(mark)
        assert answer["content"] == mark

    async def file(self) -> None:
        mark, path = self.mark(), str(self.place / self.mark())
        await self.act("write", path=path, content=mark)
        assert (await self.act("read", path=path))["content"] == f"{mark}\n"
        new = self.mark()
        edit = {"command": "str_replace", "path": path, "old_str": mark, "new_str": new}
        answer = await self.act("edit", **edit)
        assert (answer["extras"]["path"], answer["extras"]["new_content"]) == (path, new)
        assert (await self.act("read", path=path))["content"] == f"{new}\n"

    async def large_file(self) -> None:
        mark, path = self.mark(), str(self.place / self.mark())
        await self.act("write", path=path, content=mark * 30_000)
        assert (await self.act("read", path=path))["content"] == f"{mark * 30_000}\n"

    async def answer_fetched_later(self) -> None:
        mark = self.mark()
        body = {"action": {"action": "run", "args": {"command": f"echo {mark}"}}}
        headers = {"X-Request-ID": mark}
        first = await self.ask("POST", "execute_action", json=body, headers=headers)
        self.marks.append(mark)
        address = f"{self.below.partition('/kernels/')[0]}/requests/{mark}?wait=60"
        again = await self.http.get(address)
        assert again.json() == first.json()
        assert first.json()["content"] == mark

    async def store(self) -> None:
        mark = self.mark()
        await self.ask("PUT", f"store/clients/{mark}", content=mark.encode())
        assert (await self.ask("GET", f"store/clients/{mark}")).text == mark
        await self.ask("DELETE", f"store/clients/{mark}")

    async def upload(self) -> None:
        mark = self.mark()
        path = str(self.place / mark)
        await self.ask(
            "POST", "upload_file", params={"destination": path}, files={"file": (mark, mark)}
        )
        assert (await self.ask("POST", "list_files", json={"path": path})).json() == [mark]
        answer = await self.ask("GET", "download_files", params={"path": path})
        with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
            assert archive.read(mark) == mark.encode()

    async def refused(self) -> None:
        body = {"action": {"action": "run", "args": {"command": 1}}}
        answer = await self.http.post(f"{self.below}/execute_action", json=body)
        if answer.status_code != 504:
            assert (answer.status_code, answer.json()["field"]) == (422, "args.command")

    async def leave(self) -> None:
        """Go away before the answer."""
        with pytest.raises(httpx.ReadTimeout):
            await self.act_impatiently("sleep 60")

    async def act_impatiently(self, command: str) -> None:
        args = {"command": command, "is_static": True, "blocking": True}
        body = {"action": {"action": "run", "args": args}}
        leaves = httpx.Timeout(60, read=0.3)
        await self.http.post(f"{self.below}/execute_action", json=body, timeout=leaves)

    async def work(self, until: float, chance: random.Random) -> None:
        ways: list[Callable[[], Awaitable[None]]] = [
            *(self.command, self.static_command, self.cell, self.file, self.large_file),
            *(self.answer_fetched_later, self.store, self.upload, self.refused, self.leave),
        ]
        weights = [8, 2, 6, 4, 1, 3, 3, 2, 2, 0.5]
        while time.monotonic() < until:
            (way,) = chance.choices(ways, weights)
            try:
                await way()
            except MayBeDoneError:
                self.done["left undecided"] += 1
            else:
                self.done[way.__name__] += 1

    async def hold_the_gil(self, until: float) -> None:
        """Keep the kernel from everything else, again and again."""
        code = f"import ctypes; ctypes.PyDLL(None).usleep(int({HOLD_SECONDS} * 1e6))"
        while (pause := time.monotonic() + HOLD_EVERY_SECONDS) < until:
            with suppress(MayBeDoneError):
                await self.act("run_ipython", code=code, include_extra=False)
            await asyncio.sleep(max(0.0, pause - time.monotonic()))


@asynccontextmanager
async def connected(server: Any) -> AsyncIterator[httpx.AsyncClient]:
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(headers=server.headers, timeout=180, limits=limits) as http:
        yield http


async def logged(http: httpx.AsyncClient, below: str) -> list[str]:
    """All commands and cells in a kernel's log."""
    lines: list[str] = []
    start = 0
    while True:
        params = {"start_id": start, "limit": 1000}
        events = (await http.get(f"{below}/events", params=params)).json()["events"]
        if not events:
            return lines
        start = events[-1]["id"] + 1
        args = [event.get("args", {}) for event in events]
        lines += [arg.get("command") or arg.get("code") or "" for arg in args]


@pytest.mark.thorough
@pytest.mark.timeout(SECONDS + 120)
def test_each_gets_its_own_answers(live_server: Any, tmp_path: Path) -> None:
    async def run() -> None:
        async with connected(live_server) as http:
            root = f"{live_server.url}/oh_jupyter"
            kernels = [root]
            for _ in range(2):
                answer = await http.post(f"{live_server.url}/api/kernels")
                kernels.append(f"{root}/kernels/{answer.json()['id']}")
            clients = [Client(http, kernels[n % len(kernels)], tmp_path) for n in range(CLIENTS)]
            until = time.monotonic() + SECONDS
            holders = [Client(http, below, tmp_path) for below in kernels]
            async with asyncio.TaskGroup() as group:
                group.create_task(holders[-1].hold_the_gil(until))
                for number, client in enumerate(clients):
                    group.create_task(client.work(until, random.Random(number)))
            total = sum((client.done for client in clients), Counter[str]())
            print(f"{total.total()} in {SECONDS:.0f} s: {dict(total)}")
            assert min(client.done.total() for client in clients) > 0
            # What was answered is in the log, and was carried out once.
            for below in kernels:
                times = Counter(MARK.findall(" ".join(await logged(http, below))))
                for client in clients:
                    if client.below == below:
                        assert [mark for mark in client.marks if times[mark] != 1] == []
                        assert [mark for mark in client.all_marks if times[mark] > 1] == []

    asyncio.run(run())
