"""The ways by which an agent reaches a kernel: its control channel, and REST.

Every method returns all that the agent sees as text, also of a failure.
"""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any, Protocol

import requests

from oh_jupyter.testing import LiveKernel, LiveServer
from oh_jupyter.testing.kernel import connect_to_kernel

ACTOR = {"client": "agent"}


class Door(Protocol):
    """An agent's way to a kernel."""

    def act(self, kind: str, **arguments: Any) -> str:
        """Execute an Action."""

    def upload(self, folder: str, name: str, content: bytes, *, recursive: bool) -> str:
        """Upload a file or the files of an archive."""

    def download(self, path: str) -> str:
        """Download a file or the files of a directory."""

    def list_files(self, path: str) -> str:
        """List a directory."""

    def copy_with_store(self, direction: str, path: str, file: str) -> str:
        """Copy a file between the store and the workspace."""

    def save_variable(self, name: str, path: str) -> str:
        """Save a variable of the notebook in a file of the workspace."""

    def changes(self) -> str:
        """Return the files that changed, with their texts."""


class KernelDoor:
    """The control channel, as a server uses it for an agent."""

    def __init__(self, kernel: LiveKernel) -> None:
        self._kernel = kernel

    def _ask(self, operation: str, body: Any = None, **fields: Any) -> tuple[dict[str, Any], bytes]:
        """Send a request of the agent; return fields and body of the reply."""
        kernel = self._kernel
        id = kernel.send(operation, body, by_agent=True, actor=ACTOR, confined=False, **fields)
        return kernel.raw_reply(id, 60)

    def act(self, kind: str, **arguments: Any) -> str:
        """Execute an Action."""
        return _text(self._ask("execute_action", {"action": {"action": kind, "args": arguments}}))

    def upload(self, folder: str, name: str, content: bytes, *, recursive: bool) -> str:
        """Upload a file or the files of an archive."""
        fields, body = self._ask(
            "upload", destination=folder, filename=name, recursive=recursive, exact=False
        )
        if fields["status"] != "ok":
            return _text((fields, body))
        id = json.loads(body)["id"]
        self._ask("send", content, id=id)
        return _text(self._ask("finish", id=id))

    def download(self, path: str) -> str:
        """Download a file or the files of a directory."""
        operation = "download" if path.endswith("/") else "download_file"
        fields, body = self._ask(operation, path=path)
        if fields["status"] != "ok":
            return _text((fields, body))
        pieces = []
        while piece := self._ask("receive", id=json.loads(body)["id"])[1]:
            pieces.append(piece)
        return _text((fields, body)) + _unpacked(b"".join(pieces))

    def list_files(self, path: str) -> str:
        """List a directory."""
        return _text(self._ask("list_files", path=path))

    def copy_with_store(self, direction: str, path: str, file: str) -> str:
        """Copy a file between the store and the workspace."""
        return _text(self._ask("copy_with_store", direction=direction, path=path, file=file))

    def save_variable(self, name: str, path: str) -> str:
        """Save a variable of the notebook in a file of the workspace."""
        return _text(self._ask("save_variable", name=name, path=path))

    def changes(self) -> str:
        """Return the files that changed, with their texts."""
        fields, body = self._ask("changes")
        files = json.loads(body)["files"] if body else []
        texts = [_text(self._ask("change", path=each["path"])) for each in files]
        return "\n".join([_text((fields, body)), *texts])


class ServerKernel(LiveKernel):
    """A kernel of a server; the person's cells reach it directly.

    Attributes:
        id: Its id at the server.
    """

    def __init__(self, server: LiveServer, runtime_dir: Path) -> None:
        """Start a kernel in the server's root directory."""
        self._kernels = f"{server.url}/api/kernels"
        self._headers = server.headers
        reply = requests.post(self._kernels, json={"path": ""}, headers=self._headers, timeout=60)
        self.id = str(reply.json()["id"])
        self._replies = {}
        self.client = connect_to_kernel(runtime_dir / f"kernel-{self.id}.json")
        self.execute("%load_ext oh_jupyter")

    def close(self) -> None:
        """End the kernel at once."""
        self.client.stop_channels()
        requests.delete(f"{self._kernels}/{self.id}", headers=self._headers, timeout=60)


class RestDoor:
    """The REST interface, with a key that the server gives to agents."""

    def __init__(self, server: LiveServer, kernel: str, key: str) -> None:
        self._base = f"{server.url}/oh_jupyter"
        self._kernel = f"{self._base}/kernels/{kernel}"
        self._headers = {"X-Session-API-Key": key}

    def _ask(self, method: str, address: str, **options: Any) -> str:
        response = requests.request(method, address, headers=self._headers, timeout=60, **options)
        return _unpacked(response.content)

    def act(self, kind: str, **arguments: Any) -> str:
        """Execute an Action."""
        body = {"action": {"action": kind, "args": arguments}}
        return self._ask("POST", f"{self._kernel}/execute_action", json=body)

    def upload(self, folder: str, name: str, content: bytes, *, recursive: bool) -> str:
        """Upload a file or the files of an archive."""
        query = {"destination": folder, "recursive": "true" if recursive else "false"}
        files = {"file": (name, content)}
        return self._ask("POST", f"{self._kernel}/upload_file", params=query, files=files)

    def download(self, path: str) -> str:
        """Download a file or the files of a directory."""
        name = "download_files" if path.endswith("/") else "view"
        return self._ask("GET", f"{self._kernel}/{name}", params={"path": path})

    def list_files(self, path: str) -> str:
        """List a directory."""
        return self._ask("POST", f"{self._kernel}/list_files", json={"path": path})

    def copy_with_store(self, direction: str, path: str, file: str) -> str:
        """Write a file of the store, since only MCP copies files to the workspace."""
        return self._ask("PUT", f"{self._base}/store/{path}", data=file.encode())

    def save_variable(self, name: str, path: str) -> str:
        """List the variables, since only MCP saves one in a file."""
        return self._ask("GET", f"{self._kernel}/variables")

    def changes(self) -> str:
        """Return the log, since only MCP returns the changes."""
        return self._ask("GET", f"{self._kernel}/events")


def _text(reply: tuple[dict[str, Any], bytes]) -> str:
    fields, body = reply
    return json.dumps(fields) + body.decode("utf-8", "replace")


def _unpacked(content: bytes) -> str:
    """Return the text of a download, which may be an archive."""
    if not zipfile.is_zipfile(io.BytesIO(content)):
        return content.decode("utf-8", "replace")
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        parts = [archive.read(name) for name in archive.namelist()]
    return "\n".join(part.decode("utf-8", "replace") for part in parts)
