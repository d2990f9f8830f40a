"""What both clients send, and how they read the answers; nothing here waits."""

from __future__ import annotations

import json
import os
import tempfile
import uuid
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Generic, TypeVar
from urllib.parse import quote

from oh_jupyter import errors
from oh_jupyter.errors import KernelTimeoutError, OhJupyterError, ServerError, WireError
from oh_jupyter.events import Action, Event, Observation
from oh_jupyter.events.wire import from_wire, observation_from_wire, to_wire

__all__ = [
    "ID_HEADER",
    "Calls",
    "Request",
    "SentEvents",
    "failure",
    "unreachable",
]

T = TypeVar("T")

ID_HEADER = "X-Request-ID"
"""Names a request, so that its answer can be fetched after a broken connection."""


@dataclass(frozen=True)
class Request(Generic[T]):
    """One request.

    Attributes:
        method: HTTP method.
        path: Below the runtime's address.
        read: Makes the result of the body.
        options: What else the HTTP library is given.
    """

    method: str
    path: str
    read: Callable[[bytes], T]
    options: dict[str, Any] = field(default_factory=dict)


class Calls:
    """Makes requests to one runtime."""

    def __init__(
        self, url: str, token: str, kernel_id: str | None, session_api_key: str | None
    ) -> None:
        """Work out the address.

        Args:
            url: The Jupyter server's address, or that of the extension on it.
            token: Its token.
            kernel_id: The kernel to use; None for the server's default one.
            session_api_key: OpenHands' key, in place of a token.
        """
        base = url.rstrip("/")
        if "/oh_jupyter" not in base:
            base += "/oh_jupyter"
        self.address = base if kernel_id is None else f"{base}/kernels/{quote(kernel_id, safe='')}"
        self.server_address = base.partition("/kernels/")[0]
        self.headers = {}
        if token:
            self.headers["Authorization"] = f"token {token}"
        if session_api_key:
            self.headers["X-Session-API-Key"] = session_api_key

    def execute(self, action: Action | dict[str, Any]) -> Request[Observation]:
        """Carry out an Action, under an id by which the answer can be fetched again."""
        wire = to_wire(action) if isinstance(action, Action) else action
        return Request(
            "POST",
            f"{self.address}/execute_action",
            _observation,
            {"json": {"action": wire}, "headers": {ID_HEADER: uuid.uuid4().hex}},
        )

    def fetch(self, request: Request[T], wait: float = 60) -> Request[T]:
        """Fetch the answer of a request whose connection broke."""
        key = request.options["headers"][ID_HEADER]
        path = f"{self.server_address}/requests/{key}"
        return Request("GET", path, request.read, {"params": {"wait": f"{wait:g}"}})

    def cancel(self, request: Request[Any]) -> Request[None]:
        """Take a request back."""
        key = request.options["headers"][ID_HEADER]
        return Request("DELETE", f"{self.server_address}/requests/{key}", _nothing)

    def alive(self) -> Request[bool]:
        """Ask whether the server answers, and has the kernel."""
        path = f"{self.address}/alive"
        return Request("GET", path, lambda body: _json(body).get("status") == "ok")

    def server_info(self) -> Request[dict[str, Any]]:
        """Ask how the server does."""
        return Request("GET", f"{self.address}/server_info", _json)

    def list_files(self, path: str | None) -> Request[list[str]]:
        """List a directory."""
        body = {} if path is None else {"path": path}
        return Request("POST", f"{self.address}/list_files", _json, {"json": body})

    def upload(
        self, opened: IO[bytes], name: str, destination: str, recursive: bool
    ) -> Request[dict[str, Any]]:
        """Send a file."""
        params = {"destination": destination, "recursive": str(recursive).lower()}
        options = {"params": params, "files": {"file": (name, opened)}}
        return Request("POST", f"{self.address}/upload_file", _json, options)

    def download(self, path: str) -> Request[bytes]:
        """Fetch a zip file."""
        return Request("GET", f"{self.address}/download_files", bytes, {"params": {"path": path}})

    def history(self, start: int, limit: int) -> Request[list[Event]]:
        """List events."""
        params = {"start_id": str(start), "limit": str(limit), "whole": "true"}
        return Request("GET", f"{self.address}/events", _events, {"params": params})

    def watch(self, start: int, last: str) -> Request[None]:
        """Stream events."""
        headers = {"Accept": "text/event-stream"}
        if last:
            headers["Last-Event-ID"] = last
        params = {"start_id": str(start), "whole": "true"}
        options = {"headers": headers, "params": params}
        return Request("GET", f"{self.address}/events", _nothing, options)

    def skills(self) -> Request[list[dict[str, str]]]:
        """List the agent skills."""
        return Request("GET", f"{self.address}/skills", _json)

    def waiting(self) -> Request[list[dict[str, Any]]]:
        """List the Actions that wait for a person."""
        return Request("GET", f"{self.address}/confirmations", _json)

    def confirm(self, id: int, approve: bool) -> Request[None]:
        """Decide on one of them."""
        path = f"{self.address}/confirmations/{id}"
        return Request("POST", path, _nothing, {"json": {"approve": approve}})

    def store(self, method: str, path: str, contents: bytes | None = None) -> Request[bytes]:
        """Read, write or delete a file of the store."""
        options = {} if contents is None else {"content": contents}
        return Request(method, f"{self.address}/store/{quote(path)}", bytes, options)

    def store_list(self, path: str) -> Request[list[str]]:
        """List a directory of the store."""
        return Request(
            "GET",
            f"{self.address}/store/{quote(path)}",
            lambda body: list(_json(body)["entries"]),
            {"params": {"list": "true"}},
        )

    @staticmethod
    def zipped(source: Path) -> IO[bytes]:
        """Zip a directory, with its own name as the first part of all members."""
        sink = tempfile.TemporaryFile()  # noqa: SIM115 - whoever sends it closes it
        with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
            for parent, directories, files in os.walk(source):
                empty = [] if directories or files else [Path(parent)]
                for path in empty + [Path(parent, name) for name in sorted(files)]:
                    archive.write(path, path.relative_to(source.parent))
        sink.seek(0)
        return sink


