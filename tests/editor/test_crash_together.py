"""A process dies in the middle of an edit of several files."""

import os
import shutil
import signal
import subprocess
import sys

import pytest

from oh_jupyter.editor import EditorError, FileEditor
from oh_jupyter.editor.history.edit_history import EditHistory
from tests.editor.dying import DYING_EDITOR

MANY = """if True:
    import sys
    from oh_jupyter.editor import FileEditor
    history, workspace, *paths = sys.argv[1:]
    editor = FileEditor(workspace, history_dir=history)
    for number in range(int(open(paths[0]).read().split()[0]), 100_000):
        editor.edit_many(
            [
                {"command": "str_replace", "path": path, "old_str": f"{number} ",
                 "new_str": f"{number + 1} "}
                for path in paths
            ]
        )
        print(number + 1, flush=True)
"""

DIES = f"""{DYING_EDITOR}
paths = rest
setattr(os, deadly, dies)
editor.edit_many(
    [{{"command": "str_replace", "path": p, "old_str": "old", "new_str": "new"}} for p in paths]
    + [{{"command": "create", "path": workspace + "/c", "file_text": "new"}}]
)
"""
DIES_AT_B = DIES.replace(
    "left -= 1", "left = -1 if os.path.basename(args[1]) == os.path.basename(paths[1]) else 0"
)


def numbers(paths):
    return [int(path.read_text().split()[0]) for path in paths]


@pytest.mark.thorough
def test_kill_9_in_the_middle_of_transactions_leaves_all_or_nothing(workspace, write, tmp_path):
    paths = [write(name, f"0 {'x' * 5000}") for name in ("a", "b", "c")]
    number = 0
    for stop_after in (3, 8, 12, 13, 14):
        with subprocess.Popen(
            [sys.executable, "-c", MANY, tmp_path / "history", workspace, *paths],
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            for _ in range(stop_after):
                number = int(process.stdout.readline())
            process.send_signal(signal.SIGKILL)
            rest = process.stdout.read().split()
        number = int(rest[-1]) if rest else number
        editor = FileEditor(workspace, history_dir=tmp_path / "history")
        editor.history(paths[1])  # any look at the history of any file repairs all
        assert len(set(numbers(paths))) == 1
        assert numbers(paths)[0] in (number, number + 1)
        number = numbers(paths)[0]
        assert sorted(os.listdir(workspace)) == ["a", "b", "c"]
        assert not EditHistory(tmp_path / "history").table.planned()
    assert number >= 50
    for back in range(1, 31):
        editor(command="undo_edit", path=paths[back % 3])
        assert numbers(paths) == [number - back] * 3
        assert all(path.read_text().endswith(" " + "x" * 5000) for path in paths)


@pytest.mark.thorough
@pytest.mark.parametrize("deadly", ["replace", "unlink", "fsync"])
def test_death_at_any_call_leaves_all_or_nothing_and_a_history_that_fits(
    workspace, write, tmp_path, deadly
):
    outcomes = set()
    for calls in range(40):
        shutil.rmtree(tmp_path / "history", ignore_errors=True)
        (workspace / "c").unlink(missing_ok=True)
        paths = [write("a", "old a"), write("b", "old b")]
        arguments = [tmp_path / "history", workspace, str(calls), deadly, *paths]
        done = subprocess.run([sys.executable, "-c", DIES, *arguments], check=False)
        editor = FileEditor(workspace, history_dir=tmp_path / "history")
        steps = [len(editor.history(path)) for path in (*paths, workspace / "c")]
        made = [path.read_text() for path in paths] == ["new a", "new b"]
        assert made or [path.read_text() for path in paths] == ["old a", "old b"]
        assert made == (workspace / "c").exists()
        assert steps == [int(made)] * 3
        assert sorted(os.listdir(workspace)) == ["a", "b", *["c"] * made]
        if made:
            editor(command="undo_edit", path=workspace / "c")
            assert [path.read_text() for path in paths] == ["old a", "old b"]
            assert not (workspace / "c").exists()
        else:
            with pytest.raises(EditorError):
                editor(command="undo_edit", path=paths[0])
        outcomes.add((done.returncode, made))
        if done.returncode == 0:
            break
    assert (0, True) in outcomes
    assert (-signal.SIGKILL, False) in outcomes or deadly == "unlink"


@pytest.fixture
def interrupted(workspace, write, tmp_path):
    """Three files; a process died when it had changed the first of them."""
    paths = [write("a", "old a"), write("b", "old b")]
    arguments = [tmp_path / "history", workspace, "0", "replace", *paths]
    subprocess.run([sys.executable, "-c", DIES_AT_B, *arguments], check=False)
    assert [path.read_text() for path in paths] == ["new a", "old b"]
    return paths


def test_an_edit_of_another_file_finishes_it(editor, interrupted, write):
    other = write("other", "x")
    editor(command="str_replace", path=other, old_str="x", new_str="y")
    assert [path.read_text() for path in interrupted] == ["new a", "new b"]


def test_a_look_at_one_of_the_files_finishes_it(editor, interrupted):
    assert "new b" in editor(command="view", path=interrupted[1]).output
    assert [path.read_text() for path in interrupted] == ["new a", "new b"]


def test_an_editor_that_was_there_before_finishes_it(editor, interrupted):
    editor(command="str_replace", path=interrupted[1], old_str="new", new_str="newer")
    assert [path.read_text() for path in interrupted] == ["new a", "newer b"]


def test_a_foreign_change_stays_and_the_rest_is_reverted(editor, interrupted, workspace):
    a, b = interrupted
    b.write_text("old b, and theirs")
    assert [step.command for step in editor.history(a)] == []
    assert (a.read_text(), b.read_text()) == ("old a", "old b, and theirs")
    assert not (workspace / "c").exists()


def test_a_foreign_change_of_the_new_text_stays_and_the_rest_is_finished(
    editor, interrupted, workspace
):
    a, b = interrupted
    a.write_text("new a, and theirs")
    editor.history(b)
    assert (a.read_text(), b.read_text()) == ("new a, and theirs", "new b")
    assert (workspace / "c").read_text() == "new"


def test_a_directory_that_replaced_a_file_stays_and_the_rest_is_reverted(
    editor, interrupted, workspace
):
    a, b = interrupted
    b.unlink()
    b.mkdir()
    editor.history(a)
    assert a.read_text() == "old a"
    assert b.is_dir()
    assert not (workspace / "c").exists()


def test_a_full_disk_is_reported_and_the_edit_retried(editor, interrupted, monkeypatch):
    a, b = interrupted

    def full(*arguments, **more):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(EditorError, match=r"neither finished nor reverted.*No space left"):
        editor.history(a)
    monkeypatch.undo()
    editor.history(a)
    assert (a.read_text(), b.read_text()) == ("new a", "new b")
