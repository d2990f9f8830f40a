import json
import stat

import pytest

from oh_jupyter.config import Settings
from oh_jupyter.editor import FileEditor
from oh_jupyter.editor.file_actions import edit_file, read_file, write_file
from oh_jupyter.events import (
    ErrorObservation,
    FileEditAction,
    FileEditObservation,
    FileReadAction,
    FileReadObservation,
    FileWriteAction,
    FileWriteObservation,
)


@pytest.fixture
def read(editor, workspace):
    def read(path, **arguments):
        return read_file(FileReadAction(str(path), **arguments), cwd=str(workspace), editor=editor)

    return read


@pytest.fixture
def put(workspace):
    def put(path, content, owner=None, **arguments):
        action = FileWriteAction(str(path), content, **arguments)
        return write_file(action, cwd=str(workspace), owner=owner)

    return put


@pytest.fixture
def edit(editor, workspace):
    def edit(path, command, **arguments):
        action = FileEditAction(str(path), command, **arguments)
        return edit_file(action, cwd=str(workspace), editor=editor)

    return edit


# read


def test_text_is_read_with_universal_newlines(read, write):
    path = write("a.txt", "ü\r\nb\rc\n")
    assert read("a.txt") == FileReadObservation("ü\nb\nc\n", path=str(path), impl_source="default")


@pytest.mark.parametrize(
    ("start", "end", "lines"),
    [
        (0, -1, "12345"),
        (2, -1, "345"),
        (1, 3, "23"),
        (4, 5, "45"),  # a start in the last line is pulled back
        (9, 10, "45"),
        (9, -1, ""),
        (2, 1, "3"),  # at least one line
        (0, -7, "1"),
        (-3, 2, "12"),
    ],
)
def test_ranges_are_those_of_the_protocol(read, write, start, end, lines):
    write("a.txt", "1\n2\n3\n4\n5\n")
    assert read("a.txt", start=start, end=end).content == "".join(f"{n}\n" for n in lines)


def test_a_range_of_a_file_without_newline_at_the_end(read, write):
    write("a.txt", "1\n2")
    assert read("a.txt", start=1, end=2).content == "1\n2"
    assert read("a.txt", start=1).content == "2"


def test_a_read_file_counts_as_shown(edit, read, write, workspace):
    path = write("a.txt", "one\ntwo\n")
    edit(path, "view")
    path.write_text("zero\none\ntwo\n")
    read("a.txt")
    edited = edit(path, "str_replace", old_str="zero", new_str="null")
    assert "changed by somebody else" not in edited.content


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-be", "latin-1", "cp1251"])
def test_read_decodes_as_the_editor_does(read, write, encoding):
    text = "für\nzwei\n" if encoding != "cp1251" else "Привет, мир! Здравствуйте\nДругая\n"  # noqa: RUF001
    mark = b"\xfe\xff" if encoding == "utf-16-be" else b""
    write("other.txt", mark + text.replace("\n", "\r\n").encode(encoding))
    assert read("other.txt").content == text
    assert read("other.txt", start=1).content == text.split("\n")[1] + "\n"


def test_failures_of_read(read, workspace, write):
    assert read("no.txt") == ErrorObservation(
        f"File not found: {workspace}/no.txt. Your current working directory is {workspace}."
    )
    assert read(workspace) == ErrorObservation(
        f"Path is a directory: {workspace}. You can only read files"
    )
    write("data.bin", b"\0")
    assert read("data.bin") == ErrorObservation("ERROR_BINARY_FILE")
    assert read("a\0b").content.startswith("File ")


@pytest.mark.parametrize(
    ("name", "media_type", "source"),
    [
        ("a.png", "image/png", "default"),
        ("a.png", "image/png", "oh_aci"),
        ("a.JPG", "image/jpeg", "oh_aci"),
        ("a.pdf", "application/pdf", "default"),
        ("a.webm", "video/webm", "default"),
    ],
)
def test_media_become_data_urls(read, write, name, media_type, source):
    path = write(name, b"\0abc")
    observation = read(path, impl_source=source)
    assert observation == FileReadObservation(
        f"data:{media_type};base64,AGFiYw==", path=str(path), impl_source=source
    )


def test_the_numbered_view(read, write):
    path = write("a.txt", "1\n2\n3\n")
    observation = read(path, impl_source="oh_aci", view_range=[2, 9])
    assert observation.impl_source == "oh_aci"
    assert observation.content == (
        "NOTE: We only show up to 3 since there're only 3 lines in this file.\n"
        f"Here's the result of running `cat -n` on {path}:\n     2\t2\n     3\t3\n"
    )


def test_failures_of_the_numbered_view(read, workspace, write):
    write("a.txt", "")
    observation = read("a.txt", impl_source="oh_aci")
    assert isinstance(observation, FileReadObservation)
    assert observation.content == (
        "ERROR:\nInvalid `path` parameter: a.txt. The path should be an absolute path, starting "
        f"with `/`. Maybe you meant {workspace}/a.txt?"
    )
    observation = read(workspace / "no.txt", impl_source="oh_aci")
    assert observation.content.startswith("ERROR:\nInvalid `path` parameter:")
    path = write("data.bin", b"\0")
    assert read(path, impl_source="oh_aci") == ErrorObservation("ERROR_BINARY_FILE")
    assert read(workspace, impl_source="oh_aci").content.startswith("Here's the files and")


