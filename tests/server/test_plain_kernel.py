"""A kernel that was started without oh_jupyter, as a notebook starts it."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture
def kernel_log(capfd: Any) -> Any:
    """What kernels print; before they start, so that they inherit what is listened to."""
    return capfd


async def test_its_log_stays_clean_when_it_is_asked_first(
    kernel_log: Any, plain_kernel: str, ask: Any, act: Any
) -> None:
    status, _ = await ask("kernels", plain_kernel, "events")
    assert status == 424
    assert (await act("run", plain_kernel, command="echo here"))[1]["content"] == "here"
    assert "UNKNOWN" not in kernel_log.readouterr().err
