"""A display that is updated from another thread, in the cell that made it."""

from __future__ import annotations

import sys
import time
import uuid
from typing import Any

from IPython.core.interactiveshell import InteractiveShell
from IPython.display import display

from oh_jupyter.agents import AgentTurn
from oh_jupyter.kernel.display.agent_turn import turn_bundle

__all__ = ["LiveTurn"]

UPDATE_INTERVAL_SECONDS = 0.2


class LiveTurn:
    """Shows a turn while it goes on; in a terminal, where nothing is updated, as it comes."""

    def __init__(self, shell: InteractiveShell) -> None:
        """Remember the cell that runs now, to which all updates belong."""
        self._display_id = uuid.uuid4().hex
        self._kernel: Any = getattr(shell, "kernel", None)
        self._updated = 0.0
        self._printed = 0
        self._begun = False
        self._parent: Any = None
        # While outputs are captured there is nobody to send updates to.
        self._live = type(shell.display_pub).__name__ == "ZMQDisplayPublisher"
        if self._live and self._kernel is not None:
            from jupyter_client.session import Session

            self._parent = self._kernel.get_parent()
            session = self._kernel.session
            self._session = Session(key=session.key, signature_scheme=session.signature_scheme)

    def update(self, turn: AgentTurn) -> None:
        """Show what is new, from any thread, not more than some times a second."""
        if self._kernel is None:
            self._print(turn.text)
        elif self._live and time.monotonic() - self._updated >= UPDATE_INTERVAL_SECONDS:
            self._updated = time.monotonic()
            self._send(turn_bundle(turn))

    def finish(self, turn: AgentTurn) -> None:
        """Show the whole turn, on the main thread."""
        if self._kernel is None:
            self._print(turn.text + "\n")
        elif self._begun:
            self._send(turn_bundle(turn))
        else:
            display(turn_bundle(turn), raw=True)

    def end(self, turn: AgentTurn | None, problem: BaseException | None) -> None:
        """Show how a turn in the background ended, from any thread."""
        told = turn_bundle(turn) if turn is not None else {}
        if problem is not None:
            notice = str(problem) or "The turn was cancelled."
            told = {kind: f"{text}\n\n{notice}" for kind, text in told.items()}
            told = told or {"text/plain": notice}
        if self._kernel is None:
            self._print(told["text/plain"] + "\n")
        elif self._live:
            self._send(told)

    def _print(self, text: str) -> None:
        sys.stdout.write(text[self._printed :])
        sys.stdout.flush()
        self._printed = max(self._printed, len(text))

    def _send(self, data: dict[str, Any]) -> None:
        kind = "update_display_data" if self._begun else "display_data"
        self._begun = True
        content = {"data": data, "metadata": {}, "transient": {"display_id": self._display_id}}
        self._session.send(
            self._kernel.iopub_socket, kind, content, parent=self._parent, ident=kind.encode()
        )
