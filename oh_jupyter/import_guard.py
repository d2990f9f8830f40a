"""Imports that no file of a workspace can replace.

A kernel's ``sys.path`` starts with the folder of the notebook, where a person or an agent may have
a ``html.py`` or a ``markitdown.py``. Imports in a person's code mean those files. Imports in this
package, and in the libraries that it calls, mean the installed modules.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from importlib import machinery
from types import FrameType, ModuleType
from typing import Any

from oh_jupyter.containment import is_within, is_within_any
from oh_jupyter.installed import LIBRARY_FOLDERS, PACKAGE, installed_path

_CELLS = ("<ipython-input", "<stdin>", "<console>")
"""Names of files of code that a person or an agent enters."""

_CELL_RUNNERS = frozenset({"run_cell", "_run_cell", "run_cell_async", "run_code"})
_SHELL_FILE = "interactiveshell.py"

_permissive = threading.local()


@contextmanager
def importing_from_workspace() -> Iterator[None]:
    """Let imports fall back on the workspace, for objects that a person's modules define."""
    depth = getattr(_permissive, "depth", 0)
    _permissive.depth = depth + 1
    try:
        yield
    finally:
        _permissive.depth = depth


@lru_cache(maxsize=4000)
def _owner_of(filename: str) -> str:
    """Return ``ours``, ``library`` or ``person`` for the file of a frame."""
    if is_within(filename, PACKAGE):
        return "ours"
    if filename.startswith("<") and not filename.startswith(_CELLS):
        return "library"  # importlib, or methods that a library generates
    return "library" if is_within_any(filename, LIBRARY_FOLDERS) else "person"


def _importer(frame: FrameType | None) -> str:
    """Return the owner of the innermost code that is not a library's; ``library`` if there is none.

    A cell that this package runs belongs to a person, also while IPython prepares it.
    """
    while frame is not None:
        code = frame.f_code
        owner = _owner_of(code.co_filename)
        if owner != "library":
            return owner
        if code.co_name in _CELL_RUNNERS and code.co_filename.endswith(_SHELL_FILE):
            return "person"
        frame = frame.f_back
    return "library"


def _preference() -> str:
    """Return ``only`` or ``first`` if installed modules take precedence here, else ""."""
    owner = _importer(sys._getframe(2))
    if owner == "ours":
        return "first" if getattr(_permissive, "depth", 0) else "only"
    is_main = threading.current_thread() is threading.main_thread()
    # Threads of libraries, such as that of fsspec, work for us and for others.
    return "first" if owner == "library" and not is_main else ""


class PathFinder(machinery.PathFinder):
    """Search of ``sys.path`` that takes the importing code into account.

    It has the name of the class that it replaces, since other hooks search for that name.
    """

    @classmethod
    def find_spec(
        cls, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> machinery.ModuleSpec | None:
        """Find a module; for the imports of this package only among the installed ones."""
        # Packages have a list; namespace packages search `sys.path` as well.
        if type(path) is list or not (preference := _preference()):
            return super().find_spec(fullname, path, target)
        installed = installed_path(sys.path if path is None else path)
        spec = super().find_spec(fullname, installed, target)
        if preference == "first" and (spec is None or spec.loader is None):
            return super().find_spec(fullname, path, target)
        return spec

    @classmethod
    def find_distributions(cls, context: Any = None) -> Iterable[Any]:
        """Find distributions; for this package only installed ones, whose entry points it loads."""
        from importlib.metadata import DistributionFinder

        context = context or DistributionFinder.Context()
        if _preference() == "only":
            values = {**vars(context), "path": installed_path(context.path)}
            context = DistributionFinder.Context(**values)
        return super().find_distributions(context)


def install() -> None:
    """Replace Python's own search of ``sys.path``; idempotent."""
    for index, finder in enumerate(sys.meta_path):
        if finder is machinery.PathFinder:
            sys.meta_path[index] = PathFinder
