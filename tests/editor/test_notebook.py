"""Notebooks are viewed and edited as cells, and never left broken."""

from __future__ import annotations

import difflib
import json
import re
import subprocess
import sys
from dataclasses import replace

import nbformat
import pytest
from nbformat import v4

from oh_jupyter.editor import (
    EditorError,
    EditorParameterInvalidError,
    EditorParameterMissingError,
    FileChangedError,
    NoReplacementError,
)
from oh_jupyter.editor.file_actions import edit_file, read_file
from oh_jupyter.events import FileEditAction, FileReadAction

STREAM = v4.new_output("stream", text="".join(f"line {n}\n" for n in range(30)))
PICTURE = v4.new_output(
    "execute_result", data={"image/png": "iVBORw0K", "text/plain": "<Figure>"}, execution_count=3
)
FAILURE = v4.new_output("error", ename="ValueError", evalue="\x1b[31mbad\x1b[0m", traceback=["x"])


def sample() -> nbformat.NotebookNode:
    return v4.new_notebook(
        cells=[
            v4.new_markdown_cell("# Title\ntext", id="intro"),
            v4.new_code_cell("import x\nx.y()", id="first", execution_count=3, outputs=[PICTURE]),
            v4.new_code_cell("", id="empty"),
            v4.new_code_cell("for n in x:\n    print(n)", id="last", outputs=[STREAM, FAILURE]),
        ],
        metadata={"zeta": 1.50, "alpha": {"é": None}},
    )


@pytest.fixture
def notebook(workspace):
    path = workspace / "nb.ipynb"
    nbformat.write(sample(), path)
    return path


@pytest.fixture
def edit(editor, notebook):
    def edit(mode="replace", cell=None, source=None, **arguments):
        return editor(
            command="notebook_edit",
            path=notebook,
            edit_mode=mode,
            cell=cell,
            new_str=source,
            **arguments,
        )

    return edit


def cells(path):
    return nbformat.read(path, as_version=4).cells


def ids(path):
    return [cell.id for cell in cells(path)]


# view


def test_the_view_numbers_headings_and_sources_and_shortens_outputs(editor, notebook):
    output = editor(command="view", path=notebook).output
    shown = [
        f"Here's the result of running `cat -n` on {notebook}, a notebook of 4 cells:",
        "     1\t# %% [0] markdown id=intro",
        "     2\t# Title",
        "     3\ttext",
        "     4\t# %% [1] code id=first execution_count=3",
        "     5\timport x",
        "     6\tx.y()",
        "   out\t<Figure>",
        "   out\t[image/png]",
        "     7\t# %% [2] code id=empty",
        "     8\t",
        "     9\t# %% [3] code id=last",
        "    10\tfor n in x:",
        "    11\t    print(n)",
        *[f"   out\tline {n}" for n in range(10)],
        "   out\t... (21 more lines of output)",
    ]
    assert output == "\n".join(shown) + "\n"


def test_a_range_shows_the_outputs_of_the_cells_that_end_in_it(editor, notebook):
    output = editor(command="view", path=notebook, view_range=[5, 6]).output
    assert output.split("\n")[1:] == [
        "     5\timport x",
        "     6\tx.y()",
        "   out\t<Figure>",
        "   out\t[image/png]",
        "",
    ]
    assert "out\t" not in editor(command="view", path=notebook, view_range=[1, 5]).output
    assert editor(command="view", path=notebook, view_range=[9, 99]).output.startswith(
        "NOTE: We only show up to 11 since there're only 11 lines in this file.\n"
    )
    with pytest.raises(EditorParameterInvalidError, match=r"range of lines of the file: \[1, 11\]"):
        editor(command="view", path=notebook, view_range=[12, 12])


