"""The options of magics: their help, with examples, and how a line is read."""

from __future__ import annotations

import re
from argparse import (
    ArgumentParser,
    ArgumentTypeError,
    Namespace,
    RawDescriptionHelpFormatter,
)
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import wraps
from inspect import cleandoc
from textwrap import fill, indent
from typing import Any

from IPython.core.error import UsageError
from IPython.core.magic_arguments import argument, magic_arguments
from IPython.utils.process import arg_split  # type: ignore[attr-defined]

from oh_jupyter.events.fields import check_seconds

_WIDTH_CHARS = 80


@dataclass(frozen=True)
class Command:
    """What a magic does where a line begins with this word."""

    arguments: str
    """What follows, such as ``PATH [FILE]``; dots after a name let it repeat."""
    help: str
    example: str
    options: tuple[str, ...] = ()
    """The long names of the options that it takes."""
    has_body: bool = False
    """Whether its text is the body of the cell."""

    @property
    def sign(self) -> str:
        """What the line begins with."""
        return "%%" if self.has_body else "%"


class _PlainHelp(RawDescriptionHelpFormatter):
    """Help as plain text; IPython writes it for Sphinx."""

    def add_usage(self, usage: Any, actions: Any, groups: Any, prefix: str | None = None) -> None:
        super().add_usage(usage, actions, groups, prefix or "%")

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return super()._fill_text(text.replace("``", ""), width, indent)


def seconds(text: str) -> float:
    """The value of an option that is a number of seconds."""
    try:
        return check_seconds(float(text), "seconds")
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is no number of seconds") from None


def magic_options(
    commands: Mapping[str, Command] | None = None, *, examples: str = "", is_leading: bool = False
) -> Callable[[Any], Any]:
    """Decorator that gives a magic its options, and ``--help`` unless they stand in front only.

    IPython shows one line of an interrupt: where the magic waited is of no interest.
    """

    def decorate(method: Any) -> Any:
        method.__doc__ = documentation = cleandoc(method.__doc__)
        with_help = argument("-h", "--help", action="store_true", help="show this text")(method)
        magic: Any = magic_arguments()(with_help)
        parser = magic.parser
        parser.formatter_class = _PlainHelp
        parser.description = documentation
        parser.epilog = _commands_help(parser.prog, commands or {}) + _examples(examples)
        magic.commands = dict(commands or {})
        magic.__doc__ = parser.format_help()

        @wraps(magic)
        def run(self: Any, line: str, *cell: str) -> Any:
            if not is_leading and wants_help(magic, line):
                return None
            try:
                return magic(self, line, *cell)
            except KeyboardInterrupt as interrupt:
                interrupt._render_traceback_ = lambda: ["KeyboardInterrupt"]  # type: ignore[attr-defined]
                raise

        return run

    return decorate


def _commands_help(name: str, commands: Mapping[str, Command]) -> str:
    if not commands:
        return ""
    heads = [f"{each.sign}{name} {word} {each.arguments}" for word, each in commands.items()]
    width = max(map(len, heads)) + 2
    lines = [
        f"  {head:{width}}{each.help.partition('. ')[0].rstrip('.')}"
        for head, each in zip(heads, commands.values(), strict=True)
    ]
    return "\n".join(["commands:", *lines, "", f"%{name} COMMAND --help says more about one.", ""])


def _examples(text: str) -> str:
    return f"examples:\n{indent(cleandoc(text), '  ')}" if text else ""


def wants_help(magic: Any, line: str) -> bool:
    """Print the help of a magic, or of its command, if the line asks for it; tell whether."""
    asked = re.search(r"(^|\s)(-h|--help)(\s|$)", line) is not None
    if asked:
        print_help(magic, next((word for word in line.split() if word[0] != "-"), ""))
    return asked


