"""Saves, deletions and renames in Jupyter, recorded for the kernels."""

from __future__ import annotations

import asyncio
import logging
from typing import Any, cast

from jupyter_server.services.contents.manager import ContentsManager
from jupyter_server.utils import to_os_path

from oh_jupyter.writes import note_delete, note_move, note_save

_logger = logging.getLogger(__name__)

_RECORDS = {
    "rename": (note_move, ("source_path", "path")),
    "save": (note_save, ("path",)),
    "delete": (note_delete, ("path",)),
}
"""By the action of an event: what records it, and the fields with the paths."""


def record_contents(serverapp: Any) -> None:
    """Record what the contents manager does with local files."""

    async def on_contents(logger: Any, schema_id: str, data: dict[str, Any]) -> None:
        root = getattr(serverapp.contents_manager, "root_dir", "")
        if data["action"] not in _RECORDS or not root:
            return
        record, names = _RECORDS[data["action"]]
        paths = [to_os_path(cast("Any", data[name].strip("/")), root) for name in names]
        try:
            await asyncio.to_thread(cast("Any", record), *paths)
        except OSError as error:
            _logger.warning(
                "The %s of %s could not be recorded for the kernels: %s",
                *(data["action"], paths[0], error),
            )

    serverapp.event_logger.add_listener(
        schema_id=ContentsManager.event_schema_id, listener=on_contents
    )
