"""Every failure ends in a message that says what to do, and in nothing else."""

import json
import os
import subprocess
import sys

import pytest

from oh_jupyter.editor import EditorError, FileChangedError, FileEditor, NoReplacementError


def test_a_conflict_of_an_undo_is_reported_with_a_remedy(editor, write):
    path = write("a.txt", "one\n")
    editor(command="str_replace", path=path, old_str="one", new_str="two")
    path.write_text("three\n")
    for _ in range(2):
        with pytest.raises(FileChangedError) as refused:
            editor(command="undo_edit", path=path)
        assert "repeat it" not in str(refused.value)
        assert "Revert that change first" in str(refused.value)
        assert "-two\n+three" in str(refused.value)
    path.write_text("two\n")
    editor(command="undo_edit", path=path)
    assert path.read_text() == "one\n"


def test_a_notebook_with_large_outputs_is_viewed_and_edited(editor, workspace):
    path = workspace / "large.ipynb"
    output = {
        "output_type": "display_data",
        "data": {"image/png": "A" * 11_000_000},
        "metadata": {},
    }
    cells = [
        {"cell_type": "code", "id": "a", "execution_count": 1, "metadata": {}, "outputs": [output],
         "source": "plot()"},
        {"cell_type": "markdown", "id": "b", "metadata": {}, "source": "text"},
    ]  # fmt: skip
    notebook = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    path.write_text(json.dumps(notebook))
    assert "plot()" in editor(command="view", path=path).output
    editor(command="str_replace", path=path, old_str="text", new_str="words")
    after = json.loads(path.read_text())
    assert after["cells"][1]["source"] == "words"
    assert after["cells"][0]["outputs"] == [output]


@pytest.mark.parametrize("command", ["create", "view", "write", "str_replace", "undo_edit"])
def test_a_name_that_is_too_long_is_refused(editor, workspace, command):
    path = workspace / ("x" * 300) / "a.txt"
    with pytest.raises(EditorError):
        editor(command=command, path=path, file_text="", content="", old_str="a", new_str="b")
    with pytest.raises(EditorError):
        editor(command=command, path=workspace / ("x" * 300), file_text="", content="", old_str="a")
    assert list(workspace.iterdir()) == []


def test_a_python_without_sqlite_is_named(workspace):
    program = """if True:
        import sys
        sys.modules["_sqlite3"] = None
        from oh_jupyter.editor import FileEditor
        from oh_jupyter.errors import OhJupyterError
        try:
            FileEditor(sys.argv[1])(command="create", path=f"{sys.argv[1]}/a.txt", file_text="x")
        except OhJupyterError as error:
            print(error)
    """
    done = subprocess.run(
        [sys.executable, "-c", program, str(workspace)], capture_output=True, text=True, check=True
    )
    assert f"This Python, {sys.executable}, cannot import SQLite" in done.stdout
    assert done.stdout.count("\n") == 1
    assert list(workspace.iterdir()) == []


@pytest.mark.skipif(sys.platform == "win32", reason="has no users to become")
@pytest.mark.skipif(sys.platform != "win32" and os.geteuid() != 0, reason="needs root")
def test_a_closed_directory_is_refused(open_folder):
    closed = open_folder / "closed"
    closed.mkdir(mode=0o700)
    (closed / "a.txt").write_text("one\n")
    program = """if True:
        import fcntl, os, sys  # what is imported at its first use, too
        from oh_jupyter.editor import EditorError, FileEditor
        folder = sys.argv[1]
        history = sys.argv[2]
        import oh_jupyter.state.ledger  # at its first use, which is root's right
        editor = FileEditor(folder, history_dir=history)
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
        for command in ("view", "create", "write", "str_replace", "insert", "undo_edit"):
            for path in (f"{folder}/a.txt", f"{folder}/new/b.txt", folder):
                try:
                    editor(command=command, path=path, file_text="x", content="x", old_str="one",
                           new_str="two", insert_line=0)
                except EditorError as error:
                    print(type(error).__name__)
    """
    arguments = [str(closed), str(open_folder / "history")]
    # Who has become another user may not write what coverage has measured.
    environment = {n: v for n, v in os.environ.items() if n != "COVERAGE_PROCESS_CONFIG"}
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        env=environment, capture_output=True, text=True,
    )  # fmt: skip
    assert done.stderr == ""
    assert len(done.stdout.splitlines()) == 18
    assert (closed / "a.txt").read_text() == "one\n"


def test_a_long_text_is_not_repeated_in_errors(editor, write):
    path = write("a.txt", "one\ntwo\n")
    long = "start" + "x" * 300_000 + "end"
    for arguments in ({"old_str": long, "new_str": ""}, {"old_str": long, "new_str": long}):
        with pytest.raises(EditorError) as refused:
            editor(command="str_replace", path=path, **arguments)
        assert len(str(refused.value)) < 6000
        assert "characters omitted" in str(refused.value)
    path.write_text(f"{long}\n" * 2)
    with pytest.raises(NoReplacementError) as several:
        editor(command="str_replace", path=path, old_str=long, new_str="")
    assert len(str(several.value)) < 6000


def test_an_edit_of_many_names_the_commands_that_it_takes(editor, write):
    edits = [{"command": "undo_edit", "path": str(write("a.txt", ""))}]
    with pytest.raises(EditorError) as refused:
        editor.edit_many(edits)
    assert str(refused.value).endswith("are: create, str_replace, insert, write, notebook_edit")


def test_a_long_listing_ends_with_a_whole_name(editor, workspace):
    for number in range(700):
        (workspace / f"a_name_of_some_length_{number:04}.txt").touch()
    listing = editor(command="view", path=workspace).output
    last = listing.split("<response clipped>")[0].splitlines()[-1]
    assert os.path.exists(last)
    assert "<response clipped>" in listing


def test_the_diff_of_a_created_file_has_its_lines_alone(editor, workspace):
    path = workspace / "a.txt"
    result = editor(command="create", path=path, file_text="one\ntwo\n")
    expected = f"--- {path}\n+++ {path}\n@@ -0,0 +1,2 @@\n+one\n+two"
    assert (editor.diff(path), result.diff) == (expected, expected)
    editor(command="undo_edit", path=path)
    editor(command="redo_edit", path=path)
    path.unlink()
    assert editor(command="undo_edit", path=path).diff == expected


def test_without_a_state_folder_the_history_is_one_folder(tmp_path, monkeypatch, workspace):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setattr("oh_jupyter.private_folder.ROOTS", (str(folder),))
    path = workspace / "a.txt"
    for number in range(3):
        editor = FileEditor(workspace)
        editor(command="write", path=path, content=str(number))
    assert len(list(folder.glob("oh_jupyter-*/*"))) == 1
    assert len(FileEditor(workspace).history(path)) == 3
