"""Known bugs of other editors, by their number in a list of these bugs.

| number | what went wrong | elsewhere in these tests |
|---|---|---|
| 1 | a write that fails empties the file | test_atomic, test_full_disk, test_crash |
| 2 | text is written back in a code page that was guessed wrongly | test_bytes |
| 3 | CRLF becomes LF, and is never found | test_bytes |
| 4 | UTF-8 is read as something else | test_bytes |
| 5 | two ASCII bytes are read as UTF-16 | test_bytes |
| 6 | Latin-1 is shown as a code page of eastern Europe | test_bytes |
| 7 | UTF-8 is refused as binary | test_bytes |
| 8 | NUL bytes crash; cp1251 and PDFs are refused | test_bytes, test_documents |
| 9 | an insertion is glued to an unterminated last line | test_edit |
| 10 | a link becomes a file | test_atomic |
| 11 | an insertion drops the mode | test_atomic |
| 12 | new files get mode 0600 | test_atomic |
| 13 | the path of a directory is run by a shell | test_view |
| 14 | line numbers disagree where there are form feeds | test_view |
| 15 | undo of a creation does nothing | test_history |
| 16 | undo overwrites what others wrote | test_history |
| 17 | of parallel edits all but one are lost | test_conflicts |
| 18 | a pipe hangs the editor | test_view |
| 19 | a broken document crashes | test_documents |
| 20 | an import sets up logging, folders, data frames | test_paths |
| 21 | several matches take quadratic time | test_edit |
| 22 | every write adds a newline | test_edit, test_actions |
| 23 | a lint report contradicts the file | test_lint, test_draft_edit |
| 24 | a patch is half applied, or applied to the wrong place | test_patch* |
| 25 | undecodable bytes are replaced | test_bytes |
| 26 | notebooks are edited as JSON | test_notebook |
| 27 | a text that is not unique is replaced | test_edit |
"""

from __future__ import annotations

import os
import resource
import signal
import stat
import subprocess
import sys
import threading

import pytest

from oh_jupyter.config import Settings
from oh_jupyter.editor import EditorError, FileChangedError, NoReplacementError
from oh_jupyter.editor.file_actions import edit_file, write_file
from oh_jupyter.events import ErrorObservation, FileEditAction, FileWriteAction


@pytest.fixture
def replace(editor):
    def replace(path, old, new, **more):
        return editor(command="str_replace", path=path, old_str=old, new_str=new, **more)

    return replace


@pytest.fixture
def insert(editor):
    def insert(path, line, text):
        return editor(command="insert", path=path, insert_line=line, new_str=text)

    return insert


def shown(editor, path):
    return editor(command="view", path=path).output


