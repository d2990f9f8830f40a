"""Inspection of the notebook's variables on a thread of its own, also while a cell runs.

It leaves no trace in execution counts, in the history or in ``_``.
"""

from __future__ import annotations

import asyncio
import ctypes
import inspect
import reprlib
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from fnmatch import fnmatchcase
from functools import partial
from types import ModuleType
from typing import Any, TypeVar

from IPython.core.interactiveshell import InteractiveShell

from oh_jupyter.background import start_thread
from oh_jupyter.checkpoints.variables.libraries import size_of
from oh_jupyter.checkpoints.variables.reach import Namespace
from oh_jupyter.errors import InspectionError
from oh_jupyter.kernel.cells.expressions import evaluate_reading
from oh_jupyter.operations.kernel import VariableRow, VariableView
from oh_jupyter.text import shorten

T = TypeVar("T")

LIMIT_SECONDS = 10.0
"""Time that an inspection may take."""

ROWS_SECONDS = 2.0
"""Time after which the rows so far are taken, and a variable without one is skipped."""

MAX_VARIABLES = 100
"""Maximum number of variables in a list."""

HEAD_CHARS = 60
"""Maximum length of a value in a list."""

DETAIL_CHARS = 4_000
"""Maximum length of the description of one value."""

HEAD_ROWS, MAX_COLUMNS = 5, 12
"""Rows and columns of a table in its description."""

_IMAGE_TYPES = ("image/png", "image/jpeg")


class Inspector:
    """Describes the variables of a shell."""

    def __init__(self, shell: InteractiveShell) -> None:
        """Make an inspector of the shell's namespace."""
        self._shell = shell

    def _variables(self) -> dict[str, Any]:
        hidden: Any = self._shell.user_ns_hidden
        return Namespace(self._shell.user_ns, hidden).own()

    async def overview(self, pattern: str) -> VariableView:
        """Return a row for each variable whose name matches a pattern such as ``df*``."""
        own = self._variables()
        names = sorted(name for name in own if fnmatchcase(name, pattern or "*"))
        modules = [name for name in names if issubclass(type(own[name]), ModuleType)]
        values = [name for name in names if name not in modules]
        return VariableView(
            variables=await _rows([(name, own[name]) for name in values[:MAX_VARIABLES]]),
            omitted=len(values[MAX_VARIABLES:]),
            modules=modules,
        )

    def value(self, name: str) -> object:
        """Return a variable; raise InspectionError if there is none of that name."""
        if name not in self._shell.user_ns:
            similar = [other for other in self._variables() if name.lower() in other.lower()]
            hint = f" Similar: {', '.join(sorted(similar)[:10])}." if similar else ""
            raise InspectionError(
                f"There is no variable {name!r}.{hint} The tool variables lists all of them"
            )
        return self._shell.user_ns[name]

    async def detail(self, name: str) -> tuple[str, list[str]]:
        """Describe one variable; return the text, and images as data URLs.

        Raises:
            InspectionError: There is no such variable, or it cannot be described in time.
        """
        value = self.value(name)
        return await in_time(lambda: self._shown(value, f"{name}: "))

    async def evaluate(self, expression: str) -> tuple[str, list[str]]:
        """Evaluate an expression that only reads; return its value like ``detail``.

        Raises:
            InspectionError: It is not an expression, it could change something, it raises an
                exception, or it takes too long.
        """
        variables = self._shell.user_ns
        return await in_time(lambda: self._shown(evaluate_reading(expression, variables), ""))

    def _shown(self, value: object, prefix: str) -> tuple[str, list[str]]:
        text = described(value)
        return f"{prefix}{text}" if prefix else text, self._images(value)

    def _images(self, value: object) -> list[str]:
        """Return the picture of a figure or an image."""
        formatter: Any = self._shell.display_formatter
        if formatter is None or not _is_picture(value):
            return []
        data, _ = formatter.format(value, include=_IMAGE_TYPES)
        return [_data_url(kind, data[kind]) for kind in _IMAGE_TYPES if kind in data][:1]


async def in_time(function: Callable[[], T], seconds: float = LIMIT_SECONDS) -> T:
    """Call a function on a thread; stop it and raise InspectionError after the time limit.

    Its own exceptions are raised as InspectionError, since any ``__repr__`` may fail.
    """
    loop = asyncio.get_running_loop()
    result: asyncio.Future[T] = loop.create_future()

    def settle(set_result: Callable[[Any], None], value: object) -> None:
        def apply() -> None:
            if not result.done():
                set_result(value)

        loop.call_soon_threadsafe(apply)

    def run() -> None:
        try:
            settle(result.set_result, function())
        except InspectionError as error:
            settle(result.set_exception, error)
        except BaseException as error:
            reason = f"{type(error).__name__}: {_clipped(str(error))}"
            settle(result.set_exception, InspectionError(reason))

    thread = start_thread(run, "oh-kernel-inspect")
    try:
        async with asyncio.timeout(seconds):
            return await result
    except (TimeoutError, asyncio.CancelledError) as error:
        # Python code ends at its next instruction; a call into C cannot be stopped.
        ctypes.pythonapi.PyThreadState_SetAsyncExc(
            ctypes.c_ulong(thread.ident or 0), ctypes.py_object(TimeoutError)
        )
        if isinstance(error, asyncio.CancelledError):
            raise
        raise InspectionError(
            f"It took longer than {seconds:g} s and was stopped. Run it as a cell"
        ) from None


