"""Patches in the formats that models write."""

import pytest

from oh_jupyter.editor import EditorParameterMissingError, FileChangedError, PatchError

TEXT = """class A:
    def f(self):
        return 1

    def g(self):
        return 2


class B:
    def f(self):
        return 1
"""


@pytest.fixture
def patch(editor):
    def patch(path, content, **arguments):
        return editor(command="apply_patch", path=path, content=content, **arguments)

    return patch


@pytest.fixture
def refusal(patch):
    def refusal(path, content):
        with pytest.raises(PatchError) as caught:
            patch(path, content)
        return str(caught.value)

    return refusal


def block(old, new):
    return f"<<<<<<< SEARCH\n{old}=======\n{new}>>>>>>> REPLACE\n"


def envelope(*lines):
    return "\n".join(["*** Begin Patch", *lines, "*** End Patch"])


# SEARCH and REPLACE


def test_blocks_for_several_files_as_aider_writes_them(patch, write, workspace, editor):
    a, b = write("a.py", "x = 1\ny = 2\n"), write("b.txt", "one\ntwo\n")
    answer = (
        "I will change this:\n\na.py\n```python\n" + block("x = 1\n", "x = 10\n") + "```\n\n"
        "And in the same file:\n\n```python\n" + block("y = 2\n", "") + "```\n\n"
        "**b.txt**\n```\n" + block("two\n", "2\n") + "```\n"
        "```\nnew/c.txt\n" + block("", "fresh\n") + "```\n"
    )
    result = patch(workspace, answer)
    assert a.read_text() == "x = 10\n"
    assert b.read_text() == "one\n2\n"
    assert (workspace / "new" / "c.txt").read_text() == "fresh\n"
    assert f"- edited {a}, 1 place\n" in result.output
    assert f"- created {workspace}/new/c.txt\n" in result.output
    assert [file.path for file in result.files] == [str(a), str(b), str(workspace / "new/c.txt")]
    editor(command="undo_edit", path=a)
    assert (a.read_text(), b.read_text()) == ("x = 1\ny = 2\n", "one\ntwo\n")
    assert not (workspace / "new" / "c.txt").exists()


def test_a_block_without_a_name_is_for_the_file_that_is_given(patch, write):
    path = write("a.py", "x = 1\n")
    patch(path, block("x = 1\n", "x = 2\n"))
    patch(path, "a.py\n" + block("x = 2\n", "x = 3\n"))
    assert path.read_text() == "x = 3\n"


def test_later_blocks_see_changes_of_earlier_ones(patch, write):
    path = write("a.py", "one\n")
    patch(path, block("one\n", "two\n") + block("two\n", "three\n"))
    assert path.read_text() == "three\n"


def test_a_part_of_a_line_but_never_of_a_word(patch, refusal, write):
    path = write("a.html", 'see <b id="tide">06:40</b> here\nmax = 10\n')
    patch(path, block('<b id="tide">06:40</b>\n', '<b id="tide">07:15</b>\n'))
    assert path.read_text().startswith('see <b id="tide">07:15</b> here\n')
    assert "not in the file" in refusal(path, block("x = 1\n", "x = 2\n"))
    path = write("b", "a, a")
    assert "several times, in lines [1]" in refusal(path, block("a\n", "b\n"))


def test_markers_that_lost_signs_to_a_prompt(patch, write):
    path = write("a.py", "x\n")
    patch(path, "<<<<<<< SEARCH\nx\n=======\ny\n>>>> REPLACE")
    assert path.read_text() == "y\n"


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("<<<<<<< SEARCH\nx\n=======\ny\n", "no line '>>>>>>> REPLACE'"),
        ("<<<<<<< SEARCH\nx\n", "no line '======='"),
        ("<<<<<<< SEARCH\nx\n<<<<<<< SEARCH\ny\n=======\n>>>>>>> REPLACE\n", "line 1 of"),
        ("just words", "format of the patch is unknown"),
        ("", "format of the patch is unknown"),
        ("*** Begin Patch\n*** Update File: a\n@@\n-x\n+y\n", "truncated"),
        ("*** Begin Patch\n*** Change File: a\n*** End Patch", "Line 2 of the patch is invalid"),
        ("*** Begin Patch\n*** Add File: a\nx\n*** End Patch", "Line 3 of the patch is invalid"),
        (
            "*** Begin Patch\n*** Update File: a\n@@\nx\n*** End Patch",
            "Line 4 of the patch is invalid",
        ),
        (
            "*** Begin Patch\n*** Delete File: a\n-x\n*** End Patch",
            "Line 3 of the patch is invalid",
        ),
        ("*** Begin Patch\n*** End Patch", "format of the patch is unknown"),
        ("--- a\n+++ a\n@@ -1 +1 @@\n", "hunk in line 3"),
        ("diff --git a/a b/a\nBinary files a/a and b/a differ\n", "binary file"),
        ("diff --git a/a b/a\nold mode 100644\nnew mode 100755\n", "no hunk"),
        ("diff --git a/a b/c\ncopy from a\ncopy to c\n", "copies a file"),
    ],
)
def test_an_unreadable_patch_is_refused(refusal, write, workspace, text, word):
    path = write("a", "x\n")
    message = refusal(workspace, text)
    assert word in message
    assert "nothing was changed" in message.lower()
    assert path.read_text() == "x\n"


