"""``%oh_replay``: carry out a recorded session again, and see what comes out differently."""

from __future__ import annotations

import difflib
import json
import tempfile
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import line_magic, magics_class, output_can_be_silenced
from IPython.core.magic_arguments import argument, magic_arguments, parse_argstring

from oh_jupyter.config import Settings
from oh_jupyter.events import Action, ErrorObservation, Event, Observation
from oh_jupyter.events.masking import HIDDEN
from oh_jupyter.events.stream import EventStream
from oh_jupyter.events.wire import runnable_from_wire, to_wire
from oh_jupyter.kernel.api import Oh
from oh_jupyter.kernel.display.formatters import Table
from oh_jupyter.kernel.magics.base import OhMagics, help_option, wants_help
from oh_jupyter.kernel.magics.completion import Completion
from oh_jupyter.kernel.magics.log import session_log
from oh_jupyter.kernel.magics.replay_compare import what_is_compared

__all__ = ["Replay", "ReplayMagics", "Step"]


@dataclass(frozen=True)
class Step:
    """An Action of a session, and what came of it then and now.

    Attributes:
        id: Its id in the log.
        kind: Its type.
        action: What it does, in one line.
        result: ``same``, ``different``, or ``skipped``.
        before: What is compared, of the recorded Observation; or why it was skipped.
        after: The same of the new one.
    """

    id: int
    kind: str
    action: str
    result: str
    before: str
    after: str = ""


class Replay(Sequence[dict[str, Any]]):
    """What came of a session the second time: shown as a table, used as dicts.

    Attributes:
        steps: All Actions, in order.
    """

    def __init__(self, steps: Sequence[Step]) -> None:
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
        """An Action by its position."""
        return self._table[index]

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """The Actions, each as a dict."""
        return iter(self._table)

    @property
    def different(self) -> list[Step]:
        """The Actions whose Observations differ."""
        return [step for step in self.steps if step.result == "different"]

    def diff(self) -> str:
        """Show where the Observations differ.

        Returns:
            A unified diff for each Action that came out differently.
        """
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
        """The table, and the differences below it."""
        return "\n\n".join(part for part in (repr(self._table), self.diff()) if part)

    def _repr_html_(self) -> str:
        from oh_jupyter.kernel.display import html

        shown = html.diff_block(self.diff()) if self.different else ""
        return self._table._repr_html_() + shown


class _Sessions(Sequence[str]):
    """Ids of the sessions in the store, looked up when they are asked for."""

    def __init__(self, oh: Oh) -> None:
        self._oh = oh

    def _names(self) -> list[str]:
        try:
            entries = self._oh.store.list("sessions")
        except (OSError, ValueError):
            return []
        return [entry.split("/")[1] for entry in entries]

    def __len__(self) -> int:
        return len(self._names())

    def __getitem__(self, index: Any) -> Any:
        return self._names()[index]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names())


