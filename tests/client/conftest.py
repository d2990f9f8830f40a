"""One server for the clients."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from oh_jupyter.testing import run_server


@pytest.fixture(scope="session")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    # Jupyter looks every so many seconds whether its kernels live.
    options = ("--KernelRestarter.time_to_dead=0.5",)
    with run_server(tmp_path_factory.mktemp("server"), *options) as server:
        yield server.url
