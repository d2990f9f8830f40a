"""The notebooks that are open in a server, and which of them is meant."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from oh_jupyter.errors import KernelNotFoundError
from oh_jupyter.server.mcp.documents import Document, LiveDocument, StoredDocument

__all__ = ["Notebooks", "OpenNotebook"]


@dataclass(frozen=True)
class OpenNotebook:
    """A notebook with a session.

    Attributes:
        path: Where it is, relative to the server's root.
        kernel_id: The server's id of its kernel, or None.
        kernel_name: Kernelspec of that.
        state: What the kernel does: idle, busy, starting.
    """

    path: str
    kernel_id: str | None
    kernel_name: str
    state: str


class Notebooks:
    """Finds the open notebooks of a server, and their documents."""

    def __init__(self, serverapp: Any) -> None:
        """Look at a server."""
        self._serverapp = serverapp
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def open_ones(self) -> list[OpenNotebook]:
        """The notebooks that have a session."""
        found = []
        for session in await self._serverapp.session_manager.list_sessions():
            kernel = session.get("kernel") or {}
            if session.get("type", "notebook") == "notebook":
                found.append(
                    OpenNotebook(
                        str(session.get("path", "")),
                        kernel.get("id"),
                        str(kernel.get("name", "")),
                        str(kernel.get("execution_state", "")),
                    )
                )
        return found

    async def find(self, name: str | None, kernel_id: str | None) -> OpenNotebook:
        """The notebook that is meant by the end of its path, or by nothing if there is only one.

        The notebook of the kernel whose tools are used goes before others; one that is not open has
        no kernel. KernelNotFoundError if none is open, or several are and it is not said which.
        """
        notebooks = await self.open_ones()
        if name is not None:
            path = name.strip("/")
            named = [n for n in notebooks if n.path == path]
            named = named or [n for n in notebooks if path and PurePosixPath(n.path).match(path)]
            return named[0] if named else OpenNotebook(path, None, "", "")
        ours = [n for n in notebooks if n.kernel_id is not None and n.kernel_id == kernel_id]
        chosen = ours or notebooks
        if len(chosen) == 1:
            return chosen[0]
        names = ", ".join(repr(notebook.path) for notebook in chosen)
        raise KernelNotFoundError(
            f"Several notebooks are open: say which is meant by notebook=... ({names})"
            if chosen
            else "No notebook is open. Ask the person to open one, or name a file by notebook=..."
        )

    async def document(self, notebook: OpenNotebook) -> Document:
        """The document of a notebook: the one that people edit together, or the file."""
        collaboration = self._collaboration()
        if collaboration is not None:
            shared = await collaboration.get_document(
                path=notebook.path, content_type="notebook", file_format="json", copy=False
            )
            if shared is not None:
                return LiveDocument(notebook.path, shared)
        contents = self._serverapp.contents_manager
        return StoredDocument(notebook.path, contents, self._locks[notebook.path])

    def _collaboration(self) -> Any:
        """The extension jupyter_server_ydoc, which jupyter-collaboration brings, or None."""
        manager = self._serverapp.extension_manager
        for app in manager.extension_apps.get("jupyter_server_ydoc", ()):
            if hasattr(app, "get_document") and not getattr(app, "disable_rtc", False):
                return app
        return None
