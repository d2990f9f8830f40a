"""Kernels and servers for agents of OpenHands' SDK, which needs Python 3.12.

Where the SDK is not installed these tests are skipped; ``test_environment.py`` runs them with the
Python that ``OH_JUPYTER_TEST_OPENHANDS_SDK`` names.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest


def has_sdk() -> bool:
    return importlib.util.find_spec("openhands") is not None and all(
        importlib.util.find_spec(f"openhands.{part}") is not None for part in ("sdk", "tools")
    )


def load(name: str, path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def needs_sdk() -> None:
    if not has_sdk():
        pytest.skip("openhands-sdk and openhands-tools are not installed (they need Python 3.12)")


LiveKernel = load(
    "kernel_conftest", Path(__file__).parents[1] / "kernel" / "conftest.py"
).LiveKernel


@pytest.fixture(scope="module")
def kernel(needs_sdk: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveKernel]:  # type: ignore[valid-type]
    folder = tmp_path_factory.mktemp("workspace")
    live = LiveKernel(folder, "--ext", "oh_jupyter")
    live.execute(Path(__file__).with_name("scripted_conversation.py").read_text())
    yield live
    live.close()
