"""Rules of a rewind of variables: whose changes stay, what is not kept, and what it costs."""

from __future__ import annotations

import contextlib
import json
import sys
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from oh_jupyter.checkpoints.variables import history, records
from oh_jupyter.checkpoints.variables.history import RAN_MEANWHILE
from oh_jupyter.checkpoints.variables.plan import CHANGED_BETWEEN, CHANGED_SINCE
from oh_jupyter.checkpoints.variables.reach import EVERYTHING, cell_reach
from oh_jupyter.checkpoints.variables.records import settle
from tests.checkpoints.notebook import Notebook

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="time limits need POSIX signals")


@contextlib.contextmanager
def peak_of_memory() -> Iterator[Callable[[], int]]:
    """Measure the bytes that the block allocates, data of NumPy arrays included."""
    tracemalloc.start()
    peak = 0
    try:
        yield lambda: peak
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_aliases_of_all_kinds_see_the_restored_object(notebook: Notebook) -> None:
    notebook.person("""
rows = [[1], [2]]
same, first, pair, table = rows, rows[0], (rows, 1), {"rows": rows}
class Widget:
    def __init__(self, data): self.data = data
widget = Widget(rows)
def read(data=rows): return data
def close():
    return lambda: rows, lambda inner=first: inner
by_name, by_default = close()
""")
    turn = notebook.agent("first.append(9); rows.reverse(); same.append(3)")
    notebook.rewind(turn)
    assert notebook.value("rows == [[1], [2]] and rows[0] is first and same is rows")
    for alias in ("pair[0]", "table['rows']", "widget.data", "read()", "by_name()"):
        assert notebook.value(f"{alias} is rows"), alias
    assert notebook.value("by_default() is first")


@pytest.mark.parametrize(
    "code",
    [
        "change()",
        "Point().change()",
        "(lambda: inner())()",
        "partial(change)()",
        "list(map(append, [2]))",
        "[append(n) for n in [2]]",
        "decorated()",
        "exec('rows.append(2)')",
        "eval('rows').append(2)",
        "vars()['rows'].append(2)",
        "dynamic()",
        "pool.submit(change).result()",
        "Point.total(2)",
        "Child().change()",
        "+Point()",
        "held.append(2)",
        "next(iter(holder.values()))[0].append(2)",
        "class Local:\n    rows.append(2)",
        "def local():\n    def deeper(): rows.append(2)\n    deeper()\nlocal()",
    ],
)
def test_changes_through_code_are_found(notebook: Notebook, code: str) -> None:
    notebook.person("""
import functools
from concurrent.futures import ThreadPoolExecutor
from functools import partial
rows = [1]
held, holder, append = rows, {"a": [rows]}, rows.append
pool = ThreadPoolExecutor(1)
def change(): rows.append(2)
def inner(): change()
def dynamic(): globals()["rows"].append(2)
def wrapper(function):
    @functools.wraps(function)
    def call(*args): return function(*args)
    return call
@wrapper
def decorated(): change()
class Point:
    def change(self): change()
    @staticmethod
    def total(n): rows.append(n)
    def __pos__(self): change()
class Child(Point): pass
""")
    turn = notebook.agent(code)
    assert notebook.value("rows") == [1, 2]
    notebook.rewind(turn)
    assert notebook.value("rows") == [1]
    notebook.value("pool").shutdown()


def test_everything_is_kept_while_a_thread_of_the_notebook_runs(notebook: Notebook) -> None:
    notebook.person("""
import threading
rows, go, done = [1], threading.Event(), threading.Event()
def work():
    go.wait(); rows.append(2); done.set()
thread = threading.Thread(target=work); thread.start()
""")
    turn = notebook.agent("go.set(); done.wait()")
    notebook.rewind(turn)
    assert notebook.value("rows") == [1]


def test_names_that_code_uses() -> None:
    assert cell_reach("df.x.sum()\nimport os").names == {"df", "os"}
    assert cell_reach("get_ipython().system('ls')").names == {"get_ipython"}
    for code in ("exec('1')", "get_ipython().run_line_magic('run', 'a')", "1 +", "vars()"):
        assert cell_reach(code) == EVERYTHING, code


