"""Tab completion of a magic's commands, options and paths."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from IPython.core.completer import CompletionContext, SimpleCompletion, context_matcher
from IPython.core.interactiveshell import InteractiveShell

__all__ = ["Completion", "complete_path"]

_MAX_PATHS = 1000
_ARGUMENT = re.compile(r"""("[^"]*|'[^']*|[^\s"']*)\Z""")


class Completion:
    """Completes ``%name COMMAND PATH --options``, in a kernel and in a terminal.

    A matcher of IPython's second interface, not a hook for ``complete_command``: what
    jedi finds for the same letters would stand among the paths otherwise.
    """

    def __init__(
        self,
        shell: InteractiveShell,
        name: str,
        commands: Sequence[str],
        options: Iterable[str],
        complete: Callable[[str], list[str]] | None = None,
        *,
        find_commands: Callable[[], Sequence[str]] | None = None,
        leading_options: bool = False,
    ) -> None:
        """Put the completion of a magic into a shell.

        Its first argument is one of the commands, which may be found anew each time; any other
        one is completed by ``complete``, as a path when not given. Leading options stand before
        the first argument only.
        """
        self._commands = commands
        self._find_commands = find_commands
        self._options = sorted(options)
        self._complete = complete or complete_path
        self._leading_options = leading_options
        # A line may begin with an assignment, and the sign of a magic may be left out.
        self._line = re.compile(rf"\s*(?:[\w, ]+=\s*)?%{{0,2}}{name}\s(.*)", re.DOTALL)

        @context_matcher(identifier=name)
        def matcher(context: CompletionContext) -> Any:
            return self._match(context)

        self._matcher: Any = matcher
        self._matchers: list[Any] = shell.Completer.custom_matchers
        self._matchers.append(self._matcher)

    def close(self) -> None:
        """Take the completion out of the shell."""
        if self._matcher in self._matchers:
            self._matchers.remove(self._matcher)

    def _match(self, context: CompletionContext) -> dict[str, Any]:
        line = self._line.match(context.text_until_cursor)
        found: list[str] = []
        argument = ""
        if line is not None:
            argument, found = self.find(line[1])
        return self._answer(argument, found)

    def _answer(self, argument: str, found: list[str]) -> dict[str, Any]:
        return {
            "completions": [SimpleCompletion(text=text, type="path") for text in found],
            "matched_fragment": argument,
            "suppress": bool(found),
            "ordered": True,
        }

    def find(self, typed: str) -> tuple[str, list[str]]:
        """The last argument of what was typed after the magic's name, and what it may become."""
        match = _ARGUMENT.search(typed)
        argument = match[0] if match is not None else ""
        words = typed[: len(typed) - len(argument)].split()
        begun = any(not word.startswith("-") for word in words)
        if argument.startswith("-"):
            if begun and self._leading_options:
                # An option of the command: it stays as it is. With nothing, IPython would offer
                # every name of Python.
                return argument, [argument]
            options = self._options
            return argument, [name for name in options if name.startswith(argument)]
        commands = self._find_commands() if self._find_commands else self._commands
        if commands and not begun:
            return argument, [name for name in commands if name.startswith(argument)]
        return argument, self._complete(argument)


def complete_path(argument: str, directory: str = ".") -> list[str]:
    """Files, and directories with a slash; hidden ones only where a dot was typed.

    A name with a blank needs a quote in front, which is closed.
    """
    quote = argument[:1] if argument[:1] in ("'", '"') else ""
    folder, _, beginning = argument[len(quote) :].rpartition("/")
    shown = f"{quote}{folder}/" if "/" in argument else quote
    where = os.path.expanduser(folder or ("/" if "/" in argument else "."))
    where = os.path.join(directory, where)
    found = []
    try:
        with os.scandir(where) as entries:
            for entry in entries:
                name = entry.name
                if not name.startswith(beginning) or (name[0] == "." and beginning[:1] != "."):
                    continue
                if not quote and re.search(r"[\s'\"]", name):
                    continue
                found.append(f"{shown}{name}" + ("/" if entry.is_dir() else quote))
    except OSError:
        return []
    return sorted(found)[:_MAX_PATHS]
