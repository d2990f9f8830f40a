"""The files that a person can add to a prompt."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from oh_jupyter.kernel.control.rpc import Request, handles
from oh_jupyter.operations import files as operations

MAX_FILES = 30
"""Maximum number of files in a reply."""

MAX_SEEN = 20_000
"""Maximum number of files that a search looks at."""

_SKIPPED = {"__pycache__", "node_modules", "site-packages"}


@handles(operations.WorkspaceFiles)
async def _workspace_files(request: Request, op: operations.WorkspaceFiles) -> list[str]:
    executor = request.runtime.executor
    files: list[str] = await executor.in_thread(find_files, executor.workspace_dir, op.text)
    return files


def find_files(root: str, text: str) -> list[str]:
    """Return relative paths that contain a text, first those of files whose name begins with it."""
    wanted = text.lower()
    matches = [path for path in _files(root) if wanted in path.lower()]

    def rank(path: str) -> tuple[bool, int, str]:
        return not os.path.basename(path).lower().startswith(wanted), path.count("/"), path

    return sorted(matches, key=rank)[:MAX_FILES]


def _files(root: str) -> Iterator[str]:
    """Yield the paths of files that are not hidden, up to the limit."""
    seen = 0
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(
            each for each in folders if not each.startswith(".") and each not in _SKIPPED
        )
        for name in sorted(names):
            seen += 1
            if seen > MAX_SEEN:
                return
            if not name.startswith("."):
                yield Path(folder, name).relative_to(root).as_posix()
