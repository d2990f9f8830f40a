"""Records of agents' cells: the variables and objects that a cell changed, before and after."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from oh_jupyter.checkpoints.variables.libraries import size_of
from oh_jupyter.checkpoints.variables.part import MISSING, Part
from oh_jupyter.checkpoints.variables.reach import Reach
from oh_jupyter.checkpoints.variables.walk import CONTAINERS, State, Walk

PART_NOT_KEPT = "a part is not kept: "

UNREADABLE = "its content could not be read again: "

LARGE_BYTES = 1 << 22
"""Size above which data is compared after the cell has returned."""


class Binding(NamedTuple):
    """The object of a variable before a cell, and a reference to the one after it."""

    before: Any
    after: Callable[[], Any]


class Change(NamedTuple):
    """An object's content before a cell, None if the cell made it, and its sealed content after."""

    thing: Callable[[], Any]
    parts: tuple[Part, ...]
    before: tuple[Any, ...] | None
    after: tuple[Any, ...]


class Unread(NamedTuple):
    """An object with much data, whose content after the cell is yet to be compared or sealed."""

    thing: Callable[[], Any]
    state: State
    now: tuple[Any, ...]
    is_made: bool


@dataclass
class Record:
    """The changes of one cell of an agent, or of a rewind.

    Attributes:
        checkpoint: Number of the turn's checkpoint.
        bindings: Variables that the cell bound, rebound or deleted, or whose objects it changed.
        changes: Objects whose content it changed, by their identity.
        reached: Objects of ``changes`` that a variable reached before the cell, by its name.
        reached_after: Those that the new object of a bound variable reached after it.
        reasons: Variables whose content was not kept, with the reason.
        is_exact: Whether it has all variables at a mark instead of the changes of a cell.
        replaces: Checkpoint of the record that it replaces in a rewind to a later one, or None.
        size: Size of the data that it alone holds, in bytes.
        unread: Objects with much data, by their identity; ``settle`` reads them.
    """

    checkpoint: int
    bindings: dict[str, Binding] = field(default_factory=dict)
    changes: dict[int, Change] = field(default_factory=dict)
    reached: dict[str, set[int]] = field(default_factory=dict)
    reached_after: dict[str, set[int]] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    is_exact: bool = False
    replaces: int | None = None
    size: int = 0
    unread: dict[int, Unread] = field(default_factory=dict)

    @property
    def names(self) -> frozenset[str]:
        """The variables that the cell bound or deleted, or whose objects it changed."""
        reached = (name for name, keys in self.reached.items() if keys & self.changes.keys())
        return frozenset(self.bindings).union(reached)

    def __bool__(self) -> bool:
        """Whether the cell changed, or might have changed, anything."""
        return bool(self.bindings or self.changes or self.reasons or self.is_exact)


def reference(thing: Any, on_death: Callable[[Any], None] | None = None) -> Callable[[], Any]:
    """Return a weak reference if possible, else a strong one; a dead one returns DEAD."""
    try:
        weak = weakref.ref(thing, on_death)
    except TypeError:
        return lambda: thing

    def find() -> Any:
        alive = weak()
        return DEAD if alive is None else alive

    return find


def strong_reference(thing: Any) -> Callable[[], Any]:
    """Return a reference that keeps an object alive."""
    return lambda: thing


DEAD: Any = object()
"""Stands for an object that no longer exists."""


def compare(
    checkpoint: int,
    before: Walk,
    old_names: Mapping[str, Any],
    new_names: Mapping[str, Any],
    after: Walk,
) -> Record:
    """Return what a cell changed, except for objects with much data, which ``settle`` adds.

    Args:
        checkpoint: Number of the checkpoint.
        before: The objects before the cell.
        old_names: The person's variables before the cell.
        new_names: The person's variables now.
        after: A walk that has not started, through the variables as they are now.
    """
    record = Record(checkpoint)
    for name in old_names.keys() | new_names.keys():
        old, new = old_names.get(name, MISSING), new_names.get(name, MISSING)
        if old is not new:
            record.bindings[name] = Binding(old, reference(new))
    for key, state in before.states.items():
        _add_change(record, before, key, state)
    _add_made(record, before, after, [name for name in record.bindings if name in new_names])
    return record


