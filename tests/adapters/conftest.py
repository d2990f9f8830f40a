"""One server for the adapters; their frameworks are in an environment beside the main one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from oh_jupyter.testing import LiveServer, run_server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    with run_server(tmp_path_factory.mktemp("server")) as started:
        yield started
