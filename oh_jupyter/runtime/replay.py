"""Carrying out a recorded session again, in a fresh runtime, and comparing what comes of it."""

from __future__ import annotations

import json
import tempfile
import threading
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

from oh_jupyter.config import Settings
from oh_jupyter.events import Action, ErrorObservation, Event, Observation
from oh_jupyter.events.masking import HIDDEN
from oh_jupyter.events.stream import EventStream
from oh_jupyter.events.wire import action_from_wire, to_wire
from oh_jupyter.runtime.replay_compare import comparable_text
from oh_jupyter.runtime.runtime import Runtime

__all__ = ["ReplayStep", "Replayer"]

MAX_TITLE_CHARS = 80


@dataclass(frozen=True)
class ReplayStep:
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
            return self._replay(recorded, folder)
        with tempfile.TemporaryDirectory(prefix="oh-replay-", ignore_cleanup_errors=True) as made:
            return self._replay(recorded, made)

    def _replay(
        self, recorded: Sequence[tuple[Action, Observation]], folder: str
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
                steps.append(self._step(runtime, action, before, folder))
        finally:
            runtime.close()
        return steps

    def _step(
        self, runtime: Runtime, action: Action, before: Observation, folder: str
    ) -> ReplayStep:
        about = (action.id or 0, action.kind, _title(action))
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


def _title(action: Action) -> str:
    own: dict[str, Any] = vars(action)
    for name in ("command", "code", "browser_actions", "url", "path"):
        text = own.get(name)
        if action.kind != "edit" and isinstance(text, str):
            first, _, rest = text.strip().partition("\n")
            clipped = rest or len(first) > MAX_TITLE_CHARS
            return first[:MAX_TITLE_CHARS] + (" …" if clipped else "")
    return action.message.strip().partition("\n")[0][:MAX_TITLE_CHARS]
