"""Replay of a recorded session in a fresh runtime, and comparison of the results."""

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
from oh_jupyter.events import (
    Action,
    CmdOutputObservation,
    ErrorObservation,
    Event,
    EventSource,
    Observation,
    UserRejectObservation,
)
from oh_jupyter.events.masking import HIDDEN
from oh_jupyter.events.stream import EventStream
from oh_jupyter.events.title import title
from oh_jupyter.events.wire import action_from_wire, to_wire
from oh_jupyter.runtime.host_access import is_host_access
from oh_jupyter.runtime.runtime import Runtime
from oh_jupyter.text import shorten

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
    """Return type, exit code, error flag and content without volatile details."""
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
    """An Action, its result (same, different or skipped), and both texts."""

    id: int
    kind: str
    action: str
    result: str
    before: str
    after: str = ""


class Replayer:
    """Repeats the Actions of a log in a new runtime; blocks, and can be stopped."""

    def __init__(self, settings: Settings, workspace_dir: str) -> None:
        """Take the settings and the workspace of the recorded runtime."""
        self._settings = settings
        self._workspace_dir = workspace_dir
        self._stopped = threading.Event()

    def stop(self) -> None:
        """Start no further Action; from any thread."""
        self._stopped.set()

    def run(
        self,
        log: EventStream,
        *,
        folder: str | None = None,
        until: int | None = None,
        kinds: Collection[str] | None = None,
    ) -> list[ReplayStep]:
        """Repeat the Actions before event ``until``, in a folder or a temporary one."""
        recorded = _recorded(log, until, kinds)
        if not recorded:
            return []
        if folder is not None:
            return self._replay(log, recorded, folder)
        with tempfile.TemporaryDirectory(
            prefix="oh-replay-", ignore_cleanup_errors=True
        ) as temporary:
            return self._replay(log, recorded, temporary)

    def _replay(
        self, log: EventStream, recorded: Sequence[tuple[Action, Observation]], folder: str
    ) -> list[ReplayStep]:
        runtime = Runtime(
            replace(
                self._settings,
                workspace_dir=folder,
                file_store="memory",
                file_store_web_hook_url=None,
                confirmation_timeout=0.0,  # nobody sees its questions
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
        step = (action.id or 0, action.kind, shorten(title(action), MAX_TITLE_CHARS))
        try:  # long texts are read one step at a time
            action, before = _whole(log, action), _whole(log, before)
        except StorageError as error:
            return ReplayStep(*step, "skipped", str(error))
        text = json.dumps(to_wire(action), default=str)
        if HIDDEN in text:
            return ReplayStep(*step, "skipped", "a secret is hidden in it")
        if before.kind in ("user_rejected", "null"):
            return ReplayStep(*step, "skipped", "it was not executed")
        workspace = json.dumps(self._workspace_dir)[1:-1]
        repeated = json.loads(text.replace(workspace, json.dumps(folder)[1:-1]))
        repeated.get("args", {}).pop("confirmation_state", None)
        try:
            after = _repeat(runtime, action_from_wire(repeated))
        except Exception as error:
            after = ErrorObservation(f"{type(error).__name__}: {error}")
        if isinstance(after, UserRejectObservation):
            return ReplayStep(*step, "skipped", "it would need a person's approval again")
        old, new = comparable_text(before, self._workspace_dir), comparable_text(after, folder)
        return ReplayStep(*step, "same" if old == new else "different", old, new)


def _repeat(runtime: Runtime, action: Action) -> Observation:
    """Execute an Action again; with a sandbox as an agent's, since the log has only a claim."""
    executor = runtime.executor
    principal: EventSource = "agent" if executor.boxes.is_on else "user"
    return runtime.submit(executor.run_action(action, principal)).result()


def _recorded(
    log: EventStream, until: int | None, kinds: Collection[str] | None
) -> list[tuple[Action, Observation]]:
    """Return the executed Actions, each with its Observation."""
    events = log.search(end=until, whole=False)
    causes: dict[int | None, Event] = {e.cause: e for e in events if isinstance(e, Observation)}
    return [
        (event, observation)
        for event in events
        if isinstance(event, Action)
        and event.runnable
        and not is_host_access(event)
        and (kinds is None or event.kind in kinds)
        and isinstance(observation := causes.get(event.id), Observation)
    ]


def _whole(log: EventStream, event: _E) -> _E:
    return cast(_E, log.get_event(event.id)) if event.id is not None else event
