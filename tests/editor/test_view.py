import os
import socket
import sys

import pytest

from oh_jupyter.editor import EditorParameterInvalidError, FileEditor, FileValidationError


def view(editor, path, view_range=None):
    return editor(command="view", path=path, view_range=view_range).output


def test_a_file_is_shown_like_cat_n(editor, write):
    path = write("a.txt", "one\n\ttwo")
    assert view(editor, path) == (
        f"Here's the result of running `cat -n` on {path}:\n     1\tone\n     2\t\ttwo\n"
    )


def test_a_newline_at_the_end_shows_as_one_more_line_but_not_in_a_range(editor, write):
    path = write("a.txt", "one\ntwo\n")
    assert view(editor, path).endswith("     2\ttwo\n     3\t\n")
    assert view(editor, path, [1, 2]).endswith(":\n     1\tone\n     2\ttwo\n")


def test_an_empty_file_shows_one_empty_line(editor, write):
    assert view(editor, write("a.txt", "")).endswith(":\n     1\t\n")


def test_a_view_changes_nothing_and_has_no_contents(editor, write):
    path = write("a.txt", "x\r\n")
    result = editor(command="view", path=str(path))
    assert (result.old_content, result.new_content, result.prev_exist) == (None, None, True)
    assert (result.path, result.error, result.diff) == (str(path), None, "")
    assert path.read_bytes() == b"x\r\n"


@pytest.mark.parametrize(
    ("view_range", "lines"),
    [([2, 3], "23"), ((1, 1), "1"), ([2, -1], "2345"), ([True, 2], "12"), ([], "12345")],
)
def test_ranges(editor, write, view_range, lines):
    path = write("a.txt", "1\n2\n3\n4\n5")
    shown = view(editor, path, view_range).splitlines()[1:]
    assert shown == [f"{n:>6}\t{n}" for n in lines]


def test_a_range_past_the_end_is_lowered_with_a_note(editor, write):
    path = write("a.txt", "1\n2\n3\n")
    assert view(editor, path, [2, 9]) == (
        "NOTE: We only show up to 3 since there're only 3 lines in this file.\n"
        f"Here's the result of running `cat -n` on {path}:\n     2\t2\n     3\t3\n"
    )


@pytest.mark.parametrize(
    ("view_range", "hint"),
    [
        ([0, 1], "Its first element `0` should be within the range of lines of the file: [1, 3]."),
        ([4, 5], "Its first element `4` should be within the range of lines of the file: [1, 3]."),
        (
            [2, 1],
            "Its second element `1` should be greater than or equal to the first element `2`.",
        ),
        (
            [2, 0],
            "Its second element `0` should be greater than or equal to the first element `2`.",
        ),
        ([2, -2], "Its second element `-2` should be greater than or equal to the first element"),
        ([1.0, 2], "It should be a list of two integers."),
        (["1", "2"], "It should be a list of two integers."),
        ([1], "It should be a list of two integers."),
    ],
)
def test_unusable_ranges(editor, write, view_range, hint):
    path = write("a.txt", "1\n2\n3\n")
    with pytest.raises(EditorParameterInvalidError) as caught:
        view(editor, path, view_range)
    assert str(caught.value).startswith(f"Invalid `view_range` parameter: {view_range}. {hint}")


def test_every_range_of_an_empty_file_is_unusable(editor, write):
    with pytest.raises(EditorParameterInvalidError, match=r"\[1, 0\]"):
        view(editor, write("a.txt", ""), [1, 1])


def test_lines_end_at_newlines_only_so_all_numbers_agree(editor, write):
    path = write("a.txt", "a\fb\vc\x1cd\x85e\u2028f\nlast\n")
    assert view(editor, path, [2, 2]).endswith(":\n     2\tlast\n")
    assert view(editor, path).count("\n") == 4


def test_long_files_are_clipped_at_the_head(editor, write):
    shown = view(editor, write("a.txt", "Line 1\n" * 16000))
    assert shown.endswith(
        "<response clipped><NOTE>Due to the max output limit, only part of this file has been "
        "shown to you. You should retry this tool after you have searched inside the file with "
        "`grep -n` in order to find the line numbers of what you are looking for.</NOTE>\n"
    )
    assert shown.count("\n") == 16000 // 7 + 2


def test_numbers_above_a_million_get_wider(editor, write):
    path = write("a.txt", "\n" * 1_000_001)
    assert view(editor, path, [1_000_000, 1_000_000]).endswith(":\n1000000\t\n")


def test_a_directory_is_listed_two_levels_deep(editor, workspace, write):
    write("b.txt", "")
    write(".hidden", "")
    (workspace / "a-b").mkdir()
    (workspace / "a" / "deep" / "deeper").mkdir(parents=True)
    (workspace / "a" / ".hidden").mkdir()
    (workspace / "a" / "c d;'$(x).txt").touch()
    w = workspace
    assert view(editor, workspace) == (
        f"Here's the files and directories up to 2 levels deep in {w}, excluding hidden items:\n"
        f"{w}/\n{w}/a/\n{w}/a/c d;'$(x).txt\n{w}/a/deep/\n{w}/a-b/\n{w}/b.txt\n\n"
        f"1 hidden files/directories in this directory are excluded. You can use 'ls -la {w}' "
        "to see them."
    )


