"""Parts of an editor's output: what doors show around a diff, and notes for people."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from oh_jupyter.editor import FileEditor
from oh_jupyter.editor.file_actions import edit_file
from oh_jupyter.editor.messages import REVIEW
from oh_jupyter.events import FileEditAction, FileEditObservation

TEXT = "".join(f"line {number}\n" for number in range(1, 21))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "a.txt"
    path.write_text(TEXT)
    return path


def edited(editor: FileEditor, path: Path, command: str, **arguments: Any) -> FileEditObservation:
    action = FileEditAction(str(path), command, **arguments)
    observation = edit_file(action, cwd=str(path.parent), editor=editor)
    assert isinstance(observation, FileEditObservation)
    return observation


def test_an_excerpt_separates_the_change_from_notes(file: Path) -> None:
    editor = FileEditor(file.parent)
    editor(command="view", path=str(file))
    file.write_text(TEXT.replace("line 20", "LINE 20"))
    observation = edited(editor, file, "str_replace", old_str="line 2\n", new_str="two\n")
    done, note = observation.around_excerpts
    assert done == f"The file {file} has been edited."
    assert note.startswith(f"NOTE: {file} was changed by ")
    assert observation.notes == [note]
    assert observation.content.startswith(f"{done} Here's the result of running `cat -n`")
    assert observation.content.endswith(f"{REVIEW}\n{note}")


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        ("str_replace", {"old_str": "line 2\n", "new_str": "two\n"}),
        ("insert", {"insert_line": 1, "new_str": "new"}),
        ("write", {"content": "new\n", "start": 2, "end": 3}),
    ],
)
@pytest.mark.parametrize("dry_run", [False, True])
def test_parts_of_the_content_stand_in_it_in_order(
    file: Path, command: str, arguments: dict[str, Any], dry_run: bool
) -> None:
    observation = edited(FileEditor(file.parent), file, command, dry_run=dry_run, **arguments)
    position = 0
    for text in observation.around_excerpts:
        position = observation.content.index(text, position) + len(text)
    assert len(observation.around_excerpts) == 2
    assert "Review the changes" not in "".join(observation.around_excerpts)
    assert "cat -n" not in "".join(observation.around_excerpts)
    assert observation.dry_run is dry_run
    assert observation.edited_paths == ([] if dry_run else [str(file)])


def test_a_new_file_has_no_excerpt(tmp_path: Path) -> None:
    path = tmp_path / "new.txt"
    observation = edited(FileEditor(tmp_path), path, "create", file_text="a\n")
    assert observation.around_excerpts == observation.notes == []
    assert observation.edited_paths == [str(path)]


def test_a_view_and_an_undo_are_shown_whole(file: Path) -> None:
    editor = FileEditor(file.parent)
    assert edited(editor, file, "view").around_excerpts == []
    edited(editor, file, "str_replace", old_str="line 3", new_str="three")
    assert edited(editor, file, "undo_edit").around_excerpts == []


def test_an_excerpt_may_look_like_advice(file: Path) -> None:
    observation = edited(
        FileEditor(file.parent), file, "str_replace", old_str="line 3", new_str=REVIEW
    )
    assert observation.around_excerpts == [f"The file {file} has been edited.", ""]


def test_a_patch_names_its_files_and_is_listed_for_people(file: Path) -> None:
    other = file.with_name("b.txt")
    patch = (
        "*** Begin Patch\n"
        f"*** Update File: {file}\n@@\n-line 2\n+two\n"
        f"*** Add File: {other}\n+new\n"
        "*** End Patch"
    )
    observation = edited(FileEditor(file.parent), file.parent, "apply_patch", content=patch)
    assert sorted(observation.edited_paths) == [str(file), str(other)]
    assert any("b.txt" in note for note in observation.notes)
    assert observation.around_excerpts == [observation.content.removesuffix(REVIEW)]


def test_a_failure_changes_no_path(file: Path) -> None:
    observation = edited(FileEditor(file.parent), file, "str_replace", old_str="x", new_str="y")
    assert observation.outcome == "failed"
    assert observation.content == f"ERROR:\n{observation.failure}"
    assert observation.edited_paths == []


def test_linting_is_a_note_only_if_it_finds_something(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text("a = 1\n")
    clean = edited(
        FileEditor(tmp_path), path, "str_replace", old_str="1", new_str="2", enable_linting=True
    )
    assert "No linting issues" in clean.around_excerpts[1]
    assert clean.notes == []
    broken = edited(
        FileEditor(tmp_path), path, "str_replace", old_str="2", new_str="(", enable_linting=True
    )
    assert broken.notes[0] == "Linting issues found in the changes:"
    assert broken.notes[1].startswith("- Line 1")
