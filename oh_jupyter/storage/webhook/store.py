"""Stores that report their changes to a webhook, by OpenHands' protocol.

The store applies a change first and reports it in the background, so the receiver cannot delay or
fail it. A report is tried three times, a second apart; with an outbox, it is then retried after
growing pauses.
"""

from __future__ import annotations

import builtins
import contextlib
import os
import shutil
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import IO, Any
from urllib.parse import urlsplit

from oh_jupyter.errors import StoreConfigError
from oh_jupyter.storage.atomic import AtomicTextFile, spooled
from oh_jupyter.storage.base import FileInfo, FileStore, OpenMode, contents_bytes
from oh_jupyter.storage.paths import file_key, path_key
from oh_jupyter.storage.webhook.batching import BatchPolicy
from oh_jupyter.storage.webhook.changes import Change, Delivery, DeliveryReport
from oh_jupyter.storage.webhook.client import Signer, WebhookClient
from oh_jupyter.storage.webhook.dispatcher import Dispatcher
from oh_jupyter.storage.webhook.outbox import Outbox, outbox_file
from oh_jupyter.storage.webhook.scheduler import RetryPolicy

_MAX_WAIT_PERIODS = 3
# A short delay, so that sending the first of many writes does not slow down the others.
_UNBATCHED = BatchPolicy(quiet_seconds=0.005, max_wait_seconds=0.05)


class WebHookFileStore(FileStore):
    """A store that reports each change in a separate request.

    A write is ``POST {base_url}{path}`` with the contents, a deletion
    ``DELETE {base_url}{path}``. The path is percent-encoded and appended without a slash.

    Args:
        file_store: The store that holds the files.
        base_url: The address that paths are appended to.
        client: A `requests.Session`, an `httpx.Client` or the like; None for a default
            session, which does not follow redirects.
        headers: Headers for the default session.
        outbox: A directory or SQLite file that keeps changes for one receiver until they
            are accepted, including those that another process left.
        secret: Signs each request by the Standard Webhooks scheme (``whsec_…``); pass
            several while rotating the secret.

    If the client accepts ``headers``, each request has a ``webhook-timestamp`` and a
    ``webhook-id``, which stays the same when the request is retried.

    Attributes:
        file_store: The store that holds the files.
        base_url: The address.
        outbox: The file of the outbox, or None.
        retry_policy: Attribute of the class; a subclass may override it.

    Raises:
        StoreConfigError: If the URL, the outbox or the secret is invalid.
    """

    retry_policy = RetryPolicy()

    def __init__(
        self,
        file_store: FileStore,
        base_url: str,
        client: Any = None,
        *,
        headers: Mapping[str, str] | None = None,
        outbox: str | os.PathLike[str] | None = None,
        secret: str | Sequence[str] | None = None,
    ) -> None:
        if not isinstance(base_url, str) or not base_url:
            raise StoreConfigError(f"A webhook needs a receiver URL, not {base_url!r}.")
        _check_url(base_url)
        self.file_store = file_store
        self.base_url = base_url
        self.outbox = None if outbox is None else outbox_file(outbox)
        self._webhook_client = WebhookClient(
            base_url, client, headers, Signer(secret) if secret else None
        )
        self._dispatcher = self._make_dispatcher(self._webhook_client, Outbox(self.outbox))
        # The thread must not keep this store alive; it sends the rest once the store is collected.
        weakref.finalize(self, self._dispatcher.stop, True).atexit = False

    def _make_dispatcher(self, client: WebhookClient, outbox: Outbox) -> Dispatcher:
        return Dispatcher(client.send_file, outbox, _UNBATCHED, self.retry_policy)

    def __repr__(self) -> str:
        # Without the URL, which may contain a password.
        return f"{type(self).__name__}({self.file_store!r})"

    @property
    def client(self) -> Any:
        """HTTP client that sends the requests."""
        return self._webhook_client.client

    def flush(self, timeout: float | None = None) -> DeliveryReport:
        """Wait until all previous changes are accepted or given up.

        With an outbox, changes that fail the first round of tries stay pending.

        Args:
            timeout: Seconds to wait at most; None for no limit.

        Returns:
            The number of accepted changes, and the failed and pending ones.
        """
        return self._dispatcher.flush(timeout)

    def close(self, timeout: float = 10.0) -> DeliveryReport:
        """Flush, and stop the sending thread; a later change starts it again.

        Args:
            timeout: Seconds to wait at most; then the pending changes stay in the outbox,
                or are dropped if there is none.

        Returns:
            The number of accepted changes, and the failed and pending ones.
        """
        return self._dispatcher.close(timeout)

    def deliveries(self) -> builtins.list[Delivery]:
        """List the undelivered changes: pending ones and dead letters.

        Returns:
            All of them, oldest first.
        """
        return self._dispatcher.outbox.deliveries()

    def replay(self, *ids: str, force: bool = False) -> int:
        """Queue dead letters again.

        Args:
            ids: Ids of the dead letters; none for all.
            force: Include those that a later change of their file has superseded.

        Returns:
            The number of queued changes; `flush` reports their outcome.
        """
        requeued = self._dispatcher.outbox.replay(ids, force=force)
        if requeued:
            self._dispatcher.wake()
        return requeued

    def discard(self, *ids: str) -> int:
        """Delete dead letters.

        Args:
            ids: Ids of the dead letters; none for all.

        Returns:
            The number of deleted letters.
        """
        return self._dispatcher.outbox.discard(ids)

    def write(self, path: str, contents: str | bytes) -> None:  # noqa: D102
        change = _write_change(path, contents)
        with self._dispatcher.recorded([change], change.key):
            self.file_store.write(path, contents)

    def create(self, path: str, contents: str | bytes) -> None:  # noqa: D102
        change = _write_change(path, contents)
        with self._dispatcher.recorded([change], change.key):
            self.file_store.create(path, contents)

    def delete(self, path: str) -> None:  # noqa: D102
        with self._dispatcher.recorded([Change("DELETE", path, path_key(path))]):
            self.file_store.delete(path)

    def write_many(self, files: Mapping[str, str | bytes]) -> None:  # noqa: D102
        with self._dispatcher.recorded([_write_change(*file) for file in files.items()]):
            self.file_store.write_many(files)

    def delete_many(self, paths: Iterable[str]) -> None:  # noqa: D102
        changes = [Change("DELETE", path, path_key(path)) for path in paths]
        with self._dispatcher.recorded(changes):
            self.file_store.delete_many([change.path for change in changes])

    def open(self, path: str, mode: OpenMode = "r") -> IO[Any]:  # noqa: D102
        if not mode.startswith("w"):
            return self.file_store.open(path, mode)
        key = file_key(path)

        def publish(source: str) -> None:
            with (
                self._dispatcher.recorded([Change("POST", path, key, source=source)], key),
                open(source, "rb") as reader,
                self.file_store.open(path, "wb") as writer,
            ):
                shutil.copyfileobj(reader, writer)

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

    def entries(self, path: str) -> builtins.list[FileInfo]:  # noqa: D102
        return self.file_store.entries(path)

    def get_absolute_path(self, path: str) -> str:  # noqa: D102
        return self.file_store.get_absolute_path(path)

    @contextlib.contextmanager
    def lock(self, path: str, timeout: float = 30.0) -> Iterator[None]:  # noqa: D102
        with self.file_store.lock(path, timeout):
            yield

    def walk(  # noqa: D102
        self, path: str = ""
    ) -> Iterator[tuple[str, builtins.list[str], builtins.list[str]]]:
        return self.file_store.walk(path)


