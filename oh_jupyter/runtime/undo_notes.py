"""Notes for agents: which of their changes a person undid or kept in a tab."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from oh_jupyter.events.actor import Actor

MAX_NOTES = 100  # later ones replace the oldest


@dataclass(frozen=True)
class UndoNote:
    """A note on changes that the person undid or kept.

    Attributes:
        text: The note, a sentence.
        diff: What the undo changed in the file; "" for changes that were kept.
    """

    text: str
    diff: str = ""


class UndoNotes:
    """The notes of a runtime, each returned once to every agent that was there before it."""

    def __init__(self) -> None:
        self._notes: list[UndoNote] = []
        self._dropped = 0
        self._positions: dict[Actor, int] = {}
        self._last_keep = ("", 0)

    @property
    def all(self) -> Sequence[UndoNote]:
        """All notes that remain, oldest first."""
        return tuple(self._notes)

    def add_keep(self, name: str, count: int) -> None:
        """Add a note on changes of a file that were kept; successive ones become one note."""
        last_name, last_count = self._last_keep
        end = self._dropped + len(self._notes)
        last = UndoNote(_keep_note(name, last_count))
        is_successive = name == last_name and self._notes[-1:] == [last]
        if is_successive and end not in self._positions.values():
            count += last_count
            self._notes.pop()
        self.add(_keep_note(name, count))
        self._last_keep = (name, count)

    def add(self, text: str, diff: str = "") -> None:
        """Add a note."""
        self._notes.append(UndoNote(text, diff))
        excess = max(0, len(self._notes) - MAX_NOTES)
        del self._notes[:excess]
        self._dropped += excess

    def take(self, reader: Actor) -> list[str]:
        """Return the texts of the notes that an agent has not received."""
        end = self._dropped + len(self._notes)
        start = self._positions.get(reader, end)
        self._positions[reader] = end
        return [note.text for note in self._notes[max(0, start - self._dropped) :]]


def _keep_note(name: str, count: int) -> str:
    return f"The person kept {count} change{'' if count == 1 else 's'} of {name}."
