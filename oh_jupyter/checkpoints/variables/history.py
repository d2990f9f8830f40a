"""The history of the variables of one kernel: what agents' cells changed, and the way back."""

from __future__ import annotations

import functools
import logging
import os
import sys
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from oh_jupyter.background import QueueThread
from oh_jupyter.checkpoints.variables.change import VariableChange
from oh_jupyter.checkpoints.variables.disk import (
    NO_CLOUDPICKLE,
    StoredRecord,
    VariableFiles,
    has_cloudpickle,
    load,
)
from oh_jupyter.checkpoints.variables.libraries import size_of
from oh_jupyter.checkpoints.variables.limits import Budget, NotKeptError, without_collections
from oh_jupyter.checkpoints.variables.part import MISSING
from oh_jupyter.checkpoints.variables.plan import VariablePlan, apply, plan_rewind
from oh_jupyter.checkpoints.variables.reach import EVERYTHING, Namespace, Reach, cell_reach
from oh_jupyter.checkpoints.variables.records import (
    Binding,
    Change,
    Record,
    compare,
    reasons,
    settle,
    strong_reference,
)
from oh_jupyter.checkpoints.variables.walk import Walk, runs_user_thread

logger = logging.getLogger(__name__)

MADE_SINCE = "it exists in this kernel"
FROM_DISK = "a copy from before the restart of the kernel"
RAN_MEANWHILE = "a cell that was running at the checkpoint changed it"

RECORD_BYTES = 2048
"""Approximate size of a record without data."""
CLOSE_SECONDS = 2.0
"""How long a closing kernel waits for variables that are being stored."""


@dataclass(frozen=True)
class PendingCell:
    """The variables before a cell that is running, or that was the last one to run.

    ``checkpoint`` is of the turn in which it began, ``end_checkpoint`` of that in which it ended.
    """

    checkpoint: int
    names: Mapping[str, Any]
    walk: Walk
    end_checkpoint: int


