"""A really full disk leaves the old file and a working editor."""

from __future__ import annotations

import os

import pytest

from oh_jupyter.editor import EditorError, FileEditor


@pytest.fixture
def disk(mount_disk):
    return mount_disk(1)


@pytest.mark.parametrize("history_on_it", [False, True])
@pytest.mark.parametrize("linked", [False, True])
def test_the_old_file_stays_and_the_next_edit_works(disk, tmp_path, history_on_it, linked):
    path = disk / "a.txt"
    path.write_text("old\n")
    if linked:
        os.link(path, disk / "b.txt")
    (disk / "ballast").write_bytes(bytes(900_000))
    history = (disk if history_on_it else tmp_path) / "history"
    editor = FileEditor(disk, history_dir=history)
    with pytest.raises(EditorError, match="No space left on device"):
        editor(command="str_replace", path=path, old_str="old", new_str="x" * 500_000)
    with pytest.raises(EditorError, match="No space left on device"):
        editor(command="create", path=disk / "new.txt", file_text="x" * 500_000)
    assert path.read_text() == "old\n"
    assert not [name for name in os.listdir(disk) if name.endswith(".tmp") or name == "new.txt"]
    editor(command="str_replace", path=path, old_str="old", new_str="new")
    assert path.read_text() == "new\n"
    editor(command="undo_edit", path=path)
    assert path.read_text() == "old\n"
    (disk / "ballast").unlink()
    editor(command="str_replace", path=path, old_str="old", new_str="y" * 200_000)
    editor(command="undo_edit", path=path)
    assert path.read_text() == "old\n"
    assert editor.history(path)[0].command == "str_replace"


def test_a_full_disk_of_the_history_is_reported_as_such(disk, tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old\n")
    editor = FileEditor(tmp_path, history_dir=disk / "history")
    editor(command="str_replace", path=path, old_str="old", new_str="new")
    (disk / "ballast").write_bytes(bytes(900_000))
    for command in (
        {"command": "str_replace", "old_str": "new", "new_str": "x" * 500_000},
        {"command": "create", "file_text": "x" * 500_000},
    ):
        target = path if "old_str" in command else tmp_path / "b.txt"
        with pytest.raises(EditorError, match="No space left on device") as caught:
            editor(path=target, **command)
        assert str(disk / "history") in str(caught.value)
        assert str(target) not in str(caught.value)
    assert path.read_text() == "new\n"
