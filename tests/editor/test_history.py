import os
import stat as stat_module
from contextlib import suppress

import pytest

from oh_jupyter.editor import (
    EditorError,
    FileChangedError,
    FileEditor,
    NoHistoryError,
)
from oh_jupyter.editor.history.edit_history import EditHistory
from oh_jupyter.state.shared import open_ledger


def edit(editor, path, old, new):
    return editor(command="str_replace", path=path, old_str=old, new_str=new)


def undo(editor, path):
    return editor(command="undo_edit", path=path)


def redo(editor, path):
    return editor(command="redo_edit", path=path)


def test_undo_and_redo_and_their_output(editor, write):
    path = write("a.txt", "one\r\ntwo")
    edit(editor, path, "two", "2")
    result = undo(editor, path)
    assert result.output == (
        f"Last edit to {path} undone successfully. Here's the result of running `cat -n` on {path}:"
        "\n     1\tone\n     2\ttwo\n"
    )
    assert (result.old_content, result.new_content) == ("one\n2", "one\ntwo")
    assert path.read_bytes() == b"one\r\ntwo"
    assert redo(editor, path).output.startswith(f"Last undone edit to {path} redone successfully.")
    assert path.read_bytes() == b"one\r\n2"


def test_nothing_to_undo_or_redo(editor, write):
    path = write("a.txt", "x")
    with pytest.raises(NoHistoryError, match=f"^No edit history found for {path}.$"):
        undo(editor, path)
    edit(editor, path, "x", "y")
    with pytest.raises(NoHistoryError, match=f"^No undone edit found for {path}.$"):
        redo(editor, path)


def test_undo_of_create_removes_the_file_and_redo_brings_it_back(editor, workspace):
    path = workspace / "a.txt"
    editor(command="create", path=path, file_text="x")
    result = undo(editor, path)
    assert not path.exists()
    assert (result.old_content, result.new_content) == ("x", None)
    with pytest.raises(NoHistoryError):
        undo(editor, path)
    redo(editor, path)
    assert path.read_bytes() == b"x"


def test_there_is_no_phantom_step_after_create(editor, workspace):
    path = workspace / "a.txt"
    editor(command="create", path=path, file_text="x")
    edit(editor, path, "x", "y")
    undo(editor, path)
    assert path.read_bytes() == b"x"
    undo(editor, path)
    assert not path.exists()


def test_a_failed_edit_leaves_no_step(editor, write):
    path = write("a.txt", "x")
    edit(editor, path, "x", "y")
    with pytest.raises(EditorError):
        edit(editor, path, "absent", "z")
    assert [entry.command for entry in editor.history(path)] == ["str_replace"]


def test_history_survives_and_is_shared(editor, another_editor, write):
    path = write("a.txt", "x")
    edit(editor, path, "x", "y")
    undo(another_editor, path)
    assert path.read_bytes() == b"x"
    redo(editor, path)
    assert path.read_bytes() == b"y"


def test_a_new_edit_ends_redo(editor, write):
    path = write("a.txt", "x")
    edit(editor, path, "x", "y")
    undo(editor, path)
    edit(editor, path, "x", "z")
    with pytest.raises(NoHistoryError):
        redo(editor, path)


def test_history_and_diff(editor, write):
    path = write("a.txt", "1\n2\n3\n")
    edit(editor, path, "1", "one")
    edit(editor, path, "3", "three")
    undo(editor, path)
    entries = editor.history(path)
    assert [(e.number, e.command, e.undone) for e in entries] == [
        (1, "str_replace", False),
        (2, "str_replace", True),
    ]
    redo(editor, path)
    assert editor.diff(path) == f"--- {path}\n+++ {path}\n@@ -1,4 +1,4 @@\n one\n 2\n-3\n+three\n "
    assert "-1\n+one" in editor.diff(path, steps=2)
    with pytest.raises(NoHistoryError):
        editor.diff(path, steps=3)
    assert path.read_bytes() == b"one\n2\nthree\n"
    assert editor.history(path.with_name("other")) == []


@pytest.mark.thorough
def test_the_oldest_steps_are_forgotten(tmp_path, write):
    editor = FileEditor(tmp_path, history_dir=tmp_path / "limited", history_limit=300)
    path = write("a.txt", "0")
    for number in range(305):
        edit(editor, path, str(number), str(number + 1))
    assert len(editor.history(path)) == 300
    for _ in range(300):
        undo(editor, path)
    assert path.read_bytes() == b"5"
    with pytest.raises(NoHistoryError):
        undo(editor, path)


@pytest.mark.thorough
def test_dropped_steps_do_not_stay_on_disk(tmp_path, write):
    editor = FileEditor(tmp_path, history_dir=tmp_path / "limited", history_limit=2)
    path = write("a.txt", "0")
    counts = set()
    for number in range(600):
        edit(editor, path, str(number), str(number + 1))
        counts.update(open_ledger(tmp_path / "limited").rows("SELECT count(*) FROM edits"))
    assert max(counts) <= (3,)