def test_later_changes_by_the_person_stay(notebook: Notebook) -> None:
    notebook.person("a, b, c, d = [1], [1], [1], [1]")
    turn = notebook.agent("a.append(2); b = 2; c = [2]; d.append(2); e = [1]; f = 1")
    notebook.person("b = 'mine'; c.append('mine'); d.append('mine'); e.append('mine'); del f")
    rows = notebook.rewind(turn)
    assert rows == {
        "a": ("restored", ""),
        **dict.fromkeys("bcde", ("yours", CHANGED_SINCE)),
    }
    assert notebook.value("a, b, c, d, e") == (
        [1],
        "mine",
        [2, "mine"],
        [1, 2, "mine"],
        [1, "mine"],
    )
    rows = notebook.rewind(turn, everything=True)
    assert notebook.value("a, b, c, d") == ([1], [1], [1], [1])
    assert "e" not in notebook.variables
    notebook.rewind(notebook.turn)
    assert notebook.value("b, c, d") == ("mine", [2, "mine"], [1, 2, "mine"])


def test_changes_by_the_person_between_turns_stay(notebook: Notebook) -> None:
    notebook.person("rows = [1]; x = 1")
    first = notebook.agent("rows.append(2); x = 2")
    notebook.person("rows.append('mine'); x = 'mine'")
    notebook.agent("rows.append(3); x = 3")
    rows = notebook.rewind(first)
    assert rows["rows"] == rows["x"] == ("restored", CHANGED_BETWEEN)
    assert notebook.value("rows, x") == ([1, 2, "mine"], "mine")


def test_several_turns_and_a_rewind_in_between(notebook: Notebook) -> None:
    notebook.person("rows = []")
    turns = [notebook.agent(f"rows.append({i}); x{i} = {i}") for i in range(3)]
    notebook.rewind(turns[1])
    assert notebook.value("rows") == [0]
    again = notebook.agent("rows.append('again')")
    notebook.rewind(turns[0])
    assert notebook.value("rows") == []
    assert "x0" not in notebook.variables
    notebook.rewind(notebook.turn)
    assert notebook.value("rows") == [0, "again"]
    notebook.rewind(again)
    assert notebook.value("rows") == [0]


def test_a_deleted_variable_and_a_hidden_builtin_return(notebook: Notebook) -> None:
    notebook.hidden["open"] = notebook.variables["open"] = open
    notebook.person("rows = [1]; same = rows")
    turn = notebook.agent("del rows; open = 1")
    notebook.rewind(turn)
    assert notebook.value("rows is same")
    assert notebook.variables["open"] is open


def test_a_mark_keeps_everything(notebook: Notebook) -> None:
    notebook.person("rows = [1]; x = 1")
    notebook.turn += 1
    mark = notebook.turn
    notebook.history.mark(mark)
    notebook.person("rows.append(2); x = 2; y = 3")
    notebook.rewind(mark)
    assert notebook.value("rows, x") == ([1], 1)
    assert "y" not in notebook.variables


def test_a_mark_between_turns_changes_nothing(notebook: Notebook) -> None:
    notebook.person("rows = [1]; x = 1")
    turn = notebook.agent("rows.append(2); x = 2")
    notebook.turn += 1
    mark = notebook.turn
    notebook.history.mark(mark)
    notebook.agent("rows.append(3)")
    assert set(notebook.rewind(turn).values()) == {("restored", "")}
    assert notebook.value("rows, x") == ([1], 1)
    notebook.person("x = 'mine'")
    notebook.history.rewind(mark, 100, everything=True, as_person=False)
    assert notebook.value("x") == "mine"


