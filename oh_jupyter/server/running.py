"""Discovery of running Jupyter servers, and of the kernel of an open notebook."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from urllib.parse import parse_qs, urlsplit

from oh_jupyter.background import thread_pool
from oh_jupyter.errors import KernelNotFoundError, OhJupyterError, ServerError, ServerNotFoundError
from oh_jupyter.loopback import is_local
from oh_jupyter.server_notes import server_notes

PROBE_SECONDS = 5.0  # timeout for the list of a server's open notebooks
NOT_RUNNING = (
    "No Jupyter server is running here. Start one with: jupyter lab. VS Code's local kernels have "
    "none: choose the server there with Select Kernel > Existing Jupyter Server"
)


@dataclass(frozen=True)
class RunningServer:
    """Address of the extension on a server, or of one kernel below it."""

    url: str
    token: str  # or key, or ""
    notebook: str = ""  # the open notebook chosen as the only one
    path: str = ""  # of the notebook whose kernel this is, below the server's root

    @property
    def headers(self) -> dict[str, str]:
        """Headers that authenticate a request."""
        return {"Authorization": f"token {self.token}"} if self.token else {}


@dataclass(frozen=True)
class _Jupyter:
    """A Jupyter server with its open notebooks, as paths below its root and kernel ids."""

    base: str
    token: str
    root: str = ""
    notebooks: tuple[tuple[str, str], ...] = ()

    def extension(self, kernel_id: str | None = None, path: str = "") -> RunningServer:
        """Return the address of the extension, or of the kernel of a notebook below it."""
        below = "" if kernel_id is None else f"/kernels/{kernel_id}"
        return RunningServer(f"{self.base}/oh_jupyter{below}", self.token, path=path)

    def matching(self, notebook: str) -> list[tuple[str, str]]:
        """Return the open notebooks with a path below the root, or the end of one."""
        exact = [pair for pair in self.notebooks if pair[0] == notebook]
        return exact or [pair for pair in self.notebooks if PurePosixPath(pair[0]).match(notebook)]

    def at(self, file: Path) -> list[tuple[str, str]]:
        """Return the open notebooks with an absolute path."""
        return [pair for pair in self.notebooks if self.root and Path(self.root, pair[0]) == file]

    def __str__(self) -> str:
        """Describe it with its open notebooks."""
        paths = ", ".join(path for path, _ in self.notebooks) or "none"
        return f"{self.base}. Open notebooks: {paths}"


def find_server(notebook: str | None = None, *, prefer_open: bool = False) -> RunningServer:
    """Find this user's Jupyter server, or the kernel of a notebook open in any of them.

    A notebook is named by its path or the end of it. Without one, the only server, or the only one
    that serves the working directory, matches; ``prefer_open`` then chooses the kernel of the only
    open notebook. Raises KernelNotFoundError if nothing matches, or the choice is ambiguous.
    """
    servers, failures = _running()
    if not servers and failures:
        raise KernelNotFoundError("; ".join(failures))
    if not servers:
        raise ServerNotFoundError(NOT_RUNNING)
    if notebook is not None:
        return _with_notebook(servers, notebook)
    if len(servers) > 1:
        servers = _serving(Path.cwd(), servers) or servers
    if len(servers) > 1:
        names = ", ".join(f"{server.base} (in {server.root or '?'})" for server in servers)
        raise KernelNotFoundError(
            f"Several Jupyter servers are running: {names}. Name one with --url, or an open "
            "notebook with --notebook"
        )
    (server,) = servers
    if prefer_open and len({kernel_id for _, kernel_id in server.notebooks}) == 1:
        path, kernel_id = server.notebooks[0]
        return replace(server.extension(kernel_id, path), notebook=path)
    return server.extension()


def server_at(url: str, token: str, notebook: str | None = None) -> RunningServer:
    """Return the server at the address of a Jupyter server, of the extension, or of a kernel.

    The address may be the one that Jupyter prints, with ``/lab`` and a token. The notebook is
    named as for ``find_server``. Raises ServerError if a server that must be asked for it fails.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise ServerError(
            f"{url!r} is not the address of a Jupyter server, such as http://localhost:8888"
        )
    token = token or parse_qs(parts.query).get("token", [""])[0]
    bare = f"{parts.scheme}://{parts.netloc}{parts.path}".rstrip("/")
    base, extension, below = bare.partition("/oh_jupyter")
    if not extension:
        base = re.sub(r"/(lab|tree|notebooks)(/.*)?$", "", base)
    if notebook is not None:
        return _with_notebook([_ask(_Jupyter(base, token))], notebook)
    return RunningServer(f"{base}/oh_jupyter{below.removesuffix('/mcp')}", token)


