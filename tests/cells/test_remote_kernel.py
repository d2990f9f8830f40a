"""Cells in a kernel behind a real Jupyter server."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from oh_jupyter.config import Settings
from oh_jupyter.events import ErrorObservation, IPythonRunCellAction
from oh_jupyter.runtime import Runtime
from oh_jupyter.testing import LiveServer
from oh_jupyter.testing.server import TOKEN


@pytest.fixture
def url(plain_server: LiveServer) -> str:
    return plain_server.url


@pytest.fixture
def runtime(url: str, tmp_path: Path) -> Iterator[Runtime]:
    settings = Settings(
        workspace_dir=str(tmp_path), file_store="memory", kernel_url=url, kernel_token=TOKEN
    )
    made = Runtime(settings)
    yield made
    made.close()


def kernels(url: str) -> list[dict[str, str]]:
    headers = {"Authorization": f"token {TOKEN}"}
    return list(requests.get(f"{url}/api/kernels", headers=headers, timeout=30).json())


def test_cells_run_there_and_the_kernel_ends_with_the_runtime(url: str, runtime: Runtime) -> None:
    first = runtime.submit_action(IPythonRunCellAction("x = 20\ncallable(open_file)")).result(60)
    assert first.content.startswith("True\n[Jupyter current working directory: ")
    assert first.content.endswith(f"[Jupyter Python interpreter: {sys.executable}]")
    again = runtime.submit_action(IPythonRunCellAction("print('a')\nx + 1", include_extra=False))
    assert again.result(60).content == "a\n21"
    assert len(kernels(url)) == 1
    runtime.close()
    assert kernels(url) == []


@pytest.mark.thorough
def test_a_time_limit_interrupts_the_cell(runtime: Runtime) -> None:
    late = IPythonRunCellAction("print('started')\nimport time; time.sleep(600)")
    late.timeout = 2
    content = runtime.submit_action(late).result(60).content
    assert content.startswith("started\n")
    assert "[Execution timed out (2.0 seconds).]" in content
    assert runtime.submit_action(IPythonRunCellAction("'on'")).result(60).content.startswith("'on'")


@pytest.mark.thorough
def test_a_kernel_that_goes_away_is_an_error(url: str, runtime: Runtime) -> None:
    runtime.submit_action(IPythonRunCellAction("1")).result(60)
    (kernel,) = kernels(url)
    waiting = runtime.submit_action(IPythonRunCellAction("import time; time.sleep(600)"))
    headers = {"Authorization": f"token {TOKEN}"}
    requests.delete(f"{url}/api/kernels/{kernel['id']}", headers=headers, timeout=30)
    observation = waiting.result(60)
    assert isinstance(observation, ErrorObservation)
    assert "connection to the kernel" in observation.content


def test_a_server_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    settings = Settings(
        workspace_dir=str(tmp_path), file_store="memory", kernel_url="http://127.0.0.1:1"
    )
    runtime = Runtime(settings)
    observation = runtime.submit_action(IPythonRunCellAction("1")).result(60)
    runtime.close()
    assert isinstance(observation, ErrorObservation)
    assert "http://127.0.0.1:1" in observation.content
