import pytest

from oh_jupyter.editor import (
    EditorError,
    EditorParameterInvalidError,
    FileEditor,
    FileValidationError,
    NoReplacementError,
)

REVIEW = "Review the changes and make sure they are as expected. Edit the file again if necessary."
REVIEW_INSERTION = (
    "Review the changes and make sure they are as expected (correct indentation, no duplicate "
    "lines, etc). Edit the file again if necessary."
)


def replace(editor, path, old, new, **arguments):
    return editor(command="str_replace", path=path, old_str=old, new_str=new, **arguments)


def insert(editor, path, line, text, **arguments):
    return editor(command="insert", path=path, insert_line=line, new_str=text, **arguments)


def refusal(call, *arguments):
    with pytest.raises(EditorError) as caught:
        call(*arguments)
    return str(caught.value)


# create


@pytest.mark.parametrize("text", ["", "no newline", "one\ntwo\n", "crlf\r\nkept\r", "\ufeffbom ü"])
def test_create_stores_the_text_as_it_is(editor, workspace, text):
    path = workspace / "a.txt"
    result = editor(command="create", path=path, file_text=text)
    assert result.output == f"File created successfully at: {path}"
    assert (result.prev_exist, result.old_content, result.new_content) == (False, None, text)
    assert path.read_bytes() == text.encode()


def test_create_makes_and_reports_parents(editor, workspace):
    path = workspace / "x" / "y" / "a.txt"
    result = editor(command="create", path=path, file_text="")
    assert result.output == (
        f"File created successfully at: {path}\n"
        f"The directory {path.parent} did not exist and was created."
    )
    assert path.read_bytes() == b""


def test_create_checks_the_size_first(workspace, tmp_path):
    editor = FileEditor(workspace, max_file_size_mb=0.001, history_dir=tmp_path / "h")
    with pytest.raises(FileValidationError, match="too large"):
        editor(command="create", path=workspace / "a", file_text="x" * 2000)
    assert list(workspace.iterdir()) == []


def test_create_below_a_file(editor, workspace, write):
    write("a", "")
    message = refusal(lambda: editor(command="create", path=workspace / "a" / "b", file_text=""))
    assert message.startswith("Ran into ")
    assert message.endswith(f"while trying to write to {workspace}/a/b")


def test_text_that_cannot_be_encoded_is_refused(editor, workspace, write):
    path = write("a.txt", "x")
    for arguments in (
        {"command": "str_replace", "old_str": "x", "new_str": "\ud800"},
        {"command": "insert", "insert_line": 0, "new_str": "\ud800"},
        {"command": "write", "content": "\ud800"},
    ):
        with pytest.raises(EditorParameterInvalidError):
            editor(path=path, **arguments)
    with pytest.raises(EditorParameterInvalidError):
        editor(command="create", path=workspace / "b", file_text="\ud800")
    assert path.read_bytes() == b"x"


# str_replace


def test_a_replacement_and_its_output(editor, write):
    path = write("a.txt", "This is a test file.\nThis file is for testing purposes.")
    result = replace(editor, path, "test file", "sample file")
    assert result.output == (
        f"The file {path} has been edited. Here's the result of running `cat -n` on a snippet of "
        f"{path}:\n     1\tThis is a sample file.\n     2\tThis file is for testing purposes.\n"
        f"{REVIEW}"
    )
    assert result.old_content == "This is a test file.\nThis file is for testing purposes."
    assert result.new_content == "This is a sample file.\nThis file is for testing purposes."
    assert result.prev_exist
    assert path.read_text() == result.new_content


def test_the_snippet_reaches_from_three_lines_before_to_four_after(editor, write):
    path = write("a.txt", "\n".join(map(str, range(1, 21))))
    shown = replace(editor, path, "10\n", "ten\nten and a half\n").output.split("\n")[1:-1]
    numbers = [int(line.split("\t")[0]) for line in shown if line.strip()]
    assert (numbers[0], numbers[-1]) == (7, 17)  # the last one is the newline of line 16


