"""Requests that come twice, because nobody knew whether the first had arrived."""

from __future__ import annotations

import asyncio

import pytest

from oh_jupyter.errors import GatewayError
from oh_jupyter.kernel.control import reply_cache as answers
from oh_jupyter.kernel.control.reply_cache import Answers


def test_who_asks_again_gets_the_first_answer_before_and_after_it_is_there() -> None:
    async def work() -> None:
        kept = Answers()
        assert "a" not in kept
        keep = kept.expect("a")
        assert "a" in kept
        early = asyncio.ensure_future(kept.again("a"))
        keep(({"n": 1}, [b"body"]))
        assert await early == await kept.again("a") == ({"n": 1}, [b"body"])

    asyncio.run(work())


def test_what_takes_too_much_room_is_known_to_be_done(monkeypatch) -> None:
    monkeypatch.setattr(answers, "KEPT_BYTES", 10)

    async def work() -> None:
        kept = Answers()
        for key in "abc":
            kept.expect(key)(({}, [b"12345"]))
        with pytest.raises(GatewayError, match="has been done"):
            await kept.again("a")
        assert await kept.again("b") == await kept.again("c") == ({}, [b"12345"])

    asyncio.run(work())


def test_it_forgets(monkeypatch) -> None:
    monkeypatch.setattr(answers, "KEPT_SECONDS", 0)

    async def work() -> None:
        kept = Answers()
        kept.expect("a")(({}, []))
        async with asyncio.timeout(10):
            while "a" in kept:
                await asyncio.sleep(0)

    asyncio.run(work())
