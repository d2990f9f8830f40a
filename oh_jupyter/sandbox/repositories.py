"""Files by which a repository makes git run programs.

See gitrepository-layout(5) and git-config(1). Git reads ``commondir`` first: it leads to another
directory with a configuration of its own.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator

from oh_jupyter.descriptors import read_regular

CONTROL_FILES = ("hooks", "config", "config.worktree", "commondir", "gitdir")

PLACEHOLDERS = {"commondir": ".\n", "config.worktree": ""}
"""Control files that may be missing, each with a content that changes nothing."""

MAX_DEPTH = 4
"""Maximum depth of submodules in one another, and of slashes in their names."""

TIMEOUT_SECONDS = 5

MAX_CONFIG_BYTES = 1024 * 1024
"""Maximum size of a configuration that is searched for others; an agent may have written it."""

GITLINK = "160000 "
"""Start of the line of a repository in the list of an index."""


def is_git_directory(path: str) -> bool:
    """Return whether git takes a directory for a repository's own, and not for an empty one."""
    return os.path.isdir(path) and os.path.lexists(os.path.join(path, "HEAD"))


def git_directories(directory: str, depth: int = MAX_DEPTH) -> Iterator[str]:
    """Yield a git directory, and those of its submodules and worktrees."""
    yield directory
    for kind in ("modules", "worktrees"):
        yield from _git_directories_below(os.path.join(directory, kind), depth)


def _git_directories_below(folder: str, depth: int) -> Iterator[str]:
    """Yield git directories in a folder; the names of submodules may have slashes."""
    try:
        with os.scandir(folder) as entries:
            folders = [each.path for each in entries if each.is_dir(follow_symlinks=False)]
    except OSError:
        return
    for each in folders if depth else []:
        if is_git_directory(each):
            yield from git_directories(each, depth - 1)
        else:
            yield from _git_directories_below(each, depth - 1)


def indexed_repositories(root: str) -> list[str]:
    """Return the ``.git`` of each repository in the index of another one, however deep it is.

    These are the ones into which git descends by itself.
    """
    if not os.path.lexists(os.path.join(root, ".git")):
        return []
    # The configuration of a repository in the index must not start a program here.
    words = _git("-C", root, "-c", "core.fsmonitor=false", "ls-files", "--stage", "-z")
    paths = [word.partition("\t")[2] for word in words if word.startswith(GITLINK)]
    return [os.path.join(root, path, ".git") for path in paths]


def control_files(directory: str) -> list[str]:
    """Return the control files of a git directory, which may be missing."""
    return [
        *(os.path.join(directory, name) for name in CONTROL_FILES),
        *_named_in_configuration(directory),
    ]


def placeholders(directory: str) -> list[tuple[str, str]]:
    """Return the control files that may be missing, each with a content for a placeholder."""
    return [(os.path.join(directory, name), text) for name, text in PLACEHOLDERS.items()]


def _named_in_configuration(directory: str) -> list[str]:
    """Return the files that a configuration includes, and its directory of hooks."""
    config = os.path.join(directory, "config")
    try:
        text = read_regular(config, MAX_CONFIG_BYTES).lower()
    except OSError:
        return []
    if b"include" not in text and b"hookspath" not in text:
        return []
    listing = ("config", "--file", config, "--includes", "--show-origin", "-z", "--list")
    words = _git(*listing, GIT_DIR=directory)
    paths = {origin.removeprefix("file:") for origin in words[::2] if origin.startswith("file:")}
    for setting in words[1::2]:
        name, _, value = setting.partition("\n")
        if name == "core.hookspath":
            paths.add(os.path.join(os.path.dirname(directory), os.path.expanduser(value)))
    return sorted(os.path.abspath(path) for path in paths)


def _git(*arguments: str, **variables: str) -> list[str]:
    """Return the NUL-separated words that git prints; none if it fails."""
    env = {"PATH": os.defpath, "HOME": os.path.expanduser("~"), **variables}
    try:
        done = subprocess.run(
            ["git", *arguments],
            env=env, cwd="/", capture_output=True, timeout=TIMEOUT_SECONDS, check=True,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return []
    return done.stdout.decode("utf-8", "surrogateescape").split("\0")
