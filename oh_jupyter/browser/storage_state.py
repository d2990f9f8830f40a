"""Cookies and local storage in a file: to log in once, and begin with that later."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from oh_jupyter.errors import BrowserError


def write_state(state: Mapping[str, Any], path: str | os.PathLike[str]) -> None:
    """Write a storage state to a file that only its owner can read."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with open(descriptor, "w", encoding="utf-8") as file:
            # A file that was there keeps its permissions otherwise.
            os.chmod(path, 0o600)
            json.dump(state, file)
    except OSError as error:
        raise BrowserError(
            f"The storage state cannot be written to {os.fspath(path)!r}: {error.strerror}. Name a "
            "file in a folder that you may write to."
        ) from error


def read_state(
    given: str | os.PathLike[str] | Mapping[str, Any] | None,
) -> dict[str, Any] | None:
    """Read a storage state from a file, or take it as given; None if none is given."""
    if given is None or given == "":
        return None
    if isinstance(given, Mapping):
        return dict(given)
    try:
        state = json.loads(Path(given).expanduser().read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise BrowserError(
            f"The storage state {os.fspath(given)!r} cannot be read: {error}. Save one with "
            "BrowserEnv.storage_state(path)."
        ) from error
    if not isinstance(state, dict):
        raise BrowserError(
            f"{os.fspath(given)!r} is no storage state. Save one with "
            "BrowserEnv.storage_state(path)."
        )
    return state
