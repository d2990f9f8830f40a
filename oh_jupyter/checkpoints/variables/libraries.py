"""Contents of the objects of data libraries, which are looked up, never imported.

Copy-on-write and shallow copies of the library are used where it has them.
"""

from __future__ import annotations

import functools
import sys
import warnings
from collections.abc import Iterable
from typing import Any, NamedTuple

from oh_jupyter.checkpoints.variables.limits import NotKeptError
from oh_jupyter.checkpoints.variables.part import ATTRIBUTES, Part

_CHUNK_BYTES = 1 << 22
_DIGESTED_BYTES = 1 << 16
"""Size above which only a digest of an array is held for later comparison."""


_ROW_WORDS = 1 << 13


class _Digest(NamedTuple):
    """A form of an array that can only be compared."""

    shape: tuple[int, ...]
    dtype: Any
    sums: list[int]
    rest: bytes


@functools.cache
def _weights() -> Any:
    """Return random odd numbers, so that the places of values count."""
    numpy = sys.modules["numpy"]
    return numpy.random.default_rng(29).integers(1 << 62, size=_ROW_WORDS, dtype="u8") * 2 + 1


def _digest(array: Any) -> _Digest:
    """Return a digest of an array of numbers, many times as fast as a cryptographic one."""
    numpy = sys.modules["numpy"]
    data = numpy.ascontiguousarray(array).reshape(-1).view("u1")
    words = data[: data.size // 8 * 8].view("u8")
    sums: list[int] = []
    buffer = numpy.empty(min(words.size, _ROW_WORDS * 8), "u8")  # fits into a processor's cache
    for start in range(0, words.size, _ROW_WORDS * 8):
        part = words[start : start + _ROW_WORDS * 8]
        mixed = numpy.right_shift(part, 32, out=buffer[: part.size])
        mixed ^= part  # floats often differ in the upper bits alone
        whole = part.size // _ROW_WORDS * _ROW_WORDS
        sums += (mixed[:whole].reshape(-1, _ROW_WORDS) @ _weights()).tolist()
        sums.append(int(mixed[whole:] @ _weights()[: part.size - whole]))
    return _Digest(array.shape, array.dtype, sums, data[words.nbytes :].tobytes())


def _seal_array(array: Any) -> Any:
    """Return a digest of a large array of numbers, or a copy of another one."""
    if array.dtype.hasobject or array.nbytes < _DIGESTED_BYTES:
        return array.copy(order="K")
    return _digest(array)


def _same_array(one: Any, other: Any) -> bool:
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    if isinstance(one, _Digest) or isinstance(other, _Digest):
        left, right = (e if isinstance(e, _Digest) else _digest(e) for e in (one, other))
        return left == right
    if one.dtype.hasobject:
        return all(map(lambda a, b: a is b, one.flat, other.flat))
    numpy = sys.modules["numpy"]
    left, right = (numpy.ascontiguousarray(each).reshape(-1).view("u1") for each in (one, other))
    steps = range(0, left.size, _CHUNK_BYTES)
    return all(
        bool((left[step : step + _CHUNK_BYTES] == right[step : step + _CHUNK_BYTES]).all())
        for step in steps
    )


def _write_array(thing: Any, value: Any) -> None:
    was_writeable = thing.flags.writeable
    thing.flags.writeable = True
    try:
        if thing.shape != value.shape:
            with warnings.catch_warnings():
                # Deprecated since NumPy 2.5, but a new view would not be the same object.
                warnings.simplefilter("ignore", DeprecationWarning)
                thing.shape = value.shape
        sys.modules["numpy"].ndarray.__setitem__(thing, ..., value)
    finally:
        thing.flags.writeable = was_writeable


def _array_fits(thing: Any, value: Any) -> bool:
    if thing.dtype != value.dtype or thing.size != value.size:
        return False
    if thing.flags.writeable:
        return True
    try:
        thing.flags.writeable = True
        thing.flags.writeable = False
    except ValueError:
        return False
    return True


def _elements(array: Any) -> Iterable[Any]:
    return array.ravel().tolist() if array.dtype.hasobject and array.dtype.kind == "O" else ()


ARRAY = Part(
    read=lambda it: it.view(sys.modules["numpy"].ndarray),
    write=_write_array,
    same=_same_array,
    children=_elements,
    own=lambda value: value.copy(order="K"),
    seal=_seal_array,
    size=lambda value: int(value.nbytes),
    fits=_array_fits,
    remake=lambda it, value: value.copy(order="K").view(type(it)),
    stored="whole",
)


def _has_copy_on_write() -> bool:
    pandas = sys.modules["pandas"]
    if int(pandas.__version__.partition(".")[0]) >= 3:
        return True
    return pandas.options.mode.copy_on_write is True


def _own_table(value: Any) -> Any:
    return value.copy(deep=not _has_copy_on_write())


def _table_bytes(value: Any) -> int:
    if _has_copy_on_write():
        return 0
    usage = value.memory_usage(deep=False)
    return int(usage if isinstance(usage, int) else usage.sum())


def _buffers(table: Any) -> list[Any] | None:
    """Return where the data of a table is, or None if unknown.

    While a copy-on-write copy exists, changed data is elsewhere.
    """
    places: list[Any] = []
    for block in _blocks(table):
        values = block.values
        array = getattr(values, "_ndarray", values)  # of dates and categories
        if type(array) is sys.modules["numpy"].ndarray:
            places.append((array.__array_interface__["data"][0], array.strides, array.dtype))
            places.append((array.shape, block.mgr_locs.indexer))
        else:
            return None
    return places


def _unshared_bytes(value: Any, now: Any) -> int:
    """Return the size of the data that only a kept table holds."""
    if not _has_copy_on_write():
        return _table_bytes(value)
    shared = {id(_base(block)) for block in _blocks(now)}
    return sum(
        int(block.values.nbytes) for block in _blocks(value) if id(_base(block)) not in shared
    )


def _blocks(table: Any) -> Iterable[Any]:
    blocks: Iterable[Any] = getattr(table._mgr, "blocks", ())
    return blocks


def _base(block: Any) -> Any:
    array = getattr(block.values, "_ndarray", block.values)
    return array if getattr(array, "base", None) is None else array.base


def _same_table(one: Any, other: Any) -> bool:
    if one.shape != other.shape or one.attrs != other.attrs:
        return False
    if not all(a is b or a.identical(b) for a, b in zip(one.axes, other.axes, strict=True)):
        return False
    if one.ndim == 1 and one.name is not other.name:  # a frame may have a column of this name
        return False
    places = _buffers(one) if _has_copy_on_write() else None
    if places is not None and str(places) == str(_buffers(other)):
        return True
    return bool(one.equals(other))


def _write_table(thing: Any, value: Any) -> None:
    thing.__setstate__(_own_table(value).__getstate__())
    if hasattr(thing, "_clear_item_cache"):
        thing._clear_item_cache()


def _table_children(value: Any) -> Iterable[Any]:
    """Return the elements that may change, such as lists in a column."""
    infer = sys.modules["pandas"].api.types.infer_dtype
    columns = [value] if value.ndim == 1 else _object_columns(value)
    children: list[Any] = list(value.axes)
    for column in columns:
        if column.dtype == object and infer(column, skipna=True).startswith("mixed"):
            children += column.tolist()
    return children


def _object_columns(frame: Any) -> list[Any]:
    return [frame.iloc[:, i] for i, dtype in enumerate(frame.dtypes) if dtype.kind == "O"]


TABLE = Part(
    read=lambda it: it,
    write=_write_table,
    same=_same_table,
    children=_table_children,
    own=_own_table,
    seal=_own_table,
    size=_table_bytes,
    held=_unshared_bytes,
    stored="whole",
)


def _write_names(index: Any, value: tuple[Any, ...]) -> None:
    index.names = list(value)


INDEX = Part(
    read=lambda it: tuple(it.names),
    write=_write_names,
    same=lambda one, other: one == other,
    children=lambda value: (),
    stored="by value",
)
"""Part of an index, which is immutable except for its names."""


def _same_polars(one: Any, other: Any) -> bool:
    if type(one) is not type(other) or one.shape != other.shape:
        return False
    if one.shape[1:]:
        return bool(one.schema == other.schema and one.equals(other))
    return bool((one.name, one.dtype) == (other.name, other.dtype) and one.equals(other))


def _polars_part(name: str) -> Part:
    """Return the part of a frame or a series, whose clones share immutable buffers."""
    return Part(
        read=lambda it: it,
        write=lambda it, value: setattr(it, name, getattr(value.clone(), name)),
        same=_same_polars,
        children=lambda value: (),
        own=lambda value: value.clone(),
        seal=lambda value: value.clone(),
        stored="whole",
    )


def _read_tensor(tensor: Any) -> Any:
    if tensor.device.type != "cpu":
        raise NotKeptError(f"its data is on the device {str(tensor.device)!r}")
    return tensor.detach()


def _write_tensor(thing: Any, value: Any) -> None:
    if thing.shape == value.shape and thing.dtype == value.dtype:
        thing.data.copy_(value)
    else:
        thing.data = value.clone()


TENSOR = Part(
    read=_read_tensor,
    write=_write_tensor,
    same=lambda one, other: one.dtype == other.dtype and _same_array(one.numpy(), other.numpy()),
    children=lambda value: (),
    own=lambda value: value.clone(),
    seal=lambda value: value.clone(),
    size=lambda value: int(value.numel() * value.element_size()),
    stored="whole",
)

_PARTS: dict[tuple[str, str], tuple[Part, ...]] = {
    ("numpy", "ndarray"): (ARRAY,),
    ("pandas", "DataFrame"): (TABLE,),
    ("pandas", "Series"): (TABLE,),
    ("pandas", "Index"): (INDEX,),
    ("polars", "DataFrame"): (_polars_part("_df"),),
    ("polars", "Series"): (_polars_part("_s"),),
    ("torch", "Tensor"): (TENSOR,),
}

_IMMUTABLE = {
    *(("numpy", "generic"), ("numpy", "dtype"), ("numpy", "ufunc")),
    *(("pandas", "ExtensionDtype"), ("pandas", "Timestamp"), ("pandas", "Timedelta")),
    *(("pandas", "NaTType"), ("pandas", "Period"), ("pandas", "Interval"), ("pandas", "NAType")),
}
_PACKAGES = {package for package, _ in (*_PARTS, *_IMMUTABLE)}


def library_parts(thing: Any) -> tuple[Part, ...] | None:
    """Return the parts of an object of a data library, or None for all others.

    Raises:
        NotKeptError: Its content cannot be kept.
    """
    for base in type(thing).__mro__:
        package = base.__module__.partition(".")[0]
        if package not in _PACKAGES:
            continue
        key = package, base.__name__
        if key in _IMMUTABLE:
            return ()
        if key == ("numpy", "memmap"):
            raise NotKeptError("its data is in a file")
        if key in _PARTS:
            is_extended = key == ("numpy", "ndarray") and type(thing).__dictoffset__
            return (*_PARTS[key], ATTRIBUTES) if is_extended else _PARTS[key]
    if type(thing).__module__.partition(".")[0] == "polars":
        return ()  # expressions and lazy frames are immutable
    return None


def size_of(thing: Any) -> int:
    """Return the size of an object in bytes, without the objects that it refers to."""
    try:
        parts = library_parts(thing)
        if parts and parts[0] is TABLE:
            usage = thing.memory_usage(deep=False)
            return int(usage if isinstance(usage, int) else usage.sum())
        if parts and hasattr(thing, "estimated_size"):
            return int(thing.estimated_size())
        return int(getattr(thing, "nbytes", 0) if parts else 0) or sys.getsizeof(thing)
    except Exception:  # types may fail in any way
        return 0
