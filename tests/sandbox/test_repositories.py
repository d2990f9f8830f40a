"""A box's changes of a repository run no program when a person uses git."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from oh_jupyter.events import CmdRunAction
from oh_jupyter.sandbox import Box, find_engine, make_profile
from oh_jupyter.shell import BashSession

pytestmark = pytest.mark.skipif(
    find_engine().program is None or sys.platform != "linux",
    reason="needs bubblewrap, and user namespaces",
)

EVIL = """
mkdir -p evil/objects evil/refs
echo "ref: refs/heads/main" >evil/HEAD
printf '[core]\\nrepositoryformatversion = 0\\nfsmonitor = "touch CANARY; false"\\n' >evil/config
"""

ATTEMPTS = (
    "echo ../evil >.git/commondir",
    "echo $PWD/evil >.git/commondir",
    "rm .git/commondir; ln -s $PWD/c .git/commondir",
    "cp evil/config .git/config.worktree",
    "cp evil/config included; cp evil/config .git/config",
    "echo 'touch CANARY' >shared-hooks/post-index-change; chmod +x shared-hooks/*",
    "mv shared-hooks s; mkdir shared-hooks; cp evil/config shared-hooks/post-index-change",
    "mv .git g; cp -r g .git; cp evil/config .git/config",
    "echo 'gitdir: evil' >g; mv -fT g .git",
    "echo ../../../../evil >.git/modules/a/b/commondir",
    "cp evil/config .git/modules/a/b/config",
    "cp evil/config sub/.git/config; echo ../../evil >sub/.git/commondir",
    "cp evil/config a/b/c/d/e/.git/config",
)

USES = ("status", "commit -qm x --allow-empty", "log", "-C sub status", "-C module status", "diff")


def git(folder: Path, command: str) -> None:
    identity = ("-c", "user.name=a", "-c", "user.email=a@b.example")
    program = ["git", *identity, *command.split(" ")]
    subprocess.run(program, cwd=folder, capture_output=True, timeout=30, check=False)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with an included configuration, shared hooks, and two more repositories."""
    work = tmp_path / "work"
    (work / "shared-hooks").mkdir(parents=True)
    (work / "included").write_text("[pull]\n\tff = only\n")
    for command in ("init -q", "init -q sub", "config include.path ../included"):
        git(work, command)
    git(work, "config core.hooksPath shared-hooks")
    (work / "module").mkdir()
    (work / ".git" / "modules" / "a").mkdir(parents=True)
    git(work, f"init -q --separate-git-dir={work}/.git/modules/a/b module")
    for command in ("init -q", "commit -qm x --allow-empty", "-C ../../../.. add b/c/d/e"):
        (work / "a" / "b" / "c" / "d" / "e").mkdir(parents=True, exist_ok=True)
        git(work / "a" / "b" / "c" / "d" / "e", command)
    return work


def test_no_program_runs(repository: Path, tmp_path: Path) -> None:
    canary = tmp_path / "work" / "canary"
    box = Box(make_profile(str(repository), homes=[]), find_engine())
    env = {"HOME": str(tmp_path), "PATH": os.environ["PATH"]}
    with BashSession(repository, None, 60, enclosure=box, env=env) as session:
        for attempt in (EVIL, *ATTEMPTS):
            command = attempt.replace("CANARY", str(canary))
            session.execute(CmdRunAction(f"{{ {command}\n}}", blocking=True))
            for use in USES:
                git(repository, use)
            assert not canary.exists(), attempt
    box.close()
    for use in USES:
        git(repository, use)
    assert not canary.exists()
    assert not (repository / ".git" / "commondir").exists()
    log = subprocess.run(
        ["git", "log", "--oneline"], cwd=repository, capture_output=True, check=True
    )
    assert log.stdout.count(b"\n") == len(ATTEMPTS) + 2


def test_git_works_in_the_box(repository: Path, tmp_path: Path) -> None:
    box = Box(make_profile(str(repository), homes=[]), find_engine())
    env = {"HOME": str(tmp_path), "PATH": os.environ["PATH"]}
    commands = (
        "export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b",
        "export GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b",
        *("echo x >f && git add f && git commit -qm one", "git checkout -qb b && git mv f g"),
        *("git commit -qm two && git rebase -q master && git tag t && git gc -q", "git stash list"),
        *("git worktree add -q w && git -C w status --short", "git clone -q . copy"),
    )
    with BashSession(repository, None, 60, enclosure=box, env=env) as session:
        for command in commands:
            result = session.execute(CmdRunAction(command, blocking=True))
            assert (result.exit_code, result.content) == (0, ""), command  # type: ignore[union-attr]
    box.close()
    shown = subprocess.run(["git", "status", "--short", "-b"], cwd=repository, capture_output=True)
    assert shown.stdout.startswith(b"## b\n")


def test_a_configuration_that_is_a_pipe_does_not_block(repository: Path) -> None:
    (repository / "sub" / ".git" / "config").unlink()
    os.mkfifo(repository / "sub" / ".git" / "config")
    profile = make_profile(str(repository), homes=[])
    assert str(repository / "sub" / ".git" / "hooks") in profile.nested
