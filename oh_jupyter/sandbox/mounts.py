"""Mounts of a box: a profile's paths after links are resolved, in the order of mounting.

Each path is resolved once, the decision is made about the resolved path, and exactly that is
mounted. Folders and files of ours are hidden or protected.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from oh_jupyter.config import CONFIG_FILE_VARIABLE, Settings, state_home
from oh_jupyter.containment import is_within, is_within_any
from oh_jupyter.sandbox.profile import Profile
from oh_jupyter.state.location import ledger_folder


def homes(user: str | None) -> list[str]:
    """Return the home directories of the kernel's user and of the shell's."""
    paths = {os.path.expanduser("~"), os.path.expanduser(f"~{user}" if user else "~")}
    return sorted(path for path in paths if os.path.isabs(path))


def own_folders(settings: Settings) -> list[str]:
    """Return the folders with our state, Jupyter's tokens and connection files."""
    home = os.path.expanduser("~")
    data = os.environ.get("JUPYTER_DATA_DIR") or os.path.join(
        os.environ.get("XDG_DATA_HOME") or os.path.join(home, ".local", "share"), "jupyter"
    )
    runtime = os.environ.get("JUPYTER_RUNTIME_DIR") or os.path.join(data, "runtime")
    folders = [str(state_home()), runtime]
    if settings.file_store == "local":
        root = os.path.expanduser(settings.file_store_path or "~/.openhands")
        folders.append(os.path.join(root, "sessions"))
    outbox = os.path.expanduser(settings.file_store_web_hook_outbox or "")
    if os.path.isdir(outbox):
        folders.append(outbox)
    ledger = str(ledger_folder())
    return folders if ledger in folders else [*folders, ledger]


def settings_files() -> list[str]:
    """Return the settings file that the operator names, which boxes cannot change."""
    named = os.environ.get(CONFIG_FILE_VARIABLE)
    return [os.path.abspath(os.path.expanduser(named))] if named else []


def make_folders(settings: Settings) -> None:
    """Make our missing folders, because only an existing one can be hidden."""
    for folder in own_folders(settings):
        if not os.path.lexists(folder):
            os.makedirs(folder, mode=0o700)


Kind = Literal[
    "writable",
    "read_only",
    "visible",
    "hidden_directory",
    "hidden_file",
    "home",
    "private",
    "empty",
]
"""Kind of a mount.

``home`` is an empty directory that is there, ``private`` the box's own temporary directory,
``empty`` a writable one in memory.
"""

FOREIGN = ("hidden_directory", "hidden_file", "home", "private", "empty")
"""Kinds of mounts below which nothing of the machine is visible."""

HOMES = ("/home", "/root", "/Users")
"""Directories with the homes of other people."""

SOCKET_TABLE = "/proc/net/unix"


@dataclass(frozen=True)
class Mount:
    """A mount at a resolved path."""

    path: str
    kind: Kind


@dataclass(frozen=True)
class Placeholder:
    """A missing protected path; ``content`` is None for a directory."""

    path: str
    content: str | None


Reachable = Callable[[str], bool]
"""Whether the box's user can reach a path; what it cannot reach needs no mount."""


def missing_paths(profile: Profile, *, nested: bool = True) -> list[Placeholder]:
    """Return the missing paths that are protected, parents first.

    They need a placeholder, because only an existing path can be a mount point. ``nested`` is that
    of ``resolve``.
    """
    candidates = [Placeholder(path, None) for path in profile.directories]
    files = (*profile.files, *(profile.nested_files if nested else ()))
    candidates += [Placeholder(path, content) for path, content in files]
    roots = [os.path.realpath(root) for root in profile.writable]
    lifted = [os.path.realpath(path) for path in profile.lifted]
    return [
        each
        for each in sorted(candidates, key=lambda each: each.path)
        if not os.path.lexists(each.path)
        and os.path.isdir(os.path.dirname(each.path))
        and is_within_any(os.path.realpath(each.path), roots)
        and not is_within_any(os.path.realpath(each.path), lifted)
    ]


def resolve(
    profile: Profile, reachable: Reachable = lambda path: True, *, nested: bool = True
) -> list[Mount]:
    """Return the mounts of a profile on top of a read-only machine, parents first.

    Args:
        profile: The profile.
        reachable: See ``Reachable``.
        nested: Also mount paths that a process in another box could replace meanwhile; the
            caller checks the result with ``differences``.
    """
    plan: dict[str, Kind] = {"/tmp": "private", "/var/tmp": "empty", "/run": "hidden_directory"}
    plan = {os.path.realpath(path): kind for path, kind in plan.items()}
    visible = [os.path.realpath(path) for path in profile.visible]
    for path in visible:
        if os.path.lexists(path) and reachable(path):
            plan.setdefault(path, "visible")
    roots = [os.path.realpath(path) for path in profile.writable if os.path.exists(path)]
    if not nested:
        roots = [
            root
            for root in roots
            if not is_within_any(root, [each for each in roots if each != root])
        ]
    lifted = {os.path.realpath(path) for path in profile.lifted}
    plan.update(dict.fromkeys(roots, "writable"))
    for root in roots:
        _pin_parents(plan, root, [each for each in roots if each != root])
    protected = [*profile.directories, *(path for path, _ in profile.files), *profile.read_only]
    deeper = [*profile.nested, *(path for path, _ in profile.nested_files)]
    for path in (*protected, *(deeper if nested else ())):
        real = os.path.realpath(path)
        if real in lifted or not os.path.lexists(real) or not is_within_any(real, roots):
            continue
        plan[real] = "read_only"
        _pin_parents(plan, real, roots)
    homes = [os.path.realpath(home) for home in profile.homes]
    own = [path for home in homes for path in _dot_entries(home) if is_within_any(home, roots)]
    others = [path for path in HOMES if not any(is_within(root, path) for root in roots)]
    for path in (*own, *others, *profile.hidden, *_sockets(roots)):
        real = os.path.realpath(path)
        if os.path.lexists(real) and real not in roots and reachable(real):
            plan[real] = "hidden_directory" if os.path.isdir(real) else "hidden_file"
            if path in own and real in visible:
                plan[real] = "read_only"
            if is_within_any(real, roots):
                _pin_parents(plan, real, roots)
    for home in homes:
        if os.path.isdir(home) and home != "/" and not is_within_any(home, roots):
            plan[home] = "home"
    return _without_redundant(plan, roots)


