"""Copies of a notebook's variables, to go back to."""

from __future__ import annotations

import copy
from collections.abc import Collection, MutableMapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

__all__ = ["VariableSnapshot", "keep_variables", "restore_variables"]


@dataclass(frozen=True)
class VariableSnapshot:
    """Copies of variables by name, and the names of those that cannot be copied."""

    values: dict[str, Any] = field(repr=False)
    not_copied: frozenset[str]


def keep_variables(
    namespace: MutableMapping[str, Any], hidden: Collection[str]
) -> VariableSnapshot:
    """Copy what a person has defined; two names of one object are so in the copy, too."""
    values, not_copied = _copied({n: namespace[n] for n in _own_names(namespace, hidden)})
    return VariableSnapshot(values, not_copied)


def restore_variables(
    namespace: MutableMapping[str, Any], hidden: Collection[str], snapshot: VariableSnapshot
) -> frozenset[str]:
    """Bring the variables back, and remove those defined since; the names that stay as they are."""
    values, _ = _copied(snapshot.values)  # so that one can go back once more
    for name in _own_names(namespace, hidden):
        if name not in values and name not in snapshot.not_copied:
            del namespace[name]
    namespace.update(values)
    return snapshot.not_copied


def _own_names(namespace: MutableMapping[str, Any], hidden: Collection[str]) -> list[str]:
    return [name for name in namespace if not name.startswith("_") and name not in hidden]


def _copied(values: dict[str, Any]) -> tuple[dict[str, Any], frozenset[str]]:
    memo: dict[int, Any] = {}
    copies: dict[str, Any] = {}
    failed = set()
    for name, value in values.items():
        if isinstance(value, ModuleType):
            copies[name] = value
            continue
        try:
            copies[name] = copy.deepcopy(value, memo)
        except Exception:  # a type of anybody's may refuse in any way
            failed.add(name)
    return copies, frozenset(failed)
