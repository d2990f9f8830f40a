"""Actions that are limited to a directory of their caller."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from oh_jupyter.config import Settings
from oh_jupyter.events import Action, FileEditAction, FileWriteAction
from oh_jupyter.runtime import Runtime


@pytest.fixture
def runtime(tmp_path: Path) -> Iterator[Runtime]:
    (tmp_path / "work" / "inner").mkdir(parents=True)
    (tmp_path / "work" / "link").symlink_to(tmp_path)
    (tmp_path / "outside.txt").write_text("old\n")
    made = Runtime(Settings(workspace_dir=str(tmp_path / "work"), file_store="memory"))
    yield made
    made.close()


def execute(runtime: Runtime, action: Action) -> str:
    observation = runtime.submit_action(action, "user").result(60)
    return "" if observation.kind in ("write", "edit") else observation.content


@pytest.mark.parametrize("path", ["../outside.txt", "link/outside.txt", "inner/../../outside.txt"])
def test_files_outside_are_not_changed(runtime: Runtime, tmp_path: Path, path: str) -> None:
    actions = (
        FileWriteAction(path, "new\n", within="."),
        FileEditAction(path, "str_replace", old_str="old", new_str="new", within="."),
        FileEditAction(
            ".",
            "apply_patch",
            content=f"*** Begin Patch\n*** Update File: {path}\n@@\n-old\n+new\n*** End Patch\n",
            within=".",
        ),
    )
    for action in actions:
        assert f"is outside of {tmp_path / 'work'} (it leads to {tmp_path / 'outside.txt'})" in (
            execute(runtime, action)
        )
    assert (tmp_path / "outside.txt").read_text() == "old\n"


def test_files_inside_are_changed(runtime: Runtime, tmp_path: Path) -> None:
    assert execute(runtime, FileWriteAction("inner/a.txt", "a\n", within="inner")) == ""
    assert (tmp_path / "work" / "inner" / "a.txt").read_text() == "a\n"


@pytest.mark.parametrize(("path", "within"), [("a\0b", "."), ("a", "b\0c")])
def test_a_nul_character_is_named(runtime: Runtime, path: str, within: str) -> None:
    assert "NUL character" in execute(runtime, FileWriteAction(path, "x", within=within))
