"""Evaluation of expressions that cannot change anything.

Each operation is executed only if its operands are plain: numbers, texts, built-in containers of
these, arrays and tables. Their operators and reading methods are no code of the notebook and keep
no state. IPython's ``guarded_eval`` infers values for completion: it answers ``1 + 2.5`` with
``NotImplemented``, adds keys to a ``defaultdict``, consumes generators, and lets ``set.__init__``
clear a set.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import operator
import sys
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from types import (
    BuiltinFunctionType,
    ClassMethodDescriptorType,
    EllipsisType,
    FunctionType,
    GetSetDescriptorType,
    MappingProxyType,
    MemberDescriptorType,
    MethodDescriptorType,
    MethodWrapperType,
    NoneType,
    WrapperDescriptorType,
)
from typing import Any, NamedTuple, NoReturn

from oh_jupyter.errors import InspectionError
from oh_jupyter.text import shorten

MAX_DEPTH = 10
"""Maximum nesting of containers whose parts are compared or combined."""

MAX_SHOWN_CHARS = 100
"""Maximum length of a rejected part in the message."""

_SCALARS = {int, float, complex, bool, str, bytes, range, NoneType, EllipsisType}
_VIEWS = {type({}.keys()), type({}.values()), type({}.items())}
_CONTAINERS = {list, tuple, dict, set, frozenset, bytearray, deque, MappingProxyType, *_VIEWS}
_INDEXED = (dict, list, tuple, str, bytes, bytearray, range, deque)

_READ_ONLY_FORMS: dict[type, type] = {
    **{kind: kind for kind in (*_SCALARS, tuple, frozenset, MappingProxyType, *_VIEWS)},
    list: tuple,
    set: frozenset,
    dict: MappingProxyType,
    bytearray: bytes,
    deque: tuple,
}
"""Types whose public methods only read, for each type with such methods of its own."""

_LIBRARIES = ("numpy", "pandas")
_STATISTICS = (
    "all", "any", "argmax", "argmin", "copy", "corr", "count", "cov", "cumsum", "describe",
    "diff", "head", "idxmax", "idxmin", "isna", "item", "max", "mean", "median", "min", "mode",
    "nlargest", "notna", "nsmallest", "nunique", "prod", "quantile", "round", "std", "sum",
    "tail", "tolist", "unique", "value_counts", "var",
)  # fmt: skip
"""Methods of arrays and tables that compute a new value."""

_FUNCTIONS: tuple[Callable[..., Any], ...] = (
    abs, all, any, bin, bool, bytes, chr, complex, dict, divmod, float, frozenset, hash, hex,
    int, len, list, max, min, ord, pow, range, repr, round, set, slice, sorted, str, sum, tuple,
)  # fmt: skip
"""Built-in functions that only read their arguments, if these are plain."""

_BINARY: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.MatMult: operator.matmul,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda item, owner: item in owner,
    ast.NotIn: lambda item, owner: item not in owner,
}
_UNARY: dict[type[ast.AST], Callable[[Any], Any]] = {
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
    ast.Invert: operator.invert,
    ast.Not: operator.not_,
}


class _Named(NamedTuple):
    """A named tuple, for the type of its fields' descriptors."""

    field: None


_PASSIVE_DESCRIPTORS = (
    FunctionType,
    BuiltinFunctionType,
    MethodDescriptorType,
    ClassMethodDescriptorType,
    WrapperDescriptorType,
    MethodWrapperType,
    MemberDescriptorType,
    GetSetDescriptorType,
    staticmethod,
    classmethod,
    type(inspect.getattr_static(_Named, "field")),
)
"""Descriptors that run no Python code when an attribute is read."""

_MISSING = object()


def evaluate_reading(expression: str, variables: Mapping[str, Any]) -> Any:
    """Evaluate an expression on variables; raise InspectionError before anything could change."""
    try:
        body = ast.parse(expression.strip(), "<expression>", "eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise InspectionError(
            f"{expression!r} is not a Python expression: {error}. Use run_ipython for statements"
        ) from None
    return _Reader(variables).value(body)


