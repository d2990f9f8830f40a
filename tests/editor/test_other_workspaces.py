"""Editors of other workspaces and homes, whose histories are elsewhere, on the same files."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from oh_jupyter import edit_lock, private_folder
from oh_jupyter.editor import EditorError, FileEditor
from oh_jupyter.editor.files import atomic_write

EDITS = 150

EDIT_OWN_LINES = """if True:
    import sys
    from oh_jupyter.editor import EditorError, FileEditor
    workspace, path, name, count = sys.argv[1:]
    editor = FileEditor(workspace)
    sys.stdin.readline()
    for number in range(int(count)):
        line = f"<{name}{number}>"
        try:
            editor(command="str_replace", path=path, old_str=line, new_str=line.upper())
            print("ok", line)
        except EditorError as error:
            print("error", line, repr(error))
"""

DIES_AT_ONE_FILE = """if True:
    import os, sys
    from oh_jupyter.editor import FileEditor
    history, deadly, *paths = sys.argv[1:]
    editor = FileEditor(os.path.dirname(paths[0]), history_dir=history)
    replace = os.replace
    def dies(source, target):
        if os.path.basename(target) == os.path.basename(deadly):
            os.kill(os.getpid(), 9)
        replace(source, target)
    os.replace = dies
    editor.edit_many(
        [{"command": "str_replace", "path": p, "old_str": "old", "new_str": "new"} for p in paths]
    )
"""

DIES_AT_ONE_CALL = DIES_AT_ONE_FILE.replace("history, deadly, *", "history, name, left, *").replace(
    """    replace = os.replace
    def dies(source, target):
        if os.path.basename(target) == os.path.basename(deadly):
            os.kill(os.getpid(), 9)
        replace(source, target)
    os.replace = dies
""",
    """    real, left = getattr(os, name), int(left)
    def dies(*arguments, **more):
        global left
        left -= 1
        if left < 0:
            os.kill(os.getpid(), 9)
        return real(*arguments, **more)
    setattr(os, name, dies)
