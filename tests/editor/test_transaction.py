"""Several edits as one: all of them or none, and one step to undo."""

import os

import pytest

from oh_jupyter.editor import (
    EditorError,
    EditorParameterInvalidError,
    FileChangedError,
    NoHistoryError,
    NoReplacementError,
)
from oh_jupyter.state.shared import open_ledger


def replacing(path, old, new):
    return {"command": "str_replace", "path": path, "old_str": old, "new_str": new}


@pytest.fixture
def two(write):
    return write("a.txt", "one\r\n"), write("b.txt", "zwei\n")


@pytest.fixture
def edited(editor, two):
    editor.edit_many([replacing(two[0], "one", "1"), replacing(two[1], "zwei", "2")])
    return two


def contents(paths):
    return [path.read_bytes() if path.exists() else None for path in paths]


def test_all_edits_are_made_and_reported(editor, two, workspace):
    a, b = two
    new = workspace / "sub" / "c.txt"
    result = editor.edit_many(
        [
            replacing(a, "one", "1"),
            {"command": "insert", "path": b, "insert_line": 1, "new_str": "drei"},
            {"command": "create", "path": new, "file_text": "x\n"},
            {"command": "write", "path": workspace / "d.txt", "content": "d"},
            replacing(new, "x", "y"),
        ]
    )
    assert contents([a, b, new, workspace / "d.txt"]) == [b"1\r\n", b"zwei\ndrei\n", b"y\n", b"d\n"]
    assert result.output.startswith("5 edits of 4 files made together, as one step.\n")
    assert [(f.path, f.old_content, f.new_content) for f in result.files] == [
        (str(a), "one\n", "1\n"),
        (str(b), "zwei\n", "zwei\ndrei\n"),
        (str(new), None, "y\n"),
        (str(workspace / "d.txt"), None, "d\n"),
    ]
    assert f"--- {a}" in result.diff
    assert "+drei" in result.diff


def test_the_edits_see_one_another(editor, two):
    editor.edit_many([replacing(two[0], "one", "two"), replacing(two[0], "two", "three")])
    assert two[0].read_bytes() == b"three\r\n"
    editor(command="undo_edit", path=two[0])
    assert two[0].read_bytes() == b"one\r\n"


def test_if_one_is_refused_none_is_made(editor, two, tmp_path):
    with pytest.raises(NoReplacementError) as caught:
        editor.edit_many([replacing(two[0], "one", "1"), replacing(two[1], "absent", "2")])
    assert str(caught.value).startswith("No replacement was performed, old_str `absent`")
    assert str(caught.value).endswith(
        f"This is edit 2 of 2 (str_replace in {two[1]}); none of the edits was applied."
    )
    assert contents(two) == [b"one\r\n", b"zwei\n"]
    with pytest.raises(NoHistoryError):
        editor(command="undo_edit", path=two[0])


@pytest.mark.parametrize(
    ("edits", "word"),
    [
        ([], "list of dicts"),
        ("str_replace", "list of dicts"),
        ({"command": "create"}, "list of dicts"),
        ([{"path": "/a"}], "needs a `command`"),
        ([{"command": "create"}], "needs a `command`"),
        (
            [{"command": "create", "path": "/a", "text": "x"}],
            "besides command and path are: file_text",
        ),
        ([{"command": "create", "path": "a", "file_text": "x"}], "absolute path"),
        ([{"command": "create", "path": "/a", "file_text": 5}], "should be a string"),
        ([{"command": "view", "path": "/a"}], "Unrecognized command view"),
    ],
)
def test_wrong_input(editor, edits, word):
    with pytest.raises(EditorError, match=word):
        editor.edit_many(edits)


def test_a_file_cannot_be_created_twice(editor, workspace):
    path = workspace / "a"
    create = {"command": "create", "path": path, "file_text": "x"}
    with pytest.raises(EditorParameterInvalidError, match="File already exists"):
        editor.edit_many([create, create])
    assert not path.exists()