# write


def test_write_then_read_adds_a_newline_once(put, read, workspace):
    path = workspace / "deep" / "er" / "a.txt"
    assert put("deep/er/a.txt", "Hello") == FileWriteObservation("", path=str(path))
    assert stat.S_IMODE(path.stat().st_mode) == 0o664
    assert read(path).content == "Hello\n"
    put(path, read(path).content)
    assert path.read_bytes() == b"Hello\n"


def test_writing_a_range_keeps_the_rest_and_the_mode(put, write):
    path = write("a.txt", "1\r\n2\r\n3")
    path.chmod(0o600)
    put(path, "two\nand a half", start=1, end=2)
    assert path.read_bytes() == b"1\r\ntwo\r\nand a half\r\n3"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_new_file_gets_its_owner(put, workspace):
    assert put("a.txt", "", owner=(1234, 4321)) == FileWriteObservation(
        "", path=f"{workspace}/a.txt"
    )
    info = (workspace / "a.txt").stat()
    assert (info.st_uid, info.st_gid, info.st_size) == (1234, 4321, 0)


def test_failures_of_write(put, workspace, write):
    assert put(workspace, "x") == ErrorObservation(
        f"Path is a directory: {workspace}. You can only write to files"
    )
    path = write("latin.txt", "für".encode("latin-1"))
    assert put(path, "x") == ErrorObservation(f"File could not be decoded as utf-8: {path}")
    assert path.read_bytes() == "für".encode("latin-1")
    assert "cannot be written" in put(path / "below", "x").content
    assert "cannot be written" in put("a.txt", "\ud800").content
    assert not (workspace / "a.txt").exists()


def test_a_write_can_be_undone_where_the_editor_is_given(edit, editor, workspace, write):
    path = write("a.txt", "old\r\n")
    edit(path, "view")
    action = FileWriteAction("a.txt", "new")
    write_file(action, cwd=str(workspace), editor=editor)
    write_file(FileWriteAction("b.txt", "b"), cwd=str(workspace), editor=editor)
    assert (path.read_bytes(), (workspace / "b.txt").read_bytes()) == (b"new\r\n", b"b\n")
    assert stat.S_IMODE((workspace / "b.txt").stat().st_mode) == 0o664
    assert "NOTE" not in edit(path, "insert", insert_line=1, new_str="more").content
    edit(path, "undo_edit")
    edit(path, "undo_edit")
    edit(workspace / "b.txt", "undo_edit")
    assert path.read_bytes() == b"old\r\n"
    assert not (workspace / "b.txt").exists()


# edit


def test_an_edit_and_its_observation(edit, write):
    path = write("a.txt", "1 \n2\n3\n")
    observation = edit(path, "str_replace", old_str="2\n3", new_str="two  \n3")
    assert isinstance(observation, FileEditObservation)
    assert observation.content.startswith(f"The file {path} has been edited. ")
    assert (observation.old_content, observation.new_content) == ("2\n3", "two  \n3")
    assert (observation.path, observation.prev_exist) == (str(path), False)
    assert observation.diff == f"--- {path}\n+++ {path}\n@@ -2 +2 @@\n-2\n+two"


def test_create_view_and_undo(edit, workspace):
    path = workspace / "a.txt"
    created = edit(path, "create", file_text="x")
    assert created.content == f"File created successfully at: {path}"
    assert (created.old_content, created.diff) == (
        None,
        f"--- {path}\n+++ {path}\n@@ -1 +1 @@\n-\n+x",
    )
    assert edit(path, "view").diff == ""
    assert edit(path, "undo_edit").content.startswith(f"Last edit to {path} undone successfully.")


def test_insert_takes_a_number_as_text(edit, write):
    path = write("a.txt", "1\n")
    edit(path, "insert", insert_line="1", new_str="2")
    assert path.read_text() == "1\n2\n"
    observation = edit(path, "insert", insert_line="x", new_str="2")
    assert observation.content == "ERROR:\nInvalid insert_line value: 'x'. Expected an integer."


def test_a_failed_edit_is_an_edit_observation(edit, workspace):
    path = workspace / "no.txt"
    observation = edit(path, "str_replace", old_str="a", new_str="b")
    assert isinstance(observation, FileEditObservation)
    assert observation.content == (
        f"ERROR:\nInvalid `path` parameter: {path}. The path {path} does not exist. "
        "Please provide a valid path."
    )
    assert (observation.diff, observation.old_content) == ("", "a")


