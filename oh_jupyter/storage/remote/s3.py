"""Store in a bucket of Amazon S3, MinIO, Ceph or another S3 server."""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, cast

from oh_jupyter.errors import StorageError, StoreConfigError
from oh_jupyter.loopback import is_local
from oh_jupyter.storage.remote.fsspec_store import MAX_CONNECTIONS, FsspecFileStore, explain, within

# A server that accepts connections and never responds fails after 20 seconds: botocore makes
# these attempts, and s3fs must not repeat them.
_CONNECT_SECONDS = 5
_READ_SECONDS = 10
_MAX_ATTEMPTS = 2
_MAX_READS = 6  # of an object that is replaced during the read, which truncates the response
# Server errors arrive quickly, so more retries are cheap.
_SERVER_ERRORS = (500, 502, 503)
_MAX_ATTEMPTS_AFTER_ERROR = 5
_FIRST_PAUSE_SECONDS = 0.1
_FEW_KEYS = 10  # page size for finding out what a path is: usually one file
CHECKSUM_VARIABLES = ("AWS_REQUEST_CHECKSUM_CALCULATION", "AWS_RESPONSE_CHECKSUM_VALIDATION")
_MAX_KEYS_PER_DELETE = 1000  # the most that one DeleteObjects request may name


class S3FileStore(FsspecFileStore):
    """A store in an S3 bucket.

    It reads the variables ``AWS_S3_BUCKET``, ``AWS_ACCESS_KEY_ID``,
    ``AWS_SECRET_ACCESS_KEY``, ``AWS_S3_ENDPOINT`` and ``AWS_S3_SECURE`` (https or http), as
    in OpenHands. Without ``AWS_S3_SECURE``, the scheme of the endpoint decides, then https.
    Servers other than Amazon's get no checksums that they do not require, unless
    ``AWS_REQUEST_CHECKSUM_CALCULATION`` says so.

    Args:
        bucket_name: The bucket, or ``bucket/prefix``; None for ``AWS_S3_BUCKET``.
        **options: Options of `s3fs.S3FileSystem`; they override the environment.

    Attributes:
        bucket: Name of the bucket.

    Raises:
        StoreConfigError: If no bucket is named.
    """

    # The defaults are blocks of 50 MB, ten of them at a time.
    _stream_options: Mapping[str, Any] = {"block_size": 8 << 20, "cache_type": "readahead"}
    _upload_options: Mapping[str, Any] = {"chunksize": 8 << 20, "max_concurrency": 3}
    _has_directories = False
    _account = "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"

    def __init__(self, bucket_name: str | None = None, **options: Any) -> None:
        name = bucket_name or os.environ.get("AWS_S3_BUCKET")
        if not name:
            raise StoreConfigError("No bucket: set AWS_S3_BUCKET, or pass bucket_name.")
        name = name.removeprefix("s3://").strip("/")
        super().__init__(f"s3://{name}", **{**_environment(), **options})
        self.bucket, _, self._prefix = name.partition("/")

    def _open_filesystem(self) -> tuple[int, Any, str]:
        is_open = self._opened is not None and self._opened[0] == os.getpid()
        opened = super()._open_filesystem()
        if not is_open:
            fs = opened[1]
            fs.retries = 1
            # It costs each write a round trip, and aiohttp waits for the response indefinitely.
            fs.s3.meta.events.register("before-sign.s3", _without_expect)
            fs.s3.meta.events.register("needs-retry.s3", _pause_after_server_error)
            if fs.s3.meta.config.request_checksum_calculation == "when_required":
                # The one request that requires a checksum.
                fs.s3.meta.events.register("before-call.s3.DeleteObjects", _with_md5)
        return opened

    async def _fetch(self, path: str) -> bytes:
        # Not through s3fs, which doubles the requests to a server that does not respond.
        from aiohttp import ClientPayloadError

        name = path.partition("/")[2]
        for remaining in reversed(range(_MAX_READS)):
            try:
                response = await self._request("get_object", Key=name)
                try:
                    return cast(bytes, await response["Body"].read())
                finally:
                    response["Body"].close()
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
        with self._translated_errors(key):
            self._find_and_delete([key])

    def _remove_many(self, keys: Iterable[str]) -> None:
        with self._translated_errors(""):
            self._find_and_delete(keys)

    def _find_and_delete(self, keys: Iterable[str]) -> None:
        from fsspec.asyn import _run_coros_in_chunks, sync

        async def delete() -> None:
            searches = [self._find(self._object(key)) for key in keys]
            names = await _run_coros_in_chunks(searches, batch_size=MAX_CONNECTIONS)
            await self._delete_objects(list(dict.fromkeys(chain.from_iterable(names))))

        # One call: each switch to the loop's thread takes as long as a request.
        sync(self.fs.loop, delete)

    async def _find(self, name: str) -> list[str]:
        """Return the names of the object, if it exists, and of all objects below it."""
        # Some servers delete a neighbour if DeleteObject names a missing object.
        page = await self._page(name, MaxKeys=_FEW_KEYS)
        pages, below = [page], name + "/" if name else ""
        if page.get("IsTruncated"):  # many names with this prefix may sort before the ones below
            pages.append(page := await self._page(below))
            while page.get("IsTruncated"):
                token = page["NextContinuationToken"]
                pages.append(page := await self._page(below, ContinuationToken=token))
        keys = [entry["Key"] for page in pages for entry in page.get("Contents", ())]
        return [key for key in keys if key == name or key.startswith(below)]

    async def _delete_objects(self, names: list[str]) -> None:
        if len(names) == 1:
            await self._request("delete_object", Key=names[0])
            return
        for start in range(0, len(names), _MAX_KEYS_PER_DELETE):
            objects = [{"Key": name} for name in names[start : start + _MAX_KEYS_PER_DELETE]]
            delete = {"Objects": objects, "Quiet": True}
            response = await self._request("delete_objects", Delete=delete)
            for failure in response.get("Errors", ()):
                raise StorageError(
                    f"{self!r}: {failure.get('Key')!r} was not deleted: "
                    f"{failure.get('Code')} {failure.get('Message', '')}".rstrip()
                )

    async def _request(self, method: str, **fields: Any) -> Any:
        return await within(self.fs._call_s3(method, Bucket=self.bucket, **fields))

    async def _page(self, prefix: str, **more: Any) -> Any:
        """Return a page of a listing; s3fs would build and sort a dict for each name."""
        try:
            return await self._request("list_objects_v2", Prefix=prefix, **more)
        except FileNotFoundError as error:  # only the bucket can be missing here
            raise explain(error, repr(self), "", self._account) from error

    def _pages(self, prefix: str, **more: str) -> Iterator[dict[str, Any]]:
        """Iterate over the pages of a listing."""
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
    """Return the seconds until the next attempt; None to leave that to botocore."""
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
        options["endpoint_url"] = address = _address(endpoint)
        options["config_kwargs"] |= _settings_of_other_servers(address)
    return options


