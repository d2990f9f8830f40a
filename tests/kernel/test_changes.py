"""Requests of the panel of changes."""

from __future__ import annotations

import json

import pytest

UNDONE = {"kept": "", "failure": ""}
"""Reply to an undo or redo that changed the file."""


@pytest.fixture
def notes(kernel):
    path = kernel.directory / "notes_of_changes.py"
    assert kernel.act("write", path=str(path), content="one = 1")["observation"] == "write"
    kernel.act("edit", path=str(path), command="insert", insert_line=1, new_str="two = 2")
    return path


def listed(kernel, path) -> list[dict]:
    fields, changes = kernel.ask("changes")
    assert (fields["status"], changes["workspace"]) == ("ok", str(kernel.directory))
    return [each for each in changes["files"] if each["path"] == str(path)]


def test_a_file_is_compared_undone_and_redone(kernel, notes) -> None:
    (summary,) = listed(kernel, notes)
    assert (summary["kind"], summary["added"], summary["removed"]) == ("created", 2, 0)
    assert (summary["undoable"], summary["redoable"]) == (True, False)
    _, whole = kernel.ask("change", path=str(notes))
    assert (whole["old"], whole["new"]) == ("", "one = 1\ntwo = 2\n")
    assert (whole["cells"], whole["reason"]) == ([], None)

    _, done = kernel.ask("undo_change", path=str(notes))
    assert done == UNDONE
    last = kernel.ask("events", start_id=0)[1]["events"][-1]
    assert (last["observation"], last["source"]) == ("edit", "user")
    assert notes.read_text() == "one = 1\n"
    (summary,) = listed(kernel, notes)
    assert (summary["undoable"], summary["redoable"]) == (True, True)
    kernel.ask("undo_change", path=str(notes))
    assert listed(kernel, notes) == []
    fields, _ = kernel.ask("change", path=str(notes))
    assert fields["evalue"] == f"{notes} has not changed in this session"

    kernel.ask("undo_change", path=str(notes), redo=True)
    assert notes.read_text() == "one = 1\n"


def test_files_that_run_are_named_with_the_act_of_the_person(kernel) -> None:
    project, notes = kernel.directory / "pyproject.toml", kernel.directory / "plain_of_changes.txt"
    makefile = kernel.directory / "of_changes" / "Makefile"
    settled(kernel)
    project.write_text("[project]\nname = 'a'\n")
    kernel.act("write", path=str(notes), content="x")
    kernel.act("run", command=f"mkdir {makefile.parent}; echo all: > {makefile}")
    kernel.act("write", path=str(project), content="[project]\nname = 'b'\n")
    acts = {path: listed(kernel, path)[0]["runs_when"] for path in (project, notes, makefile)}
    assert acts == {project: None, notes: None, makefile: "you run make"}
    kernel.act("write", path=str(project), content="[build-system]\nrequires = []\n")
    assert listed(kernel, project)[0]["runs_when"] == "you install the project"
    for before, act in (("", "you install the project"), (project.read_text(), None)):
        _, reply = kernel.ask("runs_when", path=str(project), before=before)
        assert reply == act


def test_what_cannot_be_shown_says_why(kernel) -> None:
    path = kernel.directory / "numbers_of_changes.bin"
    path.write_bytes(b"\0\1")
    kernel.act("edit", path=str(path), command="str_replace", old_str="x", new_str="y")
    assert listed(kernel, path) == []
    fields, _ = kernel.ask("undo_change", path=1)
    assert (fields["ename"], fields["field"]) == ("WireError", "path")


@pytest.fixture
def by_command(kernel):
    """A file that a command changed in an agent's turn."""
    path = kernel.directory / "by_command_of_changes.txt"
    settled(kernel)
    path.write_text("one\ntwo\nthree\nfour\nfive\n")
    kernel.act("run", command=f"sed -i s/two/TWO/ {path.name}; echo new > made_of_changes.txt")
    return path