def test_edits_are_linted_where_that_is_set(editor, write, monkeypatch):
    def linted(settings):
        action = FileEditAction(
            path=str(write("a.py", "x = 1\n")), command="str_replace", old_str="1", new_str="y"
        )
        content = edit_file(action, cwd="/", editor=editor, settings=settings).content
        return "- Line 1, Column 5: F821 undefined name 'y'\n" in content

    monkeypatch.delenv("ENABLE_AUTO_LINT", raising=False)
    assert not linted(None)
    assert not linted(Settings())
    assert linted(Settings(enable_auto_lint=True))
    monkeypatch.setenv("ENABLE_AUTO_LINT", "true")  # as a client does, in a running kernel
    assert linted(Settings())


# large files


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """A file of 64 MB, whose last line has no newline."""
    path = tmp_path_factory.mktemp("large") / "a.log"
    with open(path, "wb") as file:
        for block in range(16):
            file.write(
                b"".join(b"%010d\n" % n for n in range(block * 381_300, (block + 1) * 381_300))
            )
        file.write(b"end")
    return path, 16 * 381_300 + 1


def lines_of(editor, path, start, end):
    action = FileReadAction(str(path), start=start, end=end)
    return read_file(action, cwd="/", editor=editor).content


@pytest.mark.thorough
def test_lines_of_a_large_file_are_read_alone(editor, large, seconds):
    path, count = large

    def read() -> None:
        assert lines_of(editor, path, 3_000_000, 3_000_002) == "0003000000\n0003000001\n"
        assert lines_of(editor, path, 0, 1) == "0000000000\n"
        assert lines_of(editor, path, count - 2, -1) == f"{count - 2:010}\nend"
        # A start near the end is pulled back, as in a small file.
        for beyond in (count - 1, count, count + 5):
            assert lines_of(editor, path, beyond, count + 9) == f"{count - 2:010}\nend"
        assert lines_of(editor, path, count + 5, -1) == ""

    assert seconds(read) < 3


def test_large_and_small_files_are_read_alike(editor, tmp_path):
    small, large = tmp_path / "small.txt", tmp_path / "large.txt"
    filler = "x" * 200_000
    for ending in ("", "\n"):
        text = "\n".join(f"{n} ü {{}}" for n in range(7)) + ending
        small.write_text(text.format(*"." * 7))
        large.write_text(text.format(*[filler] * 7))
        for start in range(9):
            for end in (-1, 0, 1, 3, 6, 7, 8, 20):
                expected = lines_of(editor, small, start, end)
                assert lines_of(editor, large, start, end).replace(filler, ".") == expected


@pytest.mark.thorough
def test_a_large_file_is_not_read_as_a_whole(editor, large):
    path, _ = large
    observation = read_file(FileReadAction(str(path)), cwd="/", editor=editor)
    assert isinstance(observation, ErrorObservation)
    assert "64 MB" in observation.content
    assert "`start` and `end`" in observation.content
    assert "64 MB" in lines_of(editor, path, 1, -1)


def size_of(folder):
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def test_a_rewritten_file_is_stored_once(editor, tmp_path):
    path = tmp_path / "a.txt"
    texts = [f"{n} the quick brown fox\n" * 40_000 for n in range(4)]
    for text in texts:
        write_file(FileWriteAction(str(path), text), cwd="/", editor=editor)
    assert size_of(tmp_path / "history" / "ledger.db-contents") == sum(map(len, texts))
    for text in texts[-2::-1]:
        editor(command="undo_edit", path=path)
        assert path.read_text() == text


def test_a_file_larger_than_the_history_is_not_stored_in_it(tmp_path):
    path, history = tmp_path / "a.txt", tmp_path / "history"
    editor = FileEditor(tmp_path, history_dir=history, history_mb=1)
    for text in ("small\n", "x" * 70_000_000 + "\n", "small\n"):
        write_file(FileWriteAction(str(path), text), cwd="/", editor=editor)
        assert path.stat().st_size == len(text)
        assert size_of(history) < 1024 * 1024
    write_file(FileWriteAction(str(path), "more\n"), cwd="/", editor=editor)
    editor(command="undo_edit", path=path)
    assert path.read_text() == "small\n"


def test_the_preview_of_a_new_file_has_only_its_lines(edit, workspace):
    path = workspace / "new.py"
    preview = edit(path, "create", file_text="a = 1\nb = 2", dry_run=True)
    assert preview.diff == f"--- /dev/null\n+++ {path}\n@@ -0,0 +1,2 @@\n+a = 1\n+b = 2"
    assert not path.exists()


@pytest.mark.parametrize("indent", [1, None])
def test_the_diff_of_a_notebook_is_that_of_its_cells(edit, write, indent):
    cell = {"cell_type": "code", "id": "one", "metadata": {}, "outputs": [], "execution_count": 1}
    book = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}}
    book["cells"] = [{**cell, "source": ["x = 1\n", "y = 2"]}]
    path = write("a.ipynb", json.dumps(book, indent=indent))
    done = edit(path, "str_replace", old_str="y = 2", new_str="y = 3")
    assert done.diff == f"--- {path}\n+++ {path}\n@@ -3 +3 @@\n-y = 2\n+y = 3"
