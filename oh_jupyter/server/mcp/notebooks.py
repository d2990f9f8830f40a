"""The open notebooks of a server, and their cells."""

from __future__ import annotations

import uuid
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from jupyter_core.utils import ensure_async
from tornado import web

from oh_jupyter.errors import FileChangedError, KernelNotFoundError, WireError
from oh_jupyter.events.actor import agent_name
from oh_jupyter.server.collaboration import SharedDocuments, sign
from oh_jupyter.server.http_errors import reason_of
from oh_jupyter.server.links.kernel_link import current_actor
from oh_jupyter.server.mcp.running_cells import RunningCells
from oh_jupyter.server.saves import OrderedSaves
from oh_jupyter.server.unsaved import DOCUMENTS_EVENT

MAX_SEEN_CELLS = 10_000  # remembered texts of cells, for all notebooks and agents together

Cell = dict[str, Any]  # A cell of the notebook format


@dataclass(frozen=True)
class OpenNotebook:
    """A notebook by its path below the server's root, and its kernel if it has one."""

    path: str
    kernel_id: str | None
    kernel_name: str
    state: str


class SeenCells:
    """Texts of cells as agents last read or wrote them."""

    def __init__(self) -> None:
        self._sources: OrderedDict[tuple[str, str, str], str] = OrderedDict()

    def source(self, reader: str, path: str, cell: Cell) -> str | None:
        """Return the text of a cell that an agent knows, or None if it has not read it."""
        return self._sources.get((reader, path, str(cell.get("id"))))

    def note(self, reader: str, path: str, cells: Iterable[Cell]) -> None:
        """Remember the texts that an agent knows now."""
        for cell in cells:
            key = (reader, path, str(cell.get("id")))
            self._sources[key] = "".join(cell["source"])
            self._sources.move_to_end(key)
        while len(self._sources) > MAX_SEEN_CELLS:
            self._sources.popitem(last=False)


