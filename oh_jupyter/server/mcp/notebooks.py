"""The notebooks that are open in a server, and which of them is meant."""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from jupyter_core.utils import ensure_async
from tornado import web

from oh_jupyter.errors import FileChangedError, KernelNotFoundError, WireError
from oh_jupyter.server.collaboration import SharedDocuments
from oh_jupyter.server.http_errors import reason_of
from oh_jupyter.server.saves import OrderedSaves

MAX_SEEN_CELLS = 10_000
"""Cells whose texts are remembered, of all notebooks and agents."""

Cell = dict[str, Any]
"""A cell of the notebook format."""


@dataclass(frozen=True)
class OpenNotebook:
    """A notebook with a session, by its path below the server's root; it may have no kernel."""

    path: str
    kernel_id: str | None
    kernel_name: str
    state: str


class SeenCells:
    """Texts of cells as agents last read or wrote them."""

    def __init__(self) -> None:
        self._sources: OrderedDict[tuple[str, str, str], str] = OrderedDict()

    def source(self, reader: str, path: str, cell: Cell) -> str | None:
        """Return the text that an agent knows of a cell, or None if it has not read the cell."""
        return self._sources.get((reader, path, str(cell.get("id"))))

    def note(self, reader: str, path: str, cells: Iterable[Cell]) -> None:
        """Remember the texts that an agent knows now."""
        for cell in cells:
            key = (reader, path, str(cell.get("id")))
            self._sources[key] = "".join(cell["source"])
            self._sources.move_to_end(key)
        while len(self._sources) > MAX_SEEN_CELLS:
            self._sources.popitem(last=False)


class Notebooks:
    """Finds the open notebooks of a server, and their documents."""

    def __init__(self, serverapp: Any, shared_documents: SharedDocuments) -> None:
        """Look at a server."""
        self._serverapp = serverapp
        self._shared_documents = shared_documents
        self._saves = shared_documents.saves
        self.seen = SeenCells()

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

    def file_of(self, path: str) -> str:
        """Where a notebook is on this machine, if it is; else its path below the server's root."""
        root = getattr(self._serverapp.contents_manager, "root_dir", "")
        return str(Path(root, path)) if root else path

    async def document(self, notebook: OpenNotebook) -> Document:
        """The document of a notebook: the one that people edit together, or the file."""
        shared = await self._shared_documents.notebook(notebook.path)
        if shared is not None:
            return LiveDocument(notebook.path, shared)
        contents = self._serverapp.contents_manager
        return StoredDocument(notebook.path, contents, self._saves)


Reference = int | str
"""A cell: its position, from 0 or from the end, or its id."""


def new_cell(kind: str, source: str) -> Cell:
    """A new code, markdown or raw cell."""
    cell: Cell = {"cell_type": kind, "id": uuid.uuid4().hex[:8], "metadata": {}, "source": source}
    return {**cell, "outputs": [], "execution_count": None} if kind == "code" else cell


def position(cells: list[Cell], reference: Reference) -> int:
    """Position of the cell that a reference means, from 0; WireError if there is none."""
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
    """Position of a cell that was read at an index; FileChangedError if its text is another."""
    if "id" in known:
        index = next((n for n, cell in enumerate(cells) if cell.get("id") == known["id"]), -1)
    if not 0 <= index < len(cells) or cells[index]["source"] != known["source"]:
        raise FileChangedError(
            "The cell was changed by somebody else at the same moment; nothing was changed. Read "
            "the cells again, then repeat the change"
        )
    return index


def _number(text: str) -> int | None:
    return int(text) if text.lstrip("-").isdigit() else None


class Document(ABC):
    """The cells of one notebook."""

    path: str

    @abstractmethod
    async def cells(self) -> list[Cell]:
        """All cells, as they are now."""

    @abstractmethod
    async def insert(self, index: int, cell: Cell) -> None:
        """Put a cell in at an index, the number of cells for the end."""

    @abstractmethod
    async def set_source(
        self, index: int, known: Cell, source: str, kind: str | None = None
    ) -> None:
        """Change the text of a cell, and its type if one is given; the rest of it stays.

        The cell is given as it was read, with its position; FileChangedError if it has another text
        by now.
        """

    @abstractmethod
    async def set_outputs(
        self, reference: Reference, outputs: list[dict[str, Any]], count: int | None
    ) -> None:
        """Replace the outputs and the execution count of a code cell."""

    @abstractmethod
    async def delete(self, reference: Reference) -> None:
        """Take a cell out."""

    async def move(self, reference: Reference, index: int) -> None:
        """Put a cell elsewhere; the index is that of afterwards."""
        cells = await self.cells()
        cell = cells[position(cells, reference)]
        await self.delete(reference)
        await self.insert(index, cell)


