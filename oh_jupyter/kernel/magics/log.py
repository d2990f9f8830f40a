"""``%oh_log``, ``%oh_status``, ``%oh_doctor``, ``%oh_confirm``: events, status, and approvals."""

from __future__ import annotations

import json
import re
from argparse import Namespace
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import line_magic, magics_class, output_can_be_silenced
from IPython.core.magic_arguments import argument

from oh_jupyter.events import (
    ACTIONS,
    OBSERVATIONS,
    Action,
    Event,
    IPythonRunCellObservation,
    Observation,
)
from oh_jupyter.events.stream import EventStream
from oh_jupyter.events.title import title
from oh_jupyter.events.wire import from_wire
from oh_jupyter.kernel.api import Oh
from oh_jupyter.kernel.display.observations import sandbox_mark
from oh_jupyter.kernel.display.table import Table
from oh_jupyter.kernel.magics.base import OhMagics
from oh_jupyter.kernel.magics.completion import complete_path, one_of
from oh_jupyter.kernel.magics.options import magic_options, parse_line, unquoted
from oh_jupyter.runtime.confirmation import PendingAction
from oh_jupyter.storage import InMemoryFileStore
from oh_jupyter.text import did_you_mean, first_line, shorten, shown_path, visible

_SOURCES = ("agent", "user", "environment")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


@magics_class
class LogMagics(OhMagics):
    """Views of the event log and the runtime."""

    def __init__(self, shell: InteractiveShell, oh: Oh) -> None:
        super().__init__(shell, oh)
        self.complete(
            "oh_log",
            {
                "TYPE": one_of([*ACTIONS, *OBSERVATIONS]),
                "WHO": one_of(_SOURCES),
                "SESSION": one_of(lambda: stored_sessions(oh)),
                "FILE": complete_path,
            },
        )

        self.complete("oh_status", {})
        self.complete("oh_doctor", {})

    @output_can_be_silenced
    @magic_options(
        examples="""
        %oh_log --last 5
        %oh_log --kind run --source agent --since 5m
        event = %oh_log 12
        """
    )
    @argument("-n", "--last", "--limit", type=int, default=20, metavar="N", help="how many (20)")
    @argument("-k", "--kind", action="append", metavar="TYPE", help="only this type; may repeat")
    @argument(
        "-s",
        "--source",
        choices=_SOURCES,
        metavar="WHO",
        help="agent, user or environment",
    )
    @argument("--since", metavar="WHEN", help="an id, a time, or how long ago: 90s, 5m, 2h, 1d")
    @argument("-t", "--text", metavar="TEXT", help="only events in which this text is")
    @argument("--session", metavar="SESSION", help="another session of the store")
    @argument("--file", metavar="FILE", help="a file with events as lines of JSON")
    @argument("id", nargs="?", type=int, help="show this complete event")
    @line_magic
    def oh_log(self, line: str) -> Table | Event | None:
        """Show the latest Actions and Observations of all callers.

        With an id, the value is that event; otherwise a table.
        """
        options = parse_line(self.oh_log, line)
        if options.file is not None:
            events = log_of_file(unquoted(options.file))
        else:
            events = session_log(self.oh, options.session)
        if options.id is not None:
            try:
                return events.get_event(options.id)
            except FileNotFoundError:
                raise UsageError(f"there is no event {options.id} in this log") from None
        matches = _filter(options)
        kinds = None if options.kind is None else _known_kinds(options.kind)
        selected = [event for event in events.search(kinds=kinds) if matches(event)]
        rows = (
            [_row(event, self.oh.host.workspace_dir) for event in selected[-options.last :]]
            if options.last > 0
            else []
        )
        return Table(("id", "who", "type", "what"), tuple(rows))

    @output_can_be_silenced
    @magic_options()
    @line_magic
    def oh_status(self, line: str) -> Table | None:
        """Show the runtime's directories, running Actions and started parts."""
        parse_line(self.oh_status, line)
        return Table(("what", "value"), tuple(self.oh.status().items()))

    @output_can_be_silenced
    @magic_options()
    @line_magic
    def oh_doctor(self, line: str) -> Table | None:
        """List what is broken in this environment, and how to fix it."""
        from oh_jupyter.doctor import examine

        parse_line(self.oh_doctor, line)
        rows = [(c.status, c.name, c.found, c.mend) for c in examine(self.oh.settings)]
        return Table(("status", "what", "found", "how to fix it"), tuple(rows))


