"""Directory listings as OpenHands' ``list_files`` gives them."""

from __future__ import annotations

import os

__all__ = ["list_directory"]


def list_directory(path: str | None, workspace_dir: str) -> list[str]:
    """Names in a directory: directories first, with a slash; each group without regard to case.

    Hidden entries are included, dangling links left out; [] if it is no readable directory, as in
    the protocol. A relative path starts at the workspace, wherever the shell has moved to.
    """
    directory = os.path.join(workspace_dir, path) if path else workspace_dir
    directories: list[str] = []
    files: list[str] = []
    try:
        with os.scandir(directory) as entries:
            for entry in entries:
                if entry.is_dir():
                    directories.append(entry.name + "/")
                elif os.path.exists(entry.path):
                    files.append(entry.name)
    except (OSError, ValueError):
        return []
    return sorted(directories, key=str.lower) + sorted(files, key=str.lower)
