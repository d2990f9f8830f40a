"""The open notebooks as tools: look at cells, change them, run them."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

from oh_jupyter.server.mcp.cell_text import cell_blocks, named, raised
from oh_jupyter.server.mcp.documents import Cell, Document, new_cell, position
from oh_jupyter.server.mcp.kernel import Kernel
from oh_jupyter.server.mcp.notebooks import Notebooks, OpenNotebook
from oh_jupyter.server.mcp.results import Result, failure, of_observation, result, text
from oh_jupyter.server.mcp.toolbox import Caller, Tool, schema

__all__ = ["notebook_tools"]

_NOTEBOOK = {
    "type": "string",
    "description": "Path of the notebook, or the end of it. Default: the notebook of this kernel, "
    "or the only one that is open.",
}
_CELL = {
    "type": ["integer", "string"],
    "description": "The cell: its position, counted from 0 (-1 is the last), or its id.",
}
_TYPE = {"type": "string", "enum": ["code", "markdown", "raw"], "description": "Type of cell."}
_READ_ONLY = {"readOnlyHint": True}
_CHANGES = {"destructiveHint": True}
_ADDS = {"destructiveHint": False}


def notebook_tools(notebooks: Notebooks, kernel: Kernel) -> list[Tool]:
    """The tools on notebooks.

    Args:
        notebooks: Those of the server.
        kernel: The kernel whose tools these are.

    Returns:
        The tools.
    """
    tools = NotebookTools(notebooks, kernel)
    source = {"type": "string", "description": "The text of the cell."}
    where = {"type": "integer", "description": "Where the cell is to be, counted from 0."}
    return [
        Tool(
            "list_notebooks",
            "The notebooks that are open, with their kernels and what those are doing.",
            schema(),
            tools.list_notebooks,
            _READ_ONLY,
        ),
        Tool(
            "read_cells",
            "Read cells of a notebook as it is now, with outputs; plots come as images.",
            schema(
                notebook=_NOTEBOOK,
                start={"type": "integer", "default": 0, "description": "First cell, from 0."},
                end={"type": "integer", "description": "Cell after the last. Default: all."},
                outputs={"type": "boolean", "default": True, "description": "Show outputs."},
            ),
            tools.read_cells,
            _READ_ONLY,
            "Read fewer cells by start and end, or leave their outputs out by outputs=false.",
        ),
        Tool(
            "insert_cell",
            "Insert a cell into a notebook, at its end unless a position is given. A code cell "
            "can be run at once.",
            schema(
                "source",
                notebook=_NOTEBOOK,
                source=source,
                index=where,
                cell_type={**_TYPE, "default": "code"},
                run={"type": "boolean", "default": False, "description": "Run it, too."},
            ),
            tools.insert_cell,
            _ADDS,
        ),
        Tool(
            "edit_cell",
            "Change the text of a cell: all of it by source, or one passage by old_str and "
            "new_str. Its outputs stay until it is run.",
            schema(
                "cell",
                notebook=_NOTEBOOK,
                cell=_CELL,
                source=source,
                old_str={"type": "string", "description": "Text that the cell has exactly once."},
                new_str={"type": "string", "description": "The text to put there."},
                cell_type=_TYPE,
            ),
            tools.edit_cell,
            _CHANGES,
        ),
        Tool(
            "delete_cell",
            "Delete a cell of a notebook.",
            schema("cell", notebook=_NOTEBOOK, cell=_CELL),
            tools.delete_cell,
            _CHANGES,
        ),
        Tool(
            "move_cell",
            "Move a cell of a notebook to another position.",
            schema("cell", "index", notebook=_NOTEBOOK, cell=_CELL, index=where),
            tools.move_cell,
            _CHANGES,
        ),
        Tool(
            "run_cell",
            "Run a cell of a notebook in the notebook's own kernel, where the person sees it, and "
            "store its outputs in the notebook.",
            schema(
                "cell",
                notebook=_NOTEBOOK,
                cell=_CELL,
                timeout={
                    "type": "number",
                    "exclusiveMinimum": 0,
                    "description": "Seconds after which it is interrupted. Default: no limit.",
                },
            ),
            tools.run_cell,
            {"destructiveHint": True, "openWorldHint": True},
        ),
    ]


class NotebookTools:
    """What the tools do."""

    def __init__(self, notebooks: Notebooks, kernel: Kernel) -> None:
        """See ``notebook_tools``."""
        self._notebooks = notebooks
        self._kernel = kernel

    async def list_notebooks(self, arguments: dict[str, Any], caller: Caller) -> Result:
        """List the open notebooks."""
        if not await caller.allowed("read", "sessions"):
            return failure("You may not list the sessions of this server.")
        found = [
            {
                "path": notebook.path,
                "kernel_id": notebook.kernel_id,
                "kernel_name": notebook.kernel_name,
                "state": notebook.state,
                "is_this_kernel": notebook.kernel_id == self._kernel.kernel_id,
            }
            for notebook in await self._notebooks.open_ones()
        ]
        told = json.dumps(found, indent=2) if found else "No notebook is open."
        return result(text(told))

    async def read_cells(self, arguments: dict[str, Any], caller: Caller) -> Result:
        """Show cells."""

        async def read(notebook: OpenNotebook, document: Document) -> Result:
            cells = await document.cells()
            chosen = list(enumerate(cells))[arguments.get("start", 0) : arguments.get("end")]
            head = f"{document.path}: {len(cells)} cells"
            blocks = [text(head)]
            for index, cell in chosen:
                blocks += cell_blocks(index, cell, arguments.get("outputs", True))
            return result(*blocks)

        return await self._on(arguments, caller, "read", read)

    async def insert_cell(self, arguments: dict[str, Any], caller: Caller) -> Result:
        """Insert a cell."""

        async def insert(notebook: OpenNotebook, document: Document) -> Result:
            cells = await document.cells()
            asked = arguments.get("index", len(cells))
            index = max(0, min(asked if asked >= 0 else len(cells) + 1 + asked, len(cells)))
            cell = new_cell(arguments.get("cell_type", "code"), arguments["source"])
            await document.insert(index, cell)
            if arguments.get("run") and cell["cell_type"] == "code":
                now = await document.cells()
                return await self._run(notebook, document, now[index], index, None, caller)
            inserted = (await document.cells())[index]
            return _done(f"Inserted {named(index, inserted)}", document)

        return await self._on(arguments, caller, "write", insert)

    async def edit_cell(self, arguments: dict[str, Any], caller: Caller) -> Result:
        """Change the text of a cell."""

        async def edit(notebook: OpenNotebook, document: Document) -> Result:
            cells = await document.cells()
            index = position(cells, arguments["cell"])
            source, problem = _new_source(cells[index], arguments)
            if problem:
                return failure(f"Cell {index} of {document.path}: {problem}")
            await document.set_source(arguments["cell"], source, arguments.get("cell_type"))
            return _done(f"Edited {named(index, cells[index])}", document)

        return await self._on(arguments, caller, "write", edit)

    async def delete_cell(self, arguments: dict[str, Any], caller: Caller) -> Result:
        """Delete a cell."""

        async def delete(notebook: OpenNotebook, document: Document) -> Result:
            cells = await document.cells()
            index = position(cells, arguments["cell"])
            await document.delete(arguments["cell"])
            return _done(f"Deleted {named(index, cells[index])}", document)

        return await self._on(arguments, caller, "write", delete)

    async def move_cell(self, arguments: dict[str, Any], caller: Caller) -> Result:
        """Move a cell."""

        async def move(notebook: OpenNotebook, document: Document) -> Result:
            cells = await document.cells()
            index = position(cells, arguments["index"])
            old = position(cells, arguments["cell"])
            await document.move(arguments["cell"], index)
            return _done(f"Moved {named(old, cells[old])} to {index}", document)

        return await self._on(arguments, caller, "write", move)

    async def run_cell(self, arguments: dict[str, Any], caller: Caller) -> Result:
        """Run a cell and store its outputs."""

        async def run(notebook: OpenNotebook, document: Document) -> Result:
            cells = await document.cells()
            index = position(cells, arguments["cell"])
            if cells[index]["cell_type"] != "code":
                return failure(f"Cell {index} of {document.path} is no code cell.")
            timeout = arguments.get("timeout")
            return await self._run(notebook, document, cells[index], index, timeout, caller)

        return await self._on(arguments, caller, "write", run)

    async def _run(
        self,
        notebook: OpenNotebook,
        document: Document,
        cell: Cell,
        index: int,
        timeout: float | None,
        caller: Caller,
    ) -> Result:
        if notebook.kernel_id is None:
            return failure(
                f"{notebook.path} has no kernel: it is not open. Ask the person to open it."
            )
        ours = notebook.kernel_id == self._kernel.kernel_id
        if not ours and not await caller.allowed("execute", "kernels"):
            return failure(f"You may not run code in the kernel of {notebook.path}.")
        source = "".join(cell["source"])
        args = {"code": source, "include_extra": False}
        found = await self._kernel.other(notebook.kernel_id).run_cell(args, timeout)
        shown = of_observation(found["observation"])
        if shown["isError"]:  # it did not run
            return shown
        outputs, count = found["outputs"], found["execution_count"]
        await document.set_outputs(cell.get("id") or index, outputs, count)
        number = "" if count is None else f" as [{count}]"
        ran = f"[Ran {named(index, cell)} of {document.path}{number}.{_note(document)}]"
        return result(*shown["content"], text(ran), is_error=raised(outputs))

    async def _on(
        self,
        arguments: dict[str, Any],
        caller: Caller,
        action: str,
        work: Callable[[OpenNotebook, Document], Awaitable[Result]],
    ) -> Result:
        """Do something with the notebook that is meant, if the caller may."""
        if not await caller.allowed(action, "contents"):
            return failure(f"You may not {action} the files of this server.")
        notebook = await self._notebooks.find(arguments.get("notebook"), self._kernel.kernel_id)
        return await work(notebook, await self._notebooks.document(notebook))


def _new_source(cell: Cell, arguments: dict[str, Any]) -> tuple[str, str]:
    """The new text of a cell, and what is wrong with it."""
    source, old = "".join(cell["source"]), arguments.get("old_str")
    if old is None:
        if "source" not in arguments and "cell_type" not in arguments:
            return "", "give its new text as source, or a passage as old_str and new_str."
        return arguments.get("source", source), ""
    times = source.count(old) if old else 0
    if times != 1:
        return "", f"old_str is there {times} times; it must be there exactly once."
    return source.replace(old, arguments.get("new_str", "")), ""


def _done(what: str, document: Document) -> Result:
    return result(text(f"{what} of {document.path}.{_note(document)}"))


def _note(document: Document) -> str:
    return f" {document.note}" if document.note else ""