def test_appearance_of_outputs(editor, workspace):
    path = workspace / "a.ipynb"
    nbformat.write(
        v4.new_notebook(
            cells=[
                v4.new_code_cell(
                    "f()",
                    outputs=[
                        v4.new_output("stream", text="10%\r100%\n"),
                        FAILURE,
                        v4.new_output("display_data", data={"application/json": {"a": 1}}),
                        v4.new_output("display_data", data={"text/html": "<b>bold</b>"}),
                        v4.new_output("stream", text="x" * 5000),
                    ],
                )
            ]
        ),
        path,
    )
    output = editor(command="view", path=path).output
    lines = [line.split("\t")[1] for line in output.split("\n") if line.startswith("   out")]
    displays = ['{"a": 1}', "[application/json]", "bold"]
    assert lines[:5] == ["100%", "ValueError: bad", *displays]
    assert re.fullmatch(r"x{800} \.\.\. \(4200 more characters\)", lines[5])


def test_an_empty_notebook_and_a_long_one(editor, workspace, write):
    empty = workspace / "empty.ipynb"
    nbformat.write(v4.new_notebook(), empty)
    assert editor(command="view", path=empty).output.endswith("a notebook of 0 cells:\n")
    long = workspace / "long.ipynb"
    nbformat.write(v4.new_notebook(cells=[v4.new_raw_cell("y" * 20_000)]), long)
    assert "<response clipped>" in editor(command="view", path=long).output


@pytest.mark.parametrize(
    "text",
    [
        '{"cells": [',
        '{"nbformat": 3, "worksheets": []}',
        '{"nbformat": 4, "cells": [{}]}',
        '{"nbformat": 4, "cells": [],}',
        "[" * 50_000,
        "",
    ],
)
def test_an_invalid_notebook_is_shown_and_edited_as_text(editor, write, text):
    path = write("a.ipynb", text)
    shown = editor(command="view", path=path).output
    assert shown.startswith(f"Here's the result of running `cat -n` on {path}:\n     1\t{text[:9]}")
    editor(command="insert", path=path, insert_line=0, new_str="")
    assert path.read_text() == "\n" + text
    with pytest.raises(EditorParameterInvalidError, match="can only be edited as text"):
        editor(command="notebook_edit", path=path, edit_mode="delete", cell=0)


# str_replace and insert


def test_a_text_is_replaced_in_the_one_cell_that_has_it(editor, notebook):
    result = editor(command="str_replace", path=notebook, old_str="x.y()", new_str='z("ü")')
    assert result.output == (
        f"The file {notebook} has been edited. Here's the result of running `cat -n` on a snippet "
        f"of {notebook}, in cell [1] (id first):\n"
        "     3\ttext\n"
        "     4\t# %% [1] code id=first\n"
        "     5\timport x\n"
        '     6\tz("ü")\n'
        "     7\t# %% [2] code id=empty\n"
        "     8\t\n"
        "     9\t# %% [3] code id=last\n"
        "    10\tfor n in x:\n"
        "Review the changes and make sure they are as expected. Edit the file again if necessary."
        "\nThe outputs of cell [1] (id first) were cleared."
    )
    changed = cells(notebook)
    assert changed[1].source == 'import x\nz("ü")'
    assert (changed[1].outputs, changed[1].execution_count) == ([], None)
    assert changed[3].outputs == [STREAM, FAILURE]


def test_only_the_edited_cell_is_rewritten(editor, workspace):
    path = workspace / "odd.ipynb"
    document = (
        '{\r\n\t"nbformat": 4,\r\n\t"metadata": { "n": 1.50, "s": "\\u00e9\\/" },\r\n'
        '\t"cells": [\r\n'
        '\t\t{ "cell_type": "raw", "metadata": {}, "source": "one" },\r\n'
        '\t\t{\r\n\t\t\t"source": [\r\n\t\t\t\t"two\\n",\r\n\t\t\t\t"three"\r\n\t\t\t],\r\n'
        '\t\t\t"cell_type": "markdown",\r\n\t\t\t"metadata": {"k": 1e3}\r\n\t\t}\r\n'
        '\t],\r\n\t"nbformat_minor": 2\r\n}\r\n'
    )
    path.write_bytes(document.encode())
    editor(command="str_replace", path=path, old_str="three", new_str="é\nfour")
    expected = document.replace('"three"', '"\\u00e9\\n",\r\n\t\t\t\t"four"')
    assert path.read_bytes() == expected.encode()
    editor(command="str_replace", path=path, old_str="one", new_str="o\n")
    assert path.read_bytes() == expected.replace('"one"', '"o\\n"').encode()


