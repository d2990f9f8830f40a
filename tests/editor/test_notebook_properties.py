"""Any sequence of edits of any notebook keeps it valid, and is undone to the byte."""

from __future__ import annotations

import json

import nbformat
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from oh_jupyter.editor import EditorError, FileEditor, NoHistoryError
from oh_jupyter.editor.notebook.cells import Notebook

SOURCES = st.text('ab \n"\\é\u2028\x0b\U0001f600', max_size=12)


@st.composite
def documents(draw):
    minor = draw(st.sampled_from([2, 5]))
    cells = []
    for index in range(draw(st.integers(0, 4))):
        kind = draw(st.sampled_from(["code", "markdown", "raw"]))
        source = draw(SOURCES)
        cell = {"cell_type": kind, "metadata": draw(st.sampled_from([{}, {"tags": ["a"]}]))}
        if minor == 5:
            cell["id"] = f"cell-{index}"
        if kind == "code":
            output = {"output_type": "stream", "name": "stdout", "text": draw(SOURCES)}
            cell["outputs"] = draw(st.sampled_from([[], [output]]))
            cell["execution_count"] = draw(st.none() | st.integers(1, 9))
        cell["source"] = draw(st.sampled_from([source, source.splitlines(keepends=True)]))
        cells.append(dict(draw(st.permutations(list(cell.items())))))
    document = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": minor}
    text = json.dumps(
        dict(draw(st.permutations(list(document.items())))),
        indent=draw(st.sampled_from([None, 0, 1, 4, "\t"])),
        ensure_ascii=draw(st.booleans()),
    )
    text = text.replace("\n", draw(st.sampled_from(["\n", "\r\n"])))
    codec = draw(st.sampled_from(["utf-8", "utf-8-sig"]))
    return (text + draw(st.sampled_from(["", "\n"]))).encode(codec)


@st.composite
def moves(draw):
    cell, to = draw(st.integers(-5, 5)), draw(st.integers(-5, 5))
    source = draw(SOURCES)
    kind = draw(st.none() | st.sampled_from(["code", "markdown", "raw"]))
    return draw(
        st.sampled_from(
            [
                {"command": "notebook_edit", "cell": cell, "new_str": source, "cell_type": kind},
                {
                    "command": "notebook_edit",
                    "edit_mode": "insert",
                    "cell": cell if cell > -3 else None,
                    "new_str": source,
                    "cell_type": kind,
                },
                {"command": "notebook_edit", "edit_mode": "delete", "cell": cell},
                {"command": "notebook_edit", "edit_mode": "move", "cell": cell, "to": to},
                {"command": "insert", "insert_line": abs(to) * 2, "new_str": source},
                {"command": "str_replace", "old_str": "a", "new_str": source, "replace_all": True},
                {"command": "undo_edit"},
                {"command": "redo_edit"},
            ]
        )
    )


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(content=documents(), commands=st.lists(moves(), max_size=8))
def test_any_edits_keep_it_valid_and_undo_gives_every_byte_back(
    tmp_path_factory, content, commands
):
    folder = tmp_path_factory.mktemp("property")
    path = folder / "nb.ipynb"
    path.write_bytes(content)
    editor = FileEditor(folder, history_dir=folder / "history")
    done = 0
    for command in commands:
        before = path.read_bytes()
        try:
            editor(path=path, **command)
        except EditorError:
            assert path.read_bytes() == before
            continue
        if path.read_bytes() != before:  # what changes nothing leaves no step
            done += {"undo_edit": -1}.get(command["command"], 1)
        document = json.loads(path.read_text("utf-8-sig"))
        nbformat.validator.validate(document, version=4, version_minor=document["nbformat_minor"])
        assert path.read_bytes().endswith(b"\n") == content.endswith(b"\n")
        assert path.read_bytes()[:3] == content[:3]
    for _ in range(done):
        editor(command="undo_edit", path=path)
    assert path.read_bytes() == content
    with pytest.raises(NoHistoryError):
        editor(command="undo_edit", path=path)


@settings(max_examples=100)
@given(content=documents(), index=st.integers(0, 4), source=SOURCES)
def test_every_byte_outside_the_edited_cell_stays(tmp_path_factory, content, index, source):
    folder = tmp_path_factory.mktemp("property")
    path = folder / "nb.ipynb"
    path.write_bytes(content)
    editor = FileEditor(folder, history_dir=folder / "history")
    raw = content.decode("utf-8-sig")
    notebook = Notebook.parse(raw)
    try:
        editor(command="notebook_edit", path=path, cell=index, new_str=source)
    except EditorError:
        return
    cell = notebook.cells[index].span
    after = path.read_bytes().decode("utf-8-sig")
    assert after.startswith(raw[: cell.start])
    assert after.endswith(raw[cell.end :])
    (changed,) = (json.loads(after[cell.start : len(after) - len(raw) + cell.end]),)
    assert "".join(changed["source"]) == source
    assert list(changed) == list(cell.value)
