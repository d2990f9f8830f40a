"""Someone else changes a file between a view and an edit."""

import subprocess
import sys
import threading

import pytest

from oh_jupyter.editor import FileChangedError
from oh_jupyter.editor.files import atomic_write

LINES = "".join(f"line {number}\n" for number in range(1, 21))


@pytest.fixture
def shown(editor, write):
    path = write("a.txt", LINES)
    editor(command="view", path=path)
    return path


def replace(editor, path, old, new):
    return editor(command="str_replace", path=path, old_str=old, new_str=new)


def test_a_change_elsewhere_is_noted_once(editor, shown):
    shown.write_text(LINES.replace("line 18\n", "line 18 or so\nmore\n"))
    output = replace(editor, shown, "line 3\n", "3\n").output
    assert output.endswith(
        f"NOTE: {shown} was changed by somebody else since it was last shown here, elsewhere in "
        "the file (before this edit at lines 18-19)."
    )
    assert "NOTE" not in replace(editor, shown, "line 4\n", "4\n").output


def test_an_untouched_file_saved_again_is_no_change(editor, shown):
    shown.write_text(LINES)
    assert "NOTE" not in replace(editor, shown, "line 3\n", "3\n").output


def test_a_text_that_moved_into_a_changed_place_is_refused_with_the_difference(editor, shown):
    shown.write_text(LINES.replace("line 3\n", "").replace("line 18\n", "line 3\nline 18 b\n"))
    with pytest.raises(FileChangedError) as caught:
        replace(editor, shown, "line 3\n", "three\n")
    assert "-line 3\n" in str(caught.value)
    assert "+line 18 b" in str(caught.value)
    assert "line 18 b" in shown.read_text()
    replace(editor, shown, "line 3\n", "three\n")  # now it is known
    assert "three\nline 18 b" in shown.read_text()


def test_a_text_that_is_new_is_one_that_the_caller_knows(editor, shown):
    shown.write_text(LINES.replace("line 3\n", "from sed\n"))
    assert "NOTE" in replace(editor, shown, "from sed\n", "three\n").output
    assert "three\n" in shown.read_text()


def test_line_numbers_hold_only_above_a_change(editor, shown):
    shown.write_text("first\n" + LINES)
    with pytest.raises(FileChangedError, match=r"\+first"):
        editor(command="insert", path=shown, insert_line=5, new_str="x")
    assert shown.read_text() == "first\n" + LINES
    shown.write_text("first\n" + LINES + "last\n")
    output = editor(command="insert", path=shown, insert_line=5, new_str="x").output
    assert "NOTE" in output
    assert "line 4\nx\nline 5" in shown.read_text()


@pytest.mark.parametrize(
    ("change", "refused"), [(("line 9\n", "9\n"), True), (("line 15\n", "15\n"), False)]
)
def test_writing_lines_over_a_change(editor, shown, change, refused):
    shown.write_text(LINES.replace(*change))
    arguments = {"command": "write", "path": shown, "content": "x", "start": 7, "end": 10}
    if refused:
        with pytest.raises(FileChangedError):
            editor(**arguments)
        assert change[1] in shown.read_text()
    editor(**arguments)
    assert "line 7\nx\nline 11\n" in shown.read_text()


def test_writing_all_over_a_change(editor, shown):
    shown.write_text(LINES + "precious\n")
    with pytest.raises(FileChangedError, match=r"\+precious"):
        editor(command="write", path=shown, content="x")
    assert "precious" in shown.read_text()


def test_a_write_in_the_very_moment_is_not_overwritten(editor, write, monkeypatch):
    path = write("a.txt", "one\ntwo\n")
    fingerprint_of = atomic_write.fingerprint_of
    writes = iter(["one\ntwo\nthree\n"])

    def somebody_writes_first(file):
        for content in writes:
            path.write_text(content)
        return fingerprint_of(file)

    monkeypatch.setattr(atomic_write, "fingerprint_of", somebody_writes_first)
    replace(editor, path, "one", "1")
    assert path.read_text() == "1\ntwo\nthree\n"


def test_threads_do_not_lose_each_other_s_edits(editor, write):
    path = write("a.txt", "".join(f"<{number}>\n" for number in range(40)))
    barrier = threading.Barrier(4)

    def work(first):
        barrier.wait()
        for number in range(first, 40, 4):
            replace(editor, path, f"<{number}>", f"[{number}]")

    threads = [threading.Thread(target=work, args=(first,)) for first in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert path.read_text() == "".join(f"[{number}]\n" for number in range(40))
    assert len(editor.history(path)) == 40


EDIT_HALF = """if True:
    import sys
    from oh_jupyter.editor import FileEditor
    workspace, history, path, first = sys.argv[1:]
    editor = FileEditor(workspace, history_dir=history)
    sys.stdin.readline()
    for number in range(int(first), 60, 2):
        editor(command="str_replace", path=path, old_str=f"<{number}>", new_str=f"[{number}]")
"""


def test_processes_do_not_lose_each_other_s_edits(editor, workspace, write, tmp_path):
    path = write("a.txt", "".join(f"<{number}>\n" for number in range(60)))
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", EDIT_HALF, workspace, tmp_path / "history", path, first],
            stdin=subprocess.PIPE,
            text=True,
        )
        for first in "01"
    ]
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in processes:
        process.communicate()
        assert process.returncode == 0
    assert path.read_text() == "".join(f"[{number}]\n" for number in range(60))
    for _ in range(60):
        editor(command="undo_edit", path=path)
    assert path.read_text() == "".join(f"<{number}>\n" for number in range(60))
