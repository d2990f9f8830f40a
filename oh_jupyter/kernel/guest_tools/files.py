"""Notebooks as files, where no Jupyter server has this kernel."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from oh_jupyter.edit_lock import held_by_saver
from oh_jupyter.editor.files.atomic_write import Fingerprint, fingerprint_of, read, replace
from oh_jupyter.errors import FileChangedError, KernelNotFoundError
from oh_jupyter.kernel.own_server import notebook_file
from oh_jupyter.mcp_tools.cells import Cell, checked
from oh_jupyter.mcp_tools.notebooks import Change, Document, FileDocument, Notebooks, OpenNotebook

LOCK_TIMEOUT_SECONDS = 10.0


class OwnNotebooks(Notebooks):
    """Notebooks in the workspace; cells of any of them run in this kernel."""

    def __init__(
        self,
        kernel_id: str,
        workspace: str,
        variables: dict[str, Any],
        is_busy: Callable[[], bool],
    ) -> None:
        super().__init__()
        self._kernel_id = kernel_id
        self._workspace = workspace
        self._variables = variables
        self._is_busy = is_busy

    async def open_ones(self) -> list[OpenNotebook]:
        """Return the notebook of this kernel, if it is known."""
        path = Path(notebook_file(self._variables, self._workspace))
        if path.suffix != ".ipynb" or not path.is_file():
            return []
        state = "busy" if self._is_busy() else "idle"
        shown = os.path.relpath(path, self._workspace)
        return [OpenNotebook(shown, self._kernel_id, "this kernel", state)]

    def unopened(self, path: str) -> OpenNotebook:
        """Return a notebook whose cells run in this kernel."""
        return OpenNotebook(path, self._kernel_id, "this kernel", "")

    async def document(self, notebook: OpenNotebook) -> Document:
        """Return the file of a notebook."""
        return NotebookFile(notebook.path, Path(self.file_of(notebook.path)))

    @property
    def root(self) -> str:
        """The workspace."""
        return self._workspace

    def file_to_judge(self, path: str) -> str | None:
        """Return the real path, see ``Notebooks``; the notebook that a person has open is plain."""
        own = notebook_file(self._variables, self._workspace)
        is_own = bool(own) and os.path.realpath(own) == os.path.realpath(self.file_of(path))
        return None if is_own else super().file_to_judge(path)

    def file_of(self, path: str) -> str:
        """Return the absolute path of a notebook."""
        return os.path.abspath(os.path.join(self._workspace, path))

    async def start(self, path: str, kernel_name: str | None, box: str | None = None) -> str:
        """Create a notebook if there is none; return what was done."""
        import nbformat

        if kernel_name is not None:
            raise KernelNotFoundError(
                "No Jupyter server has this kernel, so no other can be started. Omit kernel_name"
            )

        file = Path(self.file_of(path))
        if file.exists():
            return f"{path} exists. Its cells run in this kernel."
        empty = nbformat.writes(nbformat.v4.new_notebook()) + "\n"  # type: ignore[no-untyped-call]

        def create() -> None:
            file.parent.mkdir(parents=True, exist_ok=True)
            replace(file, empty.encode())

        await asyncio.to_thread(create)
        return f"Created {path}. Its cells run in this kernel."


@dataclass(frozen=True)
class NotebookFile(FileDocument):
    """A notebook file."""

    path: str
    _file: Path

    async def cells(self) -> list[Cell]:
        """Return all cells."""
        notebook, _ = await asyncio.to_thread(self._read)
        return checked(notebook.get("cells"), self.path)

    def _read(self) -> tuple[Any, Fingerprint]:
        import nbformat

        try:
            data, fingerprint = read(self._file)
            notebook = nbformat.reads(data.decode(), nbformat.NO_CONVERT)  # type: ignore[no-untyped-call]
            if notebook.nbformat < 4:
                raise ValueError("its format is older than 4")
        except (OSError, ValueError, AttributeError, KeyError) as error:
            raise KernelNotFoundError(
                f"There is no readable notebook {self.path!r}: {error}. Paths are relative to the "
                "workspace; kernel with command=start creates a notebook"
            ) from error
        return notebook, fingerprint

    async def _change(self, edit: Change) -> None:
        await asyncio.to_thread(self._change_file, edit)

    def _change_file(self, edit: Change) -> None:
        import nbformat

        with held_by_saver(str(self._file), LOCK_TIMEOUT_SECONDS):
            notebook, before = self._read()
            edit(
                checked(notebook.get("cells"), self.path),
                (notebook.nbformat, notebook.nbformat_minor) >= (4, 5),
            )
            text = nbformat.writes(nbformat.from_dict(notebook), nbformat.NO_CONVERT)  # type: ignore[no-untyped-call]

            def check() -> None:
                if fingerprint_of(self._file) != before:
                    raise FileChangedError(
                        f"Someone else saved {self.path} at the same moment; nothing was written. "
                        "Read the cells again, then repeat the change"
                    )

            replace(self._file, f"{text}\n".encode(), check=check)
