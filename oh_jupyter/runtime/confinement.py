"""Limits of Actions: of an agent that may not run code, and to the directory of a caller.

An agent that may not run code has the files of the workspace, and pages of the web. Otherwise it
could read the token of the server, or write a file that runs later.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from urllib.parse import urlsplit

from oh_jupyter.events import (
    Action,
    BrowseInteractiveAction,
    BrowseURLAction,
    FileEditAction,
    FileReadAction,
    FileWriteAction,
)
from oh_jupyter.runs_when import runs_when
from oh_jupyter.runtime.effects import Effects, outside_of, real_paths

WITHOUT_EXECUTE = "The token does not allow running code, so"

_LIMITED = (
    FileReadAction,
    FileEditAction,
    FileWriteAction,
    BrowseURLAction,
    BrowseInteractiveAction,
)
"""Actions with known effects, which can be limited."""


def confinement_fault(
    action: Action, effects: Effects, workspace_dir: str, hides: Callable[[str], bool]
) -> str:
    """Return why an agent that may not run code cannot do an Action, or ""."""
    if not isinstance(action, _LIMITED):
        return f"{WITHOUT_EXECUTE} an action of type {action.kind!r} is not allowed."
    if effects.uploads:
        return f"{WITHOUT_EXECUTE} files cannot be uploaded to pages."
    if isinstance(action, BrowseURLAction | BrowseInteractiveAction):
        return _page_fault(effects.addresses)
    return _file_fault(effects, workspace_dir, hides)


def _file_fault(effects: Effects, workspace_dir: str, hides: Callable[[str], bool]) -> str:
    root = os.path.realpath(workspace_dir)
    for path in effects.outside(effects.paths, [root]):
        return f"{WITHOUT_EXECUTE} only files of the workspace {root} can be used, not {path}."
    for path in effects.paths:
        for real in effects.real[path]:
            if hides(real):
                own = "credentials and Jupyter's own files"
                return f"{WITHOUT_EXECUTE} {own} are not allowed: {real}."
        if path in effects.writes and (fault := _run_fault(path, effects.real[path], root)):
            return fault
    return ""


def _run_fault(path: str, reals: Iterable[str], root: str) -> str:
    # A link can have a name that programs look for, and so can the file that it leads to.
    for each in (path, *sorted(reals)):
        if when := runs_when(each, root):
            return (
                f"{WITHOUT_EXECUTE} files that run code cannot be changed: {each} runs when {when}."
                " A token with execute may change it."
            )
    return ""


def outside_fault(within: str, workspace_dir: str, paths: Iterable[str]) -> str:
    """Return why files must not be changed that are outside of a directory, or "".

    A relative directory starts at the workspace.
    """
    paths = list(paths)
    if any("\0" in path for path in (within, *paths)):
        return "A path contains a NUL character; nothing was changed. Use a path without it."
    root = os.path.realpath(os.path.join(workspace_dir, within))
    for path in paths:
        for real in outside_of(sorted(real_paths(path)), [root]):
            return (
                f"{path} is outside of {root} (it leads to {real}); nothing was changed. Use a "
                f"path below {root}."
            )
    return ""


def _page_fault(addresses: Iterable[str]) -> str:
    for address in addresses:
        if not _is_of_web(address):
            return (
                f"{WITHOUT_EXECUTE} only pages of the web can be opened, by their whole address "
                f"with https:// or http://, not {address}."
            )
    return ""


def _is_of_web(address: str) -> bool:
    try:
        # An address without a scheme may be a file.
        return urlsplit(address.strip()).scheme in ("http", "https")
    except ValueError:
        return False