def print_help(magic: Any, command: str = "") -> None:
    """Print the help of a magic, or of one of its commands."""
    parser = magic.parser
    if found := magic.commands.get(command):
        parser = ArgumentParser(
            f"{parser.prog} {command}",
            usage=f"{parser.prog} {command} [options] {found.arguments}".rstrip(),
            description=fill(found.help, _WIDTH_CHARS),
            epilog=_examples(found.example),
            formatter_class=_PlainHelp,
            add_help=False,
        )
        for option in _options(magic):
            if not _is_foreign(option, found):
                parser._add_action(option)  # argparse has no public way
    print(parser.format_help().strip())


def _options(magic: Any) -> list[Any]:
    # argparse has no public list
    return [action for action in magic.parser._actions if action.option_strings]


def _is_foreign(option: Any, command: Command) -> bool:
    """Whether a command does not take an option."""
    return not {*command.options, "--help"} & {*option.option_strings}


def parse_line(magic: Any, line: str) -> Namespace:
    """The arguments of a magic, its options before or after what they are for (UsageError)."""
    found = parse_words(magic.parser, arg_split(line), magic.commands)
    command = magic.commands.get(getattr(found, "command", None))
    if command is not None:
        for option in _options(magic):
            if _is_foreign(option, command) and getattr(found, option.dest) != option.default:
                taken = ", ".join(command.options) or "none"
                raise UsageError(
                    f"{found.command} has no option {option.option_strings[-1]}. Options: {taken}"
                )
    return found


def parse_words(
    parser: ArgumentParser, words: list[str], commands: Mapping[str, Command] | None = None
) -> Namespace:
    """The arguments in words; a UsageError that names the options if one is unknown."""
    found, unknown = parser.parse_known_intermixed_args(words)
    command = (commands or {}).get(getattr(found, "command", ""))
    for word in unknown:
        if word.startswith("-"):
            # argparse has no public list
            known = command.options if command else parser._option_string_actions
            raise UsageError(_unknown(word.partition("=")[0], known))
    if unknown:
        extra = " ".join(unknown)
        number = _option_of_numbers(parser, command) if command and unknown[0].isdecimal() else ""
        usage = f"%{parser.prog} {found.command} --help tells how it is used" if command else ""
        meant = f". Did you mean {number} {extra}?" if number else usage and f". {usage}"
        parser.error(f"unrecognized arguments: {extra}{meant}")
    return found


def _option_of_numbers(parser: ArgumentParser, command: Command) -> str:
    """The first option of a command that takes a number; "" if none does."""
    found = (action.option_strings for action in parser._actions if action.type is int)
    return next((names[-1] for names in found if names and names[-1] in command.options), "")


def _unknown(name: str, known: Iterable[str]) -> str:
    return f"Unknown option {name}. Options: {', '.join(sorted(known)) or 'none'}"


def unquoted(text: str) -> str:
    """An argument without the quotes around it."""
    quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "'\""
    return text[1:-1] if quoted else text


def option_values(magic: Any) -> dict[str, tuple[str, ...]]:
    """The names of a magic's options, each with what its values are called."""
    found = {}
    for action in _options(magic):
        names = action.metavar or action.dest
        values = names if isinstance(names, tuple) else (names,)
        found.update(dict.fromkeys(action.option_strings, () if action.nargs == 0 else values))
    return found


def leading_options(magic: Any, line: str) -> tuple[Namespace, str]:
    """The options in front of a command (UsageError), and the rest of the line as it was typed."""
    values = option_values(magic)
    rest = line.lstrip()
    options: list[str] = []
    while match := re.match(r"(--?[A-Za-z][\w-]*)(=\S*)?(\s+|$)", rest):
        name = match[1]
        if name not in values:
            raise UsageError(
                f"{_unknown(name, values)}. Put -- in front of a command that begins with a dash"
            )
        options.append(match[0].strip())
        rest = rest[match.end() :]
        if values[name] and match[2] is None:
            value, _, rest = rest.partition(" ")
            options.append(value)
            rest = rest.lstrip()
    if re.match(r"--(\s|$)", rest):
        rest = rest[2:].lstrip()
    return parse_line(magic, " ".join(options)), rest
