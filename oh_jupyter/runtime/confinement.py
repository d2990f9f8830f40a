"""Limits of Actions: of an agent that may not run code, and to the directory of a caller.

An agent that may not run code has the files of the workspace, and pages of the web. Otherwise it
could read the token of the server, or write a file that runs later.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from urllib.parse import urlsplit

from oh_jupyter.errors import OhJupyterError
from oh_jupyter.events import (
    Action,
    BrowseInteractiveAction,
    BrowseURLAction,
    FileEditAction,
    FileReadAction,
    FileWriteAction,
)
from oh_jupyter.sandbox.profile import is_protected

WITHOUT_EXECUTE = "The token does not allow running code, so"


def confinement_fault(action: Action, workspace_dir: str, hidden: Iterable[str]) -> str:
    """Return why an agent that may not run code cannot do an Action, or ""."""
    if isinstance(action, FileReadAction | FileEditAction | FileWriteAction):
        return _file_fault(action, workspace_dir, hidden)
    if isinstance(action, BrowseURLAction):
        return _page_fault([action.url])
    if isinstance(action, BrowseInteractiveAction):
        return _steps_fault(action.browser_actions)
    return f"{WITHOUT_EXECUTE} an action of type {action.kind!r} is not allowed."


def _file_fault(
    action: FileReadAction | FileEditAction | FileWriteAction,
    workspace_dir: str,
    hidden: Iterable[str],
) -> str:
    command = getattr(action, "command", "")
    if command == "apply_patch":
        return f"{WITHOUT_EXECUTE} patches, which name files of their own, are not allowed."
    root = os.path.realpath(workspace_dir)
    path = os.path.realpath(os.path.join(root, os.path.expanduser(action.path)))
    if not is_below(path, root):
        return f"{WITHOUT_EXECUTE} only files of the workspace {root} can be used, not {path}."
    if any(is_below(path, os.path.realpath(each)) for each in hidden):
        return f"{WITHOUT_EXECUTE} credentials and Jupyter's own files are not allowed: {path}."
    reads = isinstance(action, FileReadAction) or command == "view"
    if not reads and is_protected(path):
        return f"{WITHOUT_EXECUTE} files that run code cannot be changed: {path}."
    return ""


def outside_fault(within: str, workspace_dir: str, paths: Iterable[str]) -> str:
    """Return why files must not be changed that are outside of a directory, or "".

    A relative directory starts at the workspace. Each path is checked as the system resolves it,
    and with its ``..`` removed first, because programs do either.
    """
    paths = list(paths)
    if any("\0" in path for path in (within, *paths)):
        return "A path contains a NUL character; nothing was changed. Use a path without it."
    root = os.path.realpath(os.path.join(workspace_dir, within))
    for path in paths:
        for real in map(os.path.realpath, (path, os.path.normpath(path))):
            if not is_below(real, root):
                return (
                    f"{path} is outside of {root} (it leads to {real}); nothing was changed. Use a "
                    f"path below {root}."
                )
    return ""


def changed_paths(action: FileEditAction | FileWriteAction, cwd: str) -> list[str]:
    """Return the files that an Action names, those in a patch included."""
    path = os.path.join(cwd, action.path)
    if not isinstance(action, FileEditAction) or action.command != "apply_patch":
        return [path]
    with suppress(OhJupyterError):  # the editor reports what is wrong with the patch
        return [path, *(os.path.join(path, name) for name in _names_in_patch(action.content))]
    return [path]


def _names_in_patch(text: str) -> list[str]:
    """Return the names in a patch of several files."""
    from oh_jupyter.editor.patch.formats import parse_patch

    return [name for patch in parse_patch(text) for name in (patch.path, patch.new_path) if name]


def _steps_fault(steps: str) -> str:
    from oh_jupyter.browser.channel.language import parse_actions

    try:
        calls = parse_actions(steps)
    except OhJupyterError:
        return ""  # the browser rejects it with its own sentence
    if any(call.name == "upload_file" for call in calls):
        return f"{WITHOUT_EXECUTE} files cannot be uploaded to pages."
    return _page_fault(
        str(call.arguments["url"]) for call in calls if call.arguments.get("url") is not None
    )


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


def is_below(path: str, root: str) -> bool:
    """Return whether a path is a directory, or is in it; both are absolute."""
    return path == root or path.startswith(root.rstrip("/") + "/")
