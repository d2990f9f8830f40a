"""``%oh_rewind``: go back to before an agent's turn."""

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
    from oh_jupyter.checkpoints import RewindPlan


@magics_class
class RewindMagics(OhMagics):
    """Undo turns of agents."""

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
        %oh_rewind 12 --path results.csv --yes
        %oh_rewind --mark "before the refactoring"
        """
    )
    @argument("-y", "--yes", action="store_true", help="do it; otherwise show what would be done")
    @argument("--everything", action="store_true", help="undo what others changed since, too")
    @argument("--path", metavar="FILE", help="bring back this file only")
    @argument("--variables", action="store_true", help="the kernel's variables, too")
    @argument("--mark", metavar="LABEL", help="make a checkpoint now")
    @argument("id", nargs="?", help="number of a checkpoint, or last; the list when left out")
    @line_magic
    def oh_rewind(self, line: str) -> Table | RewindPlan | None:
        """Go back to before a turn of an agent.

        ``%oh_rewind`` lists the checkpoints, ``%oh_rewind last`` shows what would be undone of the
        last turn, ``%oh_rewind last --yes`` does it, ``%oh_rewind 12 --yes`` undoes all turns since
        12, of one file only with ``--path``. Files come back however they were changed; what you
        changed since stays. Variables of the kernel stay as they are, unless ``--variables`` was
        given with ``--mark`` and is given here. A rewind is in the list as well, to be undone.
        """
        options = parse_line(self.oh_rewind, line)
        if options.mark is not None:
            mark = self.oh.checkpoint(options.mark.strip("'\""), variables=options.variables)
            print(f"Checkpoint {mark.id}: {mark.label}")
            return None
        if options.id is None:
            if options.path or options.yes or options.everything or options.variables:
                raise UsageError("%oh_rewind takes these options with a checkpoint, or last")
            return self._table()
        if options.id != "last" and not options.id.isdigit():
            raise UsageError(
                f"%oh_rewind takes the number of a checkpoint, or last: {options.id!r}"
            )
        id = None if options.id == "last" else int(options.id)
        plan = self.oh.rewind(
            id,
            everything=options.everything,
            variables=options.variables,
            preview=not options.yes,
            path=options.path,
        )
        if plan:
            undo = f"%oh_rewind {self.oh.checkpoints[-1].id} --yes undoes this:"
            print(undo if options.yes else "This would be done; add --yes to do it:")
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
            )
            for entry in checkpoints
        ]
        if problem := self.oh.checkpoint_problem:
            print(f"Turns get no checkpoints: {problem}")
        return Table(("id", "when", "what", "who", "label"), tuple(rows))

    def _ids(self) -> list[str]:
        try:
            return ["last", *(str(entry.id) for entry in self.oh.checkpoints)]
        except CheckpointError:
            return []
