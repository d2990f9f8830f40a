"""Store for any fsspec URL."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from typing import Any, BinaryIO, cast

from oh_jupyter.errors import StorageError, StoreAccessError, StoreConfigError
from oh_jupyter.locks import thread_lock
from oh_jupyter.storage.base import FileInfo, directory_info, file_info
from oh_jupyter.storage.keyed import KeyedFileStore
from oh_jupyter.storage.paths import join, path_key
from oh_jupyter.text import shorten

MAX_CONNECTIONS = 32
"""Concurrent requests; more would spend their timeout waiting for a connection."""

TIMEOUT_SECONDS = 20.0
"""Timeout of a request, in addition to the transfer time of its bytes."""

_MIN_BYTES_PER_SECOND = 100_000
# fsspec's memory filesystem reports a file among the parents as FileExistsError.
_NO_FILE = (FileNotFoundError, IsADirectoryError, NotADirectoryError, FileExistsError)
# The libraries below fsspec have dozens of exception classes for the same causes. They are matched
# by name, since importing the classes would load the libraries.
_NO_ROUTE = {
    "ClientConnectionError",
    "ClientConnectorCertificateError",
    "ClientConnectorDNSError",
    "ClientConnectorError",
    "ClientConnectorSSLError",
    "ConnectTimeoutError",
    "ConnectionClosedError",
    "EndpointConnectionError",
    "HTTPClientError",
    "ProxyConnectionError",
    "ReadTimeoutError",
    "ResponseParserError",
    "SSLCertVerificationError",
    "SSLError",
    "ServerDisconnectedError",
    "ServerTimeoutError",
    "SocketTimeoutError",
    "TransportError",
}
_NO_CREDENTIALS = {
    "DefaultCredentialsError",
    "NoCredentialsError",
    "PartialCredentialsError",
    "RefreshError",
}
_UNKNOWN_HEADERS = {"NotImplemented", "XAmzContentSHA256Mismatch"}
"""Codes of S3 servers that do not know the checksums of newer clients."""

_DENIED = {
    "AccessDenied",
    "ExpiredToken",
    "Forbidden",
    "InvalidAccessKeyId",
    "SignatureDoesNotMatch",
    "401",
    "403",
}


class FsspecFileStore(KeyedFileStore):
    """A store at an fsspec URL, such as ``sftp://host/dir`` or ``abfs://container/dir``.

    The backend decides whether a write is atomic: object stores replace an object in one
    step, a file server may not. Within a process, writes and whole reads of one file
    exclude each other.

    Args:
        url: URL of the store's root.
        **options: Options of the fsspec filesystem, such as credentials.

    Attributes:
        url: URL of the store's root.
    """

    _read_options: Mapping[str, Any] = {}
    """Options for reading whole files."""

    _stream_options: Mapping[str, Any] = {}
    """Options for opening a file as a stream."""

    _upload_options: Mapping[str, Any] = {}
    """Options for uploading a local file."""

    _has_directories = True
    """True if directories exist independently of files."""

    _account = "the credentials in the URL or in fsspec's configuration"
    """Credentials that an error message tells the user to check."""

    def __init__(self, url: str, **options: Any) -> None:
        self.url = url
        self._options = options
        self._opened: tuple[int, Any, str] | None = None
        self._inherited: tuple[int, Any, str] | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url.rpartition('@')[2]!r})"

    @property
    def fs(self) -> Any:
        """The fsspec filesystem, created at first use and after a fork."""
        return self._open_filesystem()[1]

    @property
    def root(self) -> str:
        """Path of the store's root within the fsspec filesystem."""
        return self._open_filesystem()[2]

    def _open_filesystem(self) -> tuple[int, Any, str]:
        # Asynchronous filesystems belong to the process that created them.
        if self._opened is None or self._opened[0] != os.getpid():
            from fsspec.core import url_to_fs

            try:
                # fsspec's instance cache ignores credentials in the environment.
                fs, root = url_to_fs(self.url, skip_instance_cache=True, **self._options)
            except (ImportError, ValueError) as error:
                raise StoreConfigError(f"{self!r} cannot be opened: {error}") from error
            # Closing the parent's connection would wait for the parent's loop, so keep it.
            self._inherited = self._opened
            self._opened = (os.getpid(), fs, str(root).rstrip("/"))
        return self._opened

    @contextlib.contextmanager
    def _translated_errors(self, key: str, *, writing: bool = False) -> Iterator[None]:
        """Translate errors of the backend into the exceptions that all stores share."""
        try:
            yield
        except (FileExistsError, IsADirectoryError, NotADirectoryError, StorageError):
            raise
        except FileNotFoundError as error:
            # A write needs no existing file, so the bucket must be missing.
            if writing or _is_missing_bucket(error):
                raise explain(error, repr(self), key, self._account) from error
            raise
        except Exception as error:
            raise explain(error, repr(self), key, self._account) from error

    def _exclusive(self, key: str) -> AbstractContextManager[None]:
        """Lock a file within this process, if the backend writes in place."""
        if self.fs.async_impl:
            return contextlib.nullcontext()
        return thread_lock(f"{self.url}/{key}")

    def _full(self, key: str) -> str:
        return f"{self.root}/{key}" if key else self.root

    def _key(self, full: str) -> str:
        return full.lstrip("/").removeprefix(self.root.lstrip("/")).strip("/")

    def _put(self, key: str, data: bytes) -> None:
        with self._translated_errors(key, writing=True):
            self._make_parents([key])
            self._pipe(key, data)

    def _put_new(self, key: str, data: bytes) -> None:
        # Most servers create atomically; the check beforehand is for those that do not.
        with self._translated_errors(key, writing=True), self._exclusive(key):
            if self._call("exists", self._full(key)):
                raise self._exists_already(key)
            self._make_parents([key])
            try:
                self._call("pipe_file", self._full(key), data, mode="create", size=len(data))
            except FileExistsError:
                raise self._exists_already(key) from None
            except OSError as error:
                if not _is_conflict(error):
                    raise
                raise self._exists_already(key) from error

    def _put_file(self, key: str, source: str) -> None:
        with self._translated_errors(key, writing=True):
            self._make_parents([key])
            size = os.path.getsize(source)
            with self._exclusive(key):
                self._call("put_file", source, self._full(key), size=size, **self._upload_options)

    def _pipe(self, key: str, data: bytes) -> None:
        with self._exclusive(key):
            try:
                self._call("pipe_file", self._full(key), data, size=len(data))
            except IsADirectoryError as error:
                raise self._is_directory(key) from error
            except (FileExistsError, NotADirectoryError) as error:
                raise self._not_directory(key) from error

    def _put_many(self, files: Mapping[str, bytes]) -> None:
        with self._translated_errors("", writing=True):
            self._make_parents(files)
            if not self.fs.async_impl:
                for key, data in files.items():
                    self._pipe(key, data)
                return
            # Concurrent uploads share the bandwidth, so the timeout covers their bytes, too.
            size = sum(sorted(map(len, files.values()))[-MAX_CONNECTIONS:])
            calls = [
                within(self.fs._pipe_file(self._full(key), data), size)
                for key, data in files.items()
            ]
            for result in self._gather(calls):
                if isinstance(result, Exception):
                    raise result

    def _make_parents(self, keys: Iterable[str]) -> None:
        # An object store has no directories; makedirs could create a bucket by mistake.
        if self._has_directories:
            for directory in {self._full(key).rpartition("/")[0] for key in keys}:
                try:
                    self.fs.makedirs(directory, exist_ok=True)
                except (FileExistsError, NotADirectoryError) as error:
                    raise self._not_directory(self._key(directory)) from error

    def _get(self, key: str) -> bytes:
        with self._exclusive(key):
            return cast(bytes, self._read(key, self._cat))

    def _cat(self, path: str) -> bytes:
        if not self.fs.async_impl:
            return cast(bytes, self.fs.cat_file(path, **self._read_options))
        from fsspec.asyn import sync

        return cast(bytes, sync(self.fs.loop, self._fetch, path))

    async def _fetch(self, path: str) -> bytes:
        return cast(bytes, await self.fs._cat_file(path, **self._read_options))

    def _open_read(self, key: str) -> BinaryIO:
        options = self._stream_options
        return cast(BinaryIO, self._read(key, lambda path: self.fs.open(path, "rb", **options)))

    def _read(self, key: str, read: Callable[[str], Any]) -> Any:
        with self._translated_errors(key):
            try:
                return read(self._full(key))
            except _NO_FILE:
                is_directory = any(self._names(key))
                raise (self._is_directory if is_directory else self._missing)(key) from None

    def _children(self, key: str) -> tuple[list[str], list[str]]:
        with self._translated_errors(key):
            names = self._names(key)
            if key and not any(names) and self._is_file(key):
                raise self._not_directory(key)
            return names

    def _names(self, key: str) -> tuple[list[str], list[str]]:
        """Return the names directly below the key; none if it does not exist."""
        directories: dict[str, None] = {}
        files: dict[str, None] = {}
        for name, entry in self._listed(key):
            (directories if entry["type"] == "directory" else files)[name] = None
        return list(directories), list(files)

    def _listed(self, key: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
        self.fs.invalidate_cache()
        try:
            entries = self.fs.ls(self._full(key), detail=True)
        except (FileNotFoundError, NotADirectoryError):
            return
        for entry in entries:
            name = self._key(entry["name"])
            if name == key:
                continue  # the file itself, or the placeholder object of the directory
            name = name.removeprefix(key).lstrip("/")
            if name:
                yield name, entry

    def entries(self, path: str) -> list[FileInfo]:
        """List a directory with the metadata of each entry; see `FileStore`."""
        key = path_key(path)
        with self._translated_errors(key):
            infos = {
                (name, entry["type"]): directory_info(join(key, name))
                if entry["type"] == "directory"
                else file_info(join(key, name), entry["size"], _modified(entry))
                for name, entry in self._listed(key)
            }
        if not infos:
            self._children(key)  # raises if this is a file, or the bucket does not exist
        return sorted(infos.values(), key=lambda i: i["path"] + "/" * (i["type"] == "directory"))

    def _is_file(self, key: str) -> bool:
        try:
            return bool(self._call("info", self._full(key))["type"] == "file")
        except FileNotFoundError:
            return False

    def _remove(self, key: str) -> None:
        with self._translated_errors(key):
            self.fs.invalidate_cache()
            # Not rm(recursive=True), which interprets * and ? in a name as a pattern.
            entries = self.fs.find(self._full(key), withdirs=self._has_directories, detail=True)
            self._remove_files([path for path, info in entries.items() if info["type"] == "file"])
            if self._has_directories:
                directories = [path for path, info in entries.items() if info["type"] != "file"]
                if key and not (entries.keys() == {self._full(key)} and not directories):
                    directories.append(self._full(key))
                for path in sorted(set(directories) - {self.root}, key=len, reverse=True):
                    with contextlib.suppress(OSError):  # gone, or no longer empty
                        self.fs.rmdir(path)

    def _remove_files(self, paths: list[str]) -> None:
        """Delete files by their full paths, concurrently if the backend supports it."""
        if self.fs.async_impl:
            for error in self._gather([within(self.fs._rm_file(path)) for path in paths]):
                if isinstance(error, Exception) and not isinstance(error, FileNotFoundError):
                    raise error
            return
        for path in paths:
            with contextlib.suppress(FileNotFoundError):
                self.fs.rm_file(path)

    def _call(self, name: str, *args: Any, size: int = 0, **options: Any) -> Any:
        """Call a method of the filesystem; the timeout allows for sending ``size`` bytes."""
        if not self.fs.async_impl:
            return getattr(self.fs, name)(*args, **options)
        from fsspec.asyn import sync

        return sync(
            self.fs.loop, lambda: within(getattr(self.fs, f"_{name}")(*args, **options), size)
        )

    def _gather(self, calls: list[Any]) -> list[Any]:
        """Run coroutines on fsspec's loop with bounded concurrency."""
        from fsspec.asyn import _run_coros_in_chunks, sync

        results = sync(
            self.fs.loop,
            _run_coros_in_chunks,
            calls,
            batch_size=MAX_CONNECTIONS,
            return_exceptions=True,
        )
        return cast(list[Any], results)

    def _info(self, key: str) -> FileInfo:
        with self._translated_errors(key):
            self.fs.invalidate_cache()
            try:
                entry = self._call("info", self._full(key))
            except (FileNotFoundError, NotADirectoryError):
                if not any(self._names(key)):
                    raise self._missing(key) from None
                entry = {"type": "directory"}  # a file was just written into it
        if entry["type"] == "directory":
            return directory_info(key)
        return file_info(key, entry["size"], _modified(entry))

    def _get_many(self, keys: Iterable[str]) -> dict[str, bytes]:
        if not self.fs.async_impl:
            return super()._get_many(keys)
        keys = list(keys)
        failures: list[Exception] = []
        # Not cat(), which interprets * and ? in a name as a pattern.
        calls = [_fetch_unless_failed(failures, self._fetch, self._full(key)) for key in keys]
        contents: dict[str, bytes] = {}
        for key, data in zip(keys, self._gather(calls), strict=True):
            if isinstance(data, FileNotFoundError) and not _is_missing_bucket(data):
                continue
            if isinstance(data, Exception):
                raise explain(data, repr(self), key, self._account) from data
            contents[key] = data
        return contents


async def _fetch_unless_failed(
    failures: list[Exception], fetch: Callable[[str], Coroutine[Any, Any, bytes]], path: str
) -> bytes:
    """Fetch a file, or raise the first error that another fetch recorded."""
    if failures:
        raise failures[0]
    try:
        return await fetch(path)
    except FileNotFoundError:
        raise
    except Exception as error:
        failures.append(error)
        raise


async def within(call: Coroutine[Any, Any, Any], size: int = 0) -> Any:
    """Await a call; the timeout allows for sending ``size`` bytes."""
    seconds = TIMEOUT_SECONDS + size / _MIN_BYTES_PER_SECOND
    try:
        return await asyncio.wait_for(call, seconds)
    except TimeoutError:
        raise TimeoutError(f"no response within {seconds:.0f} s") from None


def _is_conflict(error: BaseException) -> bool:
    """Return whether a conditional creation failed because the file exists."""
    text = f"{error} {_service_code(error)}".lower()
    return "precondition" in text or "412" in text


def _modified(entry: Mapping[str, Any]) -> datetime | None:
    """Return the time of the last change; backends use different names for it."""
    for name in ("LastModified", "last_modified", "mtime", "updated", "created"):
        value = entry.get(name)
        if isinstance(value, (int, float)):
            return datetime.fromtimestamp(value, UTC)
        if isinstance(value, str):
            value = datetime.fromisoformat(value)
        if isinstance(value, datetime):
            return value if value.tzinfo else value.replace(tzinfo=UTC)
    return None


def explain(error: Exception, store: str, key: str, account: str) -> StorageError:
    """Translate an error from below fsspec into a StorageError that says what to check."""
    location = f"{store}, {key!r}" if key else store
    chain = list(_chain(error))
    names = {type(link).__name__ for link in chain}
    codes = {_service_code(link) for link in chain}
    if _is_missing_bucket(error) or isinstance(error, FileNotFoundError):
        return StoreAccessError(
            f"{location}: the bucket does not exist; create it or name another."
        )
    if names & _NO_CREDENTIALS:
        return StoreAccessError(f"{location}: there are no usable credentials; check {account}.")
    if isinstance(error, PermissionError) or codes & _DENIED:
        return StoreAccessError(f"{location}: access was denied; check {account}.")
    if names & _NO_ROUTE or isinstance(error, (ConnectionError, TimeoutError)):
        return StoreAccessError(
            f"{location}: the server cannot be reached ({_brief(error)}); "
            "check the endpoint and the network."
        )
    advice = (
        "; if the server does not know newer checksums, set AWS_REQUEST_CHECKSUM_CALCULATION and "
        "AWS_RESPONSE_CHECKSUM_VALIDATION to when_required"
        if codes & _UNKNOWN_HEADERS
        else ""
    )
    return StorageError(f"{location}: the request failed: {_brief(error)}{advice}")


def _is_missing_bucket(error: BaseException) -> bool:
    """Return whether a FileNotFoundError means a missing bucket instead of a missing file."""
    return any(_service_code(link) == "NoSuchBucket" for link in _chain(error))


def _service_code(error: BaseException) -> str:
    """Return the error code of the service, such as ``NoSuchBucket``, or ``""``."""
    response = getattr(error, "response", None)
    if isinstance(response, dict):
        return str(response.get("Error", {}).get("Code", ""))
    # "status" first: aiohttp's "code" is deprecated and warns.
    return str(getattr(error, "status", None) or getattr(error, "code", ""))


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _brief(error: BaseException) -> str:
    # fsspec's own error for a timeout has no text; its cause has.
    cause = next((link for link in _chain(error) if str(link)), error)
    text = " ".join(str(cause).split()) or "no reason given"
    return f"{type(cause).__name__}: {shorten(text, 200, marker='')}"
