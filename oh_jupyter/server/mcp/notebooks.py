"""The open notebooks of a Jupyter server, and their documents."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from jupyter_core.utils import ensure_async
from tornado import web

from oh_jupyter.containment import is_within
from oh_jupyter.errors import (
    FileChangedError,
    KernelNotFoundError,
    NotApprovedError,
    ServerError,
)
from oh_jupyter.events.actor import current_actor
from oh_jupyter.mcp_tools.cells import (
    Cell,
    Reference,
    checked,
    converted,
    position,
    same_cell,
)
from oh_jupyter.mcp_tools.notebooks import Change, Document, FileDocument, Notebooks, OpenNotebook
from oh_jupyter.server.collaboration import SharedDocuments, sign
from oh_jupyter.server.http_errors import reason_of
from oh_jupyter.server.open_notebooks import open_notebooks
from oh_jupyter.server.router import Router, is_boxed_spec
from oh_jupyter.server.saves import OrderedSaves
from oh_jupyter.server.unsaved import DOCUMENTS_EVENT

_ID = re.compile(r'"id": *"([^"]*)"')


def chosen_kernel(
    path: str, asked: str | None, metadata: Mapping[str, Any], specs: Mapping[str, Any]
) -> str | None:
    """Return the kernelspec for a notebook, None for the server's default one.

    Raises KernelNotFoundError if it is not installed, or of another language than the notebook.
    """
    kernelspec = metadata.get("kernelspec") or {}
    own = str(kernelspec.get("name") or "")
    name = asked or own or None
    language = (
        kernelspec.get("language")
        or (metadata.get("language_info") or {}).get("name")
        or specs.get(own, {}).get("language")
    )
    known = ", ".join(sorted(specs))
    if name is not None and name not in specs:
        whose = "" if asked else f", for which {path} was written"
        raise KernelNotFoundError(
            f"There is no kernel {name!r}{whose}. Kernels: {known}. Install it, or choose one of "
            "the same language with kernel_name"
        )
    spoken = specs[name].get("language") if name is not None else None
    if language and spoken and str(language).lower() != str(spoken).lower():
        raise KernelNotFoundError(
            f"{path} is in {language}, and the kernel {name!r} runs {spoken}. Kernels: {known}"
        )
    if language and name is None:
        same = [each for each in specs if _language(specs[each]) == str(language).lower()]
        if not same:
            raise KernelNotFoundError(f"{path} is in {language}, and no kernel runs that: {known}")
        return same[0]
    return name


def _language(spec: Mapping[str, Any]) -> str:
    return str(spec.get("language", "")).lower()


class ServerNotebooks(Notebooks):
    """The notebooks of a server."""

    def __init__(self, serverapp: Any, router: Router, shared_documents: SharedDocuments) -> None:
        super().__init__()
        self._serverapp = serverapp
        self._router = router
        self._shared_documents = shared_documents

    async def open_ones(self) -> list[OpenNotebook]:
        """Return the notebooks that have a session."""
        return await open_notebooks(self._serverapp.session_manager, self._router, self.root)

    async def start(self, path: str, kernel_name: str | None, box: str | None = None) -> str:
        """Open or create a notebook with a kernel, see ``Notebooks``."""
        specs = {
            name: each["spec"]
            for name, each in (
                await ensure_async(self._serverapp.kernel_spec_manager.get_all_specs())
            ).items()
        }
        contents = self._serverapp.contents_manager
        is_there = await ensure_async(contents.file_exists(path))
        stored = await ensure_async(contents.get(path, type="notebook")) if is_there else None
        metadata = stored["content"]["metadata"] if stored is not None else {}
        name = chosen_kernel(path, kernel_name, metadata, specs)
        if box is not None:
            spec = specs.get(name or self._serverapp.kernel_manager.default_kernel_name, {})
            self._check_box(path, spec, box)
        if not is_there:
            await self._create(path, name, specs)
        session = await self._serverapp.session_manager.create_session(
            path=path, name=path.rpartition("/")[2], type="notebook", kernel_name=name
        )
        kernel = session["kernel"]
        made = "Opened" if is_there else "Created"
        return f"{made} {path} with the kernel {kernel['id']} ({kernel['name']})."

    def _check_box(self, path: str, spec: Mapping[str, Any], box: str) -> None:
        """Raise NotApprovedError unless a kernel stays in the sandbox of the one that asks."""
        if not is_boxed_spec(spec.get("metadata")):
            raise NotApprovedError(
                "An agent in a sandboxed kernel starts only sandboxed ones; nothing was started. "
                f"Pass the name of one as kernel_name, or ask the user to open {path}"
            )
        folder = os.path.realpath(os.path.dirname(self.file_of(path)))
        if not box or not is_within(folder, box):
            raise NotApprovedError(
                f"{path} is outside of the directory of this kernel's sandbox; nothing was "
                "started. Use a notebook in the kernel's directory"
            )

    async def _create(self, path: str, kernel: str | None, specs: Mapping[str, Any]) -> None:
        """Create an empty notebook for a kernel, and the folders above it."""
        contents = self._serverapp.contents_manager
        folders = [str(folder) for folder in PurePosixPath(path).parents][:-1]
        for folder in reversed(folders):
            if not await ensure_async(contents.dir_exists(folder)):
                await ensure_async(contents.save({"type": "directory"}, folder))
        name = kernel or self._serverapp.kernel_manager.default_kernel_name
        metadata = {}
        if spec := specs.get(name):
            fields = {key: spec[key] for key in ("display_name", "language") if key in spec}
            metadata["kernelspec"] = {"name": name, **fields}
        notebook = {"cells": [], "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
        model = {"type": "notebook", "format": "json", "content": notebook}
        await ensure_async(contents.save(model, path))

    @property
    def root(self) -> str:
        """Root of the contents manager on this machine, or ""."""
        return str(getattr(self._serverapp.contents_manager, "root_dir", ""))

    def file_of(self, path: str) -> str:
        """Return the absolute path of a notebook on this machine; else its path below the root."""
        return str(Path(self.root, path)) if self.root else path

    def announce_edit(self) -> None:
        """Report to the tabs that an agent will edit a document."""
        data = {"action": "edit", "agent": current_actor.get().name}
        self._serverapp.event_logger.emit(schema_id=DOCUMENTS_EVENT, data=data)

    async def document(self, notebook: OpenNotebook) -> Document:
        """Return the document of a notebook: the shared one, or the file."""
        shared = await self._shared_documents.notebook(notebook.path)
        if shared is not None:
            return LiveDocument(notebook.path, shared)
        contents = self._serverapp.contents_manager
        return StoredDocument(notebook.path, contents, self._shared_documents.saves)


@dataclass(frozen=True)
class StoredDocument(FileDocument):
    """A notebook file below the server's root, changed through the contents manager."""

    path: str
    _contents: Any
    _saves: OrderedSaves

    async def cells(self) -> list[Cell]:
        """Return all cells."""
        # During a save, the file is incomplete.
        async with self._saves.alone(self.path):
            cells = checked((await self._load())["content"].get("cells"), self.path)
            await self._keep_equal_ids(cells)
            return cells

    async def _keep_equal_ids(self, cells: list[Cell]) -> None:
        """Give cells the ids that are in the file: Jupyter replaces equal ones at each look."""
        try:
            model = await ensure_async(self._contents.get(self.path, type="file", format="text"))
        except web.HTTPError:  # the manager knows it as a notebook only
            return
        ids = _ID.findall(model["content"])
        if len(set(ids)) == len(ids):
            return
        with suppress(ValueError, TypeError, KeyError):
            stored = json.loads(model["content"])["cells"]
            for cell, own in zip(cells, stored, strict=True):
                cell["id"] = own["id"]

    async def _load(self) -> dict[str, Any]:
        try:
            model: dict[str, Any] = await ensure_async(
                self._contents.get(self.path, type="notebook", content=True)
            )
        except web.HTTPError as error:
            raise KernelNotFoundError(
                f"There is no readable notebook {self.path!r}: {reason_of(error)}. list_notebooks "
                "shows the open ones; other paths are relative to the server's root. An open one "
                "without a file is edited on another machine: run_ipython works on its variables"
            ) from error
        return model

    async def _change(self, edit: Change) -> None:
        async with self._saves.alone(self.path):
            model = await self._load()
            notebook = model["content"]
            has_ids = (notebook["nbformat"], notebook["nbformat_minor"]) >= (4, 5)
            cells = checked(notebook.get("cells"), self.path)
            await self._keep_equal_ids(cells)
            edit(cells, has_ids)
            now = await ensure_async(self._contents.get(self.path, content=False))
            if now["last_modified"] != model["last_modified"]:
                raise FileChangedError(
                    f"Someone else saved {self.path} at the same moment; nothing was written. "
                    "Read the cells again, then repeat the change"
                )
            saved = {"type": "notebook", "format": "json", "content": notebook}
            try:
                await ensure_async(self._contents.save(saved, self.path))
            except web.HTTPError as error:
                raise ServerError(f"{self.path} was not saved: {reason_of(error)}") from error


@dataclass(frozen=True)
class LiveDocument:
    """A shared document, which saves itself; its methods are those of ``Document``."""

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
                index_now, converted({**cells[index_now], "source": source}, str(kind))
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
