"""``%oh_skills``: what an agent's cells can call."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import line_magic, magics_class
from IPython.core.magic_arguments import argument, magic_arguments

from oh_jupyter.errors import SkillError
from oh_jupyter.kernel.api import Oh
from oh_jupyter.kernel.display.table import Table
from oh_jupyter.kernel.magics.base import (
    Completion,
    OhMagics,
    help_option,
    parse_line,
    silenced_by_semicolon,
    wants_help,
)

__all__ = ["SkillsMagics"]

_COMMANDS = {"add": "add NAME", "remove": "remove NAME", "schema": "schema NAME", "docs": "docs"}


@magics_class
class SkillsMagics(OhMagics):
    """List, explain, add and remove agent skills."""

    def __init__(self, shell: InteractiveShell, oh: Oh) -> None:
        super().__init__(shell, oh)
        self._completion = _SkillCompletion(shell)

    @silenced_by_semicolon
    @magic_arguments()
    @help_option
    @argument(
        "words",
        nargs="*",
        help="a skill, to read its documentation; or add, remove, schema with a name; or docs",
    )
    @line_magic
    def oh_skills(self, line: str) -> Any:
        """List the agent skills, explain one, or change which there are.

        ``%oh_skills`` lists them, ``%oh_skills NAME`` explains one, ``%oh_skills schema NAME``
        describes its arguments for tools, ``%oh_skills docs`` prints what an agent is told
        of all of them. ``%oh_skills add NAME`` offers a function of this notebook to
        agents, ``%oh_skills add module:function`` one of a module, and ``%oh_skills remove
        NAME`` takes any of them away. Skills are plain functions:
        ``from oh_jupyter.skills.agentskills import *``.
        """
        from oh_jupyter.skills import documentation, find, registry, schema

        if wants_help(self.oh_skills, line):
            return None
        words: list[str] = parse_line(self.oh_skills, line).words
        if not words:
            rows = [
                (name, skill.signature, skill.docstring.partition("\n")[0])
                for name, skill in registry().items()
            ]
            return Table(("skill", "arguments", "what it does"), tuple(rows))
        command, names = words[0], words[1:]
        if command == "docs" and not names:
            print(documentation().rstrip())
            return None
        change: dict[str, Callable[[str], Any]] = {
            "add": self._add,
            "remove": self._remove,
            "schema": lambda name: print(json.dumps(schema(name), indent=2)),
        }
        try:
            if command in change and len(names) == 1:
                return change[command](names[0])
            if names or (command in change and command not in registry()):
                raise UsageError(
                    f"write %oh_skills [NAME], or one of: {', '.join(_COMMANDS.values())}"
                )
            find(command)
        except SkillError as problem:
            raise UsageError(str(problem)) from None
        skill = registry()[command]
        print(f"{command}{skill.signature}\n\n{skill.docstring}")
        return None

    def _add(self, target: str) -> None:
        from oh_jupyter.skills import add, find, register

        shell: Any = self.shell
        function = shell.user_ns.get(target)
        if ":" not in target and callable(function):
            try:
                register(function, target)
            except TypeError as problem:
                raise UsageError(str(problem)) from None
            name = target
        else:
            name = add(target)
            # Agents' cells have it at once; a name that the person uses stays as it is.
            shell.user_ns.setdefault(name, find(name))
        print(f"{name} is a skill now.")

    def _remove(self, name: str) -> None:
        from oh_jupyter.skills import find, remove

        function = find(name)
        remove(name)
        shell: Any = self.shell
        # A function that was written in this notebook is the person's own.
        if getattr(function, "__module__", "") != shell.user_module.__name__:
            shell.drop_by_id({name: function})
        print(f"{name} is no skill any more.")


class _SkillCompletion(Completion):
    """Completes skills and commands, then what a command is for."""

    def __init__(self, shell: InteractiveShell) -> None:
        super().__init__(shell, "oh_skills", (), ("--help",))
        self._namespace = shell.user_ns

    def find(self, typed: str) -> tuple[str, list[str]]:
        """The last argument, and what it may become."""
        from oh_jupyter.skills import available

        *words, argument = typed.split(" ")
        words = [word for word in words if word]
        if not words:
            found = [*available(), *_COMMANDS, "--help"]
        elif len(words) > 1 or words[0] not in _COMMANDS:
            found = []
        elif words[0] == "add":
            found = [n for n, v in self._namespace.items() if callable(v) and n[:1] != "_"]
        else:
            found = list(available())
        return argument, [name for name in found if name.startswith(argument)]