def test_nothing_is_a_regular_expression(editor, write):
    path = write("a.txt", r"a.*b \1")
    replace(editor, path, ".*b \\1", r"\g<0> \n $")
    assert path.read_text() == r"a\g<0> \n $"


def test_without_new_str_the_text_is_deleted(editor, write):
    path = write("a.txt", "Line 1\nLine to remove\nLine 3")
    replace(editor, path, "Line to remove\n", None)
    assert path.read_text() == "Line 1\nLine 3"


def test_blanks_around_old_str_are_forgiven_but_new_str_is_kept(editor, write):
    path = write("a.txt", "one two")
    replace(editor, path, "  two \n", " 2  ")
    assert path.read_text() == "one  2  "


def test_absent_text(editor, write):
    path = write("a.txt", "abc\n")
    with pytest.raises(NoReplacementError) as caught:
        replace(editor, path, "  Non-existent Line ", "x")
    assert str(caught.value) == (
        "No replacement was performed, old_str `Non-existent Line` did not appear verbatim in "
        f"{path}."
    )


def test_several_occurrences(editor, write):
    block = 'def example():\n    print("Hello")\n    return True'
    path = write("a.py", f"{block}\n\nprint('separator')\n\n{block}")
    assert refusal(replace, editor, path, block, "x") == (
        f"No replacement was performed. Multiple occurrences of old_str `{block}` in lines [1, 7]. "
        "Please ensure it is unique."
    )


def test_several_occurrences_in_a_line_are_listed_once_and_do_not_overlap(editor, write):
    assert "in lines [1, 2]." in refusal(replace, editor, write("a", "xx\nx"), "x", "y")
    path = write("b", "aaa")
    replace(editor, path, "aa", "b")
    assert path.read_bytes() == b"ba"


def test_many_occurrences_are_found_in_linear_time_and_not_all_listed(editor, write):
    path = write("a.txt", "the same line\n" * 300_000)
    message = refusal(replace, editor, path, "same", "x")
    assert "99, 100, ... and 299900 more]. Please" in message
    assert len(message) < 1000


def test_an_empty_old_str_is_everywhere_except_in_an_empty_file(editor, write):
    path = write("a.txt", "Line 1\nLine 2\nLine 3")
    assert refusal(replace, editor, path, "", "x") == (
        "No replacement was performed. Multiple occurrences of old_str `` in lines [1, 2, 3]. "
        "Please ensure it is unique."
    )
    assert "in lines [1, 2]." in refusal(replace, editor, write("b.txt", "Line 1\n"), "", "x")
    empty = write("c.txt", "")
    replace(editor, empty, "", "x")
    assert empty.read_bytes() == b"x"


@pytest.mark.parametrize("text", ["abc", "missing", ""])
def test_equal_strings_are_refused(editor, write, text):
    path = write("a.txt", "abc")
    assert refusal(replace, editor, path, text, text) == (
        f"Invalid `new_str` parameter: {text}. No replacement was performed. `new_str` and "
        "`old_str` must be different."
    )


# insert


def test_an_insertion_and_its_output(editor, write):
    path = write("a.txt", "This is a test file.\nThis file is for testing purposes.")
    assert insert(editor, path, 1, "Inserted line").output == (
        f"The file {path} has been edited. Here's the result of running `cat -n` on a snippet of "
        "the edited file:\n     1\tThis is a test file.\n     2\tInserted line\n"
        f"     3\tThis file is for testing purposes.\n{REVIEW_INSERTION}"
    )


@pytest.mark.parametrize(
    ("before", "line", "text", "after"),
    [
        ("a\nb\n", 0, "x", "x\na\nb\n"),
        ("a\nb\n", 2, "x", "a\nb\nx\n"),
        ("a\nb\n", 1, "x\ny", "a\nx\ny\nb\n"),
        ("a\nb\n", 1, "x\n", "a\nx\n\nb\n"),
        ("a\nb\n", 1, "", "a\n\nb\n"),
        ("", 0, "x", "x\n"),
        ("a", 1, "x", "a\nx\n"),
        ("a", 0, "x", "x\na"),
        ("a\r\nb\r\n", 1, "x\ny", "a\r\nx\r\ny\r\nb\r\n"),
        ("a\r\nb", 2, "x", "a\r\nb\r\nx\r\n"),
    ],
)
def test_insertions(editor, write, before, line, text, after):
    path = write("a.txt", before)
    insert(editor, path, line, text)
    assert path.read_bytes() == after.encode()