def _write_change(path: str, contents: str | bytes) -> Change:
    data = contents_bytes(contents, path)
    return Change("POST", path, file_key(path), data)


def _check_url(url: str) -> None:
    try:
        urlsplit(url).port  # noqa: B018  reading it is the check
    except ValueError as error:
        # Without the URL, which may contain a password.
        raise StoreConfigError(f"The webhook's URL is invalid: {error}.") from None


class BatchedWebHookFileStore(WebHookFileStore):
    """A store that reports several changes in one request.

    The request is ``POST {base_url}`` with a JSON array of ``{method, path, content,
    encoding}``: ``content`` only for writes, ``encoding`` (``base64``) only if the contents
    are not UTF-8. Of several changes of one path, only the last is sent.

    Args:
        file_store: The store that holds the files.
        base_url: The address.
        client: See `WebHookFileStore`.
        batch_timeout_seconds: Seconds from the last change until the batch is sent; three
            times as long from the first change at most.
        batch_size_limit_bytes: Size of the contents at which a batch is sent at once.
        headers: See `WebHookFileStore`.
        outbox: See `WebHookFileStore`.
        secret: See `WebHookFileStore`.

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
        outbox: str | os.PathLike[str] | None = None,
        secret: str | Sequence[str] | None = None,
    ) -> None:
        self.batch_timeout_seconds = 5.0 if batch_timeout_seconds is None else batch_timeout_seconds
        self.batch_size_limit_bytes = (
            1_048_576 if batch_size_limit_bytes is None else batch_size_limit_bytes
        )
        super().__init__(
            file_store, base_url, client, headers=headers, outbox=outbox, secret=secret
        )

    def _make_dispatcher(self, client: WebhookClient, outbox: Outbox) -> Dispatcher:
        batch_policy = BatchPolicy(
            quiet_seconds=self.batch_timeout_seconds,
            max_wait_seconds=_MAX_WAIT_PERIODS * self.batch_timeout_seconds,
            # 0 would mean one change per request; 1 sends as soon as there is any content.
            batch_bytes=max(self.batch_size_limit_bytes, 1),
        )
        return Dispatcher(client.send_batch, outbox, batch_policy, self.retry_policy)
