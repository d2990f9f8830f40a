"""Every event on IOPub, small, for whoever watches. Nothing depends on its arrival."""

from __future__ import annotations

import threading
from typing import Any

from jupyter_client.session import Session

from oh_jupyter.config import DECISION_MESSAGE, EVENT_MESSAGE

__all__ = ["Broadcast", "clipped"]

MAX_CHARACTERS = 4000
"""Longest string that is broadcast; the whole event can be asked for."""

_LEFT_OUT = ("screenshot", "set_of_marks", "image_urls", "dom_object", "axtree_object")
_LEFT_OUT_TOO = ("extra_element_properties", "goal_image_urls")


def clipped(event: dict[str, Any], limit: int = MAX_CHARACTERS) -> dict[str, Any]:
    """A copy of an event that is small enough to be sent to everybody.

    Args:
        event: Wire form of an Action or Observation.
        limit: Longest string, in characters.

    Returns:
        The copy; ``clipped`` is true in it if anything was cut or left out.
    """
    small: dict[str, Any] = {}
    cut = False
    for name, value in event.items():
        if isinstance(value, dict):
            inner = {k: v for k, v in value.items() if k not in (*_LEFT_OUT, *_LEFT_OUT_TOO)}
            cut = cut or any(value[k] for k in value.keys() - inner.keys())
            small[name] = clipped(inner, limit)
            cut = small[name].pop("clipped", False) or cut
        elif isinstance(value, str) and len(value) > limit:
            small[name] = value[:limit]
            cut = True
        else:
            small[name] = value
    if cut:
        small["clipped"] = True
    return small


class Broadcast:
    """Sends events to the frontends of a kernel."""

    def __init__(self, kernel: Any, generation: str) -> None:
        """Prepare.

        Args:
            kernel: The ipykernel.
            generation: Id of the runtime whose events these are.
        """
        self._kernel = kernel
        self._generation = generation
        self._sequence = 0
        self._lock = threading.Lock()
        # The kernel's own session counts its messages without a lock.
        self._session = Session(
            key=kernel.session.key, signature_scheme=kernel.session.signature_scheme
        )

    def send(self, event: dict[str, Any]) -> None:
        """Send one event; from any thread.

        Args:
            event: Wire form of an Action or Observation.
        """
        content = {
            "generation": self._generation,
            "seq": self._sequence,
            "event": clipped(event),
        }
        self._sequence += 1
        self._publish(EVENT_MESSAGE, content)

    def send_decision(self, id: int, approved: bool) -> None:
        """Tell that an Action does not wait any more; from any thread.

        One that was approved may run for long before its Observation tells the same.

        Args:
            id: The Action's.
            approved: Whether it may begin.
        """
        content = {"generation": self._generation, "id": id, "approved": approved}
        self._publish(DECISION_MESSAGE, content)

    def _publish(self, kind: str, content: dict[str, Any]) -> None:
        with self._lock:
            self._session.send(self._kernel.iopub_socket, kind, content, ident=kind.encode())