class _Queue(QueueThread):
    """Stores variables in the background, one record after the other."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._calls: list[Callable[[], None]] = []

    def add(self, call: Callable[[], None]) -> None:
        with self._changed:
            self._calls.append(call)
            self._wake()

    def wait(self, seconds: float) -> bool:
        """Wait until everything is stored; return False after the timeout."""
        return self._wait_for(lambda: not self._calls, seconds)

    def _has_work(self) -> bool:
        return bool(self._calls)

    def _work(self) -> None:
        try:
            self._calls[0]()
        except Exception as error:  # such as a full disk
            logger.warning("Variables were not stored: %s", error)
        finally:
            with self._changed:
                del self._calls[0]
                self._changed.notify_all()


class VariableHistory:
    """Keeps what agents' cells change in a notebook's variables.

    Only ``settle`` may be called on any thread, all else on one.
    """

    def __init__(
        self,
        namespace: Namespace,
        workspace_dir: str,
        directory: Path,
        *,
        notebook: str = "",
        process: str = "",
        is_alive: Callable[[str], bool] = lambda process: False,
    ) -> None:
        """Take the variables; nothing is read or written yet.

        Args:
            namespace: The variables.
            workspace_dir: Directory whose modules count as the notebook's code.
            directory: Where to store variables for a restart of the kernel.
            notebook: Path of the notebook; variables of others are not its own.
            process: Identifies this process.
            is_alive: Returns whether another process runs, whose variables are not lost.
        """
        self.memory_bytes = self.disk_bytes = float(2**30)
        self._namespace = namespace
        self._workspace = os.path.realpath(workspace_dir)
        self._files = VariableFiles(directory)
        self._process = process or uuid.uuid4().hex
        self._notebook = notebook
        self._is_alive = is_alive
        self._records: deque[Record] = deque()
        self._size = 0
        self._dropped = 0
        self._queue = _Queue("oh-variables")
        self._settling = threading.Lock()
        self._unsettled: tuple[Record, PendingCell] | None = None
        self.on_changed: Callable[[int, frozenset[str]], None] = lambda checkpoint, names: None
        """Called on any thread with the variables that a cell of a checkpoint's turn changed."""
        self._is_ours = functools.lru_cache(maxsize=1024)(self._find_ours)

    def before(self, code: str, checkpoint: int) -> PendingCell:
        """Keep what a cell may change, before it runs.

        Args:
            code: Its code as plain Python.
            checkpoint: Number of the turn's checkpoint.
        """
        reach = EVERYTHING if runs_user_thread(self._namespace) else cell_reach(code)
        names, walk = self._namespace.own(), self._walk(reach)
        self.settle()  # mostly done: the background thread read while this one copied
        return PendingCell(checkpoint, names, walk, checkpoint)

    def after(self, cell: PendingCell, end_checkpoint: int | None = None) -> None:
        """Record what the cell has changed; much data is compared in the background.

        Args:
            cell: What ``before`` returned.
            end_checkpoint: Checkpoint of the turn in which the cell's turn continues, if a mark was
                set while the cell was running.
        """
        self.settle()
        cell = replace(cell, end_checkpoint=end_checkpoint or cell.checkpoint)
        after = Walk(self._namespace, self._is_ours, self._budget())
        with without_collections():
            record = compare(cell.checkpoint, cell.walk, cell.names, self._namespace.own(), after)
        self._unsettled = record, cell
        if record.unread:
            self._queue.add(self.settle)
        else:
            self.settle()

    def settle(self) -> None:
        """Complete the record of the last cell; call it before any code changes variables."""
        if self._unsettled is None:
            return
        with self._settling:
            if self._unsettled is None:
                return
            record, cell = self._unsettled
            try:
                with without_collections():
                    settle(record, cell.walk, cell.names)
            except Exception:
                self._unsettled = None
                raise
            self._unsettled = None  # only now, because an interrupt may come before
            if record:
                self._add(record)
                self._store(record, cell.walk, cell.names)
                if cell.end_checkpoint != cell.checkpoint:
                    self._add(_changed_across_mark(record, cell))
                self.on_changed(cell.end_checkpoint, record.names)

    def mark(self, checkpoint: int) -> None:
        """Keep all variables."""
        self.settle()
        walk, names = self._walk(EVERYTHING), self._namespace.own()
        bindings = {name: Binding(value, lambda: None) for name, value in names.items()}
        changes = {
            key: Change(strong_reference(state.thing), state.parts, state.values, ())
            for key, state in walk.states.items()
            if state.parts
        }
        size = sum(state.size() for state in walk.states.values())
        reached = walk.names_of(changes)
        record = Record(
            checkpoint,
            bindings,
            changes,
            reached,
            reasons=reasons(walk),
            is_exact=True,
            size=size,
        )
        self._add(record)
        self._store(record, walk, names)

    def preview(
        self, checkpoint: int, *, everything: bool = False, as_person: bool = True
    ) -> list[VariableChange]:
        """Return what ``rewind`` would do now, by name."""
        return list(self._plan(checkpoint, everything, as_person)[0].rows.values())

    def rewind(
        self,
        checkpoint: int,
        new_checkpoint: int,
        *,
        everything: bool = False,
        as_person: bool = True,
    ) -> list[VariableChange]:
        """Restore the variables as they were at a checkpoint.

        Args:
            checkpoint: Number of the checkpoint.
            new_checkpoint: Number of the rewind's own checkpoint, which undoes it.
            everything: Also overwrite what others changed since.
            as_person: Whether a person asks. Otherwise, what others changed stays in any case.

        Returns:
            The outcome for each variable.
        """
        plan, stored = self._plan(checkpoint, everything, as_person)
        for file in dict.fromkeys(stored.values()):
            names = [name for name, each in stored.items() if each is file]
            try:
                plan.bindings |= load(file, self._namespace.variables, names)
            except NotKeptError as error:
                for name in names:
                    row = replace(plan.rows[name], outcome="not kept", reason=str(error))
                    plan.rows[name] = row
        record = apply(plan, self._namespace, new_checkpoint)
        if record:
            self._add(record)
        return list(plan.rows.values())

    def notes(self, checkpoint: int) -> list[str]:
        """Return the limits of a rewind to a checkpoint, each a sentence."""
        notes = []
        if checkpoint <= self._dropped:
            notes.append("Older states of variables exceeded the memory for them.")
        if not has_cloudpickle():
            notes.append(NO_CLOUDPICKLE)
        return notes

    def close(self) -> None:
        """Wait shortly for variables that are being stored."""
        self.settle()
        self._queue.wait(CLOSE_SECONDS)
        self._queue.stop()

    def _plan(
        self, checkpoint: int, everything: bool, as_person: bool
    ) -> tuple[VariablePlan, dict[str, StoredRecord]]:
        """Return the plan, and the stored records of variables that are in no memory."""
        self.settle()
        everything = everything and as_person
        records = [
            record
            for record in self._records
            if record.checkpoint >= checkpoint
            and (record.replaces is None or record.replaces < checkpoint)
            and (as_person or not record.is_exact)
        ]
        plan = plan_rewind(records, self._namespace, everything=everything)
        stored: dict[str, StoredRecord] = {}
        current = self._namespace.own()
        for each in self._files.records():
            is_of_restart = each.process != self._process and each.notebook == self._notebook
            if each.checkpoint < checkpoint or not is_of_restart or self._is_alive(each.process):
                continue
            for name, (type_name, size) in each.variables.items():
                is_free = plan.bindings.get(name, current.get(name, MISSING)) is MISSING
                if name in stored:  # an older record counts
                    continue
                if is_free or everything:
                    stored[name] = each
                    plan.rows[name] = VariableChange(name, "rebound", type_name, size, FROM_DISK)
                else:
                    row = VariableChange(name, "yours", type_name, size, MADE_SINCE)
                    plan.rows.setdefault(name, row)
            for name, reason in each.reasons.items():
                plan.rows.setdefault(name, VariableChange(name, "not kept", reason=reason))
        plan.rows = dict(sorted(plan.rows.items()))
        return plan, stored

    def _store(self, record: Record, walk: Walk, names: Mapping[str, Any]) -> None:
        """Store what the variables of a record were before it."""
        old = {name for name, each in record.bindings.items() if each.before is not MISSING}
        changed = {key for key, change in record.changes.items() if change.before is not None}
        old |= {name for name, keys in record.reached.items() if keys & changed and name in names}
        state = [name for name in sorted(old) if walk.roots.get(name) in walk.states]
        unkept = dict.fromkeys(old, "its content is unknown") | record.reasons
        stored = StoredRecord(
            record.checkpoint,
            self._process,
            {name: (type(names[name]).__name__, size_of(names[name])) for name in state},
            {name: reason for name, reason in unkept.items() if name not in state},
            self._notebook,
        )
        if (state or stored.reasons) and has_cloudpickle():
            name = f"{time.time_ns():020}-{record.checkpoint}"
            self._queue.add(
                functools.partial(self._files.write, name, stored, walk, self.disk_bytes)
            )

    def _walk(self, reach: Reach) -> Walk:
        walk = Walk(self._namespace, self._is_ours, self._budget())
        with without_collections():
            walk.follow(reach)
        return walk

    def _budget(self) -> Budget:
        return Budget(self.memory_bytes)

    def _add(self, record: Record) -> None:
        """Add a record, and drop the oldest ones above the budget."""
        self._records.append(record)
        self._size += record.size + RECORD_BYTES
        while len(self._records) > 1 and self._size > self.memory_bytes:
            oldest = self._records.popleft()
            self._dropped = oldest.checkpoint
            self._size -= oldest.size + RECORD_BYTES

    def _find_ours(self, module: str) -> bool:
        """Return whether a module is the notebook or in the workspace."""
        if module == "__main__":
            return True
        path = getattr(sys.modules.get(module), "__file__", None)
        if not isinstance(path, str) or "site-packages" in path:
            return False
        is_library = os.path.realpath(path).startswith(os.path.join(sys.prefix, ""))
        is_inside = os.path.realpath(path).startswith(os.path.join(self._workspace, ""))
        return is_inside and not is_library


def _changed_across_mark(record: Record, cell: PendingCell) -> Record:
    """Return the record for a rewind to a mark that was set while the cell was running.

    Nobody knows what the variables were at the mark, so they are only named.
    """
    reasons = dict.fromkeys(record.names, RAN_MEANWHILE)
    return Record(cell.end_checkpoint, reasons=reasons, replaces=record.checkpoint)
