import os

import pytest

from oh_jupyter.skills import file_ops
from oh_jupyter.skills.file_ops import (
    find_file,
    goto_line,
    open_file,
    scroll_down,
    scroll_up,
    search_dir,
    search_file,
)


@pytest.fixture(autouse=True)
def _nothing_open(monkeypatch):
    monkeypatch.setattr(file_ops, "_window", file_ops._Window())


@pytest.fixture
def numbered(tmp_path):
    def numbered(count):
        path = tmp_path / "a.txt"
        path.write_text("\n".join(f"Line {n}" for n in range(1, count + 1)))
        return path

    return numbered


def window(path, total, first, last):
    above = (
        f"({first - 1} more lines above)" if first > 1 else "(this is the beginning of the file)"
    )
    below = (
        f"({total - last} more lines below)" if last < total else "(this is the end of the file)"
    )
    body = "\n".join(f"{n}|Line {n}" for n in range(first, last + 1))
    return f"[File: {path} ({total} lines total)]\n{above}\n{body}\n{below}\n"


MORE = "[Use `scroll_down` to view the next 100 lines of the file!]\n"


def test_a_short_file(numbered, capsys):
    path = numbered(5)
    assert open_file(str(path)) is None
    assert capsys.readouterr().out == window(path, 5, 1, 5)


def test_a_long_file_is_shown_in_a_window(numbered, capsys):
    path = numbered(1000)
    open_file(str(path))
    assert capsys.readouterr().out == window(path, 1000, 1, 100) + MORE
    scroll_down()
    assert capsys.readouterr().out == window(path, 1000, 101, 201)
    scroll_down()
    assert capsys.readouterr().out == window(path, 1000, 201, 301)
    scroll_up()
    assert capsys.readouterr().out == window(path, 1000, 101, 201)
    scroll_up()
    assert capsys.readouterr().out == window(path, 1000, 1, 100)
    goto_line(500)
    assert capsys.readouterr().out == window(path, 1000, 450, 550)
    goto_line(990)
    assert capsys.readouterr().out == window(path, 1000, 901, 1000)


@pytest.mark.parametrize(("context", "first", "last"), [(10, 45, 55), (1, 49, 51), (500, 1, 100)])
def test_context_lines_are_limited_and_not_remembered(numbered, capsys, context, first, last):
    path = numbered(300)
    open_file(str(path), 50, context)
    assert capsys.readouterr().out == window(path, 300, first, last) + MORE
    goto_line(150)
    assert capsys.readouterr().out == window(path, 300, 100, 200)


def test_an_empty_file(tmp_path, capsys):
    (tmp_path / "a").touch()
    open_file(str(tmp_path / "a"))
    assert capsys.readouterr().out == (
        f"[File: {tmp_path}/a (1 lines total)]\n(this is the beginning of the file)\n1|\n"
        "(this is the end of the file)\n"
    )


def test_files_that_cannot_be_opened(tmp_path, numbered, capsys):
    open_file("/no/such/file")
    assert capsys.readouterr().out == "ERROR: File /no/such/file not found.\n"
    open_file(str(numbered(5)), 6)
    assert capsys.readouterr().out == "ERROR: Line number must be between 1 and 5\n"
    goto_line(0)
    assert capsys.readouterr().out == "ERROR: Line number must be between 1 and 5.\n"
    (tmp_path / "b").write_bytes(b"\0")
    open_file(str(tmp_path / "b"))
    assert capsys.readouterr().out == f"ERROR: File {tmp_path}/b is not a text file.\n"


@pytest.mark.parametrize("skill", [lambda: goto_line(1), scroll_down, scroll_up])
def test_without_an_open_file(skill, capsys):
    skill()
    assert capsys.readouterr().out == "ERROR: No file open. Use the open_file function first.\n"


def test_search_file(numbered, capsys):
    path = numbered(11)
    search_file("Line 1")
    assert capsys.readouterr().out == (
        "ERROR: No file specified or open. Use the open_file function first.\n"
    )
    open_file(str(path))
    capsys.readouterr()
    search_file("Line 1")
    assert capsys.readouterr().out == (
        f'[Found 3 matches for "Line 1" in {path}]\nLine 1: Line 1\nLine 10: Line 10\n'
        f'Line 11: Line 11\n[End of matches for "Line 1" in {path}]\n'
    )
    search_file("absent", str(path))
    assert capsys.readouterr().out == f'[No matches found for "absent" in {path}]\n'
    search_file("x", "/no/such/file")
    assert capsys.readouterr().out == "ERROR: File /no/such/file not found.\n"


def test_search_dir_skips_binary_files(tmp_path, capsys):
    for name in ("b.txt", "a.txt", ".hidden", ".git/config", "sub/c.txt"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("  needle  \n")
    (tmp_path / "binary").write_bytes(b"needle\0")
    (tmp_path / "dangling").symlink_to("nowhere")
    os.mkfifo(tmp_path / "pipe")
    search_dir("needle", str(tmp_path))
    assert capsys.readouterr().out == (
        f'[Found 3 matches for "needle" in {tmp_path}]\n{tmp_path}/a.txt (Line 1): needle\n'
        f"{tmp_path}/b.txt (Line 1): needle\n{tmp_path}/sub/c.txt (Line 1): needle\n"
        f'[End of matches for "needle" in {tmp_path}]\n'
    )
    search_dir("absent", str(tmp_path))
    assert capsys.readouterr().out == f'No matches found for "absent" in {tmp_path}\n'
    search_dir("x", "/no/such/dir")
    assert capsys.readouterr().out == "ERROR: Directory /no/such/dir not found\n"


def test_a_search_that_is_too_wide(tmp_path, capsys):
    for number in range(101):
        (tmp_path / f"{number}.txt").write_text("needle")
    search_dir("needle", str(tmp_path))
    assert capsys.readouterr().out == (
        f'More than 101 files matched for "needle" in {tmp_path}. Please narrow your search.\n'
    )


def test_find_file_takes_a_part_of_the_name(tmp_path, capsys, monkeypatch):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "my_file.py").touch()
    monkeypatch.chdir(tmp_path)
    find_file("file.py")
    assert capsys.readouterr().out == (
        '[Found 1 matches for "file.py" in ./]\n./sub/my_file.py\n'
        '[End of matches for "file.py" in ./]\n'
    )
    find_file("absent", str(tmp_path))
    assert capsys.readouterr().out == f'[No matches found for "absent" in {tmp_path}]\n'
