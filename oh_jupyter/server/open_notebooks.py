"""The open notebooks of a server, also those of VS Code, whose sessions have made-up paths."""

from __future__ import annotations

import asyncio
import os
import re
from pathlib import Path
from typing import Any

from oh_jupyter.errors import OhJupyterError
from oh_jupyter.mcp_tools.notebooks import OpenNotebook
from oh_jupyter.operations import reply_to
from oh_jupyter.operations.kernel import NotebookFile
from oh_jupyter.server.router import Router

ASK_SECONDS = 1.0  # time that a kernel gets to name its notebook

_VSCODE_SUFFIX = re.compile(r"-jvsc-[0-9a-f]{8}-[0-9a-f-]+(?=\.ipynb$)")
"""What VS Code adds to the name of a notebook, so that each session gets its own kernel."""


async def open_notebooks(sessions: Any, router: Router, root: str) -> list[OpenNotebook]:
    """Return the notebooks that have a session with a kernel.

    The session of a notebook in VS Code counts under the path of its file, or under its name if
    the file is on another machine. If it has several, only the one used last does.
    """
    models = [
        session
        for session in await sessions.list_sessions()
        if session.get("type", "notebook") == "notebook"
        and session.get("path")
        and session.get("kernel")
    ]
    models.sort(key=lambda session: str(session["kernel"].get("last_activity", "")), reverse=True)
    paths = await asyncio.gather(*(_path(session, router, root) for session in models))
    used: set[str] = set()
    notebooks = []
    for session, path in zip(models, paths, strict=True):
        kernel, shown = session["kernel"], session["path"] if path in used else path
        used.add(path)
        state = str(kernel.get("execution_state", ""))
        notebooks.append(OpenNotebook(shown, kernel["id"], str(kernel.get("name", "")), state))
    return sorted(notebooks, key=lambda notebook: notebook.path)


async def _path(session: dict[str, Any], router: Router, root: str) -> str:
    """Return the path of a session's notebook below the root, or its name."""
    path = str(session["path"])
    name = _VSCODE_SUFFIX.sub("", path)
    if name == path or not root:
        return name
    file = await _file(router, str(session["kernel"]["id"]))
    below = os.path.relpath(file, os.path.abspath(root)) if file else ""
    return name if not below or below.startswith("..") else Path(below).as_posix()


async def _file(router: Router, kernel_id: str) -> str:
    """Return the path by which a kernel with oh_jupyter knows its notebook, or ""."""
    try:
        async with asyncio.timeout(ASK_SECONDS):
            reply = await router.link(kernel_id).request(NotebookFile(), load=False)
    except (OhJupyterError, TimeoutError):
        return ""
    return reply_to(NotebookFile(), reply.body)
