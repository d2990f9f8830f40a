"""Variables before agents' cells on disk, so that they survive the kernel.

Each record is one file that only its owner can read: a line of JSON about the variables, then one
pickle. In the pickle, each object has the content that was read before the cell, whatever the cell
has made of it meanwhile.
"""

from __future__ import annotations

import array
import contextlib
import enum
import functools
import importlib.util
import io
import json
import os
import pickle
import types
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from oh_jupyter.checkpoints.variables.limits import NotKeptError
from oh_jupyter.checkpoints.variables.python_objects import C_STATE, CLASS
from oh_jupyter.checkpoints.variables.state import parts_of
from oh_jupyter.checkpoints.variables.walk import State, Walk
from oh_jupyter.import_guard import importing_from_workspace

NO_CLOUDPICKLE = (
    "Variables do not survive a restart of the kernel: cloudpickle is missing; "
    "pip install 'oh_jupyter[variables]' installs it."
)


_MEASURED_SHARE = 1 / 16
_FREED_SHARE = 1 / 10


@dataclass(frozen=True, eq=False)
class StoredRecord:
    """A description of the variables before one cell, which are in a file.

    Attributes:
        checkpoint: Number of the turn's checkpoint.
        process: Identifies the kernel's process.
        variables: Type and size of each variable in the file, by name.
        reasons: Why other variables are not in it, by name.
        notebook: Path of the notebook, "" for none.
        path: The file.
    """

    checkpoint: int
    process: str
    variables: Mapping[str, tuple[str, int]]
    reasons: Mapping[str, str]
    notebook: str = ""
    path: Path = Path()


class VariableFiles:
    """The stored records of a workspace."""

    def __init__(self, directory: Path) -> None:
        """Name the directory, which is made when first needed."""
        self._directory = directory
        self._budget_bytes = 0.0
        self._room = 0.0  # bytes to write until all files are looked at again

    def records(self) -> list[StoredRecord]:
        """Return the readable records, oldest first."""
        records = []
        for path in sorted(self._directory.glob("*.pickle")):
            with contextlib.suppress(OSError, ValueError, TypeError), open(path, "rb") as file:
                records.append(StoredRecord(**json.loads(file.readline()), path=path))
        return records

    def write(self, name: str, record: StoredRecord, walk: Walk, budget_bytes: float) -> None:
        """Write variables as a walk read them, and remove the oldest files above the budget.

        Raises:
            OSError: The directory is not writable.
        """
        self._directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        fresh = self._directory / f"{name}.new"
        try:
            with open(fresh, "w+b", opener=_open_private) as file:
                _write(file, record, walk, budget_bytes)
                size = file.tell()
            fresh.replace(self._directory / f"{name}.pickle")
        finally:
            fresh.unlink(missing_ok=True)
        self._room -= size
        if self._room < 0 or budget_bytes != self._budget_bytes:
            self._budget_bytes = budget_bytes
            # Not all at once: other kernels write into the same directory.
            self._room = min(self._prune(), budget_bytes * _MEASURED_SHARE)

    def _prune(self) -> float:
        """Remove the oldest files if all exceed the budget; return the room that is left."""
        sizes = {}
        for path in sorted(self._directory.glob("*.pickle")):
            with contextlib.suppress(OSError):
                sizes[path] = path.stat().st_size
        room = self._budget_bytes - sum(sizes.values())
        if room >= 0:
            return room
        for number, (path, size) in enumerate(sizes.items(), 1):
            is_newest = number == len(sizes)
            if room >= (0 if is_newest else self._budget_bytes * _FREED_SHARE):
                break
            with contextlib.suppress(OSError):
                path.unlink()
                room += size
        return room


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _write(file: Any, record: StoredRecord, walk: Walk, budget_bytes: float) -> None:
    """Write all variables that can be pickled."""
    names, reasons = list(record.variables), dict(record.reasons)
    try:
        _dump(file, record, walk, names, reasons, budget_bytes)
        return
    except Exception:  # types may fail in any way
        pass
    for name in list(names):
        try:
            _pickle(_Limited(None, budget_bytes), walk, [name])
        except Exception as error:  # types may fail in any way
            names.remove(name)
            reasons[name] = f"it cannot be stored: {error}"
    try:
        _dump(file, record, walk, names, reasons, budget_bytes)
    except Exception as error:  # they are too large together
        reasons |= dict.fromkeys(names, f"it cannot be stored: {error}")
        _dump(file, record, walk, [], reasons, budget_bytes)


def _dump(
    file: Any,
    record: StoredRecord,
    walk: Walk,
    names: list[str],
    reasons: dict[str, str],
    budget_bytes: float,
) -> None:
    file.seek(0)
    file.truncate()
    fields = asdict(record)
    del fields["path"]
    fields |= {"variables": {name: record.variables[name] for name in names}, "reasons": reasons}
    file.write(json.dumps(fields).encode() + b"\n")
    _pickle(_Limited(file, budget_bytes), walk, names)


