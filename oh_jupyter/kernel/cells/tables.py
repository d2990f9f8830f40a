"""Pages of rows of a data frame, sorted and filtered, as texts for a person."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from oh_jupyter.errors import InspectionError
from oh_jupyter.kernel.cells.inspection import is_table, type_name
from oh_jupyter.operations.kernel import TableColumn, TablePage
from oh_jupyter.text import shorten

MAX_COLUMNS = 50
"""Columns of a page; the others are counted."""

CELL_CHARS = 200
"""Maximum length of a value."""


@dataclass(frozen=True)
class TableQuery:
    """Rows of a table: ``count`` from ``start`` on, in the order of a column, with a text.

    Attributes:
        start: Position of the first row among those that match.
        count: Maximum number of rows.
        sort: Position of the column to sort by, or None for the order of the table.
        descending: Whether to sort in descending order; missing values always come last.
        filter: Text that any column of a row must contain, in upper or lower case.
    """

    start: int = 0
    count: int = 0
    sort: int | None = None
    descending: bool = False
    filter: str = ""


def table_page(value: Any, query: TableQuery) -> TablePage:
    """Return the rows of a query with the table's size and columns.

    Raises:
        InspectionError: The value is no data frame or series of pandas or polars, or it has no
            such column.
    """
    if not is_table(value):
        raise InspectionError(
            f"It is a {type_name(value)}, not a data frame or series of pandas or polars"
        )
    is_polars = type(value).__module__.startswith("polars")
    frame = value.to_frame() if len(value.shape) == 1 else value
    shown = frame.iloc[:, :MAX_COLUMNS] if not is_polars else frame[:, :MAX_COLUMNS]
    if query.sort is not None and query.sort >= shown.shape[1]:
        raise InspectionError(f"There is no column {query.sort}; the last is {shown.shape[1] - 1}")
    rows, index, matching = (_polars_rows if is_polars else _pandas_rows)(shown, query)
    types = list(shown.dtypes)
    return TablePage(
        kind=type_name(value),
        columns=[
            TableColumn(str(name), str(kind), _is_number(kind))
            for name, kind in zip(shown.columns, types, strict=True)
        ],
        omitted_columns=frame.shape[1] - shown.shape[1],
        index=[_text(label) for label in index],
        rows=[[_text(cell) for cell in row] for row in rows],
        start=query.start,
        total=frame.shape[0],
        matching=matching,
    )


def _pandas_rows(frame: Any, query: TableQuery) -> tuple[list[Any], list[Any], int]:
    import numpy

    # Positions, since labels of rows and columns may repeat.
    positions = numpy.arange(len(frame))
    columns = [frame.iloc[:, number] for number in range(frame.shape[1])]
    if query.filter:
        matches = numpy.zeros(len(frame), dtype=bool)
        for column in columns:
            texts = column.astype(str).str
            contained = texts.contains(query.filter, case=False, regex=False)
            matches |= contained.to_numpy(dtype=bool, na_value=False)
        positions = positions[matches]
    if query.sort is not None:
        keys = columns[query.sort].reset_index(drop=True).iloc[positions]
        order: dict[str, Any] = {"ascending": not query.descending, "kind": "stable"}
        try:
            positions = keys.sort_values(**order).index.to_numpy()
        except TypeError:  # values of several types
            positions = keys.astype(str).sort_values(**order).index.to_numpy()
    page = frame.iloc[positions[query.start : query.start + query.count]]
    cells = [page.iloc[:, number].tolist() for number in range(page.shape[1])]
    rows = list(zip(*cells, strict=True)) if cells else [() for _ in range(len(page))]
    return rows, page.index.tolist(), len(positions)


def _polars_rows(frame: Any, query: TableQuery) -> tuple[list[Any], list[Any], int]:
    import polars

    numbered = frame.with_row_index(_unused_name(frame.columns))
    position = numbered.columns[0]
    if query.filter:
        wanted, matches = query.filter.lower(), polars.repeat(False, len(frame), eager=True)
        for column in frame:
            texts = _polars_texts(column).str.to_lowercase()
            matches |= texts.str.contains(wanted, literal=True).fill_null(False)
        numbered = numbered.filter(matches)
    if query.sort is not None:
        name = frame.columns[query.sort]
        numbered = numbered.sort(
            name, descending=query.descending, nulls_last=True, maintain_order=True
        )
    page = numbered[query.start : query.start + query.count]
    return page.drop(position).rows(), page[position].to_list(), len(numbered)


def _polars_texts(column: Any) -> Any:
    import polars

    try:
        return column.cast(polars.String)
    except polars.exceptions.PolarsError:  # a nested type
        return polars.Series([_text(value) for value in column.to_list()], dtype=polars.String)


def _unused_name(names: list[str]) -> str:
    name = "row"
    while name in names:
        name += "_"
    return name


def _is_number(kind: Any) -> bool:
    """Return whether a column's type, of pandas or polars, is one of numbers."""
    return str(kind).lower().startswith(("int", "uint", "float", "decimal"))


def _text(value: object) -> str:
    shown = value if isinstance(value, str) else str(value)
    return shown if len(shown) <= CELL_CHARS else shorten(shown, CELL_CHARS - 1)
