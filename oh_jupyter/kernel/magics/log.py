"""``%oh_log`` and ``%oh_status``: what happened, and how things stand."""

from __future__ import annotations

from IPython.core.magic import line_magic, magics_class, output_can_be_silenced
from IPython.core.magic_arguments import argument, magic_arguments, parse_argstring

from oh_jupyter.events import Event
from oh_jupyter.kernel.display import Table
from oh_jupyter.kernel.magics.base import OhMagics, help_option, wants_help

__all__ = ["LogMagics"]


@magics_class
class LogMagics(OhMagics):
    """Look at the event log."""

    @output_can_be_silenced
    @magic_arguments()
    @help_option
    @argument("-n", "--last", type=int, default=20, metavar="N", help="how many events (20)")
    @argument("-k", "--kind", action="append", metavar="TYPE", help="only this type; may repeat")
    @argument("-s", "--source", choices=["agent", "user"], help="only what one of them did")
    @line_magic
    def oh_log(self, line: str) -> Table | None:
        """Show the latest Actions and Observations, whichever door they came through."""
        if wants_help(self.oh_log, line):
            return None
        options = parse_argstring(self.oh_log, line)
        found = [
            event
            for event in self.oh.events.search()
            if (options.kind is None or event.kind in options.kind)
            and (options.source is None or event.source == options.source)
        ]
        rows = [_row(event) for event in found[-options.last :]]
        return Table(("id", "who", "type", "what"), tuple(rows))

    @output_can_be_silenced
    @magic_arguments()
    @help_option
    @line_magic
    def oh_status(self, line: str) -> Table | None:
        """Show where the runtime works, what is running and what has started."""
        if wants_help(self.oh_status, line):
            return None
        parse_argstring(self.oh_status, line)
        return Table(("what", "value"), tuple(self.oh.status().items()))


def _row(event: Event) -> tuple[int | None, str | None, str, str]:
    kind = event.kind if event.cause is None else f"  {event.kind}"
    first, _, rest = event.message.strip().partition("\n")
    text = first[:100] + (" …" if rest or len(first) > 100 else "")
    return event.id, event.source, kind, text
