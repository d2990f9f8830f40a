"""Unlisted tools behind resources and prompts: single cells, the last page, files of the store."""

from __future__ import annotations

import base64
import mimetypes
from dataclasses import dataclass
from typing import Any

from oh_jupyter.mcp_tools.cell_views import RANGE_CHARS, cell_contents
from oh_jupyter.mcp_tools.cells import position
from oh_jupyter.mcp_tools.kernel import Kernel
from oh_jupyter.mcp_tools.notebook_calls import (
    CELL,
    NOTEBOOK,
    NotebookCall,
    NotebookTools,
    on_notebook,
)
from oh_jupyter.mcp_tools.notebooks import Notebooks
from oh_jupyter.mcp_tools.results import Result, blob, failure, image, result, text
from oh_jupyter.mcp_tools.toolbox import Caller, McpTool, schema
from oh_jupyter.operations.files import DownloadFromStore, GiveUp, Receive
from oh_jupyter.operations.runtime import Page

MAX_FILE_BYTES = 1024**2


def attached_tools(notebooks: Notebooks, kernel: Kernel) -> list[McpTool]:
    """Return the tools by which resources and prompts are read, with the checks of every tool."""
    cells, files = AttachedCells(notebooks, kernel), AttachedFiles(kernel)
    path = {"type": "string", "description": "Path in the store."}
    return [
        McpTool(
            "read_cell",
            "Read one cell.",
            schema("cell", notebook=NOTEBOOK, cell=CELL),
            cells.read_cell,
            rest="Read it in parts with read_cells.",
            listed=False,
            scope="read",
        ),
        McpTool(
            "failing_cell",
            "Read the first cell whose output is an error.",
            schema(notebook=NOTEBOOK),
            cells.failing_cell,
            rest="Read it in parts with read_cells.",
            listed=False,
            scope="read",
        ),
        McpTool(
            "last_page",
            "Picture of the page that the browser showed last.",
            schema(),
            files.last_page,
            listed=False,
            scope="read",
        ),
        McpTool(
            "read_stored_file",
            "Read a file of the store.",
            schema("path", path=path),
            files.read_stored_file,
            rest="",
            listed=False,
            scope="read",
        ),
    ]


class AttachedCells(NotebookTools):
    """Single cells with their outputs."""

    @on_notebook("read")
    async def read_cell(self, call: NotebookCall) -> Result:
        """Return a cell."""
        cells = await call.document.cells()
        return self._shown(call, position(cells, call.arguments["cell"]), cells)

    @on_notebook("read")
    async def failing_cell(self, call: NotebookCall) -> Result:
        """Return the first cell with an error, after the path of its notebook."""
        cells, path = await call.document.cells(), call.document.path
        for index, cell in enumerate(cells):
            if any(output.get("output_type") == "error" for output in cell.get("outputs") or ()):
                shown = self._shown(call, index, cells)
                return {**shown, "content": [text(f"Cell {index} of {path}:"), *shown["content"]]}
        return failure(f"No cell of {path} shows an error. Run its cells first.")

    def _shown(self, call: NotebookCall, index: int, cells: list[Any]) -> Result:
        call.note_seen(cells[index])
        return result(
            *cell_contents([(index, cells[index])], RANGE_CHARS, outputs=True, running={})
        )


@dataclass(frozen=True)
class AttachedFiles:
    """The browser's last picture, and files of the store."""

    _kernel: Kernel

    async def last_page(self, arguments: dict[str, Any], caller: Caller) -> Result:
        """Return the picture of the last page."""
        page = (await self._kernel.ask(Page(), load=False))["extras"]
        picture = image(str(page.get("screenshot") or ""))
        return result(picture) if picture else failure("The last page has no picture.")

    async def read_stored_file(self, arguments: dict[str, Any], caller: Caller) -> Result:
        """Return the contents of a file of the store."""
        path, data = str(arguments["path"]), bytearray()
        transfer_id = (await self._kernel.ask(DownloadFromStore(path))).id
        while piece := (await self._kernel.request(Receive(transfer_id))).body:
            data += piece
            if len(data) > MAX_FILE_BYTES:
                await self._kernel.request(GiveUp(transfer_id))
                return failure(
                    f"{path} has more than {MAX_FILE_BYTES} bytes. Copy it to the workspace with "
                    "the tool store and command=get."
                )
        kind = mimetypes.guess_type(path)[0] or "application/octet-stream"
        if not kind.startswith("image/"):
            try:
                return result(text(data.decode()))
            except UnicodeDecodeError:
                pass
        url = f"data:{kind};base64,{base64.b64encode(data).decode()}"
        return result(image(url) or blob(url, path))
