"""Environment variables, and data of results, for cells of E2B's clients."""

from __future__ import annotations

import json
import logging
import os
from asyncio import Lock
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, nullcontext
from typing import Any

from IPython.core.formatters import BaseFormatter
from traitlets import ObjectName, Unicode

MAX_TABLE_CELLS = 1_000_000
"""Size of a table above which only its text and HTML are sent."""

MAX_JSON_CHARS = 10_000_000
"""Size of a list or dictionary as JSON above which only its text is sent."""

_environment = Lock()
"""Held while cells with environment variables of their own run, which last as long as the cell."""

_FORMATTERS = ("e2b/data", "e2b/chart", "e2b/json")

_followed = 0

logger = logging.getLogger(__name__)


class _DataFormatter(BaseFormatter):
    """Data of a table: a list of values for each column."""

    format_type = Unicode("e2b/data")
    print_method = ObjectName("_repr_e2b_data_")
    _return_type: Any = (dict,)


class _JsonFormatter(BaseFormatter):
    """Lists and dictionaries as JSON, as far as they have such a form."""

    format_type = Unicode("e2b/json")
    print_method = ObjectName("_repr_e2b_json_")
    _return_type: Any = (dict, list)

    def __call__(self, obj: Any) -> Any:
        """Format a list or dictionary."""
        if not isinstance(obj, list | dict):
            return None
        try:
            text = json.dumps(obj, allow_nan=False)
        except (TypeError, ValueError, RecursionError):
            return None
        return json.loads(text) if len(text) <= MAX_JSON_CHARS else None


class _ChartFormatter(BaseFormatter):
    """Data of a chart, in the form of the package e2b-charts."""

    format_type = Unicode("e2b/chart")
    print_method = ObjectName("_repr_e2b_chart_")
    _return_type: Any = (dict,)

    def __call__(self, obj: Any) -> Any:
        """Format a figure; ``%matplotlib`` removes functions that are registered for its type."""
        kind = type(obj)
        if (kind.__module__, kind.__name__) == ("matplotlib.figure", "Figure"):
            return _chart_data(obj)
        return None


@asynccontextmanager
async def prepared_for_client(
    formatters: dict[str, Any], variables: Mapping[str, str]
) -> AsyncIterator[None]:
    """Set environment variables, and format tables and charts as data, for as long as the block."""
    global _followed
    async with _environment if variables else nullcontext():
        before = {name: os.environ.get(name) for name in variables}
        os.environ.update(variables)
        _followed += 1
        _add(formatters)
        try:
            yield
        finally:
            _followed -= 1
            if not _followed:
                for name in _FORMATTERS:
                    formatters.pop(name, None)
            for name, value in before.items():
                os.environ.pop(name, None)
                if value is not None:
                    os.environ[name] = value


def _add(formatters: dict[str, Any]) -> None:
    if "e2b/data" in formatters:
        return
    data = _DataFormatter()
    data.for_type_by_name("pandas.core.frame", "DataFrame", _table_data)
    data.for_type_by_name("pandas", "DataFrame", _table_data)
    formatters |= zip(_FORMATTERS, (data, _ChartFormatter(), _JsonFormatter()), strict=True)


def _table_data(table: Any) -> dict[str, Any] | None:
    if table.size > MAX_TABLE_CELLS:
        return None
    columns = enumerate(map(str, table.columns))
    return {
        name: json.loads(table.iloc[:, number].to_json(orient="values", date_format="iso"))
        for number, name in columns
    }


def _chart_data(figure: Any) -> dict[str, Any] | None:
    """Return the data of a figure, or None without e2b-charts or for unknown kinds."""
    try:
        from e2b_charts import chart_figure_to_dict
    except ImportError:
        return None
    try:
        data: dict[str, Any] = chart_figure_to_dict(figure)
    except Exception as error:  # the package fails on some charts, which are shown as pictures
        logger.info("The data of a chart were not read: %s", error)
        return None
    return data
