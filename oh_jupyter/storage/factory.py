"""Registry of stores: creates a store from configuration, and registers further types."""

from __future__ import annotations

import ast
import hashlib
import importlib
import json
import logging
import os
from collections.abc import Callable, Mapping
from importlib.metadata import entry_points
from typing import cast
from urllib.parse import urlsplit

from oh_jupyter.config import Settings, state_home
from oh_jupyter.errors import OhJupyterError, StoreConfigError
from oh_jupyter.storage.base import FileStore

ENTRY_POINT_GROUP = "oh_jupyter.stores"

Factory = Callable[[str | None], FileStore]
"""Makes a store from its path: a directory, a bucket, or the part of a URL after ``name://``."""

_log = logging.getLogger(__name__)
_LOCAL = "oh_jupyter.storage.local.store:LocalFileStore"
_S3 = "oh_jupyter.storage.remote.s3:S3FileStore"
_GCS = "oh_jupyter.storage.remote.gcs:GoogleCloudFileStore"
_types: dict[str, Factory | str] = {
    "local": _LOCAL,
    "memory": "oh_jupyter.storage.memory:new_store",
    "s3": _S3,
    "google_cloud": _GCS,
}
_protocols: dict[str, Factory | str] = {
    "file": _LOCAL,
    "local": _LOCAL,
    "s3": _S3,
    "s3a": _S3,
    "gs": _GCS,
    "gcs": _GCS,
}


def register_store(name: str, factory: Factory | str) -> None:
    """Register a store type, also as a URL scheme; a factory may be ``module:name``."""
    _types[name] = _protocols[name] = factory


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
    """Make a store from a configuration; the arguments are OpenHands'.

    Args:
        file_store_type: ``local``, ``memory``, ``s3``, ``google_cloud``, a registered
            name, or any other fsspec URL, such as ``sftp://host/dir``.
        file_store_path: Directory of a local store; bucket, or ``bucket/prefix``, of
            ``s3`` and ``google_cloud`` (default: ``AWS_S3_BUCKET`` or
            ``GOOGLE_CLOUD_BUCKET_NAME``).
        file_store_web_hook_url: Address to report changes to.
        file_store_web_hook_headers: Headers of these reports, as a mapping, or as its JSON
            or Python literal. None sends ``X-Session-API-Key`` if ``SESSION_API_KEY`` is set.
        file_store_web_hook_batch: Whether to report several changes together.
        file_store_web_hook_outbox: Directory or SQLite file that keeps reports until they
            are accepted. None for a file below ``$XDG_STATE_HOME``, one for each store and
            receiver; ``""`` for none.
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

    from oh_jupyter.storage.webhook.client import Signer
    from oh_jupyter.storage.webhook.store import BatchedWebHookFileStore, WebHookFileStore

    kind = BatchedWebHookFileStore if file_store_web_hook_batch else WebHookFileStore
    url, headers = file_store_web_hook_url, _headers(file_store_web_hook_headers)
    secret, outbox = file_store_web_hook_secret or None, file_store_web_hook_outbox
    if outbox is not None:
        return kind(store, url, headers=headers, outbox=outbox or None, secret=secret)
    if secret:
        Signer(secret)  # so that a bad secret is not reported as a bad outbox
    try:
        return kind(store, url, headers=headers, outbox=_default_outbox(store, url), secret=secret)
    except StoreConfigError as error:
        _log.warning("Webhook reports do not survive the process: %s", error)
        return kind(store, url, headers=headers, secret=secret)


def _default_outbox(store: FileStore, url: str) -> str:
    """Return the outbox file for a store and a receiver."""
    name = hashlib.sha256(f"{store!r} {url}".encode()).hexdigest()[:16]
    return str(state_home() / "outbox" / f"{name}.sqlite3")


def _plain_store(kind: str, path: str | None) -> FileStore:
    name, is_url, url_path = str(kind).partition("://")
    factory = (_protocols if is_url else _types).get(name) or _entry_point(name)
    if factory is not None:
        if name == "local" and not is_url and not path:
            raise StoreConfigError(
                "file_store_path is required for a local store; set it to a directory."
            )
        return _imported(factory)(url_path if is_url else path)
    if is_url:
        from oh_jupyter.storage.remote.fsspec_store import FsspecFileStore

        return FsspecFileStore(kind)
    raise StoreConfigError(
        f"There is no file store of type {kind!r}; "
        "use local, memory, s3, google_cloud, or an fsspec URL such as s3://bucket/prefix."
    )


def _entry_point(name: str) -> str | None:
    matches = entry_points(group=ENTRY_POINT_GROUP, name=name)
    return next((entry.value for entry in matches), None)


def _imported(factory: Factory | str) -> Factory:
    if not isinstance(factory, str):
        return factory
    module, _, name = factory.partition(":")
    try:
        return cast(Factory, getattr(importlib.import_module(module), name))
    except (ImportError, AttributeError) as error:
        raise StoreConfigError(
            f"The file store {factory!r} cannot be imported: {error}; "
            "install its dependencies, or correct its registration."
        ) from error


def _headers(headers: Mapping[str, str] | str | None) -> dict[str, str]:
    if headers is None:
        key = os.environ.get("SESSION_API_KEY")
        return {"X-Session-API-Key": key} if key else {}
    if isinstance(headers, str):
        headers = _parsed(headers)
    if not isinstance(headers, Mapping):
        # The value may contain a secret, so the message leaves it out.
        raise StoreConfigError(
            "file_store_web_hook_headers is neither a mapping nor a JSON object; "
            'write it like {"Authorization": "..."}.'
        )
    return {str(name): str(value) for name, value in headers.items()}


def _parsed(text: str) -> Mapping[str, str] | None:
    """Parse JSON or a Python literal, as OpenHands does; None if it is neither."""
    for parse in (json.loads, ast.literal_eval):
        try:
            return cast(Mapping[str, str], parse(text))
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            continue
    return None


DEFAULT_STORE = "~/.openhands"
"""Default directory of OpenHands' sessions, and of ours."""


def make_file_store(settings: Settings) -> FileStore:
    """Make the store from the settings; fall back to memory if the default cannot be created."""
    path = settings.file_store_path
    url = settings.file_store_web_hook_url
    if url and not url.endswith("/"):
        _log.warning(
            "file_store_web_hook_url does not end in a slash, and paths are appended to it "
            "unchanged: a.txt is reported to %s",
            f"{urlsplit(url).hostname}{urlsplit(url).path}a.txt",
        )
    is_default = settings.file_store == "local" and path is None
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
    except (OhJupyterError, OSError) as error:
        if not is_default:
            raise
        from oh_jupyter.storage.memory import InMemoryFileStore

        _log.warning("Events are kept in memory only: %s", error)
        return InMemoryFileStore()
