"""Contracts and fixtures for tests of packages that build on oh_jupyter.

In a ``conftest.py``, ``pytest_plugins = ["oh_jupyter.testing"]`` gives the fixtures
``live_server`` and ``live_kernel``, one for each test module. Needs pytest, which
``pip install oh_jupyter[test]`` installs.
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

_POLL_INTERVAL_SECONDS = 0.01


def wait_until(condition: Callable[[], T], *, timeout_seconds: float = 60, what: str = "it") -> T:
    """Wait until a condition holds.

    Args:
        condition: Function that is polled a hundred times a second.
        timeout_seconds: Seconds until the test fails. A generous limit costs nothing if the
            condition comes true.
        what: Name of the condition in the failure message.

    Returns:
        The first true value of the condition.

    Raises:
        AssertionError: The condition did not come true in time.
    """
    deadline = time.monotonic() + timeout_seconds
    while not (value := condition()):
        assert time.monotonic() < deadline, f"{what} did not happen within {timeout_seconds:g} s"
        threading.Event().wait(_POLL_INTERVAL_SECONDS)
    return value


def descendants(
    is_wanted: Callable[[psutil.Process], object], *, of: int | None = None
) -> list[psutil.Process]:
    """Find descendants of a process.

    Args:
        is_wanted: Predicate; processes that end during the call are skipped.
        of: Id of the ancestor, which must exist; None for this process.

    Returns:
        The matching processes; any of them may have ended by now.
    """
    matches = []
    for process in psutil.Process(of).children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            if is_wanted(process):
                matches.append(process)
    return matches


@contextmanager
def suspended(*processes: psutil.Process) -> Iterator[None]:
    """Suspend processes for the block.

    The block starts when the system has executed the signals.

    Args:
        processes: The processes; any of them may be ended in the block.
    """
    for process in processes:
        process.suspend()
    try:
        for process in processes:
            wait_until(partial(_is_stopped, process), what=f"the stop of {process.pid}")
        yield
    finally:
        for process in processes:
            with suppress(psutil.NoSuchProcess):
                process.resume()


def _is_stopped(process: psutil.Process) -> bool:
    return bool(process.status() == psutil.STATUS_STOPPED)
