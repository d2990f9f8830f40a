"""The cells of notebooks as tools: list, read, insert, change."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

from oh_jupyter.errors import OhJupyterError
from oh_jupyter.mcp_tools.cell_runs import CellRuns
from oh_jupyter.mcp_tools.cell_search import MAX_MATCHES, search
from oh_jupyter.mcp_tools.cell_views import (
    FIRST_LOOK_CHARS,
    MAX_PICTURES,
    RANGE_CHARS,
    IndexedCells,
    cell_contents,
    outline,
)
from oh_jupyter.mcp_tools.cells import (
    Cell,
    keep_out_fault,
    key_of,
    named,
    new_cell,
    position,
    reference_of,
)
from oh_jupyter.mcp_tools.kernel import Kernel
from oh_jupyter.mcp_tools.notebook_calls import (
    CELL,
    NOTEBOOK,
    NotebookCall,
    NotebookTools,
    on_notebook,
)
from oh_jupyter.mcp_tools.notebooks import Notebooks
from oh_jupyter.mcp_tools.results import Result, cell_outputs, failure, long_outputs, result, text
from oh_jupyter.mcp_tools.run_queue import output_so_far, running_in
from oh_jupyter.mcp_tools.toolbox import Caller, McpTool, schema
from oh_jupyter.mcp_tools.variable_content import HINT
from oh_jupyter.operations.actions import KeepText
from oh_jupyter.operations.kernel import CellInProgress
from oh_jupyter.text import plural

_TYPE = {"type": "string", "enum": ["code", "markdown", "raw"], "description": "Type of cell."}
MAX_LONG_OUTPUTS = 20  # files for one look at a notebook
_READ_ONLY = {"readOnlyHint": True}
_CHANGES = {"destructiveHint": True}
_ADDS = {"destructiveHint": False}


def cell_tools(notebooks: Notebooks, kernel: Kernel) -> list[McpTool]:
    """Return the tools on the cells of notebooks, for an agent of a kernel."""
    tools = CellTools(notebooks, kernel)
    source = {"type": "string", "description": f"Text of the cell, {HINT}."}
    index = {"type": "integer", "description": "New position, from 0."}
    return [
        McpTool(
            "list_notebooks",
            "List the open notebooks with their kernels and the state of these.",
            schema(),
            tools.list_notebooks,
            _READ_ONLY,
            scope="read",
        ),
        McpTool(
            "read_cells",
            "Read the current cells of a notebook with outputs, plots as images, and the output so "
            "far of running cells. Without start and end, a long notebook is shortened.",
            schema(
                notebook=NOTEBOOK,
                start={"type": "integer", "description": "First cell, from 0."},
                end={"type": "integer", "description": "Cell after the last."},
                outputs={"type": "boolean", "default": True, "description": "Show outputs."},
                outline={"type": "boolean", "description": "Only one line for each cell."},
                search={
                    "type": "string",
                    "description": "Regular expression: return only the matching lines of sources "
                    "and outputs.",
                },
                max_chars={"type": "integer", "minimum": 500, "description": "Maximum characters."},
            ),
            tools.read_cells,
            _READ_ONLY,
            "Read fewer cells with start and end, or omit their outputs with outputs=false.",
            scope="read",
        ),
        McpTool(
            "insert_cell",
            "Insert a cell into a notebook, by default at its end.",
            schema(
                "source",
                notebook=NOTEBOOK,
                source=source,
                index=index,
                cell_type={**_TYPE, "default": "code"},
                run={"type": "boolean", "default": False, "description": "Run it, too."},
            ),
            tools.insert_cell,
            _ADDS,
            scope="edit",
            scope_of=lambda arguments: "execute" if arguments.get("run") else "edit",
        ),
        McpTool(
            "edit_cell",
            "Change the text of a cell: all of it with source, or one passage with old_str and "
            "new_str; or move it with index, or delete it. If it has changed since you read it, "
            "its text is returned instead.",
            schema(
                "cell",
                notebook=NOTEBOOK,
                cell=CELL,
                source=source,
                old_str={
                    "type": "string",
                    "description": "Text that occurs once.",
                },
                new_str={"type": "string", "description": "Its new text."},
                cell_type=_TYPE,
                index=index,
                delete={"type": "boolean", "default": False, "description": "Delete the cell."},
            ),
            tools.edit_cell,
            _CHANGES,
            scope="edit",
        ),
        McpTool(
            "delete_cell",
            "Delete a cell of a notebook.",
            schema("cell", notebook=NOTEBOOK, cell=CELL),
            tools.delete_cell,
            _CHANGES,
            listed=False,
            scope="edit",
        ),
        McpTool(
            "move_cell",
            "Move a cell of a notebook to another position.",
            schema("cell", "index", notebook=NOTEBOOK, cell=CELL, index=index),
            tools.move_cell,
            _CHANGES,
            listed=False,
            scope="edit",
        ),
    ]


class CellTools(NotebookTools):
    """Tools on the cells of notebooks."""

    async def list_notebooks(self, arguments: dict[str, Any], caller: Caller) -> Result:
        """List the open notebooks."""
        if not await caller.allowed("read", "sessions"):
            return failure("You may not list the sessions of this server.")
        notebooks = [
            {
                "path": notebook.path,
                "kernel_id": notebook.kernel_id,
                "kernel_name": notebook.kernel_name,
                "state": notebook.state,
                "is_this_kernel": notebook.kernel_id == self.kernel.kernel_id,
            }
            for notebook in await self.notebooks.open_ones()
            if caller.only_notebook in ("", notebook.path)
        ]
        return result(
            text(json.dumps(notebooks, indent=2) if notebooks else "No notebook is open.")
        )

    @on_notebook("read")
    async def read_cells(self, call: NotebookCall) -> Result:
        """Return cells, an outline, or matching lines."""
        arguments, cells = call.arguments, await call.document.cells()
        whole = not arguments.keys() & {"start", "end"}
        start = arguments.get("start", 0)
        if cells or start:
            position(cells, start)
        indexed = list(enumerate(cells))[start : arguments.get("end")]
        title = text(f"{call.document.path}: {plural(len(cells), 'cell')}")
        if "search" in arguments:
            return await _matches(arguments["search"], indexed)
        running = await self._progress(call, indexed)
        if arguments.get("outline"):
            return result(title, text("\n" + "\n".join(outline(indexed, running))))
        call.note_seen(*(cell for _, cell in indexed))
        blocks = cell_contents(
            indexed,
            arguments.get("max_chars", FIRST_LOOK_CHARS if whole else RANGE_CHARS),
            outputs=arguments.get("outputs", True),
            running=running,
            files=await self._long_outputs(call, indexed),
            max_pictures=MAX_PICTURES if whole else None,
        )
        return result(title, *blocks)

    async def _progress(self, call: NotebookCall, cells: IndexedCells) -> dict[int, str]:
        """Return the output so far of running cells, by position."""
        running, path = self.notebooks.running, call.document.path
        shown = {index: await running.progress(path, key_of(index, cell)) for index, cell in cells}
        progress = {index: text for index, text in shown.items() if text}
        if call.notebook.kernel_id is not None:
            kernel = self.kernel.other(call.notebook.kernel_id)
            progress = _of_person(await running_in(kernel), cells) | progress
        return progress

    async def _long_outputs(self, call: NotebookCall, cells: IndexedCells) -> dict[int, str]:
        """Keep outputs that are too long in files of the kernel's machine, by position."""
        kernel_id, files = call.notebook.kernel_id, dict[int, str]()
        if kernel_id is None or not call.arguments.get("outputs", True):
            return {}
        texts = {index: long_outputs(cell) for index, cell in cells}
        for index, whole in list(texts.items()):
            if whole and len(files) < MAX_LONG_OUTPUTS:
                with suppress(OhJupyterError):
                    files[index] = await self.kernel.other(kernel_id).ask(
                        KeepText(), body=whole.encode("utf-8", "replace"), load=False
                    )
        return files

    @on_notebook("write", "insert")
    async def insert_cell(self, call: NotebookCall) -> Result:
        """Insert a cell."""
        arguments, cells = call.arguments, await call.document.cells()
        target = arguments.get("index", len(cells))
        index = max(0, min(target if target >= 0 else len(cells) + 1 + target, len(cells)))
        cell = new_cell(arguments.get("cell_type", "code"), arguments["source"])
        await call.document.insert(index, cell)
        inserted = (await call.document.cells())[index]
        call.note_seen(inserted)
        if arguments.get("run") and cell["cell_type"] == "code":
            call.changes.append(f"Inserted {named(index, inserted)}")
            return await CellRuns(self.notebooks, self.kernel).run_alone(call, inserted, index)
        return call.done(f"Inserted {named(index, inserted)}")

    @on_notebook("write", "replace")
    async def edit_cell(self, call: NotebookCall) -> Result:
        """Change the text of a cell, or move or delete it."""
        arguments, cells = call.arguments, await call.document.cells()
        index = position(cells, arguments["cell"])
        if fault := keep_out_fault(index, cells[index]):
            return failure(fault)
        if arguments.get("delete"):
            return await self._delete(call)
        moves = "index" in arguments
        if moves and not arguments.keys() & {"source", "old_str", "cell_type"}:
            return await self._move(call)
        source, fault = _new_source(cells[index], arguments)
        if fault:
            return failure(f"Cell {index} of {call.document.path}: {fault}")
        replaces = "source" in arguments and "old_str" not in arguments
        if replaces and (conflict := call.conflict(index, cells[index])):
            return conflict
        kind = arguments.get("cell_type")
        await call.document.set_source(index, cells[index], source, kind)
        unread = replaces and call.known_source(cells[index]) is None
        call.note_seen({**cells[index], "source": source})
        if moves:
            call.changes.append(f"Edited {named(index, cells[index])}")
            return await self._move(call)
        done = call.done(f"Edited {named(index, cells[index])}")
        before = "".join(cells[index]["source"])
        if unread and before.strip():
            done["content"].append(text(f"[You had not read this cell. Its text was:]\n{before}"))
        return done

    @on_notebook("write", "delete")
    async def delete_cell(self, call: NotebookCall) -> Result:
        """Delete a cell."""
        return await self._delete(call)

    async def _delete(self, call: NotebookCall) -> Result:
        reference, cells = call.arguments["cell"], await call.document.cells()
        index = position(cells, reference)
        if fault := keep_out_fault(index, cells[index]):
            return failure(fault)
        if conflict := call.conflict(index, cells[index]):
            return conflict
        await call.document.delete(reference_of(cells, cells[index], index))
        return call.done(f"Deleted {named(index, cells[index])}")

    @on_notebook("write", "move")
    async def move_cell(self, call: NotebookCall) -> Result:
        """Move a cell."""
        return await self._move(call)

    async def _move(self, call: NotebookCall) -> Result:
        reference, cells = call.arguments["cell"], await call.document.cells()
        index = position(cells, call.arguments["index"])
        old = position(cells, reference)
        if fault := keep_out_fault(old, cells[old]):
            return failure(fault)
        await call.document.move(reference_of(cells, cells[old], old), index)
        return call.done(f"Moved {named(old, cells[old])} to {index}")


