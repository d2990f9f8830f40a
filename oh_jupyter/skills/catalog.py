"""Which skills there are: our own, those of other packages, and those of the person."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import find_spec
from typing import Any, NamedTuple, TypeVar

__all__ = ["ENTRY_POINT_GROUP", "Skill", "available", "documentation", "register", "registry"]

ENTRY_POINT_GROUP = "oh_jupyter.skills"
"""Other packages offer a skill as an entry point of this group: name = module:function."""

_Function = TypeVar("_Function", bound=Callable[..., Any])

# Name, module, and the package without which the skill is not offered.
_BUILT_IN = (
    ("open_file", "file_ops", None),
    ("goto_line", "file_ops", None),
    ("scroll_down", "file_ops", None),
    ("scroll_up", "file_ops", None),
    ("search_dir", "file_ops", None),
    ("search_file", "file_ops", None),
    ("find_file", "file_ops", None),
    ("parse_pdf", "file_reader", "pypdf"),
    ("parse_docx", "file_reader", "docx"),
    ("parse_latex", "file_reader", "pylatexenc"),
    ("parse_pptx", "file_reader", "pptx"),
    ("file_editor", "file_editor", None),
)
_UNDOCUMENTED = "file_editor"  # agents know it from its own tool description

_logger = logging.getLogger(__name__)
_registered: dict[str, Callable[..., Any]] = {}


class Skill(NamedTuple):
    """One skill.

    Attributes:
        function: What to call.
        signature: Its parameters, such as ``(path: str, line_number: int = 1)``.
        docstring: What it does.
    """

    function: Callable[..., Any]
    signature: str
    docstring: str


def register(function: _Function) -> _Function:
    """Offer a function as a skill; also usable as a decorator.

    A function of the same name that was there before is replaced.

    Args:
        function: The function, with a docstring.

    Returns:
        The same function.

    Raises:
        TypeError: It is not a named function.
    """
    name = getattr(function, "__name__", "")
    if not callable(function) or not name.isidentifier():
        raise TypeError(f"a skill is a function with a name, not {function!r}")
    _registered[name] = function
    return function


def available() -> dict[str, Callable[..., Any]]:
    """List the skills that work here.

    A skill whose package is not installed is left out, and does not disturb the others.

    Returns:
        The functions by name: our own, those of entry points, those registered.
    """
    functions: dict[str, Callable[..., Any]] = {}
    for name, module, package in _BUILT_IN:
        if package is None or find_spec(package) is not None:
            functions[name] = getattr(import_module(f"oh_jupyter.skills.{module}"), name)
    for point in entry_points(group=ENTRY_POINT_GROUP):
        try:
            functions[point.name] = point.load()
        except ImportError:
            _logger.debug("Skill %s is left out", point.name, exc_info=True)
        except Exception:
            _logger.warning("Skill %s of %s is broken", point.name, point.value, exc_info=True)
    return functions | _registered


def registry() -> dict[str, Skill]:
    """Describe the skills that work here.

    Returns:
        Function, signature and docstring by name.
    """
    return {
        name: Skill(function, _signature(function), inspect.getdoc(function) or "")
        for name, function in available().items()
    }


def documentation() -> str:
    """Describe the skills for an agent's prompt, in the format of OpenHands.

    Returns:
        For each skill a line with its signature, then its docstring, indented and
        without empty lines, then an empty line.
    """
    parts = []
    for name, skill in registry().items():
        if name != _UNDOCUMENTED:
            lines = (line.strip() for line in skill.docstring.splitlines())
            text = "\n".join(f"    {line}" for line in lines if line)
            parts.append(f"{name}{skill.signature}:\n{text}\n\n")
    return "".join(parts)


def _signature(function: Callable[..., Any]) -> str:
    try:
        return str(inspect.signature(function, eval_str=True))
    except NameError:  # an annotation that exists for type checkers only
        return str(inspect.signature(function))
    except (TypeError, ValueError):  # a function in C that does not tell
        return "(...)"
