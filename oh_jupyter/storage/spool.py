"""Store that spools writes to the user's ledger while its backend is unreachable."""

from __future__ import annotations

import builtins
import contextlib
import hashlib
import logging
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from typing import TYPE_CHECKING, TypeVar

from oh_jupyter.background import try_start_thread
from oh_jupyter.errors import StorageError, StoreAccessError
from oh_jupyter.storage.base import FileInfo, FileStore
from oh_jupyter.storage.local.store import LocalFileStore
from oh_jupyter.storage.memory import InMemoryFileStore
from oh_jupyter.storage.paths import file_key

if TYPE_CHECKING:
    from oh_jupyter.storage.pending_files import PendingFile

_T = TypeVar("_T")
_log = logging.getLogger(__name__)
_RESPONSE_SECONDS = 5.0
_FIRST_PAUSE_SECONDS = 2.0
_MAX_PAUSE_SECONDS = 60.0
_PROBED_PATH = "oh-jupyter-probe"  # requested if no file is pending


def spool_while_unreachable(store: FileStore) -> FileStore:
    """Wrap a remote store in a spool; return a local store, or one without a spool, unchanged."""
    backend = getattr(store, "file_store", store)
    if isinstance(backend, LocalFileStore | InMemoryFileStore):
        return store
    name = hashlib.sha256(repr(backend).encode()).hexdigest()[:16]
    try:
        return SpoolingFileStore(store, name)
    except StorageError as error:
        _log.warning("No spool on disk for %r while it is unreachable: %s", store, error)
        return store


