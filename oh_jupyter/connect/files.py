"""Configuration files: read as they are, written whole and with a backup."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from oh_jupyter.errors import ConfigError

__all__ = ["backup_of", "read_text", "write_text"]


def read_text(file: Path) -> str:
    """The text of a file, "" if there is none; ConfigError if it cannot be read."""
    try:
        return file.read_bytes().decode()
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as problem:
        raise ConfigError(f"it cannot be read: {problem}") from problem


def backup_of(file: Path) -> Path:
    """Where a file goes before it is changed."""
    return file.with_name(f"{file.name}.before-oh-jupyter")


def write_text(file: Path, text: str, private: bool = False) -> None:
    """Write a file whole or not at all, after what it held was copied beside it.

    A new file is for its owner alone if it is ``private``. ConfigError if it cannot be written.
    """
    target = file.resolve()  # a link into somebody's dotfiles stays one
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        mode = target.stat().st_mode & 0o777 if target.exists() else 0o600 if private else 0o644
        if target.exists():
            _replace(backup_of(target), target.read_bytes(), mode)
        _replace(target, text.encode(), mode)
    except OSError as problem:
        raise ConfigError(f"it cannot be written: {problem}") from problem


def _replace(target: Path, data: bytes, mode: int) -> None:
    if target.exists() and not os.access(target, os.W_OK):
        raise PermissionError(13, "Permission denied", str(target))
    descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with open(descriptor, "wb") as stream:
            stream.write(data)
        os.chmod(name, mode)
        os.replace(name, target)
    except BaseException:
        os.unlink(name)
        raise