def test_a_write_that_fails_midway_is_reverted(editor, two, workspace, monkeypatch):
    folder = workspace / "sub"
    new = folder / "c.txt"
    real = os.replace

    def full(source, target, **more):
        if os.path.basename(target) == new.name:
            raise OSError(28, "No space left on device")
        return real(source, target, **more)

    monkeypatch.setattr(os, "replace", full)
    edits = [
        replacing(two[0], "one", "1"),
        replacing(two[1], "zwei", "2"),
        {"command": "create", "path": new, "file_text": "x"},
    ]
    with pytest.raises(EditorError, match="No space left on device"):
        editor.edit_many(edits)
    monkeypatch.undo()
    assert contents(two) == [b"one\r\n", b"zwei\n"]
    assert sorted(os.listdir(workspace)) == ["a.txt", "b.txt"]
    assert editor.history(two[0]) == []
    editor.edit_many(edits)
    assert contents([*two, new]) == [b"1\r\n", b"2\n", b"x"]


@pytest.mark.parametrize("first", [0, 1])
def test_undo_and_redo_of_any_file_are_those_of_all(editor, another_editor, edited, first):
    result = another_editor(command="undo_edit", path=edited[first])
    assert contents(edited) == [b"one\r\n", b"zwei\n"]
    assert result.output.startswith(f"Last edit to {edited[first]} undone successfully. ")
    assert f"changed 2 files; it was undone in all of them, including {edited[1 - first]}." in (
        result.output
    )
    assert len(result.files) == 2
    with pytest.raises(NoHistoryError):
        editor(command="undo_edit", path=edited[1 - first])
    editor(command="redo_edit", path=edited[1 - first])
    assert contents(edited) == [b"1\r\n", b"2\n"]
    assert editor(command="undo_edit", path=edited[0], dry_run=True).dry_run
    assert contents(edited) == [b"1\r\n", b"2\n"]


def test_undo_is_refused_where_another_of_the_files_was_edited_since(editor, edited):
    a, b = edited
    editor(**replacing(b, "2", "3"))
    with pytest.raises(FileChangedError) as caught:
        editor(command="undo_edit", path=a)
    assert f"but {b} was changed since. Undo the later edits of that file first" in str(
        caught.value
    )
    assert contents(edited) == [b"1\r\n", b"3\n"]
    editor(command="undo_edit", path=b)
    editor(command="undo_edit", path=a)
    assert contents(edited) == [b"one\r\n", b"zwei\n"]


def test_redo_is_refused_where_another_of_the_files_went_on(editor, edited):
    a, b = edited
    editor(command="undo_edit", path=a)
    editor(**replacing(b, "zwei", "3"))
    with pytest.raises(FileChangedError, match="can no longer be redone"):
        editor(command="redo_edit", path=a)
    assert contents(edited) == [b"one\r\n", b"3\n"]


def test_a_foreign_change_elsewhere_survives_undo(editor, write):
    a, b = write("a", "1\n" + "x\n" * 9), write("b", "1\n")
    editor.edit_many([replacing(a, "1", "one"), replacing(b, "1", "one")])
    a.write_text(a.read_text() + "theirs\n")
    editor(command="undo_edit", path=b)
    assert a.read_text() == "1\n" + "x\n" * 9 + "theirs\n"
    assert b.read_text() == "1\n"


def test_a_foreign_change_of_the_same_place_stops_undo(editor, edited):
    edited[1].write_text("theirs\n")
    with pytest.raises(FileChangedError, match="changed by somebody else"):
        editor(command="undo_edit", path=edited[0])
    assert contents(edited) == [b"1\r\n", b"theirs\n"]


def test_a_foreign_deletion_stops_undo_until_the_file_is_back(editor, edited):
    edited[1].unlink()
    with pytest.raises(FileChangedError, match="was changed since"):
        editor(command="undo_edit", path=edited[0])
    editor(command="undo_edit", path=edited[1])
    assert edited[1].read_bytes() == b"2\n"
    editor(command="undo_edit", path=edited[0])
    assert contents(edited) == [b"one\r\n", b"zwei\n"]


