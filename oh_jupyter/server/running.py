"""Finding the Jupyter servers that are running here, and the kernel of an open notebook."""

from __future__ import annotations

import json
import os
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from urllib.parse import parse_qs, urlsplit

from oh_jupyter.errors import KernelNotFoundError, OhJupyterError, ServerError, ServerNotFoundError
from oh_jupyter.server_notes import server_notes

PROBE_SECONDS = 5.0
"""Seconds until a server must have told which notebooks are open."""

NOT_RUNNING = "No Jupyter server is running here. Start one with: jupyter lab"


@dataclass(frozen=True)
class RunningServer:
    """Address of the extension on a server, or of one kernel below it; and the token, or "".

    Attributes:
        url: The address.
        token: The server's token or key, or "".
        notebook: The open notebook that was taken because it is the only one, or "".
    """

    url: str
    token: str
    notebook: str = ""

    @property
    def headers(self) -> dict[str, str]:
        """Headers that the server lets a request in with."""
        return {"Authorization": f"token {self.token}"} if self.token else {}


@dataclass(frozen=True)
class _Jupyter:
    """A Jupyter server with its open notebooks, as paths below its root and kernel ids."""

    base: str
    token: str
    root: str = ""
    notebooks: tuple[tuple[str, str], ...] = ()

    def extension(self, kernel_id: str | None = None) -> RunningServer:
        """The address of the extension, or of one kernel below it."""
        below = "" if kernel_id is None else f"/kernels/{kernel_id}"
        return RunningServer(f"{self.base}/oh_jupyter{below}", self.token)

    def matching(self, notebook: str) -> list[tuple[str, str]]:
        """The open notebooks that a path below the root, or the end of one, names."""
        exact = [pair for pair in self.notebooks if pair[0] == notebook]
        return exact or [pair for pair in self.notebooks if PurePosixPath(pair[0]).match(notebook)]

    def at(self, file: Path) -> list[tuple[str, str]]:
        """The open notebooks that are a file here."""
        return [pair for pair in self.notebooks if self.root and Path(self.root, pair[0]) == file]

    @property
    def opened(self) -> str:
        """The open notebooks, for people."""
        return ", ".join(path for path, _ in self.notebooks) or "none"


def find_server(notebook: str | None = None, *, prefer_open: bool = False) -> RunningServer:
    """The Jupyter server of this user, or the kernel of an open notebook in any of them.

    The notebook is named by its path, or the end of it. Of several servers, one is taken
    without a notebook only if it alone serves the working directory. With ``prefer_open`` the
    only open notebook is taken where none is named. KernelNotFoundError if no server, or more
    than one, is meant.
    """
    found, refusals = _running()
    if not found:
        raise (
            KernelNotFoundError("; ".join(refusals))
            if refusals
            else ServerNotFoundError(NOT_RUNNING)
        )
    if notebook is not None:
        return _with_notebook(found, notebook)
    if len(found) > 1:
        found = _serving(Path.cwd(), found) or found
    if len(found) > 1:
        names = ", ".join(f"{server.base} (in {server.root or '?'})" for server in found)
        raise KernelNotFoundError(
            f"Several Jupyter servers are running: {names}. Name one with --url, or an open "
            "notebook with --notebook"
        )
    opened = found[0].notebooks
    if prefer_open and len({kernel_id for _, kernel_id in opened}) == 1:
        path, kernel_id = opened[0]
        return replace(found[0].extension(kernel_id), notebook=path)
    return found[0].extension()


def server_at(url: str, token: str, notebook: str | None = None) -> RunningServer:
    """The server at the address of a Jupyter server, of the extension on it, or of a kernel.

    The address may be the one that Jupyter prints, with ``/lab`` and a token. The notebook is
    as for ``find_server``. ServerError if it does not answer, or refuses the token.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise ServerError(f"{url!r} is no address of a Jupyter server, as http://localhost:8888")
    token = token or parse_qs(parts.query).get("token", [""])[0]
    bare = f"{parts.scheme}://{parts.netloc}{parts.path}".rstrip("/")
    base, extension, below = bare.partition("/oh_jupyter")
    if not extension:
        base = re.sub(r"/(lab|tree|notebooks)(/.*)?$", "", base)
    if notebook is not None:
        return _with_notebook([_ask(_Jupyter(base, token))], notebook)
    return RunningServer(f"{base}/oh_jupyter{below.removesuffix('/mcp')}", token)


def is_local(url: str) -> bool:
    """Whether an address is this machine's, where no proxy stands between."""
    return (urlsplit(url).hostname or "") in ("localhost", "127.0.0.1", "::1")