class StoredDocument(Document):
    """A notebook file, changed through the server's contents manager."""

    def __init__(self, path: str, contents: Any, saves: OrderedSaves) -> None:
        """Name a notebook below the server's root."""
        self.path = path
        self._contents = contents
        self._saves = saves

    async def cells(self) -> list[Cell]:
        """All cells, see ``Document.cells``."""
        # While it is saved, the file is not whole.
        async with self._saves.alone(self.path):
            return list((await self._load())["content"]["cells"])

    async def _load(self) -> dict[str, Any]:
        try:
            model: dict[str, Any] = await ensure_async(
                self._contents.get(self.path, type="notebook", content=True)
            )
        except web.HTTPError as problem:
            raise KernelNotFoundError(
                f"There is no notebook {self.path!r} to be read: {reason_of(problem)}. "
                "list_notebooks tells which are open; other paths are relative to the server's root"
            ) from problem
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
                    f"{self.path} was saved by somebody else at the same moment; nothing was "
                    "changed. Read the cells again, then repeat the change"
                )
            saved = {"type": "notebook", "format": "json", "content": notebook}
            await ensure_async(self._contents.save(saved, self.path))

    async def insert(self, index: int, cell: Cell) -> None:
        """Put a cell in, see ``Document.insert``."""
        await self._change(
            lambda cells, has_ids: cells.insert(index, cell if has_ids else _without_id(cell))
        )

    async def set_source(
        self, index: int, known: Cell, source: str, kind: str | None = None
    ) -> None:
        """Change the text of a cell, see ``Document.set_source``."""

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
        """Put outputs below a code cell, see ``Document.set_outputs``."""

        def edit(cells: list[Cell], has_ids: bool) -> None:
            cells[position(cells, reference)].update(outputs=outputs, execution_count=count)

        await self._change(edit)

    async def delete(self, reference: Reference) -> None:
        """Take a cell out, see ``Document.delete``."""
        await self._change(lambda cells, _: cells.__delitem__(position(cells, reference)))

    async def move(self, reference: Reference, index: int) -> None:
        """Put a cell elsewhere, see ``Document.move``; all in one change."""
        await self._change(
            lambda cells, _: cells.insert(index, cells.pop(position(cells, reference)))
        )


class LiveDocument(Document):
    """A document that people share, which saves itself."""

    def __init__(self, path: str, shared: Any) -> None:
        """Take a ``jupyter_ydoc.YNotebook``, not a copy."""
        self.path = path
        self._shared = shared

    async def cells(self) -> list[Cell]:
        """All cells, see ``Document.cells``."""
        return self._cells()

    def _cells(self) -> list[Cell]:
        # Ids are hidden from notebooks of older formats, but the shared cells have them.
        ycells = self._shared.ycells
        return [
            {**self._shared.get_cell(index), "id": ycells[index].get("id")}
            for index in range(len(ycells))
        ]

    async def insert(self, index: int, cell: Cell) -> None:
        """Put a cell in, see ``Document.insert``."""
        self._shared.ycells.insert(index, self._shared.create_ycell(cell))

    async def set_source(
        self, index: int, known: Cell, source: str, kind: str | None = None
    ) -> None:
        """Change the text of a cell, see ``Document.set_source``."""
        cells = self._cells()
        index_now = same_cell(cells, index, known)
        if kind not in (None, cells[index_now]["cell_type"]):
            self._shared.set_cell(
                index_now, _of_kind({**cells[index_now], "source": source}, str(kind))
            )
            return
        text = self._shared.ycells[index_now]["source"]
        with self._shared.ydoc.transaction():
            text.clear()
            text += source

    async def set_outputs(
        self, reference: Reference, outputs: list[dict[str, Any]], count: int | None
    ) -> None:
        """Put outputs below a code cell, see ``Document.set_outputs``."""
        from pycrdt import Map, Text  # type: ignore[import-not-found]

        cell = self._shared.ycells[position(self._cells(), reference)]
        with self._shared.ydoc.transaction():
            cell["execution_count"] = count
            cell["outputs"].clear()
            for output in outputs:
                # Streams grow while a cell runs, so their text is a shared one.
                grows = output.get("output_type") == "stream"
                cell["outputs"].append(
                    Map({**output, "text": Text(output["text"])} if grows else output)
                )

    async def delete(self, reference: Reference) -> None:
        """Take a cell out, see ``Document.delete``."""
        del self._shared.ycells[position(self._cells(), reference)]


def _of_kind(cell: Cell, kind: str) -> Cell:
    """The same cell as one of another type."""
    made = new_cell(kind, cell["source"])
    return {**made, "id": cell.get("id") or made["id"], "metadata": dict(cell["metadata"])}


def _without_id(cell: Cell) -> Cell:
    return {name: value for name, value in cell.items() if name != "id"}