class SpoolingFileStore(FileStore):
    """A store that keeps new files in the ledger while its backend is unreachable.

    Several processes may share them. During an outage, reads see only the spooled files.

    Args:
        store: The backend.
        name: Its name in the ledger, the same in all processes.
    """

    def __init__(self, store: FileStore, name: str) -> None:
        from oh_jupyter.storage.pending_files import PendingFiles  # SQLite takes 13 ms to import

        self.file_store = store
        self._spool = PendingFiles(name)
        self._lock = threading.Lock()
        self._delivering = threading.Lock()
        self._is_unreachable = False
        self._blocked: set[str] = set()  # paths of files that cannot be sent
        self._abandoned = threading.Event()
        weakref.finalize(self, self._abandoned.set)
        self._thread: threading.Thread | None = None
        if self.pending():
            self._start_delivery()

    def __repr__(self) -> str:
        return f"SpoolingFileStore({self.file_store!r})"

    def write(self, path: str, contents: str | bytes) -> None:  # noqa: D102
        self._put(path, contents, self.file_store.write, self._spool.write)

    def create(self, path: str, contents: str | bytes) -> None:  # noqa: D102
        self._put(path, contents, self.file_store.create, self._spool.create)

    def _put(
        self,
        path: str,
        contents: str | bytes,
        put: Callable[[str, str | bytes], None],
        spool: Callable[[str, str | bytes], None],
    ) -> None:
        if not self._is_unreachable and not self._is_pending(path):
            try:
                put(path, contents)
                return
            except StoreAccessError as error:
                self._report_unreachable(error)
        spool(path, contents)
        with self._lock:
            self._start_delivery()

    def _is_pending(self, path: str) -> bool:
        """Return whether an earlier version is still to be delivered, which must not come last."""
        return self._thread is not None and self._spool.is_file(file_key(path))

    def _report_unreachable(self, error: Exception) -> None:
        with self._lock:
            if self._is_unreachable:
                return
            self._is_unreachable = True
            self._start_delivery()
        _log.warning(
            "%s New files are kept in %s and sent when the store is back.",
            error,
            self._spool.ledger.path,
        )

    def _call_backend(self, call: Callable[[], _T], fallback: Callable[[], _T]) -> _T:
        """Call the backend with a timeout; return the fallback if it is unreachable."""
        if self._is_unreachable:
            return fallback()
        result: Future[_T] = Future()

        def run() -> None:
            try:
                result.set_result(call())
            except BaseException as error:
                result.set_exception(error)

        if try_start_thread(run, "oh-storage-call") is None:
            run()
        try:
            return result.result(_RESPONSE_SECONDS)
        except TimeoutError:
            error = StoreAccessError(
                f"{self.file_store!r} did not answer within {_RESPONSE_SECONDS:g} s."
            )
            self._report_unreachable(error)
        except StoreAccessError as error:
            self._report_unreachable(error)
        return fallback()

    def read(self, path: str) -> str:  # noqa: D102
        return self._read(lambda store: store.read(path))

    def read_bytes(self, path: str) -> bytes:  # noqa: D102
        return self._read(lambda store: store.read_bytes(path))

    def _read(self, read: Callable[[FileStore], _T]) -> _T:
        with contextlib.suppress(FileNotFoundError, IsADirectoryError):
            return read(self._spool)
        return read(self.file_store)

    def read_many(  # noqa: D102
        self, paths: Iterable[str], *, missing_ok: bool = False
    ) -> dict[str, bytes]:
        paths = list(paths)
        contents = self._spool.read_many(paths, missing_ok=True)
        missing = [path for path in paths if path not in contents]
        if missing and not (self._is_unreachable and missing_ok):
            contents.update(self.file_store.read_many(missing, missing_ok=missing_ok))
        return {path: contents[path] for path in paths if path in contents}

    def list(self, path: str) -> builtins.list[str]:  # noqa: D102
        names: set[str] = set()
        with contextlib.suppress(FileNotFoundError):
            names.update(self._spool.list(path))
        try:
            names.update(self._call_backend(lambda: self.file_store.list(path), list))
        except FileNotFoundError:
            if not names:
                raise
        return sorted(names)

    def exists(self, path: str) -> bool:  # noqa: D102
        return self._spool.exists(path) or self._call_backend(
            lambda: self.file_store.exists(path), lambda: False
        )

    def info(self, path: str) -> FileInfo:  # noqa: D102
        return self._read(lambda store: store.info(path))

    def delete(self, path: str) -> None:  # noqa: D102
        self._spool.delete(path)
        self.file_store.delete(path)

    def get_absolute_path(self, path: str) -> str:  # noqa: D102
        return self.file_store.get_absolute_path(path)

    def deliver(self) -> bool:
        """Send the pending files, oldest first; return whether all were accepted.

        While another process sends them, nothing is done.
        """
        with self._delivering:
            try:
                is_done = self._deliver_all()
            except StorageError as error:
                _log.debug("Nothing can be sent to %r yet: %s", self.file_store, error)
                return False
        with self._lock:
            if not is_done or self.pending():
                return False
            self._is_unreachable = False
            self._thread = None
        _log.warning("%r is back, and has received all pending files", self.file_store)
        return True

    def _deliver_all(self) -> bool:
        numbers = self._spool.keys()
        if not numbers:
            with self._watched():
                self.file_store.exists(_PROBED_PATH)
            self._spool.discard_orphans()
        is_done = True
        for number in numbers:
            if not self._spool.reserve(number):
                return False
            try:
                is_done = self._deliver(number) and is_done
            finally:
                self._spool.release()
        return is_done

    def _deliver(self, number: int) -> bool:
        try:
            file = self._spool.version(number)
        except FileNotFoundError as error:
            self._warn_once(error.filename, "A pending file is not sent: %s", error)
            return False
        if file is None:
            return True
        with self._watched():
            is_sent = self._send(file)
        if not is_sent:
            if not self._spool.is_pending(number):  # deleted or replaced meanwhile
                return True
            self._warn_once(
                file.key,
                "%r has another file at %s; ours stays in %s, and is the one that is read here",
                *(self.file_store, file.key, self._spool.ledger.path),
            )
            return False
        # Readers try the spool, then the backend: they must use it before the file leaves here.
        self._is_unreachable = False
        self._spool.accept(number)
        return True

    def _send(self, file: PendingFile) -> bool:
        """Create a file, or replace an earlier version of ours; return False if it is another."""
        try:
            self.file_store.create(file.key, file.contents)
        except FileExistsError:
            return self._replace(file)
        return True

    def _replace(self, file: PendingFile) -> bool:
        existing = self.file_store.read_bytes(file.key)
        if existing == file.contents:
            return True
        if hashlib.sha256(existing).hexdigest() in file.sent:
            self.file_store.write(file.key, file.contents)
            return True
        return False

    @contextlib.contextmanager
    def _watched(self) -> Iterator[None]:
        """Note a backend that fails in the block as unreachable."""
        try:
            yield
        except StorageError:
            self._is_unreachable = True
            raise

    def _warn_once(self, path: str, message: str, *values: object) -> None:
        if path not in self._blocked:
            _log.warning(message, *values)
        self._blocked.add(path)

    def pending(self) -> builtins.list[str]:
        """Return the paths of the pending files, oldest first."""
        return [*self._spool.keys().values()]

    def _start_delivery(self) -> None:
        if self._thread is None:
            # At exit no thread may start; the next start sends the pending files.
            self._thread = try_start_thread(
                _deliver_until_done, "oh-storage-spool", weakref.ref(self), self._abandoned
            )


def _deliver_until_done(store: weakref.ref[SpoolingFileStore], abandoned: threading.Event) -> None:
    pause = _FIRST_PAUSE_SECONDS
    while not abandoned.wait(pause):
        spooling = store()
        if spooling is None:
            return
        try:
            if spooling.deliver():
                return
        except Exception:  # such as a full local disk: the pending files are still to be sent
            _log.warning("Delivery to %r is tried again", spooling.file_store, exc_info=True)
        del spooling
        pause = min(2 * pause, _MAX_PAUSE_SECONDS)
