"""The file store that the settings describe, for the kernel and for the server beside it."""

from __future__ import annotations

import logging
import os
from urllib.parse import urlsplit

from oh_jupyter.config import Settings
from oh_jupyter.errors import OhJupyterError
from oh_jupyter.storage.base import FileStore
from oh_jupyter.storage.registry import get_file_store

__all__ = ["make_file_store"]

DEFAULT_STORE = "~/.openhands"
"""Where OpenHands keeps its sessions, and so do we."""

logger = logging.getLogger(__name__)


def make_file_store(settings: Settings) -> FileStore:
    """The file store that the settings describe.

    One in memory, with a warning in the log, if the default one cannot be made, since a full or
    read-only home must not keep anybody from working.
    """
    path = settings.file_store_path
    url = settings.file_store_web_hook_url
    if url and not url.endswith("/"):
        logger.warning(
            "Paths of the store are appended to file_store_web_hook_url as it is, and it does not "
            "end in a slash: a.txt is reported to %s",
            f"{urlsplit(url).hostname}{urlsplit(url).path}a.txt",
        )
    by_default = settings.file_store == "local" and path is None
    if settings.file_store == "local":
        path = os.path.expanduser(path or DEFAULT_STORE)
    try:
        return get_file_store(
            settings.file_store,
            path,
            settings.file_store_web_hook_url,
            settings.file_store_web_hook_headers,
            settings.file_store_web_hook_batch,
            file_store_web_hook_outbox=settings.file_store_web_hook_outbox,
            file_store_web_hook_secret=settings.file_store_web_hook_secret,
        )
    except (OhJupyterError, OSError) as problem:
        if not by_default:
            raise
        from oh_jupyter.storage.memory import InMemoryFileStore

        logger.warning("Events are kept in memory only: %s", problem)
        return InMemoryFileStore()
