"""Options of magics: their help with examples, and the parsing of a line."""

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
from typing import Any, cast

from IPython.core.error import UsageError
from IPython.core.magic_arguments import argument, magic_arguments
from IPython.utils.process import arg_split  # type: ignore[attr-defined]

from oh_jupyter.events.fields import check_seconds

_WIDTH_CHARS = 80


@dataclass(frozen=True)
class MagicCommand:
    """A command of a magic: the first word of the line."""

    arguments: str
    """Its arguments, such as ``PATH [FILE]``; dots after a name allow repetition."""
    help: str
    example: str
    options: tuple[str, ...] = ()
    """Long names of its options."""
    has_body: bool = False
    """Whether its text is the body of the cell."""

    @property
    def sign(self) -> str:
        """Percent signs at the start of the line."""
        return "%%" if self.has_body else "%"


@dataclass(frozen=True)
class MagicOption:
    """An option of a magic, as its ``@argument`` declares it."""

    names: tuple[str, ...]
    settings: Mapping[str, Any]

    @property
    def values(self) -> tuple[str, ...]:
        """Names of its values."""
        if self.settings.get("action") == "store_true":
            return ()
        names = self.settings.get("metavar") or self.dest
        return names if isinstance(names, tuple) else (names,)

    @property
    def dest(self) -> str:
        """Attribute of its value in the parsed line."""
        long = next((name for name in self.names if name.startswith("--")), self.names[0])
        return str(self.settings.get("dest") or long.lstrip("-").replace("-", "_"))

    def is_set(self, options: Namespace) -> bool:
        """Return whether a parsed line has a value other than the default."""
        default = self.settings.get("default", None if self.values else False)
        return bool(getattr(options, self.dest) != default)

    def belongs_to(self, command: MagicCommand) -> bool:
        """Return whether a command takes it."""
        return not {*command.options, "--help"}.isdisjoint(self.names)


class _PlainHelp(RawDescriptionHelpFormatter):
    """Help as plain text; IPython writes it for Sphinx."""

    def add_usage(self, usage: Any, actions: Any, groups: Any, prefix: str | None = None) -> None:
        super().add_usage(usage, actions, groups, prefix or "%")

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return super()._fill_text(text.replace("``", ""), width, indent)


def seconds(text: str) -> float:
    """Parse an option's number of seconds."""
    try:
        return check_seconds(float(text), "seconds")
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is not a number of seconds") from None


def magic_options(
    commands: Mapping[str, MagicCommand] | None = None,
    *,
    examples: str = "",
    is_leading: bool = False,
) -> Callable[[Any], Any]:
    """Decorator that gives a magic its options, and ``--help`` unless they are leading only.

    IPython shows one line for an interrupt, without the place where the magic waited.
    """

    def decorate(method: Any) -> Any:
        method.__doc__ = documentation = cleandoc(method.__doc__)
        with_help = argument("-h", "--help", action="store_true", help="show this text")(method)
        declared = [MagicOption(each.args, each.kwds) for each in with_help.decorators[::-1]]
        magic: Any = magic_arguments()(with_help)
        parser = magic.parser
        parser.formatter_class = _PlainHelp
        parser.description = documentation
        parser.epilog = _commands_help(parser.prog, commands or {}) + _examples(examples)
        magic.options = [option for option in declared if option.names[0].startswith("-")]
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


def _commands_help(name: str, commands: Mapping[str, MagicCommand]) -> str:
    if not commands:
        return ""
    heads = [f"{each.sign}{name} {word} {each.arguments}" for word, each in commands.items()]
    width = max(map(len, heads)) + 2
    lines = [
        f"  {head:{width}}{each.help.partition('. ')[0].rstrip('.')}"
        for head, each in zip(heads, commands.values(), strict=True)
    ]
    return "\n".join(["commands:", *lines, "", f"%{name} COMMAND --help explains a command.", ""])