def differences(mounts: list[Mount], pid: int) -> list[str]:
    """Return the paths at which a started box differs from its mounts.

    A process in another box can replace a directory by a link between the decision and the mount.
    """
    points = mount_points(Path(f"/proc/{pid}/mountinfo").read_bytes())
    planned = {mount.path: mount.kind for mount in mounts}
    writable = {path for path, kind in planned.items() if kind in ("writable", "private", "empty")}
    wrong = [
        path
        for path, is_writable in points.items()
        if is_writable and path not in writable and not is_within_any(path, ["/dev", "/proc"])
    ]
    for mount in mounts:
        if mount.path not in points:
            # Its owner may have removed what was hidden; a box cannot, outside of its directories.
            is_gone = mount.kind == "hidden_file" and not os.path.lexists(mount.path)
            if not is_gone or is_within_any(mount.path, sorted(writable)):
                wrong.append(mount.path)
        elif mount.kind in ("writable", "read_only", "visible"):
            ours, theirs = os.lstat(mount.path), os.lstat(f"/proc/{pid}/root{mount.path}")
            if stat.S_ISLNK(ours.st_mode) or not os.path.samestat(ours, theirs):
                wrong.append(mount.path)
    return wrong


def identities(mounts: list[Mount]) -> dict[str, tuple[int, int]]:
    """Return device and inode of each path that is protected in a writable directory."""
    known: dict[str, tuple[int, int]] = {}
    above: list[Mount] = []
    for mount in mounts:
        above = [each for each in above if is_within(mount.path, each.path)]
        identity = identity_of(mount.path)
        if above and above[-1].kind == "writable" and mount.kind != "writable" and identity:
            known[mount.path] = identity
        above.append(mount)
    return known


def identity_of(path: str) -> tuple[int, int] | None:
    """Return device and inode of a path, None if it does not exist."""
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def mount_points(table: bytes) -> dict[str, bool]:
    """Return the mount points of a mountinfo table, and whether each is writable."""
    points = {}
    for line in table.splitlines():
        fields = line.split()
        path = re.sub(rb"\\([0-7]{3})", lambda match: bytes([int(match[1], 8)]), fields[4])
        points[os.fsdecode(path)] = b"rw" in fields[5].split(b",")
    return points


def _pin_parents(plan: dict[str, Kind], path: str, roots: list[str]) -> None:
    """Make the directories above a protected path mount points, which cannot be renamed."""
    parent = os.path.dirname(path)
    while is_within_any(parent, roots) and parent not in roots:
        plan.setdefault(parent, "writable")
        parent = os.path.dirname(parent)


def _dot_entries(home: str) -> list[str]:
    """Return the entries of a home that a person's programs keep there for themselves."""
    try:
        with os.scandir(home) as entries:
            return [entry.path for entry in entries if entry.name.startswith(".")]
    except OSError:
        return []


def _sockets(roots: list[str]) -> list[str]:
    """Return the Unix sockets of other programs; a read-only mount does not stop a connection."""
    try:
        with open(SOCKET_TABLE, encoding="utf-8", errors="surrogateescape") as table:
            lines = table.read().splitlines()[1:]
    except OSError:
        return []
    paths = {line.split(maxsplit=7)[7] for line in lines if line.count(" /") and " @" not in line}
    return sorted(path for path in paths if _is_socket(path) and not is_within_any(path, roots))


def _is_socket(path: str) -> bool:
    try:
        return stat.S_ISSOCK(os.lstat(path).st_mode)
    except OSError:
        return False


def _without_redundant(plan: dict[str, Kind], roots: list[str]) -> list[Mount]:
    """Sort the mounts, and drop those of paths that another mount hides or protects already.

    Below a hidden directory, only a root is writable, and not the parent of another hidden path.
    """
    mounts: list[Mount] = []
    for path in sorted(plan, key=lambda path: path.split("/")):
        kind = plan[path]
        above = next((each for each in reversed(mounts) if is_within(path, each.path)), None)
        is_foreign = above is not None and above.kind in FOREIGN
        if is_foreign and kind == "writable" and path not in roots:
            continue
        if is_foreign != (kind == "visible") and kind not in ("writable", "home"):
            continue
        if kind == "read_only" and (above is None or above.kind == "read_only"):
            continue
        mounts.append(Mount(path, kind))
    return mounts