def test_a_text_in_several_cells_needs_a_choice(editor, notebook):
    with pytest.raises(NoReplacementError) as caught:
        editor(command="str_replace", path=notebook, old_str="x", new_str="z")
    assert str(caught.value) == (
        "No replacement was performed. Multiple occurrences of old_str `x` in lines [3, 5, 6, 10]. "
        "Please ensure it is unique. They are in the cells [0, 1, 3]; `cell` chooses one."
    )
    editor(command="str_replace", path=notebook, old_str="x", new_str="z", cell="last")
    assert cells(notebook)[3].source == "for n in z:\n    print(n)"
    with pytest.raises(NoReplacementError, match=r"in lines \[5, 6\]\. Please ensure .* unique\.$"):
        editor(command="str_replace", path=notebook, old_str="x", new_str="z", cell=1)


def test_all_occurrences_in_all_cells_may_be_replaced(editor, notebook):
    editor(command="str_replace", path=notebook, old_str="x", new_str="zz", replace_all=True)
    assert [cell.source for cell in cells(notebook)] == [
        "# Title\ntezzt",
        "import zz\nzz.y()",
        "",
        "for n in zz:\n    print(n)",
    ]
    editor(command="undo_edit", path=notebook)
    assert cells(notebook) == sample().cells


def test_a_text_in_no_source_but_once_in_the_json_is_replaced_there(editor, notebook):
    output = editor(command="str_replace", path=notebook, old_str='"zeta"', new_str='"eta"').output
    assert "NOTE: No cell source has this text" in output
    assert json.loads(notebook.read_text())["metadata"]["eta"] == 1.5
    assert len(cells(notebook)[3].outputs) == 2


def test_an_edit_of_the_json_that_would_break_it_is_refused(editor, notebook):
    before = notebook.read_bytes()
    for old, new, why in (
        ('"alpha": {', '"alpha": ', "invalid JSON"),
        ('"metadata": {\n  "alpha"', '"meta": {\n  "alpha"', "('meta' was unexpected)"),
        ('"id": "first"', '"id": "last"', "two cells have the id 'last'"),
        ('"id": "first"', '"id": "a b"', "'a b' does not match"),
        ('"nbformat": 4', '"nbformat": "4"', "`nbformat` is missing"),
    ):
        with pytest.raises(EditorError, match=r"would make .* an invalid notebook: ") as caught:
            editor(command="str_replace", path=notebook, old_str=old, new_str=new)
        assert why in str(caught.value)
    assert notebook.read_bytes() == before


def test_a_text_that_is_nowhere_gets_the_nearest_lines_of_the_view(editor, notebook):
    with pytest.raises(NoReplacementError) as caught:
        editor(command="str_replace", path=notebook, old_str="for m in x:", new_str="")
    assert "The sources of the cells, as shown by `view`, were searched" in str(caught.value)
    assert "10" in str(caught.value)


@pytest.mark.parametrize(
    ("line", "index", "source"),
    [
        (0, 0, "new\n# Title\ntext"),
        (1, 0, "new\n# Title\ntext"),
        (2, 0, "# Title\nnew\ntext"),
        (3, 0, "# Title\ntext\nnew"),
        (4, 1, "new\nimport x\nx.y()"),
        (7, 2, "new"),
        (8, 2, "new"),
        (11, 3, "for n in x:\n    print(n)\nnew"),
    ],
)
def test_lines_are_inserted_where_the_view_numbers_them(editor, notebook, line, index, source):
    output = editor(command="insert", path=notebook, insert_line=line, new_str="new").output
    assert [c.source for c in cells(notebook)] == [
        source if at == index else cell.source for at, cell in enumerate(sample().cells)
    ]
    (number,) = re.findall(r"^ *(\d+)\tnew$", output, re.MULTILINE)
    view = editor(command="view", path=notebook).output
    assert f"\n{int(number):6}\tnew\n" in view


