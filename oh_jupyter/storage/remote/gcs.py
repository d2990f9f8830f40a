"""Store in a bucket of Google Cloud Storage."""

from __future__ import annotations

import functools
import logging
import os
import socket
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from oh_jupyter.errors import StoreAccessError, StoreConfigError
from oh_jupyter.storage.remote.fsspec_store import FsspecFileStore

_CONNECT_SECONDS = 5.0
_READ_SECONDS = 12.0
_MAX_ATTEMPTS = 3
_SCOPE = "https://www.googleapis.com/auth/devstorage.read_write"
_NO_CREDENTIALS = (
    "there are no usable credentials; set GOOGLE_APPLICATION_CREDENTIALS to a key file, or log in "
    "with: gcloud auth application-default login. A public bucket needs FSSPEC_GS_TOKEN=anon."
)


class GoogleCloudFileStore(FsspecFileStore):
    """A store in a bucket of Google Cloud Storage.

    It reads the variables ``GOOGLE_CLOUD_BUCKET_NAME`` and
    ``GOOGLE_APPLICATION_CREDENTIALS``, as in OpenHands; ``STORAGE_EMULATOR_HOST`` selects
    an emulator.

    Args:
        bucket_name: The bucket, or ``bucket/prefix``; None for the variable.
        **options: Options of `gcsfs.GCSFileSystem`.

    Attributes:
        bucket: Name of the bucket.

    Raises:
        StoreConfigError: If no bucket is named.
    """

    _read_options: Mapping[str, Any] = {}
    _stream_options: Mapping[str, Any] = {"block_size": 8 << 20, "cache_type": "readahead"}
    _upload_options: Mapping[str, Any] = {"chunksize": 8 << 20}
    _has_directories = False
    _account = "GOOGLE_APPLICATION_CREDENTIALS"

    def __init__(self, bucket_name: str | None = None, **options: Any) -> None:
        name = bucket_name or os.environ.get("GOOGLE_CLOUD_BUCKET_NAME")
        if not name:
            raise StoreConfigError("No bucket: set GOOGLE_CLOUD_BUCKET_NAME, or pass bucket_name.")
        name = name.removeprefix("gs://").removeprefix("gcs://").strip("/")
        super().__init__(f"gs://{name}", **{**_environment(), **options})
        self.bucket = name.partition("/")[0]

    def _open_filesystem(self) -> tuple[int, Any, str]:
        if self._opened is None or self._opened[0] != os.getpid():
            emulator = os.environ.get("STORAGE_EMULATOR_HOST")
            if emulator:
                self._check_emulator(emulator)
            else:
                self._find_credentials()
            _limit_retries(super()._open_filesystem()[1])
        return super()._open_filesystem()

    def _find_credentials(self) -> None:
        """Find credentials now; gcsfs would search for a minute and continue without any."""
        from fsspec.config import conf

        configured = {**conf.get("gcs", {}), **conf.get("gs", {}), **self._options}
        if configured.get("token") is not None:
            return
        # google.auth reads these at import: how long to search for Google's metadata server.
        os.environ.setdefault("GCE_METADATA_TIMEOUT", "1")
        os.environ.setdefault("GCE_METADATA_DETECT_RETRIES", "1")
        import google.auth
        from google.auth.exceptions import GoogleAuthError

        try:
            self._options["token"], _ = google.auth.default(scopes=[_SCOPE])
        except GoogleAuthError as error:
            raise StoreAccessError(f"{self!r}: {_NO_CREDENTIALS}") from error

    def _check_emulator(self, emulator: str) -> None:
        """Fail at once if the emulator is down; gcsfs would retry for half a minute."""
        address = urlsplit(emulator if "://" in emulator else f"http://{emulator}")
        try:
            endpoint = (address.hostname or "", address.port or 80)
            socket.create_connection(endpoint, _CONNECT_SECONDS).close()
        except (OSError, ValueError) as error:
            raise StoreAccessError(
                f"{self!r}: the server cannot be reached ({error}); check STORAGE_EMULATOR_HOST."
            ) from error

    def _names(self, key: str) -> tuple[list[str], list[str]]:
        names = super()._names(key)
        if not any(names) and not self._call("exists", self.bucket):
            # gcsfs returns an empty listing for a missing bucket, too.
            raise StoreAccessError(
                f"{self!r}: the bucket does not exist; create it or name another."
            )
        return names


def _limit_retries(fs: Any) -> None:
    """Limit timeouts and retries; gcsfs retries six times with growing pauses."""
    import aiohttp
    from gcsfs.retry import retry_request

    fs.requests_timeout = aiohttp.ClientTimeout(
        sock_connect=_CONNECT_SECONDS, sock_read=_READ_SECONDS
    )
    once = getattr(type(fs)._request, "__wrapped__", None)
    if once is not None:
        fs._request = functools.partial(retry_request(retries=_MAX_ATTEMPTS)(once), fs)
    # It logs a traceback of each error that it also raises.
    logging.getLogger("gcsfs.retry").setLevel(logging.CRITICAL)


def _environment() -> dict[str, Any]:
    options: dict[str, Any] = {"use_listings_cache": False, "consistency": "md5"}
    if os.environ.get("STORAGE_EMULATOR_HOST"):
        # gcsfs reads this at import; it would wait a minute for a service that emulators lack.
        os.environ.setdefault("GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT", "false")
        options["token"] = "anon"
    return options