def test_what_a_command_changed_is_undone_and_redone(kernel, by_command) -> None:
    made = kernel.directory / "made_of_changes.txt"
    before, after = "one\ntwo\nthree\nfour\nfive\n", "one\nTWO\nthree\nfour\nfive\n"
    for path, undone, redone in ((by_command, before, after), (made, None, "new\n")):
        (summary,) = listed(kernel, path)
        assert (summary["undoable"], summary["redoable"]) == (True, False)
        _, answer = kernel.ask("undo_change", path=str(path))
        assert answer == UNDONE
        assert (path.read_text() if path.exists() else None) == undone
        assert listed(kernel, path) == []
        kernel.ask("undo_change", path=str(path), redo=True)
        assert path.read_text() == redone
        (summary,) = listed(kernel, path)
        assert (summary["undoable"], summary["redoable"]) == (True, False)


def test_what_others_changed_meanwhile_is_not_undone_without_a_word(kernel, by_command) -> None:
    settled(kernel)
    text = by_command.read_text()
    by_command.write_text(text.replace("five", "FIVE"))
    _, answer = kernel.ask("undo_change", path=str(by_command))
    assert answer == UNDONE
    assert by_command.read_text() == "one\ntwo\nthree\nfour\nFIVE\n"
    kernel.ask("undo_change", path=str(by_command), redo=True)

    by_command.write_text(by_command.read_text().replace("TWO", "ZWEI"))
    _, answer = kernel.ask("undo_change", path=str(by_command))
    assert "changed by others since" in answer["kept"]
    assert "ZWEI" in by_command.read_text()
    _, answer = kernel.ask("undo_change", path=str(by_command), everything=True)
    assert answer == UNDONE
    assert by_command.read_text() == "one\ntwo\nthree\nfour\nfive\n"


def test_what_was_changed_again_is_not_lost_by_redoing(kernel, by_command) -> None:
    kernel.ask("undo_change", path=str(by_command))
    kernel.act("run", command=f"sed -i s/one/ONE/ {by_command.name}")
    settled(kernel)
    (summary,) = listed(kernel, by_command)
    assert (summary["undoable"], summary["redoable"]) == (True, False)
    kernel.ask("undo_change", path=str(by_command), redo=True)
    assert by_command.read_text().startswith("ONE\n")


def test_what_a_rewind_would_change_is_compared(kernel) -> None:
    notebook = kernel.directory / "rewound_of_changes.ipynb"
    changed = kernel.directory / "changed_of_changes.ipynb"
    settled(kernel)
    notebook.write_text(notebook_of("print(1)", "1\n"))
    changed.write_text(notebook_of("print(2)", "2\n"))
    kernel.act("run", command=f"cp {changed.name} {notebook.name}")
    _, contents = kernel.ask("rewind_change", path=notebook.name)
    (change,) = contents["cells"]
    assert (change["kind"], change["old_source"], change["new_source"]) == (
        "changed",
        "print(2)",
        "print(1)",
    )
    assert (change["old_outputs"].strip(), change["new_outputs"].strip()) == ("2", "1")

    fields, _ = kernel.ask("rewind_change", path="other.ipynb")
    assert fields["evalue"] == "This rewind does not change the contents of other.ipynb"
    fields, _ = kernel.ask("rewind_change", id="x", path=notebook.name)
    assert (fields["ename"], fields["field"]) == ("WireError", "id")


def notebook_of(source: str, output: str) -> str:
    stream = {"output_type": "stream", "name": "stdout", "text": output}
    cell = {"id": "a", "cell_type": "code", "source": source, "metadata": {}}
    cell |= {"execution_count": 1, "outputs": [stream]}
    return json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


def settled(kernel) -> None:
    """End the agent's turn, as an Action of the person does: later changes are not the agent's."""
    kernel.execute("oh.write('mine_of_changes.txt', 'mine');")