def described(value: object) -> str:
    """Describe a value in bounded length: type, shape, content, and statistics of tables."""
    kind = type_name(value)
    if is_table(value):
        return _clipped("\n".join([f"{kind}{_shape_text(value)}", *_table_lines(value)]))
    if callable(value) and hasattr(value, "__name__"):
        return _clipped(f"{kind} {_signature(value)}\n{inspect.getdoc(value) or ''}".rstrip())
    head = f"{kind}{_shape_text(value)}"
    if dtype := getattr(value, "dtype", None):
        head += f", {dtype}"
    return _clipped(f"{head}\n{_bounded_repr(value, DETAIL_CHARS)}")


def type_name(value: object) -> str:
    """Return the name of a value's type."""
    return type(value).__name__


async def _rows(variables: list[tuple[str, object]]) -> list[VariableRow]:
    """Describe variables; one that takes too long gets a row that says so."""
    rows: list[VariableRow] = []
    deadline = time.monotonic() + LIMIT_SECONDS
    while len(rows) < len(variables) and time.monotonic() < deadline:
        part, is_over = list[VariableRow](), threading.Event()
        with suppress(InspectionError):
            await in_time(partial(_fill, part, variables[len(rows) :], is_over), ROWS_SECONDS)
        is_over.set()
        rows += part.copy() or [_row_without(*variables[len(rows)], "it takes too long")]
    rest = variables[len(rows) :]
    return rows + [_row_without(*each, "others take too long") for each in rest]


def _fill(
    rows: list[VariableRow], variables: list[tuple[str, object]], is_over: threading.Event
) -> None:
    for name, value in variables:
        row = _row(name, value)
        if is_over.is_set():  # it was too late
            return
        rows.append(row)


def _row_without(name: str, value: object, why: str) -> VariableRow:
    head = f"<cannot be shown: {why}>"
    return VariableRow(name=name, type=type_name(value), shape="", bytes=0, head=head)


def _row(name: str, value: object) -> VariableRow:
    try:
        return VariableRow(
            name=name,
            type=type_name(value),
            shape=_shape_text(value).strip(),
            bytes=_size(value),
            head=_head(value),
        )
    except BaseException as error:  # of any class
        return _row_without(name, value, type(error).__name__)


def _size(value: object) -> int:
    nbytes = getattr(value, "nbytes", None)
    return nbytes if isinstance(nbytes, int) else int(size_of(value))


def _shape_text(value: object) -> str:
    """Return the shape of an array or table, or the length of a collection, with a space."""
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple):
        return f" {' x '.join(map(str, shape))}" if shape else ""
    if isinstance(value, (str, bytes, bytearray, list, tuple, set, frozenset, Mapping)):
        return f" of {len(value)}"
    return ""


def _head(value: object) -> str:
    if is_table(value):
        columns = getattr(value, "columns", None)
        return _head_text(
            ", ".join(map(str, columns)) if columns is not None else str(value.dtype)  # type: ignore[attr-defined]
        )
    if dtype := getattr(value, "dtype", None):
        return str(dtype)
    if callable(value) and hasattr(value, "__name__"):
        return _head_text(_signature(value))
    return _head_text(_bounded_repr(value, HEAD_CHARS))


def _bounded_repr(value: object, chars: int) -> str:
    """Return a representation without building that of a whole large collection."""
    shortened = reprlib.Repr()
    shortened.maxstring = shortened.maxother = shortened.maxlong = chars
    per_item = max(6, chars // 20)
    shortened.maxlist = shortened.maxtuple = shortened.maxset = shortened.maxdict = per_item
    shortened.maxfrozenset = shortened.maxdeque = shortened.maxarray = per_item
    text = shortened.repr(value) if type(value).__repr__ is not object.__repr__ else repr(value)
    return " ".join(text.split()) if chars == HEAD_CHARS else text


def _signature(value: Any) -> str:
    try:
        return f"{value.__name__}{inspect.signature(value)}"
    except (TypeError, ValueError):
        return str(value.__name__)


def is_table(value: object) -> bool:
    """Return whether a value is a data frame or a series of a known library."""
    library = type(value).__module__.partition(".")[0]
    return library in ("pandas", "polars") and hasattr(value, "describe")


def _table_lines(value: Any) -> list[str]:
    lines = []
    types, columns = getattr(value, "dtypes", None), getattr(value, "columns", None)
    if columns is not None and types is not None:
        pairs = zip(columns, list(types), strict=True)
        lines.append("columns: " + ", ".join(f"{name} ({kind})" for name, kind in pairs))
    for part in (value.head(HEAD_ROWS), value.describe()):
        # pandas shortens what it prints by the width of a terminal.
        is_wide = type(part).__module__.startswith("pandas") and part.ndim == 2
        lines.append(part.to_string(max_cols=MAX_COLUMNS) if is_wide else str(part))
    return lines


def _is_picture(value: object) -> bool:
    """Return whether a value displays as a picture: its display must not print or plot."""
    library = type(value).__module__.partition(".")[0]
    is_figure = library == "matplotlib" and type(value).__name__ == "Figure"
    return is_figure or library == "PIL" or hasattr(value, "_repr_png_")


def _data_url(kind: str, data: object) -> str:
    from base64 import b64encode

    encoded = b64encode(data).decode() if isinstance(data, bytes) else "".join(str(data).split())
    return f"data:{kind};base64,{encoded}"


def _clipped(text: str) -> str:
    marker = "\n[... {omitted} characters omitted ...]\n"
    return shorten(text, DETAIL_CHARS, keep="ends", marker=marker)


def _head_text(text: str) -> str:
    return text if len(text) <= HEAD_CHARS else shorten(text, HEAD_CHARS - 1)
