"""Notes of running Jupyter servers in Jupyter's runtime directory: addresses and credentials."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class ServerNote:
    """What a server of this user has noted of itself.

    Attributes:
        url: Its address, without a slash at the end.
        token: Its token; where it has none, as with a password or behind JupyterHub, the key
            that our extension has left for this user's programs; or "".
        root: Directory that it serves, or "".
        file: Name of the note.
        modified: When it was written, in seconds since the epoch.
    """

    url: str
    token: str = field(repr=False)
    root: str
    file: str
    modified: float


def key_note_name(pid: int | str) -> str:
    """Name the file in which a server without a token leaves its key."""
    return f"oh_jupyter-{pid}.key"


def server_notes() -> Iterator[ServerNote]:
    """Yield the notes of this user's servers; one that was killed may have left its own."""
    # jupyter_server's own function takes seconds to import.
    from jupyter_core.paths import jupyter_runtime_dir

    for path in Path(jupyter_runtime_dir()).glob("jpserver-*.json"):
        try:
            info: dict[str, Any] = json.loads(path.read_text("utf-8"))
            modified = path.stat().st_mtime
        except (OSError, ValueError):
            continue  # the server has ended meanwhile, or is writing it
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
