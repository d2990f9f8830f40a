"""The open notebooks as tools: read, change and run cells."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from difflib import unified_diff
from functools import wraps
from typing import Any

from oh_jupyter.background import run_in_background
from oh_jupyter.control_messages import KEEP_OUT_TAG
from oh_jupyter.errors import OhJupyterError
from oh_jupyter.server.mcp.cell_search import MAX_MATCHES, search
from oh_jupyter.server.mcp.cell_views import (
    FIRST_LOOK_CHARS,
    MAX_PICTURES,
    RANGE_CHARS,
    IndexedCells,
    cell_contents,
    outline,
)
from oh_jupyter.server.mcp.kernel import CallActions, Kernel, current_actions
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
    cell_outputs,
    failure,
    named,
    of_observation,
    raised,
    result,
    text,
)
from oh_jupyter.server.mcp.running_cells import Look, RunningCell
from oh_jupyter.server.mcp.toolbox import Caller, McpTool, schema

NOTEBOOK = {
    "type": "string",
    "description": "Path or the end of it. Default: this kernel's, or the only open one.",
}
_CELL = {
    "type": ["integer", "string"],
    "description": "Position from 0 (-1 is the last), or id.",
}
_TYPE = {"type": "string", "enum": ["code", "markdown", "raw"], "description": "Type of cell."}
_READ_ONLY = {"readOnlyHint": True}
_CHANGES = {"destructiveHint": True}
_ADDS = {"destructiveHint": False}


def notebook_tools(notebooks: Notebooks, kernel: Kernel) -> list[McpTool]:
    """Return the tools on notebooks, for an agent of a kernel."""
    tools = NotebookTools(notebooks, kernel)
    source = {"type": "string", "description": "The text of the cell."}
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
            "Insert a cell into a notebook, by default at its end. A code cell can be run at once.",
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
                cell=_CELL,
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
            schema("cell", notebook=NOTEBOOK, cell=_CELL),
            tools.delete_cell,
            _CHANGES,
            listed=False,
            scope="edit",
        ),
        McpTool(
            "move_cell",
            "Move a cell of a notebook to another position.",
            schema("cell", "index", notebook=NOTEBOOK, cell=_CELL, index=index),
            tools.move_cell,
            _CHANGES,
            listed=False,
            scope="edit",
        ),
        McpTool(
            "run_cell",
            "Run a cell of a notebook, or all from cell to the cell to, until one fails. The "
            "person sees it run, and the outputs are stored in the notebook.",
            schema(
                "cell",
                notebook=NOTEBOOK,
                cell=_CELL,
                to={**_CELL, "description": "Last cell to run."},
                wait={
                    "type": "number",
                    "minimum": 0,
                    "description": "Seconds to wait; then the run continues alone.",
                },
                timeout={
                    "type": "number",
                    "exclusiveMinimum": 0,
                    "description": "Seconds until it is interrupted. Default: no limit.",
                },
            ),
            tools.run_cell,
            {"destructiveHint": True, "openWorldHint": True},
        ),
    ]


CONTINUES = (
    "\n[It continues, and its outputs will be in the notebook. read_cells shows the output so far; "
    "kernel with command=interrupt stops it.]"
)
MAX_RUN_CHARS = 600  # characters shown of each cell of a run of several
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
        """Return cells, an outline, or matching lines."""
        arguments, cells = call.arguments, await call.document.cells()
        whole = not arguments.keys() & {"start", "end"}
        indexed = list(enumerate(cells))[arguments.get("start", 0) : arguments.get("end")]
        title = text(f"{call.document.path}: {len(cells)} cells")
        if "search" in arguments:
            return await _matches(arguments["search"], indexed)
        running = await self._progress(call.document.path, indexed)
        if arguments.get("outline"):
            return result(title, text("\n" + "\n".join(outline(indexed, running))))
        call.note_seen(*(cell for _, cell in indexed))
        blocks = cell_contents(
            indexed,
            arguments.get("max_chars", FIRST_LOOK_CHARS if whole else RANGE_CHARS),
            outputs=arguments.get("outputs", True),
            running=running,
            max_pictures=MAX_PICTURES if whole else None,
        )
        return result(title, *blocks)

    async def _progress(self, path: str, cells: IndexedCells) -> dict[int, str]:
        """Return the output so far of the cells that agents run, by position."""
        running = self._notebooks.running
        shown = {index: await running.progress(path, _key(index, cell)) for index, cell in cells}
        return {index: progress for index, progress in shown.items() if progress}

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
        if fault := keep_out_fault(index, cells[index]):
            return failure(fault)
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
        if fault := keep_out_fault(old, cells[old]):
            return failure(fault)
        await call.document.move(cells[old].get("id", old), index)
        return call.done(f"Moved {named(old, cells[old])} to {index}")

    @_on_notebook("write")
    async def run_cell(self, call: NotebookCall) -> Result:
        """Run cells and store their outputs."""
        arguments, cells = call.arguments, await call.document.cells()
        first = position(cells, arguments["cell"])
        if cells[first]["cell_type"] != "code" and "to" not in arguments:
            return failure(f"Cell {first} of {call.document.path} is not a code cell.")
        last = position(cells, arguments.get("to", first))
        if last < first:
            return failure(f"Cell {last} comes before cell {first}; nothing was run.")
        chosen = [
            (index, cells[index])
            for index in range(first, last + 1)
            if cells[index]["cell_type"] == "code" and "".join(cells[index]["source"]).strip()
        ]
        if "to" in arguments:
            work = self._run_all(call, chosen)
        else:
            work = self._run(call, cells[first], first)
        return await _within(arguments.get("wait"), work)

    async def _run_all(self, call: NotebookCall, cells: IndexedCells) -> Result:
        """Run cells until one fails; return what they print in short, and the error whole."""
        lines: list[str] = []
        for number, (index, cell) in enumerate(cells, 1):
            done = await self._run(call, cell, index)
            shown = "".join(block.get("text", "") for block in done["content"]).strip()
            if done["isError"]:
                left = f"{number - 1} of {len(cells)} cells ran before."
                return {**done, "content": [*map(text, lines), *done["content"], text(left)]}
            head = shown[:MAX_RUN_CHARS].strip()
            lines.append(f"{head}{' [...]' if len(shown) > MAX_RUN_CHARS else ''}\n")
        return result(*map(text, lines), text(f"[Ran {len(cells)} cells of {call.document.path}.]"))

    async def _run(self, call: NotebookCall, cell: Cell, index: int) -> Result:
        notebook, document = call.notebook, call.document
        if notebook.kernel_id is None:
            return failure(
                f"{notebook.path} has no kernel: it is not open. Ask the person to open it, or "
                "start one with kernel and command=start."
            )
        if fault := keep_out_fault(index, cell):
            return failure(fault)
        ours = notebook.kernel_id == self._kernel.kernel_id
        if not ours and not await call.caller.allowed("execute", "kernels"):
            return failure(f"You may not run code in the kernel of {notebook.path}.")
        args = {"code": "".join(cell["source"]), "include_extra": False}
        kernel = self._kernel.other(notebook.kernel_id)
        self._notebooks.running.begin(document.path, _key(index, cell), _current_look())
        try:
            done = await kernel.run_cell(args, call.arguments.get("timeout"), store_history=True)
        finally:
            self._notebooks.running.end(document.path, _key(index, cell))
        shown = of_observation(done["observation"])
        if shown["isError"]:  # it did not run
            return shown
        outputs, count = done["outputs"], done["execution_count"]
        await document.set_outputs(cell.get("id") or index, outputs, count)
        number = "" if count is None else f" as [{count}]"
        ran = f"[Ran {named(index, cell)} of {document.path}{number}.]"
        return result(*shown["content"], text(ran), is_error=raised(outputs))


def _current_look() -> Look:
    """Return the function that looks at the Actions of the current call."""
    actions = current_actions.get() or CallActions()

    async def look() -> tuple[str, str]:
        return ("queued", "") if actions.current is None else await actions.current.look()

    return look


async def _within(wait_seconds: float | None, work: Coroutine[None, None, Result]) -> Result:
    """Return the result of runs, or after ``wait_seconds`` their progress while they continue."""
    if wait_seconds is None:
        return await work
    running = RunningCell(_current_look())
    task = run_in_background(work)
    try:
        await asyncio.wait([task], timeout=wait_seconds)
    except asyncio.CancelledError:
        task.cancel()
        raise
    return task.result() if task.done() else result(text(f"{await running.progress()}{CONTINUES}"))


def _key(index: int, cell: Cell) -> str:
    return str(cell.get("id") or index)


def keep_out_fault(index: int, cell: Cell) -> str:
    """Return why agents may neither edit nor run a cell, or ""."""
    if KEEP_OUT_TAG not in (cell.get("metadata") or {}).get("tags", ()):
        return ""
    return (
        f"Cell {index} is tagged {KEEP_OUT_TAG}: the person does not want agents to edit or run it."
        " Nothing was done."
    )


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
