"""What the tests of other folders have that these use, too."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

__all__ = ["TESTS", "has_sdk", "load"]

TESTS = Path(__file__).parents[1]


def has_sdk() -> bool:
    return importlib.util.find_spec("openhands") is not None and all(
        importlib.util.find_spec(f"openhands.{part}") is not None for part in ("sdk", "tools")
    )


def load(name: str, path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
