"""``%oh_rewind``: undo turns of agents."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import line_magic, magics_class, output_can_be_silenced
from IPython.core.magic_arguments import argument

from oh_jupyter.errors import CheckpointError
from oh_jupyter.kernel.api import Oh
from oh_jupyter.kernel.display.table import Table
from oh_jupyter.kernel.magics.base import OhMagics
from oh_jupyter.kernel.magics.completion import one_of
from oh_jupyter.kernel.magics.options import magic_options, parse_line

if TYPE_CHECKING:
    from oh_jupyter.checkpoints import Checkpoint, RewindPlan
    from oh_jupyter.kernel.display.observations import Diff


@magics_class
class RewindMagics(OhMagics):
    """Undo of agents' turns."""

    def __init__(self, shell: InteractiveShell, oh: Oh) -> None:
        super().__init__(shell, oh)
        self.complete(
            "oh_rewind",
            {"ID": one_of(self._ids)},
            arguments="ID",
        )

    @output_can_be_silenced
    @magic_options(
        examples="""
        %oh_rewind
        %oh_rewind last --yes
        %oh_rewind last --diff
        %oh_rewind 12 --path results.csv --yes
        %oh_rewind --mark "before the refactoring"
        """
    )
    @argument("-y", "--yes", action="store_true", help="apply; otherwise show what would change")
    @argument("--diff", action="store_true", help="show the lines that would change in files")
    @argument("--everything", action="store_true", help="also undo changes by others")
    @argument("--path", metavar="FILE", help="restore only this file")
    @argument("--files", action="store_true", help="restore files alone")
    @argument(
        "--variables",
        action="store_true",
        help="restore the kernel's variables alone; with --mark, keep all of them",
    )
    @argument("--mark", metavar="LABEL", help="make a checkpoint now")
    @argument("id", nargs="?", help="id of a checkpoint, or last; without it, list them")
    @line_magic
    def oh_rewind(self, line: str) -> Table | RewindPlan | Diff | None:
        """Undo an agent's turns.

        ``%oh_rewind`` lists the checkpoints, ``%oh_rewind last`` shows what undoing the last turn
        would change, with ``--diff`` line by line, ``%oh_rewind last --yes`` undoes it, and
        ``%oh_rewind 12 --yes`` undoes all turns since 12, of one file with ``--path``. Files and
        the kernel's variables are restored however they were changed; your own changes stay.
        ``--files`` and ``--variables`` restore one of both. Each rewind is in the list as well, so
        that it can be undone.
        """
        options = parse_line(self.oh_rewind, line)
        if options.mark is not None:
            mark = self.oh.checkpoint(options.mark.strip("'\""), variables=options.variables)
            print(f"Checkpoint {mark.id}: {mark.label}")
            return None
        if options.id is None:
            options_of_rewinds = (options.path, options.yes, options.everything, options.diff)
            if any((*options_of_rewinds, options.files, options.variables)):
                raise UsageError(
                    "these options need a checkpoint: %oh_rewind ID, or %oh_rewind last"
                )
            return self._table()
        if options.id != "last" and not options.id.isdigit():
            raise UsageError(
                f"%oh_rewind takes the id of a checkpoint, or last, not {options.id!r}"
            )
        id = None if options.id == "last" else int(options.id)
        if options.variables and (options.files or options.path):
            raise UsageError("--variables restores variables alone; omit --files and --path")
        if options.diff:
            if options.yes or options.variables:
                raise UsageError("--diff only compares files; omit --yes and --variables")
            return self.oh.rewind_diff(id, everything=options.everything, path=options.path)
        plan = self.oh.rewind(
            id,
            everything=options.everything,
            files=not options.variables,
            variables=False if options.files or options.path else None,
            preview=not options.yes,
            path=options.path,
        )
        if plan:
            undo = f"%oh_rewind {self.oh.checkpoints[-1].id} --yes undoes this:"
            print(undo if options.yes else "Preview; add --yes to apply it:")
        return plan

    def _table(self) -> Table:
        checkpoints = self.oh.checkpoints
        rows = [
            (
                entry.id,
                datetime.fromtimestamp(entry.time).strftime("%Y-%m-%d %H:%M:%S"),
                entry.kind,
                entry.who,
                entry.label,
                _changed(entry),
            )
            for entry in checkpoints
        ]
        if problem := self.oh.checkpoint_problem:
            print(f"Turns get no checkpoints: {problem}")
        return Table(("id", "when", "what", "who", "label", "changed"), tuple(rows))

    def _ids(self) -> list[str]:
        try:
            return ["last", *(str(entry.id) for entry in self.oh.checkpoints)]
        except CheckpointError:
            return []


def _changed(entry: Checkpoint) -> str:
    """Return the numbers of files and variables that a turn changed, and of cells that it ran."""
    files, variables = (len(entry.extra.get(name, ())) for name in ("files", "changed_variables"))
    cells = entry.extra.get("cells", 0)
    parts = [
        f"{count} {noun}{'s' if count > 1 else ''}"
        for count, noun in ((files, "file"), (cells, "cell"), (variables, "variable"))
        if count
    ]
    return ", ".join(parts)
