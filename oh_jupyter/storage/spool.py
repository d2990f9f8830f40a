"""A store that may be away: what is written meanwhile, as by logs, waits on this disk."""

from __future__ import annotations

import builtins
import contextlib
import hashlib
import logging
import os
import threading
import weakref
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import TypeVar

from oh_jupyter.background import try_start_thread
from oh_jupyter.config import state_home
from oh_jupyter.errors import StorageError, StoreAccessError
from oh_jupyter.locks import file_lock
from oh_jupyter.storage.base import FileInfo, FileStore
from oh_jupyter.storage.local.store import LocalFileStore
from oh_jupyter.storage.memory import InMemoryFileStore
from oh_jupyter.storage.paths import path_key

_T = TypeVar("_T")
_log = logging.getLogger(__name__)
_ANSWER_SECONDS = 5.0
_FIRST_PAUSE_SECONDS = 2.0
_MAX_PAUSE_SECONDS = 60.0
_PROBED_PATH = "oh-jupyter-probe"  # asked for where nothing else is to be done


def spool_while_unreachable(store: FileStore) -> FileStore:
    """Wrap a store that can be away; one on this machine, or without a spool, stays as it is."""
    backend = getattr(store, "file_store", store)
    if isinstance(backend, LocalFileStore | InMemoryFileStore):
        return store
    name = hashlib.sha256(repr(backend).encode()).hexdigest()[:16]
    try:
        return SpoolingFileStore(store, str(state_home() / "spool" / name))
    except (OSError, StorageError) as error:
        _log.warning("While %r is away, nothing is kept on disk for it: %s", store, error)
        return store


class SpoolingFileStore(FileStore):
    """A store whose new files wait in a directory while it cannot be reached.

    Several processes may share the directory. Meanwhile only what waits can be read and listed.
    """

    def __init__(self, store: FileStore, directory: str) -> None:
        os.makedirs(directory, mode=0o700, exist_ok=True)
        self.file_store = store
        self._directory = directory
        self._spool = LocalFileStore(os.path.join(directory, "files"))
        self._lock = threading.Lock()
        self._is_away = False
        self._refused: set[str] = set()  # paths at which the store has something else
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
        keep: Callable[[str, str | bytes], None],
    ) -> None:
        if not self._is_away:
            try:
                put(path, contents)
                return
            except StoreAccessError as error:
                self._report_away(error)
        with self._lock:
            keep(path, contents)
            self._start_delivery()

    def _report_away(self, error: Exception) -> None:
        with self._lock:
            if self._is_away:
                return
            self._is_away = True
            self._start_delivery()
        _log.warning(
            "%s What is to be written there is kept in %s, and sent when it is back.",
            error,
            self._directory,
        )

    def _reached(self, call: Callable[[], _T], otherwise: Callable[[], _T]) -> _T:
        """Ask the store for a limited time; while it is away, give what is known here."""
        if self._is_away:
            return otherwise()
        answer: Future[_T] = Future()

        def ask() -> None:
            try:
                answer.set_result(call())
            except BaseException as error:
                answer.set_exception(error)

        if try_start_thread(ask, "oh-store-question") is None:
            ask()
        try:
            return answer.result(_ANSWER_SECONDS)
        except TimeoutError:
            error = StoreAccessError(
                f"{self.file_store!r} did not answer within {_ANSWER_SECONDS:g} s."
            )
            self._report_away(error)
        except StoreAccessError as error:
            self._report_away(error)
        return otherwise()

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
        wanted = list(paths)
        found = self._spool.read_many(wanted, missing_ok=True)
        missing = [path for path in wanted if path not in found]
        if missing and not (self._is_away and missing_ok):
            found.update(self.file_store.read_many(missing, missing_ok=missing_ok))
        return {path: found[path] for path in wanted if path in found}

    def list(self, path: str) -> builtins.list[str]:  # noqa: D102
        found: set[str] = set()
        with contextlib.suppress(FileNotFoundError):
            found.update(self._spool.list(path))
        try:
            found.update(self._reached(lambda: self.file_store.list(path), list))
        except FileNotFoundError:
            if not found:
                raise
        return sorted(found)

    def exists(self, path: str) -> bool:  # noqa: D102
        return self._spool.exists(path) or self._reached(
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
        """Send what waits, the oldest first; False if the store is still away, or refuses some."""
        refused = False
        with file_lock(os.path.join(self._directory, "lock")):
            waiting = self.pending()
            try:
                if not waiting:
                    self.file_store.exists(_PROBED_PATH)
                for path in waiting:
                    refused = not self._deliver(path) or refused
            except StorageError as error:
                self._is_away = True
                _log.debug("%r is still away: %s", self.file_store, error)
                return False
        with self._lock:
            if refused or self.pending():
                return False
            self._is_away = False
            self._thread = None
        _log.warning("%r is back, and has what was kept for it", self.file_store)
        return True

    def _deliver(self, path: str) -> bool:
        try:
            contents = self._spool.read_bytes(path)
        except FileNotFoundError:
            return True
        try:
            self.file_store.create(path, contents)
        except FileExistsError:
            if self.file_store.read_bytes(path) != contents:
                if path not in self._refused:
                    _log.warning(
                        "%r has another file at %s; ours stays in %s",
                        self.file_store,
                        path,
                        self._spool.get_full_path(path),
                    )
                self._refused.add(path)
                return False
        # Readers look here, then in the store: they must ask it before the file leaves this place.
        self._is_away = False
        self._spool.delete(path)
        return True

    def pending(self) -> builtins.list[str]:
        """Paths of what waits, the oldest first."""
        found = []
        for directory, _, names in self._spool.walk():
            for name in names:
                key = path_key(f"{directory}/{name}")
                with contextlib.suppress(OSError):
                    status = os.stat(self._spool.get_full_path(key))
                    found.append((status.st_mtime_ns, len(key), key))
        return [key for _, _, key in sorted(found)]

    def _start_delivery(self) -> None:
        if self._thread is None:
            # At exit there may be none: the next start sends what waits.
            self._thread = try_start_thread(
                _deliver_until_done, "oh-spool", weakref.ref(self), self._abandoned
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
        except Exception:  # a full disk of ours, say: what waits is still to be sent
            _log.warning("What waits for %r is tried again", spooling.file_store, exc_info=True)
        del spooling
        pause = min(2 * pause, _MAX_PAUSE_SECONDS)
