"""What all magics share."""

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
    from oh_jupyter.kernel.magics.lazy import RecentCells

Method = TypeVar("Method", bound=Callable[..., Any])


class OhMagics(Magics):
    """Base of the magics: each translates a line into an Action and returns its Observation."""

    recent_cells: RecentCells
    """Set by whoever registers the magics."""

    def __init__(self, shell: InteractiveShell, oh: Oh) -> None:
        super().__init__(shell)
        self.oh = oh
        self._completions: list[Completion] = []

    def complete(self, name: str, finders: Mapping[str, Finder], **options: Any) -> None:
        """Complete the lines of a magic, as `Completion` describes it."""
        assert self.shell is not None
        self._completions.append(
            Completion(self.shell, name, getattr(self, name), finders, **options)
        )

    def close(self) -> None:
        """Take out of the shell what was put into it besides the magics: the completion."""
        for each in self._completions:
            each.close()

    def expand(self, text: str) -> str:
        """Replace each ``{name}`` by the value of the person's variable, where there is one.

        Commands and cell bodies are never expanded: braces have a meaning of their own there.
        """
        shell: Any = self.shell
        namespace = shell.user_ns

        def value(match: re.Match[str]) -> str:
            return str(namespace[match[1]]) if match[1] in namespace else match[0]

        return re.sub(r"\{([A-Za-z_]\w*)\}", value, text)


def silenced_by_semicolon(method: Method) -> Method:
    """Decorator that lets a semicolon at the end of a line or body hide the value.

    IPython's own ``output_can_be_silenced`` reads the text as Python to find it, and
    raises where that has an open bracket or quote: when all is done already.
    """

    @wraps(method)
    def quiet(self: OhMagics, line: str, cell: str | None = None) -> Any:
        value = method(self, line) if cell is None else method(self, line, cell)
        return None if (line if cell is None else cell).rstrip().endswith(";") else value

    return cast(Method, quiet)


_DELAY_SECONDS = 0.5


@contextlib.contextmanager
def progress_bar(shell: Any, title: str) -> Iterator[Callable[[int, int], object]]:
    """A bar of what takes long, to be told the bytes since the last call, and of all."""
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
