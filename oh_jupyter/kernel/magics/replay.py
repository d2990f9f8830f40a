"""``%oh_replay``: execute a recorded session again, and show the differences."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import line_magic, magics_class, output_can_be_silenced
from IPython.core.magic_arguments import argument

from oh_jupyter.events import ACTIONS
from oh_jupyter.kernel.api import Oh
from oh_jupyter.kernel.display.table import Table
from oh_jupyter.kernel.magics.base import OhMagics
from oh_jupyter.kernel.magics.completion import complete_path, one_of
from oh_jupyter.kernel.magics.log import session_log, stored_sessions
from oh_jupyter.kernel.magics.options import magic_options, parse_line

if TYPE_CHECKING:
    from oh_jupyter.runtime.replay import ReplayStep


class Replay(Sequence[dict[str, Any]]):
    """Results of a replayed session: shown as a table, used as dicts."""

    def __init__(self, steps: Sequence[ReplayStep]) -> None:
        """Take the steps."""
        self.steps = list(steps)
        self._table = Table(
            ("id", "type", "action", "result"),
            tuple((s.id, s.kind, s.action, s.result) for s in self.steps),
        )

    def __len__(self) -> int:
        """Number of Actions."""
        return len(self.steps)

    def __getitem__(self, index: Any) -> Any:
        """Return an Action by its position."""
        return self._table[index]

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Yield the Actions as dicts."""
        return iter(self._table)

    @property
    def different(self) -> list[ReplayStep]:
        """The Actions whose Observations differ."""
        return [step for step in self.steps if step.result == "different"]

    def diff(self) -> str:
        """Return a unified diff for each Action whose Observations differ."""
        parts = []
        for step in self.different:
            lines = difflib.unified_diff(
                step.before.splitlines(),
                step.after.splitlines(),
                f"{step.id} {step.action}, recorded",
                f"{step.id} {step.action}, now",
                lineterm="",
            )
            parts.append("\n".join(lines))
        return "\n\n".join(parts)

    def __repr__(self) -> str:
        """Return the table and the differences."""
        return "\n\n".join(part for part in (repr(self._table), self.diff()) if part)

    def _repr_html_(self) -> str:
        from oh_jupyter.kernel.display import html

        shown = html.diff_block(self.diff()) if self.different else ""
        return self._table._repr_html_() + shown


@magics_class
class ReplayMagics(OhMagics):
    """Replay of recorded sessions."""

    def __init__(self, shell: InteractiveShell, oh: Oh) -> None:
        super().__init__(shell, oh)
        self.complete(
            "oh_replay",
            {
                "DIR": complete_path,
                "TYPE": one_of(ACTIONS),
                "SESSION": one_of(lambda: stored_sessions(oh)),
            },
            arguments="SESSION",
        )

    @output_can_be_silenced
    @magic_options(
        examples="""
        %oh_store ls sessions
        again = %oh_replay 6c1f… --kind run
        again.different
        """
    )
    @argument("-d", "--dir", metavar="DIR", help="where to work; by default a new folder")
    @argument("-k", "--kind", action="append", metavar="TYPE", help="only this type; may repeat")
    @argument("--until", type=int, metavar="ID", help="stop before this event")
    @argument("session", help="id of the session, as %%oh_store ls sessions shows it")
    @line_magic
    def oh_replay(self, line: str) -> Replay | None:
        """Execute the Actions of a session again, in a new runtime.

        The runtime has its own shell, kernel for cells and browser, and works in a new
        folder, which replaces this runtime's workspace in Actions. The comparison covers
        the type of the Observation, its content, the exit code and the error flag, without
        volatile details: dates and times, durations, process ids of jobs, memory addresses,
        UUIDs, local ports, temporary folders. Actions with a hidden secret, and those that a
        person rejected, are skipped. With a sandbox, all Actions run as an agent's: commands run
        in a box, and what would need approval is skipped.
        """
        options = parse_line(self.oh_replay, line)
        log = session_log(self.oh, options.session)
        steps = self.oh.replay(log, folder=options.dir, until=options.until, kinds=options.kind)
        if not steps:
            raise UsageError(f"session {options.session!r} has no Actions to repeat")
        return Replay(steps)