@dataclass(frozen=True)
class Notebooks:
    """Finds the open notebooks of a server, and their documents."""

    _serverapp: Any
    _shared_documents: SharedDocuments
    seen: SeenCells = field(default_factory=SeenCells)
    running: RunningCells = field(default_factory=RunningCells)

    async def open_ones(self) -> list[OpenNotebook]:
        """Return the notebooks that have a session."""
        return [
            OpenNotebook(
                str(session.get("path", "")),
                kernel.get("id"),
                str(kernel.get("name", "")),
                str(kernel.get("execution_state", "")),
            )
            for session in await self._serverapp.session_manager.list_sessions()
            for kernel in [session.get("kernel") or {}]
            if session.get("type", "notebook") == "notebook"
        ]

    async def find(self, name: str | None, kernel_id: str | None) -> OpenNotebook:
        """Return the notebook with a path or its end, or None for the only one.

        The notebook of ``kernel_id`` takes precedence; one that is not open has no kernel. Raises
        KernelNotFoundError if none is open, or the choice is ambiguous.
        """
        notebooks = await self.open_ones()
        if name is not None:
            path = name.strip("/")
            matches = [n for n in notebooks if n.path == path]
            matches += [n for n in notebooks if path and PurePosixPath(n.path).match(path)]
            return matches[0] if matches else OpenNotebook(path, None, "", "")
        ours = [n for n in notebooks if n.kernel_id is not None and n.kernel_id == kernel_id]
        candidates = ours or notebooks
        if len(candidates) == 1:
            return candidates[0]
        names = ", ".join(repr(notebook.path) for notebook in candidates)
        raise KernelNotFoundError(
            f"Several notebooks are open: choose one with notebook=... ({names})"
            if candidates
            else "No notebook is open. Ask the person to open one, or name a file with notebook=..."
        )

    async def create(self, path: str) -> bool:
        """Create an empty notebook; return False if there is one already."""
        contents = self._serverapp.contents_manager
        if await ensure_async(contents.file_exists(path)):
            return False
        notebook = {"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
        model = {"type": "notebook", "format": "json", "content": notebook}
        await ensure_async(contents.save(model, path))
        return True

    def file_of(self, path: str) -> str:
        """Return the absolute path of a notebook on this machine; else its path below the root."""
        root = getattr(self._serverapp.contents_manager, "root_dir", "")
        return str(Path(root, path)) if root else path

    def announce_edit(self) -> None:
        """Report to the tabs that an agent will edit a document."""
        data = {"action": "edit", "agent": agent_name(current_actor.get())}
        self._serverapp.event_logger.emit(schema_id=DOCUMENTS_EVENT, data=data)

    async def document(self, notebook: OpenNotebook) -> Document:
        """Return the document of a notebook: the shared one, or the file."""
        shared = await self._shared_documents.notebook(notebook.path)
        if shared is not None:
            return LiveDocument(notebook.path, shared)
        contents = self._serverapp.contents_manager
        return StoredDocument(notebook.path, contents, self._shared_documents.saves)


Reference = int | str  # A cell: its id, or its position from 0 or from the end


def new_cell(kind: str, source: str) -> Cell:
    """Make a code, markdown or raw cell."""
    cell: Cell = {"cell_type": kind, "id": uuid.uuid4().hex[:8], "metadata": {}, "source": source}
    return {**cell, "outputs": [], "execution_count": None} if kind == "code" else cell


def position(cells: list[Cell], reference: Reference) -> int:
    """Return the position of a cell from 0, or raise WireError."""
    for index, cell in enumerate(cells):
        if isinstance(reference, str) and cell.get("id") == reference:
            return index
    number = reference if isinstance(reference, int) else _number(reference)
    if number is None or not -len(cells) <= number < len(cells):
        raise WireError(
            f"There is no cell {reference!r}: the notebook has {len(cells)} cells, counted from 0",
            "cell",
        )
    return number % len(cells)


def same_cell(cells: list[Cell], index: int, known: Cell) -> int:
    """Return the position of a cell read earlier; raise FileChangedError if it has changed."""
    if "id" in known:
        index = next((n for n, cell in enumerate(cells) if cell.get("id") == known["id"]), -1)
    if not 0 <= index < len(cells) or cells[index]["source"] != known["source"]:
        raise FileChangedError(
            "Somebody else changed the cell at the same moment; nothing was written. Read the "
            "cells again, then repeat the change"
        )
    return index


def _number(text: str) -> int | None:
    return int(text) if text.lstrip("-").isdigit() else None


@dataclass(frozen=True)
class StoredDocument:
    """A notebook file below the server's root, changed through the contents manager."""

    path: str
    _contents: Any
    _saves: OrderedSaves

    async def cells(self) -> list[Cell]:
        """Return all cells."""
        # During a save, the file is incomplete.
        async with self._saves.alone(self.path):
            return list((await self._load())["content"]["cells"])

    async def _load(self) -> dict[str, Any]:
        try:
            model: dict[str, Any] = await ensure_async(
                self._contents.get(self.path, type="notebook", content=True)
            )
        except web.HTTPError as error:
            raise KernelNotFoundError(
                f"There is no readable notebook {self.path!r}: {reason_of(error)}. list_notebooks "
                "shows the open ones; other paths are relative to the server's root"
            ) from error
        return model

    async def _change(self, edit: Callable[[list[Cell], bool], None]) -> None:
        async with self._saves.alone(self.path):
            model = await self._load()
            notebook = model["content"]
            has_ids = (notebook["nbformat"], notebook["nbformat_minor"]) >= (4, 5)
            edit(notebook["cells"], has_ids)
            now = await ensure_async(self._contents.get(self.path, content=False))
            if now["last_modified"] != model["last_modified"]:
                raise FileChangedError(
                    f"Somebody else saved {self.path} at the same moment; nothing was written. "
                    "Read the cells again, then repeat the change"
                )
            saved = {"type": "notebook", "format": "json", "content": notebook}
            await ensure_async(self._contents.save(saved, self.path))

    async def insert(self, index: int, cell: Cell) -> None:
        """Insert a cell; the number of cells stands for the end."""
        await self._change(
            lambda cells, has_ids: cells.insert(index, cell if has_ids else _without_id(cell))
        )

    async def set_source(
        self, index: int, known: Cell, source: str, kind: str | None = None
    ) -> None:
        """Change the text of a cell that was read at an index, and possibly its type.

        Raises FileChangedError if it has another text by now.
        """

        def edit(cells: list[Cell], has_ids: bool) -> None:
            index_now = same_cell(cells, index, known)
            cells[index_now]["source"] = source
            if kind not in (None, cells[index_now]["cell_type"]):
                changed = _of_kind(cells[index_now], str(kind))
                cells[index_now] = changed if has_ids else _without_id(changed)

        await self._change(edit)

    async def set_outputs(
        self, reference: Reference, outputs: list[dict[str, Any]], count: int | None
    ) -> None:
        """Replace the outputs and the execution count of a code cell."""

        def edit(cells: list[Cell], has_ids: bool) -> None:
            cells[position(cells, reference)].update(outputs=outputs, execution_count=count)

        await self._change(edit)

    async def delete(self, reference: Reference) -> None:
        """Delete a cell."""
        await self._change(lambda cells, _: cells.__delitem__(position(cells, reference)))

    async def move(self, reference: Reference, index: int) -> None:
        """Move a cell to its new index, in one change."""
        await self._change(
            lambda cells, _: cells.insert(index, cells.pop(position(cells, reference)))
        )


@dataclass(frozen=True)
class LiveDocument:
    """A shared document, which saves itself; its methods are those of ``StoredDocument``."""

    path: str
    _shared: Any  # the ``jupyter_ydoc.YNotebook``, not a copy

    async def cells(self) -> list[Cell]:
        """Return all cells."""
        return self._cells()

    def _cells(self) -> list[Cell]:
        # Notebooks of older formats hide the ids, which the shared cells have.
        ycells = self._shared.ycells
        return [
            {**self._shared.get_cell(index), "id": ycells[index].get("id")}
            for index in range(len(ycells))
        ]

    async def insert(self, index: int, cell: Cell) -> None:
        """Insert a cell."""
        self._shared.ycells.insert(index, self._shared.create_ycell(cell))

    async def set_source(
        self, index: int, known: Cell, source: str, kind: str | None = None
    ) -> None:
        """Change the text of a cell that was read at an index, and possibly its type."""
        cells = self._cells()
        index_now = same_cell(cells, index, known)
        if kind not in (None, cells[index_now]["cell_type"]):
            self._shared.set_cell(
                index_now, _of_kind({**cells[index_now], "source": source}, str(kind))
            )
            return
        text = self._shared.ycells[index_now]["source"]
        with self._shared.ydoc.transaction():
            sign(self._shared)
            text.clear()
            text += source

    async def set_outputs(
        self, reference: Reference, outputs: list[dict[str, Any]], count: int | None
    ) -> None:
        """Replace the outputs and the execution count of a code cell."""
        from pycrdt import Map, Text  # type: ignore[import-not-found]

        cell = self._shared.ycells[position(self._cells(), reference)]
        with self._shared.ydoc.transaction():
            cell["execution_count"] = count
            cell["outputs"].clear()
            for output in outputs:
                # Streams grow while a cell runs, so their text is shared, too.
                grows = output.get("output_type") == "stream"
                cell["outputs"].append(
                    Map({**output, "text": Text(output["text"])} if grows else output)
                )

    async def delete(self, reference: Reference) -> None:
        """Delete a cell."""
        with self._shared.ydoc.transaction():
            sign(self._shared)
            del self._shared.ycells[position(self._cells(), reference)]

    async def move(self, reference: Reference, index: int) -> None:
        """Move a cell to its new index."""
        cells = self._cells()
        cell = cells[position(cells, reference)]
        await self.delete(reference)
        await self.insert(index, cell)


Document = StoredDocument | LiveDocument  # the cells of one notebook


def _of_kind(cell: Cell, kind: str) -> Cell:
    """Return a cell converted to another type."""
    made = new_cell(kind, cell["source"])
    return {**made, "id": cell.get("id") or made["id"], "metadata": dict(cell["metadata"])}


def _without_id(cell: Cell) -> Cell:
    return {name: value for name, value in cell.items() if name != "id"}