def is_plain(value: object, depth: int = 0) -> bool:
    """Return whether operators on a value, and on all of its parts, run no code of the notebook."""
    kind = type(value)
    if kind in _SCALARS:
        return True
    if kind is slice:
        return all(is_plain(part) for part in (value.start, value.stop, value.step))  # type: ignore[attr-defined]
    if kind in _CONTAINERS:
        return depth < MAX_DEPTH and _are_plain(_parts(value), depth)
    if _is_array(value):
        return all(_is_plain_array(part, depth) for part in _arrays(value))
    return any(value is function for function in _FUNCTIONS)


def _parts(value: Any) -> list[Any]:
    """Return the elements of a container, and the keys of a mapping."""
    is_mapping = type(value) in (dict, MappingProxyType)
    return [*value.keys(), *value.values()] if is_mapping else list(value)


def _are_plain(parts: list[Any], depth: int) -> bool:
    return set(map(type, parts)) <= _SCALARS or all(is_plain(part, depth + 1) for part in parts)


def _library(value: object) -> str:
    """Return the library of arrays that defines a value's type, or ""."""
    kind = type(value)
    name = kind.__module__.partition(".")[0]
    is_its_own = getattr(sys.modules.get(kind.__module__), kind.__name__, None) is kind
    return name if name in _LIBRARIES and is_its_own else ""


def _is_array(value: object) -> bool:
    """Return whether a value is an array, a table, or an element of one, of a known library."""
    library = _library(value)
    module: Any = sys.modules.get(library)
    if library == "numpy":
        return isinstance(value, (module.ndarray, module.generic))
    return library == "pandas" and (
        value is module.NA
        or value is module.NaT
        or isinstance(
            value,
            (module.DataFrame, module.Series, module.Index, module.Timestamp, module.Timedelta),
        )
    )


def _arrays(value: Any) -> list[Any]:
    """Return the arrays and labels of which an array or a table consists."""
    if _library(value) != "pandas":
        return [value]
    pandas: Any = sys.modules["pandas"]
    if isinstance(value, pandas.DataFrame):
        columns = (value.iloc[:, number].array for number in range(value.shape[1]))
        return [value.index, value.columns, *columns]
    return [value.index, value.array] if isinstance(value, pandas.Series) else [value]


def _is_plain_array(array: Any, depth: int) -> bool:
    """Return whether an array has numbers, times or texts, or only plain objects."""
    dtype = getattr(array, "dtype", None)
    if dtype is None or not (getattr(dtype, "hasobject", False) or dtype.kind == "O"):
        return True
    flat = array.ravel() if hasattr(array, "ravel") else array
    return depth < MAX_DEPTH and _are_plain(list(flat), depth)


