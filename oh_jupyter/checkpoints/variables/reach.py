"""The variables of a notebook, and those that code may read or change, by its names."""

from __future__ import annotations

import ast
import dis
import re
import types
from collections.abc import Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

_OF_IPYTHON = re.compile(r"_+|_i+|_i?\d+|_[idos]h|_i_?\d+|__\w+__|_exit_code|_dh")
"""Names that IPython assigns after each cell."""


@dataclass(frozen=True)
class Namespace:
    """The variables of a notebook.

    Attributes:
        variables: All variables by name.
        hidden: Variables that are not the person's, by name, with their initial objects.
    """

    variables: MutableMapping[str, Any]
    hidden: Mapping[str, Any]

    def own(self) -> dict[str, Any]:
        """Return the person's variables."""
        return {
            name: value
            for name, value in list(self.variables.items())
            if not (name in self.hidden and self.hidden[name] is value)
            and not (name[:1] == "_" and _OF_IPYTHON.fullmatch(name))
        }

    def remove(self, name: str) -> None:
        """Remove a variable; one that it replaced returns."""
        self.variables.pop(name, None)
        if name in self.hidden:
            self.variables[name] = self.hidden[name]


_DYNAMIC_NAMES = frozenset(
    {"exec", "eval", "globals", "locals", "vars", "__import__", "__builtins__", "breakpoint"}
)
_DYNAMIC_ATTRIBUTES = frozenset(
    {
        *("__globals__", "f_globals", "f_locals", "_getframe", "get_objects", "get_referrers"),
        *("modules", "__main__", "currentframe", "import_module", "user_ns", "user_global_ns"),
    }
)
_SHELL_CALLS = frozenset(
    {
        *("run_line_magic", "run_cell_magic", "magic", "run_cell", "run_code", "run_ast_nodes"),
        *("ev", "ex", "push", "reset", "safe_execfile", "drop_by_id", "del_var", "ns_table"),
    }
)
"""Methods of IPython's shell that reach any variable."""


class Reach(NamedTuple):
    """Names of variables that code uses, or everything if it may use any."""

    names: frozenset[str] = frozenset()
    is_everything: bool = False


EVERYTHING = Reach(is_everything=True)


def cell_reach(code: str) -> Reach:
    """Return what a cell uses, without the functions that it calls.

    Args:
        code: Plain Python, with IPython's syntax translated to calls.
    """
    try:
        flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        return code_reach(compile(code, "<cell>", "exec", flags, dont_inherit=True))
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError):
        return EVERYTHING


@lru_cache(maxsize=4096)
def code_reach(code: types.CodeType) -> Reach:
    """Return what compiled code uses, with its inner functions and classes."""
    names: set[str] = set()
    attributes: set[str] = set()
    for inner in _codes(code):
        for instruction in dis.get_instructions(inner):
            if instruction.opcode not in dis.hasname:
                continue
            is_variable = instruction.opname.endswith(("_NAME", "_GLOBAL", "_GLOBALS"))
            (names if is_variable else attributes).add(instruction.argval)
    if names & _DYNAMIC_NAMES or (names | attributes) & _DYNAMIC_ATTRIBUTES:
        return EVERYTHING
    if "get_ipython" in names and attributes & _SHELL_CALLS:
        return EVERYTHING
    return Reach(frozenset(names))


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)
