"""Notes for agents: which of their changes a person undid in a tab."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

MAX_NOTES = 100  # later ones replace the oldest


class UndoNotes:
    """The notes of a runtime, each returned once to every agent that was there before it."""

    def __init__(self) -> None:
        self._notes: list[str] = []
        self._dropped = 0
        self._positions: dict[str, int] = {}

    def add(self, note: str) -> None:
        """Add a note."""
        self._notes.append(note)
        excess = max(0, len(self._notes) - MAX_NOTES)
        del self._notes[:excess]
        self._dropped += excess

    def take(self, actor: Mapping[str, Any] | None) -> list[str]:
        """Return the notes that an agent has not received."""
        reader = json.dumps(dict(actor or {}), sort_keys=True)
        end = self._dropped + len(self._notes)
        start = self._positions.get(reader, end)
        self._positions[reader] = end
        return self._notes[max(0, start - self._dropped) :]
