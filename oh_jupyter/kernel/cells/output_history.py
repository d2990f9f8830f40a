"""IPython's history of outputs, in which the cells of agents leave nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["without_output_history"]


class _DiscardingHistory(dict[int, list[Any]]):
    """A history that gives out a list for each cell, and keeps none."""

    def __missing__(self, key: int) -> list[Any]:
        return []


@contextmanager
def without_output_history(shell: Any) -> Iterator[None]:
    """Keep the outputs of a cell out of what ``%notebook`` exports.

    IPython (since 9.0) holds on to all that is printed, by the number of the cell. The cells of
    agents have no number of their own: their outputs would be found below the person's next
    cell, and never be forgotten, however much there is.
    """
    history = getattr(shell, "history_manager", None)
    kept = getattr(history, "outputs", None)
    if history is None or kept is None:
        yield
        return
    history.outputs = _DiscardingHistory()
    try:
        yield
    finally:
        history.outputs = kept
