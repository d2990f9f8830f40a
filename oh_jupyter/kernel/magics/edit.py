"""``%oh_edit``: the file editor."""

from __future__ import annotations

import os
import re
from argparse import Namespace

from IPython.core.error import UsageError
from IPython.core.magic import line_cell_magic, magics_class, no_var_expand, output_can_be_silenced
from IPython.core.magic_arguments import argument, magic_arguments, parse_argstring

from oh_jupyter.events import Observation
from oh_jupyter.kernel.magics.base import OhMagics, help_option, wants_help

__all__ = ["EditMagics"]

# IPython takes three of the closing signs for a prompt and removes them.
_BLOCK = re.compile(
    r"\A\s*<{5,}\s*SEARCH\s*\n(?P<old>.*?)\n?={5,}\s*\n(?P<new>.*?)\n?>+\s*REPLACE\s*\Z",
    re.DOTALL,
)


@magics_class
class EditMagics(OhMagics):
    """View and edit files."""

    @no_var_expand
    @output_can_be_silenced
    @magic_arguments()
    @help_option
    @argument("-r", "--range", nargs=2, type=int, metavar=("FIRST", "LAST"), help="lines to view")
    @argument("-l", "--line", type=int, metavar="N", help="insert after this line; 0 is the top")
    @argument(
        "command", choices=["view", "create", "str_replace", "insert", "undo"], help="what to do"
    )
    @argument("path", help="the file, or a directory to view")
    @line_cell_magic
    def oh_edit(self, line: str, cell: str | None = None) -> Observation | None:
        """View or edit a file; every edit can be undone.

        ``%oh_edit view|undo PATH``; with the text in the body: ``%%oh_edit create PATH``,
        ``%%oh_edit insert PATH --line N`` and ``%%oh_edit str_replace PATH``, whose body is
        a block of SEARCH and REPLACE between lines of <<<<<<<, ======= and >>>>>>>.
        The value is the Observation.
        """
        if wants_help(self.oh_edit, line):
            return None
        options = parse_argstring(self.oh_edit, line)
        path = os.path.abspath(os.path.expanduser(_unquoted(self.expand(options.path))))
        if options.command == "view":
            return self.oh.read(path, numbered=True, view_range=options.range)
        if options.command == "undo":
            return self.oh.edit("undo_edit", path)
        if cell is None:
            raise UsageError(
                f"{options.command} takes its text from the cell: begin it with "
                f"%%oh_edit {options.command} {options.path}"
            )
        return self.oh.edit(options.command, path, **_arguments(options, cell))


def _arguments(options: Namespace, cell: str) -> dict[str, str | int]:
    if options.command == "create":
        return {"file_text": cell}
    if options.command == "insert":
        if options.line is None:
            raise UsageError("insert needs --line N: the text goes after that line, 0 is the top")
        return {"insert_line": options.line, "new_str": cell.removesuffix("\n")}
    block = _BLOCK.match(cell)
    if block is None:
        raise UsageError(
            "str_replace takes one block in the cell's body:\n"
            "<<<<<<< SEARCH\nold text\n=======\nnew text\n>>>>>>> REPLACE"
        )
    return {"old_str": block["old"], "new_str": block["new"]}


def _unquoted(text: str) -> str:
    quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "'\""
    return text[1:-1] if quoted else text