def _examples(text: str) -> str:
    return f"examples:\n{indent(cleandoc(text), '  ')}" if text else ""


def wants_help(magic: Any, line: str) -> bool:
    """Print the help of a magic or its command if the line asks for it; return whether it does."""
    is_asked = re.search(r"(^|\s)(-h|--help)(\s|$)", line) is not None
    if is_asked:
        print_help(magic, next((word for word in line.split() if word[0] != "-"), ""))
    return is_asked


def print_help(magic: Any, command: str = "") -> None:
    """Print the help of a magic, or of one of its commands."""
    known = magic.commands.get(command)
    parser = magic.parser if known is None else _command_parser(magic, command, known)
    print(parser.format_help().strip())


def _command_parser(magic: Any, name: str, command: MagicCommand) -> ArgumentParser:
    prog = f"{magic.parser.prog} {name}"
    parser = ArgumentParser(
        prog,
        usage=f"{prog} [options] {command.arguments}".rstrip(),
        description=fill(command.help, _WIDTH_CHARS),
        epilog=_examples(command.example),
        formatter_class=_PlainHelp,
        add_help=False,
    )
    for option in magic.options:
        if option.belongs_to(command):
            parser.add_argument(*option.names, **option.settings)
    return parser


def parse_line(magic: Any, line: str) -> Namespace:
    """Parse the arguments of a magic, with options in any position; raise UsageError."""
    names = [name for option in magic.options for name in option.names]
    options, unknown = magic.parser.parse_known_intermixed_args(arg_split(line))
    word = getattr(options, "command", "")
    command = magic.commands.get(word)
    check_unknown_options(unknown, names if command is None else command.options)
    if unknown:
        magic.parser.error(_unrecognized(magic, word, command, unknown))
    if command is not None:
        for option in magic.options:
            if not option.belongs_to(command) and option.is_set(options):
                known = ", ".join(command.options) or "none"
                raise UsageError(f"{word} has no option {option.names[-1]}. Options: {known}")
    return cast(Namespace, options)


def check_unknown_options(words: Iterable[str], names: Iterable[str]) -> None:
    """Raise a UsageError with the valid names if one of these words is an option."""
    for word in words:
        if word.startswith("-"):
            raise UsageError(_unknown(word.partition("=")[0], names))


def _unrecognized(magic: Any, word: str, command: MagicCommand | None, unknown: list[str]) -> str:
    """Return the message for extra arguments, with the option that they may belong to."""
    extra = " ".join(unknown)
    hint = f". %{magic.parser.prog} --help explains its use"
    if command is not None:
        numeric = (each.names[-1] for each in magic.options if each.settings.get("type") is int)
        option = next((name for name in numeric if name in command.options), "")
        hint = f". %{magic.parser.prog} {word} --help explains its use"
        if option and unknown[0].isdecimal():
            hint = f". Did you mean {option} {extra}?"
    return f"unrecognized arguments: {extra}{hint}"


def _unknown(name: str, known: Iterable[str]) -> str:
    return f"Unknown option {name}. Options: {', '.join(sorted(known)) or 'none'}"


def unquoted(text: str) -> str:
    """Return an argument without the quotes around it."""
    is_quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "'\""
    return text[1:-1] if is_quoted else text


def option_values(magic: Any) -> dict[str, tuple[str, ...]]:
    """Return the names of a magic's options, each with the names of its values."""
    return {name: option.values for option in magic.options for name in option.names}


def leading_options(magic: Any, line: str) -> tuple[Namespace, str]:
    """Return the options before a command, and the rest of the line as typed; raise UsageError."""
    values = option_values(magic)
    rest = line.lstrip()
    options: list[str] = []
    while match := re.match(r"(--?[A-Za-z][\w-]*)(=\S*)?(\s+|$)", rest):
        name = match[1]
        if name not in values:
            raise UsageError(
                f"{_unknown(name, values)}. Put -- before a command that starts with a dash"
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