# The envelope


def test_all_parts_of_an_envelope(patch, write, workspace, editor):
    a, b, c = write("a.py", TEXT), write("b", "gone\n"), write("c", "1\n2\n3\n")
    c.chmod(0o755)
    result = patch(
        workspace,
        "apply_patch <<'EOF'\n"
        + envelope(
            "*** Add File: d/e.txt",
            "+first",
            "+",
            "+third",
            "*** Delete File: b",
            "*** Update File: a.py",
            "@@ class B:",
            "     def f(self):",
            "-        return 1",
            "+        return 3",
            "@@",
            "     def g(self):",
            "-        return 2",
            "+        return 4",
            "*** Update File: c",
            "*** Move to: moved/c",
            "@@",
            " 2",
            "-3",
            "+4",
            "*** End of File",
        )
        + "\nEOF\n",
    )
    assert a.read_text() == (TEXT[:-2].replace("return 2", "return 4") + "3\n")
    assert (workspace / "d" / "e.txt").read_text() == "first\n\nthird\n"
    assert not b.exists()
    assert not c.exists()
    moved = workspace / "moved" / "c"
    assert moved.read_text() == "1\n2\n4\n"
    assert moved.stat().st_mode & 0o777 == 0o755
    assert f"- renamed {c} to {moved}\n" in result.output
    assert f"- deleted {b}\n" in result.output
    editor(command="undo_edit", path=moved)
    assert (a.read_text(), b.read_text(), c.read_text()) == (TEXT, "gone\n", "1\n2\n3\n")
    assert c.stat().st_mode & 0o777 == 0o755
    assert not moved.exists()
    editor(command="redo_edit", path=b)
    assert moved.read_text() == "1\n2\n4\n"


def test_an_anchor_selects_one_of_several_places(patch, refusal, write, workspace):
    path = write("a.py", TEXT)
    lines = ["     def f(self):", "-        return 1", "+        return 9"]
    message = refusal(workspace, envelope("*** Update File: a.py", "@@", *lines))
    assert "several places, starting at lines 2, 10." in message
    for name, number in (("class A:", 2), ("class B:", 10)):
        patch(workspace, envelope("*** Update File: a.py", f"@@ {name}", *lines))
        assert path.read_text().split("\n")[number] == "        return 9"
    assert path.read_text() == TEXT.replace("return 1", "return 9")


def test_nested_anchors(patch, write, workspace):
    path = write("a.py", TEXT)
    lines = ["@@ class B:", "@@ def f(self):", "-        return 1", "+        return 9"]
    patch(workspace, envelope("*** Update File: a.py", *lines))
    assert path.read_text() == TEXT[:-2] + "9\n"


def test_lines_that_are_only_added(patch, write, workspace):
    path = write("a.py", "a\n    x\nb\n")
    patch(workspace, envelope("*** Update File: a.py", "@@ a", "+    new"))
    patch(workspace, envelope("*** Update File: a.py", "@@", "+end"))
    assert path.read_text() == "a\n    new\n    x\nb\nend\n"
    again = patch(workspace, envelope("*** Update File: a.py", "@@", "+end"))
    assert "applied before" in again.output


def test_the_end_of_the_file_is_meant(patch, write, workspace):
    path = write("a", "x\ny\nx\n")
    patch(workspace, envelope("*** Update File: a", "@@", "-x", "+z", "*** End of File"))
    assert path.read_text() == "x\ny\nz\n"


def test_an_existing_file_is_never_overwritten(refusal, write, workspace):
    a, b = write("a", "mine\n"), write("b", "1\n")
    assert "exists already and is not overwritten" in refusal(
        workspace, envelope("*** Update File: b", "@@", "-1", "+2", "*** Add File: a", "+theirs")
    )
    assert "which exists already" in refusal(
        workspace, envelope("*** Update File: b", "*** Move to: a", "@@", "-1", "+2")
    )
    assert (a.read_text(), b.read_text()) == ("mine\n", "1\n")


