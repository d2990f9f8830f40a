"""Kernels and servers for agents of OpenHands' SDK, which needs Python 3.12.

Where the SDK is not installed these tests are skipped; ``test_environment.py`` runs them with the
Python that ``OH_JUPYTER_TEST_OPENHANDS_SDK`` names.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from oh_jupyter.testing import LiveKernel


@pytest.fixture(scope="session")
def needs_sdk() -> None:
    has_sdk = importlib.util.find_spec("openhands") is not None and all(
        importlib.util.find_spec(f"openhands.{part}") is not None for part in ("sdk", "tools")
    )
    if not has_sdk:
        pytest.skip("openhands-sdk and openhands-tools are not installed (they need Python 3.12)")


@pytest.fixture(scope="module")
def kernel(needs_sdk: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    live = LiveKernel(tmp_path_factory.mktemp("workspace"), "--ext", "oh_jupyter")
    live.execute(Path(__file__).with_name("scripted_conversation.py").read_text(), timeout=110)
    yield live
    live.close()
