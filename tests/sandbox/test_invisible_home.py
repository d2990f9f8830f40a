"""A box sees of a home directory what programs need, and nothing else."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from oh_jupyter.config import Settings
from oh_jupyter.containment import is_within
from oh_jupyter.events import CmdOutputObservation, CmdRunAction
from oh_jupyter.sandbox import Box, find_engine, make_profile
from oh_jupyter.sandbox.mounts import own_folders, resolve
from oh_jupyter.sandbox.plain_settings import copy_settings
from oh_jupyter.shell import BashSession
from oh_jupyter.state.location import ledger_folder
from oh_jupyter.visibility import Visibility

needs_engine = pytest.mark.skipif(
    find_engine().program is None or sys.platform != "linux",
    reason="needs bubblewrap, and user namespaces",
)

SECRETS = (
    *(
        ".config/rclone/rclone.conf",
        ".psql_history",
        ".zshenv",
        ".config/new-tool/token",
        "notes.txt",
    ),
    *(".local/share/new/login", ".newrc", "Documents/salary.csv", ".cargo/credentials.toml"),
    *(".cache/huggingface/token", ".config/git/credentials", "other/.env", "notes.txt"),
)
SHOWN = (".cargo/registry/index", ".nvm/versions/node", ".cache/pip/wheel", "tools/x/lib/part")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with secrets, programs and a project."""
    home = tmp_path / "home"
    for name in (*SECRETS, *SHOWN):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text("outside-secret")
    (home / ".gitconfig").write_text(
        '[user]\n\tname = "A # \\"B\\" C"\n\temail = a@b.example\n[core]\n\tpager = touch pwned\n'
        "[credential]\n\thelper = outside-secret\n[safe]\n\tdirectory = *\n"
    )
    (home / ".npmrc").write_text(
        "registry=https://npm.example/\n//npm.example/:_authToken=outside-secret\n"
        "@mine:registry=https://me:outside-secret@npm.example/\n"
    )
    (home / ".config" / "pip").mkdir()
    (home / ".config" / "pip" / "pip.conf").write_text(
        "[global]\nindex-url = https://a.example/simple\nextra-index-url =\n    https://b.example\n"
        "    https://me:outside-secret@c.example\nproxy = http://outside-secret\n"
    )
    (home / "project").mkdir()
    return home


def run_in(box: Box, home: Path, workspace: Path, command: str) -> str:
    env = {"HOME": str(home), "PATH": os.environ["PATH"]}
    with BashSession(workspace, None, 60, enclosure=box, env=env) as session:
        observation = session.execute(CmdRunAction(command, blocking=True))
    box.close()
    assert isinstance(observation, CmdOutputObservation)
    return observation.content


@needs_engine
def test_a_box_sees_programs_and_the_project_only(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "tools" / "x" / "bin").mkdir()
    path = f"{home}/tools/x/bin{os.pathsep}{os.environ['PATH']}"
    monkeypatch.setenv("PATH", path)
    profile = make_profile(str(home / "project"), homes=[str(home)], visible=["../Documents"])
    shown = [name for name in (*SECRETS, *SHOWN) if name.startswith(("Documents", *SHOWN))]
    command = f"cd {home}; grep -rlsI outside-secret . | sort; touch new; touch project/new; ls -1a"
    lines = run_in(Box(profile, find_engine()), home, home / "project", command).splitlines()
    assert {line.removeprefix("./") for line in lines if "/" in line} >= set(shown)
    assert not [name for name in SECRETS if f"./{name}" in lines and name not in shown]
    assert "touch: cannot touch 'new': Read-only file system" in lines
    assert (home / "project" / "new").exists()
    assert {"Documents", "project", ".gitconfig"} <= set(lines)


@needs_engine
def test_a_home_that_is_the_workspace_hides_its_dot_files(home: Path) -> None:
    profile = make_profile(str(home), homes=[str(home)])
    command = (
        "cat .zshenv .config/rclone/rclone.conf .newrc notes.txt; echo x >.newrc; mkdir -p .ssh/x "
        ".ipython/profile_default/startup; echo x >.config/x; echo x >mine; cat mine"
    )
    shown = run_in(Box(profile, find_engine()), home, home, command)
    assert shown.count("outside-secret") == 1
    assert shown.endswith("x")
    assert (home / "mine").read_text() == "x\n"
    assert (home / ".newrc").read_text() == "outside-secret"
    assert not {".ipython", ".ssh", ".bashrc"} & set(os.listdir(home))
    assert not (home / ".config" / "x").exists()


@needs_engine
def test_the_parents_of_a_hidden_path_stay_hidden(home: Path) -> None:
    """Also in a home that is the workspace, where a rename of the parents would show the path."""
    runtime = home / ".local" / "share" / "jupyter" / "runtime"
    runtime.mkdir(parents=True)
    profile = make_profile(str(home), homes=[str(home)], own_folders=[str(runtime)])
    command = (
        "echo x >.local/share/x; mkdir -p .local/share/jupyter/kernels; cat .local/share/new/*"
    )
    shown = run_in(Box(profile, find_engine()), home, home, command)
    assert "outside-secret" not in shown
    assert sorted(os.listdir(home / ".local" / "share")) == ["jupyter", "new"]
    assert os.listdir(home / ".local" / "share" / "jupyter") == ["runtime"]


def test_settings_without_secrets_are_copied(home: Path, tmp_path: Path) -> None:
    (tmp_path / "copies").mkdir()
    copies = copy_settings([str(home)], str(tmp_path / "copies"))
    text = {os.path.relpath(inside, home): Path(copy).read_text() for copy, inside in copies}
    assert text.keys() == {".gitconfig", ".config/pip/pip.conf", ".npmrc"}
    assert "outside-secret" not in "".join(text.values())
    assert text[".npmrc"] == "registry=https://npm.example/\n"
    assert text[".config/pip/pip.conf"] == (
        "[global]\nindex-url = https://a.example/simple\nextra-index-url =\n    https://b.example\n"
    )
    assert "pager" not in text[".gitconfig"]
    assert '\tname = "A # \\"B\\" C"\n' in text[".gitconfig"]


@needs_engine
def test_git_works_with_the_copy(home: Path) -> None:
    profile = make_profile(str(home / "project"), homes=[str(home)])
    command = (
        "git init -q x && cd x && git commit -q --allow-empty -m x && git log --format='%an <%ae>'"
    )
    shown = run_in(Box(profile, find_engine()), home, home / "project", command)
    assert shown == 'A # "B" C <a@b.example>'


@pytest.mark.parametrize("workspace", ["project", "."])
def test_questions_cover_exactly_the_hidden_paths(home: Path, workspace: str) -> None:
    root = str((home / workspace).resolve())
    profile = make_profile(root, homes=[str(home)], visible=[str(home / "Documents")])
    mounts = resolve(profile)
    rules = Visibility(profile.hidden, profile.homes, profile.visible, profile.writable)
    for name in (*SECRETS, *SHOWN, "project/x", ".zshenv"):
        path = str(home / name)
        above = [mount for mount in mounts if is_within(path, mount.path)]
        is_hidden = above[-1].kind in ("home", "hidden_directory", "hidden_file")
        assert rules.hides(path) == is_hidden, name


def test_a_ledger_beside_a_home_on_a_network_is_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/proc")  # it stands for a folder on a network
    assert str(ledger_folder()) in own_folders(Settings())
