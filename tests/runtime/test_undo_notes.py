"""Agents learn once what a person undid of their changes."""

from __future__ import annotations

from oh_jupyter.events import Actor
from oh_jupyter.runtime.undo_notes import MAX_NOTES, UndoNote, UndoNotes

CLAUDE, CODEX = Actor(guest="claude"), Actor(guest="codex")


def test_each_agent_receives_a_note_once() -> None:
    notes = UndoNotes()
    assert notes.take(CLAUDE) == notes.take(CODEX) == []
    notes.add("first")
    assert notes.take(CLAUDE) == ["first"]
    assert notes.take(CLAUDE) == []
    notes.add("second")
    assert notes.take(CODEX) == ["first", "second"]


def test_an_agent_that_comes_later_receives_no_earlier_notes() -> None:
    notes = UndoNotes()
    notes.add("first")
    assert notes.take(Actor()) == []


def test_changes_that_are_kept_one_after_the_other_are_one_note() -> None:
    notes = UndoNotes()
    notes.take(CLAUDE)
    notes.add_keep("a.ipynb", 1)
    notes.add_keep("a.ipynb", 2)
    notes.add_keep("b.py", 1)
    texts = ["The person kept 3 changes of a.ipynb.", "The person kept 1 change of b.py."]
    assert notes.take(CLAUDE) == texts
    notes.add_keep("b.py", 1)
    assert notes.take(CLAUDE) == texts[1:], "what was read is not counted again"
    notes.add_keep("b.py", 1)
    notes.add("undid")
    notes.add_keep("b.py", 1)
    assert notes.take(CLAUDE) == [texts[1], "undid", texts[1]]


def test_all_notes_stay_listed_with_their_diffs() -> None:
    notes = UndoNotes()
    notes.take(CLAUDE)
    notes.add("undid", "-new\n+old")
    notes.add_keep("b.py", 2)
    notes.take(CLAUDE)
    text = "The person kept 2 changes of b.py."
    assert notes.all == (UndoNote("undid", "-new\n+old"), UndoNote(text))


def test_the_newest_notes_remain() -> None:
    notes = UndoNotes()
    notes.take(CLAUDE)
    for number in range(MAX_NOTES + 5):
        notes.add(str(number))
    assert notes.take(CLAUDE) == [str(number) for number in range(5, MAX_NOTES + 5)]
    notes.add("next")
    assert notes.take(CLAUDE) == ["next"]
