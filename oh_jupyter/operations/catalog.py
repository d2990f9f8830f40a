"""The catalog of all operations, for tools that generate files and for tests.

A kernel imports only the declarations that it needs.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

from oh_jupyter.operations.declaration import Operation


def declared() -> list[type[Operation[Any]]]:
    """Return the declarations of all operations, sorted by their names on the wire."""
    modules = iter_modules([str(Path(__file__).parent)])
    names = [f"{__package__}.{each.name}" for each in modules]
    classes = [
        value
        for name in names
        for value in vars(import_module(name)).values()
        if isinstance(value, type) and issubclass(value, Operation) and value.__module__ == name
    ]
    return sorted(
        (each for each in classes if each is not Operation), key=lambda each: each.wire_name
    )
