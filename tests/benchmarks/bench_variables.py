"""Cost of keeping variables around agents' cells, beside ``copy.deepcopy`` and Kishu.

``python tests/benchmarks/bench_variables.py`` prints a table. Kishu is measured if it is installed.
"""

from __future__ import annotations

import copy
import statistics
import sys
import tempfile
import time
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

from oh_jupyter.checkpoints.variables.history import VariableHistory
from oh_jupyter.checkpoints.variables.reach import Namespace, cell_reach

ROUNDS = 3
GIGABYTE_ROWS = 1 << 20

CASES: dict[str, tuple[str, str]] = {
    "1 GB frame, not named": (
        "import numpy as np, pandas as pd\n"
        f"df = pd.DataFrame(np.ones(({GIGABYTE_ROWS}, 128)), copy=False); x = [1]",
        "x.append(2)",
    ),
    "1 GB frame, read": (
        "import numpy as np, pandas as pd\n"
        f"df = pd.DataFrame(np.ones(({GIGABYTE_ROWS}, 128)), copy=False); x = [1]",
        "x.append(df.iat[0, 0])",
    ),
    "1 GB frame, one column replaced": (
        "import numpy as np, pandas as pd\n"
        f"df = pd.DataFrame(np.ones(({GIGABYTE_ROWS}, 128)), copy=False)",
        "df[0] = 2.0",
    ),
    "512 MB array, changed": (
        "import numpy as np; a = np.ones(1 << 26)",
        "a[0] += 1",
    ),
    "512 MB array, read": ("import numpy as np; a = np.ones(1 << 26)", "a[0]"),
    "100,000 dicts, one changed": (
        "rows = [{'a': i, 'b': [i]} for i in range(100_000)]",
        "rows[5]['b'].append(1)",
    ),
    "1,000,000 ints, appended": ("n = list(range(1_000_000))", "n.append(1)"),
    "fitted forest, refitted": (
        "from sklearn.ensemble import RandomForestRegressor as F; import numpy as np\n"
        "X = np.random.rand(500, 5); m = F(20).fit(X, X[:, 0])",
        "m.n_jobs = 1",
    ),
    "3,000,000 lists, too many to keep": ("x = [[i] for i in range(3_000_000)]", "x.append(1)"),
    "print(1)": ("x = 1", "pass"),
}


def milliseconds(call: Callable[[], Any]) -> float:
    start = time.perf_counter()
    call()
    return 1000 * (time.perf_counter() - start)


def ours(make: str, code: str) -> tuple[float, float, float, float]:
    """Return the time added to a cell, then in the background, that of a rewind, and the code's."""
    variables = types.ModuleType("__main__").__dict__
    folder = Path(tempfile.mkdtemp())
    history = VariableHistory(Namespace(variables, {}), str(folder), folder / "variables")
    history.disk_bytes = 0
    history._store = lambda *_: None  # type: ignore[method-assign]  # it is in the background
    exec(make, variables)
    added, later, back, alone = [], [], [], []
    for turn in range(1, 2 * ROUNDS, 2):
        start = time.perf_counter()
        cell = history.before(code, turn)
        middle = time.perf_counter()
        exec(code, variables)
        end = time.perf_counter()
        history.after(cell)
        added.append(1000 * (time.perf_counter() - end + middle - start))
        later.append(milliseconds(history.settle))
        alone.append(1000 * (end - middle))
        back.append(milliseconds(lambda turn=turn: history.rewind(turn, turn + 1)))
    added_ms, later_ms, back_ms, alone_ms = map(statistics.median, (added, later, back, alone))
    return added_ms, later_ms, back_ms, alone_ms


def deepcopy(make: str) -> float:
    variables: dict[str, Any] = {}
    exec(make, variables)
    own = {
        name: value
        for name, value in variables.items()
        if not isinstance(value, types.ModuleType | type) and not name.startswith("__")
    }
    return statistics.median(milliseconds(lambda: copy.deepcopy(own)) for _ in range(3))


def kishu(make: str, code: str) -> str:
    """Return the time of Kishu's graph of the variables in a cell, which it makes after the cell.

    It then pickles what differs, which is not included.
    """
    try:
        from kishu.planning.idgraph import IdGraph
    except ImportError:
        return ""
    variables: dict[str, Any] = {}
    exec(make, variables)
    names = cell_reach(code).names & variables.keys()

    def graphs() -> None:
        for name in names:
            IdGraph.from_object(variables[name])

    return f"{statistics.median(milliseconds(graphs) for _ in range(3)):.2f}"


def main() -> None:
    columns = f"{'code':>9}{'added':>9}{'later':>9}{'rewind':>9}{'deepcopy':>10}{'ratio':>7}"
    print(f"{'case':34}{columns}{'kishu':>10}   (ms; ratio: added to deepcopy)")
    for name, (make, code) in CASES.items():
        try:
            added, later, back, alone = ours(make, code)
        except ImportError as error:
            print(f"{name:34}{error}", file=sys.stderr)
            continue
        raw = deepcopy(make)
        others = f"{raw:10.1f}{added / raw:7.2f}{kishu(make, code):>10}"
        print(f"{name:34}{alone:9.2f}{added:9.2f}{later:9.2f}{back:9.2f}{others}", flush=True)


if __name__ == "__main__":
    main()
