"""Real kernels with oh_jupyter in them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from oh_jupyter.testing import LiveKernel


@pytest.fixture(scope="module")
def kernel(live_kernel: LiveKernel) -> LiveKernel:
    return live_kernel


@pytest.fixture
def fresh_kernel(tmp_path: Path) -> Iterator[LiveKernel]:
    live = LiveKernel(tmp_path)
    yield live
    live.close()