def test_a_line_that_the_view_does_not_have(editor, notebook, write):
    with pytest.raises(EditorParameterInvalidError, match=r"range of allowed values: \[0, 11\]"):
        editor(command="insert", path=notebook, insert_line=12, new_str="")
    empty = notebook.with_name("empty.ipynb")
    nbformat.write(v4.new_notebook(), empty)
    with pytest.raises(EditorParameterInvalidError, match="no cells yet"):
        editor(command="insert", path=empty, insert_line=0, new_str="")


# notebook_edit


def test_a_cell_is_replaced_and_its_outputs_cleared(edit, notebook):
    output = edit(cell="first", source="1 + 1").output
    assert "     5\t1 + 1\n" in output
    assert output.endswith("The outputs of cell [1] (id first) were cleared.")
    cell = cells(notebook)[1]
    assert (cell.source, cell.outputs, cell.execution_count) == ("1 + 1", [], None)
    edit(cell=-1, source="")
    assert cells(notebook)[3].source == ""


def test_a_cell_changes_its_type(edit, notebook):
    edit(cell="first", source="text", cell_type="markdown")
    assert dict(cells(notebook)[1]) == {
        "cell_type": "markdown",
        "id": "first",
        "metadata": {},
        "source": "text",
    }
    edit(cell="first", source="1", cell_type="code")
    assert list(json.loads(notebook.read_text())["cells"][1]) == [
        "cell_type",
        "execution_count",
        "id",
        "metadata",
        "outputs",
        "source",
    ]


@pytest.mark.parametrize(("after", "index"), [(None, 0), (0, 1), ("intro", 1), (-1, 4), ("3", 4)])
def test_a_cell_is_inserted_after_another_or_at_the_top(edit, notebook, after, index):
    assert f"with the new cell [{index}]" in edit("insert", after, "x = 1\ny = 2").output
    changed = cells(notebook)
    assert changed[index].source == "x = 1\ny = 2"
    assert changed[index].cell_type == "code"
    assert re.fullmatch("[0-9a-f]{8}", changed.pop(index).id)
    assert changed == sample().cells


def test_an_insertion_is_written_just_as_jupyter_writes(edit, notebook):
    edit("insert", 2, "# Ü\n", cell_type="markdown")
    edit("insert", 0, "a\n\nb\x0bc")
    text = notebook.read_text()
    nbformat.write(nbformat.read(notebook, as_version=4), notebook)
    assert notebook.read_text() == text


def test_cells_are_deleted_and_moved(edit, notebook):
    edit("move", "intro", to=2)
    assert ids(notebook) == ["first", "empty", "intro", "last"]
    edit("move", 3, to=0)
    assert ids(notebook) == ["last", "first", "empty", "intro"]
    edit("move", "last", to=-1)
    assert ids(notebook) == ["first", "empty", "intro", "last"]
    for cell in ("empty", "last", "first"):
        edit("delete", cell)
    assert cells(notebook) == sample().cells[:1]
    edit("delete", 0)
    assert cells(notebook) == []
    edit("insert", source="again")
    assert [cell.source for cell in cells(notebook)] == ["again"]


def test_a_notebook_on_one_line_stays_on_one(editor, write):
    compact = json.dumps(json.loads(v4.writes(sample())), separators=(",", ":"))
    path = write("a.ipynb", compact)
    for arguments in (
        {"edit_mode": "delete", "cell": 1},
        {"edit_mode": "insert", "cell": 0, "new_str": "a\nb"},
        {"edit_mode": "replace", "cell": "empty", "new_str": "c"},
    ):
        editor(command="notebook_edit", path=path, **arguments)
    text = path.read_text()
    assert json.dumps(json.loads(text), separators=(",", ":")) == text
    assert [cell.source for cell in cells(path)][1:3] == ["a\nb", "c"]


