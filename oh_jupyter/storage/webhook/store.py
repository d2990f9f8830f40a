"""Stores that report their changes to a webhook, by OpenHands' protocol.

A change is made first, and reported in the background: the receiver can neither delay nor fail it.
It is tried three times, a second apart; with an outbox, then after growing pauses.
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
from oh_jupyter.storage.webhook.changes import Change, Delivery, DeliveryReport
from oh_jupyter.storage.webhook.client import Signer, WebhookClient
from oh_jupyter.storage.webhook.database import outbox_file
from oh_jupyter.storage.webhook.delivery import BatchPolicy, DeliveryQueue
from oh_jupyter.storage.webhook.outbox import Outbox

_MAX_WAIT_PERIODS = 3
# A writer in the midst of many writes is not slowed down by the sending of the first.
_UNBATCHED = BatchPolicy(quiet_seconds=0.005, max_wait_seconds=0.05)


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
        outbox: A directory or SQLite file that keeps changes until they are accepted, for
            one receiver. What another process left there is sent, too.
        secret: Signs each request by the Standard Webhooks scheme (``whsec_…``); several,
            while the secret is being changed.

    Every request has a ``webhook-id``, by which a receiver knows one that is repeated, and
    a ``webhook-timestamp``, if the client takes ``headers``.

    Attributes:
        file_store: The store that holds the files.
        base_url: The address.
        outbox: The file of the outbox, or None.

    Raises:
        StoreConfigError: If the URL, the outbox or the secret cannot be used.
    """

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
            raise StoreConfigError(f"A webhook needs the URL of its receiver, not {base_url!r}.")
        _check_url(base_url)
        self.file_store = file_store
        self.base_url = base_url
        self.outbox = None if outbox is None else outbox_file(outbox)
        self._webhook_client = WebhookClient(
            base_url, client, headers, Signer(secret) if secret else None
        )
        self._queue = self._make_queue(self._webhook_client, Outbox(self.outbox))
        # The thread must not keep this store alive; when it is gone, it sends the rest.
        weakref.finalize(self, self._queue.stop, True).atexit = False

    def _make_queue(self, client: WebhookClient, outbox: Outbox) -> DeliveryQueue:
        return DeliveryQueue(client.send_file, _UNBATCHED, outbox=outbox)

    def __repr__(self) -> str:
        # Without the URL, which may hold a password.
        return f"{type(self).__name__}({self.file_store!r})"

    @property
    def client(self) -> Any:
        """What the requests are sent with."""
        return self._webhook_client.client

    def flush(self, timeout: float | None = None) -> DeliveryReport:
        """Wait until all changes made before are accepted or given up.

        With an outbox, a receiver that does not accept them is tried as often as at first;
        then they are reported as pending, and kept.

        Args:
            timeout: Seconds to wait at most; None for as long as it takes.

        Returns:
            How many were accepted, and which were not.
        """
        return self._queue.flush(timeout)

    def close(self, timeout: float = 10.0) -> DeliveryReport:
        """Flush, and end the thread that sends. A later change starts it again.

        Args:
            timeout: Seconds to wait at most; what is then still waiting stays in the
                outbox, or is dropped if there is none.

        Returns:
            How many were accepted, and which were not.
        """
        return self._queue.close(timeout)

    def deliveries(self) -> builtins.list[Delivery]:
        """List the changes that the receiver does not have: waiting ones, and dead letters.

        Returns:
            All of them, in the order in which they happened.
        """
        return self._queue.outbox.deliveries()

    def replay(self, *ids: str, force: bool = False) -> int:
        """Send dead letters again.

        Args:
            ids: Which; all when none is named.
            force: Also those that a later change of their file has superseded.

        Returns:
            How many wait again now; `flush` says what becomes of them.
        """
        requeued = self._queue.outbox.replay(ids, force=force)
        if requeued:
            self._queue.wake()
        return requeued

    def discard(self, *ids: str) -> int:
        """Forget dead letters.

        Args:
            ids: Which; all when none is named.

        Returns:
            How many there were.
        """
        return self._queue.outbox.discard(ids)

    def write(self, path: str, contents: str | bytes) -> None:  # noqa: D102
        change = _written(path, contents)
        with self._queue.recorded([change], change.key):
            self.file_store.write(path, contents)

    def create(self, path: str, contents: str | bytes) -> None:  # noqa: D102
        change = _written(path, contents)
        with self._queue.recorded([change], change.key):
            self.file_store.create(path, contents)

    def delete(self, path: str) -> None:  # noqa: D102
        with self._queue.recorded([Change("DELETE", path, path_key(path))]):
            self.file_store.delete(path)

    def write_many(self, files: Mapping[str, str | bytes]) -> None:  # noqa: D102
        with self._queue.recorded([_written(*file) for file in files.items()]):
            self.file_store.write_many(files)

    def delete_many(self, paths: Iterable[str]) -> None:  # noqa: D102
        changes = [Change("DELETE", path, path_key(path)) for path in paths]
        with self._queue.recorded(changes):
            self.file_store.delete_many([change.path for change in changes])

    def open(self, path: str, mode: OpenMode = "r") -> IO[Any]:  # noqa: D102
        if not mode.startswith("w"):
            return self.file_store.open(path, mode)
        key = file_key(path)

        def publish(source: str) -> None:
            with (
                self._queue.recorded([Change("POST", path, key, source=source)], key),
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


def _written(path: str, contents: str | bytes) -> Change:
    data = contents_bytes(contents, path)
    return Change("POST", path, file_key(path), data)


def _check_url(url: str) -> None:
    try:
        urlsplit(url).port  # noqa: B018  reading it is the check
    except ValueError as error:
        # Without the URL, which may hold a password.
        raise StoreConfigError(f"The URL of the webhook cannot be read: {error}.") from None


class BatchedWebHookFileStore(WebHookFileStore):
    """A store that reports several changes by one request.

    It is ``POST {base_url}`` with a JSON array of ``{method, path, content, encoding}``:
    ``content`` for writes only, ``encoding`` (``base64``) only where the contents are not
    UTF-8. Of several changes of one path only the last is sent.

    Args:
        file_store: The store that holds the files.
        base_url: The address.
        client: As for `WebHookFileStore`.
        batch_timeout_seconds: Seconds after the last change at which a batch is sent; it
            never waits for more than three times this after the first.
        batch_size_limit_bytes: Contents at which a batch is sent at once.
        headers: As for `WebHookFileStore`.
        outbox: As for `WebHookFileStore`.
        secret: As for `WebHookFileStore`.

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

    def _make_queue(self, client: WebhookClient, outbox: Outbox) -> DeliveryQueue:
        batch_policy = BatchPolicy(
            quiet_seconds=self.batch_timeout_seconds,
            max_wait_seconds=_MAX_WAIT_PERIODS * self.batch_timeout_seconds,
            # A limit of 0 would mean one change a request; 1 sends at any content.
            batch_bytes=max(self.batch_size_limit_bytes, 1),
        )
        return DeliveryQueue(client.send_batch, batch_policy, outbox=outbox)
