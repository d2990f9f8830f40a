"""File stores, and webhooks that report their changes; heavy modules are imported lazily."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from oh_jupyter.storage.base import FileInfo, FileStore
from oh_jupyter.storage.factory import get_file_store

if TYPE_CHECKING:
    from oh_jupyter.storage.local.store import LocalFileStore
    from oh_jupyter.storage.memory import InMemoryFileStore
    from oh_jupyter.storage.remote.fsspec_store import FsspecFileStore
    from oh_jupyter.storage.remote.gcs import GoogleCloudFileStore
    from oh_jupyter.storage.remote.s3 import S3FileStore
    from oh_jupyter.storage.transfer import Transfer, copy, sync
    from oh_jupyter.storage.webhook.changes import Delivery, DeliveryReport, FailedDelivery
    from oh_jupyter.storage.webhook.store import BatchedWebHookFileStore, WebHookFileStore

__all__ = [
    "BatchedWebHookFileStore",
    "Delivery",
    "DeliveryReport",
    "FailedDelivery",
    "FileInfo",
    "FileStore",
    "FsspecFileStore",
    "GoogleCloudFileStore",
    "InMemoryFileStore",
    "LocalFileStore",
    "S3FileStore",
    "Transfer",
    "WebHookFileStore",
    "copy",
    "get_file_store",
    "sync",
]

_MODULES = {
    "BatchedWebHookFileStore": "webhook.store",
    "Delivery": "webhook.changes",
    "DeliveryReport": "webhook.changes",
    "FailedDelivery": "webhook.changes",
    "FsspecFileStore": "remote.fsspec_store",
    "GoogleCloudFileStore": "remote.gcs",
    "InMemoryFileStore": "memory",
    "LocalFileStore": "local.store",
    "S3FileStore": "remote.s3",
    "Transfer": "transfer",
    "WebHookFileStore": "webhook.store",
    "copy": "transfer",
    "sync": "transfer",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
