"""The history stores one content of a file, and rebuilds the others by its steps."""

import os
import random
import shutil
import signal
import subprocess
import sys

import pytest

from oh_jupyter.editor import EditorError, FileEditor, NoHistoryError
from oh_jupyter.editor.history import file_history
from oh_jupyter.editor.history.edit_history import EditHistory
from oh_jupyter.state.shared import open_ledger
from tests.editor.dying import DYING_EDITOR

REST = "x" * 5000


def edit(editor, path, number):
    editor(command="str_replace", path=path, old_str=f"{number} ", new_str=f"{number + 1} ")


def undo(editor, path):
    return editor(command="undo_edit", path=path)


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "history"


@pytest.fixture
def stored_content(folder):
    """Return the content that the history rebuilds for a file, and whether nothing else is kept."""

    def stored_content(path):
        store = EditHistory(folder)
        with store.open(path) as history:
            content = history.content_after(history.head.number)
        needed = "SELECT digest FROM edited_files UNION SELECT before FROM edits WHERE is_whole "
        needed += "UNION SELECT after FROM edits WHERE is_whole"
        stored = store.table.rows(
            f"SELECT count(*) FROM edited_contents WHERE digest NOT IN ({needed})"
        )
        return content, stored == [(0,)]

    return stored_content


def contents_of(folder):
    return open_ledger(folder).rows("SELECT digest FROM edited_contents")


def test_small_edits_and_undos_do_not_store_the_file_again(editor, write, folder):
    path = write("a.txt", "0 " + REST)
    edit(editor, path, 0)
    before = contents_of(folder)
    for number in range(1, 60):
        edit(editor, path, number)
    for _ in range(30):
        undo(editor, path)
    assert contents_of(folder) == before
    assert len(before) == 1


def test_a_base_that_is_far_is_replaced(editor, write, folder, stored_content, monkeypatch):
    monkeypatch.setattr(file_history, "MAX_CHAIN", 3)
    path = write("a.txt", "0 " + REST)
    seen = set()
    for number in range(20):
        edit(editor, path, number)
        seen.update(contents_of(folder))
        assert stored_content(path) == (path.read_bytes(), True)
    assert len(seen) == 5
    for _ in range(20):
        undo(editor, path)
        assert stored_content(path) == (path.read_bytes(), True)


def test_a_large_file_is_stored_again_sooner(editor, write, folder, monkeypatch):
    monkeypatch.setattr(file_history, "MAX_COPIED_BYTES", 2 * len(REST) + 100)
    path = write("a.txt", "0 " + REST)
    seen = set()
    for number in range(9):
        edit(editor, path, number)
        seen.update(contents_of(folder))
    assert len(seen) == 3


@pytest.mark.parametrize("seed", range(6))
def test_any_sequence_of_edits_undos_and_changes_by_others(
    workspace, write, folder, stored_content, monkeypatch, seed
):
    monkeypatch.setattr(file_history, "MAX_CHAIN", 4)
    path = write("a.txt", "".join(f"line {number}\n" for number in range(300)))
    chance = random.Random(seed)
    for number in range(60):
        editor = FileEditor(workspace, history_dir=folder, history_limit=9)
        lines = path.read_text().split("\n")
        command = chance.choice(["edit", "edit", "undo_edit", "undo_edit", "redo_edit", "other"])
        if command in ("edit", "other"):
            lines[chance.randrange(len(lines))] = f"{command} {number}"
            text = "\n".join(lines)
            if command == "edit":
                editor(command="write", path=path, content=text)
            else:
                path.write_text(text)
                continue
        else:
            try:
                editor(command=command, path=path)
            except EditorError:  # nothing to undo, or a conflict
                continue
        assert stored_content(path) == (path.read_bytes(), True)


def test_a_lost_base_loses_the_history_when_others_changed_the_file(
    editor, another_editor, write, folder
):
    path = write("a.txt", "0 " + REST)
    for number in range(3):
        edit(editor, path, number)
    assert open_ledger(folder).execute("UPDATE edited_contents SET data = x'00'") == 1
    undo(another_editor, path)
    assert path.read_text() == "2 " + REST
    path.write_text("0 theirs")
    with pytest.raises(NoHistoryError):
        undo(another_editor, path)
    edit(another_editor, path, 0)
    undo(another_editor, path)
    assert path.read_text() == "0 theirs"


