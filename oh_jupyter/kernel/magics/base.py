"""Base class and helpers of the magics."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import re
from collections.abc import Callable, Iterator, Mapping
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import Magics

from oh_jupyter.kernel.magics.completion import Completion, Finder

if TYPE_CHECKING:
    from oh_jupyter.kernel.api import Oh
    from oh_jupyter.kernel.magics.recent_cells import RecentCells

Method = TypeVar("Method", bound=Callable[..., Any])


class OhMagics(Magics):
    """Base of the magics: each translates a line into an Action and returns its Observation."""

    recent_cells: RecentCells
    """Set by ``LazyMagics``."""

    def __init__(self, shell: InteractiveShell, oh: Oh) -> None:
        super().__init__(shell)
        self.oh = oh
        self._completions: list[Completion] = []

    def complete(self, name: str, finders: Mapping[str, Finder], **options: Any) -> None:
        """Complete the lines of a magic; see `Completion`."""
        assert self.shell is not None
        self._completions.append(
            Completion(self.shell, name, getattr(self, name), finders, **options)
        )

    def close(self) -> None:
        """Remove the completions from the shell."""
        for each in self._completions:
            each.close()

    def expand(self, text: str) -> str:
        """Replace each ``{name}`` by the value of the person's variable, if it exists.

        Commands and cell bodies are never expanded, because braces have their own meaning there.
        """
        shell: Any = self.shell
        namespace = shell.user_ns

        def value(match: re.Match[str]) -> str:
            return str(namespace[match[1]]) if match[1] in namespace else match[0]

        return re.sub(r"\{([A-Za-z_]\w*)\}", value, text)


def silenced_by_semicolon(method: Method) -> Method:
    """Decorator that hides the value if the line or body ends with a semicolon.

    IPython's own ``output_can_be_silenced`` parses the text as Python, and raises for an open
    bracket or quote after the work is done.
    """

    @wraps(method)
    def quiet(self: OhMagics, line: str, cell: str | None = None) -> Any:
        value = method(self, line) if cell is None else method(self, line, cell)
        return None if (line if cell is None else cell).rstrip().endswith(";") else value

    return cast(Method, quiet)


_DELAY_SECONDS = 0.5


@contextlib.contextmanager
def progress_bar(shell: Any, title: str) -> Iterator[Callable[[int, int], object]]:
    """Show a bar; call the yielded function with the bytes since the last call, and the total."""
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
    """Return the class of tqdm that suits a shell."""
    # tqdm.auto warns if ipywidgets is missing; a text bar is fine then.
    widgets = hasattr(shell, "kernel") and importlib.util.find_spec("ipywidgets") is not None
    return importlib.import_module("tqdm.notebook" if widgets else "tqdm.std").tqdm
