"""Resources of MCP, which a person attaches to a prompt: notebooks, cells, a page, files."""

from __future__ import annotations

import json
import mimetypes
from contextlib import suppress
from typing import Any
from urllib.parse import quote, unquote

from oh_jupyter.errors import OhJupyterError, ResourceNotFoundError
from oh_jupyter.mcp_tools.app_pages import APPS, app_contents
from oh_jupyter.mcp_tools.kernel import Kernel
from oh_jupyter.mcp_tools.toolbox import Caller, Toolbox
from oh_jupyter.operations.runtime import Page
from oh_jupyter.operations.store import ListStore

NOTEBOOKS = "jupyter://notebooks/"
STORE = "jupyter://store/"
LAST_PAGE = "jupyter://browser/last-page"

MAX_LISTED_FILES = 100

TEMPLATES = [
    {
        "name": "cell",
        "title": "Cell of a notebook",
        "uriTemplate": NOTEBOOKS + "{+path}{#cell}",
        "description": "A cell with its outputs, by its id or its position from 0; without one, "
        "the whole notebook.",
    },
    {
        "name": "file",
        "title": "File of the store",
        "uriTemplate": STORE + "{+path}",
        "description": "A file of the person's file store.",
    },
]
"""Resource templates, as in MCP's ``ResourceTemplate``."""


class Resources:
    """The resources of a kernel; each is read by a tool, with that tool's checks."""

    def __init__(self, toolbox: Toolbox, kernel: Kernel) -> None:
        self._toolbox = toolbox
        self._kernel = kernel

    async def all(self, caller: Caller) -> list[dict[str, Any]]:
        """List open notebooks, the last page, and the files at the root of the store.

        The list starts no kernel, and loads nothing into one.
        """
        listed = await self._notebooks(caller)
        may_read = caller.scopes is None or "read" in caller.scopes
        if self._kernel.is_there and may_read and not caller.only_notebook:
            listed += await self._last_page()
            listed += await self._stored_files()
        return listed

    async def _notebooks(self, caller: Caller) -> list[dict[str, Any]]:
        shown = await self._toolbox.call("list_notebooks", {}, caller)
        try:
            paths = [notebook["path"] for notebook in json.loads(_text_of(shown))]
        except ValueError:  # none is open, or the caller may not know
            return []
        return [
            {
                "uri": NOTEBOOKS + quote(path),
                "name": path,
                "title": path.rpartition("/")[2],
                "description": "Open notebook with its outputs",
                "mimeType": "text/plain",
            }
            for path in paths
        ]

    async def _last_page(self) -> list[dict[str, Any]]:
        with suppress(OhJupyterError):
            page = (await self._kernel.ask(Page(), load=False))["extras"]
            if page.get("screenshot"):
                address = str(page.get("url", ""))
                return [
                    {
                        "uri": LAST_PAGE,
                        "name": "last-page",
                        "title": "Last page of the browser",
                        "description": f"Picture of {address}",
                        "mimeType": "image/png",
                    }
                ]
        return []

    async def _stored_files(self) -> list[dict[str, Any]]:
        with suppress(OhJupyterError):
            entries = (await self._kernel.ask(ListStore(""), load=False)).entries
            files = [path for path in entries if not path.endswith("/")]
            return [
                {
                    "uri": STORE + quote(path),
                    "name": path,
                    "title": f"{path} in the store",
                    "mimeType": mimetypes.guess_type(path)[0] or "application/octet-stream",
                }
                for path in files[:MAX_LISTED_FILES]
            ]
        return []

    async def read(self, uri: str, caller: Caller) -> list[dict[str, Any]]:
        """Return the contents of a resource.

        Raises:
            ResourceNotFoundError: There is none, it is too large, or the caller may not read it.
        """
        if uri.startswith(APPS):
            return [app_contents(uri)]
        name, arguments = _tool_for(uri)
        shown = await self._toolbox.call(name, arguments, caller)
        if shown["isError"]:
            raise ResourceNotFoundError(f"{uri}: {_text_of(shown)}")
        return [_content(uri, block) for block in shown["content"]]


def _tool_for(uri: str) -> tuple[str, dict[str, Any]]:
    """Return the tool that reads a resource, and its arguments."""
    if uri == LAST_PAGE:
        return "last_page", {}
    if uri.startswith(STORE):
        return "read_stored_file", {"path": unquote(uri.removeprefix(STORE))}
    if uri.startswith(NOTEBOOKS):
        path, _, cell = uri.removeprefix(NOTEBOOKS).partition("#")
        notebook = {"notebook": unquote(path)}
        if cell:
            return "read_cell", {**notebook, "cell": unquote(cell)}
        return "read_cells", notebook
    raise ResourceNotFoundError(
        f"There is no resource {uri}. Addresses begin with {NOTEBOOKS}, {STORE} or are {LAST_PAGE}"
    )


def _text_of(shown: dict[str, Any]) -> str:
    return "\n".join(block["text"] for block in shown["content"] if block["type"] == "text")


def _content(uri: str, block: dict[str, Any]) -> dict[str, Any]:
    """Return a tool's content block as contents of a resource."""
    if block["type"] == "image":
        return {"uri": uri, "mimeType": block["mimeType"], "blob": block["data"]}
    if block["type"] == "resource":
        return {**block["resource"], "uri": uri}
    return {"uri": uri, "mimeType": "text/plain", "text": block["text"]}
