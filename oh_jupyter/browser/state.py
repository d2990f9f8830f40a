"""Cookies and local storage in a file: to log in once, and begin with that later."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from oh_jupyter.errors import BrowserError

__all__ = ["read_state", "write_state"]


def write_state(state: Mapping[str, Any], path: str | os.PathLike[str]) -> None:
    """Write a storage state to a file that only its owner can read.

    Args:
        state: The state, in Playwright's form.
        path: The file.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(descriptor, "w", encoding="utf-8") as file:
        # A file that was there keeps its permissions otherwise.
        os.chmod(path, 0o600)
        json.dump(state, file)


def read_state(
    given: str | os.PathLike[str] | Mapping[str, Any] | None,
) -> dict[str, Any] | None:
    """Read a storage state.

    Args:
        given: A file, or the state itself.

    Returns:
        The state; None if none was given.

    Raises:
        BrowserError: The file cannot be read.
    """
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
    return dict(state)
