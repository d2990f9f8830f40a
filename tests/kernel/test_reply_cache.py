"""Requests that come twice, because nobody knew whether the first had arrived."""

from __future__ import annotations

import asyncio

import pytest

from oh_jupyter.control_messages import Reply
from oh_jupyter.errors import GatewayError
from oh_jupyter.kernel.control import rpc
from oh_jupyter.kernel.control.rpc import ReplyCache


def test_who_asks_again_gets_the_first_reply_before_and_after_it_is_there() -> None:
    async def work() -> None:
        kept = ReplyCache()
        assert "a" not in kept
        keep = kept.expect("a")
        assert "a" in kept
        early = asyncio.ensure_future(kept.get("a"))
        keep(Reply({"n": 1}, b"body"))
        assert await early == await kept.get("a") == Reply({"n": 1}, b"body")

    asyncio.run(work())


def test_what_takes_too_much_room_is_known_to_be_done(monkeypatch) -> None:
    monkeypatch.setattr(rpc, "CACHE_BYTES", 10)

    async def work() -> None:
        kept = ReplyCache()
        for key in "abc":
            kept.expect(key)(Reply({}, b"12345"))
        with pytest.raises(GatewayError, match="was executed"):
            await kept.get("a")
        assert await kept.get("b") == await kept.get("c") == Reply({}, b"12345")

    asyncio.run(work())


def test_it_forgets(monkeypatch) -> None:
    monkeypatch.setattr(rpc, "CACHE_SECONDS", 0)

    async def work() -> None:
        kept = ReplyCache()
        kept.expect("a")(Reply())
        async with asyncio.timeout(60):
            while "a" in kept:
                await asyncio.sleep(0)

    asyncio.run(work())