""",
)


def replace(editor, path, old, new):
    return editor(command="str_replace", path=path, old_str=old, new_str=new)


def replace_in_all(editor, paths, old, new):
    editor.edit_many(
        [{"command": "str_replace", "path": p, "old_str": old, "new_str": new} for p in paths]
    )


def start(program, *arguments, home):
    environment = {**os.environ, "HOME": str(home), "XDG_STATE_HOME": str(home / "state")}
    return subprocess.Popen(
        [sys.executable, "-c", program, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )


def edit_by_two_processes(tmp_path, first, second, count=EDITS):
    """Let two editors that share nothing edit a file, and tell which lines each reported done."""
    processes = []
    for name, path in (("a", first), ("b", second)):
        home = tmp_path / f"home {name}"
        home.mkdir()
        arguments = home, path, name, count
        processes.append(start(EDIT_OWN_LINES, *arguments, home=home))
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    output = "".join(process.communicate()[0] for process in processes)
    assert [process.returncode for process in processes] == [0, 0]
    assert output.count("\n") == 2 * count
    return output.splitlines()


def check(lines, path):
    """Check that what was reported done is in the file, and what was refused is not."""
    text = path.read_text()
    for line in lines:
        outcome, name, *_ = line.split(" ")
        assert (name.upper() in text) == (outcome == "ok"), line
        assert (name in text) == (outcome == "error"), line
    assert {line.split(" ")[0] for line in lines} == {"ok"}


@pytest.fixture
def lines(write):
    return write("a.txt", "".join(f"<a{n}>\n<b{n}>\n" for n in range(EDITS)))


def test_they_do_not_lose_each_other_s_edits(tmp_path, lines, workspace):
    check(edit_by_two_processes(tmp_path, lines, lines), lines)
    assert os.listdir(workspace) == ["a.txt"]


@pytest.mark.thorough
@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_nor_if_they_know_the_file_by_different_names(tmp_path, lines, workspace, link):
    other = workspace / "other"
    link(lines, other)
    check(edit_by_two_processes(tmp_path, lines, other), lines)
    assert other.read_text() == lines.read_text()


def test_an_edit_of_the_other_is_a_foreign_change_to_undo(editor, stranger, write):
    path = write("a.txt", "one\ntwo\nthree\nfour\n")
    replace(editor, path, "one", "1")
    replace(stranger, path, "three", "3")
    assert "NOTE" in replace(editor, path, "two", "2").output
    assert [step.command for step in editor.history(path)] == [
        "str_replace",
        "changed outside",
        "str_replace",
    ]
    for _ in range(2):
        editor(command="undo_edit", path=path)
    assert path.read_text() == "one\ntwo\n3\nfour\n"
    stranger(command="undo_edit", path=path)
    assert path.read_text() == "one\ntwo\nthree\nfour\n"
    for _ in range(2):
        editor(command="redo_edit", path=path)
    assert path.read_text() == "1\n2\nthree\nfour\n"


def test_an_edit_of_several_files_is_undone_beneath_edits_of_the_other(editor, stranger, write):
    paths = [write(name, f"old {name}\n\nend\n") for name in "ab"]
    replace_in_all(editor, paths, "old", "new")
    replace(stranger, paths[0], "end", "END")
    editor(command="undo_edit", path=paths[1])
    assert [path.read_text() for path in paths] == ["old a\n\nEND\n", "old b\n\nend\n"]


# A process dies


@pytest.fixture
def stranger(tmp_path):
    """An editor of another workspace, with another history."""
    return FileEditor(tmp_path / "elsewhere", history_dir=tmp_path / "another history")


@pytest.fixture
def half_done(workspace, write, tmp_path):
    """Three files; a process died when it had changed the first of them."""
    paths = [write(name, f"old {name}\n") for name in "abc"]
    arguments = [tmp_path / "history", paths[1], *paths]
    done = subprocess.run([sys.executable, "-c", DIES_AT_ONE_FILE, *arguments], check=False)
    assert done.returncode == -signal.SIGKILL
    assert [path.read_text() for path in paths] == ["new a\n", "old b\n", "old c\n"]
    return paths


def view(editor, path):
    editor(command="view", path=path)


def edit(editor, path):
    replace(editor, path, "new", "newer")
    editor(command="undo_edit", path=path)


def dry_edit(editor, path):
    editor(command="str_replace", path=path, old_str="new", new_str="x", dry_run=True)


def patch(editor, path):
    block = f"<<<<<<< SEARCH\nnew {path.name}\n=======\nnew {path.name}\n>>>>>>> REPLACE"
    editor(command="apply_patch", path=path, content=block)


def history(editor, path):
    editor.history(path)


def overwrite(editor, path):
    editor.overwrite(path, lambda old: old or b"")


def read_action(editor, path):
    from oh_jupyter.editor.file_actions import read_file
    from oh_jupyter.events import FileReadAction

    content = read_file(FileReadAction(str(path)), cwd="/", editor=editor).content
    assert content == f"new {path.name}\n"


@pytest.mark.parametrize(
    "come", [view, edit, dry_edit, patch, history, overwrite, read_action], ids=lambda f: f.__name__
)
@pytest.mark.parametrize("number", [0, 1, 2])
def test_an_edit_of_several_files_is_finished_by_the_next_editor(
    half_done, stranger, workspace, come, number
):
    come(stranger, half_done[number])
    assert [path.read_text() for path in half_done] == ["new a\n", "new b\n", "new c\n"]
    assert sorted(os.listdir(workspace)) == ["a", "b", "c"]


def test_it_can_be_undone_by_the_editor_that_began_it(half_done, stranger, editor):
    replace(stranger, half_done[2], "c", "C")
    editor(command="undo_edit", path=half_done[0])
    assert [path.read_text() for path in half_done] == ["old a\n", "old b\n", "old C\n"]


def test_it_is_reverted_after_a_foreign_change(half_done, stranger):
    half_done[1].write_text("old b, and theirs\n")
    view(stranger, half_done[0])
    texts = [path.read_text() for path in half_done]
    assert texts == ["old a\n", "old b, and theirs\n", "old c\n"]


def test_a_history_that_is_gone_is_no_reason_to_stop(half_done, stranger, tmp_path):
    shutil.rmtree(tmp_path / "history")
    replace(stranger, half_done[1], "old", "newer")
    assert half_done[1].read_text() == "newer b\n"


def test_an_edit_that_cannot_be_finished_is_reported_and_retried(half_done, stranger, monkeypatch):
    def full(*arguments, **more):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    for _ in range(2):
        with pytest.raises(EditorError, match=r"neither finished nor reverted.*No space left"):
            view(stranger, half_done[1])
    monkeypatch.undo()
    view(stranger, half_done[1])
    assert [path.read_text() for path in half_done] == ["new a\n", "new b\n", "new c\n"]


def test_an_edit_that_stopped_midway_is_recovered_by_others_too(
    write, editor, stranger, monkeypatch
):
    """The process lives, but could neither finish nor revert the edit."""
    paths = [write(name, f"old {name}\n") for name in "ab"]
    real = atomic_write.replace

    def fails(path, *arguments, **more):
        if path == paths[1] or b"old" in arguments[0]:
            raise OSError(5, "Input/output error")
        real(path, *arguments, **more)

    monkeypatch.setattr(atomic_write, "replace", fails)
    with pytest.raises(EditorError, match="could not be restored"):
        replace_in_all(editor, paths, "old", "new")
    monkeypatch.undo()
    view(stranger, paths[1])
    assert [path.read_text() for path in paths] == ["old a\n", "old b\n"]


@pytest.mark.thorough
@pytest.mark.parametrize("deadly", ["replace", "unlink"])
def test_death_at_any_call_leaves_all_or_nothing_to_the_next_editor(
    workspace, write, tmp_path, deadly
):
    outcomes = set()
    for calls in range(40):
        paths = [write(name, f"old {name}\n") for name in "abc"]
        arguments = [tmp_path / f"history {calls}", deadly, str(calls), *paths]
        done = subprocess.run([sys.executable, "-c", DIES_AT_ONE_CALL, *arguments], check=False)
        stranger = FileEditor(tmp_path, history_dir=tmp_path / f"another history {calls}")
        view(stranger, paths[calls % 3])
        texts = {path.read_text()[:3] for path in paths}
        assert texts in ({"old"}, {"new"})
        for path in paths:
            edit(stranger, path) if texts == {"new"} else replace(stranger, path, "old", "older")
        assert sorted(os.listdir(workspace)) == ["a", "b", "c"]
        outcomes.add((done.returncode, *texts))
        if done.returncode == 0:
            break
    assert (0, "new") in outcomes
    assert (-signal.SIGKILL, "old" if deadly == "replace" else "new") in outcomes


def test_a_late_write_of_another_program_is_not_lost(editor, write, monkeypatch):
    path = write("a.txt", "one\ntwo\n")
    fsync, texts = os.fsync, ["one\ntwo\nand theirs\n"]

    def fsync_while_they_write(descriptor):
        fsync(descriptor)
        if texts:
            path.write_text(texts.pop())

    monkeypatch.setattr(os, "fsync", fsync_while_they_write)
    replace(editor, path, "one", "1")
    assert path.read_text() == "1\ntwo\nand theirs\n"


DIES_WHILE_WRITING = """if True:
    import os, sys
    from oh_jupyter.editor import FileEditor
    history, path, calls = sys.argv[1:]
    editor = FileEditor("/", history_dir=history)
    fsync = os.fsync
    def dies(descriptor):
        if os.fstat(descriptor).st_size == 100_000:
            if os.path.samestat(os.fstat(descriptor), os.stat(path)):
                os.ftruncate(descriptor, 0)
                os.pwrite(descriptor, b"n" * 70_000 + b"o" * 30_000, 0)
            os.kill(os.getpid(), 9)
        fsync(descriptor)
    os.fsync = dies
    editor(command="str_replace", path=path, old_str="o" * 100_000, new_str="n" * 100_000)
