"""Documents that people edit together while agents change their files."""

from __future__ import annotations

import secrets
from contextlib import suppress
from functools import partial
from typing import Any

from jupyter_server.utils import ensure_async

from oh_jupyter.server.saves import OrderedSaves
from oh_jupyter.server.unsaved import DOCUMENTS_EVENT

ROOM_EVENT = "https://schema.jupyter.org/jupyter_collaboration/session/v1"
MERGED_TYPES = ("file", "notebook")


class SharedDocuments:
    """The documents that jupyter-collaboration or jupyter-server-documents shares.

    Both replace unsaved text by the contents of a file that has changed on disk. Here, the changes
    in the file are merged into the text.
    """

    def __init__(self, serverapp: Any) -> None:
        """Follow the documents as they are opened."""
        self._serverapp = serverapp
        self.saves = OrderedSaves(serverapp.contents_manager)
        self._loaded: dict[str, LoadedRoom] = {}
        self._watched: dict[str, WatchedRoom] = {}
        serverapp.event_logger.add_listener(schema_id=ROOM_EVENT, listener=self._on_room)

    async def notebook(self, path: str) -> Any | None:
        """Return the ``jupyter_ydoc.YNotebook`` of an open notebook; None if no tab shares it."""
        if app := self._extension():
            return await app.get_document(
                path=path, content_type="notebook", file_format="json", copy=False
            )
        ids = self._settings.get("file_id_manager")
        room = ids and self._watched.get(f"json:notebook:{ids.get_id(path)}")
        return room.document if room else None

    async def save(self) -> None:
        """Save the latest text where tabs cannot request that."""
        for room in list(self._watched.values()):
            await room.save_unsaved()

    @property
    def _settings(self) -> dict[str, Any]:
        return dict(self._serverapp.web_app.settings)

    def _extension(self) -> Any | None:
        manager = self._serverapp.extension_manager
        for app in manager.extension_apps.get("jupyter_server_ydoc", ()):
            if hasattr(app, "get_document") and not getattr(app, "disable_rtc", False):
                return app
        return None

    async def _on_documents(self, logger: Any, schema_id: str, data: dict[str, Any]) -> None:
        if data["action"] == "changed":
            rooms: list[LoadedRoom | WatchedRoom] = [*self._loaded.values()]
            for room in [*rooms, *self._watched.values()]:
                await room.read_changed_file()

    async def _on_room(self, logger: Any, schema_id: str, data: dict[str, Any]) -> None:
        # Only from the first room on: the event logger validates an event that has a listener.
        self._serverapp.event_logger.add_listener(
            schema_id=DOCUMENTS_EVENT, listener=self._on_documents
        )
        room, action = data["room"], data.get("action")
        if action == "clean":
            self._leave(room)
        elif action == "initialize" and data.get("msg") == "Room initialized":
            if app := self._extension():
                await self._follow_loaded(app, room)
        elif action == "load" and room.split(":")[1] in MERGED_TYPES:
            await self._follow_watched(room)

    async def _follow_loaded(self, app: Any, room: str) -> None:
        # A copy is only made once everything is loaded.
        await app.get_document(room_id=room, copy=True)
        document = await app.get_document(room_id=room, copy=False)
        if document is not None:
            file_format, file_type, file_id = room.split(":", 2)
            loader = app.file_loaders[file_id]
            self._leave(room)
            model = await loader.load_content(file_format, file_type)
            self._loaded[room] = LoadedRoom(document, self._contents, loader, model)

    async def _follow_watched(self, room: str) -> None:
        if manager := self._settings.get("yroom_manager"):
            yroom = manager.get_room(room)
            document = await yroom.get_jupyter_ydoc()
            yroom.add_stop_callback(partial(self._watched.pop, room, None))
            self._watched[room] = WatchedRoom(document, self._contents, yroom.file_api, self.saves)

    @property
    def _contents(self) -> Any:
        return self._serverapp.contents_manager

    def _leave(self, room: str) -> None:
        if loaded := self._loaded.pop(room, None):
            loaded.close()


class MergedDocument:
    """A document, and its state when it last matched its file."""

    def __init__(self, document: Any, contents: Any, content: Any) -> None:
        """Take a loaded ``jupyter_ydoc.YBaseDoc``, the contents manager, and the file's content."""
        self.document, self._contents = document, contents
        as_file = type(document)()
        as_file.set(content)
        self._content = self._in_file = as_file.get()
        self._is_saved = True
        is_as_file = document.get() == self._content
        self._as_file: bytes | None = document.ydoc.get_update() if is_as_file else None

    async def _file(self, path: str) -> Any:
        return await ensure_async(self._contents.get(path, content=False, require_hash=True))

    def _state(self) -> tuple[Any, bytes]:
        return self.document.get(), self.document.ydoc.get_update()

    def _is_as_saved(self, content: Any) -> bool:
        # A text keeps the line ends of its file until someone types.
        return self._is_saved and bool(content == self._content)

    def _note_saved(self, content: Any, state: bytes) -> None:
        self._content, self._in_file, self._as_file = content, content, state
        self._is_saved = True

    def _merge(self, content: Any, state: bytes) -> None:
        """Apply the changes between the file's last state and its new content to the document."""
        ydoc = self.document.ydoc
        fork = type(ydoc)()
        fork.apply_update(state)
        as_file = type(self.document)(fork)
        shown = _with_outputs(content, self._content, self._in_file)
        as_file.set(shown)
        self._in_file, self._is_saved = content, shown == content
        sign(as_file)
        self._content, self._as_file = as_file.get(), fork.get_update()
        ydoc.apply_update(fork.get_update(ydoc.get_state()))


