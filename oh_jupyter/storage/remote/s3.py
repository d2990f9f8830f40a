"""Files in a bucket that speaks S3: Amazon's, MinIO's, Ceph's and others."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, cast

from oh_jupyter.errors import StorageError, StoreConfigError
from oh_jupyter.storage.remote.fsspec_store import MAX_CONNECTIONS, FsspecFileStore, explain, within

# A server that takes connections and never answers is given up after 20 seconds: botocore
# makes so many attempts, and s3fs shall not repeat them.
_CONNECT_SECONDS = 5
_READ_SECONDS = 10
_MAX_ATTEMPTS = 2
_MAX_READS = 6  # of an object that others replace, so that its contents break off
# A server that answers with an error of its own is asked more often: that does not take long.
_SERVER_ERRORS = (500, 502, 503)
_MAX_ATTEMPTS_AFTER_ERROR = 5
_FIRST_PAUSE_SECONDS = 0.1
_FEW_KEYS = 10  # that are listed to see what a path is: most often one file
_MAX_KEYS_PER_DELETE = 1000  # the most that one DeleteObjects request may name


class S3FileStore(FsspecFileStore):
    """A store in an S3 bucket.

    Read from the environment, as in OpenHands: ``AWS_S3_BUCKET``,
    ``AWS_ACCESS_KEY_ID``, ``AWS_SECRET_ACCESS_KEY``, ``AWS_S3_ENDPOINT``, and
    ``AWS_S3_SECURE``, which decides between https (the default) and http.

    Args:
        bucket_name: The bucket, or ``bucket/prefix``; None for ``AWS_S3_BUCKET``.
        **options: Options of `s3fs.S3FileSystem`; they win over the environment.

    Attributes:
        bucket: Name of the bucket.

    Raises:
        StoreConfigError: If no bucket is named.
    """

    # Its defaults are pieces of 50 MB, ten of them at a time.
    _stream_options: Mapping[str, Any] = {"block_size": 8 << 20, "cache_type": "readahead"}
    _upload_options: Mapping[str, Any] = {"chunksize": 8 << 20, "max_concurrency": 3}
    _has_directories = False
    _account = "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"

    def __init__(self, bucket_name: str | None = None, **options: Any) -> None:
        name = bucket_name or os.environ.get("AWS_S3_BUCKET")
        if not name:
            raise StoreConfigError("AWS_S3_BUCKET is not set, and no bucket is given; name one.")
        name = name.removeprefix("s3://").strip("/")
        super().__init__(f"s3://{name}", **{**_environment(), **options})
        self.bucket, _, self._prefix = name.partition("/")

    def _open_filesystem(self) -> tuple[int, Any, str]:
        is_open = self._opened is not None and self._opened[0] == os.getpid()
        opened = super()._open_filesystem()
        if not is_open:
            fs = opened[1]
            fs.retries = 1
            # It costs each write a round trip, and aiohttp waits for the answer without end.
            fs.s3.meta.events.register("before-sign.s3", _without_expect)
            fs.s3.meta.events.register("needs-retry.s3", _pause_after_server_error)
        return opened

    async def _fetch(self, path: str) -> bytes:
        """Read an object; s3fs asks for it twice as often where the server does not answer."""
        from aiohttp import ClientPayloadError

        name = path.partition("/")[2]
        for remaining in reversed(range(_MAX_READS)):
            try:
                answer = await self._request("get_object", Key=name)
                try:
                    return cast(bytes, await answer["Body"].read())
                finally:
                    answer["Body"].close()
            except (ClientPayloadError, ConnectionResetError):
                if not remaining:
                    raise
        raise AssertionError

    def _listed(self, key: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
        start = self._object(key) + "/" if self._object(key) else ""
        for page in self._pages(start, Delimiter="/"):
            for prefix in page.get("CommonPrefixes", ()):
                if name := prefix["Prefix"][len(start) : -1]:
                    yield name, {"type": "directory"}
            for entry in page.get("Contents", ()):
                if name := entry["Key"][len(start) :]:
                    yield name, {**entry, "type": "file", "size": entry["Size"]}

    def _remove(self, key: str) -> None:
        with self._reached(key):
            self._find_and_delete([key])

    def _remove_many(self, keys: Iterable[str]) -> None:
        with self._reached(""):
            self._find_and_delete(keys)

    def _find_and_delete(self, keys: Iterable[str]) -> None:
        from fsspec.asyn import _run_coros_in_chunks, sync

        async def delete() -> None:
            looks = [self._find(self._object(key)) for key in keys]
            found = await _run_coros_in_chunks(looks, batch_size=MAX_CONNECTIONS)
            await self._delete_objects(list(dict.fromkeys(chain.from_iterable(found))))

        # In one go: each change to the loop's thread and back takes as long as a request.
        sync(self.fs.loop, delete)

    async def _find(self, name: str) -> list[str]:
        """Name the object, if it is there, and all below it."""
        # Some servers take a DeleteObject of what is not there for one of its neighbours.
        page = await self._page(name, MaxKeys=_FEW_KEYS)
        pages, below = [page], name + "/" if name else ""
        if page.get("IsTruncated"):  # there may be many namesakes in front of what is below it
            pages.append(page := await self._page(below))
            while page.get("IsTruncated"):
                token = page["NextContinuationToken"]
                pages.append(page := await self._page(below, ContinuationToken=token))
        found = [entry["Key"] for page in pages for entry in page.get("Contents", ())]
        return [key for key in found if key == name or key.startswith(below)]

    async def _delete_objects(self, names: list[str]) -> None:
        if len(names) == 1:
            await self._request("delete_object", Key=names[0])
            return
        for start in range(0, len(names), _MAX_KEYS_PER_DELETE):
            doomed = [{"Key": name} for name in names[start : start + _MAX_KEYS_PER_DELETE]]
            delete = {"Objects": doomed, "Quiet": True}
            answer = await self._request("delete_objects", Delete=delete)
            for failure in answer.get("Errors", ()):
                raise StorageError(
                    f"{self!r}: {failure.get('Key')!r} was not deleted: "
                    f"{failure.get('Code')} {failure.get('Message', '')}".rstrip()
                )

    async def _request(self, method: str, **fields: Any) -> Any:
        return await within(self.fs._call_s3(method, Bucket=self.bucket, **fields))

    async def _page(self, prefix: str, **more: Any) -> Any:
        """A page of a listing; s3fs would build and sort a dict for each name."""
        try:
            return await self._request("list_objects_v2", Prefix=prefix, **more)
        except FileNotFoundError as error:  # only the bucket can be missing here
            raise explain(error, repr(self), "", self._account) from error

    def _pages(self, prefix: str, **more: str) -> Iterator[dict[str, Any]]:
        """Ask for a listing page by page."""
        from fsspec.asyn import sync

        while True:
            page = sync(self.fs.loop, self._page, prefix, **more)
            yield page
            if not page.get("IsTruncated"):
                return
            more["ContinuationToken"] = page["NextContinuationToken"]

    def _object(self, key: str) -> str:
        return f"{self._prefix}/{key}".strip("/") if self._prefix else key


def _without_expect(request: Any, **_: Any) -> None:
    del request.headers["Expect"]


def _pause_after_server_error(response: Any, attempts: int, **_: Any) -> float | None:
    """Seconds until a request is repeated; None to leave that to botocore."""
    if response is None or attempts >= _MAX_ATTEMPTS_AFTER_ERROR:
        return None
    if response[0].status_code not in _SERVER_ERRORS:
        return None
    return float(_FIRST_PAUSE_SECONDS * 2**attempts)


def _environment() -> dict[str, Any]:
    options: dict[str, Any] = {
        "use_listings_cache": False,
        "config_kwargs": {
            "max_pool_connections": MAX_CONNECTIONS,
            "connect_timeout": _CONNECT_SECONDS,
            "read_timeout": _READ_SECONDS,
            "retries": {"total_max_attempts": _MAX_ATTEMPTS},
        },
    }
    if os.environ.get("AWS_ACCESS_KEY_ID") and os.environ.get("AWS_SECRET_ACCESS_KEY"):
        options["key"] = os.environ["AWS_ACCESS_KEY_ID"]
        options["secret"] = os.environ["AWS_SECRET_ACCESS_KEY"]
        if os.environ.get("AWS_SESSION_TOKEN"):
            options["token"] = os.environ["AWS_SESSION_TOKEN"]
    endpoint = os.environ.get("AWS_S3_ENDPOINT")
    if endpoint:
        secure = os.environ.get("AWS_S3_SECURE", "true").strip().lower() in ("true", "1", "yes")
        host = endpoint.partition("://")[2] or endpoint
        options["endpoint_url"] = f"{'https' if secure else 'http'}://{host}"
    return options