class _Reader:
    """Evaluator of the nodes of an expression that only reads."""

    def __init__(self, variables: Mapping[str, Any]) -> None:
        self._variables = variables

    def value(self, node: ast.expr) -> Any:
        """Return the value of a node; raise InspectionError if it could change something."""
        match node:
            case ast.Constant():
                return node.value
            case ast.Name():
                return self._name(node.id)
            case ast.Attribute():
                return self._attribute(node, self.value(node.value))
            case ast.Subscript():
                return self._item(node, self.value(node.value), self.value(node.slice))
            case ast.Call():
                return self._call(node)
            case ast.Compare() | ast.BinOp() | ast.UnaryOp() | ast.BoolOp() | ast.IfExp():
                return self._operation(node)
            case ast.ListComp() | ast.GeneratorExp():
                return [inner.value(node.elt) for inner in self._scopes(node.generators)]
            case ast.SetComp():
                return {inner.plain(node.elt, node.elt) for inner in self._scopes(node.generators)}
            case ast.DictComp():
                return {
                    inner.plain(node.key, node.key): inner.value(node.value)
                    for inner in self._scopes(node.generators)
                }
            case _:
                return self._display(node)

    def plain(self, node: ast.expr, whole: ast.AST) -> Any:
        """Return the plain value of a node; otherwise, reject the whole."""
        value = self.value(node)
        return value if is_plain(value) else _reject(whole)

    def _name(self, name: str) -> Any:
        if name in self._variables:
            return self._variables[name]
        if hasattr(builtins, name):
            return getattr(builtins, name)
        raise InspectionError(f"NameError: name {name!r} is not defined")

    def _display(self, node: ast.expr) -> Any:
        """Return a new tuple, list, set, dictionary or slice."""
        match node:
            case ast.Tuple() | ast.List():
                values = [self.value(element) for element in node.elts]
                return tuple(values) if isinstance(node, ast.Tuple) else values
            case ast.Set():
                return {self.plain(element, node) for element in node.elts}
            case ast.Dict():
                pairs = zip(node.keys, node.values, strict=True)
                return {
                    self.plain(key, node) if key else _reject(node): self.value(value)
                    for key, value in pairs
                }
            case ast.Slice():
                bounds = (node.lower, node.upper, node.step)
                return slice(*(self.value(bound) if bound else None for bound in bounds))
        _reject(node)

    def _operation(self, node: ast.expr) -> Any:
        match node:
            case ast.BinOp():
                left, right = self.plain(node.left, node), self.plain(node.right, node)
                return _BINARY[type(node.op)](left, right)
            case ast.UnaryOp():
                return _UNARY[type(node.op)](self.plain(node.operand, node))
            case ast.Compare():
                return self._comparison(node)
            case ast.BoolOp():
                decides = operator.not_ if isinstance(node.op, ast.And) else operator.truth
                for operand in node.values[:-1]:
                    if decides(value := self.plain(operand, node)):
                        return value
                return self.value(node.values[-1])
            case ast.IfExp():
                return self.value(node.body if self.plain(node.test, node) else node.orelse)
        _reject(node)

    def _comparison(self, node: ast.Compare) -> Any:
        left, result = self.value(node.left), None
        for number, (operation, operand) in enumerate(zip(node.ops, node.comparators, strict=True)):
            if number and not result:
                return result
            right = self.value(operand)
            is_identity = isinstance(operation, (ast.Is, ast.IsNot))
            if not is_identity and not (is_plain(left) and is_plain(right)):
                _reject(node)
            result = _BINARY[type(operation)](left, right)
            left = right
        return result

    def _attribute(self, node: ast.Attribute, owner: Any) -> Any:
        name, kind = node.attr, type(owner)
        static = inspect.getattr_static(owner, name, _MISSING)
        if static is _MISSING and _has_label(owner, name):
            return owner[name]
        if not isinstance(kind.__getattribute__, WrapperDescriptorType):
            _reject(node)
        if static is _MISSING:
            hooks = inspect.getattr_static(owner, "__getattr__", _MISSING)
            if hooks is _MISSING:
                raise InspectionError(f"AttributeError: {kind.__name__} has no attribute {name!r}")
            _reject(node)
        is_passive = isinstance(static, _PASSIVE_DESCRIPTORS) or not hasattr(
            type(static), "__get__"
        )
        return getattr(owner, name) if is_passive or _is_of_table(owner, static) else _reject(node)

    def _item(self, node: ast.Subscript, owner: Any, key: Any) -> Any:
        kind = type(owner)
        base: Any = next((each for each in _INDEXED if issubclass(kind, each)), None)
        if not is_plain(key):
            _reject(node)
        if base is None:
            return owner[key] if _has_plain_labels(owner) else _reject(node)
        is_read = kind.__getitem__ is base.__getitem__ and not hasattr(kind, "__missing__")
        if not is_read or (base is dict and not _are_plain(list(dict.keys(owner)), 0)):
            _reject(node)
        return owner[key]

    def _call(self, node: ast.Call) -> Any:
        positional = [self.value(argument) for argument in node.args]
        if any(keyword.arg is None for keyword in node.keywords):
            _reject(node)
        named = {str(keyword.arg): self.value(keyword.value) for keyword in node.keywords}
        arguments = [*positional, *named.values()]
        if isinstance(node.func, ast.Attribute):
            owner = self.value(node.func.value)
            if not _reads(owner, node.func.attr, arguments):
                _reject(node)
            return getattr(owner, node.func.attr)(*positional, **named)
        function = self.value(node.func)
        if len(arguments) == 1 and (
            function is type or (function is len and _has_own_length(arguments[0]))
        ):
            return function(*positional)
        if not any(function is each for each in _FUNCTIONS) or not all(map(is_plain, arguments)):
            _reject(node)
        return function(*positional, **named)

    def _scopes(self, generators: list[ast.comprehension]) -> Iterator[_Reader]:
        """Yield an evaluator for each iteration of a comprehension."""
        first, *rest = generators
        elements = self.value(first.iter)
        is_read = type(elements) in (_SCALARS | _CONTAINERS) or is_plain(elements)
        if first.is_async or not is_read:
            _reject(first.iter)
        for element in elements:
            inner = _Reader({**self._variables, **_bound(first.target, element)})
            if all(inner.plain(condition, condition) for condition in first.ifs):
                yield from inner._scopes(rest) if rest else (inner,)