def test_notebooks_without_ids_get_none(editor, write):
    old = {**v4.new_notebook(cells=[v4.new_code_cell("1")]), "nbformat_minor": 2}
    del old["cells"][0]["id"]
    path = write("a.ipynb", json.dumps(old, indent=1))
    editor(command="notebook_edit", path=path, edit_mode="insert", cell=0, new_str="2")
    assert [set(cell) & {"id"} for cell in json.loads(path.read_text())["cells"]] == [set(), set()]
    assert "     1\t# %% [0] code\n" in editor(command="view", path=path).output


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"mode": "swap", "cell": 0}, EditorParameterInvalidError, "replace, insert, delete, move"),
        ({"mode": "delete"}, EditorParameterMissingError, "`cell` is required for command: note"),
        ({"cell": 0}, EditorParameterMissingError, "`new_str` is required for command: notebook"),
        ({"mode": "insert"}, EditorParameterMissingError, "`new_str` is required"),
        ({"mode": "move", "cell": 0}, EditorParameterMissingError, "`to` is required"),
        ({"mode": "move", "cell": 0, "to": 4}, EditorParameterInvalidError, "from 0 to 3"),
        ({"mode": "move", "cell": 1, "to": 1}, EditorParameterInvalidError, "already"),
        ({"mode": "delete", "cell": 4}, EditorParameterInvalidError, r"\[0\] intro, \[1\] first"),
        ({"mode": "delete", "cell": "?"}, EditorParameterInvalidError, "no such cell"),
        ({"mode": "delete", "cell": True}, EditorParameterInvalidError, "no such cell"),
        ({"cell": 0, "source": "", "cell_type": "x"}, EditorParameterInvalidError, "markdown, raw"),
        ({"cell": "empty", "source": ""}, EditorParameterInvalidError, "already"),
    ],
)
def test_unusable_arguments(edit, notebook, arguments, error, message):
    before = notebook.read_bytes()
    with pytest.raises(error, match=message):
        edit(**arguments)
    assert notebook.read_bytes() == before


def test_only_notebooks_have_cells(editor, write):
    with pytest.raises(EditorParameterInvalidError, match=r"supports \.ipynb files"):
        editor(command="notebook_edit", path=write("a.txt", ""), edit_mode="delete", cell=0)


# create


def test_create_makes_an_empty_notebook_or_checks_the_given_one(editor, workspace):
    path = workspace / "a.ipynb"
    result = editor(command="create", path=path, file_text="")
    assert result.output == f"File created successfully at: {path}"
    assert result.new_content == path.read_text()
    nbformat.validate(nbformat.read(path, as_version=4))
    text = path.read_text()
    nbformat.write(nbformat.read(path, as_version=4), path)
    assert path.read_text() == text
    other = workspace / "b.ipynb"
    text = json.dumps(sample())
    editor(command="create", path=other, file_text=text)
    assert other.read_text() == text
    for text, why in (
        ("print(1)", "invalid JSON"),
        ('{"nbformat": 4, "cells": []}', "'metadata' is a required property"),
    ):
        with pytest.raises(EditorParameterInvalidError, match=why):
            editor(command="create", path=workspace / "c.ipynb", file_text=text)
    assert not (workspace / "c.ipynb").exists()


# somebody else


def change(path, index, **fields):
    document = json.loads(path.read_text())
    document["cells"][index].update(fields)
    path.write_text(json.dumps(document))


def test_running_a_cell_is_no_change_of_the_notebook(editor, edit, notebook):
    editor(command="view", path=notebook)
    change(notebook, 0, metadata={"a": 1})
    change(notebook, 3, execution_count=9, outputs=[])
    assert "NOTE" not in edit(cell=3, source="1").output
    change(notebook, 3, execution_count=10)
    assert "NOTE" not in editor(command="insert", path=notebook, insert_line=9, new_str="").output


def test_a_cell_with_a_foreign_change_is_not_overwritten(editor, edit, notebook):
    editor(command="view", path=notebook)
    change(notebook, 3, source="mine")
    before = notebook.read_bytes()
    with pytest.raises(FileChangedError, match=r"-for n in x:\n-    print\(n\)\n\+mine"):
        edit(cell="last", source="1")
    assert notebook.read_bytes() == before
    edit(cell="last", source="1")  # what is there now has been shown by the refusal
    change(notebook, 0, source="other")
    assert "NOTE" in edit(cell="last", source="2").output


def test_positions_hold_only_while_the_cells_stay(editor, edit, notebook):
    editor(command="view", path=notebook)
    document = json.loads(notebook.read_text())
    document["cells"].insert(0, document["cells"].pop())
    notebook.write_text(json.dumps(document))
    with pytest.raises(FileChangedError):
        edit("delete", 3)
    notebook.write_text(v4.writes(sample()))
    editor(command="view", path=notebook)
    notebook.write_text(json.dumps(document))
    edit("delete", "last")  # an id stays with its cell
    assert ids(notebook) == ["intro", "first", "empty"]


