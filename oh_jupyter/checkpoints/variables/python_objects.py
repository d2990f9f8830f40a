"""Contents of Python's own objects: containers, instances, functions, classes, C types."""

from __future__ import annotations

import array
import functools
import io
import itertools
import operator
import pickle
import types
import warnings
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from oh_jupyter.checkpoints.variables.limits import CALL_SECONDS, NotKeptError, time_limit
from oh_jupyter.checkpoints.variables.part import (
    ATOMS,
    ATTRIBUTES,
    MISSING,
    Part,
    same_items,
    same_pairs,
    unchanging,
)
from oh_jupyter.import_guard import importing_from_workspace

_WORDS = {
    types.GeneratorType: "a generator",
    types.CoroutineType: "a coroutine",
    types.AsyncGeneratorType: "an asynchronous generator",
    types.FrameType: "a frame",
    types.TracebackType: "a traceback",
}


def _same_members(one: Iterable[Any], other: Iterable[Any]) -> bool:
    return set(map(id, one)) == set(map(id, other))


def _pairs(value: Mapping[Any, Any]) -> Iterable[Any]:
    return itertools.chain(value, value.values())


def _write_dict(thing: Any, value: dict[Any, Any]) -> None:
    dict.clear(thing)
    dict.update(thing, value)


def _write_ordered(thing: Any, value: dict[Any, Any]) -> None:
    OrderedDict.clear(thing)
    for key, item in value.items():
        OrderedDict.__setitem__(thing, key, item)


def _write_set(thing: Any, value: set[Any]) -> None:
    set.clear(thing)
    set.update(thing, value)


def _write_deque(thing: Any, value: list[Any]) -> None:
    deque.clear(thing)
    deque.extend(thing, value)


def _write_array(thing: Any, value: array.array[Any]) -> None:
    array.array.__setitem__(thing, slice(None), value)


LIST = Part(list.copy, lambda it, value: list.__setitem__(it, slice(None), value), same_items)
DICT = Part(dict.copy, _write_dict, same_pairs, _pairs)
ORDERED = Part(lambda it: dict(OrderedDict.items(it)), _write_ordered, same_pairs, _pairs)
SET = Part(lambda it: set(set.__iter__(it)), _write_set, _same_members)
DEQUE = Part(lambda it: list(deque.__iter__(it)), _write_deque, same_items)
BYTES = Part(
    lambda it: bytes(memoryview(it)),
    lambda it, value: bytearray.__setitem__(it, slice(None), value),
    operator.eq,
    children=lambda value: (),
)
ARRAY = Part(
    lambda it: array.array(it.typecode, it), _write_array, operator.eq, children=lambda value: ()
)


TUPLE = unchanging(lambda it: tuple(it.__iter__()))

STORAGE: dict[type, Part] = {
    OrderedDict: ORDERED,
    dict: DICT,
    list: LIST,
    set: SET,
    deque: DEQUE,
    bytearray: BYTES,
    array.array: ARRAY,
    tuple: TUPLE,
    frozenset: TUPLE,
}


def _members(cls: type) -> dict[str, Any]:
    """Return the slots that a class itself defines."""
    if "__slots__" not in vars(cls) and cls is not defaultdict:
        return {}
    members = vars(cls).items()
    return {name: each for name, each in members if type(each) is types.MemberDescriptorType}


def _slots(cls: type) -> dict[str, Any]:
    slots: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        slots |= _members(base)
    return slots


def _read_slots(thing: Any) -> dict[str, Any]:
    values = {}
    for name, member in _slots(type(thing)).items():
        try:
            values[name] = member.__get__(thing)
        except AttributeError:
            values[name] = MISSING
    return values


def _write_slots(thing: Any, value: dict[str, Any]) -> None:
    current = _read_slots(thing)
    for name, member in _slots(type(thing)).items():
        if value[name] is not MISSING:
            member.__set__(thing, value[name])
        elif current[name] is not MISSING:
            member.__delete__(thing)


SLOTS = Part(_read_slots, _write_slots, same_pairs, lambda value: value.values())


def _read_cell(cell: Any) -> tuple[Any, ...]:
    try:
        return (cell.cell_contents,)
    except ValueError:  # empty
        return ()


def _write_cell(cell: Any, value: tuple[Any, ...]) -> None:
    if value:
        cell.cell_contents = value[0]
    elif _read_cell(cell):
        del cell.cell_contents


CELL = Part(_read_cell, _write_cell, same_items)

_FUNCTION_FIELDS = ("__code__", "__defaults__", "__kwdefaults__", "__closure__")


def _read_function(function: Any) -> tuple[Any, ...]:
    values = [getattr(function, name) for name in _FUNCTION_FIELDS]
    return (*values, vars(function).copy())


def _write_function(function: Any, value: tuple[Any, ...]) -> None:
    for name, item in zip(_FUNCTION_FIELDS[:3], value, strict=False):
        if getattr(function, name) is not item:
            setattr(function, name, item)
    _write_dict(vars(function), value[-1])


FUNCTION = Part(
    _read_function,
    _write_function,
    lambda one, other: same_items(one[:-1], other[:-1]) and same_pairs(one[-1], other[-1]),
    lambda value: (*value[:-1], *value[-1].values()),
)


def _read_class(cls: Any) -> dict[str, Any]:
    return {
        name: value
        for name, value in vars(cls).items()
        if type(value) is not types.GetSetDescriptorType and name != "_abc_impl"
    }


def _write_class(cls: Any, value: dict[str, Any]) -> None:
    current = _read_class(cls)
    for name in current.keys() - value.keys():
        type.__delattr__(cls, name)
    for name, item in value.items():
        if current.get(name, MISSING) is not item:
            type.__setattr__(cls, name, item)