def settle(record: Record, before: Walk, old_names: Mapping[str, Any]) -> None:
    """Complete a record while everything still is as the cell left it; this may be repeated."""
    for key, unread in list(record.unread.items()):
        _read_change(record, before, key, unread)
        del record.unread[key]
    changed = {key for key, change in record.changes.items() if change.before is not None}
    if changed:
        before.add_holders(old_names, changed)
    record.reached = before.names_of(record.changes)
    record.reasons = reasons(before)
    _limit_dropped(record, before)
    for name in record.reached.keys() & old_names.keys():  # still bound to the same objects
        record.bindings.setdefault(name, Binding(old_names[name], reference(old_names[name])))


def _add_change(record: Record, before: Walk, key: int, state: State) -> None:
    if not state.parts:
        return
    if type(state.thing) in CONTAINERS and state.parts[0].same(state.values[0], state.thing):
        return
    try:
        unread = Unread(strong_reference(state.thing), state, state.now(), is_made=False)
    except Exception as error:  # types may fail in any way
        before.reasons[key] = UNREADABLE + str(error)
        return
    if state.size() >= LARGE_BYTES:
        record.unread[key] = unread
    else:
        _read_change(record, before, key, unread)


def _read_change(record: Record, before: Walk, key: int, unread: Unread) -> None:
    """Add an object that the cell made or changed, with its sealed content."""
    thing, state, now, is_made = unread
    try:
        if is_made:
            record.changes[key] = Change(thing, state.parts, None, state.sealed(now))
        elif not state.is_same(now):
            change = Change(thing, state.parts, state.values, state.sealed(now))
            record.size += state.held(now)
            record.changes[key] = change
    except Exception as error:  # types may fail in any way
        before.reasons[key] = UNREADABLE + str(error)


def _add_made(record: Record, before: Walk, after: Walk, made: list[str]) -> None:
    """Add the contents of new objects, so that a person's later changes of them are noticed."""
    if not made:
        return
    after.follow(Reach(frozenset(made)), copies=False)
    for key in after.states.keys() - before.states.keys():
        state = after.states[key]
        if not state.parts:
            continue
        thing = reference(state.thing, functools.partial(_forget, record, key))
        unread = Unread(thing, state, state.values, is_made=True)
        if state.size() >= LARGE_BYTES:
            record.unread[key] = unread
        else:
            _read_change(record, after, key, unread)
    keys = record.changes.keys() | record.unread.keys()
    for name, inner in after.names_of(keys, through_code=False).items():
        if name in made:
            record.reached_after[name] = inner


def _forget(record: Record, key: int, _: object) -> None:
    """Free the memory of an object that no longer exists."""
    record.changes.pop(key, None)


def _limit_dropped(record: Record, before: Walk) -> None:
    """Free objects that only a variable before the cell referred to, if they are too large."""
    rebound = [name for name, binding in record.bindings.items() if binding.before is not MISSING]
    if not rebound:
        return
    things = before.unkept | {key: state.thing for key, state in before.states.items()}
    reached = before.names_of(things.keys() - record.changes.keys())
    sizes = {name: sum(size_of(things[key]) for key in reached.get(name, ())) for name in rebound}
    for name in sorted(rebound, key=sizes.__getitem__):
        record.size += sizes[name]
        if record.size > before.budget.size_bytes:
            record.size -= sizes[name]
            del record.bindings[name]
            record.reasons[name] = f"{sizes[name]:,} bytes exceed the memory for variables"


def reasons(walk: Walk) -> dict[str, str]:
    """Return the variables that a walk did not keep, or not entirely, with the reason."""
    reasons_by_name = dict(walk.skipped)
    for name, keys in walk.names_of(walk.reasons).items():
        root = walk.roots[name]
        inner = walk.reasons[min(keys)]
        reasons_by_name[name] = walk.reasons.get(root) or PART_NOT_KEPT + inner
    return reasons_by_name
