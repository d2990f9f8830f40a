"""Fixtures of the tests of checkpoints."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.checkpoints.notebook import Notebook


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@pytest.fixture
def notebook(tmp_path: Path) -> Notebook:
    return Notebook(tmp_path)
