"""Carrying out a recorded session again, in a fresh runtime, and comparing what comes of it."""

from __future__ import annotations

import json
import re
import tempfile
import threading
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar, cast

from oh_jupyter.config import Settings
from oh_jupyter.errors import StorageError
from oh_jupyter.events import Action, CmdOutputObservation, ErrorObservation, Event, Observation
from oh_jupyter.events.masking import HIDDEN
from oh_jupyter.events.stream import EventStream
from oh_jupyter.events.wire import action_from_wire, to_wire
from oh_jupyter.runtime.runtime import Runtime

_DAY = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)"
_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_VOLATILE = [
    (re.compile(rf"{_DAY}\w*,? +(?:\d+ +)?{_MONTH}\w*(?: +\d+)?(?:,? +\d{{4}})?"), "DATE"),
    (re.compile(rf"\b{_MONTH} +\d{{1,2}} +(?=\d\d:\d\d)"), "DATE "),
    (
        re.compile(
            r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?"
        ),
        "DATE",
    ),
    (
        re.compile(r"\b\d{1,2}:\d\d:\d\d(?:[.,]\d+)?(?: ?[AP]M)?(?: [A-Z]{3,4})?(?: \d{4})?\b"),
        "TIME",
    ),
    (re.compile(r"\b\d+(?:\.\d+)? ?(?:ns|µs|us|ms|s|sec|seconds|m\d+\.\d+s)\b"), "DURATION"),
    (re.compile(r"\b[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}\b"), "UUID"),
    (re.compile(r"\b0x[0-9a-f]{6,}\b"), "ADDRESS"),
    (re.compile(r"(?m)^(\[\d+\][+-]?) +\d+$"), r"\1 PID"),
    (re.compile(r"(?i)\b(pid|process)([ =:]+)\d+"), r"\1\2PID"),
    (re.compile(r"\b(127\.0\.0\.1|localhost|0\.0\.0\.0):\d+"), r"\1:PORT"),
    (re.compile(r"/tmp/[\w.-]+"), "TEMPORARY"),
    (re.compile(r"\[Jupyter Python interpreter: [^\]]*\]"), "[Jupyter Python interpreter]"),
    (re.compile(r"screenshot_\d{8}_\d{6}(?:_\d+)?"), "screenshot_TIME"),
]


def comparable_text(observation: Observation, workspace: str) -> str:
    """Type, exit code, error flag and content, without what is never the same twice."""
    own: dict[str, Any] = vars(observation)
    lines = [f"type: {observation.kind}"]
    if isinstance(observation, CmdOutputObservation):
        lines.append(f"exit code: {observation.exit_code}")
    if own.get("error"):
        lines.append("error: True")
    text = observation.content.replace(workspace, "WORKSPACE")
    for pattern, name in _VOLATILE:
        text = pattern.sub(name, text)
    return "\n".join([*lines, *(line.rstrip() for line in text.splitlines())])


MAX_TITLE_CHARS = 80

_E = TypeVar("_E", bound=Event)


@dataclass(frozen=True)
class ReplayStep:
    """An Action of a session, whether it was the same, different or skipped, and its texts."""

    id: int
    kind: str
    action: str
    result: str
    before: str
    after: str = ""


class Replayer:
    """Repeats the Actions of a log in a runtime of their own; it blocks, and can be stopped."""

    def __init__(self, settings: Settings, workspace_dir: str) -> None:
        """Take the settings and the workspace of the runtime that was recorded."""
        self._settings = settings
        self._workspace_dir = workspace_dir
        self._stopped = threading.Event()

    def stop(self) -> None:
        """Begin no other Action, from any thread."""
        self._stopped.set()

    def run(
        self,
        log: EventStream,
        *,
        folder: str | None = None,
        until: int | None = None,
        kinds: Collection[str] | None = None,
    ) -> list[ReplayStep]:
        """Repeat what comes before the event ``until``, in a folder or else a temporary one."""
        recorded = _recorded(log, until, kinds)
        if not recorded:
            return []
        if folder is not None:
            return self._replay(log, recorded, folder)
        with tempfile.TemporaryDirectory(prefix="oh-replay-", ignore_cleanup_errors=True) as made:
            return self._replay(log, recorded, made)

    def _replay(
        self, log: EventStream, recorded: Sequence[tuple[Action, Observation]], folder: str
    ) -> list[ReplayStep]:
        runtime = Runtime(
            replace(
                self._settings,
                workspace_dir=folder,
                file_store="memory",
                file_store_web_hook_url=None,
            )
        )
        steps: list[ReplayStep] = []
        try:
            for action, before in recorded:
                if self._stopped.is_set():
                    break
                steps.append(self._step(runtime, log, action, before, folder))
        finally:
            runtime.close()
        return steps

    def _step(
        self,
        runtime: Runtime,
        log: EventStream,
        action: Action,
        before: Observation,
        folder: str,
    ) -> ReplayStep:
        about = (action.id or 0, action.kind, _title(action))
        try:  # one at a time: long texts are only read for the step that needs them
            action, before = _whole(log, action), _whole(log, before)
        except StorageError as problem:
            return ReplayStep(*about, "skipped", str(problem))
        text = json.dumps(to_wire(action), default=str)
        if HIDDEN in text:
            return ReplayStep(*about, "skipped", "a secret is hidden in it")
        if before.kind in ("user_rejected", "null"):
            return ReplayStep(*about, "skipped", "it was not carried out")
        workspace = json.dumps(self._workspace_dir)[1:-1]
        again = json.loads(text.replace(workspace, json.dumps(folder)[1:-1]))
        again.get("args", {}).pop("confirmation_state", None)
        try:
            after = runtime.submit_action(action_from_wire(again), "user").result()
        except Exception as problem:
            after = ErrorObservation(f"{type(problem).__name__}: {problem}")
        was, now = comparable_text(before, self._workspace_dir), comparable_text(after, folder)
        return ReplayStep(*about, "same" if was == now else "different", was, now)


def _recorded(
    log: EventStream, until: int | None, kinds: Collection[str] | None
) -> list[tuple[Action, Observation]]:
    """The Actions that were carried out, each with its Observation."""
    events = log.search(end=until, whole=False)
    causes: dict[int | None, Event] = {e.cause: e for e in events if isinstance(e, Observation)}
    return [
        (event, observation)
        for event in events
        if isinstance(event, Action)
        and event.runnable
        and (kinds is None or event.kind in kinds)
        and isinstance(observation := causes.get(event.id), Observation)
    ]


def _whole(log: EventStream, event: _E) -> _E:
    return cast(_E, log.get_event(event.id)) if event.id is not None else event


def _title(action: Action) -> str:
    own: dict[str, Any] = vars(action)
    for name in ("command", "code", "browser_actions", "url", "path"):
        text = own.get(name)
        if action.kind != "edit" and isinstance(text, str):
            first, _, rest = text.strip().partition("\n")
            clipped = rest or len(first) > MAX_TITLE_CHARS
            return first[:MAX_TITLE_CHARS] + (" …" if clipped else "")
    return action.message.strip().partition("\n")[0][:MAX_TITLE_CHARS]
