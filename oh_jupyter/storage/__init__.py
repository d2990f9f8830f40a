"""Files by path, wherever they are kept, and webhooks that report their changes.

Nothing heavy is imported before a store needs it: fsspec and its backends at the first
access, requests at the first delivery.
"""

from oh_jupyter.storage.base import FileInfo, FileStore
from oh_jupyter.storage.changes import Delivery, DeliveryReport, FailedDelivery
from oh_jupyter.storage.factory import get_file_store
from oh_jupyter.storage.gcs import GoogleCloudFileStore
from oh_jupyter.storage.local import LocalFileStore
from oh_jupyter.storage.memory import InMemoryFileStore
from oh_jupyter.storage.remote import FsspecFileStore
from oh_jupyter.storage.s3 import S3FileStore
from oh_jupyter.storage.transfer import Transfer, copy, sync
from oh_jupyter.storage.webhook import BatchedWebHookFileStore, WebHookFileStore

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