# Unified diffs


def test_a_diff_of_git_with_everything(patch, write, workspace):
    a, b, c = write("a", "1\n2\n3"), write("b", "x\n"), write("c", "same\n")
    patch(
        workspace,
        "diff --git a/a b/a\nindex 1..2 100644\n--- a/a\n+++ b/a\n@@ -1,3 +1,4 @@\n 1\n-2\n+two\n"
        " 3\n\\ No newline at end of file\n+4\n"
        "diff --git a/b b/b\ndeleted file mode 100644\n--- a/b\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n"
        "diff --git a/c b/sub/d\nsimilarity index 100%\nrename from c\nrename to sub/d\n"
        "diff --git a/e b/e\nnew file mode 100755\n--- /dev/null\n+++ b/e\n@@ -0,0 +1,2 @@\n"
        "+first\n+last\n\\ No newline at end of file\n",
    )
    assert a.read_text() == "1\ntwo\n3\n4\n"
    assert not b.exists()
    assert not c.exists()
    assert (workspace / "sub" / "d").read_text() == "same\n"
    assert (workspace / "e").read_text() == "first\nlast"
    assert (workspace / "e").stat().st_mode & 0o111 == 0o111


def test_wrong_line_numbers_and_counts_do_not_matter(patch, write, workspace):
    path = write("a", "1\n2\n3\n4\n")
    patch(workspace, "--- a\n+++ a\n@@ -70,9 +99,1 @@ def f\n 1\n-2\n+two\n@@ ... @@\n-4\n+four\n")
    assert path.read_text() == "1\ntwo\n3\nfour\n"
    patch(path, "```diff\n@@\n-two\n+2\n```\n")
    assert path.read_text() == "1\n2\n3\nfour\n"


def test_a_correct_line_number_selects_one_of_several_places(patch, refusal, write, workspace):
    path = write("a", "x\n" * 5)
    patch(workspace, "--- a\n+++ a\n@@ -3 +3 @@\n-x\n+y\n")
    assert path.read_text() == "x\nx\ny\nx\nx\n"
    assert "starting at lines 1, 2, 4, 5" in refusal(
        workspace, "--- a\n+++ a\n@@ -3 +3 @@\n-x\n+z\n"
    )


@pytest.mark.parametrize(
    ("before", "after", "diff"),
    [
        ("a\nb", "a\nb\n", "-b\n\\ No newline at end of file\n+b\n"),
        ("a\nb\n", "a\nb", "-b\n+b\n\\ No newline at end of file\n"),
        ("a\nb", "a\nc", "-b\n\\ No newline at end of file\n+c\n\\ No newline at end of file\n"),
        ("a\nb", "a\nc", "-b\n+c\n"),
        ("a\nb", "a\nb\nc", " b\n+c\n"),
    ],
)
def test_the_newline_at_the_end(patch, write, before, after, diff):
    path = write("a", before)
    patch(path, f"--- a\n+++ a\n@@ -2 +2 @@\n{diff}")
    assert path.read_text() == after


def test_lines_that_look_like_headers(patch, write, workspace):
    path = write("a", "-- x\n++ y\nz\n")
    patch(workspace, "--- a\n+++ a\n@@ -1,3 +1,3 @@\n--- x\n+-- w\n ++ y\n z\n")
    assert path.read_text() == "-- w\n++ y\nz\n"


def test_a_rename_without_the_headers_of_git(patch, write, workspace):
    write("old", "1\n")
    patch(workspace, "--- old\n+++ new\n@@ -1 +1 @@\n-1\n+2\n")
    assert (workspace / "new").read_text() == "2\n"
    assert not (workspace / "old").exists()
    write("f", "1\n")
    patch(workspace, "--- f.orig\n+++ f\n@@ -1 +1 @@\n-1\n+2\n")
    assert (workspace / "f").read_text() == "2\n"


def test_a_name_in_quotes(patch, write, workspace):
    path = write("ü x", "1\n")
    patch(workspace, '--- "a/\\303\\274 x"\n+++ "b/\\303\\274 x"\n@@ -1 +1 @@\n-1\n+2\n')
    assert path.read_text() == "2\n"


def test_a_file_is_only_deleted_if_it_is_the_one(refusal, write, workspace):
    path = write("b", "x\nmore\n")
    assert "differs from the one to delete" in refusal(
        workspace, "--- b\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n"
    )
    assert path.read_text() == "x\nmore\n"


