"""Objects of popular libraries return exactly, or are named as not kept.

``python -m tests.checkpoints.test_variable_classes`` prints how many do, for the page of the room.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import tempfile
from collections import Counter
from pathlib import Path

import pytest

from tests.checkpoints.library_classes import CLASSES, LibraryClass
from tests.checkpoints.notebook import Notebook

NOT_KEPT = {
    "scipy.spatial.Delaunay": "cannot be converted to a Python object",
    "scipy.spatial.ConvexHull": "cannot be converted to a Python object",
    "PIL.Image": "ImagingCore",
    "seaborn.JointGrid": "a part is not kept",
    "cv2.KalmanFilter": "cannot pickle",
    "ipywidgets.IntSlider": "objects of ipywidgets are not copied",
    "xgboost.XGBRegressor": "ctypes objects",
    "xgboost.Booster": "ctypes objects",
    "lightgbm.LGBMClassifier": "ctypes objects",
    "astropy.wcs.Celprm": "cannot pickle",
}
"""Classes whose objects are not kept entirely, with a part of the reason."""


def outcome(case: LibraryClass, folder: Path) -> tuple[str, str]:
    """Change an object and rewind; return the outcome and the reason after they were checked."""
    notebook, other = Notebook(folder / "one"), Notebook(folder / "two")
    for each in (notebook, other):
        each.person(case.make + "\nalias = x")
    before, look = notebook.value("x"), repr(notebook.value(case.look))
    other.person(case.change)  # looking at it may fill caches
    assert repr(other.value(case.look)) != look, "the change is visible"
    result, reason = notebook.rewind(notebook.agent(case.change)).get("x", ("unchanged", ""))
    notebook.history.close()
    is_back = repr(notebook.value(case.look)) == look
    if reason:
        return ("partly" if is_back else "not kept"), reason
    assert result in ("restored", "rebound")
    assert is_back, f"{result}: {notebook.value(case.look)!r} instead of {look}"
    assert notebook.value("x is alias")
    assert (notebook.value("x") is before) == (result == "restored")
    return result, reason


@pytest.mark.parametrize("case", CLASSES, ids=lambda case: f"{case.library}-{case.name}")
def test_an_object_returns_or_is_named(case: LibraryClass, tmp_path: Path) -> None:
    pytest.importorskip(case.library)
    name = f"{case.library}.{case.name}"
    result, reason = outcome(case, tmp_path)
    if name in NOT_KEPT:
        assert result in ("not kept", "partly")
        assert NOT_KEPT[name] in reason
    else:
        assert (result, reason) in (("restored", ""), ("rebound", ""))


def main() -> None:
    """Print the outcomes of each library as rows of a table."""
    rows: dict[str, Counter[str]] = {}
    for case in CLASSES:
        try:
            importlib.import_module(case.library)
        except ImportError:
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                result, reason = outcome(case, Path(folder))
            except Exception as error:
                result, reason = "WRONG", f"{type(error).__name__}: {str(error)[:300]}"
        rows.setdefault(case.library, Counter())[result] += 1
        if result not in ("restored", "rebound"):
            print(f"{case.library}.{case.name}: {result}: {reason}")
    packages = importlib.metadata.packages_distributions()
    for library, counts in rows.items():
        version = importlib.metadata.version(packages[library][0])
        numbers = " | ".join(
            str(counts[key] or "") for key in ("restored", "rebound", "partly", "not kept")
        )
        print(f"| {packages[library][0]} {version} | {numbers} |")
    print(sum(rows.values(), Counter()))


if __name__ == "__main__":
    main()
