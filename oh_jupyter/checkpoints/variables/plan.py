"""The plan of a rewind of variables, and its execution."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from oh_jupyter.checkpoints.variables.change import Outcome, VariableChange
from oh_jupyter.checkpoints.variables.libraries import size_of
from oh_jupyter.checkpoints.variables.limits import NotKeptError
from oh_jupyter.checkpoints.variables.part import MISSING
from oh_jupyter.checkpoints.variables.reach import Namespace
from oh_jupyter.checkpoints.variables.records import (
    DEAD,
    Binding,
    Change,
    Record,
    reference,
    strong_reference,
)
from oh_jupyter.checkpoints.variables.walk import State

CHANGED_SINCE = "changed since by you or others"
CHANGED_BETWEEN = "what others changed between the turns stays"


@dataclass
class VariablePlan:
    """The bindings and contents to restore.

    Attributes:
        bindings: New object of each variable, MISSING to remove it.
        contents: Contents to write into their objects, by identity.
        remade: Objects that must be replaced by new ones, by identity.
        rows: One row for each variable that the turns touched, by name.
        reached: Objects that each variable reaches, by its name.
    """

    bindings: dict[str, Any] = field(default_factory=dict)
    contents: dict[int, State] = field(default_factory=dict)
    remade: dict[int, State] = field(default_factory=dict)
    rows: dict[str, VariableChange] = field(default_factory=dict)
    reached: dict[str, set[int]] = field(default_factory=dict)


class _Planner:
    """Variables and objects while records are undone, the last one first."""

    def __init__(self, namespace: Namespace, everything: bool) -> None:
        self._current = namespace.own()
        self._everything = everything
        self.bindings: dict[str, Any] = {}
        self.contents: dict[int, State] = {}
        self.reached: dict[str, set[int]] = {}
        self.reasons: dict[str, str] = {}
        self.persons: set[int | str] = set()
        """Variables and objects that others changed after or between the cells."""

    def undo(self, record: Record) -> None:
        """Undo a record where everything is as its cell left it."""
        for name, keys in (*record.reached.items(), *record.reached_after.items()):
            self.reached.setdefault(name, set()).update(keys)
        for name, reason in record.reasons.items():
            self.reasons.setdefault(name, reason)
        changes = list(record.changes.items())
        changed = {key for key, change in changes if self._is_persons(key, change)}
        for name, binding in record.bindings.items():
            inner = record.reached_after.get(name, set())
            self._undo_binding(name, binding, not changed.isdisjoint(inner))
        self.persons |= changed
        for key, change in changes:
            if key not in self.persons and change.before is not None:
                self.contents[key] = State(change.thing(), change.parts, change.before)

    def _undo_binding(self, name: str, binding: Binding, is_changed: bool) -> None:
        if name in self.persons:
            return
        current = self.bindings.get(name, self._current.get(name, MISSING))
        is_persons = current is not binding.after() or (is_changed and current is not MISSING)
        if not is_persons or self._everything:
            self.bindings[name] = binding.before
        else:
            self.persons.add(name)

    def _is_persons(self, key: int, change: Change) -> bool:
        """Return whether an object is not as the cell left it."""
        thing = change.thing()
        if self._everything or thing is DEAD:
            return False
        try:
            planned = self.contents.get(key)
            values = (
                State(thing, change.parts, change.after).now()
                if planned is None
                else (planned.values)
            )
            return not State(thing, change.parts, change.after).is_same(values)
        except Exception:  # types may fail in any way
            return True

    def remove_others(self, record: Record) -> None:
        """Remove the variables that did not exist at a mark."""
        for name in self._current.keys() - record.bindings.keys():
            self.bindings[name] = MISSING

    def plan(self) -> VariablePlan:
        """Return what is not so already."""
        plan = VariablePlan(reached=self.reached)
        for name, value in self.bindings.items():
            if self._current.get(name, MISSING) is not value:
                plan.bindings[name] = value
        for key, state in self.contents.items():
            if not _is_now(state):
                (plan.contents if state.fits() else plan.remade)[key] = state
        names = {*self.bindings, *self.reached, *self.reasons, *self.persons}
        for name in sorted(name for name in names if isinstance(name, str)):
            is_there = name in self._current or plan.bindings.get(name, MISSING) is not MISSING
            if is_there or name in self.reasons:
                plan.rows[name] = self._row(name, plan)
        return plan

    def _row(self, name: str, plan: VariablePlan) -> VariableChange:
        current = self._current.get(name, MISSING)
        value = plan.bindings.get(name, current)
        keys = self.reached.get(name, set())
        reason = self.reasons.get(name, "")
        is_persons = name in self.persons or not keys.isdisjoint(self.persons)
        outcome: Outcome = "unchanged"
        if value is MISSING and current is not MISSING:
            outcome = "removed"
        elif name in self.persons and value is current:
            outcome, reason = "yours", CHANGED_SINCE
        elif id(value) in plan.remade:
            outcome = "rebound"
        elif value is not current or keys & plan.contents.keys():
            outcome = "restored"
            reason = CHANGED_BETWEEN if is_persons else reason
        elif is_persons:
            outcome, reason = "yours", CHANGED_SINCE
        elif keys & plan.remade.keys():
            outcome, reason = "not kept", "an object in it cannot be restored in place"
        elif reason:
            outcome = "not kept"
        shown = current if value is MISSING else value
        if shown is MISSING:
            return VariableChange(name, "not kept", reason=reason)
        return VariableChange(name, outcome, type(shown).__name__, size_of(shown), reason)


def _is_now(state: State) -> bool:
    try:
        return state.is_same(state.now())
    except Exception:  # types may fail in any way
        return False


def plan_rewind(
    records: Sequence[Record], namespace: Namespace, *, everything: bool
) -> VariablePlan:
    """Return what undoing the records would do now.

    Args:
        records: The records since a checkpoint, oldest first. If the first one is of a mark, all
            variables return to that moment.
        namespace: The variables.
        everything: Also overwrite what others changed since.
    """
    is_exact = bool(records) and records[0].is_exact
    planner = _Planner(namespace, everything or is_exact)
    cells = [record for record in records if not record.is_exact]
    for record in records[:1] if is_exact else reversed(cells):
        planner.undo(record)
    if is_exact:
        planner.remove_others(records[0])
    return planner.plan()


def apply(plan: VariablePlan, namespace: Namespace, checkpoint: int) -> Record:
    """Execute a plan; return the record that undoes it. The rows of the plan tell the outcome."""
    record = Record(checkpoint, reached=plan.reached)
    # All are read before the first one is written, because arrays may share their data.
    before: dict[int, tuple[Any, ...]] = {}
    for key, state in plan.contents.items():
        try:
            before[key] = state.owned(state.now())
            record.size += state.held(state.values)
        except Exception as error:  # types may fail in any way
            _report_failure(plan, key, str(error))
    for key in list(before):
        try:
            plan.contents[key].restore()
        except NotKeptError as error:
            _report_failure(plan, key, str(error))
            del before[key]
    for key, values in before.items():
        state = plan.contents[key]
        thing, after = strong_reference(state.thing), state.sealed(state.now())
        record.changes[key] = Change(thing, state.parts, values, after)
    bindings, remade = dict(plan.bindings), dict[int, Any]()
    own = namespace.own()
    for name, value in (own | bindings).items():
        if id(value) not in plan.remade:
            continue
        try:
            if id(value) not in remade:  # variables of one object get one new object
                remade[id(value)] = plan.remade[id(value)].remade()
            bindings[name] = remade[id(value)]
        except Exception as error:  # types may fail in any way
            _report_failure(plan, id(value), f"restoring it failed: {error}")
    for name, value in bindings.items():
        record.bindings[name] = Binding(own.get(name, MISSING), reference(value))
        if value is MISSING:
            namespace.remove(name)
        else:
            namespace.variables[name] = value
    return record


def _report_failure(plan: VariablePlan, key: int, reason: str) -> None:
    for name, keys in plan.reached.items():
        if key in keys and name in plan.rows:
            plan.rows[name] = replace(plan.rows[name], outcome="not kept", reason=reason)
