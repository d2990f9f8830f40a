"""Contracts and fixtures for tests of what builds on oh_jupyter.

In a ``conftest.py``, ``pytest_plugins = ["oh_jupyter.testing"]`` gives the fixtures
``live_server`` and ``live_kernel``, one for each module of tests. Needs pytest, which
``pip install oh_jupyter[test]`` brings along.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import TypeVar

import psutil

from oh_jupyter.testing.cell_runner import CellRunnerContract
from oh_jupyter.testing.file_store import FileStoreContract
from oh_jupyter.testing.kernel import LiveKernel, live_kernel
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
    "suspended",
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


def descendants(
    is_wanted: Callable[[psutil.Process], object], *, of: int | None = None
) -> list[psutil.Process]:
    """Find processes below another one.

    Args:
        is_wanted: Whether a process is one of them; one that ends while it is asked about is not.
        of: The id of the process above them, which must be there; None for this process.

    Returns:
        Those that are wanted; any of them may have ended by now.
    """
    found = []
    for process in psutil.Process(of).children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            if is_wanted(process):
                found.append(process)
    return found


@contextmanager
def suspended(*processes: psutil.Process) -> Iterator[None]:
    """Suspend processes for the block.

    The system carries the signal out some time after it was sent: the block begins when it has.

    Args:
        processes: Those that stand still; any of them may be ended in the block.
    """
    for process in processes:
        process.suspend()
    try:
        for process in processes:
            wait_until(partial(_stands_still, process), what=f"the stop of {process.pid}")
        yield
    finally:
        for process in processes:
            with suppress(psutil.NoSuchProcess):
                process.resume()


def _stands_still(process: psutil.Process) -> bool:
    return bool(process.status() == psutil.STATUS_STOPPED)
