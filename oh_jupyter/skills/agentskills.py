"""Module for ``from oh_jupyter.skills.agentskills import *`` in a cell.

Names are looked up at each import, so newly registered skills are included. ``DOCUMENTATION``
describes the skills for a prompt, as in OpenHands.
"""

from __future__ import annotations

from typing import Any

from oh_jupyter.skills.catalog import available, documentation


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return list(available())
    if name == "DOCUMENTATION":
        return documentation()
    if not name.startswith("__"):
        functions = available()
        if name in functions:
            return functions[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*available(), "DOCUMENTATION"]