def _of_person(running: CellInProgress | None, cells: IndexedCells) -> dict[int, str]:
    """Return the output so far of the cell that a person runs, by its position."""
    if running is None or running.by == "agent":
        return {}
    for index, cell in cells:
        same = "".join(cell["source"]) == running.code
        if cell["cell_type"] == "code" and (cell.get("id") == running.cell_id or same):
            head = f"[Running for {running.seconds:.0f} s]"
            return {index: f"{output_so_far(running)}\n{head}".lstrip()}
    return {}


async def _matches(pattern: str, cells: IndexedCells) -> Result:
    """Return the lines of sources and outputs that match a regular expression."""
    labels, texts = [], []
    for index, cell in cells:
        labels.append(f"cell {index} ({cell.get('id', '-')}), line")
        texts.append("".join(cell.get("source", "")))
        for shown in cell_outputs(cell)[0]:
            labels.append(f"cell {index} ({cell.get('id', '-')}), output line")
            texts.append(shown)
    try:
        matches = await search(pattern, texts)
    except ValueError as error:
        return failure(str(error))
    lines = [
        f"{labels[text_index]} {number}: {line}"
        for text_index, number, line in matches[:MAX_MATCHES]
    ]
    if len(matches) > MAX_MATCHES:
        lines.append(f"[There are more than {MAX_MATCHES} matches. Search for less.]")
    return result(text("\n".join(lines) or f"No line matches {pattern!r}."))


def _new_source(cell: Cell, arguments: dict[str, Any]) -> tuple[str, str]:
    """Return the new text of a cell, and what is wrong with the arguments, or ""."""
    source, old = "".join(cell["source"]), arguments.get("old_str")
    if old is None:
        if "source" not in arguments and "cell_type" not in arguments:
            return "", "pass its new text as source, or a passage as old_str and new_str."
        return arguments.get("source", source), ""
    times = source.count(old) if old else 0
    if times != 1:
        return "", f"old_str occurs {times} times; it must occur exactly once."
    return source.replace(old, arguments.get("new_str", "")), ""