CLASS = Part(_read_class, _write_class, same_pairs, lambda value: value.values(), stored="by value")


def _write_module(module: Any, value: dict[str, Any]) -> None:
    current = vars(module)
    for name in current.keys() - value.keys():
        del current[name]
    current.update(value)


MODULE = Part(
    lambda it: dict(vars(it)),
    _write_module,
    same_pairs,
    lambda value: value.values(),
    stored="by value",
)

REFERENCES: dict[type, Callable[[Any], Iterable[Any]]] = {
    types.MethodType: lambda it: (it.__self__, it.__func__),
    types.BuiltinMethodType: lambda it: (it.__self__,),
    types.MethodWrapperType: lambda it: (it.__self__,),
    functools.partial: lambda it: (it.func, it.args, it.keywords),
    property: lambda it: (it.fget, it.fset, it.fdel),
    staticmethod: lambda it: (it.__func__,),
    classmethod: lambda it: (it.__func__,),
    types.MappingProxyType: lambda it: tuple(it.values()),
}
"""Immutable objects, and what they refer to."""


def _read_c(thing: Any) -> tuple[Any, bytes | None, bytes]:
    """Return what makes such an object, its pickled state, and a pickled copy of what makes it.

    The copy exists where there is no state, and the object hands out new arguments each time, which
    hold its data.
    """
    with time_limit(CALL_SECONDS, "reading its state"):
        try:
            reduced = _reduced(thing)
            if isinstance(reduced, str):
                return (), None, b""
            function, arguments, state, *items = (*reduced, None)[:5]
            if any(each is not None for each in items[:2]):
                raise NotKeptError("its items are out of reach")
            make = (function, *arguments)
            if state is not None and hasattr(thing, "__setstate__"):
                return make, pickle.dumps(state, 5), b""
            if all(type(each) in ATOMS for each in arguments):
                return arguments, None, pickle.dumps((function, arguments), 5)
            if _same_arguments(arguments, _reduced(thing)[1]):
                return make, None, b""
            return (), None, pickle.dumps((function, arguments), 5)
        except NotKeptError:
            raise
        except Exception as error:  # types may fail in any way
            raise NotKeptError(_first_line(error)) from None


def _reduced(thing: Any) -> Any:
    """Return the parts from which pickle would remake an object."""
    with warnings.catch_warnings():
        # Python 3.12 and 3.13 warn of the end of this for the objects of itertools.
        warnings.simplefilter("ignore", DeprecationWarning)
        return thing.__reduce_ex__(4)


def _same_arguments(one: Sequence[Any], other: Sequence[Any]) -> bool:
    return len(one) == len(other) and all(
        a is b or (type(a) in ATOMS and type(a) is type(b) and a == b)
        for a, b in zip(one, other, strict=True)
    )


def _unpickled(data: bytes) -> Any:
    with importing_from_workspace():  # of the modules that define the person's classes
        return pickle.loads(data)


def _write_c(thing: Any, value: tuple[Any, bytes | None, bytes]) -> None:
    if value[1] is not None:
        thing.__setstate__(_unpickled(value[1]))


def _same_c(one: tuple[Any, bytes | None, bytes], other: tuple[Any, bytes | None, bytes]) -> bool:
    if one[1:] != other[1:]:
        return False
    return one[1] is not None or bool(one[2]) or _same_arguments(one[0], other[0])


def _remake_c(thing: Any, value: tuple[Any, bytes | None, bytes]) -> Any:
    function, arguments = _unpickled(value[2]) if value[2] else (value[0][0], value[0][1:])
    return function(*arguments)


C_STATE = Part(
    _read_c,
    _write_c,
    _same_c,
    lambda value: value[0],
    size=lambda value: len(value[1] or b"") + len(value[2]),
    fits=lambda it, value: value[1] is not None or _same_c(_read_c(it), value),
    remake=_remake_c,
)
"""Part of an object whose data is out of Python's reach, such as a random generator."""


def _first_line(error: Exception) -> str:
    text = (str(error).strip().splitlines() or [""])[0]
    return text[:200] or type(error).__name__


@functools.lru_cache(maxsize=1024)
def class_parts(cls: type) -> tuple[Part, ...]:
    """Return the parts of a class's objects; raise NotKeptError if they cannot be kept."""
    if cls in REFERENCES:
        return (unchanging(REFERENCES[cls]),)
    for kind, word in _WORDS.items():
        if issubclass(cls, kind):
            raise NotKeptError(f"{word} cannot be copied")
    if issubclass(cls, io.IOBase) and cls not in (io.StringIO, io.BytesIO):
        raise NotKeptError("an open file cannot be copied")
    base = next((each for each in cls.__mro__ if each in STORAGE), object)
    parts = [STORAGE[base]] if base is not object else []
    if cls.__dictoffset__:
        parts.append(ATTRIBUTES)
    if _slots(cls):
        parts.append(SLOTS)
    if _has_hidden_state(cls, defaultdict if issubclass(cls, defaultdict) else base):
        parts.append(C_STATE)
    return tuple(parts)


_MANAGED_DICT = 1 << 4
_POINTER_BYTES = tuple.__itemsize__


def _has_hidden_state(cls: type, base: type) -> bool:
    """Return whether objects of a class have data beside items, attributes and slots.

    CPython's pickling finds that in the same way, by the size of the objects.
    """
    has_dict = bool(cls.__dictoffset__) and not cls.__flags__ & _MANAGED_DICT
    has_weak = cls.__weakrefoffset__ > 0 and not base.__weakrefoffset__
    slots = sum(len(_members(each)) for each in cls.__mro__)  # names may occur twice
    explained = base.__basicsize__ + _POINTER_BYTES * (has_dict + has_weak + slots)
    return cls.__basicsize__ > explained