# How it matches


@pytest.mark.parametrize(
    ("before", "patch_lines", "after", "grade"),
    [
        ("a  \nb\t\nc\n", [" a", "-b", "+B", " c"], "a  \nB\nc\n", "blanks at line ends"),
        (
            "if x:\n\tif y:\n\t\ta\n\t\tb\n",
            [" if y:", " \ta", "-\tb", "+\tB", "+\tC"],
            "if x:\n\tif y:\n\t\ta\n\t\tB\n\t\tC\n",
            "except for the indentation",
        ),
        ("a\nb\n", ["     a", "-    b", "+    B"], "a\nB\n", "except for the indentation"),
        (
            "say \u201chello\u201d \u2013 now\nx\n",
            [' say "hello" - now', "-x", "+y"],
            "say \u201chello\u201d \u2013 now\ny\n",
            "quotes, dashes or spaces",
        ),
        ("a\u00a0b\nx\n", [" a b", "-x", "+y"], "a\u00a0b\ny\n", "quotes, dashes or spaces"),
    ],
)
def test_near_matches_keep_unchanged_lines_and_are_reported(
    patch, write, before, patch_lines, after, grade
):
    path = write("a", before)
    result = patch(path, envelope("*** Update File: a", "@@", *patch_lines))
    assert path.read_text() == after
    assert grade in result.output
    assert "lines " in result.output


def test_a_near_match_has_to_be_the_only_one_too(refusal, write):
    path = write("a", "x \ny\nx\t\n")
    assert "starting at lines 1, 3" in refusal(path, block("x\n", "z\n"))


def test_an_exact_match_comes_before_near_ones(patch, write):
    path = write("a", "    x\nx\n")
    patch(path, block("x\n", "y\n"))
    assert path.read_text() == "    x\ny\n"


def test_a_line_that_cannot_be_indented_is_refused(refusal, write):
    path = write("a", "a\n    b\n")
    old, new = "        a\n            b\n", "        a\n    c\n"
    assert "indented less than all old ones" in refusal(path, block(old, new))


@pytest.mark.parametrize(
    ("data", "codec"),
    [
        ("a\r\nb\r\nc\r\n", "utf-8"),
        ("a\rb\nc\r\n", "utf-8"),
        ("\ufeffa\r\nb\r\nc", "utf-16-le"),
        ("a\nb ü für Übung\nc", "cp1252"),
    ],
)
def test_line_ends_and_encodings_stay(patch, write, data, codec):
    path = write("a", data.encode(codec))
    patch(path, "@@\n-c\n+é1\n+é2\n")
    content = path.read_bytes().decode(codec)
    newline = "\r\n" if "\r\n" in data and "a\rb" not in data else "\n"
    assert content == data.replace("c", f"é1{newline}é2")


def test_a_patch_with_crlf_for_a_file_without(patch, write):
    path = write("a", "x\ny\n")
    patch(path, "--- a\r\n+++ a\r\n@@ -1,2 +1,2 @@\r\n x\r\n-y\r\n+z\r\n")
    assert path.read_bytes() == b"x\nz\n"
    patch(path, "<<<<<<< SEARCH\r\nz\r\n=======\r\nw\r\n>>>>>>> REPLACE\r\n")
    assert path.read_bytes() == b"x\nw\n"


def test_characters_outside_the_encoding_are_refused(patch, write):
    from oh_jupyter.editor import EditorParameterInvalidError

    path = write("a", "für Übung\nx\n".encode("cp1252"))
    with pytest.raises(EditorParameterInvalidError, match="no character"):
        patch(path, "@@\n-x\n+\u6f22\n")


# What was done before, and what does not fit


@pytest.mark.parametrize(
    "text",
    [
        "*** Begin Patch\n*** Update File: a\n@@\n one\n-two\n+zwei\n*** Delete File: b\n"
        "*** Add File: c\n+new\n*** End Patch",
        "--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n one\n-two\n+zwei\n--- a/b\n+++ /dev/null\n"
        "@@ -1 +0,0 @@\n-x\n--- /dev/null\n+++ b/c\n@@ -0,0 +1 @@\n+new\n",
        "a\n" + block("two\n", "zwei\n") + "c\n" + block("", "new\n"),
        "--- a/b\n+++ b/moved\n@@ -1 +1 @@\n-x\n+word\n",
        "a\n" + block("two\n", "two\nthree\n"),
        "a\n" + block("one\n", "zero\none\n"),
    ],
)
def test_a_patch_that_was_applied_before_succeeds_and_writes_nothing(
    patch, write, workspace, editor, text
):
    write("a", "one\ntwo\n")
    write("b", "x\n")
    patch(workspace, text)
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in workspace.iterdir()}
    steps = [len(editor.history(path)) for path in before]
    again = patch(workspace, text)
    assert again.output.startswith("The patch was applied before; nothing was written.")
    assert again.files == []
    assert again.diff == ""
    after = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in workspace.iterdir()}
    assert after == before
    assert [len(editor.history(path)) for path in before] == steps


