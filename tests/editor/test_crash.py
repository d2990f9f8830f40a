"""A process dies in the middle of an edit."""

import os
import signal
import subprocess
import sys

import pytest

from oh_jupyter.editor.files.atomic_write import temporary_for


def edit(editor, path, old, new):
    return editor(command="str_replace", path=path, old_str=old, new_str=new)


def undo(editor, path):
    return editor(command="undo_edit", path=path)


def redo(editor, path):
    return editor(command="redo_edit", path=path)


MANY_EDITS = """if True:
    import sys
    from oh_jupyter.editor import FileEditor
    path, history, workspace = sys.argv[1:]
    editor = FileEditor(workspace, history_dir=history)
    for number in range(int(open(path).read().split()[0]), 100_000):
        editor(command="str_replace", path=path, old_str=f"{number} ", new_str=f"{number + 1} ")
        print(number + 1, flush=True)
"""


@pytest.mark.parametrize("hard_linked", [False, pytest.param(True, marks=pytest.mark.thorough)])
def test_kill_9_in_the_middle_of_edits_loses_nothing(
    editor, workspace, write, tmp_path, hard_linked
):
    path = write("a.txt", "0 " + "x" * 30_000)
    if hard_linked:
        os.link(path, workspace / "other name")
    number = 0
    for stop_after in (3, 17, 40, 61, 80):
        with subprocess.Popen(
            [sys.executable, "-c", MANY_EDITS, path, tmp_path / "history", workspace],
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            for _ in range(stop_after):
                number = int(process.stdout.readline())
            process.send_signal(signal.SIGKILL)
            rest = process.stdout.read().split()
        number = int(rest[-1]) if rest else number
        undo(editor, path)  # the next editor repairs an interrupted edit
        redo(editor, path)
        content = path.read_text()
        assert content[content.index(" ") :] == " " + "x" * 30_000
        assert int(content.split()[0]) in (number, number + 1)
        number = int(content.split()[0])
        assert [e.command for e in editor.history(path)] == ["str_replace"] * number
        assert not [name for name in os.listdir(workspace) if name.endswith(".tmp")]
    for back in range(1, number + 1):
        undo(editor, path)
        assert path.read_text().split()[0] == str(number - back)


def test_an_edit_whose_process_died_before_writing_did_not_happen(editor, write, interrupt):
    path = write("a.txt", "x")
    edit(editor, path, "x", "y")
    edit(editor, path, "y", "z")
    interrupt(path)
    path.write_bytes(b"y")
    assert [entry.command for entry in editor.history(path)] == ["str_replace"]
    undo(editor, path)
    assert path.read_bytes() == b"x"


def test_the_temporary_file_of_a_process_that_died_is_removed(editor, workspace, write, interrupt):
    path = write("a.txt", "x")
    edit(editor, path, "x", "y")
    interrupt(path, "0a1b2c3d4e5f")
    path.write_bytes(b"x")
    left = temporary_for(path, "0a1b2c3d4e5f")
    left.write_bytes(b"half of it")
    edit(editor, path, "x", "z")
    assert os.listdir(workspace) == ["a.txt"]
    assert path.read_bytes() == b"z"


def test_an_edit_whose_process_died_after_writing_did_happen(editor, write, interrupt):
    path = write("a.txt", "x")
    edit(editor, path, "x", "y")
    interrupt(path)
    undo(editor, path)
    assert path.read_bytes() == b"x"


def test_an_edit_is_done_although_somebody_has_changed_the_file_since(editor, write, interrupt):
    path = write("a.txt", "one\ntwo\n")
    edit(editor, path, "one", "1")
    interrupt(path)
    path.write_bytes(b"1\ntwo\nthree\n")
    assert [entry.command for entry in editor.history(path)] == ["str_replace"]
    undo(editor, path)
    assert path.read_bytes() == b"one\ntwo\nthree\n"


def test_an_undo_whose_process_died_after_writing_did_happen(editor, write, interrupt):
    path = write("a.txt", "x")
    edit(editor, path, "x", "y")
    undo(editor, path)
    interrupt(path)
    assert [entry.undone for entry in editor.history(path)] == [True]
    redo(editor, path)
    assert path.read_bytes() == b"y"


def test_a_torn_write_of_a_hard_linked_file_is_finished(editor, workspace, write, interrupt):
    old, new = "a" * 5000 + "z" * 5000, "b" * 5000 + "z" * 5000
    path = write("a.txt", old)
    os.link(path, workspace / "other")
    edit(editor, path, "a" * 5000, "b" * 5000)
    interrupt(path)
    with open(path, "r+b") as file:
        file.write((new[:3000] + old[3000:]).encode())
    assert [entry.command for entry in editor.history(path)] == ["str_replace"]
    assert path.read_text() == new
    undo(editor, path)
    assert path.read_text() == old
