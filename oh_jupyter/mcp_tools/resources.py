"""Resources and prompts of MCP, which a person attaches or chooses in the client."""

from __future__ import annotations

import json
import mimetypes
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote

from oh_jupyter.errors import OhJupyterError, ResourceNotFoundError
from oh_jupyter.mcp_tools.app_tools import APPS, app_contents
from oh_jupyter.mcp_tools.kernel import Kernel
from oh_jupyter.mcp_tools.results import text
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


_NOTEBOOK = {
    "name": "notebook",
    "description": "Path of the notebook or its end; by default that of the kernel.",
    "required": False,
}


@dataclass(frozen=True)
class Prompt:
    """A prompt, and the tool call whose result follows its text."""

    name: str
    title: str
    description: str
    text: str
    tool: str
    arguments: dict[str, Any]

    def to_wire(self) -> dict[str, Any]:
        """Return the ``Prompt`` of the MCP specification as JSON."""
        return {
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "arguments": [_NOTEBOOK],
        }


PROMPTS = {
    prompt.name: prompt
    for prompt in (
        Prompt(
            "explain_failing_cell",
            "Explain the failing cell",
            "Why the first failing cell of the notebook fails, and the smallest change that helps",
            "The cell below fails in the notebook that we share. Look at the variables that it "
            "uses. Explain in plain words why it fails, then propose the smallest change that "
            "fixes it. Change nothing before I agree.",
            "failing_cell",
            {},
        ),
        Prompt(
            "run_from_top_to_bottom",
            "Make this notebook run from top to bottom",
            "Run all cells in order in a fresh kernel, and fix those that fail",
            "Make the notebook below run from top to bottom. Ask me before you restart the "
            "kernel; then run its cells in order with run_cell. Stop at the first cell that "
            "fails, find the cause, fix it with the smallest edit, and continue from there. Do "
            "not delete my cells or my results. At the end, list what you changed and why.",
            "read_cells",
            {"outline": True},
        ),
    )
}
"""The prompts by name."""


async def messages_of(
    name: str, arguments: dict[str, str], toolbox: Toolbox, caller: Caller
) -> dict[str, Any]:
    """Return the messages of a prompt, as in MCP's ``GetPromptResult``.

    Raises:
        ResourceNotFoundError: There is no such prompt, or nothing that it could be about.
    """
    prompt = PROMPTS.get(name)
    if prompt is None:
        raise ResourceNotFoundError(f"There is no prompt {name!r}. Prompts: {', '.join(PROMPTS)}")
    if unknown := set(arguments) - {"notebook"}:
        raise ResourceNotFoundError(f"{name} has no argument {min(unknown)!r}, only 'notebook'")
    shown = await toolbox.call(prompt.tool, {**prompt.arguments, **arguments}, caller)
    if shown["isError"]:
        raise ResourceNotFoundError(f"{name}: {shown['content'][0]['text']}")
    blocks = [text(prompt.text), *shown["content"]]
    return {
        "description": prompt.description,
        "messages": [{"role": "user", "content": block} for block in blocks],
    }
