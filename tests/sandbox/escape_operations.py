"""Operations of an agent that could read or change something outside of its workspace.

They act outside of the box, in the kernel, which judges each path. Every question that they cause
is rejected, because nobody answers it.
"""

from __future__ import annotations

import io
import json
import os
import random
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.sandbox.escape_doors import Door
from tests.sandbox.escape_plants import LINKS, RACES, targets
from tests.sandbox.escape_world import PROTECTED, REPOSITORIES, SECRETS, World

Operation = Callable[[Door], str]
Named = tuple[str, Operation]

SLOW_SHARE = 0.005
"""Share of the operations that start a process of ours, which takes a second."""

BELOW = (".bashrc", ".ssh/id_rsa", "new", "file", "authorized_keys")
"""Names below a link or a directory that changes."""

CONTROL = ("config", "hooks/pre-commit", "commondir", "config.worktree", "info/attributes")


@dataclass(frozen=True)
class Aim:
    """An operation's dice and machine, and a path at which it aims, "" for any."""

    dice: random.Random
    world: World
    path: str


def _path(aim: Aim) -> str:
    """Return a path that an operation must not reach, directly or through what a plant made."""
    dice, world = aim.dice, aim.world
    if aim.path:
        return f"{aim.path}/{dice.choice(BELOW)}" if aim.path == "sub" else aim.path
    link, race = dice.choice(LINKS), dice.choice(RACES)
    secret = dice.choice(SECRETS)
    inside = [
        link,
        race,
        f"{link}/{dice.choice(BELOW)}",
        f"sub/{dice.choice(BELOW)}",
        f"{dice.choice(REPOSITORIES)}/{dice.choice(CONTROL)}",
        f"{dice.choice(PROTECTED[1:4])}/settings.json",
        ".mcp.json",
        f"../{secret}",
        f"package/../../{secret}",
        f"/proc/self/root{world.home}/{secret}",
        f"/proc/self/cwd/../{secret}",
    ]
    outside = [dice.choice(targets(world)), f"{world.home}/{secret}", f"~/{secret}"]
    return dice.choice([*inside, *inside, *outside])


def _content(world: World, path: str) -> str:
    """Return what an agent writes there: a program that leaves a trace, or its mark."""
    name = os.path.basename(path)
    if name in ("config", "config.worktree"):
        return world.configuration("git:written")
    return world.program("git:written") if "hooks/" in path else f"{world.mark}\n"


def _absolute(world: World, path: str) -> str:
    return path if path.startswith(("/", "~")) else f"{world.work}/{path}"


def _write(aim: Aim) -> Named:
    path = _path(aim)
    content = _content(aim.world, path)
    return f"write {path}", lambda door: door.act("write", path=path, content=content)


def _read(aim: Aim) -> Named:
    path = _path(aim)
    return f"read {path}", lambda door: door.act("read", path=path)


def _edit(aim: Aim) -> Named:
    path = _absolute(aim.world, _path(aim))
    content = _content(aim.world, path)
    commands: list[dict[str, Any]] = [
        {"command": "create", "file_text": content},
        {"command": "str_replace", "old_str": "person", "new_str": aim.world.mark},
        {
            "command": "str_replace",
            "old_str": "a",
            "new_str": aim.world.mark,
            "enable_linting": True,
        },
        {"command": "insert", "insert_line": 0, "new_str": content},
        {"command": "write", "content": content},
        {"command": "view"},
        {"command": "undo_edit"},
        {"command": "notebook_edit", "cell": 0, "new_str": content},
    ]
    chosen = aim.dice.choice(commands)
    return f"{chosen['command']} {path}", lambda door: door.act("edit", path=path, **chosen)


