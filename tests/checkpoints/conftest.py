"""Fixtures of the tests of checkpoints."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from oh_jupyter.state.shared import close_ledgers
from tests.checkpoints.notebook import Notebook


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@pytest.fixture
def notebook(tmp_path: Path) -> Notebook:
    return Notebook(tmp_path)


@pytest.fixture(autouse=True)
def close_state() -> Iterator[None]:
    """Close the ledgers of a test, which would otherwise stay open until the process ends."""
    yield
    close_ledgers()
