"""A runtime without a kernel."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from oh_jupyter.config import Settings
from oh_jupyter.runtime import Runtime


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "settings(NAME=...): settings of the test's runtime")


@pytest.fixture
def runtime(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Runtime]:
    """Return an open runtime in ``tmp_path``; the marker ``settings`` changes its settings."""
    marker = request.node.get_closest_marker("settings")
    chosen = {"workspace_dir": str(tmp_path), "file_store": "memory", "plugins": ()}
    runtime = Runtime(Settings(**{**chosen, **(marker.kwargs if marker else {})}))
    yield runtime
    runtime.close()