def test_undo_shows_the_cells(editor, edit, notebook):
    edit("delete", 0)
    output = editor(command="undo_edit", path=notebook).output
    assert "a notebook of 4 cells:\n     1\t# %% [0] markdown id=intro\n" in output


def test_other_files_do_not_import_nbformat(tmp_path):
    program = """if True:
        import sys
        from oh_jupyter.editor import FileEditor
        path, history = sys.argv[1:]
        editor = FileEditor(history_dir=history)
        editor(command="create", path=path, file_text="a")
        editor(command="str_replace", path=path, old_str="a", new_str="b", enable_linting=True)
        editor(command="view", path=path)
        editor(command="undo_edit", path=path)
        print(sorted(set(sys.modules) & {"nbformat", "jsonschema", "tree_sitter", "pyflakes"}))
    """
    arguments = [sys.executable, "-c", program, tmp_path / "a.txt", tmp_path / "history"]
    done = subprocess.run(arguments, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


# Other ways to the same


def test_cells_are_changed_by_a_method_too(editor, notebook):
    editor.edit_cell(notebook, "first", "1")
    editor.edit_cell(notebook, "first", "# Two", mode="insert", cell_type="markdown")
    editor.edit_cell(notebook, 0, mode="move", to=1)
    editor.edit_cell(notebook, "last", mode="delete")
    assert [cell.source for cell in cells(notebook)] == ["1", "# Title\ntext", "# Two", ""]


def test_several_edits_of_cells_are_one_step(editor, notebook):
    before = notebook.read_bytes()
    edits = [
        {"command": "notebook_edit", "cell": "empty", "new_str": "a = 1"},
        {"command": "notebook_edit", "cell": 0, "edit_mode": "delete"},
        {"command": "str_replace", "old_str": "x.y()", "new_str": "x.z()"},
        {"command": "insert", "insert_line": 1, "new_str": "# top"},
    ]
    editor.edit_many({**edit, "path": notebook} for edit in edits)
    assert [cell.source for cell in cells(notebook)][:2] == ["# top\nimport x\nx.z()", "a = 1"]
    editor(command="undo_edit", path=notebook)
    assert notebook.read_bytes() == before
    with pytest.raises(EditorError, match="no such cell"):
        editor.edit_many(
            [
                {**edits[0], "path": notebook},
                {"command": "notebook_edit", "path": notebook, "cell": 9, "new_str": ""},
            ]
        )
    assert notebook.read_bytes() == before


def test_a_dry_run_writes_nothing(edit, notebook):
    before = notebook.read_bytes()
    output = edit(cell="first", source="1 + 1", dry_run=True).output
    assert "     5\t1 + 1\n" in output
    assert notebook.read_bytes() == before


def test_the_read_action_shows_the_json(editor, notebook):
    observation = read_file(FileReadAction(path=str(notebook)), cwd="/", editor=editor)
    assert observation.content == notebook.read_text()
    action = FileReadAction(path=str(notebook), impl_source="oh_aci")
    assert "# %% [1] code id=first" in read_file(action, cwd="/", editor=editor).content


def test_a_notebook_with_large_outputs(editor, workspace):
    path = workspace / "large.ipynb"
    output = v4.new_output("stream", text="line of output\n" * 20_000)
    many = [v4.new_code_cell("x", id=f"c{number}", outputs=[output]) for number in range(8)]
    nbformat.write(v4.new_notebook(cells=many), path)
    view = editor(command="view", path=path).output
    assert len(view) < 5000
    editor.edit_cell(path, "c3", "y")
    editor.edit_cell(path, "c7", mode="move", to=0)
    editor(command="str_replace", path=path, cell="c3", old_str="y", new_str="z")
    assert cells(path)[4].source == "z"


# patches and drafts see cells, too


def patched(editor, path, patch):
    return editor(command="apply_patch", path=path, content=patch)


def unified(old, new, name="nb.ipynb"):
    lines = difflib.unified_diff(old.splitlines(True), new.splitlines(True), name, name)
    return "".join(lines)


def shown(editor, path):
    """Return an agent's view, without numbers and outputs."""
    view = editor(command="view", path=path).output.split("\n", 1)[1]
    lines = [line.split("\t", 1) for line in view.removesuffix("\n").split("\n")]
    return "".join(f"{text}\n" for number, text in lines if number.strip() != "out")


@pytest.mark.parametrize("kind", ["diff", "blocks", "envelope"])
def test_a_patch_changes_the_source_of_a_cell_and_clears_its_outputs(editor, notebook, kind):
    old, new = "for n in x:\n    print(n)\n", "for n in x:\n    print(2 * n)\n    print()\n"
    text = shown(editor, notebook)
    patch = {
        "diff": unified(text, text.replace(old, new)),
        "blocks": f"<<<<<<< SEARCH\n{old}=======\n{new}>>>>>>> REPLACE\n",
        "envelope": "*** Begin Patch\n*** Update File: nb.ipynb\n@@\n for n in x:\n"
        "-    print(n)\n+    print(2 * n)\n+    print()\n*** End Patch",
    }[kind]
    before = cells(notebook)
    result = patched(editor, notebook, patch)
    after = cells(notebook)
    assert after[3].source == new.removesuffix("\n")
    assert after[3].outputs == []
    assert after[:3] == before[:3]
    assert "outputs of cell [3] (id last) were cleared" in result.output
    editor(command="undo_edit", path=notebook)
    assert cells(notebook) == before


def test_a_patch_of_one_line_leaves_no_stale_output(editor, notebook):
    patched(editor, notebook, "<<<<<<< SEARCH\nimport x\n=======\nimport y\n>>>>>>> REPLACE\n")
    cell = cells(notebook)[1]
    assert (cell.source, cell.outputs, cell.execution_count) == ("import y\nx.y()", [], None)


def test_a_patch_of_the_json_still_fits(editor, notebook):
    text = notebook.read_text()
    patched(editor, notebook, unified(text, text.replace('"zeta": 1.5', '"zeta": 2.5')))
    assert nbformat.read(notebook, as_version=4).metadata["zeta"] == 2.5


def test_a_patch_does_not_change_which_cells_there_are(editor, notebook):
    before, text = notebook.read_bytes(), shown(editor, notebook)
    heading = next(line for line in text.splitlines() if "id=empty" in line)
    with pytest.raises(EditorError, match="notebook_edit"):
        patched(editor, notebook, unified(text, text.replace(f"{heading}\n", "")))
    assert notebook.read_bytes() == before


def test_a_draft_changes_the_source_of_a_cell(editor, notebook):
    before = cells(notebook)
    action = FileEditAction(
        str(notebook),
        content="# ... existing code ...\nfor n in x:\n    print(-n)\n",
        impl_source="llm_based_edit",
    )
    observation = edit_file(action, cwd="/", editor=editor)
    after = cells(notebook)
    assert after[3].source == "for n in x:\n    print(-n)", observation.content
    assert (after[3].outputs, after[:3]) == ([], before[:3])
    assert "-    print(n)\n+    print(-n)" in observation.diff
    headless = replace(action, content="import x\n")
    assert "notebook_edit" in edit_file(headless, cwd="/", editor=editor).content
    assert cells(notebook) == after


def test_the_first_edit_loads_no_checks_that_notebooks_do_not_need(notebook, tmp_path):
    program = """if True:
        import sys
        from oh_jupyter.editor import FileEditor
        path, history = sys.argv[1:]
        editor = FileEditor(history_dir=history)
        editor(command="str_replace", path=path, old_str="import x", new_str="import y")
        editor.edit_cell(path, 0, "new", mode="insert")
        editor(command="create", path=path + ".ipynb", file_text=open(path).read())
        print([name for name in ("jsonschema", "rfc3987_syntax") if name in sys.modules])
    """
    done = subprocess.run(
        [sys.executable, "-c", program, str(notebook), str(tmp_path / "history")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "[]\n"
    nbformat.validate(nbformat.read(notebook, as_version=4))
