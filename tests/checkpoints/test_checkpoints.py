"""A workspace comes back as it was, and what others did in the meantime is not lost."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from oh_jupyter.checkpoints import Checkpoints, Limits
from oh_jupyter.errors import CheckpointError
from oh_jupyter.state.location import ledger_folder
from tests.checkpoints.workspace import Contents, contents, work


@pytest.fixture
def checkpoints(root: Path, tmp_path: Path) -> Checkpoints:
    return Checkpoints(root, tmp_path / "kept")


def sessions(default: int, slow: int) -> list[object]:
    return [
        *range(default),
        *(pytest.param(i, marks=pytest.mark.slow) for i in range(default, slow)),
    ]


@pytest.mark.parametrize("seed", sessions(8, 500))
def test_random_work_is_undone_to_the_byte(root, checkpoints, seed):
    dice = random.Random(seed)
    for _ in range(dice.randrange(20)):
        work(root, dice)
    moments = []
    for turn in range(3):
        moments.append((checkpoints.begin(f"turn {turn}").id, contents(root)))
        for _ in range(dice.randrange(1, 15)):
            work(root, dice)
        if dice.random() < 0.7:
            checkpoints.end(moments[-1][0])
    last = contents(root)
    dice.shuffle(moments)
    for id, then in moments:
        assert checkpoints.rewind_contents(id) == differences(root, last, then)
        checkpoints.rewind(id)
        assert contents(root) == then
        newest = checkpoints.entries()[-1]
        checkpoints.rewind(newest.id)
        assert contents(root) == last
    for id, then in moments:
        now = contents(root)
        expected = differences(root, now, then)
        assert checkpoints.rewind_contents(id, everything=True) == expected
        checkpoints.rewind(id, everything=True)
        assert contents(root) == then


def differences(
    root: Path, now: Contents, then: Contents
) -> dict[Path, tuple[bytes | None, bytes | None]]:
    """Both contents of each file and link whose contents or permission bits differ."""
    absent = ("absent", 0, None)
    result = {}
    for name in now.keys() | then.keys():
        pair = now.get(name, absent), then.get(name, absent)
        contents = [None if kind == "directory" else data for kind, _, data in pair]
        if pair[0] != pair[1] and contents != [None, None]:
            result[root / name] = (contents[0], contents[1])
    return result


REWIND = """
import os, sys
from oh_jupyter.checkpoints import Checkpoints, git, rewind
steps = int(sys.argv[3])
def dying(function):
    def call(*args, **kwargs):
        global steps
        steps -= 1
        if steps < 0:
            os.kill(os.getpid(), 9)
        return function(*args, **kwargs)
    return call
