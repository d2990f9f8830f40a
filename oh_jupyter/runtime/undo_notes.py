"""Notes for agents: which of their changes a person undid or kept in a tab."""

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
        self._last_keep = ("", 0)

    def add_keep(self, name: str, count: int) -> None:
        """Add a note on changes of a file that were kept; successive ones become one note."""
        last_name, last_count = self._last_keep
        end = self._dropped + len(self._notes)
        is_successive = name == last_name and self._notes[-1:] == [_keep_note(name, last_count)]
        if is_successive and end not in self._positions.values():
            count += last_count
            self._notes.pop()
        self.add(_keep_note(name, count))
        self._last_keep = (name, count)

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


def _keep_note(name: str, count: int) -> str:
    return f"The person kept {count} change{'' if count == 1 else 's'} of {name}."
