"""``%oh_confirm``: what an agent may do is decided by the person."""

from __future__ import annotations

from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import line_magic, magics_class, output_can_be_silenced
from IPython.core.magic_arguments import argument, magic_arguments

from oh_jupyter.kernel.api import Oh
from oh_jupyter.kernel.display.table import Table
from oh_jupyter.kernel.magics.base import (
    OhMagics,
    help_option,
    option_names,
    parse_line,
    wants_help,
)
from oh_jupyter.kernel.magics.completion import Completion

__all__ = ["ConfirmMagics"]


@magics_class
class ConfirmMagics(OhMagics):
    """Approve or reject waiting Actions."""

    def __init__(self, shell: InteractiveShell, oh: Oh) -> None:
        super().__init__(shell, oh)
        self._completion = Completion(
            shell,
            "oh_confirm",
            (),
            option_names(self.oh_confirm),
            lambda argument: [],
            find_commands=lambda: [str(id) for id in oh.waiting],
        )

    def close(self) -> None:
        """Take out of the shell what was put into it."""
        self._completion.close()

    @output_can_be_silenced
    @magic_arguments()
    @help_option
    @argument("-r", "--reject", action="store_true", help="reject instead of approve")
    @argument("-a", "--all", action="store_true", help="decide on all that wait")
    @argument("id", nargs="?", type=int, help="the action's id; the list when left out")
    @line_magic
    def oh_confirm(self, line: str) -> Table | None:
        """Show the Actions of agents that wait for you, or decide on them.

        ``%oh_confirm`` lists them, ``%oh_confirm 12`` approves one, ``%oh_confirm 12 --reject``
        rejects it, ``%oh_confirm --all`` approves all.
        """
        if wants_help(self.oh_confirm, line):
            return None
        options = parse_line(self.oh_confirm, line)
        waiting = self.oh.waiting
        chosen = list(waiting) if options.all else [options.id]
        if options.all or options.id is not None:
            for id in chosen:
                self.oh.confirm(id, approve=not options.reject)
                what = waiting[id].action.message.strip().partition("\n")[0]
                print(f"{'Rejected' if options.reject else 'Approved'}: {what}")
            return None
        rows = [(id, entry.action.message, entry.reason) for id, entry in waiting.items()]
        return Table(("id", "what", "why it waits"), tuple(rows))
