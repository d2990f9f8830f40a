"""Which files changed in a session: by edits, by commands, and by both."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from oh_jupyter.checkpoints import Checkpoints
from oh_jupyter.editor import FileEditor, HistoryPosition
from oh_jupyter.runtime.session_changes import join_changes
from oh_jupyter.writes import moves, note_move


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "workspace"
    root.mkdir()
    for name in ("by_command.txt", "by_both.txt", "back.txt", "gone.txt", "earlier.txt"):
        (root / name).write_text("old\n")
    return root.resolve()


def test_edits_and_commands_are_reported_together(root: Path, tmp_path: Path) -> None:
    editor = FileEditor(workspace_root=str(root), history_dir=tmp_path / "history")
    checkpoints = Checkpoints(root, tmp_path / "checkpoints")
    earlier = checkpoints.begin("before the session")
    (root / "earlier.txt").write_text("changed before the session\n")
    checkpoints.end(earlier.id)
    start = HistoryPosition(time.time(), editor.position().heads)

    turn = checkpoints.begin("a turn")
    (root / "by_command.txt").write_text("new\n")
    (root / "by_both.txt").write_text("old\nby a command\n")
    editor(command="insert", path=str(root / "by_both.txt"), insert_line=2, new_str="by an edit")
    editor(command="create", path=str(root / "made.txt"), file_text="x\n")
    (root / "back.txt").write_text("new\n")
    (root / "gone.txt").unlink()
    checkpoints.end(turn.id)
    (root / "by_the_person.txt").write_text("x\n")
    (root / "back.txt").write_text("old\n")

    changes = join_changes(editor, start, checkpoints.originals(start.time))
    old_texts = {change.path.name: (change.kind, change.old_text) for change in changes}
    assert old_texts == {
        "by_both.txt": ("changed", "old\n"),
        "by_command.txt": ("changed", "old\n"),
        "gone.txt": ("deleted", "old\n"),
        "made.txt": ("created", ""),
    }
    assert {change.path.name: change.counts for change in changes}["by_both.txt"] == (2, 0)


def _notebook(*sources: str) -> str:
    cells = [
        {"cell_type": "code", "id": f"c{number}", "metadata": {}, "outputs": [],
         "execution_count": None, "source": source}
        for number, source in enumerate(sources)
    ]  # fmt: skip
    return json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells})


@pytest.mark.parametrize("by_command", [False, True])
def test_a_notebook_that_a_person_moves_and_saves_is_one_moved_file(
    root: Path, tmp_path: Path, by_command: bool
) -> None:
    editor = FileEditor(workspace_root=str(root), history_dir=tmp_path / "history")
    checkpoints = Checkpoints(root, tmp_path / "checkpoints")
    source, target = root / "Untitled.ipynb", root / "analysis.ipynb"
    source.write_text(_notebook("total = 1"))
    start = HistoryPosition(time.time(), editor.position().heads)
    turn = checkpoints.begin("a turn")
    if by_command:
        source.write_text(_notebook("total = 2"))
        (root / "made.ipynb").write_text(_notebook("agent's"))
    else:
        edit = {"command": "str_replace", "old_str": "total = 1", "new_str": "total = 2"}
        editor(path=str(source), **edit)
    checkpoints.end(turn.id)
    for old, new in ((source, target), (root / "made.ipynb", root / "kept.ipynb")):
        if old.exists():
            old.rename(new)
            note_move(str(old), str(new))
    target.write_text(_notebook("total = 2", "mine"))

    originals = checkpoints.originals(start.time)
    changes = join_changes(editor, start, originals, moves(start.time))
    assert [(each.path, each.kind, each.moved_from) for each in changes] == [
        (target, "moved", source),
        *([(root / "kept.ipynb", "created", root / "made.ipynb")] * by_command),
    ]
    assert [(cell.kind, cell.old_source, cell.new_source) for cell in changes[0].cells] == [
        ("changed", "total = 1", "total = 2"),
        ("created", "", "mine"),
    ]


def test_a_session_without_turns_has_no_originals(root: Path, tmp_path: Path) -> None:
    checkpoints = Checkpoints(root, tmp_path / "checkpoints")
    assert checkpoints.originals(0) == {}
    checkpoints.begin("a mark", kind="mark")
    assert checkpoints.originals(0) == {}


@pytest.mark.parametrize("name", ["by_command.txt", "by_both.txt"])
def test_a_link_shows_its_target_and_not_the_targets_content(
    root: Path, tmp_path: Path, name: str
) -> None:
    """An agent in a sandbox reads the changes, and may not read every file."""
    (tmp_path / "secret").write_text("a secret\n")
    editor = FileEditor(workspace_root=str(root), history_dir=tmp_path / "history")
    checkpoints = Checkpoints(root, tmp_path / "checkpoints")
    start = HistoryPosition(time.time(), editor.position().heads)
    turn = checkpoints.begin("a turn")
    if name == "by_both.txt":
        editor(command="insert", path=str(root / name), insert_line=1, new_str="by an edit")
    (root / name).unlink()
    (root / name).symlink_to(tmp_path / "secret")
    checkpoints.end(turn.id)
    (change,) = join_changes(editor, start, checkpoints.originals(start.time))
    assert (change.old, change.new) == (b"old\n", os.fsencode(tmp_path / "secret"))


def test_a_directory_that_became_a_link_shows_nothing(root: Path, tmp_path: Path) -> None:
    (tmp_path / "private").mkdir()
    (tmp_path / "private" / "file").write_text("a secret\n")
    (root / "sub").mkdir()
    (root / "sub" / "file").write_text("old\n")
    editor = FileEditor(workspace_root=str(root), history_dir=tmp_path / "history")
    checkpoints = Checkpoints(root, tmp_path / "checkpoints")
    start = HistoryPosition(time.time(), editor.position().heads)
    turn = checkpoints.begin("a turn")
    (root / "sub").rename(root / "away")
    (root / "sub").symlink_to(tmp_path / "private")
    checkpoints.end(turn.id)
    changes = join_changes(editor, start, checkpoints.originals(start.time))
    assert not any(b"secret\n" in (change.new or b"") for change in changes)
