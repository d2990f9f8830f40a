"""Files by path, wherever they are kept, and webhooks that report their changes.

Nothing heavy is imported before a store needs it: fsspec and its backends at the first
access, requests at the first delivery.
"""

from oh_jupyter.storage.base import FileInfo, FileStore
from oh_jupyter.storage.local.store import LocalFileStore
from oh_jupyter.storage.memory import InMemoryFileStore
from oh_jupyter.storage.registry import get_file_store
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
