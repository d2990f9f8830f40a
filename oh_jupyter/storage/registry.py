"""A store from a few words of configuration."""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Mapping

from oh_jupyter.errors import StoreConfigError
from oh_jupyter.storage.base import FileStore
from oh_jupyter.storage.local.store import LocalFileStore
from oh_jupyter.storage.memory import InMemoryFileStore
from oh_jupyter.storage.remote.fsspec_store import FsspecFileStore
from oh_jupyter.storage.remote.gcs import GoogleCloudFileStore
from oh_jupyter.storage.remote.s3 import S3FileStore
from oh_jupyter.storage.webhook.signing import Signer
from oh_jupyter.storage.webhook.store import BatchedWebHookFileStore, WebHookFileStore

__all__ = ["get_file_store"]

_log = logging.getLogger(__name__)


def get_file_store(
    file_store_type: str,
    file_store_path: str | None = None,
    file_store_web_hook_url: str | None = None,
    file_store_web_hook_headers: Mapping[str, str] | str | None = None,
    file_store_web_hook_batch: bool = False,
    *,
    file_store_web_hook_outbox: str | None = None,
    file_store_web_hook_secret: str | None = None,
) -> FileStore:
    """Make the store that a configuration describes; the arguments are OpenHands'.

    Args:
        file_store_type: ``local``, ``memory``, ``s3``, ``google_cloud``, or the fsspec URL
            of any other place, such as ``sftp://host/dir``.
        file_store_path: The directory of a local store; the bucket, or ``bucket/prefix``,
            of ``s3`` and ``google_cloud`` (otherwise ``AWS_S3_BUCKET`` or
            ``GOOGLE_CLOUD_BUCKET_NAME`` names it).
        file_store_web_hook_url: Where to report changes to.
        file_store_web_hook_headers: Headers of these reports, as a mapping or as its JSON.
            None sends ``X-Session-API-Key`` if ``SESSION_API_KEY`` is set.
        file_store_web_hook_batch: Whether several changes are reported together.
        file_store_web_hook_outbox: Directory or SQLite file that keeps reports until they
            are accepted. None for one below ``$XDG_STATE_HOME`` that belongs to this store
            and receiver; ``""`` for none.
        file_store_web_hook_secret: Signs the reports by the Standard Webhooks scheme.

    Returns:
        The store.

    Raises:
        StoreConfigError: If the type is unknown, the path or bucket is missing, or the
            outbox, headers or secret cannot be used.
    """
    store = _plain_store(file_store_type, file_store_path)
    if not file_store_web_hook_url:
        return store
    kind = BatchedWebHookFileStore if file_store_web_hook_batch else WebHookFileStore
    url, headers = file_store_web_hook_url, _headers(file_store_web_hook_headers)
    secret, outbox = file_store_web_hook_secret or None, file_store_web_hook_outbox
    if outbox is not None:
        return kind(store, url, headers=headers, outbox=outbox or None, secret=secret)
    if secret:
        Signer(secret)  # a bad one shall not look like a bad outbox
    try:
        return kind(store, url, headers=headers, outbox=_default_outbox(store, url), secret=secret)
    except StoreConfigError as error:
        _log.warning("Reports do not survive the process: %s", error)
        return kind(store, url, headers=headers, secret=secret)


def _default_outbox(store: FileStore, url: str) -> str:
    """Choose where the reports of a store to a receiver are kept."""
    name = hashlib.sha256(f"{store!r} {url}".encode()).hexdigest()[:16]
    state = os.environ.get("XDG_STATE_HOME", "")
    if not os.path.isabs(state):
        state = os.path.join(os.path.expanduser("~"), ".local", "state")
    return os.path.join(state, "oh_jupyter", "outbox", f"{name}.sqlite3")


def _plain_store(kind: str, path: str | None) -> FileStore:
    if kind == "local":
        if not path:
            raise StoreConfigError(
                "file_store_path is required for a local store; set it to a directory."
            )
        return LocalFileStore(path)
    if kind == "memory":
        return InMemoryFileStore()
    if kind == "s3":
        return S3FileStore(path)
    if kind == "google_cloud":
        return GoogleCloudFileStore(path)
    protocol, found, place = str(kind).partition("://")
    if found:
        return _store_at(kind, protocol, place)
    raise StoreConfigError(
        f"There is no file store of type {kind!r}; "
        "use local, memory, s3, google_cloud, or an fsspec URL such as s3://bucket/prefix."
    )


def _store_at(url: str, protocol: str, place: str) -> FileStore:
    if protocol in ("file", "local"):
        return LocalFileStore(place)
    if protocol in ("s3", "s3a"):
        return S3FileStore(place)
    if protocol in ("gs", "gcs"):
        return GoogleCloudFileStore(place)
    return FsspecFileStore(url)


def _headers(headers: Mapping[str, str] | str | None) -> dict[str, str]:
    if headers is None:
        key = os.environ.get("SESSION_API_KEY")
        return {"X-Session-API-Key": key} if key else {}
    if isinstance(headers, str):
        try:
            headers = json.loads(headers)
        except ValueError:
            headers = ""
    if not isinstance(headers, Mapping):
        # Without the value, which may hold a secret.
        raise StoreConfigError(
            "file_store_web_hook_headers is neither a table nor a JSON object; "
            'write it like {"Authorization": "..."}.'
        )
    return {str(name): str(value) for name, value in headers.items()}
