"""Saves of files: one at a time, not during an edit, and never over unseen changes."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from inspect import iscoroutinefunction
from typing import Any, cast
from weakref import WeakValueDictionary

from jupyter_core.utils import ensure_async
from jupyter_server.utils import to_os_path
from tornado import web

from oh_jupyter.edit_lock import held_by_saver

EXPECTED_HASH = (
    "oh_jupyter_expected_hash"  # in a PUT to /api/contents: of the file that it replaces
)
EDIT_TIMEOUT_SECONDS = 5.0  # time that a save waits for an edit, which takes milliseconds


class OrderedSaves:
    """The saves of a contents manager, which may be requested concurrently.

    A save with the hash of the file that it replaces fails with 409 if the file has changed, and
    returns the hash of what it wrote. Readers wait for a save, since Jupyter writes in place.
    """

    def __init__(self, contents: Any) -> None:
        """Wrap the contents manager, unless it is synchronous and so saves one at a time."""
        self._contents = contents
        self._get, self._save = contents.get, contents.save
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._holders: dict[str, asyncio.Task[Any] | None] = {}
        if iscoroutinefunction(contents.save):
            contents.get, contents.save = self.get, self.save

    @asynccontextmanager
    async def alone(self, path: str) -> AsyncIterator[None]:
        """Exclude other saves of a file, and edits on this machine."""
        path, task = path.strip("/"), asyncio.current_task()
        if self._holders.get(path) is task:
            yield
            return
        async with self._locks.setdefault(path, asyncio.Lock()):
            self._holders[path] = task
            try:
                async with self._not_edited(path):
                    yield
            finally:
                del self._holders[path]

    @asynccontextmanager
    async def _not_edited(self, path: str) -> AsyncIterator[None]:
        root = getattr(self._contents, "root_dir", None)
        if not root or "\0" in path:  # not a file on this machine, or none at all
            yield
            return
        real = os.path.realpath(to_os_path(cast("Any", path), root))
        lock = held_by_saver(real, EDIT_TIMEOUT_SECONDS)
        entering = asyncio.ensure_future(asyncio.to_thread(lock.__enter__))
        try:
            await asyncio.shield(entering)
        except asyncio.CancelledError:  # the thread still takes the lock
            entering.add_done_callback(lambda _: lock.__exit__(None, None, None))
            raise
        try:
            yield
        finally:
            lock.__exit__(None, None, None)

    async def get(self, path: str, content: bool = True, *args: Any, **options: Any) -> Any:
        """Read a file or its metadata, as the contents manager does."""
        if not (content or options.get("require_hash")):
            return await self._get(path, content, *args, **options)
        async with self.alone(path):
            return await self._get(path, content, *args, **options)

    async def save(self, model: dict[str, Any], path: str = "") -> dict[str, Any]:
        """Save a file, as the contents manager does."""
        expected = model.pop(EXPECTED_HASH, None)
        async with self.alone(path):
            if expected is None:
                return cast("dict[str, Any]", await self._save(model, path))
            if await self._hash(path) not in (None, expected):
                raise web.HTTPError(409, f"{path} has changed since it was read", reason="Changed")
            saved = await self._save(model, path)
            now = await self._model(path)
            return {**saved, **{name: now[name] for name in ("hash", "hash_algorithm")}}

    async def _hash(self, path: str) -> str | None:
        if not await ensure_async(self._contents.file_exists(path)):
            return None
        return str((await self._model(path))["hash"])

    async def _model(self, path: str) -> dict[str, Any]:
        model: dict[str, Any] = await ensure_async(
            self._contents.get(path, content=False, require_hash=True)
        )
        return model
