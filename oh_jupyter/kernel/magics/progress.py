"""Progress of what takes a while: a bar of tqdm, in a notebook and in a terminal."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
from collections.abc import Callable, Iterator
from typing import Any

__all__ = ["bar_class", "progress_bar"]

_DELAY_SECONDS = 0.5


@contextlib.contextmanager
def progress_bar(shell: Any, title: str) -> Iterator[Callable[[int, int], object]]:
    """Show how a transfer goes on, if it takes longer than half a second.

    Yields what is to be called with the bytes since the last call and with all there are. In a
    kernel it is a widget, where there is ipywidgets.
    """
    bars: list[Any] = []

    def advance(done: int, total: int) -> None:
        if not bars:
            bars.append(
                bar_class(shell)(
                    desc=title,
                    total=total,
                    unit="B",
                    unit_scale=True,
                    unit_divisor=1024,
                    delay=_DELAY_SECONDS,
                    leave=False,
                )
            )
        bars[0].update(done)

    try:
        yield advance
    finally:
        for bar in bars:
            bar.close()


def bar_class(shell: Any) -> Any:
    """The class of tqdm that suits a shell."""
    # tqdm.auto warns where there is no ipywidgets; a bar of text is fine there.
    widgets = hasattr(shell, "kernel") and importlib.util.find_spec("ipywidgets") is not None
    return importlib.import_module("tqdm.notebook" if widgets else "tqdm.std").tqdm