def test_the_rest_of_a_patch_is_applied_if_some_was_before(patch, write):
    path = write("a", "one\ndeux\nthree\n")
    result = patch(path, "@@\n-two\n+deux\n@@\n-three\n+trois\n")
    assert path.read_text() == "one\ndeux\ntrois\n"
    assert "hunk 1 was applied before, at line 2" in result.output


def test_a_bracket_is_no_sign_that_it_was_applied(refusal, write):
    path = write("a", "f() {\n}\n")
    assert "not in the file" in refusal(path, block("absent\n", "}\n"))


def test_a_misspelt_line_is_not_taken_for_one_that_was_changed_before(refusal, write):
    path = write("a.py", "total = count_all(items)\nreturn None\n")
    message = refusal(path, block("total = count_al(items)\n", "return None\n"))
    assert "is already in line 2" in message


def test_a_missing_file_in_a_patch_that_changes_others(refusal, write, workspace):
    path = write("a", "1\n")
    message = refusal(
        workspace, envelope("*** Update File: a", "@@", "-1", "+2", "*** Delete File: b")
    )
    assert f"{workspace}/b does not exist, and cannot be deleted" in message
    assert path.read_text() == "1\n"


def test_all_mismatches_are_reported_at_once(refusal, write, workspace):
    a, b = write("a.py", TEXT), write("b.txt", "one\n")
    message = refusal(
        workspace,
        envelope(
            "*** Update File: a.py",
            "@@",
            "     def g(self):",
            "-        return 3",
            "+        return 4",
            "*** Update File: b.txt",
            "@@",
            "-one",
            "+1",
            "*** Update File: c.txt",
            "@@",
            "-x",
            "+y",
        ),
    )
    assert message.startswith(
        "The patch was not applied, and nothing was changed: 2 parts of it did not fit.\n"
        f"- {a} (line 2 of the patch): its lines are not in the file:\n"
    )
    assert (
        "The closest match is in lines 5-6. It differs in 1 line:\n- patch:           return 3"
        in (message)
    )
    assert f"{workspace}/c.txt does not exist. Maybe you meant" in message
    assert f"These parts fit and can stay as they are:\n- edited {b}, 1 place" in message
    assert (a.read_text(), b.read_text()) == (TEXT, "one\n")


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("../outside", "not below"),
        ("/etc/passwd", "not below"),
        ("sub/../../outside", "not below"),
    ],
)
def test_files_outside_the_directory_are_not_touched(refusal, workspace, name, word):
    assert word in refusal(workspace, envelope(f"*** Add File: {name}", "+x"))


def test_an_absolute_name_below_the_directory(patch, workspace):
    patch(workspace, envelope(f"*** Add File: {workspace}/a", "+x"))
    assert (workspace / "a").read_text() == "x\n"


def test_a_patch_of_another_file_and_one_without_a_name(refusal, write, workspace):
    path = write("a", "x\n")
    assert "but changes b" in refusal(path, envelope("*** Update File: b", "@@", "-x", "+y"))
    assert "does not name its file" in refusal(workspace, block("x\n", "y\n"))


def test_a_single_file_that_is_not_there_is_created(patch, workspace):
    path = workspace / "sub" / "a"
    patch(path, block("", "x\n"))
    assert path.read_text() == "x\n"


def test_the_text_is_required(editor, workspace):
    with pytest.raises(EditorParameterMissingError, match="content"):
        editor(command="apply_patch", path=workspace)


def test_a_foreign_change_of_the_place_is_found(patch, editor, write):
    path = write("a", "1\n2\n3\n")
    editor(command="view", path=path)
    path.write_text("1\n3\n2\n")
    with pytest.raises(FileChangedError):
        patch(path, "@@\n-2\n+two\n")
    patch(path, "@@\n-2\n+two\n")
    assert path.read_text() == "1\n3\ntwo\n"


def test_overlapping_hunks_are_refused(refusal, write):
    path = write("a", "1\n2\n3\n")
    assert "change the same line 2" in refusal(path, "@@\n-1\n-2\n+x\n@@\n-2\n-3\n+y\n")