class LoadedRoom(MergedDocument):
    """A room of ``jupyter_server_ydoc``, part of jupyter-collaboration.

    Its ``FileLoader`` reads and saves, also for other rooms of the file.
    """

    def __init__(self, document: Any, contents: Any, loader: Any, model: dict[str, Any]) -> None:
        """Take the model that the loader has read."""
        super().__init__(document, contents, model["content"])
        self._loader = loader
        self._kind: tuple[str, str] | None = (model["format"], model["type"])
        loader.load_content = partial(self._load, loader.load_content)
        loader.maybe_save_content = partial(self._save, loader.maybe_save_content)

    def close(self) -> None:
        """Leave the loader to the other rooms."""
        self._kind = None

    async def read_changed_file(self) -> None:
        """Have the loader check its file now."""
        # It checks again by itself, and reports what it cannot read.
        with suppress(Exception):
            await self._loader.maybe_notify()

    async def _save(self, save: Any, model: dict[str, Any]) -> Any:
        if (model["format"], model["type"]) != self._kind:
            return await save(model)
        # Read both together: cells are read one by one while people type.
        content, state = self._state()
        if self._is_as_saved(content):
            return await self._file(self._loader.path)
        saved = await save({**model, "content": content})
        self._note_saved(content, state)
        return saved

    async def _load(self, load: Any, format: str, file_type: str) -> Any:
        model = await load(format, file_type)
        if (format, file_type) == self._kind and self._as_file is not None:
            self._merge(model["content"], self._as_file)
            model["content"] = self.document.get()
            # Tabs with a different hash ask whether to overwrite the file.
            self.document.hash = (await self._file(self._loader.path))["hash"]
        return model


class WatchedRoom(MergedDocument):
    """A room of ``jupyter_server_documents``, whose ``YRoomFileAPI`` watches and saves."""

    def __init__(self, document: Any, contents: Any, file_api: Any, saves: OrderedSaves) -> None:
        """Take a document that has not changed since it was loaded."""
        super().__init__(document, contents, document.get())
        self._file_api, self._saves = file_api, saves
        file_api._reload_content_inplace = self._reload
        file_api.save = partial(self._save, file_api.save)

    async def read_changed_file(self) -> None:
        """Have the extension check its file now."""
        # It checks again by itself, and reports what it cannot read.
        with suppress(Exception):
            await self._file_api._check_file(self.document)

    async def save_unsaved(self) -> None:
        """Save the latest text."""
        # It retries by itself, and reports what it cannot save.
        with suppress(Exception):
            if self._file_api.has_unsaved_changes:
                await self._file_api.save(self.document)

    async def _save(self, save: Any, document: Any) -> None:
        file_api, was_stopped = self._file_api, self._file_api.stopped
        async with self._saves.alone(file_api._last_path):
            # An agent may have written since the last check.
            await file_api._check_file(document)
            if file_api.stopped and not was_stopped:
                return  # the file is gone
            content, state = self._state()
            if self._is_as_saved(content):
                file_api._save_scheduled = document.dirty = False
                return
            before = file_api._last_modified
            await save(document)
            if file_api._last_modified is not before:  # it reports errors instead of raising
                self._note_saved(content, state)
                await self._show_hash()

    async def _reload(self, document: Any) -> None:
        file_api = self._file_api
        async with self._saves.alone(file_api._last_path):
            content, last_modified = await file_api._get_content(file_api._last_path)
            self._merge(content, self._as_file or self._state()[1])
            file_api._last_modified = last_modified
            await self._show_hash()

    async def _show_hash(self) -> None:
        # Tabs with a different hash ask whether to overwrite the file.
        self.document.hash = (await self._file(self._file_api._last_path))["hash"]


def sign(document: Any) -> None:
    """Show in a change that it is the server's: a deletion alone does not tell tabs whose it is."""
    document.ystate["oh_jupyter_change"] = secrets.token_hex(4)


def _with_outputs(content: Any, shown: Any, before: Any) -> Any:
    """Keep the visible outputs until there are new ones: editors of files drop them."""
    if not isinstance(content, dict):
        return content
    outputs = {cell.get("id"): cell for cell in shown["cells"] if cell.get("outputs")}
    dropped = {cell.get("id") for cell in before["cells"] if not cell.get("outputs")}

    def restored(cell: dict[str, Any]) -> dict[str, Any]:
        id = cell.get("id")
        if id not in outputs or cell["outputs"]:
            return cell
        if id not in dropped and cell["source"] == outputs[id]["source"]:
            return cell  # a person cleared them
        return {**cell, **{key: outputs[id][key] for key in ("outputs", "execution_count")}}

    return {**content, "cells": [restored(cell) for cell in content["cells"]]}
