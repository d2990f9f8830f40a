"""The content of an object, apart from the objects that it refers to, and the way back.

An object has parts: the items of a list, the attributes of an instance, the data of an array. Each
part is read shallowly and written back into the same object, so that whatever refers to the object
sees the restored content.
"""

from __future__ import annotations

import types
import weakref
from collections.abc import Callable
from typing import Any

from oh_jupyter.checkpoints.variables.libraries import library_parts
from oh_jupyter.checkpoints.variables.limits import NotKeptError
from oh_jupyter.checkpoints.variables.part import ATOMS, Part
from oh_jupyter.checkpoints.variables.python_objects import (
    CELL,
    CLASS,
    FUNCTION,
    MODULE,
    REFERENCES,
    STORAGE,
    class_parts,
)

_UNCHANGING_PACKAGES = frozenset({"pyarrow", "typing", "logging", "_abc"})
"""Packages whose objects are immutable or need no copies."""

_MACHINERY = frozenset(
    {
        *(
            "oh_jupyter",
            "IPython",
            "ipykernel",
            "traitlets",
            "ipywidgets",
            "comm",
            "zmq",
            "tornado",
        ),
        *("asyncio", "_asyncio", "threading", "concurrent", "multiprocessing", "subprocess"),
    }
)
"""Packages whose objects belong to the running process, and are not followed."""


def parts_of(thing: Any, is_ours: Callable[[str], bool]) -> tuple[Part, ...]:
    """Return the parts of an object's content, none for one that cannot change.

    Args:
        thing: The object.
        is_ours: Returns whether a module by this name is the notebook or in the workspace.

    Raises:
        NotKeptError: Its content cannot be kept.
    """
    cls: Any = type(thing)
    if cls in ATOMS:
        return ()
    if cls is types.FunctionType:
        return (FUNCTION,)
    if cls is types.CellType:
        return (CELL,)
    if issubclass(cls, types.ModuleType):
        is_notebook = thing.__name__ == "__main__"  # its contents are the variables
        return (MODULE,) if is_ours(thing.__name__) and not is_notebook else ()
    if issubclass(cls, type):
        return (CLASS,) if is_ours(str(thing.__module__)) else ()
    if cls in STORAGE or cls in REFERENCES:
        return class_parts(cls)
    parts = library_parts(thing)
    if parts is not None:
        return parts
    package = cls.__module__.partition(".")[0]
    if package in _UNCHANGING_PACKAGES or issubclass(cls, weakref.ref):
        return ()
    if package in _MACHINERY:
        raise NotKeptError(f"objects of {package} are not copied")
    return class_parts(cls)
