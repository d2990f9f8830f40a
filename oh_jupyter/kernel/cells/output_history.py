"""Cells of agents leave nothing in the shell's record of outputs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["outputs_unkept"]


class _Unkept(dict[int, list[Any]]):
    """Gives everybody a list, and keeps none."""

    def __missing__(self, key: int) -> list[Any]:
        return []


@contextmanager
def outputs_unkept(shell: Any) -> Iterator[None]:
    """Keep the outputs of a cell out of what ``%notebook`` exports.

    IPython (since 9.0) holds on to all that is printed, by the number of the cell. The cells of
    agents have no number of their own: their outputs would be found below the person's next
    cell, and never be forgotten, however much there is.

    Args:
        shell: The shell.

    Yields:
        Nothing; the cell is run meanwhile.
    """
    history = getattr(shell, "history_manager", None)
    kept = getattr(history, "outputs", None)
    if history is None or kept is None:
        yield
        return
    history.outputs = _Unkept()
    try:
        yield
    finally:
        history.outputs = kept
