"""Ordinary commands of a person between those of an agent.

A program that an agent has planted may run outside of its box only if the person's command is
asked to run files of the workspace, and the file is one of those: ``make`` runs the Makefile, and
``pytest`` the modules and tests. An agent changes these freely in its box, and the review names
them. All other commands may run nothing of the workspace: no git command, no new kernel, no cell,
no replay, no rewind and no part of this package.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from typing import NamedTuple, Protocol

from tests.sandbox.escape_world import World


class Desk(Protocol):
    """The person's side of a session.

    Attributes:
        world: The machine.
    """

    world: World

    def cell(self, code: str) -> str:
        """Run a cell of the notebook."""

    def session_id(self) -> str:
        """Return the id of the kernel's event log."""

    def end_shell(self) -> None:
        """End the shells, so that the next command starts a new box."""

    def new_kernel(self) -> None:
        """Replace the kernel by a new one."""

    def attempt_outside(self) -> None:
        """Let the agent ask for a change outside, without waiting for the result."""


class Command(NamedTuple):
    """A command, and the beginnings of trace lines that it may cause."""

    name: str
    call: Callable[[Desk], object]
    runs: tuple[str, ...] = ()


def _program(*arguments: str, folder: str = "", runs: tuple[str, ...] = ()) -> Command:
    return Command(
        " ".join(arguments), lambda desk: desk.world.person(*arguments, folder=folder), runs
    )


def _cell(code: str, runs: tuple[str, ...] = ()) -> Command:
    return Command(code, lambda desk: desk.cell(code), runs)


def _replay(desk: Desk, kind: str) -> None:
    desk.cell(f"_ = get_ipython().run_line_magic('oh_replay', '{desk.session_id()} --kind {kind}')")


def _approval_from_inside(desk: Desk) -> None:
    """Run a cell after an agent's code has registered an approval of whatever waits."""
    desk.attempt_outside()
    desk.cell("1 + 1")


GIT = (
    _program("git", "status"),
    _program("git", "status", "--short"),
    _program("git", "diff"),
    _program("git", "log", "--oneline"),
    _program("git", "add", "-A"),
    _program("git", "commit", "-qam", "work"),
    _program("git", "stash"),
    _program("git", "checkout", "-q", "-B", "other"),
    _program("git", "branch", "-a"),
    _program("git", "status", folder="vendor/lib"),
    _program("git", "status", folder="part"),
    _program("git", "submodule", "status"),
    _program("git", "gc", "--quiet", "--auto"),
)
CELLS = (
    _cell("1 + 1"),
    _cell("planted = 'text'"),
    _cell("%oh_run git status"),
    _cell("%oh_run ls"),
    _cell("%oh_log"),
    _cell("%oh_store ls"),
    _cell("%oh_confirm"),
    _cell("%oh_rewind"),
    _cell("%oh_rewind last --yes"),
    _cell("%oh_rewind last --yes --everything"),
    _cell("%oh_rewind last --diff"),
)
OTHERS = (
    _program("make", runs=("code:make", "code:git")),
    _program("git", "config", "user.name", "another"),
    _program("git", "config", "--unset", "user.name"),
    Command("end the shells", lambda desk: desk.end_shell()),
    Command("a cell while a question waits", _approval_from_inside),
    Command("%oh_replay write", lambda desk: _replay(desk, "write")),
    Command("%oh_replay edit", lambda desk: _replay(desk, "edit")),
    Command("%oh_replay run", lambda desk: _replay(desk, "run")),
)
SLOW = (
    _program(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", runs=("code:",)),
    Command("a new kernel", lambda desk: desk.new_kernel()),
    Command("a new kernel", lambda desk: desk.new_kernel()),
)
"""Commands that take a second or longer."""


def command(dice: random.Random) -> Command:
    """Return a random command; the slow ones are rare."""
    chance = dice.random()
    if chance < 0.015:
        return dice.choice(SLOW)
    if chance < 0.1:
        return dice.choice(OTHERS)
    return dice.choice(GIT if chance < 0.65 else CELLS)
