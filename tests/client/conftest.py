"""One server for the clients; its launcher is beside the rooms' tests."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from live_server import live_server


@pytest.fixture(scope="session")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    # Jupyter looks every so many seconds whether its kernels live.
    options = ("--KernelRestarter.time_to_dead=0.5",)
    with live_server(tmp_path_factory.mktemp("server"), *options) as server:
        yield server.url
