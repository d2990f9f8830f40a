"""``%oh_skills``: what an agent's cells can call."""

from __future__ import annotations

from IPython.core.error import UsageError
from IPython.core.magic import line_magic, magics_class, output_can_be_silenced
from IPython.core.magic_arguments import argument, magic_arguments, parse_argstring

from oh_jupyter.kernel.display import Table
from oh_jupyter.kernel.magics.base import OhMagics, help_option, wants_help

__all__ = ["SkillsMagics"]


@magics_class
class SkillsMagics(OhMagics):
    """List and explain the agent skills."""

    @output_can_be_silenced
    @magic_arguments()
    @help_option
    @argument("name", nargs="?", help="a skill, to read its documentation")
    @line_magic
    def oh_skills(self, line: str) -> Table | None:
        """List the agent skills, or explain one.

        Skills are plain functions: ``from oh_jupyter.skills.agentskills import *``.
        """
        from oh_jupyter.skills import registry

        if wants_help(self.oh_skills, line):
            return None
        options = parse_argstring(self.oh_skills, line)
        skills = registry()
        if options.name is None:
            rows = [
                (name, skill.signature, skill.docstring.partition("\n")[0])
                for name, skill in skills.items()
            ]
            return Table(("skill", "arguments", "what it does"), tuple(rows))
        if options.name not in skills:
            raise UsageError(f"there is no skill {options.name!r}. Skills: {', '.join(skills)}")
        skill = skills[options.name]
        print(f"{options.name}{skill.signature}\n\n{skill.docstring}")
        return None
