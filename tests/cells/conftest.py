"""A server that knows nothing of oh_jupyter."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from oh_jupyter.testing import LiveServer, run_server


@pytest.fixture(scope="session")
def plain_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    with run_server(tmp_path_factory.mktemp("plain"), with_extension=False) as server:
        yield server