def _patch(aim: Aim) -> Named:
    """Apply a patch whose names lead outside of its own path."""
    names = [_path(aim) for _ in range(aim.dice.randrange(1, 4))]
    top = aim.dice.choice([str(aim.world.work), str(aim.world.home), "/", str(aim.world.root)])
    lines = ["*** Begin Patch"]
    for name in names:
        content = _content(aim.world, name).splitlines()
        lines += [f"*** Add File: {name}", *(f"+{line}" for line in content)]
    patch = "\n".join([*lines, "*** End Patch"])
    arguments = {"command": "apply_patch", "path": top, "content": patch}
    return f"apply_patch of {names} in {top}", lambda door: door.act("edit", **arguments)


def _upload(aim: Aim) -> Named:
    path = _absolute(aim.world, _path(aim))
    folder, name = os.path.split(path)
    content = _content(aim.world, path).encode()
    return f"upload {path}", lambda door: door.upload(folder, name, content, recursive=False)


def _upload_archive(aim: Aim) -> Named:
    names = [_path(aim).lstrip("/~") for _ in range(1 if aim.path else 3)]
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in dict.fromkeys(names):
            archive.writestr(name, _content(aim.world, name))
    folder = aim.dice.choice(
        [str(aim.world.work), str(aim.world.home), f"{aim.world.work}/{aim.dice.choice(LINKS)}"]
    )

    def upload(door: Door) -> str:
        return door.upload(folder, "files.zip", buffer.getvalue(), recursive=True)

    return f"upload of {names} to {folder}", upload


def _download(aim: Aim) -> Named:
    path = _absolute(aim.world, _path(aim))
    if aim.dice.random() < 0.3:
        path = (
            f"{aim.dice.choice([str(aim.world.home), os.path.dirname(path), str(aim.world.work)])}/"
        )
    return f"download {path}", lambda door: door.download(path)


def _list(aim: Aim) -> Named:
    path = os.path.dirname(_absolute(aim.world, _path(aim)))
    return f"list {path}", lambda door: door.list_files(path)


def _store(aim: Aim) -> Named:
    """Put a file into the store and read it there, or get a program from it."""
    path = _path(aim)

    def copy(door: Door) -> str:
        seen = door.copy_with_store("put", "taken", path)
        seen += door.copy_with_store("get", "taken", "taken.txt")
        seen += door.act("read", path="taken.txt")
        return seen + door.copy_with_store("get", "taken", path)

    return f"store {path}", copy


def _save_variable(aim: Aim) -> Named:
    path = f"{aim.dice.choice(LINKS)}/new.txt" if aim.dice.random() < 0.5 else _path(aim)
    return f"save_variable {path}", lambda door: door.save_variable("planted", path)


def _changes(aim: Aim) -> Named:
    return "changes", lambda door: door.changes()


def _document(aim: Aim) -> Named:
    """View a document, which another process of ours converts."""
    path = f"{aim.world.work}/{aim.dice.choice(['a.pdf', 'a.docx', 'a.xlsx'])}"

    def view(door: Door) -> str:
        written = door.act("write", path=path, content="%PDF-1.4 broken")
        return written + door.act("edit", command="view", path=path)

    return f"view {path}", view


def _notebook(aim: Aim) -> Named:
    path = f"{aim.world.work}/{aim.dice.choice(['linked.ipynb', 'book.ipynb', *RACES])}"
    content = json.dumps({"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5})
    arguments = {"command": "create", "path": path, "file_text": content}
    return f"notebook {path}", lambda door: door.act("edit", **arguments)


OPERATIONS: tuple[Callable[[Aim], Named], ...] = (
    *(_write, _write, _read, _read, _edit, _edit, _edit, _patch, _upload, _upload_archive),
    *(_download, _list, _store, _save_variable, _notebook, _changes, _changes),
)
AIMED_OPERATIONS = (_write, _write, _read, _read, _edit, _edit, _download, _upload, _upload_archive)
"""Operations at a path that a plant has prepared."""


def operation(dice: random.Random, world: World, path: str = "") -> Named:
    """Return a random operation with a name that says what it tries, at a path if there is one."""
    is_slow = not path and dice.random() < SLOW_SHARE
    make = _document if is_slow else dice.choice(AIMED_OPERATIONS if path else OPERATIONS)
    return make(Aim(dice, world, path))
