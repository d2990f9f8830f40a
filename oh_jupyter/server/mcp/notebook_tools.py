"""The open notebooks as tools: read, change and run cells."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from difflib import unified_diff
from functools import wraps
from typing import Any

from oh_jupyter.errors import OhJupyterError
from oh_jupyter.server.mcp.kernel import Kernel
from oh_jupyter.server.mcp.notebooks import (
    Cell,
    Document,
    Notebooks,
    OpenNotebook,
    SeenCells,
    new_cell,
    position,
)
from oh_jupyter.server.mcp.results import (
    Result,
    cell_blocks,
    failure,
    named,
    of_observation,
    raised,
    result,
    text,
)
from oh_jupyter.server.mcp.toolbox import Caller, McpTool, schema

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


def notebook_tools(notebooks: Notebooks, kernel: Kernel) -> list[McpTool]:
    """Return the tools on notebooks, for an agent of a kernel."""
    tools = NotebookTools(notebooks, kernel)
    source = {"type": "string", "description": "The text of the cell."}
    index = {"type": "integer", "description": "New position of the cell, counted from 0."}
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
            "Read the current cells of a notebook with outputs; plots are returned as images.",
            schema(
                notebook=_NOTEBOOK,
                start={"type": "integer", "default": 0, "description": "First cell, from 0."},
                end={"type": "integer", "description": "Cell after the last. Default: all."},
                outputs={"type": "boolean", "default": True, "description": "Show outputs."},
            ),
            tools.read_cells,
            _READ_ONLY,
            "Read fewer cells with start and end, or omit their outputs with outputs=false.",
            scope="read",
        ),
        McpTool(
            "insert_cell",
            "Insert a cell into a notebook, by default at its end. A code cell can be run at once.",
            schema(
                "source",
                notebook=_NOTEBOOK,
                source=source,
                index=index,
                cell_type={**_TYPE, "default": "code"},
                run={"type": "boolean", "default": False, "description": "Run it, too."},
            ),
            tools.insert_cell,
            _ADDS,
            scope="edit",
        ),
        McpTool(
            "edit_cell",
            "Change the text of a cell: all of it with source, or one passage with old_str and "
            "new_str. Its outputs stay until it is run. Or move it with index, or delete it. If "
            "its text has changed since you read it, the text is returned instead.",
            schema(
                "cell",
                notebook=_NOTEBOOK,
                cell=_CELL,
                source=source,
                old_str={
                    "type": "string",
                    "description": "Text that occurs exactly once in the cell.",
                },
                new_str={"type": "string", "description": "The new text."},
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
            schema("cell", notebook=_NOTEBOOK, cell=_CELL),
            tools.delete_cell,
            _CHANGES,
            listed=False,
            scope="edit",
        ),
        McpTool(
            "move_cell",
            "Move a cell of a notebook to another position.",
            schema("cell", "index", notebook=_NOTEBOOK, cell=_CELL, index=index),
            tools.move_cell,
            _CHANGES,
            listed=False,
            scope="edit",
        ),
        McpTool(
            "run_cell",
            "Run a cell of a notebook in the notebook's kernel, where the person sees it, and "
            "store its outputs in the notebook.",
            schema(
                "cell",
                notebook=_NOTEBOOK,
                cell=_CELL,
                timeout={
                    "type": "number",
                    "exclusiveMinimum": 0,
                    "description": "Timeout in seconds, then it is interrupted. Default: no limit.",
                },
            ),
            tools.run_cell,
            {"destructiveHint": True, "openWorldHint": True},
        ),
    ]


MAX_DIFF_CHARS = 2000  # characters of the diff in the result of an edit


@dataclass(frozen=True)
class NotebookCall:
    """A call of a tool on a notebook."""

    notebook: OpenNotebook
    document: Document
    arguments: dict[str, Any]
    caller: Caller
    seen: SeenCells

    @property
    def _reader(self) -> str:
        return json.dumps([self.caller.principal, dict(self.caller.actor)], sort_keys=True)

    def note_seen(self, *cells: Cell) -> None:
        """Remember that the caller knows the current texts of these cells."""
        self.seen.note(self._reader, self.document.path, cells)

    def known_source(self, cell: Cell) -> str | None:
        """Return the text of a cell that the caller knows, or None if it has not read it."""
        return self.seen.source(self._reader, self.document.path, cell)

    def conflict(self, index: int, cell: Cell) -> Result | None:
        """Return an error with the current text if it has changed since the caller read it."""
        source = "".join(cell["source"])
        if self.known_source(cell) in (None, source):
            return None
        self.note_seen(cell)
        return failure(
            f"Cell {index} of {self.document.path} has changed since you read it; nothing was "
            f"written. Its text is now:\n{source}\n[Repeat the call to replace or delete it, or "
            "change one passage with old_str and new_str.]"
        )

    def done(self, what: str) -> Result:
        """Return a result that reports a change of the notebook."""
        return result(text(f"{what} of {self.document.path}."))


Work = Callable[["NotebookTools", NotebookCall], Awaitable[Result]]


def _on_notebook(
    action: str, edit_mode: str | None = None
) -> Callable[[Work], Callable[..., Awaitable[Result]]]:
    """Return a decorator that checks permission, finds the notebook, and records an edit."""

    def decorate(work: Work) -> Callable[..., Awaitable[Result]]:
        @wraps(work)
        async def tool(self: NotebookTools, arguments: dict[str, Any], caller: Caller) -> Result:
            if not await caller.allowed(action, "contents"):
                return failure(f"You may not {action} the files of this server.")
            notebook, document = await self.find(arguments.get("notebook"))
            call = NotebookCall(notebook, document, arguments, caller, self._notebooks.seen)
            if action == "write":
                self._notebooks.announce_edit()
            if edit_mode is None:
                outcome = await work(self, call)
                await self._request(call, "undo_notes")
                return outcome
            await self._announce(call)
            before = await document.cells()
            outcome = await work(self, call)
            diff = await self._record(call, edit_mode, before)
            if diff and edit_mode == "replace" and not outcome["isError"]:
                outcome["content"].append(text(_clipped_diff(diff)))
            return outcome

        return tool

    return decorate


@dataclass(frozen=True)
class NotebookTools:
    """The tools, for a kernel whose notebook is the default."""

    _notebooks: Notebooks
    _kernel: Kernel

    async def find(self, name: str | None) -> tuple[OpenNotebook, Document]:
        """Return the notebook with the end of a path, or None for the default."""
        notebook = await self._notebooks.find(name, self._kernel.kernel_id)
        return notebook, await self._notebooks.document(notebook)

    async def _announce(self, call: NotebookCall) -> None:
        """Begin a turn of the agent in the notebook's kernel, so that the edit can be rewound."""
        body = json.dumps({"path": self._notebooks.file_of(call.document.path)}).encode()
        await self._request(call, "announce_edit", body)

    async def _record(self, call: NotebookCall, edit_mode: str, before: list[Cell]) -> str:
        """Record an edit in the log of the notebook's kernel; return its diff."""
        diff = _cell_diff(call.document.path, before, await call.document.cells())
        if not diff:
            return diff
        arguments = call.arguments
        new_str = arguments.get("new_str", arguments.get("source"))
        action = {
            "action": "edit",
            "args": {
                "path": self._notebooks.file_of(call.document.path),
                "command": "notebook_edit",
                "old_str": arguments.get("old_str"),
                "new_str": new_str,
            },
            "oh_jupyter": {
                "cell": arguments.get("cell"),
                "edit_mode": edit_mode,
                "to": arguments.get("index"),
                "cell_type": arguments.get("cell_type"),
            },
        }
        content = f"{edit_mode.capitalize()} in {call.document.path}"
        edit = {"action": action, "content": content, "diff": diff}
        await self._request(call, "record_edit", json.dumps(edit).encode())
        return diff

    async def _request(self, call: NotebookCall, operation: str, body: bytes | None = None) -> None:
        """Send a request to the notebook's kernel, if that has a runtime with a log."""
        kernel_id = call.notebook.kernel_id or self._kernel.kernel_id
        if kernel_id is not None:
            with suppress(OhJupyterError):
                await self._kernel.other(kernel_id).request(operation, body=body, load=False)

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
                "is_this_kernel": notebook.kernel_id == self._kernel.kernel_id,
            }
            for notebook in await self._notebooks.open_ones()
            if caller.only_notebook in ("", notebook.path)
        ]
        return result(
            text(json.dumps(notebooks, indent=2) if notebooks else "No notebook is open.")
        )

    @_on_notebook("read")
    async def read_cells(self, call: NotebookCall) -> Result:
        """Return cells."""
        arguments, cells = call.arguments, await call.document.cells()
        selected = list(enumerate(cells))[arguments.get("start", 0) : arguments.get("end")]
        call.note_seen(*(cell for _, cell in selected))
        blocks = [text(f"{call.document.path}: {len(cells)} cells")]
        for index, cell in selected:
            blocks += cell_blocks(index, cell, arguments.get("outputs", True))
        return result(*blocks)

    @_on_notebook("write", "insert")
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
            return await self._run(call, inserted, index)
        return call.done(f"Inserted {named(index, inserted)}")

    @_on_notebook("write", "replace")
    async def edit_cell(self, call: NotebookCall) -> Result:
        """Change the text of a cell, or move or delete it."""
        arguments, cells = call.arguments, await call.document.cells()
        index = position(cells, arguments["cell"])
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
            return await self._move(call)
        done = call.done(f"Edited {named(index, cells[index])}")
        before = "".join(cells[index]["source"])
        if unread and before.strip():
            done["content"].append(text(f"[You had not read this cell. Its text was:]\n{before}"))
        return done

    @_on_notebook("write", "delete")
    async def delete_cell(self, call: NotebookCall) -> Result:
        """Delete a cell."""
        return await self._delete(call)

    async def _delete(self, call: NotebookCall) -> Result:
        reference, cells = call.arguments["cell"], await call.document.cells()
        index = position(cells, reference)
        if conflict := call.conflict(index, cells[index]):
            return conflict
        await call.document.delete(cells[index].get("id", index))
        return call.done(f"Deleted {named(index, cells[index])}")

    @_on_notebook("write", "move")
    async def move_cell(self, call: NotebookCall) -> Result:
        """Move a cell."""
        return await self._move(call)

    async def _move(self, call: NotebookCall) -> Result:
        reference, cells = call.arguments["cell"], await call.document.cells()
        index = position(cells, call.arguments["index"])
        old = position(cells, reference)
        await call.document.move(cells[old].get("id", old), index)
        return call.done(f"Moved {named(old, cells[old])} to {index}")

    @_on_notebook("write")
    async def run_cell(self, call: NotebookCall) -> Result:
        """Run a cell and store its outputs."""
        cells = await call.document.cells()
        index = position(cells, call.arguments["cell"])
        if cells[index]["cell_type"] != "code":
            return failure(f"Cell {index} of {call.document.path} is not a code cell.")
        return await self._run(call, cells[index], index)

    async def _run(self, call: NotebookCall, cell: Cell, index: int) -> Result:
        notebook, document = call.notebook, call.document
        if notebook.kernel_id is None:
            return failure(
                f"{notebook.path} has no kernel: it is not open. Ask the person to open it."
            )
        ours = notebook.kernel_id == self._kernel.kernel_id
        if not ours and not await call.caller.allowed("execute", "kernels"):
            return failure(f"You may not run code in the kernel of {notebook.path}.")
        args = {"code": "".join(cell["source"]), "include_extra": False}
        kernel = self._kernel.other(notebook.kernel_id)
        done = await kernel.run_cell(args, call.arguments.get("timeout"), store_history=True)
        shown = of_observation(done["observation"])
        if shown["isError"]:  # it did not run
            return shown
        outputs, count = done["outputs"], done["execution_count"]
        await document.set_outputs(cell.get("id") or index, outputs, count)
        number = "" if count is None else f" as [{count}]"
        ran = f"[Ran {named(index, cell)} of {document.path}{number}.]"
        return result(*shown["content"], text(ran), is_error=raised(outputs))


def _clipped_diff(diff: str) -> str:
    """Shorten a diff of cells for an agent, which knows the notebook's name."""
    shown = "\n".join(diff.split("\n")[2:])
    if len(shown) <= MAX_DIFF_CHARS:
        return shown
    return shown[:MAX_DIFF_CHARS].rpartition("\n")[0] + "\n[... more changed lines ...]"


def _cell_diff(path: str, before: list[Cell], after: list[Cell]) -> str:
    """Return the changes of cells in the format of the editor's notebook diffs."""
    lines = unified_diff(_as_lines(before), _as_lines(after), path, path, n=0, lineterm="")
    return "\n".join(lines)


def _as_lines(cells: list[Cell]) -> list[str]:
    return [
        line
        for index, cell in enumerate(cells)
        for line in (
            f"# %% [{index}] {cell['cell_type']} id={cell.get('id', '')}",
            *"".join(cell["source"]).split("\n"),
        )
    ]


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