def describe_failure(url: str, status: int, body: bytes = b"") -> str:
    """Describe the failure of a request to an address, and what to do."""
    if status in (401, 403):
        return (
            f"{url} rejects the token ({status}). Get the current one with: jupyter server list. A "
            "server with a password has no token: on its machine, omit the address, and the key "
            "that it stores for your programs is used. JupyterHub issues tokens on its page "
            "hub/token"
        )
    if status in (301, 302, 303, 307, 308):
        return f"{url} redirects to another address ({status}): use that one, and the token"
    message = _message(body)
    if status == 404 and not message:
        return f"{url} has no oh_jupyter. Install it in the server's environment, and restart it"
    return f"{url} answers {status}{f': {message}' if message else ''}"


def _message(body: bytes) -> str:
    """Return the extension's message in the JSON of a response, or ""."""
    try:
        content = json.loads(body)
    except ValueError:
        return ""
    message = content.get("detail") or content.get("message") if isinstance(content, dict) else ""
    return message if isinstance(message, str) and message != "Not Found" else ""


def _with_notebook(servers: list[_Jupyter], notebook: str) -> RunningServer:
    file = Path(os.path.abspath(notebook))
    matches = [(server, *pair) for server in servers for pair in server.at(file)]
    matches = matches or [
        (server, *pair) for server in servers for pair in server.matching(notebook)
    ]
    if not matches:
        raise KernelNotFoundError(
            f"{notebook} is not open in {'; '.join(map(str, servers))}. Open it; or, if it was "
            "renamed, run `oh-jupyter connect CLIENT --notebook NAME` with its new name"
        )
    if len({kernel_id for _, _, kernel_id in matches}) > 1:
        names = ", ".join(f"{path} in {server.base}" for server, path, _ in matches)
        raise KernelNotFoundError(f"{notebook} matches several open notebooks: {names}")
    server, path, kernel_id = matches[0]
    return server.extension(kernel_id, path)


def _serving(directory: Path, servers: list[_Jupyter]) -> list[_Jupyter]:
    """Return the servers with the deepest root that contains a directory."""
    holding = [
        server
        for server in servers
        if server.root and Path(server.root) in (directory, *directory.parents)
    ]
    deepest = max((len(Path(server.root).parts) for server in holding), default=0)
    return [server for server in holding if len(Path(server.root).parts) == deepest]


def _running() -> tuple[list[_Jupyter], list[str]]:
    """Return this user's responding servers with the extension, and the failures of others."""
    # A killed server may have left its note: the newest of an address is valid.
    notes = {note.url: note for note in sorted(server_notes(), key=lambda note: note.modified)}
    if not notes:
        return [], []
    known = [_Jupyter(note.url, note.token, note.root) for note in notes.values()]
    with thread_pool(len(known), "oh-server-probe") as threads:
        probed = list(threads.map(_probe, known))
    servers = [each for each in probed if isinstance(each, _Jupyter)]
    return servers, [each for each in probed if isinstance(each, str) and each]


def _probe(server: _Jupyter) -> _Jupyter | str:
    """Return a server with its notebooks, or its failure, "" if it is simply gone."""
    try:
        return _ask(server)
    except _GoneError:
        return ""
    except OhJupyterError as error:
        return str(error)


class _GoneError(ServerError):
    """Nobody listens at the address."""


def _ask(server: _Jupyter) -> _Jupyter:
    """Return a server with its open notebooks, or raise ServerError."""
    import httpx

    with httpx.Client(
        headers=server.extension().headers,
        timeout=PROBE_SECONDS,
        trust_env=not is_local(server.base),
    ) as client:
        try:
            alive = client.get(f"{server.base}/oh_jupyter/alive")
            notebooks = client.get(f"{server.base}/oh_jupyter/notebooks")
        except httpx.ConnectError as error:
            raise _GoneError(f"{server.base} cannot be reached: {error}") from error
        except httpx.HTTPError as error:
            raise ServerError(f"{server.base} does not answer: {error!r}") from error
    for response in (alive, notebooks):
        if response.status_code != 200:
            failure = describe_failure(server.base, response.status_code, response.content)
            raise ServerError(failure, response.status_code)
    return _Jupyter(
        server.base,
        server.token,
        os.path.abspath(server.root) if server.root else "",
        tuple((str(each["path"]), str(each["kernel_id"])) for each in notebooks.json()),
    )
