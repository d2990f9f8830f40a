"""Validation of paths, before any command."""

from __future__ import annotations

import os
import stat
from difflib import get_close_matches
from pathlib import Path

from oh_jupyter.editor.messages import file_exists, invalid, invalid_file

DOCUMENT_SUFFIXES = frozenset((".docx", ".xlsx", ".pptx", ".pdf", ".mp3", ".wav", ".m4a", ".flac"))
"""Suffixes of files that can be shown, but not edited as text."""


def parse_path(path: object, workspace: Path) -> Path:
    """Parse an absolute path; the error for a relative one suggests an absolute one."""
    if not isinstance(path, str | os.PathLike) or "\0" in os.fspath(path):
        raise invalid("path", repr(path), "The path should be a string without NUL characters.")
    parsed = Path(path)
    if parsed.is_absolute():
        return parsed
    hint = "The path should be an absolute path, starting with `/`."
    suggestion = workspace / parsed
    if exists(suggestion):
        hint += f" Maybe you meant {suggestion}?"
    raise invalid("path", path, hint)


def check_path(command: str, path: Path, *, restorable: bool) -> bool:
    """Reject a path that the command does not support; return whether it exists.

    ``restorable`` allows a missing file.
    """
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        mode = 0
    is_there = mode != 0
    if command == "create" and is_there:
        raise file_exists(path)
    if not is_there and command not in ("create", "write") and not restorable:
        hint = f"The path {path} does not exist. Please provide a valid path."
        raise invalid("path", path, hint + similar(path))
    if command == "view":
        return is_there
    only_view = "and only the `view` command can be used on"
    if stat.S_ISDIR(mode):
        hint = f"The path {path} is a directory {only_view} directories."
        raise invalid("path", path, hint)
    if path.suffix.lower() in DOCUMENT_SUFFIXES:
        kind = f"points to a binary file ({path.suffix})"
        hint = f"The path {path} {kind} {only_view} supported binary files."
        raise invalid("path", path, hint)
    return is_there


def exists(path: Path) -> bool:
    """Return whether a path exists; False for an invalid one."""
    try:
        return os.path.exists(path)
    except ValueError:
        return False


def check_regular(path: Path) -> int:
    """Return the size of a regular file in bytes; reject pipes, sockets and devices."""
    info = os.stat(path)
    if not stat.S_ISREG(info.st_mode):
        raise invalid_file(path, "It is a pipe, a socket or a device, not a regular file.")
    return info.st_size


def similar(path: Path) -> str:
    """Suggest a file of a similar name in the same directory; "" if there is none."""
    try:
        # A broken link has the same name.
        names = [name for name in os.listdir(path.parent) if name != path.name]
        close = get_close_matches(path.name, names, n=1, cutoff=0.7)
    except OSError:
        return ""
    return f" Maybe you meant {path.parent / close[0]}?" if close else ""
