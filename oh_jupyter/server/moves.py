"""Renames in Jupyter, recorded for the kernels."""

from __future__ import annotations

import asyncio
import logging
from typing import Any, cast

from jupyter_server.services.contents.manager import ContentsManager
from jupyter_server.utils import to_os_path

from oh_jupyter.moves import note_move

_logger = logging.getLogger(__name__)


def follow_moves(serverapp: Any) -> None:
    """Record every rename of a local file by the contents manager."""

    async def on_contents(logger: Any, schema_id: str, data: dict[str, Any]) -> None:
        root = getattr(serverapp.contents_manager, "root_dir", "")
        if data["action"] != "rename" or not root:
            return
        source, target = (
            to_os_path(cast("Any", data[name].strip("/")), root) for name in ("source_path", "path")
        )
        try:
            await asyncio.to_thread(note_move, source, target)
        except OSError as error:
            _logger.warning(
                "The rename of %s could not be recorded for the kernels: %s", source, error
            )

    serverapp.event_logger.add_listener(
        schema_id=ContentsManager.event_schema_id, listener=on_contents
    )
