"""Renames and saves in Jupyter, recorded for the kernels."""

from __future__ import annotations

import asyncio
import logging
from typing import Any, cast

from jupyter_server.services.contents.manager import ContentsManager
from jupyter_server.utils import to_os_path

from oh_jupyter.moves import note_move, note_save

_logger = logging.getLogger(__name__)


def follow_moves(serverapp: Any) -> None:
    """Record every rename and save of a local file by the contents manager."""

    async def on_contents(logger: Any, schema_id: str, data: dict[str, Any]) -> None:
        root = getattr(serverapp.contents_manager, "root_dir", "")
        names = {"rename": ("source_path", "path"), "save": ("path",)}.get(data["action"])
        if not names or not root:
            return
        paths = [to_os_path(cast("Any", data[name].strip("/")), root) for name in names]
        try:
            if len(paths) == 1:
                await asyncio.to_thread(note_save, paths[0])
            else:
                await asyncio.to_thread(note_move, *paths)
        except OSError as error:
            _logger.warning(
                "The %s of %s could not be recorded for the kernels: %s",
                *(data["action"], paths[0], error),
            )

    serverapp.event_logger.add_listener(
        schema_id=ContentsManager.event_schema_id, listener=on_contents
    )
