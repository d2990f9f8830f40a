"""Documents that people edit together by jupyter-collaboration, while agents change their files."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import Any

from jupyter_server.utils import ensure_async

from oh_jupyter.server.unsaved import DOCUMENTS_EVENT

__all__ = ["SharedDocuments"]

ROOM_EVENT = "https://schema.jupyter.org/jupyter_collaboration/session/v1"


class SharedDocuments:
    """The documents of the extension ``jupyter_server_ydoc``, which jupyter-collaboration brings.

    It reads a file that somebody else has written in place of what people have typed since it
    saved. Here, what is new in the file is merged into what they have typed.
    """

    def __init__(self, serverapp: Any) -> None:
        """Follow the documents that are opened from now on."""
        self._serverapp = serverapp
        self._followed: dict[str, FollowedRoom] = {}
        listen = serverapp.event_logger.add_listener
        listen(schema_id=ROOM_EVENT, listener=self._on_room)
        listen(schema_id=DOCUMENTS_EVENT, listener=self._on_documents)

    async def notebook(self, path: str) -> Any | None:
        """The ``jupyter_ydoc.YNotebook`` of an open notebook; None if no tab shares it."""
        app = self._extension()
        if app is None:
            return None
        return await app.get_document(
            path=path, content_type="notebook", file_format="json", copy=False
        )

    def _extension(self) -> Any | None:
        manager = self._serverapp.extension_manager
        for app in manager.extension_apps.get("jupyter_server_ydoc", ()):
            if hasattr(app, "get_document") and not getattr(app, "disable_rtc", False):
                return app
        return None

    async def _on_documents(self, logger: Any, schema_id: str, data: dict[str, Any]) -> None:
        if data["action"] == "changed":
            for room in list(self._followed.values()):
                await room.read_changed_file()

    async def _on_room(self, logger: Any, schema_id: str, data: dict[str, Any]) -> None:
        room, app = data["room"], self._extension()
        if app is None:
            return
        if data.get("action") == "clean":
            self._leave(room)
        elif data.get("action") == "initialize" and data.get("msg") == "Room initialized":
            # A copy is made when all has been loaded.
            await app.get_document(room_id=room, copy=True)
            document = await app.get_document(room_id=room, copy=False)
            if document is not None:
                file_format, file_type, file_id = room.split(":", 2)
                loader = app.file_loaders[file_id]
                self._leave(room)
                model = await loader.load_content(file_format, file_type)
                self._followed[room] = FollowedRoom(
                    document, loader, model, self._serverapp.contents_manager
                )

    def _leave(self, room: str) -> None:
        if followed := self._followed.pop(room, None):
            followed.close()


class FollowedRoom:
    """A document, and its state when it was the same as its file."""

    def __init__(self, document: Any, loader: Any, model: dict[str, Any], contents: Any) -> None:
        """Take what has just been loaded.

        Args:
            document: A ``jupyter_ydoc.YBaseDoc``.
            loader: The ``FileLoader`` by which it is read and saved.
            model: What the loader has read.
            contents: The server's contents manager.
        """
        self._document, self._loader, self._contents = document, loader, contents
        self._kind: tuple[str, str] | None = (model["format"], model["type"])
        as_file = type(document)()
        as_file.set(model["content"])
        self._content = self._in_file = as_file.get()
        self._is_saved = True
        is_as_file = document.get() == self._content
        self._as_file: bytes | None = document.ydoc.get_update() if is_as_file else None
        loader.load_content = partial(self._load, loader.load_content)
        loader.maybe_save_content = partial(self._save, loader.maybe_save_content)

    def close(self) -> None:
        """Have no part any more in what the loader does, which other rooms of the file may have."""
        self._kind = None

    async def read_changed_file(self) -> None:
        """Have the loader look at its file now."""
        # It looks again by itself, and tells of what it cannot read.
        with suppress(Exception):
            await self._loader.maybe_notify()

    async def _save(self, save: Any, model: dict[str, Any]) -> Any:
        if (model["format"], model["type"]) != self._kind:
            return await save(model)
        # What is typed while cells are read one by one would be in one of the two only.
        content, state = self._document.get(), self._document.ydoc.get_update()
        if self._is_saved and content == self._content:
            # A text's line ends are those of the file as long as nobody types.
            return await self._file()
        saved = await save({**model, "content": content})
        self._content, self._in_file, self._as_file = content, content, state
        self._is_saved = True
        return saved

    async def _load(self, load: Any, format: str, file_type: str) -> Any:
        model = await load(format, file_type)
        if (format, file_type) == self._kind and self._as_file is not None:
            self._merge(model["content"], self._as_file)
            model["content"] = self._document.get()
            # Tabs with another one ask whether to overwrite the file.
            self._document.hash = (await self._file())["hash"]
        return model

    async def _file(self) -> Any:
        path = self._loader.path
        return await ensure_async(self._contents.get(path, content=False, require_hash=True))

    def _merge(self, content: Any, state: bytes) -> None:
        """Do to the document what makes that content of its state as a file."""
        ydoc = self._document.ydoc
        fork = type(ydoc)()
        fork.apply_update(state)
        as_file = type(self._document)(fork)
        shown = _with_outputs(content, self._content, self._in_file)
        as_file.set(shown)
        self._in_file, self._is_saved = content, shown == content
        self._content, self._as_file = as_file.get(), fork.get_update()
        ydoc.apply_update(fork.get_update(ydoc.get_state()))


def _with_outputs(content: Any, shown: Any, before: Any) -> Any:
    """Keep the outputs that people see until there are others: editors of files drop them."""
    if not isinstance(content, dict):
        return content
    outputs = {cell.get("id"): cell for cell in shown["cells"] if cell.get("outputs")}
    dropped = {cell.get("id") for cell in before["cells"] if not cell.get("outputs")}

    def kept(cell: dict[str, Any]) -> dict[str, Any]:
        id = cell.get("id")
        if id not in outputs or cell["outputs"]:
            return cell
        if id not in dropped and cell["source"] == outputs[id]["source"]:
            return cell  # they were cleared
        return {**cell, **{key: outputs[id][key] for key in ("outputs", "execution_count")}}

    return {**content, "cells": [kept(cell) for cell in content["cells"]]}
