import subprocess
import sys

import pytest

from oh_jupyter.editor import (
    EditorError,
    EditorParameterInvalidError,
    EditorParameterMissingError,
    FileEditor,
)


def refusal(editor, **arguments):
    with pytest.raises(EditorError) as caught:
        editor(**arguments)
    return str(caught.value)


def test_a_relative_path_is_refused_with_a_suggestion(editor, workspace, write):
    write("a.txt", "")
    hint = "The path should be an absolute path, starting with `/`."
    assert refusal(editor, command="view", path="a.txt") == (
        f"Invalid `path` parameter: a.txt. {hint} Maybe you meant {workspace / 'a.txt'}?"
    )
    assert (
        refusal(editor, command="view", path="b.txt") == f"Invalid `path` parameter: b.txt. {hint}"
    )


def test_the_workspace_is_the_working_directory_or_made_absolute(workspace, write, monkeypatch):
    write("a.txt", "")
    monkeypatch.chdir(workspace)
    assert f"Maybe you meant {workspace}/a.txt?" in refusal(
        FileEditor(), command="view", path="a.txt"
    )
    monkeypatch.chdir(workspace.parent)
    assert FileEditor("workspace").workspace == workspace


@pytest.mark.parametrize("command", ["view", "str_replace", "insert", "undo_edit", "redo_edit"])
def test_a_missing_file(editor, workspace, command):
    path = workspace / "a.txt"
    assert refusal(editor, command=command, path=path) == (
        f"Invalid `path` parameter: {path}. The path {path} does not exist. "
        "Please provide a valid path."
    )


def test_a_missing_file_with_a_similar_one_beside_it(editor, workspace, write):
    write("settings.json", "")
    message = refusal(editor, command="view", path=workspace / "setings.json")
    assert message.endswith(
        f"Please provide a valid path. Maybe you meant {workspace}/settings.json?"
    )


def test_a_link_that_leads_to_itself_is_not_suggested_for_itself(editor, workspace):
    (workspace / "loop1").symlink_to("loop1")
    assert "Maybe you meant" not in refusal(editor, command="view", path=workspace / "loop1")


def test_create_complains_about_the_path_before_the_text(editor, write):
    path = write("a.txt", "")
    assert refusal(editor, command="create", path=path) == (
        f"Invalid `path` parameter: {path}. File already exists at: {path}. "
        "Cannot overwrite files using command `create`."
    )


@pytest.mark.parametrize("command", ["str_replace", "insert", "undo_edit", "write"])
def test_only_view_takes_a_directory(editor, workspace, command):
    assert refusal(editor, command=command, path=workspace) == (
        f"Invalid `path` parameter: {workspace}. The path {workspace} is a directory and only the "
        "`view` command can be used on directories."
    )


@pytest.mark.parametrize("command", ["create", "write"])
def test_only_view_takes_a_document(editor, workspace, command):
    path = workspace / "a.pdf"
    assert refusal(editor, command=command, path=path, file_text="x", content="x") == (
        f"Invalid `path` parameter: {path}. The path {path} points to a binary file (.pdf) and "
        "only the `view` command can be used on supported binary files."
    )


@pytest.mark.parametrize(
    ("command", "arguments", "parameter"),
    [
        ("str_replace", {}, "old_str"),
        ("insert", {"new_str": "x"}, "insert_line"),
        ("insert", {"insert_line": 0}, "new_str"),
        ("write", {}, "content"),
    ],
)
def test_missing_parameters(editor, write, command, arguments, parameter):
    path = write("a.txt", "")
    with pytest.raises(EditorParameterMissingError) as caught:
        editor(command=command, path=path, **arguments)
    assert str(caught.value) == f"Parameter `{parameter}` is required for command: {command}."


def test_create_without_text(editor, workspace):
    message = refusal(editor, command="create", path=workspace / "a")
    assert message == "Parameter `file_text` is required for command: create."


def test_an_unknown_command(editor, write):
    message = refusal(editor, command="delete", path=write("a", ""))
    assert message.startswith(
        "Unrecognized command delete. The allowed commands for the oh_editor tool are: view, "
    )


@pytest.mark.parametrize("path", [None, 3, "/a\0b", ""])
def test_invalid_paths(editor, path):
    with pytest.raises(EditorParameterInvalidError, match="Invalid `path` parameter"):
        editor(command="view", path=path)


@pytest.mark.parametrize(
    "arguments",
    [
        {"command": "str_replace", "old_str": 1, "new_str": "x"},
        {"command": "str_replace", "old_str": "x", "new_str": b"x"},
        {"command": "insert", "insert_line": "1", "new_str": "x"},
        {"command": "insert", "insert_line": True, "new_str": "x"},
        {"command": "write", "content": "x", "start": "1"},
    ],
)
def test_values_of_the_wrong_type(editor, write, arguments):
    path = write("a.txt", "x")
    with pytest.raises(EditorParameterInvalidError):
        editor(path=path, **arguments)
    assert path.read_bytes() == b"x"


def test_importing_the_editor_imports_nothing_heavy_and_touches_nothing(tmp_path):
    program = (
        "import sys, logging, oh_jupyter.editor as e; e.FileEditor()\n"
        "heavy = {'asyncio', 'charset_normalizer', 'markitdown', 'IPython', 'tornado'}\n"
        "print(sorted(heavy & set(sys.modules)), logging.getLogger().level)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": sys.path[0] or ".", "XDG_STATE_HOME": str(tmp_path)},
    )
    assert done.stdout == "[] 30\n"
    assert list(tmp_path.iterdir()) == []
