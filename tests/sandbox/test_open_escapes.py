"""Escapes that the mounts of a box do not end: paths that are new, or that it did not look for.

A mount protects a path that exists when the box starts. So each of these attempts succeeds, and its
test is expected to fail until something else ends them; the review names such files.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from oh_jupyter.config import Settings
from oh_jupyter.events import CmdRunAction
from oh_jupyter.runtime import Runtime
from oh_jupyter.sandbox import find_engine
from tests.sandbox.escape_plants import put
from tests.sandbox.escape_world import World, make_world

pytestmark = [
    pytest.mark.skipif(
        find_engine().program is None or os.uname().sysname != "Linux",
        reason="needs bubblewrap, and user namespaces",
    ),
    pytest.mark.xfail(reason="mounts do not protect new paths", strict=True),
]

IDENTITY = "-c user.name=a -c user.email=a@example.org"


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    with make_world(home_is_workspace=False) as world:
        for name, value in world.environment().items():
            monkeypatch.setenv(name, value)
        yield world


def settings_in(world: World) -> Settings:
    return Settings(
        workspace_dir=str(world.work),
        file_store="memory",
        checkpoints="off",
        sandbox="required",
        confirmation="risky",
        confirmation_timeout=0.01,
    )


@pytest.fixture
def runtime(world: World) -> Iterator[Runtime]:
    runtime = Runtime(settings_in(world))
    yield runtime
    runtime.close()


def run(runtime: Runtime, command: str) -> str:
    return runtime.submit_action(CmdRunAction(command)).result(60).content


def append(world: World, path: str) -> str:
    return f"{put('settings', world.configuration('git:open'))}; cat settings >>{path}"


def test_a_new_repository_in_the_index(runtime: Runtime, world: World) -> None:
    """The outer repository's status asks for that of the inner one."""
    commit = f"git -C new {IDENTITY} commit -q --allow-empty -m x"
    run(runtime, f"git init -q new; {commit}; {append(world, 'new/.git/config')}; git add new")
    world.person("git", "status")
    assert world.fired() == []


def test_a_directory_that_becomes_a_bare_repository(runtime: Runtime, world: World) -> None:
    run(runtime, f"cd package; git init -q --bare .; {append(world, 'config')}")
    run(runtime, "git config -f config core.bare false; git config -f config core.worktree .")
    world.person("git", "status", folder="package")
    assert world.fired() == []


def test_a_directory_that_leads_to_a_new_repository(runtime: Runtime, world: World) -> None:
    run(runtime, f"git init -q new; {append(world, 'new/.git/config')}; cp new/.git/HEAD .")
    run(runtime, "echo 'gitdir: ../new/.git' >package/.git")
    world.person("git", "status", folder="package")
    assert world.fired() == []


def test_a_new_start_up_file_in_a_home_that_is_the_workspace(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with make_world(home_is_workspace=True) as world:
        monkeypatch.setenv("HOME", str(world.home))
        runtime = Runtime(settings_in(world))
        try:
            run(runtime, f"echo {world.mark} >~/.vimrc")
        finally:
            runtime.close()
        assert not (world.home / ".vimrc").exists()
