"""Facts of an Observation about the time before its Action began."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from oh_jupyter.events import CmdRunAction
from oh_jupyter.runtime import progress
from oh_jupyter.runtime.progress import ActionProgress


@pytest.mark.parametrize(
    ("steps", "handling"),
    [
        ([ActionProgress.begin], {}),
        ([ActionProgress.queue, ActionProgress.begin], {"queued_seconds": 2.0}),
        (
            [lambda it: it.decide("JupyterLab"), ActionProgress.queue, ActionProgress.begin],
            {"decided_by": "JupyterLab", "waited_seconds": 2.0, "queued_seconds": 2.0},
        ),
    ],
)
def test_each_wait_is_counted_apart(
    monkeypatch, steps: list[Callable[[ActionProgress], None]], handling: dict[str, Any]
) -> None:
    clock = iter(range(0, 100, 2))
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: float(next(clock))))

    async def scenario() -> None:
        state = ActionProgress(CmdRunAction("true"))
        for step in steps:
            step(state)
        assert state.handling() == handling

    asyncio.run(scenario())
