"""Notes of running Jupyter servers in Jupyter's runtime directory: addresses and credentials."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class ServerNote:
    """Note of a running server of this user.

    Attributes:
        url: Address without a slash at the end.
        token: Token; for a server without one, as with a password or behind JupyterHub, the key
            that our extension has written for this user's programs; or "".
        root: Directory that it serves, or "".
        file: Name of the note.
        modified: Time of the note in seconds since the epoch.
    """

    url: str
    token: str = field(repr=False)
    root: str
    file: str
    modified: float


def key_note_name(pid: int | str) -> str:
    """Return the name of the file with the key of a server without a token."""
    return f"oh_jupyter-{pid}.key"


def server_notes() -> Iterator[ServerNote]:
    """Yield the notes of this user's servers; a killed one may have left its own."""
    # jupyter_server's own function takes seconds to import.
    from jupyter_core.paths import jupyter_runtime_dir

    for path in Path(jupyter_runtime_dir()).glob("jpserver-*.json"):
        try:
            info: dict[str, Any] = json.loads(path.read_text("utf-8"))
            modified = path.stat().st_mtime
        except (OSError, ValueError):
            continue  # the server has ended, or is writing it
        if not isinstance(info, dict) or not str(info.get("url", "")).startswith("http"):
            continue
        if info.get("sock"):
            continue
        pid = path.stem.removeprefix("jpserver-")
        token = str(info.get("token") or "") or _key(path.with_name(key_note_name(pid)))
        root = str(info.get("root_dir") or "")
        yield ServerNote(str(info["url"]).rstrip("/"), token, root, path.name, modified)


def _key(note: Path) -> str:
    try:
        return note.read_text("utf-8").strip()
    except OSError:
        return ""
