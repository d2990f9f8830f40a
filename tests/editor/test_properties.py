# ruff: noqa: RUF001
"""Whatever is done and undone, the bytes are exactly those that were there."""

import difflib

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from oh_jupyter.editor import EditorError, FileEditor
from oh_jupyter.editor.patch.applying import apply_hunks
from oh_jupyter.editor.patch.formats import parse_patch
from oh_jupyter.editor.text.text_file import TextFile, detect

ALPHABETS = {
    "utf-8": "ab \tü漢🎉",
    "utf-8-sig": "abü ",
    "utf-16": "ab ü漢",
    "cp1252": "abü ß–",
    "cp1251": "Привет ",
    "shift_jis": "こんにちは a",
    "ascii": "ab ",
}
NEWLINES = ("\n", "\r\n", "\r")


@st.composite
def contents(draw):
    codec = draw(st.sampled_from(sorted(ALPHABETS)))
    line = st.text(ALPHABETS[codec], max_size=8)
    lines = draw(st.lists(st.tuples(line, st.sampled_from(NEWLINES)), max_size=12))
    text = "".join(a + b for a, b in lines) + draw(line)
    data = text.encode(codec)
    return data if detect(data) is not None else text.encode()


@st.composite
def operations(draw):
    return draw(
        st.lists(
            st.tuples(
                st.sampled_from(
                    ["replace", "all", "insert", "write", "patch", "many", "undo", "redo"]
                ),
                st.integers(0, 1),
                st.integers(0, 30),
                st.integers(0, 6),
                st.text("ab \nü", max_size=6),
            ),
            max_size=14,
        )
    )


def call(editor, paths, operation):
    """Carry out an operation, if the editor does not refuse it."""
    kind, which, at, length, new = operation
    path = paths[which]
    text = TextFile.parse(path.read_bytes()).text if path.exists() else ""
    old = text[at % (len(text) + 1) :][:length]
    lines = text.count("\n") + (not text.endswith("\n") and text != "")
    line = at % (lines + 1)
    if kind == "replace":
        editor(command="str_replace", path=path, old_str=old, new_str=new)
    elif kind == "all":
        editor(command="str_replace", path=path, old_str=old, new_str=new, replace_all=True)
    elif kind == "insert":
        editor(command="insert", path=path, insert_line=line, new_str=new)
    elif kind == "write":
        editor(command="write", path=path, content=new, start=line, end=min(line + 2, lines))
    elif kind == "patch":
        changed = text[:at] + new + text[at + length :]
        editor(command="apply_patch", path=path, content=diff_of(text, changed))
    elif kind == "many":
        edits = [
            {"command": "insert", "path": each, "insert_line": 0, "new_str": new} for each in paths
        ]
        editor.edit_many(edits)
    else:
        editor(command=f"{kind}_edit", path=path)


def diff_of(old, new, context=3):
    """Return the output of diff(1), with its remark about missing newlines."""
    before, after = (text.split("\n") for text in (old, new))
    ends = [lines.pop() if lines[-1] == "" else None for lines in (before, after)]
    marked = [
        [line + "\n" for line in lines[:-1]]
        + [
            line + ("\n" if end == "" else "\n\\ No newline at end of file\n")
            for line in lines[-1:]
        ]
        for lines, end in zip((before, after), ends, strict=True)
    ]
    return "".join(difflib.unified_diff(*marked, "f", "f", n=context))


@pytest.mark.thorough
@given(contents(), contents(), operations())
@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_undo_and_redo_restore_every_state_exactly(tmp_path_factory, first, second, sequence):
    folder = tmp_path_factory.mktemp("w")
    paths = [folder / "a", folder / "b"]
    for path, data in zip(paths, (first, second), strict=True):
        path.write_bytes(data)
    editor = FileEditor(folder, history_dir=folder / "h")

    def state():
        return tuple(path.read_bytes() if path.exists() else None for path in paths)

    beginning = state()
    for operation in sequence:
        before = state()
        try:
            call(editor, paths, operation)
        except EditorError:
            assert state() == before
            continue
        after = state()
        if after != before and operation[0] not in ("undo", "redo"):
            path = paths[operation[1]] if before[operation[1]] != after[operation[1]] else None
            path = path or paths[1 - operation[1]]
            FileEditor(folder, history_dir=folder / "h")(command="undo_edit", path=path)
            assert state() == before
            editor(command="redo_edit", path=path)
            assert state() == after
    for _ in range(2 * len(sequence)):
        for path in paths:
            try:
                editor(command="undo_edit", path=path)
            except EditorError:
                continue
    assert state() == beginning


@given(
    st.text("ab\n", max_size=40),
    st.text("ab\n", max_size=40),
    st.sampled_from([1, 2, 3]),
)
@settings(max_examples=400)
def test_any_diff_makes_of_the_old_text_the_new_one(old, new, context):
    diff = diff_of(old, new, context)
    if not diff or old == "":
        return
    (patch,) = parse_patch(diff)
    patched = apply_hunks(TextFile(old.encode()), patch.hunks)
    if not patched.errors and not patched.remarks:
        assert patched.data == new.encode()
    for problem in patched.errors:  # only what cannot be placed without doubt is refused
        assert "only adds lines" in problem


@pytest.mark.thorough
@given(contents(), st.data())
@settings(max_examples=200)
def test_lines_that_a_patch_does_not_change_keep_their_bytes(data, draw):
    file = TextFile.parse(data)
    lines = file.text.split("\n")
    at = draw.draw(st.integers(0, len(lines) - 1))
    # Else the diff may be about the other one.
    assume(lines.count(lines[at]) == 1 and "abba" not in lines)
    diff = diff_of(file.text, "\n".join([*lines[:at], "abba", *lines[at + 1 :]]))
    assume(diff)
    (patch,) = parse_patch(diff)
    patched = apply_hunks(file, patch.hunks)
    assume(not patched.errors and not patched.remarks)
    start = sum(len(line) + 1 for line in lines[:at])
    assert patched.data == file.replace(start, start + len(lines[at]), "abba")
