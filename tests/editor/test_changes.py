"""Files that edits changed since a position in the history."""

import json
import random
import threading
from contextlib import suppress
from dataclasses import asdict

import pytest

from oh_jupyter.editor import FileEditor, HistoryPosition
from oh_jupyter.errors import NoHistoryError


def replace(editor, path, old, new):
    return editor(command="str_replace", path=path, old_str=old, new_str=new)


def notebook(*sources, ids=True):
    cells = [
        {"cell_type": "code", "execution_count": 1, "metadata": {}, "outputs": [], "source": source}
        | ({"id": f"id{source[0]}"} if ids else {})
        for source in sources
    ]
    minor = 5 if ids else 4
    return json.dumps(
        {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": minor}, indent=1
    )


@pytest.fixture
def tree(editor, write):
    """Three files that were edited before the position that it returns."""
    paths = [write(f"{name}.txt", "one\ntwo\nthree\nfour\nfive\nsix\n") for name in "abc"]
    for path in paths:
        replace(editor, path, "two", "2")
    return paths, editor.position()


def test_nothing_changed(editor, tree):
    paths, since = tree
    assert editor.changes(since) == []
    replace(editor, paths[0], "one", "1")
    replace(editor, paths[0], "1", "one")
    assert editor.changes(since) == []


def test_each_kind_of_change(editor, tree, workspace):
    (a, b, c), since = tree
    before = b.read_bytes()
    replace(editor, a, "one", "1\n1.5")
    replace(editor, a, "six\n", "")
    editor(command="create", path=workspace / "new.txt", file_text="hello\n")
    patch = f"*** Begin Patch\n*** Delete File: {c.name}\n*** End Patch"
    editor(command="apply_patch", path=workspace, content=patch)
    rename = f"diff --git a/{b.name} b/moved.txt\nrename from {b.name}\nrename to moved.txt\n"
    editor(command="apply_patch", path=workspace, content=rename)
    changes = {change.path.name: change for change in editor.changes(since)}
    assert {name: change.kind for name, change in changes.items()} == {
        "a.txt": "changed",
        "c.txt": "deleted",
        "moved.txt": "moved",
        "new.txt": "created",
    }
    edited = changes["a.txt"]
    assert edited.commands == ("str_replace", "str_replace")
    assert edited.counts == (2, 2)
    assert edited.old_text == "one\n2\nthree\nfour\nfive\nsix\n"
    assert edited.new_text == a.read_text()
    assert edited.diff(0).splitlines()[2:] == [
        "@@ -1 +1,2 @@",
        "-one",
        "+1",
        "+1.5",
        "@@ -6 +6,0 @@",
        "-six",
    ]
    assert (changes["moved.txt"].moved_from, changes["moved.txt"].old) == (b, before)
    assert (changes["new.txt"].old, changes["new.txt"].new) == (None, b"hello\n")
    assert (changes["c.txt"].new, changes["c.txt"].counts) == (None, (0, 6))
    assert not any(change.by_others or change.forgotten for change in changes.values())


def test_the_position_holds_in_another_process(editor, tree, workspace, tmp_path):
    (a, _, _), since = tree
    stored = json.dumps(asdict(since))
    replace(editor, a, "one", "1")
    other = FileEditor(workspace, history_dir=tmp_path / "history")
    (change,) = other.changes(HistoryPosition(**json.loads(stored)))
    assert (change.path, change.counts) == (a, (1, 1))


def test_an_edit_that_was_undone_since_is_a_change(editor, tree):
    (a, _, _), since = tree
    editor(command="undo_edit", path=a)
    (change,) = editor.changes(since)
    assert (change.old_text.split()[1], change.new_text.split()[1]) == ("2", "two")


def test_changes_by_others_are_part_of_the_difference(editor, tree):
    (a, _, _), since = tree
    replace(editor, a, "one", "1")
    a.write_text(a.read_text().replace("five", "FIVE"))
    replace(editor, a, "three", "3")
    (change,) = editor.changes(since)
    assert change.by_others
    assert change.counts == (3, 3)


def test_a_deleted_file(editor, tree):
    (a, _, _), since = tree
    replace(editor, a, "one", "1")
    a.unlink()
    (change,) = editor.changes(since)
    assert (change.kind, change.by_others) == ("deleted", True)


def test_a_deleted_new_file_is_no_change(editor, tree, workspace):
    _, since = tree
    new = workspace / "new.txt"
    editor(command="create", path=new, file_text="hello\n")
    new.unlink()
    assert editor.changes(since) == []


def test_a_state_that_the_history_has_forgotten(workspace, tmp_path, write):
    editor = FileEditor(workspace, history_dir=tmp_path / "history", history_limit=3)
    a = write("a.txt", "0\n")
    replace(editor, a, "0", "1")
    since = editor.position()
    for n in range(1, 6):
        replace(editor, a, str(n), str(n + 1))
    (change,) = editor.changes(since)
    assert (change.kind, change.forgotten, change.old, change.new) == (
        "changed",
        True,
        None,
        b"6\n",
    )


def test_all_that_is_kept(editor, tree):
    (a, _, _), _ = tree
    changes = editor.changes()
    assert [change.path.name for change in changes] == ["a.txt", "b.txt", "c.txt"]
    assert changes[0].old_text.split()[1] == "two"
    assert changes[0].new == a.read_bytes()


@pytest.mark.parametrize("ids", [True, False])
def test_notebooks_are_compared_by_cells(editor, write, ids):
    path = write("n.ipynb", notebook("a = 1", "b = 2", "c = 3", ids=ids))
    since = editor.position()
    editor(command="str_replace", path=path, old_str="b = 2", new_str="b = 22")
    editor.edit_cell(path, 2, mode="delete")
    editor.edit_cell(path, None, "d = 4", mode="insert")
    (change,) = editor.changes(since)
    cells = [(c.kind, c.old_index, c.new_index, c.old_source, c.new_source) for c in change.cells]
    assert cells == [
        ("created", None, 0, "", "d = 4"),
        ("changed", 1, 2, "b = 2", "b = 22"),
        ("deleted", 2, None, "c = 3", ""),
    ]
    assert "outputs" not in change.diff()
    assert "+b = 22" in change.diff()


def test_outputs_and_metadata_of_cells_are_compared(editor, write):
    book = json.loads(notebook("plot()", "total", "same"))
    image = {"output_type": "display_data", "metadata": {}, "data": {"image/png": "aaaa"}}
    result = {"output_type": "stream", "name": "stdout", "text": ["1\n", "2\n"]}
    for cell in book["cells"]:
        cell["outputs"] = [image, result]
    path = write("n.ipynb", json.dumps(book))
    since = editor.position()
    first, second, _ = book["cells"]
    first["outputs"] = [{**image, "data": {"image/png": "bbbb"}}, result]
    second["outputs"][1] = {**result, "text": "1\n3\n"}
    second["metadata"] = {"tags": ["agent"]}
    editor(command="write", path=path, content=json.dumps(book))
    (change,) = editor.changes(since)
    picture, text = change.cells
    assert (picture.kind, picture.new_index, text.new_index) == ("changed", 0, 1)
    assert picture.old_source == picture.new_source
    assert picture.old_outputs != picture.new_outputs
    assert picture.new_outputs.startswith("[image/png]\n1\n2\n[image/png, checksum ")
    assert (text.old_outputs.split("\n")[2], text.new_outputs.split("\n")[2]) == ("2", "3")
    assert text.old_metadata == ""
    assert json.loads(text.new_metadata) == {"tags": ["agent"]}


def test_a_cell_that_was_moved(editor, write):
    path = write("n.ipynb", notebook("a = 1", "b = 2", "c = 3"))
    since = editor.position()
    editor.edit_cell(path, 2, mode="move", to=0)
    (change,) = editor.changes(since)
    assert [(c.kind, c.id, c.old_index, c.new_index) for c in change.cells] == [
        ("moved", "idc", 2, 0)
    ]


def test_a_notebook_that_was_created(editor, workspace):
    since = editor.position()
    path = workspace / "n.ipynb"
    editor(command="create", path=path, file_text=notebook("a = 1"))
    (change,) = editor.changes(since)
    assert [(c.kind, c.new_source) for c in change.cells] == [("created", "a = 1")]
    assert change.counts == (2, 0)


def test_changes_of_random_sessions_are_exact(workspace, tmp_path):
    draw = random.Random(7)
    editor = FileEditor(workspace, history_dir=tmp_path / "history")
    paths = [workspace / f"{n}.txt" for n in range(4)]

    def snapshot():
        return {path: path.read_bytes() for path in paths if path.exists()}

    def step():
        path = draw.choice(paths)
        text = "".join(f"{draw.randrange(5)}\n" for _ in range(draw.randrange(1, 8)))
        if not path.exists():
            editor(command="create", path=path, file_text=text)
        elif draw.random() < 0.2:
            patch = f"*** Begin Patch\n*** Delete File: {path.name}\n*** End Patch"
            editor(command="apply_patch", path=workspace, content=patch)
        elif draw.random() < 0.3 and editor.history(path):
            editor(command="undo_edit", path=path)
        else:
            line = draw.randrange(path.read_text().count("\n") + 1)
            editor(command="insert", path=path, insert_line=line, new_str=text)

    for _ in range(25):
        since, before = editor.position(), snapshot()
        for _ in range(draw.randrange(1, 6)):
            with suppress(NoHistoryError):  # all of it was undone before
                step()
        after = snapshot()
        changed = {change.path for change in editor.changes(since) if not change.forgotten}
        if any(change.forgotten for change in editor.changes(since)):
            continue  # a branch of undone steps is gone
        moved = {c.moved_from for c in editor.changes(since) if c.moved_from}
        differing = {path for path in paths if before.get(path) != after.get(path)}
        assert changed | moved == differing
        for change in editor.changes(since):
            assert (change.old, change.new) == (
                before.get(change.moved_from or change.path),
                after.get(change.path),
            )


def test_threads_that_edit_meanwhile_lose_nothing(editor, tree):
    (a, b, c), since = tree
    failures = []

    def work(path):
        try:
            for n in range(10):
                replace(editor, path, "one" if n % 2 == 0 else "1", "1" if n % 2 == 0 else "one")
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(path,)) for path in (a, b, c)]
    for thread in threads:
        thread.start()
    for _ in range(5):
        editor.changes(since)
    for thread in threads:
        thread.join()
    assert failures == []
    assert editor.changes(since) == []
