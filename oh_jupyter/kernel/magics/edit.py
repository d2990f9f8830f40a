"""``%oh_edit``: the file editor."""

from __future__ import annotations

import os
import time
from argparse import Namespace
from typing import Any

from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import line_cell_magic, magics_class, no_var_expand
from IPython.core.magic_arguments import argument

from oh_jupyter.kernel.api import Oh
from oh_jupyter.kernel.display.table import Table
from oh_jupyter.kernel.magics.base import OhMagics
from oh_jupyter.kernel.magics.completion import complete_path
from oh_jupyter.kernel.magics.options import (
    MagicCommand,
    magic_options,
    parse_line,
    unquoted,
)

_WRITING = ("--dry-run", "--lint")
_COMMANDS = {
    "view": MagicCommand(
        "[PATH]",
        "Show a file with line numbers, or list a directory.",
        "%oh_edit view notes.txt --range 10 20",
        ("--range",),
    ),
    "undo": MagicCommand(
        "PATH", "Undo the last edit of a file.", "%oh_edit undo notes.txt", ("--dry-run",)
    ),
    "redo": MagicCommand(
        "PATH", "Redo the last undone edit.", "%oh_edit redo notes.txt", ("--dry-run",)
    ),
    "history": MagicCommand(
        "PATH", "List the edits of a file that can be undone.", "%oh_edit history notes.txt"
    ),
    "diff": MagicCommand(
        "PATH",
        "Show what the last edits changed.",
        "%oh_edit diff notes.txt --steps 3",
        ("--steps",),
    ),
    "create": MagicCommand(
        "PATH",
        "Create a file from the body of the cell. The file must not exist.",
        "%%oh_edit create notes.txt\nThe first line.",
        _WRITING,
        has_body=True,
    ),
    "str_replace": MagicCommand(
        "PATH",
        "Replace text that occurs once, or with --all every occurrence. The body has blocks of "
        "SEARCH and REPLACE.",
        "%%oh_edit str_replace notes.txt\n"
        "<<<<<<< SEARCH\nold text\n=======\nnew text\n>>>>>>> REPLACE",
        ("--all", *_WRITING),
        has_body=True,
    ),
    "insert": MagicCommand(
        "PATH",
        "Insert the body after a line. Line 0 is the top.",
        "%%oh_edit insert notes.txt --line 0\nA title",
        ("--line", *_WRITING),
        has_body=True,
    ),
    "write": MagicCommand(
        "PATH",
        "Replace all lines, or those from --start to --end.",
        "%%oh_edit write notes.txt --start 2 --end 3\nThe second line.",
        ("--start", "--end", *_WRITING),
        has_body=True,
    ),
    "draft": MagicCommand(
        "PATH",
        "Merge new text that omits unchanged parts. Comments such as `# ... existing code ...` "
        "stand for them.",
        "%%oh_edit draft shop.py\n"
        "# ... existing code ...\ndef price(item):\n    return item.price\n"
        "# ... existing code ...",
        ("--start", "--end", *_WRITING),
        has_body=True,
    ),
    "patch": MagicCommand(
        "[PATH]",
        "Apply a patch to a file, or to the files of a directory. It is a unified diff, a "
        "*** Begin Patch envelope, or blocks of SEARCH and REPLACE.",
        "%%oh_edit patch\n*** Begin Patch\n*** Add File: notes.txt\n+A line.\n*** End Patch",
        _WRITING,
        has_body=True,
    ),
}
_ANYWHERE = ("view", "patch")  # their default path is the working directory


