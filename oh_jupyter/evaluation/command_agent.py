"""A program as agent: it reads each observation as a line of JSON, and writes the next action."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from typing import Any

from oh_jupyter.browser import flatten_axtree
from oh_jupyter.errors import EvaluationError
from oh_jupyter.events import ACTIONS, Event
from oh_jupyter.events.wire import from_wire, to_wire
from oh_jupyter.process import PIPE, Child, spawn


class CommandAgent:
    """An agent in any language; each episode starts its own.

    Observations of a page also have ``axtree_txt``, its elements with their ids as text.
    Its lines are JSON: a text is a reply, a command or an action in the page, as the task expects
    it; an object with ``tool`` a call; an object with ``action`` an Action. Standard error goes to
    the episode's ``output.txt``.
    """

    def __init__(self, argv: Sequence[str]) -> None:
        """Take program and arguments; the program is started at the first observation."""
        self.argv = tuple(argv)
        self._child: Child | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Return the command, which starts another program in an episode's process."""
        return {"argv": self.argv, "_child": None}

    def __call__(self, seen: Mapping[str, Any]) -> Any:
        """Return the next action."""
        if self._child is None:
            self._child = spawn(self.argv, stdin=PIPE, stdout=PIPE)
        child = self._child
        assert child.stdin is not None
        assert child.stdout is not None
        if "axtree_object" in seen:
            seen = {**seen, "axtree_txt": flatten_axtree(seen["axtree_object"])}
        try:
            child.stdin.write(json.dumps(seen, default=_plain).encode() + b"\n")
            child.stdin.flush()
        except OSError:
            raise EvaluationError(f"{self.argv[0]} ended before it read an observation") from None
        if not (line := child.stdout.readline()):
            raise EvaluationError(f"{self.argv[0]} ended without an action")
        try:
            action = json.loads(line)
        except ValueError:
            text = line[:200].decode("utf-8", "replace").strip()
            raise EvaluationError(f"{self.argv[0]} wrote {text!r}, not a line of JSON") from None
        is_action = isinstance(action, dict) and action.get("action") in ACTIONS
        return from_wire(action) if is_action else action

    def close(self) -> None:
        """End the program of the episode."""
        child, self._child = self._child, None
        if child is not None:
            child.terminate(0)
            for pipe in (child.stdin, child.stdout):
                if pipe is not None:
                    pipe.close()


def _plain(value: Any) -> Any:
    """Return a value of an observation as JSON."""
    if isinstance(value, Event):
        return to_wire(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if hasattr(value, "tolist"):
        return value.tolist()
    return getattr(value, "name", None) or str(value)
