"""Files of cookies and local storage, with which later browsers start logged in."""

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
            # os.open does not change the permissions of an existing file.
            os.chmod(path, 0o600)
            json.dump(state, file)
    except OSError as error:
        raise BrowserError(
            f"The storage state cannot be written to {os.fspath(path)!r}: {error.strerror}. Choose "
            "a writable path."
        ) from error


def read_state(
    source: str | os.PathLike[str] | Mapping[str, Any] | None,
) -> dict[str, Any] | None:
    """Return a storage state from a file or a mapping; None if there is no source."""
    if source is None or source == "":
        return None
    if isinstance(source, Mapping):
        return dict(source)
    try:
        state = json.loads(Path(source).expanduser().read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise BrowserError(
            f"The storage state {os.fspath(source)!r} cannot be read: {error}. Save one with "
            "BrowserEnv.storage_state(path)."
        ) from error
    if not isinstance(state, dict):
        raise BrowserError(
            f"{os.fspath(source)!r} is not a storage state. Save one with "
            "BrowserEnv.storage_state(path)."
        )
    return state