FORGET_ALL = -1
"""Value of ``--forget`` without a number."""


def session_log(oh: Oh, session: str | None) -> EventStream:
    """Return the log of a session, None for the current one; UsageError if there is none."""
    if session is None or session == oh.events.sid:
        return oh.events
    log = EventStream(oh.store, session)
    if log.latest_id < 0:
        raise UsageError(f"the store has no session {session!r}; see %oh_store ls sessions")
    return log


def log_of_file(path: str) -> EventStream:
    """Return the events of a file, such as an episode's; UsageError if they cannot be read."""
    log = EventStream(InMemoryFileStore(), "file")
    try:
        for line in Path(path).expanduser().read_bytes().splitlines():
            data = json.loads(line)
            log.add_event(from_wire(data), data.get("source") or "agent")
    except (OSError, ValueError) as error:
        raise UsageError(f"the log {path} cannot be read: {error}") from None
    return log


def stored_sessions(oh: Oh) -> list[str]:
    """Return the ids of the stored sessions."""
    try:
        return [entry.split("/")[1] for entry in oh.store.list("sessions")]
    except (OSError, ValueError):
        return []


def _known_kinds(names: Sequence[str]) -> set[str]:
    """Return types of events; raise UsageError if one does not exist."""
    known = sorted({*ACTIONS, *OBSERVATIONS})
    for name in names:
        if name not in known:
            hint = did_you_mean(name, known)
            raise UsageError(f"there is no type {name!r}. {hint}Types: {', '.join(known)}")
    return set(names)


def _filter(options: Namespace) -> Callable[[Event], bool]:
    since_id, since_time = _since(options.since)
    text = (options.text or "").strip("'\"").casefold()

    def matches(event: Event) -> bool:
        if options.source is not None and event.source != options.source:
            return False
        if (event.id or 0) < since_id or (event.timestamp or "") < since_time:
            return False
        return not text or text in _text(event).casefold()

    return matches


def _since(when: str | None) -> tuple[int, str]:
    """Parse a start: an id, or a local time in the log's format."""
    if when is None:
        return 0, ""
    when = when.strip("'\"")
    if when.isdigit():
        return int(when), ""
    if ago := re.fullmatch(r"(\d+(?:\.\d+)?)([smhd])", when):
        length = timedelta(**{_UNITS[ago[2]]: float(ago[1])})
        return 0, (datetime.now() - length).isoformat()
    try:
        time = datetime.fromisoformat(when)
    except ValueError:
        raise UsageError(
            f"--since takes an id, a time such as 2026-01-31T12:00, or 90s, 5m, 2h, 1d; not {when}"
        ) from None
    return 0, (time.astimezone().replace(tzinfo=None) if time.tzinfo else time).isoformat()


def _text(event: Event) -> str:
    values: dict[str, Any] = vars(event)
    words = [value for value in values.values() if isinstance(value, str)]
    return "\n".join([event.message, *words])


def _row(event: Event, root: str) -> tuple[int | None, str | None, str, str]:
    kind = event.kind if event.cause is None else f"  {event.kind}"
    message = title(event, root) if isinstance(event, Action) else event.message
    if path := getattr(event, "path", ""):
        message = message.replace(path, shown_path(path, root))
    if isinstance(event, IPythonRunCellObservation):  # its message is the same for each cell
        message = event.content.rpartition("\n[Jupyter current working directory:")[0] or message
    text = shorten(first_line(message), 100)
    if isinstance(event, Observation):
        text = " ".join([text, *sandbox_mark(event)])
    return event.id, event.source, kind, text