def test_a_base_among_the_forgotten_steps_is_replaced(
    editor, workspace, write, folder, stored_content
):
    path = write("a.txt", "0 " + REST)
    for number in range(30):
        edit(editor, path, number)
    size = EditHistory(folder).table.size()
    small = FileEditor(workspace, history_dir=folder, history_mb=(size - 1) / 1024 / 1024)
    edit(small, path, 30)
    assert 0 < len(small.history(path)) < 31
    assert stored_content(path) == (path.read_bytes(), True)
    path.write_text(f"31 {REST}\ntheirs")
    undo(small, path)
    assert path.read_text() == f"30 {REST}\ntheirs"


def test_a_torn_undo_of_a_hard_linked_file_is_finished(editor, workspace, write, interrupt):
    contents = [letter * 5000 + "z" * 5000 for letter in "abc"]
    path = write("a.txt", contents[0])
    os.link(path, workspace / "other")
    for old, new in ("ab", "bc"):
        editor(command="str_replace", path=path, old_str=old * 5000, new_str=new * 5000)
    undo(editor, path)
    interrupt(path)
    with open(path, "r+b") as file:
        file.write((contents[1][:3000] + contents[2][3000:]).encode())
    assert [entry.undone for entry in editor.history(path)] == [False, True]
    assert path.read_text() == contents[1]


DIES = f"""{DYING_EDITOR}
from oh_jupyter.editor.history import file_history
file_history.MAX_CHAIN = 2
command, path = rest
number = int(open(path).read().split()[0])
arguments = {{"old_str": f"{{number}} ", "new_str": f"{{number + 1}} "}}
setattr(os, deadly, dies)
editor(command=command, path=path, **(arguments if command == "str_replace" else {{}}))
"""


@pytest.mark.thorough
@pytest.mark.parametrize("hard_linked", [False, True])
@pytest.mark.parametrize("command", ["str_replace", "undo_edit"])
@pytest.mark.parametrize("deadly", ["open", "write", "replace", "unlink", "fsync"])
def test_death_at_any_call_leaves_the_file_and_its_history_together(
    workspace, write, folder, deadly, command, hard_linked, stored_content, monkeypatch
):
    monkeypatch.setattr(file_history, "MAX_CHAIN", 2)
    path = write("a.txt", "0 " + REST)
    if hard_linked:
        os.link(path, workspace / "other")
    for made in range(6):  # a base is due at the next edit or undo, or it is not
        prepared = folder.with_name("prepared")
        edit(FileEditor(workspace, history_dir=folder), path, made)
        if made % 3 != 2:
            continue
        shutil.copytree(folder, prepared)
        old = path.read_bytes()
        other = made + 2 if command == "str_replace" else made
        for calls in range(40):
            shutil.rmtree(folder)
            shutil.copytree(prepared, folder)
            path.write_bytes(old)
            arguments = [folder, workspace, str(calls), deadly, command, path]
            done = subprocess.run([sys.executable, "-c", DIES, *arguments], check=False)
            editor = FileEditor(workspace, history_dir=folder)
            steps = [entry.undone for entry in editor.history(path)].count(False)
            assert path.read_text() == f"{steps} {REST}"
            assert steps in (made + 1, other)
            assert stored_content(path)[0] == path.read_bytes()
            for number in reversed(range(steps)):
                undo(editor, path)
                assert path.read_text() == f"{number} {REST}"
            assert not list(workspace.glob(".*"))
            if done.returncode == 0:
                break
            assert done.returncode == -signal.SIGKILL
        assert done.returncode == 0
        shutil.rmtree(prepared)
        shutil.rmtree(folder)
        path.write_text("0 " + REST)
        for number in range(made + 1):
            edit(FileEditor(workspace, history_dir=folder), path, number)