@pytest.mark.parametrize("line", [-1, 3])
def test_a_line_that_is_not_there(editor, write, line):
    path = write("a.txt", "a\nb\n")
    assert refusal(insert, editor, path, line, "x") == (
        f"Invalid `insert_line` parameter: {line}. It should be within the range of allowed "
        "values: [0, 2]"
    )


def test_the_snippet_of_an_insertion(editor, write):
    path = write("a.txt", "\n".join(map(str, range(1, 21))))
    shown = insert(editor, path, 10, "x\ny").output.split("\n")[1:-1]
    numbers = [int(line.split("\t")[0]) for line in shown if line.strip()]
    assert (numbers[0], numbers[-1]) == (7, 17)


# write


@pytest.mark.parametrize(
    ("before", "content", "start", "end", "after"),
    [
        ("a\nb\nc\n", "x", 0, -1, "x\n"),
        ("a\nb\nc\n", "x\n", 0, -1, "x\n"),
        ("a\nb\nc\n", "x", 1, 2, "a\nx\nc\n"),
        ("a\nb\nc\n", "x\ny\n", 1, 1, "a\nx\ny\nb\nc\n"),
        ("a\nb\nc\n", "x", 1, -1, "a\nx\n"),
        ("a\nb\nc\n", "", 1, 2, "a\nc\n"),
        ("a\nb\nc", "x", 9, -1, "a\nb\nc\nx\n"),
        ("a\r\nb\r\n", "x\ny", 1, 2, "a\r\nx\r\ny\r\n"),
        ("a\nb\nc", "x", -5, 1, "x\nb\nc"),
    ],
)
def test_writing_lines(editor, write, before, content, start, end, after):
    path = write("a.txt", before)
    editor(command="write", path=path, content=content, start=start, end=end)
    assert path.read_bytes() == after.encode()
    editor(command="undo_edit", path=path)
    assert path.read_bytes() == before.encode()


def test_writing_a_new_file(editor, workspace):
    path = workspace / "new" / "a.txt"
    editor(command="write", path=path, content="x")
    assert path.read_bytes() == b"x\n"


# notebooks, linting


NOTEBOOK = '{"cells": [{"cell_type": "code", "source": ["x = 1"]}], "nbformat": 4}'


def test_a_notebook_is_never_left_broken(editor, write):
    path = write("a.ipynb", NOTEBOOK)
    message = refusal(replace, editor, path, '"x = 1"', '"x = "1""')
    assert f"The edit would make {path} an invalid notebook: invalid JSON" in message
    assert "an invalid notebook" in refusal(replace, editor, path, '"cells"', '"sells"')
    assert path.read_text() == NOTEBOOK
    replace(editor, path, "x = 1", "x = 2")
    assert '"x = 2"' in path.read_text()


def test_a_broken_notebook_may_be_repaired_step_by_step(editor, write):
    path = write("a.ipynb", NOTEBOOK.replace("]", ""))
    replace(editor, path, '["x = 1"', '["x = 1"]')
    replace(editor, path, '"]}, ', '"]}], ')
    assert path.read_text() == NOTEBOOK


def test_linting_reports_errors_of_the_edit(editor, write):
    path = write("a.py", "x = 1\ny = (\n")
    clean = write("b.py", "x = 1\n")
    output = replace(editor, clean, "1", "(", enable_linting=True).output
    assert (
        "\nLinting issues found in the changes:\n- Line 1, Column 6: E999 SyntaxError: " in output
    )
    assert output.endswith(f"\n\n{REVIEW}")
    output = insert(editor, path, 0, "z = 1", enable_linting=True).output
    assert f"\n\nNo linting issues found in the changes.\n{REVIEW_INSERTION}" in output
