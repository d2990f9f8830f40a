"""Outputs of a running cell for a client that follows it."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from oh_jupyter.cells import live
from oh_jupyter.cells.live import LiveOutputs, live_outputs
from oh_jupyter.cells.outputs import OutputCollector


def stream(text: str) -> dict[str, Any]:
    return {"output_type": "stream", "name": "stdout", "text": text}


def test_outputs_are_kept_until_they_are_confirmed() -> None:
    outputs = LiveOutputs()
    for text in "abc":
        outputs.add(stream(text), 1)
    assert outputs.after(0) == {"first": 0, "outputs": [stream("a"), stream("b"), stream("c")]}
    assert outputs.after(2) == {"first": 2, "outputs": [stream("c")]}
    assert outputs.after(2)["outputs"] == [stream("c")]  # a reply that was lost
    assert outputs.after(3) == {"first": 3, "outputs": []}


def test_a_slow_client_gets_a_notice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "MAX_PENDING_CHARS", 10)
    outputs = LiveOutputs()
    for text in ("12345678", "too long", "xx"):
        outputs.add(stream(text), len(text))
    first, notice, last = (each["text"] for each in outputs.after(0)["outputs"])
    assert (first, last) == ("12345678", "xx")
    assert "8 characters of output were omitted" in notice
    outputs.add(stream("too long"), 8)
    assert "8 characters" in outputs.after(3, at_end=True)["outputs"][-1]["text"]


def test_a_wait_ends_with_an_output_of_another_thread() -> None:
    outputs = LiveOutputs()

    async def wait() -> None:
        threading.Thread(target=outputs.add, args=(stream("a"), 1)).start()
        await outputs.wait(0, 60)

    asyncio.run(wait())
    assert outputs.after(0)["outputs"] == [stream("a")]


def test_a_collector_passes_everything_on() -> None:
    outputs = LiveOutputs()
    token = live_outputs.set(outputs)
    collector = OutputCollector()
    live_outputs.reset(token)
    OutputCollector().add_stream("another cell's")
    collector.add_stream("text", "stderr")
    collector.add_display({"text/plain": "1"}, is_result=True)
    collector.add_error(["Traceback"], "KeyError", "'a'")
    kinds = [each["output_type"] for each in outputs.after(0)["outputs"]]
    assert kinds == ["stream", "execute_result", "error"]
