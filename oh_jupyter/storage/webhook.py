"""Stores that report their changes to a webhook, by OpenHands' protocol.

A change is made first, and then reported in the background: the receiver can neither
delay nor fail a write. It is tried three times, one second apart. What is still waiting at
exit is sent then, for ten seconds at most; a killed process does not report it.
"""

from __future__ import annotations

import base64
import builtins
import shutil
import weakref
from collections.abc import Iterable, Iterator, Mapping
from typing import IO, Any

from oh_jupyter.errors import StoreConfigError
from oh_jupyter.storage.atomic import AtomicTextFile, spooled
from oh_jupyter.storage.base import FileInfo, FileStore, OpenMode, contents_bytes
from oh_jupyter.storage.changes import DeliveryReport, Update
from oh_jupyter.storage.delivery import DeliveryQueue, Pace
from oh_jupyter.storage.paths import file_key, path_key
from oh_jupyter.storage.receiver import Receiver

__all__ = ["BatchedWebHookFileStore", "WebHookFileStore"]

_LATEST_SECONDS = 30.0


class WebHookFileStore(FileStore):
    """A store that reports each change by a request of its own.

    A write is ``POST {base_url}{path}`` with the contents, a deletion
    ``DELETE {base_url}{path}``. No slash is put between the two; the path is
    percent-encoded.

    Args:
        file_store: The store that holds the files.
        base_url: The address that paths are appended to.
        client: A `requests.Session`, an `httpx.Client` or the like; None for a session of
            our own, which does not follow redirects.
        headers: Headers for our own session.

    Attributes:
        file_store: The store that holds the files.
        base_url: The address.
    """

    def __init__(
        self,
        file_store: FileStore,
        base_url: str,
        client: Any = None,
        *,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        if not isinstance(base_url, str) or not base_url:
            raise StoreConfigError(f"A webhook needs the URL of its receiver, not {base_url!r}.")
        self.file_store = file_store
        self.base_url = base_url
        self._receiver = Receiver(base_url, client, headers)
        self._queue = self._make_queue(self._receiver)
        # The thread must not keep this store alive; when it is gone, it sends the rest.
        weakref.finalize(self, self._queue.retire).atexit = False

    def _make_queue(self, receiver: Receiver) -> DeliveryQueue:
        def send(updates: builtins.list[Update]) -> None:
            for update in updates:
                if update.method == "POST":
                    receiver.post_file(update.path, update.contents)
                else:
                    receiver.delete_file(update.path)

        return DeliveryQueue(send, Pace())

    def __repr__(self) -> str:
        # Without the URL, which may hold a password.
        return f"{type(self).__name__}({self.file_store!r})"

    @property
    def client(self) -> Any:
        """What the requests are sent with."""
        return self._receiver.client

    def flush(self, timeout: float | None = None) -> DeliveryReport:
        """Wait until all changes made before are accepted or given up.

        Args:
            timeout: Seconds to wait at most; None for as long as it takes.

        Returns:
            How many were accepted, and which were not.
        """
        return self._queue.flush(timeout)

    def close(self, timeout: float = 10.0) -> DeliveryReport:
        """Flush, and end the thread that sends. A later change starts it again.

        Args:
            timeout: Seconds to wait at most; what is then still waiting is dropped.

        Returns:
            How many were accepted, and which were not.
        """
        return self._queue.close(timeout)

    def write(self, path: str, contents: str | bytes) -> None:  # noqa: D102
        data = contents_bytes(contents, path)
        key = file_key(path)
        with self._queue.order(key):
            self.file_store.write(path, contents)
            self._queue.put(Update("POST", path, key, data))

    def delete(self, path: str) -> None:  # noqa: D102
        key = path_key(path)
        with self._queue.order(None):
            self.file_store.delete(path)
            self._queue.put(Update("DELETE", path, key))

    def write_many(self, files: Mapping[str, str | bytes]) -> None:  # noqa: D102
        updates = [
            Update("POST", path, file_key(path), contents_bytes(contents, path))
            for path, contents in files.items()
        ]
        with self._queue.order(None):
            self.file_store.write_many(files)
            for update in updates:
                self._queue.put(update)

    def delete_many(self, paths: Iterable[str]) -> None:  # noqa: D102
        updates = [Update("DELETE", path, path_key(path)) for path in paths]
        with self._queue.order(None):
            self.file_store.delete_many([update.path for update in updates])
            for update in updates:
                self._queue.put(update)

    def open(self, path: str, mode: OpenMode = "r") -> IO[Any]:  # noqa: D102
        if not mode.startswith("w"):
            return self.file_store.open(path, mode)
        key = file_key(path)

        def publish(source: str) -> None:
            with self._queue.order(key):
                with open(source, "rb") as reader, self.file_store.open(path, "wb") as writer:
                    shutil.copyfileobj(reader, writer)
                with open(source, "rb") as reader:
                    self._queue.put(Update("POST", path, key, reader.read()))

        binary = spooled(publish)
        return binary if mode == "wb" else AtomicTextFile(binary)

    def read(self, path: str) -> str:  # noqa: D102
        return self.file_store.read(path)

    def read_bytes(self, path: str) -> bytes:  # noqa: D102
        return self.file_store.read_bytes(path)

    def read_many(  # noqa: D102
        self, paths: Iterable[str], *, missing_ok: bool = False
    ) -> dict[str, bytes]:
        return self.file_store.read_many(paths, missing_ok=missing_ok)

    def list(self, path: str) -> builtins.list[str]:  # noqa: D102
        return self.file_store.list(path)

    def exists(self, path: str) -> bool:  # noqa: D102
        return self.file_store.exists(path)

    def info(self, path: str) -> FileInfo:  # noqa: D102
        return self.file_store.info(path)

    def walk(  # noqa: D102
        self, path: str = ""
    ) -> Iterator[tuple[str, builtins.list[str], builtins.list[str]]]:
        return self.file_store.walk(path)


class BatchedWebHookFileStore(WebHookFileStore):
    """A store that reports several changes by one request.

    It is ``POST {base_url}`` with a JSON array of ``{method, path, content, encoding}``:
    ``content`` for writes only, ``encoding`` (``base64``) only where the contents are not
    UTF-8. Of several changes of one path only the last is sent.

    Args:
        file_store: The store that holds the files.
        base_url: The address.
        client: As for `WebHookFileStore`.
        batch_timeout_seconds: Seconds after the last change at which a batch is sent;
            it never waits longer than 30 seconds, or this if it is more, for the first.
        batch_size_limit_bytes: Contents at which a batch is sent at once.
        headers: As for `WebHookFileStore`.

    Attributes:
        batch_timeout_seconds: 5 by default.
        batch_size_limit_bytes: 1 MiB by default.
    """

    def __init__(
        self,
        file_store: FileStore,
        base_url: str,
        client: Any = None,
        batch_timeout_seconds: float | None = None,
        batch_size_limit_bytes: int | None = None,
        *,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.batch_timeout_seconds = 5.0 if batch_timeout_seconds is None else batch_timeout_seconds
        self.batch_size_limit_bytes = (
            1_048_576 if batch_size_limit_bytes is None else batch_size_limit_bytes
        )
        super().__init__(file_store, base_url, client, headers=headers)

    def _make_queue(self, receiver: Receiver) -> DeliveryQueue:
        def send(updates: builtins.list[Update]) -> None:
            receiver.post_batch([_item(update) for update in updates])

        pace = Pace(
            quiet=self.batch_timeout_seconds,
            latest=max(_LATEST_SECONDS, self.batch_timeout_seconds),
            # A limit of 0 would mean one change a request; 1 sends at any content.
            batch_bytes=max(self.batch_size_limit_bytes, 1),
            supersede=True,
        )
        return DeliveryQueue(send, pace)


def _item(update: Update) -> dict[str, str]:
    item: dict[str, str] = {"method": update.method, "path": update.path}
    if update.method == "POST":
        try:
            item["content"] = update.contents.decode("utf-8")
        except UnicodeDecodeError:
            item["content"] = base64.b64encode(update.contents).decode("ascii")
            item["encoding"] = "base64"
    return item
