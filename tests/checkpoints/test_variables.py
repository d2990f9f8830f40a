"""Variables return to what they were before an agent's cell, in the same objects."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from tests.checkpoints.notebook import Notebook


class Kind(NamedTuple):
    """Code that makes ``x`` and changes it in place, and the value to compare."""

    make: str
    change: str
    look: str = "x"
    needs: tuple[str, ...] = ()
    survives: bool = True


CLASS = """
class Point:
    '''A class of the notebook.'''
    shared = []
    def __init__(self): self.x, self.items = 1, [1]
    def __repr__(self): return str(vars(self))
    def __eq__(self, other): return vars(self) == vars(other)
    __hash__ = None
"""

KINDS: dict[str, Kind] = {
    "list": Kind("x = [1, [2], 3]", "x.append(4); x[1].append(5)"),
    "dict": Kind("x = {'a': 1, 'b': [2]}", "x['c'] = 3; x['b'].clear(); del x['a']"),
    "set": Kind("x = {1, 2}", "x.add(3)"),
    "deque": Kind("from collections import deque; x = deque([1, 2], 5)", "x.rotate(1)"),
    "bytearray": Kind("x = bytearray(b'abc')", "x[:] = b'longer than before'"),
    "array": Kind("import array; x = array.array('i', [1, 2])", "x.append(3)"),
    "ordered": Kind(
        "from collections import OrderedDict; x = OrderedDict(a=1, b=2)",
        "x.move_to_end('a'); x['c'] = 3",
        "list(x.items())",
    ),
    "defaultdict": Kind(
        "from collections import defaultdict; x = defaultdict(list, a=[1])",
        "x['b']; x.default_factory = set",
        "(dict(x), x.default_factory)",
    ),
    "counter": Kind("from collections import Counter; x = Counter('aab')", "x.update('bc')"),
    "tuple": Kind("x = (1, [2])", "x[1].append(3)"),
    "instance": Kind(f"{CLASS}\nx = Point()", "x.x = 2; x.items.append(3); x.more = 4"),
    "slots": Kind(
        "class S:\n    __slots__ = ('a', 'b')\nx = S(); x.a = [1]",
        "x.a.append(2); x.b = 3",
        "(x.a, hasattr(x, 'b'))",
    ),
    "subclass": Kind(
        "class L(list): pass\nx = L([1]); x.note = 'a'", "x.append(2); x.note = 'b'", "(x, x.note)"
    ),
    "dataclass": Kind(
        "from dataclasses import dataclass, field\n@dataclass(frozen=True)\nclass D:\n"
        "    a: list = field(default_factory=list)\nx = D()",
        "x.a.append(1)",
        "x.a",
    ),
    "namedtuple": Kind(
        "from collections import namedtuple; N = namedtuple('N', 'a b'); x = N([1], 2)",
        "x.a.append(2)",
    ),
    "closure": Kind(
        "def make():\n    n = 0\n    def count():\n        nonlocal n\n        n += 1\n"
        "        return n\n    return count\nx = make(); x()",
        "x(); x()",
        "x.__closure__[0].cell_contents",
    ),
    "function": Kind(
        "def x(a=[], *, b={}): return a",
        "x.calls = 1; x.__defaults__[0].append(1)",
        "(x.__dict__, x.__defaults__)",
    ),
    "default": Kind("def x(a=[]):\n    a.append(1)\n    return a", "x()", "x.__defaults__"),
    "class": Kind(
        CLASS + "\nx = Point", "x.shared.append(1); x.new = 2", "(x.shared, hasattr(x, 'new'))"
    ),
    "partial": Kind(
        "from functools import partial; x = partial(print, [1])", "x.args[0].append(2)", "x.args"
    ),
    "method": Kind("y = [1]; x = y.append", "x(2)", "y", survives=False),
    "bound": Kind(
        CLASS + "\n    def move(self): self.x += 1\nx = Point().move", "x()", "x.__self__.x"
    ),
    "namespace": Kind(
        "from types import SimpleNamespace; x = SimpleNamespace(a=1)", "x.a = 2; x.b = 3"
    ),
    "random": Kind("import random; x = random.Random(1)", "x.random()", "x.getstate()"),
    "buffer": Kind("import io; x = io.StringIO('a')", "x.write('bc')", "x.getvalue()"),
    "exception": Kind("x = ValueError('a'); x.note = [1]", "x.note.append(2)", "x.note"),
    "cycle": Kind("x = [1]; x.append(x)", "x.append(2)", "(len(x), x[1] is x)"),
    "enum": Kind(
        "import enum\nclass E(enum.Enum):\n    A = 1\nx = [E.A]", "x.append(E.A)", "len(x)"
    ),
    "iterator": Kind("x = iter([1, 2, 3]); next(x)", "next(x)", "x.__length_hint__()"),
    "ndarray": Kind(
        "import numpy as np; x = np.arange(6.)",
        "x[2] = 9; x.resize((2, 3), refcheck=False)",
        "(x.tolist(), x.shape)",
        ("numpy",),
    ),
    "large ndarray": Kind(
        "import numpy as np; x = np.zeros(100_000)", "x.sort(); x += 1", "x.sum()", ("numpy",)
    ),
    "objects": Kind(
        "import numpy as np; x = np.array([[1], {}], dtype=object)",
        "x[0] = 1; x[1]['a'] = 2",
        "x.tolist()",
        ("numpy",),
    ),
    "view": Kind(
        "import numpy as np; y = np.arange(6); x = y[::2]",
        "x[:] = 0",
        "y.tolist()",
        ("numpy",),
        survives=False,
    ),
    "view and base": Kind(
        "import numpy as np; y = np.arange(6); x = y[::2]",
        "x[:] = 0; y[1] = 9",
        "y.tolist()",
        ("numpy",),
        survives=False,
    ),
    "masked": Kind(
        "import numpy as np; x = np.ma.array([1, 2], mask=[0, 1])",
        "x[0] = np.ma.masked; x[1] = 5",
        "(x.tolist(), x.mask.tolist())",
        ("numpy",),
    ),
    "generator": Kind(
        "import numpy as np; x = np.random.default_rng(1)",
        "x.random()",
        "x.bit_generator.state",
        ("numpy",),
    ),
    "randomstate": Kind(
        "import numpy as np; x = np.random.RandomState(1)",
        "x.rand()",
        "str(x.get_state())",
        ("numpy",),
    ),
    "frame": Kind(
        "import pandas as pd; x = pd.DataFrame({'a': [1, 2], 'b': list('xy')})",
        "x.loc[0, 'a'] = 9; x['c'] = 1; del x['b']; x.attrs['k'] = 1",
        "(x.to_dict(), x.dtypes.astype(str).tolist(), x.attrs)",
        ("pandas",),
    ),
    "frame with a column called name": Kind(
        "import pandas as pd; x = pd.DataFrame({'name': ['u', 'v'], 'a': [1, 2]})",
        "x['a'] *= 2",
        "x.to_dict()",
        ("pandas",),
    ),
    "frame labels": Kind(
        "import pandas as pd; x = pd.DataFrame({'a': [1]}); x.index.name = 'i'",
        "x.columns = ['z']; x.index.name = 'k'",
        "(list(x), x.index.name)",
        ("pandas",),
    ),
    "frame of lists": Kind(
        "import pandas as pd; x = pd.DataFrame({'a': [[1], [2]]})",
        "x.a[0].append(3)",
        "x.a.tolist()",
        ("pandas",),
    ),
    "types of columns": Kind(
        "import pandas as pd; x = pd.DataFrame({'a': pd.array([1, None], 'Int64'),"
        " 'b': pd.Categorical(['u', 'v']), 'c': pd.to_datetime(['2020', '2021'])})",
        "x.loc[0, 'a'] = 5; x.loc[0, 'b'] = 'v'; x.loc[0, 'c'] = pd.NaT",
        "x.astype(str).values.tolist()",
        ("pandas",),
    ),
    "series": Kind(
        "import pandas as pd; x = pd.Series([1, 2], name='s')",
        "x[0] = 9; x.name = 't'",
        "(x.tolist(), x.name)",
        ("pandas",),
    ),
    "groups": Kind(
        "import pandas as pd; y = pd.DataFrame({'a': [1, 1, 2]}); x = y.groupby('a')",
        "x.obj.loc[0, 'a'] = 2",
        "y.a.tolist()",
        ("pandas",),
        survives=False,
    ),
    "polars": Kind(
        "import polars as pl; x = pl.DataFrame({'a': [1, 2]})",
        "x[0, 'a'] = 9; x.insert_column(1, pl.Series('b', [1, 2])); x.columns = ['y', 'z']",
        "x.to_dict(as_series=False)",
        ("polars",),
    ),
    "polars series": Kind(
        "import polars as pl; x = pl.Series('a', [1, 2])",
        "x[0] = 9; x.append(pl.Series([3]))",
        "x.to_list()",
        ("polars",),
    ),
    "arrow": Kind(
        "import pyarrow as pa; x = {'t': pa.table({'a': [1]})}",
        "x['t'] = x['t'].slice(1)",
        "x['t'].num_rows",
        ("pyarrow",),
    ),
    "xarray": Kind(
        "import numpy as np, xarray as xr; x = xr.Dataset({'a': ('i', np.arange(3))})",
        "x['a'][0] = 9; x['b'] = 1; x.attrs['k'] = 2",
        "(x.a.values.tolist(), list(x.data_vars), x.attrs)",
        ("xarray",),
    ),
    "sparse": Kind(
        "import scipy.sparse as s; x = s.csr_matrix([[1, 0], [0, 2]])",
        "x.data[0] = 9; x.data = x.data * 2",
        "x.toarray().tolist()",
        ("scipy",),
    ),
    "estimator": Kind(
        "from sklearn.linear_model import LinearRegression; x = LinearRegression()",
        "x.fit([[1], [2]], [1, 2]); x.fit_intercept = False",
        "(x.get_params(), hasattr(x, 'coef_'))",
        ("sklearn",),
    ),
    "fitted": Kind(
        "from sklearn.linear_model import LinearRegression\n"
        "x = LinearRegression().fit([[1], [2]], [1, 2])",
        "x.fit([[1], [2]], [5, 9])",
        "x.coef_.round(6).tolist()",
        ("sklearn",),
    ),
    "forest": Kind(
        "from sklearn.ensemble import RandomForestClassifier as F\n"
        "x = F(3, random_state=1).fit([[1], [2], [3], [4]], [0, 0, 1, 1])",
        "x.fit([[1], [2], [3], [4]], [1, 1, 0, 0])",
        "x.predict([[1], [4]]).tolist()",
        ("sklearn",),
    ),
    "graph": Kind(
        "import networkx as nx; x = nx.path_graph(3)",
        "x.add_edge(0, 9, w=1); x.nodes[0]['c'] = 1",
        "(sorted(x.edges(data=True)), dict(x.nodes(data=True)))",
        ("networkx",),
    ),
    "figure": Kind(
        "import matplotlib; matplotlib.use('agg'); from matplotlib.figure import Figure\n"
        "x = Figure(); axes = x.add_subplot(); axes.plot([1, 2])",
        "axes.plot([3, 4]); axes.set_title('t'); x.set_size_inches(9, 9); x.canvas.draw()",
        "(len(axes.lines), axes.get_title(), x.get_size_inches().tolist())",
        ("matplotlib",),
        survives=False,
    ),
}


def prepare(notebook: Notebook, name: str) -> Kind:
    kind = KINDS[name]
    for module in kind.needs:
        pytest.importorskip(module)
    notebook.person(kind.make)
    notebook.person("alias, holder = x, {'x': x}\ndef use(): return x")
    return kind


@pytest.mark.parametrize("name", KINDS)
def test_a_changed_object_returns_in_place(notebook: Notebook, name: str) -> None:
    kind = prepare(notebook, name)
    looks = repr(notebook.value(kind.look))
    x = notebook.value("x")
    turn = notebook.agent(kind.change)
    changed = repr(notebook.value(kind.look))
    rows = notebook.rewind(turn)
    assert repr(notebook.value(kind.look)) == looks
    for expression in ("x", "alias", "holder['x']", "use()"):
        assert notebook.value(expression) is x, expression
    assert rows["x"][0] == "restored"
    assert rows["x"][1] == "" or name == "figure"  # reading it fills caches
    again = notebook.rewind(notebook.turn)
    assert again["x"][0] == "restored", again
    assert repr(notebook.value(kind.look)) == changed
    notebook.rewind(notebook.turn)
    assert repr(notebook.value(kind.look)) == looks


@pytest.mark.parametrize("name", KINDS)
def test_reading_is_no_change(notebook: Notebook, name: str) -> None:
    kind = prepare(notebook, name)
    repr(notebook.value(kind.look))  # fills caches
    turn = notebook.agent(f"_ = repr({kind.look})\ndel _")
    rows = {n: row for n, row in notebook.rewind(turn).items() if row[0] != "unchanged"}
    assert not {n for n, row in rows.items() if row[0] != "not kept"}, rows


@pytest.mark.parametrize("name", [name for name, kind in KINDS.items() if kind.survives])
def test_stored_variables_survive_the_kernel(notebook: Notebook, name: str) -> None:
    pytest.importorskip("cloudpickle")
    kind = prepare(notebook, name)
    looks = repr(notebook.value(kind.look))
    turn = notebook.agent(kind.change + "; alias = 1")
    fresh = notebook.restarted()
    rows = fresh.rewind(turn)
    assert rows["x"][0] == rows["alias"][0] == "rebound", rows
    assert repr(fresh.value(kind.look)) == looks
    assert fresh.value("alias is x")
