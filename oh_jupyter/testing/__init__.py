"""Contracts and fixtures for tests of what builds on oh_jupyter.

In a ``conftest.py``, ``pytest_plugins = ["oh_jupyter.testing"]`` gives the fixtures
``live_server`` and ``live_kernel``, one for each module of tests. Needs pytest, which
``pip install oh_jupyter[test]`` brings along.
"""

from oh_jupyter.testing.cell_runner import CellRunnerContract
from oh_jupyter.testing.file_store import FileStoreContract
from oh_jupyter.testing.kernel import LiveKernel, live_kernel
from oh_jupyter.testing.server import LiveServer, live_server, run_server
from oh_jupyter.testing.waiting import wait_until

__all__ = [
    "CellRunnerContract",
    "FileStoreContract",
    "LiveKernel",
    "LiveServer",
    "live_kernel",
    "live_server",
    "run_server",
    "wait_until",
]
