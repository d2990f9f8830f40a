"""A rewind neither overwrites nor removes a person's files."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import pytest

from oh_jupyter import writes
from oh_jupyter.checkpoints import Checkpoints, Limits
from oh_jupyter.errors import CheckpointError, LedgerError, OhJupyterError
from tests.checkpoints.workspace import contents, wait_for_the_clock


@pytest.fixture
def checkpoints(root: Path, tmp_path: Path) -> Checkpoints:
    return Checkpoints(root, tmp_path / "kept", limits=Limits(file_bytes=1000))


LARGE = "x" * 2000


def test_conflicting_files_are_kept_and_listed(root: Path, checkpoints: Checkpoints) -> None:
    for path in (".env", "conf/c", "out/x"):
        (root / path).parent.mkdir(exist_ok=True)
        (root / path).write_text("old\n")
    turn = checkpoints.begin("clean up")
    for path in ("conf", "out"):
        shutil.rmtree(root / path)
    (root / ".env").unlink()
    (root / ".gitignore").write_text(".env\nconf/\n")
    checkpoints.end(turn.id)
    (root / ".env").write_text("the person's\n")
    (root / "out").write_text(LARGE)
    (root / "conf").mkdir()
    (root / "conf" / "thesis.md").write_text("years\n")
    before = contents(root)

    plan = checkpoints.preview(turn.id)
    assert [(change.kind, change.path) for change in plan.changes] == [
        ("delete", ".gitignore"),
        ("create", "conf/c"),
    ]
    assert list(plan.kept) == [".env", "out", "out/x"]
    assert checkpoints.rewind(turn.id) == plan
    assert contents(root) == {
        **{path: state for path, state in before.items() if path != ".gitignore"},
        "conf/c": ("file", 0o644, b"old\n"),
    }
    checkpoints.rewind(checkpoints.entries()[-1].id)
    assert contents(root) == before

    checkpoints.rewind(turn.id, everything=True)
    assert (root / "out" / "x").read_text() == (root / ".env").read_text() == "old\n"
    checkpoints.rewind(checkpoints.entries()[-1].id)
    assert contents(root) == before


@pytest.mark.parametrize("noted", [True, False])
def test_a_turn_whose_process_died_has_only_proven_changes(
    root: Path, checkpoints: Checkpoints, noted: bool
) -> None:
    for name in ("a", "b"):
        (root / name).write_text("old\n")
    turn = checkpoints.begin("turn")
    (root / "a").write_text("agent\n")
    (root / "made").write_text("agent\n")
    if noted:
        wait_for_the_clock(root.parent)
        checkpoints.beat()
    checkpoints.close()
    (root / "b").write_text("person\n")
    (root / "new").write_text("person\n")  # perhaps at the time of the last sign of life

    again = Checkpoints(root, checkpoints.directory)
    again.settle()
    assert not again.entries()[0].is_open
    plan = again.rewind(turn.id)
    assert {change.path for change in plan.changes} == ({"a", "made"} if noted else set())
    assert {"b", "new"} <= plan.kept.keys()
    assert (root / "b").read_text() == (root / "new").read_text() == "person\n"
    assert (root / "a").read_text() == ("old\n" if noted else "agent\n")


def test_a_preview_names_partly_restored_files(root: Path, checkpoints: Checkpoints) -> None:
    (root / "out").write_text("the person's\n")
    turn = checkpoints.begin("clean up")
    (root / "out").unlink()
    checkpoints.close()  # as if its process had died, at an unknown time
    again = Checkpoints(root, checkpoints.directory)
    later = again.begin("build")
    (root / "out").mkdir()
    again.end(later.id)
    plan = again.preview(turn.id)
    assert plan.remove_directories == ["out"]
    assert plan.notes == [
        "out does not return to its state at the checkpoint: changed since by an unknown author; "
        "its turn has no known end. A rewind with --everything restores it."
    ]
    again.rewind(turn.id, everything=True)
    assert (root / "out").read_text() == "the person's\n"


def test_files_ignored_or_large_at_the_start_are_not_the_turns(
    root: Path, checkpoints: Checkpoints
) -> None:
    (root / ".gitignore").write_text("secret\n")
    (root / "secret").write_text("the person's\n")
    (root / "large").write_text(LARGE)
    turn = checkpoints.begin("turn")
    (root / ".gitignore").unlink()
    (root / "large").write_text("small now\n")
    checkpoints.end(turn.id)
    for everything in (False, True):
        plan = checkpoints.rewind(turn.id, everything=everything)
        assert "large" in plan.kept
        assert (root / "large").read_text() == "small now\n"
        assert (root / "secret").read_text() == "the person's\n"


def test_a_folder_replaced_by_a_file_ends_its_turn(root: Path, checkpoints: Checkpoints) -> None:
    (root / "out").mkdir(mode=0o700)
    (root / "out" / "x").write_text("old\n")
    before = contents(root)
    turn = checkpoints.begin("turn")
    shutil.rmtree(root / "out")
    (root / "out").write_text("x\n")
    ended = checkpoints.end(turn.id)
    assert not ended.is_open
    checkpoints.rewind(turn.id)
    assert contents(root) == before
    assert (root / "out").stat().st_mode & 0o777 == 0o700


def test_a_persons_link_and_mode_stay(root: Path, checkpoints: Checkpoints) -> None:
    (root / "data").mkdir()
    for path in ("data/d", "a"):
        (root / path).write_text("old\n")
    turn = checkpoints.begin("turn")
    for path in ("data/d", "a"):
        (root / path).write_text("agent\n")
    checkpoints.end(turn.id)
    (root / "a").chmod(0o600)
    (root / "data").rename(root / "moved")
    (root / "data").symlink_to("moved")
    plan = checkpoints.rewind(turn.id)
    assert "data/d" in plan.kept
    assert (root / "data").is_symlink()
    assert (root / "moved" / "d").read_text() == "agent\n"
    assert ((root / "a").read_text(), (root / "a").stat().st_mode & 0o777) == ("old\n", 0o600)


@pytest.mark.parametrize("saved", [False, True])
@pytest.mark.parametrize("is_open", [False, True])
def test_a_move_in_jupyter_during_a_turn_stays(
    root: Path, checkpoints: Checkpoints, saved: bool, is_open: bool
) -> None:
    (root / "data").mkdir()
    for path in ("data/d", "a.ipynb"):
        (root / path).write_text("the person's\n")
    turn = checkpoints.begin("turn")
    (root / "made").write_text("agent\n")
    for source, target in (("a.ipynb", "b.ipynb"), ("data", "set"), ("b.ipynb", "set/c.ipynb")):
        (root / source).rename(root / target)
        writes.note_move(str(root / source), str(root / target))
    if saved:
        (root / "set" / "c.ipynb").write_text("the person's, saved\n")
    before = contents(root)
    if not is_open:
        checkpoints.end(turn.id)

    plan = checkpoints.rewind(turn.id)
    assert [(change.kind, change.path) for change in plan.changes] == [("delete", "made")]
    assert not plan.make_directories
    assert not plan.remove_directories
    assert contents(root) == {path: state for path, state in before.items() if path != "made"}
    assert checkpoints.originals(0) == {root / "made": None}


@pytest.mark.parametrize("watched", [False, True])
def test_a_save_in_jupyter_during_a_step_stays(root: Path, tmp_path: Path, watched: bool) -> None:
    """The watch names the process of these writes, but that is the one that does the step."""
    checkpoints = Checkpoints(root, tmp_path / "kept", is_watched=watched)
    for name in ("thesis", "gone", "reported", "its"):
        (root / name).write_text("old\n")
    turn = checkpoints.begin("turn", in_steps=True)
    edit = checkpoints.begin_step("edit", turn=turn.id)
    (root / "reported").write_text("agent\n")
    checkpoints.end_step(edit, [str(root / "reported")])
    step = checkpoints.begin_step("work", turn=turn.id, root=os.getpid())
    for name in ("thesis", "new"):
        (root / name).write_text("the person's\n")
        writes.note_save(str(root / name))
    (root / "gone").unlink()
    writes.note_delete(str(root / "gone"))
    (root / "its").write_text("agent\n")
    checkpoints.end_step(step)
    writes.note_save(str(root / "reported"))
    checkpoints.end(turn.id)
    before = contents(root)

    plan = checkpoints.rewind(turn.id)
    assert [(change.kind, change.path) for change in plan.changes] == [
        ("restore", "its"),
        ("restore", "reported"),
    ]
    assert list(plan.kept) == ["gone", "new", "thesis"]
    old = ("file", 0o644, b"old\n")
    assert contents(root) == {**before, "reported": old, "its": old}


def test_a_persons_content_stays_after_the_agent_changed_its_mode(
    root: Path, checkpoints: Checkpoints
) -> None:
    turn = checkpoints.begin("turn", in_steps=True)
    mine, agents = root / "mine", root / "agents"
    mine.write_text("the person's\n")
    step = checkpoints.begin_step("work", turn=turn.id, root=os.getpid())
    agents.write_text("agent\n")
    for path in (mine, agents):
        path.chmod(0o600)
    checkpoints.end_step(step)
    plan = checkpoints.rewind(turn.id)
    assert [(change.kind, change.path) for change in plan.changes] == [
        ("delete", "agents"),
        ("permissions", "mine"),
    ]
    assert (mine.read_text(), mine.stat().st_mode & 0o777) == ("the person's\n", 0o644)


def test_the_products_own_state_is_not_the_workspaces(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(root / "[st] ate"))
    checkpoints = Checkpoints(root)
    turn = checkpoints.begin("turn")
    (root / "a").write_text("agent\n")
    checkpoints.end(turn.id)
    for id in (turn.id, 2, 3):
        checkpoints.rewind(id, everything=True)
    assert len(checkpoints.entries()) == 4
    assert not (root / "a").exists()


def test_small_and_not_ignored_files_of_an_inner_repository_are_copied(
    root: Path, checkpoints: Checkpoints
) -> None:
    subprocess.run(["git", "init", "-q", root / "inner"], check=True)
    (root / "inner" / ".gitignore").write_text(".env\n")
    (root / "inner" / ".env").write_text("secret\n")
    (root / "inner" / "large").write_text(LARGE)
    turn = checkpoints.begin("turn")
    shutil.rmtree(root / "inner")
    checkpoints.end(turn.id)
    plan = checkpoints.preview(turn.id)
    assert [change.path for change in plan.changes] == ["inner/.gitignore"]
    assert plan.notes == [
        "Commits, branches and the index of git repositories do not come back (inner)."
    ]


def test_a_commit_in_a_submodule_is_noted(root: Path, checkpoints: Checkpoints) -> None:
    def git(*arguments: object, folder: Path = root) -> None:
        person = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        subprocess.run(["git", *person, *map(str, arguments)], cwd=folder, check=True)

    library = root.parent / "library"
    for folder in (library, root):
        git("init", "-q", folder)
    git("commit", "-q", "--allow-empty", "-m", "one", folder=library)
    allowed = ("-c", "protocol.file.allow=always")
    git(*allowed, "submodule", "--quiet", "add", library, "sub")
    turn = checkpoints.begin("turn")
    git("commit", "-q", "--allow-empty", "-m", "two", folder=root / "sub")
    checkpoints.end(turn.id)
    assert checkpoints.preview(turn.id).notes == [
        "Commits, branches and the index of git repositories do not come back (sub)."
    ]


@pytest.mark.skipif(not hasattr(os, "setxattr"), reason="needs extended attributes")
def test_lost_attributes_are_noted(root: Path, checkpoints: Checkpoints) -> None:
    for name in ("deleted", "replaced", "kept"):
        (root / name).write_text("old\n")
        try:
            os.setxattr(root / name, "user.mine", b"1")
        except OSError:
            pytest.skip("this file system has no extended attributes")
    turn = checkpoints.begin("turn")
    (root / "deleted").unlink()
    (root / "new").write_text("agent\n")
    (root / "new").replace(root / "replaced")
    checkpoints.end(turn.id)
    plan = checkpoints.rewind(turn.id)
    assert plan.notes == [
        "deleted does not get its extended attributes back.",
        "replaced does not get its extended attributes back.",
    ]
    assert os.listxattr(root / "kept") == ["user.mine"]


def test_a_damaged_index_is_rebuilt(root: Path, checkpoints: Checkpoints) -> None:
    (root / "a").write_text("1\n")
    turn = checkpoints.begin("turn")
    (root / ".gitignore").write_text("a\n")
    (root / "a").write_text("2\n")
    (checkpoints.directory / "files.git" / "index").write_bytes(b"DIRC, but not an index")
    checkpoints.end(turn.id)
    checkpoints.rewind(turn.id)
    assert contents(root) == {"a": ("file", 0o644, b"1\n")}


def test_a_slow_workspace_times_out(
    root: Path, checkpoints: Checkpoints, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("oh_jupyter.checkpoints.snapshot.LIST_SECONDS", 0.0)
    with pytest.raises(CheckpointError, match="too large for checkpoints") as caught:
        checkpoints.begin("turn")
    assert caught.value.is_lasting
    with pytest.raises(CheckpointError, match="root of the file system") as caught:
        Checkpoints("/", root.parent / "of root").begin("turn")
    assert caught.value.is_lasting


def test_the_oldest_records_are_dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(writes, "MAX_ROWS", 20)
    paths = [os.path.realpath(tmp_path / str(number)) for number in range(100)]
    for path in paths:
        writes.note_delete(path)
    known = [write.path for write in writes.persons_writes(0.0)]
    assert known == paths[-20:]


def test_names_of_saved_files_need_not_be_unicode(tmp_path: Path) -> None:
    path = os.path.realpath(os.fsencode(tmp_path) + b"/caf\xe9")
    Path(os.fsdecode(path)).write_text("x")
    since = time.time() - 10
    writes.note_save(os.fsdecode(path))
    writes.note_move(os.fsdecode(path), os.fsdecode(path + b"\xe9"))
    known = [write for write in writes.persons_writes(since) if write.path == os.fsdecode(path)]
    assert [(write.kind, os.fsencode(write.target)) for write in known] == [
        ("save", b""),
        ("move", path + b"\xe9"),
    ]


def test_without_a_ledger_a_rewind_that_needs_it_changes_nothing(
    root: Path, checkpoints: Checkpoints, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    turn = checkpoints.begin("turn")
    (root / "made").write_text("agent\n")
    checkpoints.end(turn.id)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "state" / "oh_jupyter" / "ledger.db").mkdir(parents=True)
    with pytest.raises(OhJupyterError, match=r"ledger\.db cannot be read or written"):
        checkpoints.rewind(turn.id)
    with pytest.raises(LedgerError):
        writes.note_delete(str(root / "made"))
    assert writes.moves(0) == []
    assert (root / "made").read_text() == "agent\n"


def test_a_killed_rewind_claims_no_unfinished_work(
    root: Path, checkpoints: Checkpoints, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A person who does the same later has made that change."""
    for name in ("first", "notes"):
        (root / name).write_text(f"old {name}\n")
    turn = checkpoints.begin("turn")
    for name in ("first", "notes"):
        (root / name).write_text(f"agent {name}\n")
    checkpoints.end(turn.id)

    def die(*args: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("oh_jupyter.checkpoints.checkpoints.apply", die)
        with pytest.raises(KeyboardInterrupt):
            checkpoints.rewind(turn.id)
    (root / "notes").write_text("old notes\n")
    rewind = checkpoints.begin("later", kind="mark").id - 1
    assert checkpoints.rewind(rewind).changes == []
    assert (root / "notes").read_text() == "old notes\n"
    assert (root / "first").read_text() == "agent first\n"


@pytest.mark.parametrize("kind", ["deleted", "changed", "made", "permissions"])
def test_a_directory_that_becomes_a_link_during_a_rewind(
    root: Path, checkpoints: Checkpoints, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Nothing of where it leads is touched."""
    outside, path = root.parent / "outside", root / "sub" / "file"
    outside.mkdir()
    (outside / "file").write_text("a person's\n")
    (outside / "file").chmod(0o600)
    path.parent.mkdir()
    if kind != "deleted":
        path.write_text("a person's\n")
        path.chmod(0o644)
    turn = checkpoints.begin("turn")
    if kind == "permissions":
        path.chmod(0o755)
    elif kind == "made":
        path.unlink()
    else:
        path.write_text("agent\n")
    checkpoints.end(turn.id)

    def swap(*arguments: object) -> bool:
        if not (root / "sub").is_symlink():
            (root / "sub").rename(root / "away")
            (root / "sub").symlink_to(outside)
        return True

    monkeypatch.setattr("oh_jupyter.checkpoints.apply.is_now", swap)
    with suppress(CheckpointError):
        checkpoints.rewind(turn.id)
    assert (root / "sub").is_symlink()
    assert os.listdir(outside) == ["file"]
    assert (outside / "file").read_text() == "a person's\n"
    assert stat.S_IMODE((outside / "file").stat().st_mode) == 0o600
