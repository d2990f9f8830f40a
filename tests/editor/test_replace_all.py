"""Replacing a text in several places, and trying without writing."""

import pytest

from oh_jupyter.editor import EditorParameterInvalidError, NoHistoryError, NoReplacementError


def replace(editor, path, old, new, **arguments):
    return editor(command="str_replace", path=path, old_str=old, new_str=new, **arguments)


def test_every_occurrence_is_replaced_and_nothing_else(editor, write):
    path = write("a.txt", "x = 1\r\ny = 2\nx = 1\rz\nx = 1")
    result = replace(editor, path, "x = 1", "long name = 1\nmore", replace_all=True)
    assert path.read_bytes() == (
        b"long name = 1\r\nmore\r\ny = 2\nlong name = 1\nmore\rz\nlong name = 1\nmore"
    )
    assert result.output.endswith("\n3 occurrences replaced, in lines [1, 3, 5].")
    editor(command="undo_edit", path=path)
    assert path.read_bytes() == b"x = 1\r\ny = 2\nx = 1\rz\nx = 1"


def test_occurrences_do_not_overlap(editor, write):
    path = write("a.txt", "aaaaa")
    replace(editor, path, "aa", "b", replace_all=True)
    assert path.read_bytes() == b"bba"


def test_an_expected_count_has_to_be_right(editor, write):
    path = write("a.txt", "x\nx\ny\n")
    with pytest.raises(NoReplacementError) as caught:
        replace(editor, path, "x", "z", expected_replacements=3)
    assert str(caught.value) == (
        f"No replacement was performed. Expected 3 occurrences of old_str `x` in {path}, found 2 "
        "in lines [1, 2]."
    )
    with pytest.raises(NoReplacementError):
        replace(editor, path, "x", "z", replace_all=True, expected_replacements=1)
    replace(editor, path, "x", "z", expected_replacements=2)
    assert path.read_bytes() == b"z\nz\ny\n"


@pytest.mark.parametrize("count", [0, -1, True, "2", 1.0])
def test_a_count_is_a_positive_number(editor, write, count):
    path = write("a.txt", "x")
    with pytest.raises(EditorParameterInvalidError, match="expected_replacements"):
        replace(editor, path, "x", "y", expected_replacements=count)


def test_no_text_is_nowhere_and_everywhere(editor, write):
    path = write("a.txt", "x")
    with pytest.raises(EditorParameterInvalidError, match="It is empty"):
        replace(editor, path, "", "y", replace_all=True)
    with pytest.raises(NoReplacementError, match="did not appear verbatim"):
        replace(editor, path, "absent", "y", replace_all=True)


def test_without_asking_for_all_one_is_required(editor, write):
    path = write("a.txt", "x\nx")
    with pytest.raises(NoReplacementError, match="Multiple occurrences"):
        replace(editor, path, "x", "y")


@pytest.mark.thorough
def test_many_occurrences_are_replaced_in_linear_time(editor, write):
    path = write("a.txt", "word ü\n" * 100_000)
    replace(editor, path, "word", "term", replace_all=True)
    assert path.read_text() == "term ü\n" * 100_000


# Dry runs


@pytest.mark.parametrize(
    "arguments",
    [
        {"command": "str_replace", "old_str": "one", "new_str": "1"},
        {"command": "insert", "insert_line": 1, "new_str": "x"},
        {"command": "write", "content": "all new"},
        {"command": "apply_patch", "content": "@@\n-one\n+1\n"},
    ],
)
def test_a_dry_run_previews_and_writes_nothing(editor, write, tmp_path, arguments):
    path = write("a.txt", "one\r\ntwo\r\n")
    tried = editor(path=path, dry_run=True, **arguments)
    assert tried.dry_run
    assert tried.output.startswith("DRY RUN: nothing was written.")
    assert path.read_bytes() == b"one\r\ntwo\r\n"
    assert not (tmp_path / "history").exists()
    done = editor(path=path, **arguments)
    assert not done.dry_run
    assert tried.output.endswith(done.output)
    assert (tried.new_content, tried.diff) == (done.new_content, done.diff)
    assert tried.diff


def test_a_dry_run_of_a_new_file_makes_neither_file_nor_directory(editor, workspace):
    path = workspace / "sub" / "a.txt"
    for command, name in (("create", "file_text"), ("write", "content")):
        result = editor(command=command, path=path, dry_run=True, **{name: "x\n"})
        assert result.new_content == "x\n"
        assert "was created" in result.output
        assert list(workspace.iterdir()) == []


def test_a_dry_run_is_refused_as_the_edit_would_be(editor, write):
    path = write("a.txt", "x")
    with pytest.raises(NoReplacementError):
        replace(editor, path, "y", "z", dry_run=True)
    with pytest.raises(NoHistoryError):
        editor(command="undo_edit", path=path, dry_run=True)


def test_a_dry_run_of_undo_and_redo(editor, write):
    path = write("a.txt", "x")
    replace(editor, path, "x", "y")
    assert editor(command="undo_edit", path=path, dry_run=True).new_content == "x"
    assert path.read_bytes() == b"y"
    editor(command="undo_edit", path=path)
    assert editor(command="redo_edit", path=path, dry_run=True).new_content == "y"
    assert path.read_bytes() == b"x"


def test_a_dry_run_shows_nothing_so_a_foreign_change_is_still_reported(editor, write):
    path = write("a.txt", "a\n" * 20 + "end\n")
    editor(command="view", path=path)
    path.write_text("b\n" + "a\n" * 19 + "end\n")
    for _ in range(2):
        tried = replace(editor, path, "end", "END", dry_run=True)
        assert "was changed by somebody else" in tried.output