os.unlink, os.rmdir, os.chmod = dying(os.unlink), dying(os.rmdir), dying(os.chmod)
git.Git.run = dying(git.Git.run)
Checkpoints(sys.argv[1], sys.argv[2]).rewind(1)
"""


@pytest.mark.parametrize("seed", sessions(2, 40))
def test_a_killed_rewind_is_finished_by_the_next(root, checkpoints, seed):
    dice = random.Random(seed)
    for _ in range(15):
        work(root, dice)
    then = contents(root)
    checkpoints.begin("turn")
    for _ in range(15):
        work(root, dice)
    checkpoints.end(1)
    for steps in range(3, 30, 7):
        command = [sys.executable, "-c", REWIND, root, checkpoints.directory, str(steps)]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode in (0, -signal.SIGKILL), done.stderr
    checkpoints.rewind(1)
    assert contents(root) == then


def test_a_file_that_is_made_again_keeps_its_permissions(root, checkpoints):
    """Whatever permissions most files had while it was not there."""

    def make(*names: str, mode: int) -> None:
        for name in names:
            (root / name).write_text("the same\n")
            (root / name).chmod(mode)

    make("again", mode=0o644)
    then = contents(root)
    turn = checkpoints.begin("turn")
    (root / "again").unlink()
    make("a", "b", "c", mode=0o444)
    checkpoints.begin("another")
    make("again", "d", "e", "f", mode=0o644)
    checkpoints.rewind(turn.id)
    assert contents(root) == then


def test_many_files_at_once(root, checkpoints):
    for i in range(1000):
        (root / f"{i}.txt").write_text(f"{i}\n")
    before = contents(root)
    turn = checkpoints.begin("turn")
    shutil.rmtree(root)
    root.mkdir()
    checkpoints.end(turn.id)
    checkpoints.rewind(turn.id)
    assert contents(root) == before
    objects = checkpoints.directory / "files.git" / "objects"
    assert len(list(objects.rglob("*.pack"))) == 1


def test_later_changes_by_others_stay(root, checkpoints):
    (root / "ours.txt").write_text("".join(f"line {i}\n" for i in range(30)))
    (root / "both.txt").write_text("one\n")
    turn = checkpoints.begin("turn")
    (root / "ours.txt").write_text((root / "ours.txt").read_text().replace("line 3\n", "agent\n"))
    (root / "both.txt").write_text("agent\n")
    (root / "made.txt").write_text("by the agent\n")
    checkpoints.end(turn.id)
    (root / "ours.txt").write_text((root / "ours.txt").read_text() + "the person's\n")
    (root / "both.txt").write_text("the person's\n")
    (root / "person.txt").write_text("new\n")
    plan = checkpoints.preview(turn.id)
    assert {change.path: change.kind for change in plan.changes} == {
        "made.txt": "delete",
        "ours.txt": "merge",
    }
    assert list(plan.kept) == ["both.txt"]
    assert str(plan) == (
        "delete      made.txt\nmerge       ours.txt\n"
        "keep        both.txt  (changed by others since, where the turn changed it, too)"
    )
    assert checkpoints.rewind(turn.id) == plan
    lines = "".join(f"line {i}\n" for i in range(30))
    assert (root / "ours.txt").read_text() == lines + "the person's\n"
    assert (root / "both.txt").read_text() == "the person's\n"
    assert (root / "person.txt").read_text() == "new\n"
    assert not (root / "made.txt").exists()
    checkpoints.rewind(turn.id, everything=True)
    assert (root / "both.txt").read_text() == "one\n"
    assert not (root / "person.txt").exists()


def test_permissions_of_all_files_come_back(root, checkpoints):
    for name in "abc":
        (root / name).write_text(name)
        (root / name).chmod(0o644)
    turn = checkpoints.begin("turn")
    for name in "abc":
        (root / name).chmod(0o600)
    checkpoints.end(turn.id)
    checkpoints.rewind(turn.id)
    assert {(root / name).stat().st_mode & 0o777 for name in "abc"} == {0o644}


def test_a_file_made_private_stays_private(root, checkpoints):
    for name in "abc":
        (root / name).write_text(name)
        (root / name).chmod(0o644)
    turn = checkpoints.begin("turn")
    (root / "made").write_text("x")
    checkpoints.end(turn.id)
    (root / "a").chmod(0o600)
    checkpoints.rewind(turn.id)
    assert (root / "a").stat().st_mode & 0o777 == 0o600
    checkpoints.rewind(turn.id, everything=True)
    assert (root / "a").stat().st_mode & 0o777 == 0o644


def test_work_between_turns_stays(root, checkpoints):
    first = checkpoints.begin("first")
    (root / "a").write_text("agent\n")
    checkpoints.end(first.id)
    (root / "b").write_text("person\n")
    second = checkpoints.begin("second")
    (root / "c").write_text("agent\n")
    checkpoints.end(second.id)
    checkpoints.rewind(first.id)
    assert sorted(os.listdir(root)) == ["b"]


def test_a_mark_is_a_place_to_go_back_to(root, checkpoints):
    (root / "a").write_text("1")
    mark = checkpoints.begin("before I try", kind="mark")
    (root / "a").write_text("2")
    assert not checkpoints.preview(mark.id)
    checkpoints.rewind(mark.id, everything=True)
    assert (root / "a").read_text() == "1"


def test_neither_attributes_nor_an_own_repository_matter(root, checkpoints):
    subprocess.run(["git", "init", "-q", root], check=True)
    (root / ".gitattributes").write_text("* text=auto eol=crlf ident\n*.bin filter=lfs\n")
    (root / "a.txt").write_bytes(b"$Id$\nmixed\r\nends\n")
    (root / "b.bin").write_bytes(b"\0\1")
    inner = root / "inner"
    subprocess.run(["git", "init", "-q", inner], check=True)
    (inner / "x").write_text("1\n")
    before = contents(root)
    own = sorted(str(p) for p in (root / ".git").rglob("*"))
    turn = checkpoints.begin("turn")
    shutil.rmtree(inner / ".git" / "hooks", ignore_errors=True)
    (root / "a.txt").write_bytes(b"other\n")
    (root / "b.bin").unlink()
    (inner / "x").write_text("2\n")
    (inner / "y").write_text("new\n")
    checkpoints.end(turn.id)
    checkpoints.rewind(turn.id)
    assert contents(root) == before
    assert sorted(str(p) for p in (root / ".git").rglob("*")) == own


def test_ignored_and_too_large_files_are_left_alone(root, tmp_path):
    checkpoints = Checkpoints(root, tmp_path / "kept", limits=Limits(file_bytes=1000))
    (root / ".gitignore").write_text("data/\n")
    (root / "data").mkdir()
    (root / "data" / "d").write_text("1")
    (root / "grows").write_text("small")
    turn = checkpoints.begin("turn")
    (root / "data" / "d").write_text("2")
    (root / "grows").write_text("x" * 2000)
    (root / "large").write_text("x" * 2000)
    checkpoints.end(turn.id)
    plan = checkpoints.rewind(turn.id)
    assert plan.kept == {"grows": "is not kept by checkpoints: larger than 0.000953674 MB"}
    assert (root / "data" / "d").read_text() == "2"
    assert (root / "large").exists()
    assert (root / "grows").stat().st_size == 2000


@pytest.mark.parametrize("name", [".", "a user"])
def test_of_a_home_directory_the_hidden_part_is_left_alone(root, checkpoints, monkeypatch, name):
    home = root / name
    monkeypatch.setenv("HOME", str(home))
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh" / "key").write_text("secret")
    (home / "work").mkdir()
    (home / "work" / ".env").write_text("1")
    turn = checkpoints.begin("turn")
    (home / "work" / ".env").write_text("2")
    (home / ".ssh" / "key").unlink()
    env = (home / "work" / ".env").relative_to(root)
    assert str(checkpoints.preview(turn.id, everything=True)) == f"restore     {env}"


def test_checkpoints_are_readable_only_by_their_owner(root, checkpoints):
    secret = root / "secret"
    secret.write_text("key")
    secret.chmod(0o600)
    turn = checkpoints.begin("turn")
    secret.unlink()
    checkpoints.rewind(turn.id)
    assert secret.stat().st_mode & 0o777 == 0o600
    assert checkpoints.directory.stat().st_mode & 0o077 == 0


def test_a_folder_replaced_by_a_link_comes_back(root, checkpoints):
    (root / "folder").mkdir()
    (root / "folder" / "x").write_text("x")
    (root / "other").mkdir()
    (root / "other" / "x").write_text("other")
    before = contents(root)
    turn = checkpoints.begin("turn")
    shutil.rmtree(root / "folder")
    (root / "folder").symlink_to("other")
    checkpoints.end(turn.id)
    checkpoints.rewind(turn.id)
    assert contents(root) == before


def test_processes_share_the_checkpoints_of_a_workspace(root, checkpoints):
    script = (
        "import sys; from oh_jupyter.checkpoints import Checkpoints\n"
        "for i in range(5): Checkpoints(sys.argv[1], sys.argv[2]).begin(f'{sys.argv[3]} {i}')"
    )
    command = [sys.executable, "-c", script, root, checkpoints.directory]
    running = [subprocess.Popen([*command, name]) for name in "ab"]
    assert [process.wait() for process in running] == [0, 0]
    entries = checkpoints.entries()
    assert [entry.id for entry in entries] == list(range(1, 11))
    assert {entry.label for entry in entries} == {f"{name} {i}" for name in "ab" for i in range(5)}


def test_leftovers_of_an_interrupted_git_do_no_harm(root, checkpoints):
    checkpoints.begin("one")
    (checkpoints.directory / "files.git" / "index.lock").touch()
    assert checkpoints.begin("two").id == 2
    assert [entry.label for entry in checkpoints.entries()] == ["one", "two"]


def test_a_killed_creation_of_the_repository_is_completed(root, checkpoints):
    """Whatever git had created of it, down to the first file."""
    checkpoints.begin("one")
    files = checkpoints.directory / "files.git"
    shutil.rmtree(files / "info")
    checkpoints.begin("two")
    shutil.rmtree(files)
    files.mkdir()
    (files / "HEAD").write_text("ref: refs/heads/main\n")
    turn = checkpoints.begin("three")
    (root / "agents").touch()
    checkpoints.end(turn.id)
    checkpoints.rewind(turn.id)
    assert not (root / "agents").exists()


def test_old_checkpoints_are_forgotten(root, checkpoints, monkeypatch):
    monkeypatch.setattr("oh_jupyter.checkpoints.store.MAX_CHECKPOINTS", 2)
    for i in range(6):
        checkpoints.begin(str(i))
    assert [entry.label for entry in checkpoints.entries()] == ["2", "3", "4", "5"][
        -len(checkpoints.entries()) :
    ]
    assert len(checkpoints.entries()) < 4
    newest = checkpoints.entries()[-1]
    assert newest.id == 6
    with pytest.raises(CheckpointError, match=r"No checkpoint 1 in .*; %oh_rewind lists"):
        checkpoints.rewind(1)


def test_a_turn_with_many_pauses_is_one_checkpoint(root, checkpoints):
    turn = checkpoints.begin("long")
    checkpoints.begin("here", kind="mark")
    for i in range(40):
        (root / f"{i}").touch()
        checkpoints.end(turn.id)
        checkpoints.resume(turn.id)
    assert [entry.label for entry in checkpoints.entries()] == ["long", "here"]
    again = Checkpoints(root, checkpoints.directory)
    checkpoints.close()
    assert len(again.rewind(turn.id).changes) == 40


def test_originals_of_turns_in_progress(root, checkpoints):
    (root / "agents").write_text("before")
    turn = checkpoints.begin("one")
    (root / "agents").write_text("1")
    checkpoints.end(turn.id)
    known = {root / "agents": b"before"}
    assert checkpoints.originals(0) == checkpoints.originals(0) == known
    checkpoints.resume(turn.id)
    (root / "made").touch()
    checkpoints.end(turn.id)
    other = checkpoints.begin("two")
    (root / "agents").write_text("2")
    checkpoints.end(other.id)
    known[root / "made"] = None
    assert checkpoints.originals(0) == checkpoints.originals(0) == known
    assert checkpoints.originals(other.time) == {root / "agents": b"1"}
    assert checkpoints.first_change("made", 0) == turn.id


def test_a_turn_under_way_is_not_forgotten(root, checkpoints, monkeypatch):
    monkeypatch.setattr("oh_jupyter.checkpoints.store.MAX_CHECKPOINTS", 2)
    turn = checkpoints.begin("long")
    (root / "a").touch()
    others = Checkpoints(root, checkpoints.directory)
    for i in range(6):
        others.begin(str(i), kind="mark")
    assert checkpoints.entries()[0].id == turn.id
    assert len(checkpoints.entries()) <= 4
    checkpoints.end(turn.id)
    checkpoints.rewind(turn.id)
    assert not (root / "a").exists()


def test_after_damage_of_the_ledger_checkpoints_begin_again(root, checkpoints, caplog):
    (root / "a").write_text("before")
    turn = checkpoints.begin("one")
    (root / "a").write_text("agent")
    checkpoints.end(turn.id)
    checkpoints.close()
    (checkpoints.directory / "ledger.db").write_bytes(os.urandom(20_000))
    with pytest.raises(CheckpointError, match="No checkpoint 1 in"):
        checkpoints.rewind(turn.id)
    assert "was damaged" in caplog.text
    assert (root / "a").read_text() == "agent"
    second = checkpoints.begin("two")
    assert second.id == 2, "an old number gets no new meaning"
    (root / "a").write_text("agent again")
    checkpoints.end(second.id)
    checkpoints.rewind(second.id)
    assert (root / "a").read_text() == "agent"


def test_without_their_files_there_are_no_checkpoints(root, checkpoints):
    checkpoints.begin("one")
    checkpoints.begin("two")
    shutil.rmtree(checkpoints.directory / "files.git")
    assert checkpoints.entries() == []
    assert checkpoints.begin("three").id == 1
    assert [entry.label for entry in checkpoints.entries()] == ["three"]


def test_workspaces_share_the_ledger_of_their_user(root, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    other = tmp_path / "other"
    other.mkdir()
    first, second = Checkpoints(root), Checkpoints(other)
    turn = first.begin("first")
    (root / "a").touch()
    first.end(turn.id)
    assert second.begin("second").id == 1
    (other / "a").touch()
    second.end(1)
    assert [entry.label for entry in first.entries()] == ["first"]
    assert [change.path for change in first.rewind(1).changes] == ["a"]
    assert (other / "a").exists()
    assert (tmp_path / "state" / "oh_jupyter" / "ledger.db").exists()


def test_checkpoints_are_beside_their_ledger(root, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", "/proc")  # it stands for a folder on a network
    assert ledger_folder() in Checkpoints(root).directory.parents


def test_a_ledger_that_cannot_be_written_is_reported(root, checkpoints):
    checkpoints.directory.mkdir()
    (checkpoints.directory / "ledger.db").mkdir()
    with pytest.raises(CheckpointError, match=r"turns in .* not recorded now.*ledger\.db cannot"):
        checkpoints.begin("x")


def test_a_label_with_half_a_character_is_stored(checkpoints):
    checkpoints.begin("a \ud83d")
    assert [entry.label for entry in checkpoints.entries()] == ["a ?"]


def test_clear_errors(root, tmp_path, monkeypatch):
    for name in "abc":
        (root / name).write_text(name)
    with pytest.raises(CheckpointError, match="has 3 files, more than the limit of 2"):
        Checkpoints(root, tmp_path / "few", limits=Limits(files=2)).begin("x")
    with pytest.raises(CheckpointError, match=r"would copy 0 MB, more than .* with a \.gitignore"):
        Checkpoints(root, tmp_path / "small", limits=Limits(total_bytes=2)).begin("x")
    (tmp_path / "file").touch()
    with pytest.raises(CheckpointError, match=r"cannot be stored in .*: Not a directory"):
        Checkpoints(root, tmp_path / "file" / "x").begin("x")
    monkeypatch.setenv("PATH", "")
    with pytest.raises(
        CheckpointError, match="Checkpoints need git, and there is none on the PATH"
    ):
        Checkpoints(root, tmp_path / "other").begin("x")
