"""What an Observation tells of the time before its Action began."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from oh_jupyter.events import CmdRunAction
from oh_jupyter.runtime import progress
from oh_jupyter.runtime.progress import ActionProgress


@pytest.mark.parametrize(
    ("steps", "told"),
    [
        ([ActionProgress.begin], None),
        ([ActionProgress.queue, ActionProgress.begin], {"queued_seconds": 2.0}),
        (
            [lambda it: it.decide("JupyterLab"), ActionProgress.queue, ActionProgress.begin],
            {"decided_by": "JupyterLab", "waited_seconds": 2.0, "queued_seconds": 2.0},
        ),
    ],
)
def test_each_wait_is_counted_apart(
    monkeypatch, steps: list[Callable[[ActionProgress], None]], told: dict | None
) -> None:
    clock = iter(range(0, 100, 2))
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: float(next(clock))))

    async def scenario() -> None:
        going_on = ActionProgress(CmdRunAction("true"))
        for step in steps:
            step(going_on)
        assert going_on.handling() == told

    asyncio.run(scenario())
