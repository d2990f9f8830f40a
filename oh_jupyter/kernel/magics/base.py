"""What all magics share."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import Magics

from oh_jupyter.kernel.magics.completion import Completion, Finder

if TYPE_CHECKING:
    from oh_jupyter.kernel.api import Oh
    from oh_jupyter.kernel.magics.lazy import RecentCells

__all__ = ["OhMagics", "silenced_by_semicolon"]


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