def test_a_directory_without_hidden_entries_has_no_note_about_them(editor, workspace, write):
    write("only.txt", "")
    assert view(editor, workspace).endswith(f"{workspace}/\n{workspace}/only.txt")


def test_links_are_followed_and_loops_are_listed(editor, workspace):
    (workspace / "real").mkdir()
    (workspace / "real" / "f").touch()
    (workspace / "link").symlink_to("real")
    (workspace / "loop").symlink_to("loop")
    (workspace / "odd").mkdir()
    os.mkdir(os.fsencode(workspace / "odd") + b"/\xff")
    shown = view(editor, workspace)
    assert f"{workspace}/link/\n{workspace}/link/f\n{workspace}/loop\n" in shown
    assert shown.encode().decode() == shown
    assert f"{workspace / 'link'}/f" in view(editor, workspace / "link")


def test_a_large_directory_is_clipped_before_the_footer(editor, workspace):
    for number in range(1000):
        (workspace / f"a-file-with-a-rather-long-name-{number}").touch()
    (workspace / ".hidden").touch()
    shown = view(editor, workspace)
    assert (
        "You should use `ls -la` instead to view large directories incrementally.</NOTE>" in shown
    )
    assert shown.endswith("to see them.")


def test_a_range_of_a_directory_is_refused(editor, workspace):
    with pytest.raises(
        EditorParameterInvalidError, match="not allowed when `path` points to a dir"
    ):
        view(editor, workspace, [1, 2])


def test_images_are_shown_as_data_urls(editor, write):
    path = write("a.PNG", b"\x89PNG\r\n\x1a\n\0")
    result = editor(command="view", path=path)
    assert result.output == f"Image file {path} read successfully. Displaying image content."
    assert result.image_urls == ["data:image/png;base64,iVBORw0KGgoA"]


@pytest.mark.parametrize(
    "data", [b"\0\1\2", b"%PDF-1.4\nabc", b"\x1f\x8b\x08abc", b"\x93\x01\x02\x03"]
)
def test_binary_files_are_refused(editor, write, data):
    path = write("a.bin", data)
    with pytest.raises(FileValidationError) as caught:
        view(editor, path)
    assert str(caught.value) == (
        f"File validation failed for {path}: File appears to be binary and this file type cannot "
        "be read or edited by this tool."
    )


def test_large_files_are_refused(workspace, tmp_path, write):
    editor = FileEditor(workspace, max_file_size_mb=1, history_dir=tmp_path / "h")
    path = write("a.txt", b"x" * (1024 * 1024 + 1))
    with pytest.raises(FileValidationError) as caught:
        view(editor, path)
    assert str(caught.value) == (
        f"File validation failed for {path}: File is too large (1.0MB). Maximum "
        "allowed size is 1MB."
    )


RANGES: list[list[object]] = [
    *([1, 1], [2, 40], [399, 400], [400, -1], [7, -1], [390, 500]),
    *([401, 402], [0, 3], [9, 2], [5, -2], ["1", 2], [1]),
]


@pytest.mark.parametrize("end", ["\n", "\r\n", ""])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252"])
def test_lines_of_large_files_are_shown_alike(editor, workspace, tmp_path, write, end, encoding):
    lines = [f"{number} für {'x' * (number % 90)}" for number in range(400)]
    data = (end or "\n").join(lines) + end
    path = write("a.txt", data.encode(encoding))
    small = FileEditor(workspace, max_file_size_mb=0.001, history_dir=tmp_path / "h")
    with pytest.raises(FileValidationError, match="too large"):
        view(small, path)

    def output(editor: FileEditor, view_range: list[object]) -> str:
        try:
            return editor(command="view", path=path, view_range=view_range).output
        except EditorParameterInvalidError as error:
            return str(error)

    for view_range in RANGES:
        assert output(small, view_range) == output(editor, view_range)


def test_lines_of_large_files_that_are_no_text(workspace, tmp_path, write):
    small = FileEditor(workspace, max_file_size_mb=0.001, history_dir=tmp_path / "h")
    wide = write("wide.txt", ("x\n" * 2000).encode("utf-16"))
    with pytest.raises(FileValidationError, match="too large"):
        small(command="view", path=wide, view_range=[1, 2])
    for data in (b"\0x\n" * 2000, b"x\n" * 40_000 + b"\0\xff\n"):
        path = write("binary.dat", data)
        with pytest.raises(FileValidationError, match="appears to be binary"):
            small(command="view", path=path, view_range=[1, -1] if data[0] == 0 else [40_001, -1])


def test_a_pipe_and_a_socket_do_not_hang(editor, workspace, monkeypatch):
    os.mkfifo(workspace / "pipe")
    monkeypatch.chdir(workspace)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
        for name in ("pipe", "socket"):
            with pytest.raises(FileValidationError, match="not a regular file"):
                view(editor, workspace / name)


def test_a_converter_that_is_not_installed_is_named(editor, write, monkeypatch):
    monkeypatch.setitem(sys.modules, "markitdown", None)
    path = write("a.docx", b"PK\x03\x04 broken")
    with pytest.raises(FileValidationError, match=r"pip install 'oh_jupyter\[documents\]'"):
        view(editor, path)