def test_01_a_write_that_fails_leaves_the_old_file(replace, write):
    path = write("a.txt", "old")
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, limits[1]))
    try:
        with pytest.raises(EditorError, match="Errno"):
            replace(path, "old", "x" * 100_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert path.read_text() == "old"


@pytest.mark.parametrize("codec", ["utf-8", "latin-1", "cp1252"])
def test_02_text_is_written_back_as_it_was(replace, write, codec):
    path = write("a.txt", "déjà vu à Paris, one\n".encode(codec))
    replace(path, "one", "two")
    assert path.read_bytes() == "déjà vu à Paris, two\n".encode(codec)


def test_03_line_ends_stay_and_are_found(replace, write):
    path = write("a.txt", b"a\r\nb\r\nc\rd\n")
    replace(path, "a\r\nb", "a\r\nx")
    replace(path, "c\nd", "y\nd")
    assert path.read_bytes() == b"a\r\nx\r\ny\rd\n"


@pytest.mark.parametrize("text", ["x" * (2**20 - 1) + "ü one", "ü one", "für one", "“one”"])
def test_04_utf8_is_utf8(editor, replace, write, text):
    path = write("a.txt", text)
    replace(path, "one", "two")
    assert path.read_text("utf-8") == text.replace("one", "two")


def test_05_two_ascii_bytes_are_two_characters(editor, insert, write):
    path = write("a.txt", b"$1")
    assert "\t$1\n" in shown(editor, path)
    insert(path, 1, "b")
    assert path.read_bytes() == b"$1\nb\n"


def test_06_latin_1_is_shown_as_it_is_meant(editor, write):
    text = "für Größe, señor, garçon, Ångström, œuvre"
    path = write("a.txt", text.encode("cp1252"))
    assert f"\t{text}\n" in shown(editor, path)


@pytest.mark.parametrize("text", ["漢字だけの文章。" * 200, "┌──┐│  │└──┘" * 200, "😀🎉" * 500])
def test_07_utf8_is_not_binary(editor, write, text):
    assert text[:100] in shown(editor, write("a.txt", text))


def test_08_nul_bytes_are_binary_and_cyrillic_is_not(editor, write):
    with pytest.raises(EditorError, match="appears to be binary"):
        shown(editor, write("a.bin", b"a\0b\0c"))
    text = "Съешь же ещё этих мягких французских булок, да выпей чаю. " * 5
    assert text in shown(editor, write("a.txt", text.encode("cp1251")))


def test_09_an_insertion_starts_a_line(insert, write):
    path = write("a.txt", "a")
    insert(path, 1, "b")
    assert path.read_text() == "a\nb\n"


def test_10_a_link_stays_a_link(replace, insert, workspace, write):
    path, link = write("a.txt", "x\n"), workspace / "link"
    link.symlink_to("a.txt")
    replace(link, "x", "y")
    insert(link, 0, "z")
    assert link.is_symlink()
    assert path.read_text() == "z\ny\n"


def test_11_the_mode_stays(replace, insert, write):
    path = write("a.sh", "x\n")
    path.chmod(0o754)
    insert(path, 0, "z")
    replace(path, "x", "y")
    assert stat.S_IMODE(path.stat().st_mode) == 0o754


def test_12_new_files_have_the_mode_of_the_umask(editor, workspace):
    path = workspace / "new"
    editor(command="create", path=path, file_text="")
    (workspace / "other").touch()
    assert path.stat().st_mode == (workspace / "other").stat().st_mode


def test_13_a_directory_is_not_run(editor, workspace):
    evil = workspace / "a b'\";$(touch pwned)`touch pwned`&"
    evil.mkdir()
    (evil / "inside").touch()
    assert shown(editor, evil).endswith(f"\n{evil}/\n{evil}/inside")
    assert not any(name.endswith("pwned") for name in os.listdir(workspace) + os.listdir("."))


def test_14_lines_end_at_newlines_only(editor, insert, write):
    path = write("a.txt", "a\x0cb\x0bc\x1cd\x85e\u2028f\ng\n")
    whole = shown(editor, path)
    assert "\n     2\tg\n" in whole
    assert "     2\tg" in editor(command="view", path=path, view_range=[2, 2]).output
    insert(path, 1, "x")
    assert path.read_text().endswith("f\nx\ng\n")


def test_15_undo_of_a_creation_removes_the_file(editor, workspace):
    path = workspace / "a.txt"
    editor(command="create", path=path, file_text="x")
    editor(command="undo_edit", path=path)
    assert not path.exists()


def test_16_undo_does_not_overwrite_foreign_changes(editor, replace, write):
    path = write("a.txt", "1\n2\n")
    replace(path, "2", "two")
    path.write_text("1\nmine\n")
    with pytest.raises(FileChangedError):
        editor(command="undo_edit", path=path)
    assert path.read_text() == "1\nmine\n"


def test_17_parallel_edits_are_all_made(replace, write):
    path = write("a.txt", "".join(f"<{n}>\n" for n in range(24)))

    def work(first):
        for number in range(first, 24, 6):
            replace(path, f"<{number}>", f"[{number}]")

    threads = [threading.Thread(target=work, args=(first,)) for first in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert path.read_text() == "".join(f"[{n}]\n" for n in range(24))


@pytest.mark.timeout(30)
def test_18_a_pipe_does_not_hang(editor, replace, workspace):
    os.mkfifo(workspace / "pipe")
    for call in (lambda p: shown(editor, p), lambda p: replace(p, "a", "b")):
        with pytest.raises(EditorError, match="not a regular file"):
            call(workspace / "pipe")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("suffix", [".docx", ".xlsx", ".pptx", ".pdf"])
def test_19_a_broken_document_is_an_error(editor, write, suffix):
    path = write(
        f"a{suffix}", b"PK\x03\x04" + bytes(50) if suffix != ".pdf" else b"%PDF-1.7 broken"
    )
    with pytest.raises(EditorError, match="Error in converting file to Markdown"):
        shown(editor, path)


def test_20_an_import_sets_nothing_up(tmp_path):
    program = (
        "import sys, logging, tempfile, oh_jupyter.editor\n"
        "print({'pandas', 'matplotlib', 'requests'} & set(sys.modules), logging.root.level)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    assert done.stdout == "set() 30\n"
    assert os.listdir(tmp_path) == []


def test_21_many_matches_take_linear_time(replace, write, seconds):
    def refuse(lines):
        path = write("a.txt", "the same line\n" * lines)
        with pytest.raises(NoReplacementError) as caught:
            replace(path, "same", "other")
        assert len(str(caught.value)) < 2000

    refuse(1000)
    few, many = (seconds(lambda lines=lines: refuse(lines)) for lines in (4000, 80_000))
    assert many < 60 * max(few, 0.005)  # 20 times as many; squared is 400


def test_22_writing_the_same_text_changes_nothing(workspace):
    path = workspace / "a.txt"
    for _ in range(3):
        write_file(FileWriteAction(path=str(path), content="x\n"), cwd="/")
    assert path.read_text() == "x\n"


def test_23_code_marked_as_unchanged_stays(editor, replace, write):
    path = write("a.py", "def f():\n    return 1\n\n\ndef g():\n    return 2\n")
    action = FileEditAction(
        path=str(path),
        content="# ... existing code ...\ndef g():\n  (return 2\n",
        impl_source="llm_based_edit",
    )
    observation = edit_file(action, cwd="/", editor=editor, settings=Settings())
    assert isinstance(observation, ErrorObservation)
    assert "(return" not in path.read_text()
    output = replace(path, "return 1", "(return 1", enable_linting=True).output
    assert "has been edited" in output
    assert "Linting issues found in the changes:\n- Line 2, " in output
    assert "(return 1" in path.read_text()


def test_24_a_patch_is_applied_as_a_whole_and_where_it_belongs(editor, workspace, write):
    first, second = write("a.txt", b"1\r\n2\r\n"), write("b.txt", "x\nx\n")

    def apply(*lines):
        text = "\n".join(["*** Begin Patch", *lines, "*** End Patch"])
        return editor(command="apply_patch", path=workspace, content=text)

    for lines in (
        ["*** Add File: b.txt", "+new"],
        ["*** Update File: a.txt", "@@", "-1", "+one", "*** Update File: b.txt", "@@", "-y", "+z"],
        ["*** Update File: b.txt", "@@", "-x", "+z"],
    ):
        with pytest.raises(EditorError):
            apply(*lines)
        assert (first.read_bytes(), second.read_text()) == (b"1\r\n2\r\n", "x\nx\n")
    apply("*** Update File: a.txt", "@@", "-1", "+one", "+more")
    assert first.read_bytes() == b"one\r\nmore\r\n2\r\n"


def test_25_bytes_that_are_no_utf8_stay(replace, write):
    path = write("a.txt", b"one \xff\xfe\xe9 caf\xe9\n")
    replace(path, "one", "two")
    assert path.read_bytes() == b"two \xff\xfe\xe9 caf\xe9\n"


def test_26_a_notebook_is_edited_as_cells(editor, replace, workspace):
    path = workspace / "a.ipynb"
    editor(command="create", path=path, file_text="")
    editor(command="notebook_edit", path=path, edit_mode="insert", new_str='print("hi")')
    replace(path, 'print("hi")', 'print("a\\n")')
    assert '\tprint("a\\n")\n' in shown(editor, path)
    assert r'"print(\"a\\n\")"' in path.read_text()


def test_27_a_text_that_is_not_unique_is_not_replaced(replace, write):
    path = write("a.txt", "x = 1\ny = 1\n")
    with pytest.raises(NoReplacementError, match=r"in lines \[1, 2\]"):
        replace(path, "= 1", "= 2")
    assert path.read_text() == "x = 1\ny = 1\n"