"""


@pytest.mark.parametrize("linked", [False, True])
def test_an_edit_of_one_file_is_cleaned_up_by_the_next_editor(
    workspace, write, stranger, tmp_path, linked
):
    path, other = write("a.txt", "o" * 100_000), workspace / "other"
    if linked:
        os.link(path, other)
    arguments = [tmp_path / "history", path, "1"]
    done = subprocess.run([sys.executable, "-c", DIES_WHILE_WRITING, *arguments], check=False)
    assert done.returncode == -signal.SIGKILL
    if linked:
        assert set(path.read_text()) == {"o", "n"}
    else:
        assert len(os.listdir(workspace)) == 2
    view(stranger, other if linked else path)
    assert set(path.read_text()) == ({"n"} if linked else {"o"})
    assert sorted(os.listdir(workspace)) == ["a.txt", *["other"] * linked]


def test_a_process_that_lives_is_not_disturbed(half_done, stranger, editor, monkeypatch):
    """A view during another editor's edit neither waits nor repairs."""
    view(stranger, half_done[0])
    seen = []
    real = atomic_write.replace

    def looks(path, *arguments, **more):
        real(path, *arguments, **more)
        view(stranger, half_done[2])
        seen.append([path.read_text()[:3] for path in half_done])

    monkeypatch.setattr(atomic_write, "replace", looks)
    replace_in_all(editor, half_done, "new", "old")
    assert seen == [["old", "new", "new"], ["old", "old", "new"], ["old", "old", "old"]]


