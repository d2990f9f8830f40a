"""Pages of rows of data frames."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from oh_jupyter.errors import InspectionError
from oh_jupyter.kernel.cells.tables import CELL_CHARS, MAX_COLUMNS, TableQuery, table_page


def rows(value: Any, **query: Any) -> list[list[str]]:
    return table_page(value, TableQuery(count=10, **query)).rows


def test_labels_of_rows_and_columns_may_repeat() -> None:
    frame = pd.DataFrame([[1, "b"], [2, "a"]], columns=["x", "x"], index=["i", "i"])
    page = table_page(frame, TableQuery(count=5, sort=1))
    assert page.rows == [["2", "a"], ["1", "b"]]
    assert page.index == ["i", "i"]
    assert [column.is_number for column in page.columns] == [True, False]


def test_values_of_several_types_are_sorted_as_texts() -> None:
    assert rows(pd.DataFrame({"x": ["b", 2, None]}), sort=0)[:2] == [["2"], ["b"]]


def test_a_filter_finds_text_in_any_column_and_no_pattern() -> None:
    frame = pd.DataFrame({"n": [10, 21, 3], "t": ["a.c", "abc", None]})
    assert rows(frame, filter="a.c") == [["10", "a.c"]]
    assert rows(frame, filter="1") == [["10", "a.c"], ["21", "abc"]]


def test_a_series_has_one_column() -> None:
    page = table_page(pd.Series([1.5, 2.5], name="size"), TableQuery(count=1, start=1))
    assert (page.kind, page.rows, page.total) == ("Series", [["2.5"]], 2)


def test_wide_frames_and_long_values_are_shortened() -> None:
    frame = pd.DataFrame(np.zeros((1, MAX_COLUMNS + 5), dtype=int))
    page = table_page(frame, TableQuery(count=1))
    assert (len(page.rows[0]), page.omitted_columns) == (MAX_COLUMNS, 5)
    (row,) = rows(pd.DataFrame({"x": ["y" * 10 * CELL_CHARS]}))
    assert len(row[0]) == CELL_CHARS


def test_empty_frames_have_no_rows() -> None:
    assert rows(pd.DataFrame()) == []
    assert rows(pd.DataFrame({"x": []}), sort=0, filter="a") == []


@pytest.mark.parametrize("value", [3, [1], np.zeros(3)])
def test_other_values_are_refused(value: object) -> None:
    with pytest.raises(InspectionError, match="not a data frame or series"):
        table_page(value, TableQuery())


def test_a_column_that_does_not_exist_is_refused() -> None:
    with pytest.raises(InspectionError, match="no column 1; the last is 0"):
        table_page(pd.DataFrame({"x": [1]}), TableQuery(sort=1))


def test_frames_of_polars_are_shown_alike() -> None:
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"n": [3, None, 1], "t": ["A", "b", "ab"], "l": [[1], [2], [31]]})
    assert rows(frame, sort=0) == [["1", "ab", "[31]"], ["3", "A", "[1]"], ["None", "b", "[2]"]]
    page = table_page(frame, TableQuery(count=5, filter="a"))
    assert (page.matching, page.index) == (2, ["0", "2"])
    assert rows(frame, filter="31") == [["1", "ab", "[31]"]]
