"""What Tab offers in the lines of magics: what fits there, and nothing else."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from typing import Any

from IPython.core.completer import CompletionContext, SimpleCompletion, context_matcher
from IPython.core.interactiveshell import InteractiveShell

from oh_jupyter.kernel.magics.options import option_values

Finder = Callable[[str], list[str]]
"""What may become of the beginning of an argument."""

_MAX_PATHS = 1000
_ARGUMENT = re.compile(r"""("[^"]*|'[^']*|[^\s"']*)\Z""")
_WORD = re.compile(r"""("[^"]*"|'[^']*'|\S)+""")


class _NothingElse(list[SimpleCompletion]):
    """No completion, and so that IPython adds none: it asks for the length of what it has."""

    def __len__(self) -> int:
        return 1


class Completion:
    """Completes ``%name COMMAND PATH --options``, in a kernel and in a terminal.

    A matcher of IPython's second interface, not a hook for ``complete_command``: what
    jedi finds for the same letters would stand among the paths otherwise.
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
        """Put the completion of a magic into a shell.

        An argument is found by the finder of its name, such as PATH: that of the command, or of
        the option that stands in front of it; ``arguments`` are those without a command. Leading
        options stand before the first argument only.
        """
        self._magic = magic
        self._finders = finders
        self._arguments = arguments
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
        if line is None:
            return {"completions": [], "matched_fragment": "", "suppress": False}
        return self._answer(*self.find(line[1]))

    def _answer(self, argument: str, found: list[str]) -> dict[str, Any]:
        completions = [SimpleCompletion(text=text, type="path") for text in found]
        return {
            "completions": completions or _NothingElse(),
            "matched_fragment": argument,
            "suppress": True,
            "ordered": True,
        }

    def find(self, typed: str) -> tuple[str, list[str]]:
        """The last argument of what was typed after the magic's name, and what it may become."""
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
            return argument, self._found(awaited[0], argument)
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
        """What the argument of this number may become."""
        names = arguments.replace("[", "").replace("]", "").replace(" ...", "...").split()
        if names and number >= len(names) and names[-1].endswith("..."):
            number = len(names) - 1
        return self._found(names[number].rstrip("."), argument) if number < len(names) else []

    def _found(self, name: str, argument: str) -> list[str]:
        find = self._finders.get(name)
        return find(argument) if find is not None else []


def one_of(values: Any) -> Finder:
    """A finder among words, or among those that a function returns when it is asked."""
    return lambda argument: [
        value for value in (values() if callable(values) else values) if value.startswith(argument)
    ]


def complete_path(argument: str, directory: str = ".") -> list[str]:
    """Files, and directories with a slash; hidden ones only where a dot was typed."""
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