def problem_of_answer(url: str, status: int, body: bytes = b"") -> str:
    """What an HTTP status that is no success means to who wanted the tools at an address."""
    if status in (401, 403):
        return f"{url} refuses the token ({status}). Get the one in force with: jupyter server list"
    if status in (301, 302, 303, 307, 308):
        return f"{url} sends to another address ({status}): name that one, and the token"
    said = _message(body)
    if status == 404 and not said:
        return f"{url} has no oh_jupyter. Install it in the server's environment, and restart it"
    return f"{url} answers {status}{f': {said}' if said else ''}"


def _message(body: bytes) -> str:
    """What the extension says in the JSON of an answer, or ""."""
    try:
        found = json.loads(body)
    except ValueError:
        return ""
    message = found.get("detail") or found.get("message") if isinstance(found, dict) else ""
    return message if isinstance(message, str) and message != "Not Found" else ""


def _with_notebook(servers: list[_Jupyter], notebook: str) -> RunningServer:
    file = Path(os.path.abspath(notebook))
    for named in (
        [server.at(file) for server in servers],
        [server.matching(notebook) for server in servers],
    ):
        found = [
            (server, *pair) for server, pairs in zip(servers, named, strict=True) for pair in pairs
        ]
        if found:
            break
    if not found:
        places = "; ".join(f"{server.base}. Open notebooks: {server.opened}" for server in servers)
        raise KernelNotFoundError(
            f"{notebook} is not open in {places}. Open it; or, if it was renamed, run "
            "`oh-jupyter connect CLIENT --notebook NAME` with its new name"
        )
    if len({kernel_id for _, _, kernel_id in found}) > 1:
        names = ", ".join(f"{path} in {server.base}" for server, path, _ in found)
        raise KernelNotFoundError(f"{notebook} names several open notebooks: {names}")
    server, _, kernel_id = found[0]
    return server.extension(kernel_id)


def _serving(directory: Path, servers: list[_Jupyter]) -> list[_Jupyter]:
    """The servers whose root holds a directory, and no root of another that does is deeper."""
    holding = [
        server
        for server in servers
        if server.root and Path(server.root) in (directory, *directory.parents)
    ]
    deepest = max((len(Path(server.root).parts) for server in holding), default=0)
    return [server for server in holding if len(Path(server.root).parts) == deepest]


def _running() -> tuple[list[_Jupyter], list[str]]:
    """The servers of this user that answer and have the extension, and why others are of no use."""
    noted = _noted()
    if not noted:
        return [], []
    with ThreadPoolExecutor(len(noted)) as threads:
        answers = list(threads.map(_ask_or_problem, noted))
    found = [answer for answer in answers if isinstance(answer, _Jupyter)]
    refusals = [answer for answer in answers if isinstance(answer, str) and answer]
    return found, refusals


def _noted() -> list[_Jupyter]:
    """The servers that have a note in Jupyter's runtime directory, each address once."""
    # A note may be left of one that was killed: the newest of an address holds.
    newest = {note.url: note for note in sorted(server_notes(), key=lambda note: note.modified)}
    return [_Jupyter(note.url, note.token, note.root) for note in newest.values()]


def _ask_or_problem(server: _Jupyter) -> _Jupyter | str:
    """A server with its notebooks; or what is wrong with it, "" if it is simply gone."""
    try:
        return _ask(server)
    except _GoneError:
        return ""
    except OhJupyterError as problem:
        return str(problem)


class _GoneError(ServerError):
    """Nobody listens at the address."""


def _ask(server: _Jupyter) -> _Jupyter:
    """A server with its open notebooks; ServerError if it has no use for us."""
    import httpx

    with httpx.Client(
        headers=server.extension().headers,
        timeout=PROBE_SECONDS,
        trust_env=not is_local(server.base),
    ) as client:
        try:
            alive = client.get(f"{server.base}/oh_jupyter/alive")
            notebooks = client.get(f"{server.base}/oh_jupyter/notebooks")
        except httpx.ConnectError as problem:
            raise _GoneError(f"{server.base} cannot be reached: {problem}") from problem
        except httpx.HTTPError as problem:
            raise ServerError(f"{server.base} does not answer: {problem!r}") from problem
    for answer in (alive, notebooks):
        if answer.status_code != 200:
            said = problem_of_answer(server.base, answer.status_code, answer.content)
            raise ServerError(said, answer.status_code)
    return _Jupyter(
        server.base,
        server.token,
        os.path.abspath(server.root) if server.root else "",
        tuple((str(each["path"]), str(each["kernel_id"])) for each in notebooks.json()),
    )