@magics_class
class ReplayMagics(OhMagics):
    """Carry out recorded sessions again."""

    def __init__(self, shell: InteractiveShell, oh: Oh) -> None:
        """Make the magic, and complete the ids of sessions.

        Args:
            shell: The shell that gets it.
            oh: What it calls.
        """
        super().__init__(shell, oh)
        options = ["--dir", "--kind", "--until", "--help"]
        self._completion = Completion(shell, "oh_replay", _Sessions(oh), options)

    def close(self) -> None:
        """Take out of the shell what was put into it."""
        self._completion.close()

    @output_can_be_silenced
    @magic_arguments()
    @help_option
    @argument("-d", "--dir", metavar="DIR", help="where to work; a new folder when not given")
    @argument("-k", "--kind", action="append", metavar="TYPE", help="only this type; may repeat")
    @argument("--until", type=int, metavar="ID", help="stop before this event")
    @argument("session", help="id of the session, as %%oh_store ls sessions shows it")
    @line_magic
    def oh_replay(self, line: str) -> Replay | None:
        """Carry out the Actions of a session again, in a fresh runtime.

        It has a shell, a kernel for cells and a browser of its own, and works in a new
        folder; where an Action names this runtime's workspace, the new folder takes its
        place. Compared are the type of the Observation, its content, the exit code and the
        error flag, without what is never the same twice: dates and times, durations,
        process ids of jobs, memory addresses, UUIDs, ports of this machine, temporary
        folders. Actions in which a secret is hidden, or that a person rejected, are skipped.
        """
        if wants_help(self.oh_replay, line):
            return None
        options = parse_argstring(self.oh_replay, line)
        log = session_log(self.oh, options.session)
        recorded = _pairs(log, options.until, options.kind)
        if not recorded:
            raise UsageError(f"session {options.session!r} has no Action that could be repeated")
        stop = threading.Event()
        try:
            steps = self.oh.call(self._again, recorded, options.dir, stop)
        finally:
            stop.set()
        return Replay(steps)

    def _again(
        self, recorded: Sequence[tuple[Action, Observation]], folder: str | None, stop: Any
    ) -> list[Step]:
        executor = self.oh._runtime.executor
        if folder is not None:
            return _replayed(recorded, executor.settings, executor.workspace_dir, folder, stop)
        with tempfile.TemporaryDirectory(prefix="oh-replay-", ignore_cleanup_errors=True) as new:
            return _replayed(recorded, executor.settings, executor.workspace_dir, new, stop)


def _pairs(
    log: EventStream, until: int | None, kinds: Sequence[str] | None
) -> list[tuple[Action, Observation]]:
    """Find the Actions that were carried out, each with its Observation."""
    events = log.search(end=until)
    causes: dict[int | None, Event] = {e.cause: e for e in events if isinstance(e, Observation)}
    return [
        (event, observation)
        for event in events
        if isinstance(event, Action)
        and event.runnable
        and (kinds is None or event.kind in kinds)
        and isinstance(observation := causes.get(event.id), Observation)
    ]


def _replayed(
    recorded: Sequence[tuple[Action, Observation]],
    settings: Settings,
    workspace: str,
    folder: str,
    stop: threading.Event,
) -> list[Step]:
    from oh_jupyter.runtime import Runtime

    runtime = Runtime(
        replace(settings, workspace_dir=folder, file_store="memory", file_store_web_hook_url=None)
    )
    steps: list[Step] = []
    try:
        for action, before in recorded:
            if stop.is_set():
                break
            steps.append(_step(runtime, action, before, workspace, folder))
    finally:
        runtime.close()
    return steps


def _step(runtime: Any, action: Action, before: Observation, workspace: str, folder: str) -> Step:
    title = _title(action)
    key = action.id or 0
    text = json.dumps(to_wire(action), default=str)
    if HIDDEN in text:
        return Step(key, action.kind, title, "skipped", "a secret is hidden in it")
    if before.kind in ("user_rejected", "null"):
        return Step(key, action.kind, title, "skipped", "it was not carried out")
    again = json.loads(text.replace(json.dumps(workspace)[1:-1], json.dumps(folder)[1:-1]))
    again.get("args", {}).pop("confirmation_state", None)
    try:
        after = runtime.submit_action(runnable_from_wire(again), "user").result()
    except Exception as problem:
        after = ErrorObservation(f"{type(problem).__name__}: {problem}")
    was, now = what_is_compared(before, workspace), what_is_compared(after, folder)
    return Step(key, action.kind, title, "same" if was == now else "different", was, now)


def _title(action: Action) -> str:
    own: dict[str, Any] = vars(action)
    for name in ("command", "code", "browser_actions", "url", "path"):
        text = own.get(name)
        if action.kind != "edit" and isinstance(text, str):
            first, _, rest = text.strip().partition("\n")
            return first[:80] + (" …" if rest or len(first) > 80 else "")
    return action.message.strip().partition("\n")[0][:80]
