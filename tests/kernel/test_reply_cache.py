"""Requests that come twice, because nobody knew whether the first had arrived."""

from __future__ import annotations

import asyncio

import pytest

from oh_jupyter.control_messages import Reply
from oh_jupyter.errors import GatewayError
from oh_jupyter.kernel.control import rpc
from oh_jupyter.kernel.control.rpc import ReplyCache


def test_a_repeated_request_gets_the_first_reply() -> None:
    async def work() -> None:
        cache = ReplyCache()
        assert "a" not in cache
        keep = cache.expect("a")
        assert "a" in cache
        early = asyncio.ensure_future(cache.get("a"))
        keep(Reply({"n": 1}, b"body"))
        assert await early == await cache.get("a") == Reply({"n": 1}, b"body")

    asyncio.run(work())


def test_an_evicted_reply_is_known_as_executed(monkeypatch) -> None:
    monkeypatch.setattr(rpc, "CACHE_BYTES", 10)

    async def work() -> None:
        cache = ReplyCache()
        for key in "abc":
            cache.expect(key)(Reply({}, b"12345"))
        with pytest.raises(GatewayError, match="was executed"):
            await cache.get("a")
        assert await cache.get("b") == await cache.get("c") == Reply({}, b"12345")

    asyncio.run(work())


def test_it_forgets(monkeypatch) -> None:
    monkeypatch.setattr(rpc, "CACHE_SECONDS", 0)

    async def work() -> None:
        cache = ReplyCache()
        cache.expect("a")(Reply())
        async with asyncio.timeout(60):
            while "a" in cache:
                await asyncio.sleep(0)

    asyncio.run(work())
