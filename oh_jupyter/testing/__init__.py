"""Contracts and fixtures for tests of what builds on oh_jupyter.

In a ``conftest.py``, ``pytest_plugins = ["oh_jupyter.testing"]`` gives the fixtures
``live_server`` and ``live_kernel``, one for each module of tests. Needs pytest, which
``pip install oh_jupyter[test]`` brings along.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

from oh_jupyter.testing.cell_runner import CellRunnerContract
from oh_jupyter.testing.file_store import FileStoreContract
from oh_jupyter.testing.kernel import LiveKernel, live_kernel
from oh_jupyter.testing.processes import descendants
from oh_jupyter.testing.server import LiveServer, live_server, run_server

__all__ = [
    "CellRunnerContract",
    "FileStoreContract",
    "LiveKernel",
    "LiveServer",
    "descendants",
    "live_kernel",
    "live_server",
    "run_server",
    "wait_until",
]


T = TypeVar("T")

_LOOK_INTERVAL_SECONDS = 0.01


def wait_until(condition: Callable[[], T], *, timeout_seconds: float = 60, what: str = "it") -> T:
    """Wait until a condition holds.

    Args:
        condition: Is asked again and again, a hundred times a second.
        timeout_seconds: How long to wait before the test fails. A generous limit costs nothing
            where the condition comes true.
        what: What is waited for, for the message of the failure.

    Returns:
        The first value of the condition that is true.

    Raises:
        AssertionError: It did not come true in time.
    """
    deadline = time.monotonic() + timeout_seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, f"{what} did not happen within {timeout_seconds:g} s"
        threading.Event().wait(_LOOK_INTERVAL_SECONDS)
    return found
