"""Calls of tools on a notebook, and the record of their edits."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from difflib import unified_diff
from functools import wraps
from typing import Any, TypeVar

from oh_jupyter.errors import OhJupyterError
from oh_jupyter.mcp_tools.cells import Cell
from oh_jupyter.mcp_tools.kernel import Kernel
from oh_jupyter.mcp_tools.notebooks import Document, Notebooks, OpenNotebook, SeenCells
from oh_jupyter.mcp_tools.results import Result, clipped_diff, failure, result, text
from oh_jupyter.mcp_tools.toolbox import Caller
from oh_jupyter.mcp_tools.variable_content import with_content
from oh_jupyter.operations import Operation
from oh_jupyter.operations.actions import AnnounceEdit, FinishEdit, RecordEdit, UndoNotes

NOTEBOOK = {
    "type": "string",
    "description": "Path or its end. Default: this kernel's, or the only open one.",
}
CELL = {
    "type": ["integer", "string"],
    "description": "Position from 0 (-1 is the last), or id.",
}


@dataclass(frozen=True)
class NotebookCall:
    """A call of a tool on a notebook."""

    notebook: OpenNotebook
    document: Document
    arguments: dict[str, Any]
    caller: Caller
    seen: SeenCells
    changes: list[str] = field(default_factory=list)  # done so far
    counts: dict[str, int | None] = field(default_factory=dict)  # of the cells that ran

    @property
    def _reader(self) -> str:
        return json.dumps([self.caller.principal, self.caller.actor.to_json()], sort_keys=True)

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

    def after_changes(self, outcome: Result) -> Result:
        """Return an error with what had been done before it."""
        if not outcome["isError"] or not self.changes:
            return outcome
        done = "".join(f"{change} of {self.document.path}.\n" for change in self.changes)
        return {**outcome, "content": [text(done), *outcome["content"]]}


@dataclass(frozen=True)
class NotebookTools:
    """Base of tools on notebooks, for a kernel whose notebook is the default."""

    notebooks: Notebooks
    kernel: Kernel

    async def find(self, name: str | None, *, writes: bool) -> tuple[OpenNotebook, Document]:
        """Return the notebook with the end of a path, or None for the default.

        Raises:
            NotApprovedError: It leads to a file that a person did not allow to read or write.
        """
        notebook = await self.notebooks.find(name, self.kernel.kernel_id)
        await self.notebooks.check_notebook(self.kernel, notebook, writes=writes)
        return notebook, await self.notebooks.document(notebook)

    async def announce(self, call: NotebookCall) -> None:
        """Begin a turn of the agent in the notebook's kernel, so that the edit can be rewound."""
        await self.request(call, AnnounceEdit(self._path_of(call)))

    async def finish(self, call: NotebookCall) -> None:
        """Report that an announced edit is done, so that what others change later is theirs."""
        await self.request(call, FinishEdit(self._path_of(call)))

    def _path_of(self, call: NotebookCall) -> str:
        return self.notebooks.file_of(call.document.path)

    async def record(self, call: NotebookCall, edit_mode: str, before: list[Cell]) -> str:
        """Record an edit in the log of the notebook's kernel; return its diff."""
        diff = _cell_diff(call.document.path, before, await call.document.cells())
        if not diff:
            await self.finish(call)
            return diff
        arguments = call.arguments
        new_str = arguments.get("new_str", arguments.get("source"))
        action = {
            "action": "edit",
            "args": {
                "path": self._path_of(call),
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
        await self.request(call, RecordEdit(action, content, diff))
        return diff

    async def request(self, call: NotebookCall, operation: Operation[Any]) -> None:
        """Send a request to the notebook's kernel, if that has a runtime with a log."""
        kernel_id = call.notebook.kernel_id or self.kernel.kernel_id
        if kernel_id is not None:
            with suppress(OhJupyterError):
                await self.kernel.other(kernel_id).request(operation, load=False)


ToolsT = TypeVar("ToolsT", bound="NotebookTools")


def on_notebook(
    action: str, edit_mode: str | None = None
) -> Callable[
    [Callable[[ToolsT, NotebookCall], Awaitable[Result]]], Callable[..., Awaitable[Result]]
]:
    """Return a decorator that checks permission, finds the notebook, and records an edit."""

    def decorate(
        work: Callable[[ToolsT, NotebookCall], Awaitable[Result]],
    ) -> Callable[..., Awaitable[Result]]:
        @wraps(work)
        async def tool(self: ToolsT, arguments: dict[str, Any], caller: Caller) -> Result:
            if not await caller.allowed(action, "contents"):
                return failure(f"You may not {action} the files of this server.")
            if edit_mode is not None:
                arguments = await with_content(self.kernel, arguments, "source", "new_str")
            notebook, document = await self.find(
                arguments.get("notebook"), writes=action == "write"
            )
            call = NotebookCall(notebook, document, arguments, caller, self.notebooks.seen)
            if action == "write":
                self.notebooks.announce_edit()
            if edit_mode is None:
                outcome = await work(self, call)
                await self.request(call, UndoNotes())
                return outcome
            await self.announce(call)
            before = await document.cells()
            try:
                outcome = await work(self, call)
            except OhJupyterError as error:
                if not call.changes:
                    raise
                outcome = failure(str(error))
            outcome = call.after_changes(outcome)
            diff = await self.record(call, edit_mode, before)
            if diff and edit_mode == "replace" and not outcome["isError"]:
                outcome["content"].append(text(clipped_diff(diff)))
            return outcome

        return tool

    return decorate


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
