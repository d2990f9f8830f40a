"""What all magics share: their options, their help, and their completion."""

from __future__ import annotations

import os
import re
from argparse import Namespace
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

from IPython.core.completer import CompletionContext, SimpleCompletion, context_matcher
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import Magics
from IPython.core.magic_arguments import argument
from IPython.utils.process import arg_split  # type: ignore[attr-defined]

if TYPE_CHECKING:
    from oh_jupyter.kernel.api import Oh
    from oh_jupyter.kernel.magics.lazy import RecentCells

__all__ = [
    "Completion",
    "OhMagics",
    "complete_path",
    "help_option",
    "leading_options",
    "option_names",
    "parse_line",
    "print_help",
    "silenced_by_semicolon",
    "unquoted",
    "wants_help",
]


Method = TypeVar("Method", bound=Callable[..., Any])


class OhMagics(Magics):
    """Base of the magics: each translates a line into an Action and returns its Observation."""

    recent_cells: RecentCells
    """Set by whoever registers the magics."""

    _completion: Completion | None = None

    def __init__(self, shell: InteractiveShell, oh: Oh) -> None:
        super().__init__(shell)
        self.oh = oh

    def close(self) -> None:
        """Take out of the shell what was put into it besides the magics: the completion."""
        if self._completion is not None:
            self._completion.close()

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


def help_option(method: Method) -> Method:
    """Decorator that gives a magic the option ``--help``, below ``@magic_arguments()``."""
    decorated: Method = argument("-h", "--help", action="store_true", help="show this text")(method)
    return decorated


def wants_help(magic: Any, line: str) -> bool:
    """Print a magic's help if the line asks for it, and tell whether it does."""
    asked = re.search(r"(^|\s)(-h|--help)(\s|$)", line) is not None
    if asked:
        print_help(magic)
    return asked


def print_help(magic: Any) -> None:
    """Print a magic's help as plain text; IPython writes it for Sphinx."""
    print(magic.parser.format_help().removeprefix("::").strip().replace("``", ""))


def parse_line(magic: Any, line: str) -> Namespace:
    """The arguments of a magic, its options before or after what they are for (UsageError)."""
    return cast(Namespace, magic.parser.parse_intermixed_args(arg_split(line)))


def unquoted(text: str) -> str:
    """An argument without the quotes around it."""
    quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "'\""
    return text[1:-1] if quoted else text


def option_names(magic: Any) -> list[str]:
    """The long names of a magic's options."""
    return [name for name in _options(magic) if name.startswith("--")]


def _options(magic: Any) -> dict[str, bool]:
    """The names of a magic's options, each with whether it takes a value."""
    return {
        name: action.nargs != 0
        for action in magic.parser._actions  # argparse has no public list
        for name in action.option_strings
    }


def leading_options(magic: Any, line: str) -> tuple[Namespace, str]:
    """The options in front of a command, and the rest of the line as it was typed.

    A UsageError if an option is unknown or has a bad value.
    """
    takes_value = _options(magic)
    rest = line.lstrip()
    options: list[str] = []
    while match := re.match(r"(--?[A-Za-z][\w-]*)(=\S*)?(\s+|$)", rest):
        name = match[1]
        if name not in takes_value:
            raise UsageError(
                f"unknown option {name}. Options: {', '.join(sorted(takes_value))}. "
                "Put -- in front of a command that begins with a dash"
            )
        options.append(match[0].strip())
        rest = rest[match.end() :]
        if takes_value[name] and match[2] is None:
            value, _, rest = rest.partition(" ")
            options.append(value)
            rest = rest.lstrip()
    if re.match(r"--(\s|$)", rest):
        rest = rest[2:].lstrip()
    return parse_line(magic, " ".join(options)), rest


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
