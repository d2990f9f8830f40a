"""``%oh_skills``: functions for agents' cells."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import line_magic, magics_class
from IPython.core.magic_arguments import argument

from oh_jupyter.errors import SkillError
from oh_jupyter.kernel.api import Oh
from oh_jupyter.kernel.display.table import Table
from oh_jupyter.kernel.magics.base import OhMagics, silenced_by_semicolon
from oh_jupyter.kernel.magics.completion import one_of
from oh_jupyter.kernel.magics.options import MagicCommand, magic_options, parse_line

if TYPE_CHECKING:
    from oh_jupyter.skills import SkillFolder

_COMMANDS = {
    "add": MagicCommand(
        "FUNCTION",
        "Offer a function to agents, from this notebook or as module:function.",
        "%oh_skills add my_function\n%oh_skills add statistics:median",
    ),
    "remove": MagicCommand("NAME", "Remove a skill.", "%oh_skills remove my_function"),
    "schema": MagicCommand(
        "NAME", "Describe a skill's arguments for tools.", "%oh_skills schema open_file"
    ),
    "docs": MagicCommand("", "Print the agents' documentation of all skills.", "%oh_skills docs"),
}


@magics_class
class SkillsMagics(OhMagics):
    """List, explain, add and remove agent skills."""

    def __init__(self, shell: InteractiveShell, oh: Oh) -> None:
        super().__init__(shell, oh)
        self.complete(
            "oh_skills",
            {"FUNCTION": one_of(self._functions), "NAME": one_of(self._names)},
            arguments="NAME",
        )

    @silenced_by_semicolon
    @magic_options(_COMMANDS, examples="%oh_skills search_dir")
    @argument("words", nargs="*", metavar="NAME", help="a skill to explain, or a command")
    @line_magic
    def oh_skills(self, line: str) -> Any:
        """List the agent skills, explain one, or add and remove skills.

        ``%oh_skills`` lists them, ``%oh_skills NAME`` explains one. Skills are plain functions:
        ``from oh_jupyter.skills.agentskills import *``; or folders of the workspace with a
        ``SKILL.md``, which guests can read.
        """
        from oh_jupyter.skills import documentation, find, registry, schema, skill_folders

        words: list[str] = parse_line(self.oh_skills, line).words
        if not words:
            rows = [
                (name, skill.signature, skill.docstring.partition("\n")[0])
                for name, skill in registry().items()
            ]
            folders = skill_folders(self.oh.host.workspace_dir)
            rows += [(each.name, "SKILL.md", each.description) for each in folders]
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
                known = ", ".join(f"{w} {each.arguments}".strip() for w, each in _COMMANDS.items())
                raise UsageError(f"write %oh_skills [NAME], or one of: {known}")
            folder = self._folder(command)
            if folder is not None and command not in registry():
                print(folder.path.read_text("utf-8").rstrip())
                return None
            find(command)
        except SkillError as error:
            raise UsageError(str(error)) from None
        skill = registry()[command]
        print(f"{command}{skill.signature}\n\n{skill.docstring}")
        return None

    def _folder(self, name: str) -> SkillFolder | None:
        from oh_jupyter.skills import skill_folders

        folders = skill_folders(self.oh.host.workspace_dir)
        return next((each for each in folders if each.name == name), None)

    def _names(self) -> list[str]:
        from oh_jupyter.skills import available, skill_folders

        return [*available(), *(each.name for each in skill_folders(self.oh.host.workspace_dir))]

    def _add(self, target: str) -> None:
        from oh_jupyter.skills import add, find, register

        shell: Any = self.shell
        function = shell.user_ns.get(target)
        if ":" not in target and callable(function):
            try:
                register(function, target)
            except TypeError as error:
                raise UsageError(str(error)) from None
            name = target
        else:
            name = add(target)
            # Agents' cells see it at once; do not overwrite a name that the person uses.
            shell.user_ns.setdefault(name, find(name))
        print(f"{name} is now a skill.")

    def _remove(self, name: str) -> None:
        from oh_jupyter.skills import find, remove

        function = find(name)
        remove(name)
        shell: Any = self.shell
        # Keep a function that the person defined in this notebook.
        if getattr(function, "__module__", "") != shell.user_module.__name__:
            shell.drop_by_id({name: function})
        print(f"{name} is no longer a skill.")

    def _functions(self) -> list[str]:
        shell: Any = self.shell
        return [name for name, v in shell.user_ns.items() if callable(v) and name[:1] != "_"]