def test_a_file_whose_history_forgot_the_edit_is_left(editor, edited, tmp_path):
    ledger = open_ledger(tmp_path / "history")
    chosen = "SELECT id FROM edited_files WHERE path = ?"
    values = (os.fsencode(edited[1]),)
    assert ledger.execute(f"DELETE FROM edits WHERE file IN ({chosen})", values) > 0
    result = editor(command="undo_edit", path=edited[0])
    assert contents(edited) == [b"one\r\n", b"2\n"]
    assert "no longer in the history of these files" in result.output


def test_a_change_since_the_last_view_is_found(editor, two):
    editor(command="view", path=two[1])
    two[1].write_text("theirs\n")
    edits = [
        replacing(two[0], "one", "1"),
        {"command": "write", "path": two[1], "content": "mine"},
    ]
    with pytest.raises(FileChangedError, match="changed by somebody else"):
        editor.edit_many(edits)
    assert contents(two) == [b"one\r\n", b"theirs\n"]
    editor.edit_many(edits)
    assert contents(two) == [b"1\r\n", b"mine\n"]


def test_a_change_elsewhere_is_noted(editor, write):
    path = write("a", "x\n" * 10 + "end\n")
    editor(command="view", path=path)
    path.write_text("theirs\n" + "x\n" * 9 + "end\n")
    result = editor.edit_many([replacing(path, "end", "END")])
    assert "NOTE: " in result.output
    assert path.read_text() == "theirs\n" + "x\n" * 9 + "END\n"


def test_a_dry_run_and_linting(editor, write):
    path = write("a.py", "x = 1\n")
    edits = [replacing(path, "1", "(")]
    result = editor.edit_many(edits, dry_run=True, enable_linting=True)
    assert result.output.startswith("DRY RUN")
    assert "Linting issues found in the changes:" in result.output
    assert result.files[0].new_content == "x = (\n"
    assert path.read_text() == "x = 1\n"


def test_the_with_block(editor, two):
    with editor.transaction() as edit:
        result = edit(**replacing(two[0], "one", "1"))
        assert result.dry_run
        assert result.new_content == "1\n"
        edit(**replacing(two[0], "1", "I"))
        with pytest.raises(NoReplacementError):
            edit(**replacing(two[1], "absent", "x"))
        edit(**replacing(two[1], "zwei", "II"))
        assert contents(two) == [b"one\r\n", b"zwei\n"]
    assert contents(two) == [b"I\r\n", b"II\n"]
    assert len(edit.result.files) == 2
    editor(command="undo_edit", path=two[0])
    assert contents(two) == [b"one\r\n", b"zwei\n"]


def test_a_block_that_fails_does_nothing(editor, two):
    edit = editor.transaction()

    def block():
        with edit:
            edit(**replacing(two[0], "one", "1"))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        block()
    assert edit.result is None
    assert contents(two) == [b"one\r\n", b"zwei\n"]


def test_a_link_and_its_target_are_one_file(editor, write, workspace):
    path = write("a", "1 2")
    link = workspace / "link"
    link.symlink_to(path)
    result = editor.edit_many([replacing(path, "1", "one"), replacing(link, "2", "two")])
    assert path.read_text() == "one two"
    assert link.is_symlink()
    assert len(result.files) == 1


def test_opposite_orders_do_not_wait_for_each_other(editor, another_editor, two):
    from concurrent.futures import ThreadPoolExecutor

    a, b = two

    def back_and_forth(each, paths):
        for _ in range(20):
            each.edit_many(
                [{"command": "insert", "path": p, "insert_line": 0, "new_str": "x"} for p in paths]
            )

    with ThreadPoolExecutor(2) as pool:
        jobs = [
            pool.submit(back_and_forth, editor, [a, b]),
            pool.submit(back_and_forth, another_editor, [b, a]),
        ]
        errors = [job.exception(timeout=60) for job in jobs]
    assert not [error for error in errors if error and not isinstance(error, FileChangedError)]
    lines = a.read_bytes().count(b"x")
    assert lines == b.read_bytes().count(b"x") > 0
