"""Notebooks and their documents, as the tools see them."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, Protocol

from oh_jupyter.containment import is_within
from oh_jupyter.errors import KernelNotFoundError, NotApprovedError
from oh_jupyter.mcp_tools.cells import (
    Cell,
    Reference,
    converted,
    position,
    same_cell,
    without_id,
)
from oh_jupyter.mcp_tools.kernel import Kernel
from oh_jupyter.mcp_tools.run_queue import RunningCells, RunQueue
from oh_jupyter.operations.files import AskFile

MAX_SEEN_CELLS = 10_000  # remembered texts of cells, for all notebooks and agents together


@dataclass(frozen=True)
class OpenNotebook:
    """A notebook by its path below the root, and its kernel if it has one."""

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


class Document(Protocol):
    """The cells of one notebook."""

    @property
    def path(self) -> str:
        """Path below the root."""
        ...

    async def cells(self) -> list[Cell]:
        """Return all cells."""
        ...

    async def insert(self, index: int, cell: Cell) -> None:
        """Insert a cell; the number of cells stands for the end."""
        ...

    async def set_source(
        self, index: int, known: Cell, source: str, kind: str | None = None
    ) -> None:
        """Change the text of a cell that was read at an index, and possibly its type.

        Raises FileChangedError if it has another text by now.
        """
        ...

    async def set_outputs(
        self, reference: Reference, outputs: list[dict[str, Any]], count: int | None
    ) -> None:
        """Replace the outputs and the execution count of a code cell."""
        ...

    async def delete(self, reference: Reference) -> None:
        """Delete a cell."""
        ...

    async def move(self, reference: Reference, index: int) -> None:
        """Move a cell to its new index."""
        ...


Change = Callable[[list[Cell], bool], None]
"""Changes cells in place; the flag says whether cells of this format have ids."""


class FileDocument(ABC):
    """A notebook in a file; subclasses read and write it."""

    @abstractmethod
    async def cells(self) -> list[Cell]:
        """Return all cells."""

    @abstractmethod
    async def _change(self, edit: Change) -> None:
        """Change the cells in one write; raise FileChangedError if the file changes meanwhile."""

    async def insert(self, index: int, cell: Cell) -> None:
        """Insert a cell, see ``Document``."""
        await self._change(
            lambda cells, has_ids: cells.insert(index, cell if has_ids else without_id(cell))
        )

    async def set_source(
        self, index: int, known: Cell, source: str, kind: str | None = None
    ) -> None:
        """Change the text of a cell, see ``Document``."""

        def edit(cells: list[Cell], has_ids: bool) -> None:
            index_now = same_cell(cells, index, known)
            cells[index_now]["source"] = source
            if kind not in (None, cells[index_now]["cell_type"]):
                changed = converted(cells[index_now], str(kind))
                cells[index_now] = changed if has_ids else without_id(changed)

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


async def _ask(kernel: Kernel, file: str, *, writes: bool) -> None:
    tool = "edit_cell" if writes else "read_cells"
    await kernel.request(AskFile(file, tool, writes=writes))


def _check_in_box(kernel: Kernel, notebook: OpenNotebook, file: str, *, writes: bool) -> None:
    """Raise NotApprovedError for a notebook that is outside of a kernel's sandbox, or runs there.

    The server decides, because agents can change what a sandboxed kernel's runtime answers.
    """
    if not kernel.workspace_of_box or not is_within(file, kernel.workspace_of_box):
        raise NotApprovedError(
            f"{notebook.path} is outside of the directory of this kernel's sandbox; nothing was "
            "done. Use a notebook in the kernel's directory"
        )
    if writes and notebook.kernel_id is not None:
        kernel.other_for_agents(notebook.kernel_id)


class Notebooks(ABC):
    """Finds notebooks, and their documents."""

    def __init__(self) -> None:
        self.seen = SeenCells()
        self.running = RunningCells()
        self.runs = RunQueue()

    @abstractmethod
    async def open_ones(self) -> list[OpenNotebook]:
        """Return the notebooks that have a kernel."""

    @abstractmethod
    async def document(self, notebook: OpenNotebook) -> Document:
        """Return the document of a notebook."""

    @abstractmethod
    def file_of(self, path: str) -> str:
        """Return the absolute path of a notebook on this machine; else its path below the root."""

    @property
    @abstractmethod
    def root(self) -> str:
        """Directory of the notebooks on this machine, or "" if they are elsewhere."""

    def file_to_judge(self, path: str) -> str | None:
        """Return the real path of a notebook behind a link, or outside of the root; else None."""
        if not self.root:
            return None
        root = os.path.realpath(self.root)
        plain, real = os.path.join(root, path.strip("/")), os.path.realpath(self.file_of(path))
        is_plain = real == os.path.normpath(plain) and real.startswith(root.rstrip("/") + "/")
        return None if is_plain else real

    async def check_file(self, kernel: Kernel, path: str, *, writes: bool) -> None:
        """Have the agent's kernel judge a link, like an Action on the file that it leads to.

        Raises:
            NotApprovedError: A person did not allow it.
        """
        if (file := self.file_to_judge(path)) is not None:
            if kernel.is_boxed:
                raise NotApprovedError(
                    f"{path} leads to {file}, and this kernel's sandbox has no say over files "
                    "elsewhere; nothing was done. Use a notebook that no link leads to"
                )
            await _ask(kernel, file, writes=writes)

    async def check_notebook(self, kernel: Kernel, notebook: OpenNotebook, *, writes: bool) -> None:
        """Check a notebook's file; one without a kernel of its own is judged like any file.

        Raises:
            NotApprovedError: A person did not allow it, or it leads out of a kernel's sandbox.
        """
        await self.check_file(kernel, notebook.path, writes=writes)
        if not self.root or not kernel.is_there or self.file_to_judge(notebook.path) is not None:
            return
        file = os.path.realpath(self.file_of(notebook.path))
        if kernel.is_boxed:
            _check_in_box(kernel, notebook, file, writes=writes)
        elif notebook.kernel_id is None:
            await _ask(kernel, file, writes=writes)

    @abstractmethod
    async def start(self, path: str, kernel_name: str | None, box: str | None = None) -> str:
        """Open or create a notebook with a kernel; return what was done.

        Args:
            path: The notebook.
            kernel_name: Name of the kernel's kind; None for the default one.
            box: Directory that the sandbox of the asking kernel may change; None without one.

        Raises:
            KernelNotFoundError: There is no kernel of that name.
            NotApprovedError: The new kernel could do more than the sandbox of the asking one.
        """

    def announce_edit(self) -> None:
        """Report to people that an agent will edit a document."""
        return

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
            return matches[0] if matches else self.unopened(path)
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

    def unopened(self, path: str) -> OpenNotebook:
        """Return a notebook that nobody has opened."""
        return OpenNotebook(path, None, "", "")