@magics_class
class ConfirmMagics(OhMagics):
    """Approval and rejection of waiting Actions."""

    def __init__(self, shell: InteractiveShell, oh: Oh) -> None:
        super().__init__(shell, oh)
        self.complete(
            "oh_confirm",
            {"ID": one_of(lambda: [str(id) for id in oh.waiting])},
            arguments="ID",
        )

    @output_can_be_silenced
    @magic_options(
        examples="""
        %oh_confirm
        %oh_confirm 12
        %oh_confirm 12 --reject "use make instead"
        %oh_confirm 12 --value region=eu --value copies=2
        %oh_confirm --reject --all
        """
    )
    @argument("-r", "--reject", nargs="?", const="", metavar="WHY", help="reject, with a reason")
    @argument(
        "-v",
        "--value",
        action="append",
        metavar="NAME=VALUE",
        help="answer an agent's question; several values with this option each",
    )
    @argument("-a", "--all", action="store_true", help="decide on all that wait")
    @argument(
        "-s",
        "--session",
        action="store_true",
        help="also approve later actions of the type that wait for the same reasons",
    )
    @argument("--always", action="store_true", help="the same, in this workspace from now on")
    @argument("--rules", action="store_true", help="list the approvals that cover later actions")
    @argument(
        "--forget",
        nargs="?",
        type=int,
        const=FORGET_ALL,
        metavar="RULE",
        help="revoke one of these approvals, or all",
    )
    @argument("id", nargs="?", type=int, help="the action's id; without it, list them")
    @line_magic
    def oh_confirm(self, line: str) -> Table | None:
        """Show the Actions of agents that wait for you, or decide on them.

        ``%oh_confirm`` lists them, ``%oh_confirm 12`` approves one, ``%oh_confirm 12 --reject``
        rejects it, ``%oh_confirm 12 --reject "use the API"`` gives the agent a reason,
        ``%oh_confirm --all`` approves all. ``%oh_confirm 12 --always`` makes a rule for this
        workspace, ``--rules`` lists the rules, ``--forget 1`` revokes one. ``%oh_confirm 12 --value
        region=eu`` answers an agent's question.
        """
        options = parse_line(self.oh_confirm, line)
        if options.forget is not None:
            is_all = options.forget == FORGET_ALL
            self.oh.forget_approvals(None if is_all else options.forget)
            print("All approvals are revoked." if is_all else "The approval is revoked.")
            return None
        if options.rules and options.id is not None:
            raise UsageError("--rules takes no number; --forget revokes the approval of a number")
        if options.rules:
            rules = [(number, *rule) for number, rule in enumerate(self.oh.approvals, 1)]
            return Table(("rule", "type", "reason", "for the"), tuple(rules))
        waiting = self.oh.waiting
        if options.id is None and (options.reject or "").isdigit():
            options.id, options.reject = int(options.reject), ""
        chosen = [options.id]
        if options.all:  # approval of all does not answer questions
            rejects = options.reject is not None
            chosen = [id for id, each in waiting.items() if rejects or not each.is_question]
        if options.all or options.id is not None:
            if not chosen:
                print("No actions are waiting.")
            rejected = options.reject is not None
            why = unquoted(options.reject or "")
            for id in chosen:
                self.oh.confirm(
                    id,
                    approve=not rejected,
                    why=why,
                    for_session=options.session,
                    for_workspace=options.always,
                    values=_values(options.value or ()),
                )
                what = waiting[id].message.strip().partition("\n")[0]
                approved = "Answered" if waiting[id].is_question else "Approved"
                print(f"{'Rejected' if rejected else approved}: {what}")
            return None
        if not waiting:
            print("No actions are waiting.")
            return None
        rows = [
            (
                id,
                entry.agent,
                "\n".join(filter(None, (entry.message, self.oh.preview(id), _form(entry)))),
                entry.reason,
                entry.terms,
            )
            for id, entry in waiting.items()
        ]
        return Table(("id", "agent", "what", "why it waits", "terms"), tuple(rows))


def _values(words: Sequence[str]) -> dict[str, str]:
    """Return the values of a line by name."""
    pairs = [unquoted(word).partition("=") for word in words]
    for name, equals, _ in pairs:
        if not equals:
            raise UsageError(f"--value takes NAME=VALUE, not {name!r}")
    return {name: unquoted(value) for name, _, value in pairs}


def _form(entry: PendingAction) -> str:
    """Return the values for which an agent asks, as options that answer it."""
    lines = (f"--value {field.name}=…  {field.title}{field.hint}" for field in entry.form)
    return visible("\n".join(lines))