def _bound(target: ast.expr, value: Any) -> dict[str, Any]:
    """Return the names that a target of a comprehension binds."""
    if isinstance(target, ast.Name):
        return {target.id: value}
    if not isinstance(target, (ast.Tuple, ast.List)) or type(value) not in (tuple, list):
        _reject(target)
    names: dict[str, Any] = {}
    for each, element in zip(target.elts, value, strict=True):
        names |= _bound(each, element)
    return names


def _reads(owner: Any, name: str, arguments: list[Any]) -> bool:
    """Return whether a method only reads its owner and its arguments."""
    if name.startswith("_") or not all(map(is_plain, arguments)):
        return False
    if _is_array(owner):
        # An array among the arguments could be the output of the method.
        return name in _STATISTICS and is_plain(owner) and not any(map(_is_array, arguments))
    read_only_form = _READ_ONLY_FORMS.get(type(owner))
    return hasattr(read_only_form, name) and (not arguments or is_plain(owner))


def _has_own_length(value: object) -> bool:
    """Return whether a length is that of a container of Python, an array or a table."""
    length = getattr(type(value), "__len__", None)
    return isinstance(length, WrapperDescriptorType) or _is_array(value)


def _has_label(owner: Any, name: str) -> bool:
    """Return whether a name is that of a column or a row of a table."""
    if not _has_plain_labels(owner):
        return False
    labels = getattr(owner, "columns", getattr(owner, "index", ()))
    return _library(owner) == "pandas" and not callable(labels) and name in labels


def _has_plain_labels(owner: Any) -> bool:
    """Return whether a value is an array, a table or its indexer, with plain labels."""
    table = getattr(owner, "obj", None) if _library(owner) == "pandas" else None
    table = owner if table is None else table
    if not _is_array(table):
        return False
    labels = [part for part in _arrays(table) if _library(part) == "pandas"]
    return all(_is_plain_array(part, 0) for part in labels if hasattr(part, "is_unique"))


def _is_of_table(owner: Any, descriptor: Any) -> bool:
    """Return whether a descriptor computes an attribute of an array or a table in its library."""
    getter = getattr(descriptor, "fget", descriptor)
    module = getattr(getter, "__module__", None) or type(getter).__module__
    return _is_array(owner) and str(module).partition(".")[0] in _LIBRARIES


def _reject(node: ast.AST) -> NoReturn:
    """Raise InspectionError for a part of an expression that could change something."""
    shown = shorten(ast.unparse(node), MAX_SHOWN_CHARS)
    raise InspectionError(
        f"{shown} could run code that changes something, so it was not evaluated. Expressions read "
        "names, attributes and items, calculate with numbers, texts, containers, arrays and "
        "tables, and call their reading methods. Use run_ipython for everything else"
    )