# Where the locks are


@pytest.fixture
def places(tmp_path, monkeypatch):
    roots = [tmp_path / "first", tmp_path / "second"]
    for root in roots:
        root.mkdir()
    monkeypatch.setattr(private_folder, "ROOTS", tuple(map(str, roots)))
    return [Path(folder) for folder in edit_lock.lock_folders()]


def held_in(places, editor, path):
    """Make an edit, and list the folders in which there was a lock meanwhile."""
    folders = []

    def compute(old):
        folders.extend(folder.parent.name for folder in places if any(folder.glob("*")))
        return (old or b"") + b"x"

    editor.overwrite(path, compute)
    return folders


def test_no_lock_is_left_and_the_folder_is_private(places, editor, write):
    assert held_in(places, editor, write("a.txt", "")) == ["first"]
    assert os.listdir(places[0]) == []
    assert places[0].stat().st_mode & 0o777 == 0o700


def test_a_folder_that_others_can_write_or_a_link_is_not_used(places, editor, write, tmp_path):
    path = write("a.txt", "")
    places[0].mkdir()
    places[0].chmod(0o777)
    assert held_in(places, editor, path) == ["second"]
    places[0].rmdir()
    (tmp_path / "theirs").mkdir(mode=0o700)
    places[0].symlink_to(tmp_path / "theirs")
    assert held_in(places, editor, path) == ["second"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give folders away")
def test_a_folder_of_another_user_is_not_used(places, editor, write):
    places[0].mkdir(mode=0o700)
    os.chown(places[0], 65534, 65534)
    assert held_in(places, editor, write("a.txt", "")) == ["second"]


def test_a_lock_is_no_link_to_something_else(places, editor, write, tmp_path):
    path, victim = write("a.txt", "old"), write("victim", "untouched")
    places[0].mkdir(mode=0o700)
    (places[0] / f"{edit_lock.lock_name(str(path))}.lock").symlink_to(victim)
    with pytest.raises(EditorError, match="nothing was changed"):
        replace(editor, path, "old", "new")
    assert (path.read_text(), victim.read_text()) == ("old", "untouched")


def test_edits_work_without_a_folder_for_locks(places, editor, write, caplog):
    for folder in places:
        folder.parent.rmdir()
        folder.parent.touch()
    path = write("a.txt", "")
    for _ in range(2):
        assert held_in(places, editor, path) == []
    assert path.read_text() == "xx"
    assert caplog.text.count("do not wait for each other") == 1


def test_the_folders_depend_on_no_environment_variable(tmp_path):
    program = "from oh_jupyter import edit_lock; print(edit_lock.lock_folders())"
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, **dict.fromkeys(names, str(tmp_path))},
            capture_output=True,
            check=True,
        ).stdout
        for names in (["HOME"], ["XDG_STATE_HOME", "XDG_RUNTIME_DIR"], ["TMPDIR", "TEMP", "TMP"])
    }
    assert len(outputs) == 1
    assert Path("/var/tmp").is_dir()