@pytest.mark.thorough
def test_a_thousand_edits_are_undone_and_redone_by_another_editor(tmp_path, write):
    path, contents = write("a.txt", "0" * 1000), []
    editor = FileEditor(tmp_path, history_dir=tmp_path / "history")
    for number in range(1000):
        contents.append(path.read_bytes())
        editor(command="insert", path=path, insert_line=number % 7, new_str=f"{number}\n")
    last, later = path.read_bytes(), FileEditor(tmp_path, history_dir=tmp_path / "history")
    for content in reversed(contents):
        undo(later, path)
        assert path.read_bytes() == content
    for content in [*contents[1:], last]:
        redo(later, path)
        assert path.read_bytes() == content


def test_edits_after_an_undo_replace_the_undone_ones_on_disk(tmp_path, write):
    path = write("a.txt", "0")
    for round in range(5):
        editor = FileEditor(tmp_path, history_dir=tmp_path / "history")
        for number in range(round * 2, round * 2 + 3):
            edit(editor, path, str(number), str(number + 1))
        undo(editor, path)
    later = FileEditor(tmp_path, history_dir=tmp_path / "history")
    assert [entry.undone for entry in later.history(path)] == [False] * 10 + [True]
    for number in range(9, -1, -1):
        undo(later, path)
        assert path.read_text() == str(number)


def test_the_size_is_bounded_and_nothing_unneeded_stays(tmp_path, write):
    path, folder = write("a.txt", "start"), tmp_path / "bounded"
    editor = FileEditor(tmp_path, history_dir=folder, history_mb=100_000 / 1024 / 1024)
    for number in range(30):
        editor(command="write", path=path, content=chr(65 + number) * 20_000)
    assert EditHistory(folder).table.size() <= 100_000
    assert len(editor.history(path)) >= 2


# Someone else


def test_undo_keeps_foreign_changes_elsewhere(editor, write):
    path = write("a.txt", "1\n2\n3\n4\n5\n")
    edit(editor, path, "2", "two")
    edit(editor, path, "4", "four")
    path.write_text(
        "0\n1\n2 and more\n3\n4\n5\n6\n".replace("2 and more", "two").replace("4", "four")
    )
    undo(editor, path)
    assert path.read_text() == "0\n1\ntwo\n3\n4\n5\n6\n"
    undo(editor, path)
    assert path.read_text() == "0\n1\n2\n3\n4\n5\n6\n"
    redo(editor, path)
    redo(editor, path)
    assert path.read_text() == "0\n1\ntwo\n3\nfour\n5\n6\n"


def test_undo_between_and_after_several_foreign_changes(editor, write):
    path = write("a.txt", "".join(f"{n}\n" for n in range(1, 10)))
    edit(editor, path, "2", "two")
    path.write_text(path.read_text().replace("5", "five"))
    edit(editor, path, "8", "eight")
    path.write_text("zero\n" + path.read_text())
    undo(editor, path)
    assert path.read_text() == "zero\n1\ntwo\n3\n4\nfive\n6\n7\n8\n9\n"
    undo(editor, path)
    assert path.read_text() == "zero\n1\n2\n3\n4\nfive\n6\n7\n8\n9\n"
    redo(editor, path)
    redo(editor, path)
    assert path.read_text() == "zero\n1\ntwo\n3\n4\nfive\n6\n7\neight\n9\n"


def test_undo_refuses_to_overwrite_a_foreign_change(editor, write):
    path = write("a.txt", "1\n2\n3\n")
    edit(editor, path, "2", "two")
    path.write_text("1\ntwo or so\n3\n")
    with pytest.raises(FileChangedError, match=r"-two\n\+two or so"):
        undo(editor, path)
    assert path.read_text() == "1\ntwo or so\n3\n"
    path.write_text("1\ntwo\n3\n")  # the other one takes it back, so there is no conflict
    undo(editor, path)
    assert path.read_text() == "1\n2\n3\n"


def test_undo_of_create_refuses_to_remove_foreign_text(editor, workspace):
    path = workspace / "a.txt"
    editor(command="create", path=path, file_text="x\n")
    path.write_text("x\nprecious\n")
    with pytest.raises(FileChangedError):
        undo(editor, path)
    assert path.read_text() == "x\nprecious\n"


def test_undo_restores_a_file_that_was_deleted(editor, another_editor, write):
    path = write("a.txt", "x\r\n" * 1000)
    edit(editor, path, "x\n" * 1000, "y\n" * 999)
    path.unlink()
    undo(another_editor, path)
    assert path.read_bytes() == b"y\r\n" * 999
    undo(another_editor, path)
    assert path.read_bytes() == b"x\r\n" * 1000


def test_a_deleted_file_may_be_created_again(editor, workspace):
    path = workspace / "a.txt"
    editor(command="create", path=path, file_text="first")
    path.unlink()
    editor(command="create", path=path, file_text="second")
    undo(editor, path)
    assert not path.exists()
    undo(editor, path)
    assert path.read_bytes() == b"first"


