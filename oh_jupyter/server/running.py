"""Finding the Jupyter server that is running here, and the kernel of an open notebook."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from oh_jupyter.errors import KernelNotFoundError

__all__ = ["RunningServer", "find_server", "server_at"]


@dataclass(frozen=True)
class RunningServer:
    """Address of the extension on a server, or of one kernel below it; and the token, or ""."""

    url: str
    token: str


def find_server(notebook: str | None = None) -> RunningServer:
    """The newest Jupyter server of this user, or the kernel of an open notebook in it.

    The notebook is named by its path, or the end of it. KernelNotFoundError if no server is
    running, or the notebook is not open in it.
    """
    from jupyter_server.serverapp import list_running_servers

    found: list[dict[str, Any]] = list(list_running_servers())
    if not found:
        raise KernelNotFoundError("No Jupyter server is running here. Start one with: make lab")
    server = max(found, key=lambda info: int(info["pid"]))
    base, token = str(server["url"]).rstrip("/"), str(server.get("token") or "")
    url = f"{base}/oh_jupyter"
    if notebook is not None:
        url = f"{url}/kernels/{_kernel_of(notebook, base, token)}"
    return RunningServer(url, token)


def server_at(url: str, token: str, notebook: str | None = None) -> RunningServer:
    """The server at the address of a Jupyter server, of the extension on it, or of a kernel.

    The notebook is as for ``find_server``.
    """
    base, extension, below = url.partition("?")[0].rstrip("/").partition("/oh_jupyter")
    if notebook is not None:
        below = f"/kernels/{_kernel_of(notebook, base, token)}"
    return RunningServer(f"{base}/oh_jupyter{below if extension or notebook else ''}", token)


def _kernel_of(notebook: str, base: str, token: str) -> str:
    import requests

    headers = {"Authorization": f"token {token}"} if token else {}
    answer = requests.get(f"{base}/api/sessions", headers=headers, timeout=10)
    answer.raise_for_status()
    sessions = answer.json()
    for session in sessions:
        path = PurePosixPath(str(session.get("path", "")))
        if session.get("kernel") and path.match(notebook):
            return str(session["kernel"]["id"])
    names = ", ".join(str(session.get("path")) for session in sessions) or "none"
    raise KernelNotFoundError(f"{notebook} is not open in {base}. Open notebooks: {names}")