def _address(endpoint: str) -> str:
    """Return the URL of an endpoint: AWS_S3_SECURE, if it is set, else the endpoint's scheme."""
    scheme, _, host = endpoint.rpartition("://")
    secure = os.environ.get("AWS_S3_SECURE", "").strip().lower()
    if secure:
        scheme = "https" if secure in ("true", "1", "yes") else "http"
    return f"{scheme or 'https'}://{host}"


def _settings_of_other_servers(address: str) -> dict[str, Any]:
    """Return botocore's settings for a server that is not Amazon's."""
    settings: dict[str, Any] = {}
    # Many reject the checksums that botocore has sent and expected since 2025.
    for name in CHECKSUM_VARIABLES:
        if not os.environ.get(name):
            settings[name.removeprefix("AWS_").lower()] = "when_required"
    if is_local(address):
        settings["proxies"] = {}
    return settings


def _with_md5(params: dict[str, Any], **_: Any) -> None:
    """Send the MD5 digest that all servers accept, not the checksum that botocore prefers."""
    checksum = params["context"].get("checksum", {})
    if checksum.pop("request_algorithm", None) is not None:
        params["headers"].pop("x-amz-sdk-checksum-algorithm", None)
        digest = hashlib.md5(params["body"], usedforsecurity=False).digest()
        params["headers"]["Content-MD5"] = base64.b64encode(digest).decode("ascii")
