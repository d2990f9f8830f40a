"""The opened file is the judged one, even if a link appears in between."""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from oh_jupyter.config import Settings
from oh_jupyter.editor import FileEditor
from oh_jupyter.editor.files import atomic_write
from oh_jupyter.editor.files.path_guard import (
    PathGuard,
    guarded_by,
    make_parents,
    open_guarded,
    opened_directory,
    pinned,
)
from oh_jupyter.errors import EditorError
from oh_jupyter.events import Action, FileEditAction, FileReadAction, FileWriteAction
from oh_jupyter.runtime import Runtime
from oh_jupyter.sandbox import find_engine

ROUNDS = 100

needs_engine = pytest.mark.skipif(
    find_engine().program is None or os.uname().sysname != "Linux",
    reason="needs bubblewrap, and user namespaces",
)


@pytest.fixture
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Runtime]:
    """A runtime that rejects at once what would wait, with a home outside of its workspace."""
    home = tmp_path / "home"
    for folder in (home / ".ssh", home / "work" / "sub", tmp_path / "tmp", tmp_path / "state"):
        folder.mkdir(parents=True)
    (tmp_path / "home" / ".bashrc").write_text("a person's\n")
    (tmp_path / "home" / ".ssh" / "id_rsa").write_text("secret\n")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    settings = Settings(
        workspace_dir=str(tmp_path / "home" / "work"),
        file_store="memory",
        confirmation="risky",
        confirmation_timeout=0.001,
        checkpoints="off",
        sandbox="required",
    )
    runtime = Runtime(settings)
    yield runtime
    runtime.close()


@contextmanager
def changing(change: Callable[[], None]) -> Iterator[None]:
    """Repeat a change as fast as possible, as a process of an agent would."""
    ends = threading.Event()

    def repeat() -> None:
        while not ends.is_set():
            with suppress(OSError):
                change()

    thread = threading.Thread(target=repeat)
    thread.start()
    try:
        yield
    finally:
        ends.set()
        thread.join()


def contents(runtime: Runtime, action: Action) -> str:
    return runtime.submit_action(action).result(60).content


@needs_engine
@pytest.mark.thorough
def test_a_file_that_becomes_a_link(runtime: Runtime, tmp_path: Path) -> None:
    home, path = tmp_path / "home", tmp_path / "home" / "work" / "r"

    def swap(target: str) -> None:
        path.unlink(missing_ok=True)
        path.write_text("plain\n")
        os.symlink(home / target, f"{path}.new")
        os.replace(f"{path}.new", path)

    with changing(lambda: swap(".ssh/id_rsa")):
        for _ in range(ROUNDS):
            assert "secret" not in contents(runtime, FileReadAction("r"))
            view = FileEditAction(str(path), command="view")
            assert "secret" not in contents(runtime, view)
    with changing(lambda: swap(".bashrc")):
        for _ in range(ROUNDS):
            contents(runtime, FileWriteAction("r", "evil"))
            edit = FileEditAction(str(path), command="str_replace", old_str="person", new_str="x")
            contents(runtime, edit)
    assert (home / ".bashrc").read_text() == "a person's\n"


@needs_engine
@pytest.mark.thorough
def test_a_directory_that_becomes_a_link(runtime: Runtime, tmp_path: Path) -> None:
    home, work = tmp_path / "home", tmp_path / "home" / "work"

    def swap() -> None:
        os.rename(work / "sub", work / "away")
        os.symlink(home, work / "sub")
        os.unlink(work / "sub")
        os.rename(work / "away", work / "sub")

    with changing(swap):
        for number in range(ROUNDS):
            contents(runtime, FileWriteAction("sub/.bashrc", "evil"))
            create = {"command": "create", "file_text": "evil"}
            contents(runtime, FileEditAction(str(work / "sub" / f"{number}"), **create))  # type: ignore[arg-type]
            contents(runtime, FileWriteAction(f"sub/new{number}/file", "evil"))
            assert "secret" not in contents(runtime, FileReadAction("sub/.ssh/id_rsa"))
            listing = contents(runtime, FileEditAction(str(work / "sub"), command="view"))
            assert "sub/work" not in listing
    assert (home / ".bashrc").read_text() == "a person's\n"
    assert sorted(os.listdir(home)) == [".bashrc", ".ssh", "work"]


@needs_engine
@pytest.mark.thorough
def test_a_change_stays_within_the_directory_of_its_caller(
    runtime: Runtime, tmp_path: Path
) -> None:
    """Also where nobody is asked."""
    work = tmp_path / "home" / "work"
    runtime.executor.confirmations.policy = "never"

    targets = itertools.cycle((work / "sub", tmp_path / "tmp"))

    def swap() -> None:
        os.symlink(next(targets), work / "new")
        os.replace(work / "new", work / "link")

    with changing(swap):
        for number in range(ROUNDS):
            contents(runtime, FileWriteAction(f"link/{number}", "x", within=""))
    assert os.listdir(tmp_path / "tmp") == []


def test_the_open_file_is_checked(tmp_path: Path) -> None:
    (tmp_path / "inside").mkdir()
    (tmp_path / "secret").write_text("x")
    (tmp_path / "inside" / "link").symlink_to(tmp_path / "secret")
    (tmp_path / "inside" / "folder").symlink_to(tmp_path)
    root = os.path.realpath(tmp_path / "inside")

    def is_inside(path: str) -> bool:
        return path.startswith(f"{root}/")

    with guarded_by(PathGuard(is_inside, is_inside)):
        with pytest.raises(OSError, match="about which nobody was asked"):
            open_guarded(tmp_path / "inside" / "link", os.O_RDONLY)
        with (
            pytest.raises(OSError, match="about which nobody was asked"),
            pinned(tmp_path / "inside" / "folder" / "secret"),
        ):
            pass
        with (
            pytest.raises(OSError, match="about which nobody was asked"),
            opened_directory(str(tmp_path / "inside" / "folder")),
        ):
            pass
        with pytest.raises(OSError, match="about which nobody was asked"):
            make_parents(tmp_path / "inside" / "folder" / "made" / "file")
        made = make_parents(tmp_path / "inside" / "a" / "b" / "file")
        assert made == [tmp_path / "inside" / "a", tmp_path / "inside" / "a" / "b"]
        assert made[1].is_dir()
        with pinned(tmp_path / "inside" / "new") as target:
            target.write_text("y")
    assert not (tmp_path / "made").exists()
    assert (tmp_path / "inside" / "new").read_text() == "y"


@pytest.mark.parametrize("old", ["one\n", None])
def test_a_persons_undo_follows_no_new_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: str | None
) -> None:
    work, outside = tmp_path / "work", tmp_path / "outside"
    for each in (work / "sub", outside):
        each.mkdir(parents=True)
    (outside / "a.txt").write_text("a person's\n")
    editor, path = FileEditor(workspace_root=work), work / "sub" / "a.txt"
    if old is not None:
        path.write_text(old)
        editor(command="str_replace", path=path, old_str="one", new_str="two")
    else:
        editor(command="create", path=path, file_text="two\n")
    real = atomic_write.fingerprint_of

    def swap(checked: Path) -> Any:
        fingerprint = real(checked)
        if not (work / "sub").is_symlink():
            (work / "sub").rename(work / "away")
            (work / "sub").symlink_to(outside)
        return fingerprint

    monkeypatch.setattr(atomic_write, "fingerprint_of", swap)
    with suppress(EditorError):
        editor(command="undo_edit", path=path)
    assert (outside / "a.txt").read_text() == "a person's\n"
    assert os.listdir(outside) == ["a.txt"]