@magics_class
class EditMagics(OhMagics):
    """View and edit files."""

    def __init__(self, shell: InteractiveShell, oh: Oh) -> None:
        super().__init__(shell, oh)
        self.complete("oh_edit", {"PATH": complete_path})

    @no_var_expand
    @magic_options(_COMMANDS)
    @argument("-r", "--range", nargs=2, type=int, metavar=("FIRST", "LAST"), help="lines to view")
    @argument("-l", "--line", type=int, metavar="N", help="insert after this line; 0 is the top")
    @argument(
        "--start", type=int, metavar="N", help="first line to write or to draft; 1 is the top"
    )
    @argument("--end", type=int, metavar="N", help="last line to write or to draft; -1 is the end")
    @argument("--steps", type=int, default=1, metavar="N", help="number of edits for diff")
    @argument("--all", action="store_true", help="replace every occurrence")
    @argument("--lint", action="store_true", help="report new linting errors")
    @argument("-n", "--dry-run", action="store_true", help="show the diff, write nothing")
    @argument("command", choices=_COMMANDS, metavar="COMMAND", help="what to do")
    @argument("path", nargs="?", help="the file; for view and patch also a directory")
    @line_cell_magic
    def oh_edit(self, line: str, cell: str | None = None) -> Any:
        """View or edit files; every edit can be undone.

        The value is the Observation; of history a table, of diff a text.
        """
        if cell is None and line.rstrip().endswith(";"):
            self.oh_edit(line.rstrip()[:-1])
            return None
        word = line.strip()
        if word not in _COMMANDS and os.path.isfile(unquoted(self.expand(word))):
            raise UsageError(f"say what to do with it, such as %oh_edit view {word}")
        options = parse_line(self.oh_edit, line)
        if options.path is None and options.command not in _ANYWHERE:
            raise UsageError(f"say which file: %oh_edit {options.command} PATH")
        name = unquoted(self.expand(options.path or "."))
        path = os.path.abspath(os.path.expanduser(name))
        if not _COMMANDS[options.command].has_body:
            if cell is not None:
                raise UsageError(f"{options.command} takes no text; use %oh_edit with one %")
            return self._view_or_undo(options, path)
        if cell is None:
            raise UsageError(
                f"{options.command} takes its text from the cell; start it with "
                f"%%oh_edit {options.command} {options.path or ''}"
            )
        body = self._typed_body(line, cell)
        command, arguments = _arguments(options, body)
        if options.lint:
            arguments["enable_linting"] = True
        if options.dry_run:
            arguments["dry_run"] = True
        return self.oh.edit(command, path, **arguments)

    def _typed_body(self, line: str, cell: str) -> str:
        """Return the body of the running cell as typed, or ``cell`` if it was not typed."""
        first, newline, body = self.recent_cells.running.lstrip("\n").partition("\n")
        if not newline or first.strip() != f"%%oh_edit {line}".strip():
            return cell
        return body if body.endswith("\n") else body + "\n"

    def _view_or_undo(self, options: Namespace, path: str) -> Any:
        if options.command == "view":
            return self.oh.read(path, numbered=True, view_range=options.range)
        if options.command == "diff":
            return self.oh.diff(path, options.steps)
        if options.command == "history":
            rows = (
                (
                    entry.number,
                    entry.command,
                    time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(entry.time)),
                    "undone" if entry.undone else "",
                )
                for entry in self.oh.history(path)
            )
            return Table(("step", "command", "when", "state"), tuple(rows))
        dry = {"dry_run": True} if options.dry_run else {}
        return self.oh.edit(f"{options.command}_edit", path, **dry)


def _arguments(options: Namespace, body: str) -> tuple[str, dict[str, Any]]:
    """Return the editor's command and arguments for options and body."""
    start = 1 if options.start is None else options.start
    end = -1 if options.end is None else options.end
    match options.command:
        case "create":
            return "create", {"file_text": body}
        case "insert":
            if options.line is None:
                raise UsageError("insert needs --line N: the text goes after it, 0 is the top")
            return "insert", {"insert_line": options.line, "new_str": body.removesuffix("\n")}
        case "write":
            if start < 1 or (end != -1 and end < start - 1):
                raise UsageError("--start counts from 1, and --end is not before it (-1: the end)")
            return "write", {"content": body, "start": start, "end": end}
        case "draft":
            draft = {"content": body, "start": start, "end": end}
            return "", {**draft, "impl_source": "llm_based_edit"}
        case "patch":
            return "apply_patch", {"content": body}
    return _str_replace(options, body)


def _str_replace(options: Namespace, body: str) -> tuple[str, dict[str, Any]]:
    """Return ``str_replace`` for one block, or a patch for several."""
    from oh_jupyter.editor.patch.formats import split_blocks
    from oh_jupyter.errors import PatchError

    try:
        blocks = split_blocks(body)
    except PatchError as error:
        raise UsageError(str(error)) from None
    if not blocks:
        raise UsageError(
            "str_replace takes blocks in the cell's body:\n"
            "<<<<<<< SEARCH\nold text\n=======\nnew text\n>>>>>>> REPLACE"
        )
    if len(blocks) > 1:
        if options.all:
            raise UsageError("--all takes a single block")
        return "apply_patch", {"content": body}
    (old, new), *_ = blocks
    every = {"replace_all": True} if options.all else {}
    return "str_replace", {"old_str": old, "new_str": new, **every}
