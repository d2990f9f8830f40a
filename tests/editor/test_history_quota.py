"""The history of a workspace stays within its size, for every writer."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc

import pytest

from oh_jupyter.editor import EditorParameterInvalidError, FileEditor, NoHistoryError
from oh_jupyter.editor.history.edit_history import EditHistory

LIMIT = 400_000


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "bounded"


@pytest.fixture
def bounded(workspace, folder):
    return FileEditor(workspace, history_dir=folder, history_mb=LIMIT / 1024 / 1024)


def size_of(folder):
    return EditHistory(folder).table.size()


def edit(editor, path, number):
    """Make an edit whose step takes some 20 kB."""
    editor(command="write", path=path, content=f"{number}\n" + "x" * 10_000 + chr(65 + number % 26))


def undone(editor, path):
    count = 0
    while True:
        try:
            editor(command="undo_edit", path=path)
        except NoHistoryError:
            return count
        count += 1


def test_the_oldest_edits_of_all_files_go_first(bounded, workspace, folder):
    paths = [workspace / f"{number}.txt" for number in range(12)]
    for round_ in range(8):
        for number, path in enumerate(paths):
            edit(bounded, path, round_ * 12 + number)
            assert size_of(folder) < LIMIT * 1.25
    counts = [len(bounded.history(path)) for path in paths]
    assert max(counts) - min(counts) <= 1
    assert sum(counts) > 6
    assert [undone(bounded, path) for path in paths] == counts


def test_a_file_whose_history_went_can_be_edited_and_undone_again(bounded, workspace, folder):
    first = workspace / "first.txt"
    edit(bounded, first, 0)
    for number in range(60):
        edit(bounded, workspace / f"{number}.txt", number)
    assert bounded.history(first) == []
    assert {*EditHistory(folder).table.paths().values()} < {*workspace.iterdir()}
    edit(bounded, first, 1)
    assert [entry.command for entry in bounded.history(first)] == ["write"]
    bounded(command="undo_edit", path=first)
    assert first.read_text().startswith("0\n")


def test_steps_of_earlier_kernels_count(workspace, folder):
    for number in range(100):  # each writes less than makes anybody measure again
        editor = FileEditor(workspace, history_dir=folder, history_mb=LIMIT / 1024 / 1024)
        edit(editor, workspace / f"{number % 7}.txt", number)
    assert size_of(folder) < LIMIT * 1.25


def test_the_last_edit_can_always_be_undone(workspace, folder, write):
    path = write("a.txt", "old")
    editor = FileEditor(workspace, history_dir=folder, history_mb=0.0001)
    editor(command="str_replace", path=path, old_str="old", new_str="y" * 50_000)
    editor(command="undo_edit", path=path)
    assert path.read_text() == "old"


def test_a_file_that_is_being_edited_is_left_alone(bounded, workspace, folder):
    busy = workspace / "busy.txt"
    edit(bounded, busy, 0)
    with EditHistory(folder).open(busy):  # as another process does that is in the middle of an edit
        for number in range(60):
            edit(bounded, workspace / f"{number}.txt", number)
    assert len(bounded.history(busy)) == 1


def test_large_contents_go_with_their_edits(bounded, workspace, folder):
    for number in range(9):
        bounded(command="write", path=workspace / "a.txt", content=f"{number}" * 100_000)
    stored = sum(file.stat().st_size for file in (folder / "ledger.db-contents").iterdir())
    assert 0 < stored <= LIMIT


def test_several_processes_share_the_size(workspace, folder):
    program = """if True:
        import sys
        from oh_jupyter.editor import FileEditor
        workspace, folder, name = sys.argv[1:]
        editor = FileEditor(workspace, history_dir=folder, history_mb=400_000 / 1024 / 1024)
        for number in range(60):
            path = f"{workspace}/{name}{number % 5}.txt"
            editor(command="write", path=path, content=name + chr(65 + number) * 10_000)
    """
    arguments = [sys.executable, "-c", program, workspace, folder]
    processes = [subprocess.Popen([*arguments, name]) for name in "ab"]
    assert [process.wait() for process in processes] == [0, 0]
    # Each process may write a sixteenth of the limit before it measures.
    limit = LIMIT * (1 + 2 / 16)
    assert size_of(folder) <= limit + 20_000
    editor = FileEditor(workspace, history_dir=folder)
    counts = [undone(editor, workspace / f"{name}{n}.txt") for name in "ab" for n in range(5)]
    assert 6 < sum(counts) <= limit / 10_000  # a step needs at least one more content


def test_the_number_of_edits_is_settable(workspace, folder, write):
    path = write("a.txt", "0")
    editor = FileEditor(workspace, history_dir=folder, history_limit=3)
    for number in range(5):
        editor(command="str_replace", path=path, old_str=str(number), new_str=str(number + 1))
    assert undone(editor, path) == 3
    assert path.read_text() == "2"
    for arguments in ({"history_limit": 0}, {"history_mb": -1}, {"history_limit": "9"}):
        with pytest.raises(EditorParameterInvalidError, match="positive number"):
            FileEditor(workspace, **arguments)


def test_a_large_file_does_not_stay_in_memory(editor, workspace):
    size = 80 * 1024 * 1024
    tracemalloc.start()
    try:
        editor.overwrite(workspace / "large.bin", lambda _: b"x" * size)
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < size / 8