class SentEvents:
    """Reads server-sent events, line by line.

    Attributes:
        last: Id of the last event, to go on from.
    """

    def __init__(self) -> None:
        """Begin."""
        self.last = ""
        self._fields: dict[str, str] = {}

    def feed(self, line: str) -> Iterator[Event]:
        """Take a line.

        Args:
            line: Without its end.

        Yields:
            The event that it completes, if it does.

        Raises:
            ServerError: The stream's kernel is gone.
        """
        if line:
            name, _, value = line.partition(":")
            self._fields[name] = value.removeprefix(" ")
            return
        fields, self._fields = self._fields, {}
        if fields.get("event") == "gone":
            raise ServerError(str(json.loads(fields["data"]).get("detail")), 503)
        if "id" in fields:
            self.last = fields["id"]
            try:
                yield from_wire(json.loads(fields["data"]))
            except WireError:
                return  # of a type that a newer runtime knows


def failure(status: int, body: bytes) -> OhJupyterError:
    """Make the error that the server's answer tells of.

    Args:
        status: HTTP status.
        body: The answer.

    Returns:
        The error, of the same class as in the runtime where that is known.
    """
    try:
        data = json.loads(body)
    except ValueError:
        data = {}
    data = data if isinstance(data, dict) else {}
    detail = str(data.get("detail") or data.get("message") or f"The server answered {status}")
    cls = getattr(errors, str(data.get("error")), None)
    if isinstance(cls, type) and issubclass(cls, WireError):
        return cls(detail, str(data.get("field") or ""))
    if isinstance(cls, type) and issubclass(cls, KernelTimeoutError):
        return cls(detail, data.get("withdrawn") is True)
    if isinstance(cls, type) and issubclass(cls, OhJupyterError):
        return cls(detail)
    # Jupyter asks for an XSRF token where the other one is wrong.
    if status == 403 and (detail in ("Forbidden", "Invalid API Key") or "_xsrf" in detail):
        detail += ". Check the token"
    return ServerError(detail, status)


def unreachable(calls: Calls, problem: Exception) -> ServerError:
    """Make the error for a server that does not answer.

    Args:
        calls: Where the request went.
        problem: What the HTTP library says.

    Returns:
        The error.
    """
    return ServerError(
        f"{calls.server_address} cannot be reached: {problem}. Is the Jupyter server running, "
        "with oh_jupyter in its environment?"
    )


def _json(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        raise ServerError("The server's answer is not JSON: is the address right?") from None


def _nothing(body: bytes) -> None:
    return None


def _observation(body: bytes) -> Observation:
    return observation_from_wire(_json(body))


def _events(body: bytes) -> list[Event]:
    found = []
    for wire in _json(body)["events"]:
        try:
            found.append(from_wire(wire))
        except WireError:
            continue  # of a type that a newer runtime knows
    return found
