"""What the panel of changes asks a kernel."""

from __future__ import annotations

import pytest


@pytest.fixture
def notes(kernel):
    path = kernel.directory / "notes_of_changes.py"
    assert kernel.act("write", path=str(path), content="one = 1")["observation"] == "write"
    kernel.act("edit", path=str(path), command="insert", insert_line=1, new_str="two = 2")
    return path


def listed(kernel, path) -> list[dict]:
    fields, found = kernel.ask("changes")
    assert (fields["status"], found["workspace"]) == ("ok", str(kernel.directory))
    return [each for each in found["files"] if each["path"] == str(path)]


def test_a_file_is_compared_undone_and_redone(kernel, notes) -> None:
    (summary,) = listed(kernel, notes)
    assert (summary["kind"], summary["added"], summary["removed"]) == ("created", 2, 0)
    assert (summary["undoable"], summary["redoable"]) == (True, False)
    _, whole = kernel.ask("change", path=str(notes))
    assert whole == {"old": "", "new": "one = 1\ntwo = 2\n"}

    _, done = kernel.ask("undo_change", path=str(notes))
    assert (done["observation"], done["source"]) == ("edit", "user")
    assert notes.read_text() == "one = 1\n"
    (summary,) = listed(kernel, notes)
    assert (summary["undoable"], summary["redoable"]) == (True, True)
    kernel.ask("undo_change", path=str(notes))
    assert listed(kernel, notes) == []
    fields, _ = kernel.ask("change", path=str(notes))
    assert fields["evalue"] == f"{notes} is as it was when the session began"

    kernel.ask("undo_change", path=str(notes), redo=True)
    assert notes.read_text() == "one = 1\n"


def test_what_cannot_be_shown_says_why(kernel) -> None:
    path = kernel.directory / "numbers_of_changes.bin"
    path.write_bytes(b"\0\1")
    kernel.act("edit", path=str(path), command="str_replace", old_str="x", new_str="y")
    assert listed(kernel, path) == []
    fields, _ = kernel.ask("undo_change", path=1)
    assert (fields["ename"], fields["field"]) == ("WireError", "path")
