"""Tab completion of the magics' lines."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from typing import Any

from IPython.core.completer import CompletionContext, SimpleCompletion, context_matcher
from IPython.core.interactiveshell import InteractiveShell

from oh_jupyter.kernel.magics.options import option_values

Finder = Callable[[str], list[str]]
"""Returns the completions of an argument."""

_MAX_PATHS = 1000
_ARGUMENT = re.compile(r"""("[^"]*|'[^']*|[^\s"']*)\Z""")
_WORD = re.compile(r"""("[^"]*"|'[^']*'|\S)+""")


class _NothingElse(list[SimpleCompletion]):
    """An empty list of completions that keeps IPython from adding others: its length is 1."""

    def __len__(self) -> int:
        return 1


class Completion:
    """Completes ``%name COMMAND PATH --options``, in a kernel and in a terminal.

    A matcher of IPython's second interface, not a hook for ``complete_command``, because jedi would
    add names among the paths.
    """

    def __init__(
        self,
        shell: InteractiveShell,
        name: str,
        magic: Any,
        finders: Mapping[str, Finder],
        *,
        arguments: str = "",
        leading_options: bool = False,
    ) -> None:
        """Add the completion of a magic to a shell.

        The finder of an argument's name, such as PATH, completes it: an argument of the command, or
        of the option before it; ``arguments`` are those without a command. Leading options come
        before the first argument only.
        """
        self._magic = magic
        self._finders = finders
        self._arguments = arguments
        self._leading_options = leading_options
        # A line may start with an assignment, and the percent sign may be missing.
        self._line = re.compile(rf"\s*(?:[\w, ]+=\s*)?%{{0,2}}{name}\s(.*)", re.DOTALL)

        @context_matcher(identifier=name)
        def matcher(context: CompletionContext) -> Any:
            return self._match(context)

        self._matcher: Any = matcher
        self._matchers: list[Any] = shell.Completer.custom_matchers
        self._matchers.append(self._matcher)

    def close(self) -> None:
        """Remove the completion from the shell."""
        if self._matcher in self._matchers:
            self._matchers.remove(self._matcher)

    def _match(self, context: CompletionContext) -> dict[str, Any]:
        line = self._line.match(context.text_until_cursor)
        if line is None:
            return {"completions": [], "matched_fragment": "", "suppress": False}
        return self._result(*self.find(line[1]))

    def _result(self, argument: str, texts: list[str]) -> dict[str, Any]:
        completions = [SimpleCompletion(text=text, type="path") for text in texts]
        return {
            "completions": completions or _NothingElse(),
            "matched_fragment": argument,
            "suppress": True,
            "ordered": True,
        }

    def find(self, typed: str) -> tuple[str, list[str]]:
        """Return the last argument after the magic's name, and its completions."""
        match = _ARGUMENT.search(typed)
        argument = match[0] if match is not None else ""
        values = option_values(self._magic)
        words: list[str] = []
        awaited: list[str] = []
        for each in _WORD.finditer(typed[: len(typed) - len(argument)]):
            if awaited:
                awaited.pop(0)
            elif each[0] in values and not (words and self._leading_options):
                awaited += values[each[0]]
            else:
                words.append(each[0])
        if awaited:
            return argument, self._completions_of(awaited[0], argument)
        command = self._magic.commands.get(words[0]) if words else None
        if argument.startswith("-"):
            if words and self._leading_options:
                return argument, []
            options = [name for name in values if name.startswith("--")]
            if command is not None:
                options = [*command.options, "--help"]
            return argument, one_of(sorted(options))(argument)
        if not words and self._magic.commands:
            commands = one_of(self._magic.commands)(argument)
            return argument, commands + self._following(self._arguments, 0, argument)
        if command is not None:
            return argument, self._following(command.arguments, len(words) - 1, argument)
        return argument, self._following(self._arguments, len(words), argument)

    def _following(self, arguments: str, number: int, argument: str) -> list[str]:
        """Return the completions of the argument with this number."""
        names = arguments.replace("[", "").replace("]", "").replace(" ...", "...").split()
        if names and number >= len(names) and names[-1].endswith("..."):
            number = len(names) - 1
        return (
            self._completions_of(names[number].rstrip("."), argument) if number < len(names) else []
        )

    def _completions_of(self, name: str, argument: str) -> list[str]:
        find = self._finders.get(name)
        return find(argument) if find is not None else []


def one_of(values: Any) -> Finder:
    """Return a finder among words, or among the results of a function."""
    return lambda argument: [
        value for value in (values() if callable(values) else values) if value.startswith(argument)
    ]


def complete_path(argument: str, directory: str = ".") -> list[str]:
    """Return files, and directories with a slash; hidden ones only after a dot."""
    quote = argument[:1] if argument[:1] in ("'", '"') else ""
    folder, _, beginning = argument[len(quote) :].rpartition("/")
    shown = f"{quote}{folder}/" if "/" in argument else quote
    root = os.path.expanduser(folder or ("/" if "/" in argument else "."))
    root = os.path.join(directory, root)
    paths = []
    try:
        with os.scandir(root) as entries:
            for entry in entries:
                name = entry.name
                if not name.startswith(beginning) or (name[0] == "." and beginning[:1] != "."):
                    continue
                if not quote and re.search(r"[\s'\"]", name):
                    continue
                paths.append(f"{shown}{name}" + ("/" if entry.is_dir() else quote))
    except OSError:
        return []
    return sorted(paths)[:_MAX_PATHS]