def test_redo_after_a_foreign_change_in_the_same_place_is_not_offered(editor, write):
    path = write("a.txt", "1\n2\n3\n")
    edit(editor, path, "2", "two")
    undo(editor, path)
    path.write_text("1\nother\n3\n")
    with pytest.raises(NoHistoryError):
        redo(editor, path)
    assert path.read_text() == "1\nother\n3\n"


def test_a_damaged_content_is_reported(editor, write, tmp_path):
    path = write("a.txt", "x" * 100_000)
    edit(editor, path, "x" * 100_000, "y" * 100_000)
    for content in (tmp_path / "history" / "ledger.db-contents").iterdir():
        content.write_bytes(b"damaged")
    with pytest.raises(EditorError, match="damaged"):
        undo(editor, path)
    assert path.read_bytes() == b"y" * 100_000


def test_a_damaged_ledger_is_moved_aside(editor, write, tmp_path):
    path = write("a.txt", "x")
    edit(editor, path, "x", "y")
    ledger = open_ledger(tmp_path / "history")
    ledger.close()
    ledger.path.write_bytes(b"no database")
    with pytest.raises(NoHistoryError):
        undo(editor, path)
    edit(editor, path, "y", "z")
    undo(editor, path)
    assert path.read_bytes() == b"y"
    assert [file.read_bytes() for file in ledger.damaged()] == [b"no database"]


def test_the_history_is_in_the_user_s_ledger_by_workspace(tmp_path, monkeypatch, write):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    path = write("a.txt", "x")
    edit(FileEditor(tmp_path), path, "x", "y")
    ledger = open_ledger()
    assert ledger.path.is_relative_to(tmp_path / "state" / "oh_jupyter")
    rows = ledger.rows("SELECT workspace, path FROM edited_files")
    assert rows == [(os.fsencode(tmp_path), os.fsencode(path))]
    with pytest.raises(NoHistoryError):
        undo(FileEditor(tmp_path.parent), path)
    undo(FileEditor(tmp_path), path)
    assert path.read_bytes() == b"x"


# What a file has besides its content


def describe(path):
    info = path.stat()
    return stat_module.S_IMODE(info.st_mode), info.st_uid, info.st_gid, attributes_of(path)


def attributes_of(path):
    return {name: os.getxattr(path, name) for name in os.listxattr(path)}


def set_attributes(path):
    path.chmod(0o710)
    if os.geteuid() == 0:
        os.chown(path, 1234, 4321)
    with suppress(OSError):  # a file system without extended attributes
        os.setxattr(path, "user.note", b"kept")


@pytest.mark.skipif(not hasattr(os, "listxattr"), reason="of Linux")
@pytest.mark.parametrize("last", ["edit", "undo"])
def test_a_removed_file_comes_back_with_its_attributes(editor, another_editor, write, last):
    path = write("a.sh", "x")
    edit(editor, path, "x", "y")
    set_attributes(path)
    known = describe(path)
    edit(editor, path, "y", "z")
    if last == "undo":
        undo(editor, path)
    path.unlink()
    undo(another_editor, path)
    assert describe(path) == known


@pytest.mark.skipif(not hasattr(os, "listxattr"), reason="of Linux")
def test_redo_of_a_creation_gives_the_attributes_back_but_a_new_file_is_new(editor, workspace):
    path = workspace / "a.sh"
    editor(command="create", path=path, file_text="x")
    fresh = describe(path)
    set_attributes(path)
    known = describe(path)
    undo(editor, path)
    redo(editor, path)
    assert describe(path) == known
    path.unlink()
    editor(command="create", path=path, file_text="y")
    assert describe(path) == fresh


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform has no limit of open files")
@pytest.mark.parametrize("interrupted", [False, True])
def test_a_system_error_while_the_history_is_read_is_not_damage(
    editor, write, tmp_path, interrupt, interrupted
):
    """The process runs out of file descriptors at each point of an edit in turn."""
    import resource

    path = write("a.txt", "0\n")
    for number in range(3):
        edit(editor, path, f"{number}\n", f"{number + 1}\n")
    if interrupted:
        interrupt(path)
    open_ledger(tmp_path / "history").close()
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    # The limit is one of numbers: no lower number may be free.
    highest = max(map(int, os.listdir("/dev/fd")))
    fillers = list(iter(lambda: os.dup(0), highest + 1))
    errors = []
    for more in range(1, 18):
        content = path.read_bytes()
        fresh = FileEditor(tmp_path, history_dir=tmp_path / "history")
        open_ledger(tmp_path / "history").close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 1 + more, limits[1]))
        try:
            edit(fresh, path, "3\n", "3\n4\n")
        except EditorError as error:
            errors.append(str(error))
        else:
            content = b"3\n4\n"
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        assert path.read_bytes() == content
        assert not open_ledger(tmp_path / "history").damaged()
        if content == b"3\n4\n":
            break
    for filler in [*fillers, highest + 1]:
        os.close(filler)
    assert any(str(tmp_path / "history") in error for error in errors)
    assert [entry.command for entry in editor.history(path)] == ["str_replace"] * 4
    for _ in range(4):
        undo(editor, path)
    assert path.read_bytes() == b"0\n"
