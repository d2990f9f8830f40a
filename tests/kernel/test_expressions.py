"""Expressions on variables: they read, and whatever could change something is rejected."""

from __future__ import annotations

import functools
import math
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple
from typing import Any

import pytest

from oh_jupyter.errors import InspectionError
from oh_jupyter.kernel.cells.expressions import evaluate_reading

numpy = pytest.importorskip("numpy")
pandas = pytest.importorskip("pandas")

CALLS: list[str] = []


class Watched:
    """An object whose every hook of Python is recorded."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self) -> None:
        self.field = 1

    @property
    def computed(self) -> int:
        CALLS.append("property")
        return 1

    @functools.cached_property
    def cached(self) -> int:
        CALLS.append("cached_property")
        return 1

    def method(self) -> None:
        CALLS.append("method")

    def __eq__(self, other: object) -> bool:
        CALLS.append("__eq__")
        return True

    def __bool__(self) -> bool:
        CALLS.append("__bool__")
        return True

    def __iter__(self) -> Any:
        CALLS.append("__iter__")
        return iter(())

    def __add__(self, other: object) -> int:
        CALLS.append("__add__")
        return 1

    __radd__ = __add__

    def __str__(self) -> str:
        CALLS.append("__str__")
        return "watched"


class Dynamic:
    """An object whose attributes, items and length are code."""

    def __getattr__(self, name: str) -> None:
        CALLS.append("__getattr__")

    def __getitem__(self, key: object) -> None:
        CALLS.append("__getitem__")

    def __len__(self) -> int:
        CALLS.append("__len__")
        return 1


class Growing(dict[str, int]):
    """A dictionary that adds what is missing."""

    def __missing__(self, key: str) -> int:
        CALLS.append("__missing__")
        return self.setdefault(key, 1)


def called(*arguments: object) -> int:
    CALLS.append("function")
    return 1


def names() -> dict[str, Any]:
    return {
        "u": Watched(),
        "d": Dynamic(),
        "us": [Watched()],
        "called": called,
        "generator": (called() for _ in range(3)),
        "grows": Growing(a=1),
        "default": defaultdict(list, {"a": [1]}),
        "state": {"a": 1},
        "l": [3, 1, 2],
        "s": {1, 2},
        "dq": deque([1, 2]),
        "ordered": OrderedDict(a=1),
        "counter": Counter("aab"),
        "pair": namedtuple("Pair", "x y")(1, 2),
        "arr": numpy.arange(12.0).reshape(3, 4),
        "objects": numpy.array([Watched()], dtype=object),
        "df": pandas.DataFrame({"city": ["a", "b", "a"], "x": [1, 2, 3.5]}),
        "table": pandas.DataFrame({"u": [Watched()]}),
        "np": numpy,
        "math": math,
    }


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("1 + 2.5", "3.5"),
        ("len(l), l[-1], l[-2:], sorted(l), max(l, key=abs)", "(3, 2, [1, 2], [1, 2, 3], 3)"),
        ("[v * 2 for v in l if v > 1], sum(v for v in l)", "([6, 4], 6)"),
        ("{k: v for k, v in state.items()}, {v for v in l}", "({'a': 1}, {1, 2, 3})"),
        ("state['a'], state.get('z', 3), 'a' in state, list(state)", "(1, 3, True, ['a'])"),
        ("1 < 2 < 3, 3 < 2 < called, u is None, not l", "(True, False, False, False)"),
        ("l and 5, 0 or 'x', 1 if s else 2", "(5, 'x', 1)"),
        ("s.union([3]), '-'.join(['a', 'b']), 'a b'.split()", "({1, 2, 3}, 'a-b', ['a', 'b'])"),
        ("pair.x, pair[1], dq[0], ordered['a'], u.field, us[0].field", "(1, 2, 1, 1, 1, 1)"),
        ("type(u).__name__, len(us), len(default), math.tau > 6", "('Watched', 1, 1, True)"),
        ("arr.shape, arr[1, 0].item(), (arr > 3).sum().item()", "((3, 4), 4.0, 8)"),
        ("arr.mean(0).tolist(), len(arr), arr.T.shape", "([4.0, 5.0, 6.0, 7.0], 3, (4, 3))"),
        ("df[df.x > 1].x.mean().item(), df.shape, df.iloc[0, 1].item()", "(2.75, (3, 2), 1.0)"),
        ("df.city.value_counts().tolist(), list(df.columns.tolist())", "([2, 1], ['city', 'x'])"),
    ],
)
def test_expressions_that_read(expression: str, value: str) -> None:
    assert repr(evaluate_reading(expression, names())) == value


@pytest.mark.parametrize(
    "expression",
    [
        *("state.clear()", "state.pop('a')", "dict.clear(state)", "l.append(1)", "l.sort()"),
        *("s.add(3)", "s.__init__()", "dq.popleft()", "list.append(l, 1)", "dict.update(state)"),
        *("default['new']", "grows['new']", "counter['z']", "list(generator)", "next(generator)"),
        *("[v for v in generator]", "(l := 1)", "called()", "(lambda: 1)()", "u.method()"),
        *("u.computed", "u.cached", "d.anything", "us[0].computed", "[v.computed for v in us]"),
        *("u == 1", "u in l", "1 in us", "us == us", "us.index(1)", "sum(us)", "u + 1", "1 + u"),
        *("d[0]", "len(d)", "not u", "u and 1", "1 if u else 2", "[*u]", "[v for v in u]"),
        *("str(u)", "f'{u}'", "{u}", "{u: 1}", "sorted(us)", "sorted(l, key=called)"),
        *("max(l, **state)", "l[called]", "objects == 1", "objects.sum()", "table == 1"),
        *("arr.fill(0)", "arr.sort()", "arr.sum(out=arr)", "arr.mean(0, None, arr[0])"),
        *("df.pop('x')", "df.insert(0, 'q', 1)", "df.drop(columns='x')", "df.to_csv('made.csv')"),
        *("df[called]", "df.city.apply(called)", "df.eval('y = 1')", "table.u.unique()"),
        *("np.save('made.npy', arr)", "open('made.txt', 'w')", "print(1)", "eval('l.clear()')"),
        *("__import__('os')", "setattr(u, 'field', 2)", "globals()", "type('X', (), {})"),
        *("await u", "state.__class__.clear(state)", "arr.__setitem__(0, 1)"),
    ],
)
def test_expressions_with_side_effects_are_rejected(expression: str) -> None:
    CALLS.clear()
    variables = names()
    before = {name: id(value) for name, value in variables.items()}
    with pytest.raises(InspectionError, match="Use run_ipython for everything else"):
        evaluate_reading(expression, variables)
    assert not CALLS
    assert {name: id(value) for name, value in variables.items()} == before
    new = names()
    for name in ("grows", "default", "state", "l", "s", "dq", "ordered", "counter"):
        assert variables[name] == new[name]
    assert (variables["arr"] == new["arr"]).all()
    assert variables["df"].equals(new["df"])
    assert len(list(variables["generator"])) == 3
