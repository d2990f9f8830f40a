"""What went wrong on the way to a remote store, in one sentence that names it.

The libraries below fsspec report the same causes by dozens of classes. They are told
apart by names and texts here, because importing the classes would load the libraries.
"""

from __future__ import annotations

from collections.abc import Iterator

from oh_jupyter.errors import StorageError, StoreAccessError

__all__ = ["explain", "is_missing_bucket", "service_code"]

_NO_ROUTE = {
    "ClientConnectionError",
    "ClientConnectorError",
    "ClientConnectorDNSError",
    "ConnectTimeoutError",
    "ConnectionClosedError",
    "EndpointConnectionError",
    "ReadTimeoutError",
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
_DENIED = {
    "AccessDenied",
    "ExpiredToken",
    "Forbidden",
    "InvalidAccessKeyId",
    "SignatureDoesNotMatch",
    "401",
    "403",
}


def explain(error: Exception, store: str, key: str, account: str) -> StorageError:
    """Turn an error from below fsspec into a StorageError that says what to check."""
    where = f"{store}, {key!r}" if key else store
    chain = list(_chain(error))
    names = {type(link).__name__ for link in chain}
    codes = {service_code(link) for link in chain}
    if is_missing_bucket(error) or isinstance(error, FileNotFoundError):
        return StoreAccessError(f"{where}: the bucket does not exist; create it or name another.")
    if names & _NO_CREDENTIALS:
        return StoreAccessError(f"{where}: there are no usable credentials; check {account}.")
    if isinstance(error, PermissionError) or codes & _DENIED:
        return StoreAccessError(f"{where}: access was denied; check {account}.")
    if names & _NO_ROUTE or isinstance(error, (ConnectionError, TimeoutError)):
        return StoreAccessError(
            f"{where}: the server cannot be reached ({_brief(error)}); "
            "check the endpoint and the network."
        )
    return StorageError(f"{where}: the request failed: {_brief(error)}")


def is_missing_bucket(error: BaseException) -> bool:
    """Tell whether a FileNotFoundError is about the bucket instead of the file."""
    return any(service_code(link) == "NoSuchBucket" for link in _chain(error))


def service_code(error: BaseException) -> str:
    """Code by which the service named an error, such as ``NoSuchBucket``, or ``""``."""
    response = getattr(error, "response", None)
    if isinstance(response, dict):
        return str(response.get("Error", {}).get("Code", ""))
    return str(getattr(error, "code", ""))


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _brief(error: Exception) -> str:
    text = " ".join(str(error).split()) or "no reason given"
    return f"{type(error).__name__}: {text[:200]}"
