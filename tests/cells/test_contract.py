"""Both ways into another kernel keep what every runner of cells promises."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

import pytest

from oh_jupyter.cells import CellOutput
from oh_jupyter.cells.remote import RemoteKernel
from oh_jupyter.cells.subprocess_kernel import SubprocessKernel
from oh_jupyter.testing import CellRunnerContract, LiveServer

RunCell = Callable[..., CellOutput]


@pytest.fixture(scope="module")
def run_in_subprocess() -> Iterator[RunCell]:
    with asyncio.Runner() as loop:
        kernel = SubprocessKernel()
        yield lambda code, **options: loop.run(kernel.run_cell(code, **options))
        loop.run(kernel.close())


@pytest.fixture(scope="module")
def run_remotely(plain_server: LiveServer) -> Iterator[RunCell]:
    with asyncio.Runner() as loop:
        kernel = RemoteKernel(plain_server.url, plain_server.token)
        yield lambda code, **options: loop.run(kernel.run_cell(code, **options))
        loop.run(kernel.close())


class TestSubprocessKernel(CellRunnerContract):
    @pytest.fixture
    def run_cell(self, run_in_subprocess: RunCell) -> RunCell:
        return run_in_subprocess


class TestRemoteKernel(CellRunnerContract):
    @pytest.fixture
    def run_cell(self, run_remotely: RunCell) -> RunCell:
        return run_remotely
