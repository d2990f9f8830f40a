"""Variables as files, in the format of the suffix."""

from __future__ import annotations

import io
import json
import pickle
from typing import Any

import pytest

from oh_jupyter.errors import InspectionError
from oh_jupyter.kernel.saving import encoded

numpy = pytest.importorskip("numpy")
pandas = pytest.importorskip("pandas")

FRAME = pandas.DataFrame({"city": ["Bern", "Zürich"], "sales": [1.5, 2.0]})


def test_texts_and_bytes_are_written_as_they_are() -> None:
    assert encoded("grüezi", "a.txt") == "grüezi".encode()
    assert encoded(b"\x00", "a.bin") == b"\x00"


def test_a_frame_is_read_back() -> None:
    assert encoded(FRAME, "a.csv").decode() == "city,sales\nBern,1.5\nZürich,2.0\n"
    assert json.loads(encoded(FRAME, "a.json"))[1] == {"city": "Zürich", "sales": 2.0}
    assert b"<table" in encoded(FRAME, "a.html")
    indexed = FRAME.set_index("city")
    assert encoded(indexed, "a.csv").decode().startswith("city,sales\nBern")
    assert encoded(FRAME["sales"], "a.csv").decode() == "sales\n1.5\n2.0\n"
    assert pandas.read_pickle(io.BytesIO(encoded(FRAME, "a.pkl"))).equals(FRAME)


@pytest.mark.parametrize(
    ("module", "suffix", "read"),
    [
        ("pyarrow", ".parquet", pandas.read_parquet),
        ("pyarrow", ".feather", pandas.read_feather),
        ("openpyxl", ".xlsx", pandas.read_excel),
    ],
)
def test_a_frame_in_other_formats(module: str, suffix: str, read: Any) -> None:
    pytest.importorskip(module)
    assert read(io.BytesIO(encoded(FRAME, f"a{suffix}"))).equals(FRAME)


def test_arrays_figures_and_data() -> None:
    array = numpy.arange(4).reshape(2, 2)
    assert (numpy.load(io.BytesIO(encoded(array, "a.npy"))) == array).all()
    assert encoded(array, "a.csv") == b"0,1\n2,3\n"
    assert json.loads(encoded({"a": [1]}, "a.json")) == {"a": [1]}
    assert pickle.loads(encoded({1, 2}, "a.pkl")) == {1, 2}
    pyplot = pytest.importorskip("matplotlib.pyplot")
    figure = pyplot.figure()
    assert encoded(figure, "a.png").startswith(b"\x89PNG")
    pyplot.close(figure)


@pytest.mark.parametrize(
    ("value", "path", "reason"),
    [
        ({1, 2}, "a.parquet", "A set cannot be saved as .parquet. Use .json, .pkl"),
        (FRAME, "a", "A DataFrame cannot be saved as a file without a suffix. Use .csv, "),
        ({1, 2}, "a.json", "It was not saved: TypeError: Object of type set is not JSON"),
        (lambda: None, "a.pkl", "It was not saved: "),
    ],
)
def test_notebooks_that_cannot_be_saved(value: object, path: str, reason: str) -> None:
    with pytest.raises(InspectionError) as error:
        encoded(value, path)
    assert str(error.value).startswith(reason)