def test_a_cell_that_ran_while_a_mark_was_set(notebook: Notebook) -> None:
    """Nobody knows what its variables were at the mark, so a rewind to the mark names them."""
    notebook.person("rows, x, y = [1], 1, 1")
    turn, mark, later = 1, 2, 3
    cell = notebook.history.before("rows.append(2); x = 2", turn)
    exec("rows.append(2); x = 2", notebook.variables)
    notebook.history.after(cell, later)
    notebook.turn = later
    notebook.agent("x = 3; y = 3")
    assert notebook.rewind(mark) == {
        "rows": ("not kept", RAN_MEANWHILE),
        "x": ("restored", RAN_MEANWHILE),
        "y": ("restored", ""),
    }
    assert notebook.value("rows, x, y") == ([1, 2], 2, 1)
    assert notebook.rewind(turn) == {
        "rows": ("restored", ""),
        "x": ("restored", ""),
        "y": ("unchanged", ""),
    }
    assert notebook.value("rows, x, y") == ([1], 1, 1)


HOPELESS = {
    "endless reduce": (
        "class L(int):\n    def __reduce_ex__(self, p):\n        while True: pass\nx = L()",
        "took longer than",
    ),
    "sleeping reduce": (
        "import time\nclass L(int):\n    def __reduce_ex__(self, p): time.sleep(100)\nx = L()",
        "took longer than",
    ),
    "many endless": (
        "class L(int):\n    def __reduce_ex__(self, p):\n        while True: pass\n"
        "x = [L(), L(), L(), L()]",
        "",
    ),
    "failing reduce": (
        "class L(int):\n    def __reduce_ex__(self, p): raise OSError('no')\nx = L()",
        "no",
    ),
    "generator": ("x = (i for i in range(3))", "a generator cannot be copied"),
    "lock": ("import threading; x = threading.Lock()", "cannot pickle '_thread.lock' object"),
    "file": ("import os; x = open(os.devnull)", "an open file cannot be copied"),
    "thread": ("import threading; x = threading.Thread()", "objects of threading are not copied"),
    "socket": ("import socket; x = socket.socket()", "cannot pickle"),
    "database": ("import sqlite3; x = sqlite3.connect(':memory:')", "cannot pickle"),
    "tensor": (
        "class Tensor:\n    class device: type = 'cuda'\nTensor.__module__ = 'torch'\nx = Tensor()",
        "its data is on the device",
    ),
    "10 GB": ("import numpy as np; x = np.empty(10 << 30, 'u1')", "exceed the memory"),
    "10 GB frame": (
        "import numpy as np, pandas as pd\n"
        "x = pd.DataFrame(np.empty((10 << 17, 1024)), copy=False)",
        "",
    ),
    "endless list": ("x = []\nfor i in range(3_000_000): x.append([i])", "took too long"),
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", HOPELESS)
def test_hopeless_objects_are_named_and_not_copied(notebook: Notebook, name: str) -> None:
    if "GB" in name:
        pytest.importorskip("pandas")
    make, reason = HOPELESS[name]
    notebook.person(make + "\nrows = [1]")
    code = "x; rows.append(2)"
    with peak_of_memory() as peak:
        cell = notebook.history.before(code, 1)
    exec(code, notebook.variables)
    notebook.history.after(cell)
    assert peak() < 1 << 30
    rows = {row.name: row for row in notebook.history.preview(1)}
    if reason:
        assert rows["x"].outcome == "not kept"
        assert reason in rows["x"].reason
    if "list" not in name:
        assert rows["rows"].outcome == "restored"
    getattr(notebook.value("x"), "close", lambda: None)()


def test_a_failing_part_does_not_keep_the_rest_from_returning(notebook: Notebook) -> None:
    notebook.person("import threading; x = {'lock': threading.Lock(), 'rows': [1]}")
    turn = notebook.agent("x['rows'].append(2); x['new'] = 1")
    rows = notebook.rewind(turn)
    assert rows["x"][0] == "restored"
    assert rows["x"][1].startswith("a part is not kept: cannot pickle '_thread.lock'")
    assert notebook.value("x['rows'], len(x)") == ([1], 2)


def test_an_array_that_changed_its_size_is_rebound(notebook: Notebook) -> None:
    pytest.importorskip("numpy")
    notebook.person("import numpy as np; x = np.arange(3)")
    turn = notebook.agent("x.resize(5, refcheck=False)")
    rows = notebook.rewind(turn)
    assert rows["x"][0] == "rebound"
    assert notebook.value("x.tolist()") == [0, 1, 2]
    notebook.rewind(notebook.turn)
    assert notebook.value("x.tolist()") == [0, 1, 2, 0, 0]


def test_data_held_only_by_an_objects_constructor_is_rebound(notebook: Notebook) -> None:
    notebook.person("import decimal; x = same = decimal.Context()")
    assert notebook.rewind(notebook.agent("x.prec = 5"))["x"] == ("rebound", "")
    assert notebook.value("x.prec == 28 and x is same")
    turn = notebook.agent("x.prec")
    assert {row[0] for row in notebook.rewind(turn).values()} <= {"unchanged"}
    notebook.person("x = same = enumerate(iter('abc'))")
    assert notebook.rewind(notebook.agent("next(x)"))["x"] == ("rebound", "")
    assert notebook.value("x is same and next(x)") == (0, "a")


def test_an_object_with_a_part_that_is_not_kept_is_not_called_unchanged(notebook: Notebook) -> None:
    notebook.person("import threading\nclass Box: pass\nx = Box(); x.lock = threading.Lock()")
    outcome, reason = notebook.rewind(notebook.agent("x.lock.acquire()"))["x"]
    assert outcome == "not kept"
    assert reason.startswith("a part is not kept: ")


def test_the_memory_has_a_limit(notebook: Notebook) -> None:
    pytest.importorskip("numpy")
    notebook.history.memory_bytes = 2**20
    notebook.person("import numpy as np; x, y = np.zeros(100_000, 'u1'), np.zeros(2**21, 'u1')")
    turns = [notebook.agent(f"x += 1; y += 1; n = {i}") for i in range(15)]
    rows = notebook.rewind(turns[-1])
    assert rows["x"] == ("restored", "")
    assert rows["y"][0] == "not kept"
    assert notebook.history.notes(turns[0])
    rows = notebook.rewind(turns[0])
    assert 0 < notebook.value("x[0]") < 14


def test_a_large_object_is_not_kept_alive(notebook: Notebook) -> None:
    pytest.importorskip("numpy")
    notebook.history.memory_bytes = 2**20
    notebook.person("import numpy as np; x, y = np.zeros(2**21, 'u1'), [1]")
    notebook.person("import weakref; alive = weakref.ref(x)")
    turn = notebook.agent("y = 0; del x")
    assert notebook.history.close() is None  # until then, it is being stored
    assert notebook.value("alive()") is None
    rows = notebook.rewind(turn)
    assert rows["y"] == ("restored", "")
    assert rows["x"] == ("not kept", "2,097,152 bytes exceed the memory for variables")


def test_disk_space_has_a_limit(notebook: Notebook) -> None:
    pytest.importorskip("cloudpickle")
    notebook.history.disk_bytes = 10_000
    notebook.person("x = bytearray(4000); y = bytearray(20_000)")
    turns = [notebook.agent("x[0] += 1; y[0] += 1") for _ in range(10)]
    assert notebook.history.close() is None
    files = sorted((notebook.folder / "variables").glob("*"))
    assert sum(path.stat().st_size for path in files) <= 10_000
    fresh = notebook.restarted()
    rows = fresh.rewind(turns[-1])
    assert rows["x"][0] == "rebound"
    assert rows["y"][0] == "not kept"
    assert "exceed the disk space" in rows["y"][1]
    assert fresh.value("x[0]") == 9


def test_the_newest_states_stay_when_disk_space_is_short(notebook: Notebook) -> None:
    pytest.importorskip("cloudpickle")
    notebook.history.disk_bytes = 10_000
    notebook.person("x = bytearray(900)")
    turns = [notebook.agent("x[0] += 1") for _ in range(40)]
    assert notebook.history.close() is None
    files = sorted((notebook.folder / "variables").iterdir())
    remaining = [json.loads(path.read_bytes().partition(b"\n")[0])["checkpoint"] for path in files]
    assert remaining == turns[-len(remaining) :]
    assert len(remaining) >= 5
    assert sum(path.stat().st_size for path in files) <= 10_000


def test_variables_that_the_code_does_not_name_are_listed_and_stored(notebook: Notebook) -> None:
    pytest.importorskip("cloudpickle")
    notebook.person("""
rows, lock = [1], __import__("threading").Lock()
same, holder, other, held = rows, {"deep": [(rows,)]}, [2], [lock]
class Point: pass
point = Point()
point.rows = rows
def read(data=rows): return data
""")
    turn = notebook.agent("rows.append(2)")
    names = ("rows", "same", "holder", "point", "read")
    assert notebook.rewind(turn) == dict.fromkeys(sorted(names), ("restored", ""))
    turn = notebook.agent("rows.append(2)")
    fresh = notebook.restarted()
    assert fresh.rewind(turn).keys() == set(names)
    assert fresh.value("rows") == [1]
    for alias in ("same", "holder['deep'][0][0]", "point.rows", "read()"):
        assert fresh.value(f"{alias} is rows"), alias


def test_variables_after_a_restart_stay(notebook: Notebook) -> None:
    pytest.importorskip("cloudpickle")
    notebook.person("x, y = [1], [1]\ndef total(): return sum(x)")
    turn = notebook.agent("x.append(2); y.append(2); total.note = 1")
    fresh = notebook.restarted()
    fresh.person("x = 'mine'")
    rows = fresh.rewind(turn)
    assert {name: row[0] for name, row in rows.items()} == {
        "x": "yours",
        "y": "rebound",
        "total": "rebound",
    }
    assert fresh.value("x, y") == ("mine", [1])
    fresh.rewind(turn, everything=True)
    assert fresh.value("x, total()") == ([1], 1)


@pytest.mark.thorough
def test_an_untouched_frame_costs_nothing(notebook: Notebook) -> None:
    pytest.importorskip("pandas")
    notebook.person(
        "import numpy as np, pandas as pd\n"
        "df = pd.DataFrame(np.ones((1 << 20, 128)), copy=False); x = [1]"
    )
    for code in ("x.append(2)", "df.shape; x.append(2)"):
        with peak_of_memory() as peak:
            notebook.history.after(notebook.history.before(code, 1))
        assert peak() < 1 << 20, code


@pytest.fixture
def large(notebook: Notebook) -> Notebook:
    """Return a notebook with an array that is compared in the background."""
    pytest.importorskip("numpy")
    notebook.person("import numpy as np; a = np.zeros(1 << 20); same = a")
    return notebook


@pytest.mark.parametrize("code", ["a[5] = 1", "a[0]", "a = np.ones(1 << 20)"])
def test_a_cell_does_not_wait_until_much_data_is_compared(
    large: Notebook, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    started, released = threading.Event(), threading.Event()

    def wait(*arguments: Any) -> None:
        started.set()
        assert released.wait(60)
        settle(*arguments)

    monkeypatch.setattr(history, "settle", wait)
    turn = large.agent(code)
    assert started.wait(60)
    released.set()
    rows = large.rewind(turn)
    assert large.value("a is same and not a.any()")
    assert ("a" in rows) == (code != "a[0]"), "what did not change is not listed"


def test_a_change_right_after_a_cell_is_the_persons(large: Notebook) -> None:
    turn = large.agent("a[5] = 1")
    large.person("a[6] = 2")
    assert large.rewind(turn)["a"] == ("yours", CHANGED_SINCE)
    assert large.value("a[5:7].tolist()") == [1, 2]


def test_cells_in_a_row_are_undone_one_by_one(large: Notebook) -> None:
    turns = [large.agent(f"a += {number}") for number in range(1, 5)]
    for turn, total in zip(reversed(turns), (6, 3, 1, 0), strict=True):
        assert large.rewind(turn) == dict.fromkeys(("a", "same"), ("restored", ""))
        assert large.value(f"a is same and (a == {total}).all()")


def test_an_interrupt_while_data_is_compared_loses_nothing(
    large: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "LARGE_BYTES", 1 << 40)
    monkeypatch.setattr(history, "settle", _interrupt)
    with pytest.raises(KeyboardInterrupt):
        large.agent("a[5] = 1")
    monkeypatch.setattr(history, "settle", settle)
    assert large.rewind(large.turn) == dict.fromkeys(("a", "same"), ("restored", ""))
    assert large.value("a is same and not a.any()")


def _interrupt(*_: Any) -> None:
    raise KeyboardInterrupt
