"""Path checks that come before any command."""

from __future__ import annotations

import os
import stat
from difflib import get_close_matches
from pathlib import Path

from oh_jupyter.editor.messages import file_exists, invalid, invalid_file

DOCUMENT_SUFFIXES = frozenset((".docx", ".xlsx", ".pptx", ".pdf", ".mp3", ".wav", ".m4a", ".flac"))
"""Files that can be shown, but not edited as text."""


def parse_path(path: object, workspace: Path) -> Path:
    """Absolute path of an argument; a relative one is refused with a suggestion."""
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


def check_path(command: str, path: Path, *, restorable: bool) -> None:
    """Refuse a path that does not fit the command; ``restorable`` allows a missing file."""
    found = exists(path)
    if command == "create" and found:
        raise file_exists(path)
    if not found and command not in ("create", "write") and not restorable:
        hint = f"The path {path} does not exist. Please provide a valid path."
        raise invalid("path", path, hint + similar(path))
    if command == "view":
        return
    if os.path.isdir(path):
        raise invalid(
            "path",
            path,
            f"The path {path} is a directory and only the `view` command can be used on "
            "directories.",
        )
    if path.suffix.lower() in DOCUMENT_SUFFIXES:
        raise invalid(
            "path",
            path,
            f"The path {path} points to a binary file ({path.suffix}) and only the `view` "
            "command can be used on supported binary files.",
        )


def exists(path: Path) -> bool:
    """Whether there is something at a path; False for one that cannot be looked at."""
    try:
        return os.path.exists(path)
    except ValueError:
        return False


def check_regular(path: Path) -> int:
    """Size in bytes of a regular file; pipes, sockets and devices are refused."""
    info = os.stat(path)
    if not stat.S_ISREG(info.st_mode):
        raise invalid_file(path, "It is not a regular file, but a pipe, a socket or a device.")
    return info.st_size


def similar(path: Path) -> str:
    """Hint at a file of a similar name in the same directory; "" if there is none."""
    try:
        # A link that leads nowhere has the very name.
        names = [name for name in os.listdir(path.parent) if name != path.name]
        close = get_close_matches(path.name, names, n=1, cutoff=0.7)
    except OSError:
        return ""
    return f" Maybe you meant {path.parent / close[0]}?" if close else ""
