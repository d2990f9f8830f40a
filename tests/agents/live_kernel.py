"""The live kernel of the kernel's tests, for agents."""

from __future__ import annotations

import importlib.util
from pathlib import Path

__all__ = ["LiveKernel"]

_spec = importlib.util.spec_from_file_location(
    "kernel_conftest", Path(__file__).parents[1] / "kernel" / "conftest.py"
)
assert _spec is not None
assert _spec.loader is not None
_module = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_module)
LiveKernel = _module.LiveKernel