class _Limited(io.RawIOBase):
    """A file, or none, that rejects data above a budget."""

    def __init__(self, file: Any, budget_bytes: float) -> None:
        self._file = file
        self._left = budget_bytes

    def write(self, data: Any) -> int:
        size = memoryview(data).nbytes
        self._left -= size
        if self._left < 0:
            raise NotKeptError("the variables exceed the disk space for them")
        if self._file is not None:
            self._file.write(data)
        return size


class _Globals:
    """Stands for the notebook's variables in a pickle."""


class _Content:
    """Stands for an object in a pickle; it returns as that object with its kept content."""

    def __init__(self, state: State) -> None:
        self._state = state

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        state, cls = self._state, type(self._state.thing)
        values = state.values
        make: Callable[..., Any]
        arguments: tuple[Any, ...]
        if state.parts[0].stored == "whole":
            make, arguments = _as_type, (cls, values[0])
            values = (None, *values[1:])
        elif C_STATE in state.parts:
            position = state.parts.index(C_STATE)
            constructor, pickled, copy = values[position]
            make, arguments = (_load_call, (copy,)) if copy else (_call, tuple(constructor))
            values = (*values[:position], (None, pickled, b""), *values[position + 1 :])
        elif cls is types.FunctionType:
            function = state.thing
            make = types.FunctionType
            code, closure = values[0][0], values[0][3]
            arguments = (code, _Globals(), function.__name__, None, closure)
        elif cls is types.CellType:
            make, arguments = types.CellType, ()
        elif issubclass(cls, deque):
            make, arguments = cls, ((), state.thing.maxlen)
        elif issubclass(cls, array.array):
            make, arguments = cls, (state.thing.typecode,)
        else:
            make, arguments = _new, (cls,)
        return make, arguments, values, None, None, _fill


def _new(cls: type) -> Any:
    base: Any = next(each for each in cls.__mro__ if not each.__flags__ & _DEFINED_IN_PYTHON)
    return base.__new__(cls)


_DEFINED_IN_PYTHON = 1 << 9


def _as_type(cls: type, value: Any) -> Any:
    return value if type(value) is cls else value.view(cls)


def _call(function: Callable[..., Any], *arguments: Any) -> Any:
    return function(*arguments)


def _load_call(copy: bytes) -> Any:
    with importing_from_workspace():
        function, arguments = pickle.loads(copy)
    return function(*arguments)


def _fill(thing: Any, values: tuple[Any, ...]) -> None:
    for part, value in zip(parts_of(thing, lambda name: False), values, strict=True):
        if part.stored == "content":
            part.write(thing, value)


def _has_content(state: State, walk: Walk) -> bool:
    """Return whether an object is stored by its kept content instead of by its present state."""
    if type(state.thing) is types.FunctionType:
        return state.thing.__globals__ is walk.namespace.variables
    if C_STATE in state.parts:
        value = state.values[state.parts.index(C_STATE)]
        return bool(value[1] is not None or value[2])
    is_by_value = any(part.stored == "by value" for part in state.parts)
    return bool(state.parts) and not is_by_value and not isinstance(state.thing, enum.Enum)


def has_cloudpickle() -> bool:
    """Return whether records can be stored."""
    return importlib.util.find_spec("cloudpickle") is not None


@functools.cache
def _writer_class() -> Any:
    import cloudpickle

    class Writer(cloudpickle.Pickler):  # type: ignore[misc]
        """Stores objects by their kept contents."""

        def __init__(self, file: Any, contents: dict[int, _Content]) -> None:
            super().__init__(file, protocol=5)
            self._contents = contents

        def persistent_id(self, thing: Any) -> Any:
            return thing if type(thing) is _Globals else self._contents.get(id(thing))

    return Writer


def _pickle(file: Any, walk: Walk, names: Iterable[str]) -> None:
    """Pickle the objects of some variables with their kept contents, and their classes'."""
    states = walk.states.items()
    contents = {key: _Content(state) for key, state in states if _has_content(state, walk)}
    variables = {name: walk.states[walk.roots[name]].thing for name in names}
    reached = walk.names_of([key for key, state in states if state.parts == (CLASS,)])
    keys = set().union(*(reached.get(name, ()) for name in names))
    classes = [(walk.states[key].thing, walk.states[key].values[0]) for key in keys]
    _writer_class()(file, contents).dump((variables, classes))


def load(
    record: StoredRecord, variables: Mapping[str, Any], names: Iterable[str]
) -> dict[str, Any]:
    """Return variables of a record as new objects.

    Args:
        record: The record.
        variables: The variables that functions in it will use.
        names: Names of the wanted ones.

    Raises:
        NotKeptError: It cannot be loaded here.
    """
    try:
        with open(record.path, "rb") as file, importing_from_workspace():
            file.readline()
            loaded, classes = _Reader(file, variables).load()
        for cls, content in classes:
            CLASS.write(cls, content)
        return {name: loaded[name] for name in names}
    except Exception as error:  # pickles may fail in any way
        raise NotKeptError(f"it cannot be loaded: {error}") from None


class _Reader(pickle.Unpickler):
    """Loads variables, with the notebook's as the globals of its functions."""

    def __init__(self, file: Any, variables: Mapping[str, Any]) -> None:
        super().__init__(file)
        self._variables = variables

    def persistent_load(self, pid: Any) -> Any:
        return self._variables if isinstance(pid, _Globals) else pid
